"""Moved: see `elmo_tasks.files.signals`."""

from elmo_tasks.files.signals import Results as Results
from elmo_tasks.files.signals import uninterrupted as uninterrupted
