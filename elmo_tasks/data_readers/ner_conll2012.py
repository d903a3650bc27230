"""Named entities from the columns of CoNLL-2012, such as those of OntoNotes 5.

Source: Pradhan et al. (2013), "Towards Robust Linguistic Analysis Using OntoNotes", section 4.2; the columns are those
of `conll2012`. The New Testament has no annotation of names, so that its sentences are not examples without names: it
is left out, as in Chiu and Nichols (2016), "Named Entity Recognition with Bidirectional LSTM-CNNs", section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from elmo_tasks.data_readers.columns import DocumentNumbers
from elmo_tasks.data_readers.conll2012 import bracketed_spans, conll2012_files, faultless_documents
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import TagScheme, tags_of_spans


class NerConll2012Config(DatasetReaderConfig):
    """Named entities from the columns of CoNLL-2012: OntoNotes 5, and others in the same form."""

    type: Literal["ner_conll2012"] = "ner_conll2012"
    tag_scheme: Annotated[TagScheme, Field(description="The scheme of the examples' tags.")] = "BIOUL"
    left_out_genres: tuple[str, ...] = Field(
        ("pt",),
        description="Documents whose names begin with one of these and a slash are left out; by default OntoNotes' New "
        "Testament, in which names are not annotated.",
    )

    @property
    def task(self) -> Tagging:
        return Tagging(self.tag_scheme)

    def build(self) -> NerConll2012Reader:
        return NerConll2012Reader(self)


class NerConll2012Reader(DatasetReader):
    """Reads a file, compressed or not, or all files of a folder (see `conll2012.conll2012_files`).

    Makes examples of `Tagging`, with tags in the scheme `tag_scheme`. The log says how many documents are left out.

    Raises (from `read`):
        DataError: what `conll2012.read_conll2012` finds; brackets that are not balanced, or of spans inside others.
            File and line are named.
    """

    config: NerConll2012Config

    def files(self, path: Path) -> Sequence[Path]:
        return conll2012_files(path)

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        files = {file: number for number, file in enumerate(self.files(path))}
        numbers = DocumentNumbers()
        for document in faultless_documents(path, parsing):
            if document.name.partition("/")[0] in self.config.left_out_genres:
                parsing.left_out["document(s) whose names are not annotated"] += 1
                continue
            numbers.border()
            for sentence in document.sentences:
                with parsing.caught():
                    spans = bracketed_spans(sentence.entities, document.path, sentence.first_line)
                    yield {
                        "tokens": list(sentence.words),
                        "tags": tags_of_spans(spans, len(sentence.words), self.config.tag_scheme),
                        **numbers.sentence(),
                        "file": files[document.path],
                        "line": sentence.first_line,
                    }
