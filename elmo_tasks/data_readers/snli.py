"""Natural language inference: does a premise entail a hypothesis? SNLI, MultiNLI, SICK, and hub data sets like them.

Sources: Bowman et al. (2015), "A large annotated corpus for learning natural language inference" (SNLI 1.0, as jsonl or
tab-separated); Williams et al. (2018) for MultiNLI; Marelli et al. (2014) for SICK.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from elmo_tasks.data_readers.columns import clean
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.records import Record, check_distinct, hub_records, json_records, require_columns, unescape
from elmo_tasks.data_readers.sources import DataSet, Parsing, class_names
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines
from elmo_tasks.tasks import Task, TextPairs
from elmo_tasks.text.vocabulary import INFERENCE_LABELS

NO_LABEL = "-"  # the annotators did not agree
SemEvalSet = Literal["TRAIN", "TRIAL", "TEST"]

SET_COLUMN = "SemEval_set"
PARSE_ENDING = "_binary_parse"
# The columns of the known data sets, in the order in which they are looked for.
SENTENCE_COLUMNS = (("sentence1", "sentence2"), ("sentence_A", "sentence_B"), ("premise", "hypothesis"))
LABEL_COLUMNS = ("gold_label", "entailment_label", "entailment_judgment", "label")
SAMPLE_PAIRS = 1000  # at the beginning of a source, to see whether it is tokenized
# The header row of MultiNLI ends with five columns for the annotators' labels; its rows have as many as they need.
_OPTIONAL_COLUMN = re.compile(r"label\d")


class SnliConfig(DatasetReaderConfig):
    """SNLI's, MultiNLI's and SICK's files, jsonl or tab-separated, and hub data sets with premise and hypothesis."""

    type: Literal["snli"] = "snli"
    tokenized: bool | Literal["auto"] = Field(
        "auto",
        description="true: sentences are split at white space; false: they are raw and are tokenized; 'auto': the "
        "words of the binary parse are used if there is one; if not, the source counts as tokenized if most of its "
        "first sentences that end in a period, question or exclamation mark have white space before it.",
    )
    columns: tuple[str, str, str] | Literal["auto"] = Field(
        "auto",
        description="The names of premise, hypothesis and label; 'auto' knows those of SNLI, MultiNLI and SICK.",
    )
    semeval_set: SemEvalSet | None = Field(None, description="Only the pairs of this set of SICK.txt.")
    end_token: str | None = Field(
        None, min_length=1, description="A token that a batch has at the end of each text; the head's `end_token`."
    )

    @property
    def task(self) -> Task:
        return TextPairs(self.end_token)

    def build(self) -> SnliReader:
        return SnliReader(self)


