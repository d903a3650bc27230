"""Coreference: one example for each document, from the columns of CoNLL-2012.

Source: Pradhan et al. (2012), see `conll2012`; the clusters are those of `coreference_column`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from elmo_tasks.data_readers.conll2012 import conll2012_files, read_conll2012
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.extras.tables.coreference_column import parse_coreference_column
from elmo_tasks.tasks import Coreference, Task


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

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        files = {file: number for number, file in enumerate(self.files(path))}
        for document in read_conll2012(path):
            with self.bad_units.caught():
                for error in (*document.bad_sentences, document.fault):
                    if error:
                        raise error
                if not document.sentences:
                    self.left_out["document(s) without any token"] += 1
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
