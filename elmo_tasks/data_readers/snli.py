"""Natural language inference: does a premise entail a hypothesis? SNLI, MultiNLI, SICK, and hub data sets like them.

Sources: Bowman et al. (2015), "A large annotated corpus for learning natural language inference" (SNLI 1.0, as jsonl or
tab-separated); Williams et al. (2018) for MultiNLI; Marelli et al. (2014) for SICK.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast, get_args

import datasets
from pydantic import Field

from elmo_tasks.data_readers.inference_files import Record, RecordError, class_names, read_records
from elmo_tasks.data_readers.reader import HUB_PREFIX, DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.treebank import unescape
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.tasks import Task, TextPairs
from elmo_tasks.text import tokenization

logger = logging.getLogger(__name__)

INFERENCE_LABELS = ("entailment", "neutral", "contradiction")
NO_LABEL = "-"  # the annotators did not agree
SemEvalSet = Literal["TRAIN", "TRIAL", "TEST"]

SET_COLUMN = "SemEval_set"
PARSE_ENDING = "_binary_parse"
# The columns of the known data sets, in the order in which they are looked for.
SENTENCE_COLUMNS = (("sentence1", "sentence2"), ("sentence_A", "sentence_B"), ("premise", "hypothesis"))
LABEL_COLUMNS = ("gold_label", "entailment_label", "entailment_judgment", "label")
# So many pairs at the beginning of a source tell whether it is tokenized.
SAMPLE_PAIRS = 1000


class SnliConfig(DatasetReaderConfig):
    """SNLI's, MultiNLI's and SICK's files, jsonl or tab-separated, and hub data sets with premise and hypothesis."""

    type: Literal["snli"] = "snli"
    task: ClassVar[Task] = TextPairs()
    tokenized: Annotated[
        bool | Literal["auto"],
        Field(
            description="true: sentences are split at white space; false: they are raw and are tokenized; 'auto': the "
            "words of the binary parse where there is one, else the source counts as tokenized if most of its first "
            "sentences that end in a period, question or exclamation mark have white space before it."
        ),
    ] = "auto"
    columns: Annotated[
        tuple[str, str, str] | Literal["auto"],
        Field(description="The names of premise, hypothesis and label; 'auto' knows those of SNLI, MultiNLI and SICK."),
    ] = "auto"
    semeval_set: Annotated[
        SemEvalSet | None,
        Field(description="Of SICK.txt, the pairs of this set alone; a path that ends in ':TRAIN' says the same."),
    ] = None

    def build(self) -> SnliReader:
        return SnliReader(self)


