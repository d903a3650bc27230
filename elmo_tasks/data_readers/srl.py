"""Semantic roles: one example for each predicate, from the columns of CoNLL-2012.

Source: Pradhan et al. (2012), see `conll2012`. Each predicate has a column of bracketed spans, which becomes BIO tags:
`V` for the predicate, the names of roles for its arguments, with `R-` before those of references and `C-` before those
of further pieces of one argument.
"""

from __future__ import annotations

import abc
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from elmo_tasks.data_readers.conll2012 import bracketed_spans, conll2012_files, faultless_documents
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError, counted
from elmo_tasks.metrics.srl import VERB
from elmo_tasks.tasks import SemanticRoles, Task
from elmo_tasks.tasks.semantic_roles import SCHEME
from elmo_tasks.text.tag_schemes import Span, tags_of_spans

logger = logging.getLogger(__name__)


class SrlSentence(NamedTuple):
    """A sentence with all of its predicates, in their order."""

    tokens: Sequence[str]
    lemmas: Sequence[str]
    predicates: Sequence[int]  # the indices of their tokens
    roles: list[list[Span] | None]  # of each predicate; None if they are wrong and skipped
    document: str | None
    path: Path
    first_line: int


class SrlReader(DatasetReader):
    """What the readers of semantic roles share.

    They make examples of `SemanticRoles`, one for each predicate. With `on_error: 'skip'`, a wrong column of roles
    costs only its proposition; any other fault costs the sentence. Sentences without a predicate are numbered too, but
    make no example; the log says how many there are.
    """

    @abc.abstractmethod
    def sentences(self, path: Path, parsing: Parsing) -> Iterator[SrlSentence]:
        """Parses every sentence, also those without predicates.

        Raises:
            DataError: the file does not follow its format; file and line are named.
        """

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        files = {file: number for number, file in enumerate(self.files(path))}
        count = without = 0
        for count, sentence in enumerate(self.sentences(path, parsing), start=1):
            without += not sentence.predicates
            for predicate, roles in zip(sentence.predicates, sentence.roles, strict=True):
                if roles is None:
                    continue
                yield {
                    "tokens": list(sentence.tokens),
                    "predicate": predicate,
                    "lemma": sentence.lemmas[predicate],
                    "tags": tags_of_spans(roles, len(sentence.tokens), SCHEME),
                    "document": sentence.document,
                    "sentence": count - 1,
                    "file": files[sentence.path],
                    "line": sentence.first_line,
                }
        logger.info("%s: %s, %d of them without a predicate", path, counted(count, "sentence"), without)

    def read_roles(
        self, columns: Iterable[Sequence[str]], path: Path, first_line: int, parsing: Parsing
    ) -> list[list[Span] | None]:
        """The spans of each column of roles, None for a wrong one that is skipped."""
        roles: list[list[Span] | None] = []
        for column in columns:
            roles.append(None)
            with parsing.caught():
                roles[-1] = bracketed_spans(column, path, first_line)
        return roles


class SrlReaderConfig(DatasetReaderConfig):
    """The readers of semantic roles among those of data sets."""

    task: ClassVar[Task] = SemanticRoles()

    def build(self) -> SrlReader:
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its reader")


class SrlConll2012Config(SrlReaderConfig):
    """Semantic roles from the columns of CoNLL-2012: OntoNotes, and PropBank releases in the same form."""

    type: Literal["srl_conll2012"] = "srl_conll2012"

    def build(self) -> SrlConll2012Reader:
        return SrlConll2012Reader(self)


class SrlConll2012Reader(SrlReader):
    """Reads a file, compressed or not, or all files of a folder (see `conll2012.conll2012_files`).

    A token with a frameset is a predicate. In the few sentences of some releases that do not have as many framesets as
    columns of roles, the first token of the span `V` of each column is the predicate; a column without one is an error.

    `document` is the name and part as the file has them: `bc/cctv/00/cctv_0000; part 000`.
    """

    def files(self, path: Path) -> Sequence[Path]:
        return conll2012_files(path)

    def sentences(self, path: Path, parsing: Parsing) -> Iterator[SrlSentence]:
        for document in faultless_documents(path, parsing):
            for sentence in document.sentences:
                with parsing.caught():
                    roles = self.read_roles(sentence.roles, document.path, sentence.first_line, parsing)
                    predicates: Sequence[int] = sentence.predicates
                    if len(predicates) != len(roles):
                        verbs = [next((span for span in spans or () if span.label == VERB), None) for spans in roles]
                        predicates = [verb.start for verb in verbs if verb]
                        if len(predicates) < len(verbs):
                            problem = f"{len(roles)} column(s) of roles for {len(sentence.predicates)} token(s)"
                            expected = f"with a frameset, and not every column has a span {VERB} instead"
                            raise DataError(document.path, f"{problem} {expected}", sentence.first_line)
                    source = document.name, document.path, sentence.first_line
                    yield SrlSentence(sentence.words, sentence.lemmas, predicates, roles, *source)
