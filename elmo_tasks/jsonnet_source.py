"""Where in Jsonnet files a key is written, for error messages.

Jsonnet's evaluation keeps no places, so the files are read a second time for their structure. A path that is not found
whole is looked for in the loose objects by its end. A literal that differs from the resolved value is never taken for
its origin, and where two places are possible none is named: no line is better than a wrong one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from elmo_tasks.jsonnet_parser import OPAQUE, UNKNOWN, Entry, Node, Parser, Unreadable


class KeyFinder:
    """Finds the places of key paths in a Jsonnet file and the files that it imports.

    Arguments:
        path: the file, by the name that messages shall show.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._files: dict[str, Node] = {}
        self._loose: list[Node] = []
        self._root = self.load(os.fspath(path))

    def load(self, path: str) -> Node:
        """The structure of a file; nothing is known of a file that cannot be read."""
        if path not in self._files:
            self._files[path] = OPAQUE  # what a file that imports itself sees
            try:
                with open(path, encoding="utf-8") as stream:
                    parser = Parser(stream.read(), path, self.load)
                self._files[path] = parser.document()
                self._loose += parser.loose
            except (OSError, UnicodeDecodeError, Unreadable):
                pass  # only a message's line is lost by this
        return self._files[path]

    def find(self, path: Sequence[str | int], value: Any) -> str | None:
        """The place `file:line` where the key at `path` is written, None if unsure; `value` is its resolved value."""
        entry, certain = _lookup(self._root, tuple(path))
        fits = entry is not None and _may_be(entry.value, value)
        if entry is not None and fits and (certain or entry.value.literal is not UNKNOWN):
            return entry.place
        places = self._loose_places(path, value)
        if places:
            return places.pop() if len(places) == 1 else None
        return entry.place if entry is not None and fits else None

    def _loose_places(self, path: Sequence[str | int], value: Any) -> set[str]:
        """The places of the longest end of `path` that is found in loose objects."""
        for start in range(len(path)):
            ending = tuple(path[start:])
            named = any(isinstance(step, str) for step in ending)
            entries = [_lookup(node, ending)[0] for node in self._loose] if named else []
            if places := {entry.place for entry in entries if entry is not None and _may_be(entry.value, value)}:
                return places
        return set()


def _lookup(root: Node, path: tuple[str | int, ...], detours: int = 8) -> tuple[Entry | None, bool]:
    """The entry at a path, and whether nothing opaque may have replaced it; references are followed so many times."""
    node, entry, certain = root, None, True
    for depth, step in enumerate(path):
        if node.reference is not None:
            levels, keys = node.reference
            if levels > depth or not detours:
                return None, False
            return _lookup(root, (*path[: depth - levels], *keys, *path[depth:]), detours - 1)
        if isinstance(step, str):
            entry = (node.fields or {}).get(step)
        else:
            entry = node.items[step] if node.items is not None and step < len(node.items) else None
        if entry is None:
            return None, False
        certain = certain and entry.certain
        node = entry.value
    return entry, certain


def _may_be(node: Node, value: Any) -> bool:
    """Whether the expression can have this value, as far as is known of it."""
    if node.literal is not UNKNOWN:
        return bool(node.literal == value) and isinstance(node.literal, bool) == isinstance(value, bool)
    if node.fields is not None:
        return isinstance(value, dict)
    return node.items is None or isinstance(value, list)
