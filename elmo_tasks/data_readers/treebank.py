"""Tokens as the Penn Treebank escapes them."""

from __future__ import annotations

_AS_WRITTEN = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
    "`": "'",
}


def unescape(token: str) -> str:
    r"""The token as a text has it, and as `elmo_tasks.text.tokenization` would make it of that text.

    Brackets, quotes, and the backslash before a slash or a star are undone: `-LRB-`, ` `` ` and `and\/or` become `(`,
    `"` and `and/or`. Any other token, one already unescaped included, stays as it is.
    """
    return _AS_WRITTEN.get(token) or token.replace("\\/", "/").replace("\\*", "*")
