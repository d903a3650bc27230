"""Coreference: one example for each document, from the columns of CoNLL-2012.

The last column has clusters of mentions as brackets with numbers, a cell for each token. `(5` begins a mention of
cluster 5, `5)` ends one, `(5)` is a mention of one token; several are joined by `|`, and `-` means none. Several
without `|`, as in the test files of the reference scorer, and an empty cell for none, as in LitBank, are read too. An
end closes the mention of its cluster that began last. Hence mentions of the same cluster may be nested, but not cross,
as [0, 2] and [1, 3] do; those of different clusters may.

Sources: Pradhan et al. (2012), see `conll2012`; the column is read as the reference scorer v8.01 reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from elmo_tasks.data_readers.conll2012 import conll2012_files, read_conll2012
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Coreference, Task

NO_BRACKETS = "-"
_BRACKET = re.compile(r"(?P<single>\([0-9]+\))|(?P<begin>\([0-9]+)|(?P<end>[0-9]+\))")
_CELL = re.compile(r"(?:\([0-9]+\)?|[0-9]+\))(?:\|?(?:\([0-9]+\)?|[0-9]+\)))*")
# Brackets of a cell are read in this order; their order in the cell has no meaning.
_KINDS = ("single", "begin", "end")


class CoreferenceConll2012Config(DatasetReaderConfig):
    """Coreference from the columns of CoNLL-2012: OntoNotes, OntoGUM, LitBank, and others in the same form."""

    type: Literal["coref_conll2012"] = "coref_conll2012"
    task: ClassVar[Task] = Coreference()

    def build(self) -> CoreferenceConll2012Reader:
        return CoreferenceConll2012Reader(self)


class CoreferenceConll2012Reader(DatasetReader):
    """Reads a file, compressed or not, or all files of a folder (see `conll2012.conll2012_files`).

    Makes an example of `Coreference` from each document, or part of one. `document` is the name and part as the file
    has them: `bc/cctv/00/cctv_0000; part 000`. `genre` is what precedes the first slash of the name, None without one.
    `clusters` are as annotated, not merged or filtered. Documents without tokens are left out; the log says how many.

    Raises (from `read`):
        DataError: what `conll2012.read_conll2012` finds; a malformed cell of the coreference column, a mention that
            is closed but not opened or is never closed. File and line are named.
    """

    def files(self, path: Path) -> Sequence[Path]:
        return conll2012_files(path)

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        files = {file: number for number, file in enumerate(self.files(path))}
        for document in read_conll2012(path):
            with parsing.caught():
                for error in (*document.bad_sentences, document.fault):
                    if error:
                        raise error
                if not document.sentences:
                    parsing.left_out["document(s) without any token"] += 1
                    continue
                lines = [line for each in document.sentences for line in enumerate(each.coreference, each.first_line)]
                genre, slash, _ = document.name.partition("/")
                yield {
                    "document": document.name,
                    "genre": (genre or None) if slash else None,
                    "sentences": [list(sentence.words) for sentence in document.sentences],
                    "speakers": [list(sentence.speakers) for sentence in document.sentences],
                    "clusters": parse_coreference_column(lines, document.path),
                    "file": files[document.path],
                    "line": document.sentences[0].first_line,
                }


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
