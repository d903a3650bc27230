"""Semantic roles: one example for each predicate, from the columns of CoNLL-2012 or the props of CoNLL-2005.

Sources: Pradhan et al. (2012), see `conll2012`; Carreras and Màrquez (2005), "Introduction to the CoNLL-2005 Shared
Task: Semantic Role Labeling". In both, each predicate has a column of bracketed spans, which becomes BIO tags: `V` for
the predicate, the names of roles for its arguments, with `R-` before those of references and `C-` before those of
further pieces of one argument.
"""

from __future__ import annotations

import abc
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from elmo_tasks.data_readers.columns import read_rows
from elmo_tasks.data_readers.conll2012 import bracketed_spans, conll2012_files, faultless_documents
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing, without_copies
from elmo_tasks.errors import DataError, counted
from elmo_tasks.files.paths import is_clutter, plain_name
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


class SrlConll2005Config(SrlReaderConfig):
    """Semantic roles from the props of CoNLL-2005, in one file with the words, or next to them as distributed."""

    type: Literal["srl_conll2005"] = "srl_conll2005"
    columns: Annotated[
        tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]],
        Field(
            description="The columns of the word and of the predicates' lemmas in a single file, 0 is the first; "
            "all columns after the lemmas are columns of roles."
        ),
    ] = (0, 1)

    def build(self) -> SrlConll2005Reader:
        return SrlConll2005Reader(self)


class SrlConll2005Reader(SrlReader):
    """Reads a file, compressed or not, or a folder of the official distribution.

    Supported are

    - a file with a column of words, and further right the props: the predicates' lemmas (`-` for other tokens), then a
      column of roles for each predicate. `columns` says which; columns between them are not read.
    - a folder such as `devel` or `test.wsj`, with the subfolders `words` and `props` and files `NAME.words` and
      `NAME.props` in them, compressed or not, which are read in the order of their names.

    `document` is None: the format has no documents.

    What does not follow the format:

    - props without words, or words and props that do not have the same sentences;
    - a line with too few columns, or not with as many as the first of its sentence;
    - a sentence that does not have a column of roles for each predicate.
    """

    config: SrlConll2005Config

    def files(self, path: Path) -> Sequence[Path]:
        return [file for pair in _file_pairs(path) for file in pair] if path.is_dir() else super().files(path)

    def sentences(self, path: Path, parsing: Parsing) -> Iterator[SrlSentence]:
        if path.is_dir():
            for words_file, props_file in _file_pairs(path):
                yield from self._read_pair(words_file, props_file, parsing)
            return
        word_column, lemma_column = self.config.columns
        for first_line, rows in read_rows(path, lemma_column + 1, parsing, needed=(word_column,)):
            with parsing.caught():
                if rows:
                    words = [row[word_column] for row in rows]
                    props = [row[lemma_column:] for row in rows]
                    yield self._sentence(words, props, path, first_line, parsing)

    def _sentence(
        self, words: Sequence[str], props: list[list[str]], path: Path, first_line: int, parsing: Parsing
    ) -> SrlSentence:
        """`props` are rows of a lemma and the cells of each column of roles."""
        lemmas, *columns = zip(*props, strict=True)
        predicates = [index for index, lemma in enumerate(lemmas) if lemma != "-"]
        if len(predicates) != len(columns):
            problem = f"{len(columns)} column(s) of roles for {len(predicates)} predicate(s) in the column of lemmas"
            raise DataError(path, f"{problem}; expected one for each, after the words and the lemmas", first_line)
        roles = self.read_roles(columns, path, first_line, parsing)
        return SrlSentence(words, lemmas, predicates, roles, None, path, first_line)

    def _read_pair(self, words_file: Path, props_file: Path, parsing: Parsing) -> Iterator[SrlSentence]:
        """The sentences of a file of words and a file of props that have the same lines."""
        files = (read_rows(file, 1, parsing, needed=(0,)) for file in (words_file, props_file))
        for words, props in itertools.zip_longest(*files):
            if words is None:
                raise DataError(props_file, f"one more sentence than {words_file}", props[0])
            if props is None:
                raise DataError(words_file, f"one more sentence than {props_file}", words[0])
            if not words[1] or not props[1]:  # one of them is skipped
                continue
            with parsing.caught():
                if len(words[1]) != len(props[1]):
                    expected = f"{len(words[1])} as in {words_file}:{words[0]}"
                    raise DataError(
                        props_file, f"the sentence has {len(props[1])} token(s); expected {expected}", props[0]
                    )
                yield self._sentence([row[0] for row in words[1]], props[1], props_file, props[0], parsing)


def _file_pairs(folder: Path) -> list[tuple[Path, Path]]:
    """The files of words and of props in a folder of the distribution, in the order of their names."""
    by_name: list[dict[str, Path]] = []
    for kind in ("words", "props"):
        files = without_copies(file for file in (folder / kind).glob(f"*.{kind}*") if not is_clutter(file.name))
        named = {plain_name(file): file for file in files if plain_name(file).endswith(f".{kind}")}
        if not named:
            expected = "expected a folder with words and props, or a single file"
            raise DataError(folder, f"no file {kind}/NAME.{kind}; {expected}")
        by_name.append({name.removesuffix(f".{kind}"): file for name, file in named.items()})
    words, props = by_name
    if unpaired := words.keys() ^ props.keys():
        name = min(unpaired)
        file = words.get(name) or props.get(name)
        raise DataError(folder, f"{file} has no counterpart; expected {name}.words in words, {name}.props in props")
    return [(words[name], props[name]) for name in sorted(words)]
