"""Fixtures of other tests."""

from tests.elmo.test_scalar_mix import batch  # noqa: F401 - a fixture
