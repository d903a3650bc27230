"""Fixtures of other tests."""

from tests.runs.conftest import run  # noqa: F401 - a fixture
