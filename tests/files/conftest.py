"""Runs, for the models that packages bring."""

from tests.runs.conftest import run, trained  # noqa: F401 - fixtures