class SnliReader(DatasetReader):
    """Makes examples of `TextPairs`.

    Labels are `entailment`, `neutral` and `contradiction`, in lower case whatever the file has, so that a model reads
    every one of these data sets. Pairs without a gold label (`-`, -1 in hub data sets) and pairs with an empty sentence
    are left out; how many is logged. Treebank escapes of tokenized sentences and of parses are undone.

    Raises (from `read`):
        DataError: a line that is no JSON object, that has other columns than the header row, that lacks a sentence or
            the label; an unknown label; a parse with unbalanced brackets; bytes that are not UTF-8. File and line are
            named.
        ElmoTasksError: likewise for a hub data set; the row is named.
    """

    version: ClassVar[int] = 1

    config: SnliConfig

    def read(self, source: str | Path) -> datasets.Dataset:
        """As for every reader; `SICK.txt:TRAIN`, `:TRIAL` and `:TEST` are the SemEval sets of one file."""
        path, semeval_set = _split_source(source)
        if semeval_set is not None:
            return SnliReader(self.config.model_copy(update={"semeval_set": semeval_set})).read(path)
        return super().read(source)

    def files(self, path: Path) -> Sequence[Path]:
        return super().files(Path(_split_source(path)[0]))

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        try:
            yield from self._pairs(read_records(path), str(path))
        except RecordError as error:
            raise DataError(path, error.problem, error.number) from None

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        try:
            column = self._find_columns(rows.column_names, None).label
            names = class_names(rows.features[column], column)
            records = (
                (number, {**row, column: names.get(row[column], row[column])}) for number, row in enumerate(rows)
            )
            yield from self._pairs(records, source)
        except RecordError as error:
            place = source if error.number is None else f"{source}: row {error.number}"
            raise ElmoTasksError(f"{place}: {error.problem}") from None

    def cache_key(self) -> list[Any]:
        return [*super().cache_key(), tokenization.VERSION]

    def _pairs(self, records: Iterator[tuple[int, Record]], source: str) -> Iterator[dict[str, Any]]:
        sample = list(itertools.islice(records, SAMPLE_PAIRS))
        if not sample:
            return
        columns = self._find_columns(sample[0][1], 1)
        is_tokenized = self._is_tokenized(columns, sample)
        left_out: Counter[str] = Counter()
        for number, record in itertools.chain(sample, records):
            if not self._is_wanted(number, record):
                continue
            label = _label(number, record, columns.label)
            premise = self._tokens(number, record, columns.premise, is_tokenized)
            hypothesis = self._tokens(number, record, columns.hypothesis, is_tokenized)
            if label is None:
                left_out["without a gold label"] += 1
            elif not (premise and hypothesis):
                left_out["with an empty sentence"] += 1
            else:
                yield {"premise": premise, "hypothesis": hypothesis, "label": label, "line": number}
        for reason, count in left_out.items():
            logger.info("%s: %d pair(s) %s left out", source, count, reason)

    def _find_columns(self, names: Iterable[str], line: int | None) -> _Columns:
        """Where the sentences and the label stand, by the names that the source has (in `line`, if it is a file)."""
        names = list(names)
        if self.config.columns != "auto":
            columns = _Columns(*self.config.columns)
            if missing := [name for name in columns if name not in names]:
                raise RecordError(line, f"no column {', '.join(map(repr, missing))}; there are: {', '.join(names)}")
            return columns
        sentences = next((pair for pair in SENTENCE_COLUMNS if set(pair) <= set(names)), None)
        label = next((name for name in LABEL_COLUMNS if name in names), None)
        if sentences is None or label is None:
            known = " or ".join("/".join(pair) for pair in SENTENCE_COLUMNS)
            raise RecordError(
                line,
                f"wanted columns {known}, and one of {', '.join(LABEL_COLUMNS)}; there are: {', '.join(names)[:200]}. "
                "Name others in 'columns'",
            )
        return _Columns(*sentences, label)

    def _is_tokenized(self, columns: _Columns, sample: Sequence[tuple[int, Record]]) -> bool:
        """Whether punctuation stands apart in the source's first sentences; not if there is none to tell by."""
        if self.config.tokenized != "auto":
            return self.config.tokenized
        apart = attached = 0
        for number, record in sample:
            for column in (columns.premise, columns.hypothesis):
                sentence = _text(number, record, column).rstrip()
                if sentence.endswith((".", "?", "!")):
                    is_apart = sentence[-2:-1].isspace()
                    apart += is_apart
                    attached += not is_apart
        return apart > attached

    def _is_wanted(self, number: int, record: Record) -> bool:
        if self.config.semeval_set is None:
            return True
        found = _text(number, record, SET_COLUMN)
        if found not in get_args(SemEvalSet):
            raise RecordError(number, f"{SET_COLUMN} {found!r}; wanted {', '.join(get_args(SemEvalSet))}")
        return found == self.config.semeval_set

    def _tokens(self, number: int, record: Record, column: str, is_tokenized: bool) -> list[str]:
        sentence = _text(number, record, column)
        if self.config.tokenized == "auto" and record.get(column + PARSE_ENDING):
            return _leaves(number, _text(number, record, column + PARSE_ENDING))
        if is_tokenized:
            return [unescape(token) for token in sentence.split()]
        return list(itertools.chain.from_iterable(tokenization.tokenize_to_strings(sentence)))


class _Columns(NamedTuple):
    """The names of the columns that an example is made of."""

    premise: str
    hypothesis: str
    label: str


def _split_source(source: str | Path) -> tuple[str, SemEvalSet | None]:
    """The path, and the SemEval set that stands after it."""
    path, _, part = str(source).rpartition(":")
    if part in get_args(SemEvalSet) and not path.startswith(HUB_PREFIX) and not Path(source).exists():
        return path, cast("SemEvalSet", part)
    return str(source), None


def _text(number: int, record: Record, column: str) -> str:
    if column not in record:
        raise RecordError(number, f"no {column!r} among {', '.join(record)}")
    value = record[column]
    if not isinstance(value, str):
        raise RecordError(number, f"{column!r} is {value!r}; wanted a string")
    return value


def _label(number: int, record: Record, column: str) -> str | None:
    """The gold label; None where there is none."""
    written = _text(number, record, column)
    if written == NO_LABEL:
        return None
    label = written.lower()
    if label not in INFERENCE_LABELS:
        wanted = f"{', '.join(INFERENCE_LABELS)}, or {NO_LABEL!r} for a pair to leave out"
        raise RecordError(number, f"{column} {written!r}; wanted {wanted}")
    return label


def _leaves(number: int, parse: str) -> list[str]:
    """The words of a binary parse such as `( ( The cat ) ( sleeps . ) )`."""
    words = []
    depth = 0
    for piece in parse.split():
        if piece not in ("(", ")"):
            words.append(unescape(piece))
            continue
        depth += 1 if piece == "(" else -1
        if depth < 0:
            break
    if depth != 0:
        raise RecordError(number, f"the brackets of a binary parse are not balanced: {parse[:80]!r}")
    return words
