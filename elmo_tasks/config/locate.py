r"""Where the keys of a config are written, for error messages, found by a search of the text.

Every key of an object that Jsonnet makes is written somewhere as `name:`, `'name':`, `"name"+:` and so on. If only one
place in the config's file and its imports can have given a key its value, that is the place. A place cannot have given
it if another name or another literal value is written there. If several places could have, none is named.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from elmo_tasks.config.packaged import IMPORT_FOLDER

_BLOCK = r"\|\|\|-?[ \t\r]*\n(?:[ \t\r]*\n)*(?P<margin>[ \t]+)[^\n]*\n(?:(?P=margin)[^\n]*\n|[ \t\r]*\n)*[ \t]*\|\|\|"
_STRING = rf"""{_BLOCK}|@"(?:[^"]|"")*"|@'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_COMMENT_OR_STRING = re.compile(rf"(?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)|{_STRING}", re.DOTALL)
_WORD = re.compile(rf"{_STRING}|[A-Za-z_]\w*|\]", re.DOTALL)  # `]` may end a computed key
_IMPORT = re.compile(r"""\s*(["'])([^"'\\]+)\1""")
_COLONS = re.compile(r"\s*(\+?)\s*(:{1,3})")
# A literal that is the whole value: behind it come the next key or the object's end.
_LITERAL = re.compile(
    r"""\s*(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|"[^"\\]*"|'[^'\\]*'|\[[^][{}"']*\])\s*[,}]"""
)
_UNWRITTEN = re.compile("parseJson|parseYaml|objectKeysValues|mapWithKey")  # make keys or values that no text shows


class Unsure(Exception):
    """A file cannot be read, or keys may come from elsewhere than from the text."""


@dataclasses.dataclass(frozen=True)
class WrittenKey:
    """A key in the text of a file."""

    file: str
    line: int  # from 1
    name: str | None  # None if it is computed
    literal: str | None  # None if the value is computed, or added to another one

    def may_be(self, name: str, value: Any) -> bool:
        """Whether a key of this name can have its value from here."""
        if self.name is not None and self.name != name:
            return False
        if self.literal is None:
            return True
        if self.literal[0] == "[":
            return isinstance(value, list)
        literal = self.literal[1:-1] if self.literal[0] in "\"'" else json.loads(self.literal, parse_int=float)
        return bool(literal == value) and isinstance(literal, bool) == isinstance(value, bool)


def written_keys(path: str, seen: frozenset[str] = frozenset()) -> Iterator[WrittenKey]:
    """All keys except hidden ones in a Jsonnet file and the files that it imports.

    Arguments:
        path: the file, by the name that messages show.
        seen: the files that import this one.

    Raises:
        Unsure: there may be more of them.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            text = _COMMENT_OR_STRING.sub(_without_comment, stream.read())
    except (OSError, UnicodeDecodeError) as error:
        raise Unsure from error
    if _UNWRITTEN.search(text):
        raise Unsure
    for word in _WORD.finditer(text):
        colons = _COLONS.match(text, word.end())
        if word[0] == "import":
            if not (target := _IMPORT.match(text, word.end())):
                raise Unsure
            imported = os.path.normpath(os.path.join(os.path.dirname(path), target[2]))
            if not os.path.isfile(imported):
                imported = str(IMPORT_FOLDER / target[2])
            if imported not in seen:
                yield from written_keys(imported, seen | {path})
        elif colons and colons[2] != "::":
            name = word[0][1:-1] if word[0][0] in "\"'" else word[0]
            literal = _LITERAL.match(text, colons.end())
            yield WrittenKey(
                file=path,
                line=text.count("\n", 0, word.start()) + 1,
                name=None if word[0][0] in "]@|" or "\\" in name else name,
                literal=literal[1] if literal and not colons[1] else None,
            )


def _without_comment(match: re.Match[str]) -> str:
    """The match, or blanks of the same lines if it is a comment."""
    return re.sub(r"[^\n]", " ", match[0]) if match["comment"] else match[0]


def find_key(keys: Iterable[WrittenKey], name: str, value: Any) -> tuple[str, int] | None:
    """The file and line where the key of this name and value is written, None if that is not certain."""
    lines = {(key.file, key.line) for key in keys if key.may_be(name, value)}
    return lines.pop() if len(lines) == 1 else None
