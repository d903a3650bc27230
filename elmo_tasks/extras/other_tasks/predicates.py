"""Tags of the predicates in files of semantic roles, so that a tagger learns which tokens are predicates.

Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from elmo_tasks.data_readers.columns import DocumentNumbers
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.data_readers.srl import SrlReaderConfig
from elmo_tasks.metrics.srl import VERB
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import Span, tags_of_spans


class PredicatesConfig(DatasetReaderConfig):
    """The predicates of files of semantic roles, as tags in IOB2."""

    type: Literal["predicates"] = "predicates"
    source: SrlReaderConfig = Field(description="The reader of the files of semantic roles.")

    @property
    def task(self) -> Tagging:
        return Tagging("IOB2", single_tokens=True)

    def build(self) -> PredicatesReader:
        return PredicatesReader(self)


class PredicatesReader(DatasetReader):
    """Makes examples of `Tagging`, one for each sentence, also those without a predicate.

    A predicate is a span `V` of one token, without the particle of "give up", for example. So the score of spans is
    that of predicates. Sentences without a document are all in the first one. The `on_error` of the source has no
    effect; the one of this reader has. A predicate with wrong roles is kept, because only its position is used.
    """

    config: PredicatesConfig

    def __init__(self, config: PredicatesConfig) -> None:
        super().__init__(config)
        self._source = config.source.build()

    def cache_key(self) -> list[Any]:
        return [*super().cache_key(), *self._source.cache_key()]

    def files(self, path: Path) -> Sequence[Path]:
        return self._source.files(path)

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        files = {file: number for number, file in enumerate(self.files(path))}
        numbers, document = DocumentNumbers(), None
        for sentence in self._source.sentences(path, parsing):
            if sentence.document != document:
                numbers.border()
            document = sentence.document
            spans = [Span(VERB, index, index) for index in set(sentence.predicates)]
            yield {
                "tokens": list(sentence.tokens),
                "tags": tags_of_spans(spans, len(sentence.tokens), "IOB2"),
                **numbers.sentence(),
                "file": files[sentence.path],
                "line": sentence.first_line,
            }
