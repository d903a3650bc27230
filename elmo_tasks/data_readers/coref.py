"""Coreference: one example for each document, from the columns of CoNLL-2012.

Source: Pradhan et al. (2012), see `conll2012`; the clusters are those of `coreference_column`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from elmo_tasks.data_readers.conll2012 import Conll2012Document, conll2012_files, read_conll2012
from elmo_tasks.data_readers.coreference_column import parse_coreference_column
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.tasks import Coreference

logger = logging.getLogger(__name__)


class CoreferenceConll2012Config(DatasetReaderConfig):
    """Coreference from the columns of CoNLL-2012: OntoNotes, OntoGUM, and others in the same form."""

    type: Literal["coref_conll2012"] = "coref_conll2012"

    @property
    def task(self) -> Coreference:
        return Coreference()

    def build(self) -> CoreferenceConll2012Reader:
        return CoreferenceConll2012Reader(self)


class CoreferenceConll2012Reader(DatasetReader):
    """Reads a file, compressed or not, or all files of a folder (`conll2012.conll2012_files` says which).

    Makes an example of `Coreference` of each document, or part of one. `document` is the name and part as the file has
    them: `bc/cctv/00/cctv_0000; part 000`. `genre` is what stands before the name's first slash, None without one.
    `clusters` are as annotated, not merged or filtered. A document without any token gives no example; how many there
    are is logged.

    Raises (from `read`):
        DataError: what `conll2012.read_conll2012` refuses; a malformed cell of the coreference column, a mention that
            is closed but not opened or is never closed. File and line are named.
    """

    version: ClassVar[int] = 1

    def files(self, path: Path) -> Sequence[Path]:
        return conll2012_files(path)

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        empty = 0
        for document in read_conll2012(path):
            if document.sentences:
                yield _example(document)
            else:
                empty += 1
        if empty:
            logger.info("%s: %d document(s) without any token are left out", path, empty)


def _example(document: Conll2012Document) -> dict[str, Any]:
    cells = [
        (sentence.first_line + position, cell)
        for sentence in document.sentences
        for position, cell in enumerate(sentence.coreference)
    ]
    genre, slash, _ = document.name.partition("/")
    return {
        "document": f"{document.name}; part {document.part:03}",
        "genre": genre if slash and genre else None,
        "sentences": [list(sentence.words) for sentence in document.sentences],
        "speakers": [list(sentence.speakers) for sentence in document.sentences],
        "clusters": parse_coreference_column(cells, document.path),
    }
