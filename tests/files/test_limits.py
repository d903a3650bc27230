"""Bounds on what is unpacked."""

from __future__ import annotations

import io

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.limits import VARIABLE, bounded, limit, unpacked_numbers, unpacked_text


def test_a_stream_of_just_the_most_bytes_is_read_to_its_end() -> None:
    stream = bounded(io.BytesIO(b"abcde"), 5, ElmoTasksError)
    assert (stream.read(2), stream.read(), stream.read()) == (b"ab", b"cde", b"")
    with pytest.raises(ElmoTasksError, match=r"^unpacks to more than 4 bytes; if the file is as it should be, ELMO"):
        bounded(io.BytesIO(b"abcde"), 4, ElmoTasksError).read()


def test_what_a_file_may_unpack_to_grows_with_it_and_with_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in (unpacked_text, unpacked_numbers):
        monkeypatch.delenv(VARIABLE, raising=False)
        small, large = bound(0), bound(1_000_000)
        assert small > 10_000_000
        assert large > small + 10_000_000
        monkeypatch.setenv(VARIABLE, "2.5")
        assert (bound(0), bound(1_000_000)) == (2.5 * small, 2.5 * large)
    assert limit(101) == 252
