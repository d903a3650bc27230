"""Fixtures of other tests."""

from tests.models.conftest import bilm_files  # noqa: F401 - a fixture
