"""The names of CoNLL-2012, the props of CoNLL-2005, and tags of the predicates in files of semantic roles.

Sources: Pradhan et al. (2012), see `data_readers.conll2012`; Carreras and Màrquez (2005), "Introduction to the
CoNLL-2005 Shared Task: Semantic Role Labeling"; for a tagger that learns which tokens are predicates, He et al. (2017),
"Deep Semantic Role Labeling: What Works and What's Next", section 2.3.

In OntoNotes' New Testament, names are not annotated, so that its sentences are not examples without names: the reader
of names leaves it out, as in Chiu and Nichols (2016), "Named Entity Recognition with Bidirectional LSTM-CNNs", section
3.1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from elmo_tasks.data_readers.columns import DocumentNumbers, read_rows
from elmo_tasks.data_readers.conll2012 import bracketed_spans, conll2012_files, faultless_documents
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Parsing, without_copies
from elmo_tasks.data_readers.srl import SrlReader, SrlReaderConfig, SrlSentence
from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import is_clutter, plain_name
from elmo_tasks.metrics.srl import VERB
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import Span, TagScheme, tags_of_spans


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
    """Makes examples of `Tagging`, with tags in the scheme `tag_scheme`, of a file or of all files of a folder."""

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
        for first_line, rows in read_rows(path, max(self.config.columns) + 1, parsing, needed=(word_column,)):
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