class SnliReader(DatasetReader):
    """Makes examples of `TextPairs`.

    Labels are `entailment`, `neutral` and `contradiction`, always in lower case: a model reads all of these data sets.
    Treebank escapes of tokenized sentences and of parses are undone.

    Left out are pairs without a gold label (`-`, -1 in hub data sets) and pairs with an empty sentence.

    What does not follow the format:

    - a line that is not a JSON object, or has other columns than the header row;
    - a pair without a sentence or a label, or with an unknown label;
    - a parse with unbalanced brackets.
    """

    config: SnliConfig
    reads_text = True

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        with contextlib.closing(read_lines(path)) as lines:
            yield from self._pairs(self._records(lines, path, parsing), parsing)

    def hub_examples(self, rows: DataSet, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        *_, label = self._find_columns(rows.column_names, source, parsing)
        if not parsing.needs_labels:
            return self._pairs(hub_records(rows, source), parsing)
        names = class_names(rows.features[label])
        labels: dict[Any, str] = {None: NO_LABEL, -1: NO_LABEL, **dict(enumerate(names or ()))}
        records = (
            row._replace(columns={**row.columns, label: labels.get(row.columns[label], row.columns[label])})
            for row in hub_records(rows, source)
        )
        return self._pairs(records, parsing)

    def _pairs(self, records: Iterator[Record], parsing: Parsing) -> Iterator[dict[str, Any]]:
        sample = list(itertools.islice(records, SAMPLE_PAIRS))
        if not sample:
            return
        *sentences, label_column = self._columns_of(sample, parsing)
        is_tokenized = self._is_tokenized(sentences, sample)
        for record in itertools.chain(sample, records):
            with parsing.caught():
                if self.config.semeval_set is not None:
                    semeval_set = clean(record.get(SET_COLUMN, str))
                    if semeval_set not in get_args(SemEvalSet):
                        expected = ", ".join(get_args(SemEvalSet))
                        raise DataError(record.location, f"{SET_COLUMN} {semeval_set!r}; expected {expected}")
                    if semeval_set != self.config.semeval_set:
                        parsing.left_out["pair(s) of other sets"] += 1
                        continue
                label = _label(record, label_column) if parsing.needs_labels else None
                premise, hypothesis = (self._tokens(record, column, is_tokenized) for column in sentences)
                if label is None and parsing.needs_labels:
                    parsing.left_out["pair(s) without a gold label"] += 1
                elif not (premise and hypothesis):
                    parsing.left_out["pair(s) with an empty sentence"] += 1
                else:
                    yield {"premise": premise, "hypothesis": hypothesis, "label": label, "line": record.number}

    def _records(self, numbered: Iterator[tuple[int, str]], path: Path, parsing: Parsing) -> Iterator[Record]:
        """Yields the records of a file's lines, without blank ones.

        It is jsonl if its first line begins with a brace, else tab-separated, without quoting.
        """
        lines = ((number, line) for number, line in numbered if line.strip())
        header, first = next(lines, (0, ""))
        if not header:
            return
        if first.lstrip().startswith("{"):
            yield from json_records(itertools.chain([(header, first)], lines), path, parsing)
            return
        names = [clean(name) for name in first.split("\t")]
        check_distinct(names, path, header)
        self._find_columns(names, f"{path}:{header}", parsing)
        needed = len(names)
        while needed and _OPTIONAL_COLUMN.fullmatch(names[needed - 1]):
            needed -= 1
        for number, line in lines:
            fields = line.split("\t")
            if needed <= len(fields) <= len(names):
                yield Record(dict(zip(names, fields, strict=False)), number, f"{path}:{number}")
            else:
                expected = f"{needed} to {len(names)}" if needed < len(names) else f"{needed}"
                problem = f"{len(fields)} column(s); expected {expected} as in the header row: {line[:80]!r}"
                parsing.add(DataError(path, problem, number))

    def _columns_of(self, sample: Sequence[Record], parsing: Parsing) -> tuple[str, str, str]:
        """The columns of premise, hypothesis and label in the first record that has them."""
        for record in sample:
            with contextlib.suppress(DataError):
                return self._find_columns(record.columns, record.location, parsing)
        return self._find_columns(sample[0].columns, sample[0].location, parsing)  # raises the error

    def _find_columns(self, names: Iterable[str], location: str, parsing: Parsing) -> tuple[str, str, str]:
        """The columns of premise, hypothesis and label among those of the source; errors name `location`."""
        names = list(names)
        if self.config.columns != "auto":
            needed = self.config.columns if parsing.needs_labels else self.config.columns[:2]
            require_columns(needed, names, location, "expected those of the setting 'columns'")
            return self.config.columns
        sentences = next((pair for pair in SENTENCE_COLUMNS if set(pair) <= set(names)), None)
        label = next((name for name in LABEL_COLUMNS if name in names), None if parsing.needs_labels else "")
        if sentences is None or label is None:
            known = " or ".join("/".join(pair) for pair in SENTENCE_COLUMNS)
            raise DataError(
                location,
                f"expected columns {known}, and one of {', '.join(LABEL_COLUMNS)}; got: {', '.join(names)[:200]}. "
                "Name others in 'columns'",
            )
        return *sentences, label

    def _is_tokenized(self, columns: Sequence[str], sample: Sequence[Record]) -> bool:
        """Whether most first sentences have white space before their final mark; False if none has such a mark."""
        if self.config.tokenized != "auto":
            return self.config.tokenized
        values = [record.columns.get(column) for record in sample for column in columns]
        texts = [value.rstrip() for value in values if isinstance(value, str)]
        is_apart = [text[-2:-1].isspace() for text in texts if text.endswith((".", "?", "!"))]
        return 2 * sum(is_apart) > len(is_apart)

    def _tokens(self, record: Record, column: str, is_tokenized: bool) -> list[str]:
        sentence = record.get(column, str)
        if self.config.tokenized == "auto" and record.columns.get(column + PARSE_ENDING):
            parse = record.get(column + PARSE_ENDING, str)  # such as `( ( The cat ) ( sleeps . ) )`
            pieces = parse.replace(BYTE_ORDER_MARK, "").split()
            depths = list(itertools.accumulate((piece == "(") - (piece == ")") for piece in pieces))
            if depths and (min(depths) < 0 or depths[-1] != 0):
                problem = f"the brackets of a binary parse are not balanced: {parse[:80]!r}"
                raise DataError(record.location, problem)
            return [unescape(piece) for piece in pieces if piece not in ("(", ")")]
        sentence = sentence.replace(BYTE_ORDER_MARK, "")
        if is_tokenized:
            return [unescape(token) for token in sentence.split()]
        return list(itertools.chain.from_iterable(self.tokenizer.strings(sentence)))


def _label(record: Record, column: str) -> str | None:
    """The gold label; None if there is none."""
    written = clean(record.get(column, str))
    if written == NO_LABEL:
        return None
    if written.lower() not in INFERENCE_LABELS:
        expected = f"{', '.join(INFERENCE_LABELS)}, or {NO_LABEL!r} for a pair to leave out"
        raise DataError(record.location, f"{column} {written!r}; expected {expected}")
    return written.lower()
