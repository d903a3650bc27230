"""Fixtures of other tests."""

from tests.elmo.conftest import bilm, bilm_files, options, sentences  # noqa: F401 - fixtures
