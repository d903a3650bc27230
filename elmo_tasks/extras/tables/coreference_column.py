"""The coreference column of CoNLL-2012: clusters of mentions as brackets with numbers, a cell for each token.

`(5` begins a mention of cluster 5, `5)` ends one, `(5)` is a mention of one token; several are joined by `|`, and `-`
means none. Several without `|`, as in the test files of the reference scorer, and an empty cell for none, as in
LitBank, are read too. An end closes the mention of its cluster that began last. Hence mentions of the same cluster may
be nested, but not cross, as [0, 2] and [1, 3] do; those of different clusters may.

Source: the format of the CoNLL-2012 shared task, read as its reference scorer v8.01 reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.errors import DataError

NO_BRACKETS = "-"
_BRACKET = re.compile(r"(?P<single>\([0-9]+\))|(?P<begin>\([0-9]+)|(?P<end>[0-9]+\))")
_CELL = re.compile(r"(?:\([0-9]+\)?|[0-9]+\))(?:\|?(?:\([0-9]+\)?|[0-9]+\)))*")
# Brackets of a cell are read in this order; their order in the cell has no meaning.
_KINDS = ("single", "begin", "end")


def parse_coreference_column(cells: Iterable[tuple[int, str]], path: str | Path) -> list[list[list[int]]]:
    """The clusters of one document.

    Arguments:
        cells: for each token of the document the number of its line in the file and its cell.
        path: the file, for errors.

    Returns:
        Clusters in the order of their first brackets, each a list of mentions `[first token, last token]` from left to
        right: token offsets in the document, ends inclusive. A mention may be in two clusters.

    Raises:
        DataError: a cell is malformed; a mention ends that was not begun, or is begun and never ends.
    """
    clusters: dict[str, list[list[int]]] = {}
    begun: dict[str, list[tuple[int, int]]] = {}  # by cluster, innermost last: (first token, line)
    for token, (line, cell) in enumerate(cells):
        for kind, cluster in _brackets(cell, path, line):
            mentions = clusters.setdefault(cluster, [])
            if kind == "single":
                mentions.append([token, token])
            elif kind == "begin":
                begun.setdefault(cluster, []).append((token, line))
            elif begun.get(cluster):
                start, _ = begun[cluster].pop()
                mentions.append([start, token])
            else:
                raise DataError(path, f"a mention of cluster {cluster} ends here but does not begin: {cell!r}", line)
    still_open = [(start, line, cluster) for cluster, starts in begun.items() for start, line in starts]
    if still_open:
        _, line, cluster = min(still_open)
        raise DataError(path, f"a mention of cluster {cluster} begins here but does not end in its document", line)
    return [sorted(mentions) for mentions in clusters.values()]


def _brackets(cell: str, path: str | Path, line: int) -> list[tuple[str, str]]:
    """The (kind, cluster) of each bracket in a cell, in the order of reading."""
    if cell in (NO_BRACKETS, ""):
        return []
    if not _CELL.fullmatch(cell):
        expected = f"{NO_BRACKETS!r}, or '(N', 'N)' or '(N)' joined by '|'"
        raise DataError(path, f"{cell!r} is not a coreference cell; expected {expected}", line)
    brackets = [(str(match.lastgroup), match.group().strip("()")) for match in _BRACKET.finditer(cell)]
    return sorted(brackets, key=lambda bracket: _KINDS.index(bracket[0]))
