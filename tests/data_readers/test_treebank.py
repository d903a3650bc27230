from __future__ import annotations

import pytest

from elmo_tasks.data_readers.treebank import unescape


@pytest.mark.parametrize(
    ("escaped", "written"),
    [
        ("-LRB-", "("),
        ("-RRB-", ")"),
        ("-LSB-", "["),
        ("-RSB-", "]"),
        ("-LCB-", "{"),
        ("-RCB-", "}"),
        ("``", '"'),
        ("''", '"'),
        ("`", "'"),
        ("'", "'"),
        ("and\\/or", "and/or"),
        ("\\*\\*", "**"),
        ("1\u00a01\\/2", "1\u00a01/2"),
        ("A-LRB-", "A-LRB-"),
        ("'s", "'s"),
        ("\\n", "\\n"),
        ("(", "("),
    ],
)
def test_unescape(escaped: str, written: str) -> None:
    assert unescape(escaped) == written
    assert unescape(written) == written
