"""Fixtures of other tests."""

from tests.runs.conftest import finished, killed, run, stopped, trained  # noqa: F401 - fixtures
