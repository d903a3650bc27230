"""What every reader has in common: from a file or a hub data set to a memory-mapped, cached `datasets.Dataset`."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import itertools
import json
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
from pydantic import Field

from elmo_tasks.config import Part, own_code, to_json
from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.data_readers.records import checked_examples, with_task_columns
from elmo_tasks.data_readers.sources import (
    HUB_PREFIX,
    MEMORY_PREFIX,
    DataSet,
    Examples,
    Parsing,
    Source,
    features_of,
    joined,
    load_from_hub,
    path_list,
    single_sources,
    source_name,
)
from elmo_tasks.errors import DataError, ElmoTasksError, OnError, UnknownLabelError, counted, one_line
from elmo_tasks.files.atomic import write_errors
from elmo_tasks.files.cache import content_hash, used_cache
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.paths import refuse_stream, stored_file
from elmo_tasks.tasks import Task
from elmo_tasks.text.tokenizer_config import TokenizerChoice, build_tokenizer

logger = logging.getLogger(__name__)

Predicted = Callable[[int], str]
"""The prediction for a token, by the number of its line."""
# Where an example begins: its file, as an index into `DatasetReader.files`, and its line there, from 1; in a hub data
# set or one in memory its row, from 0. The line is None if the reader does not say it.
PLACE_FEATURES = {"file": "int32", "line": "int32"}
_MAX_SENTENCE = 1000  # tokens; what is longer is hardly one sentence
_COLUMN_NAMES = re.compile(
    "(gold_)?labels?|class|category|(ner_?)?tags?|ner|[ux]?pos|rating|score|sentiment|stars|premise|hypothesis|review|"
    "sentence[12]?|text|tweet|tokens?|words?|form",
    re.IGNORECASE,
)
_SHOWN_ERRORS = 10  # of what was skipped, in the warning; the file of the notes has all
_NOTES = "notes.json"


class Notes(pydantic.BaseModel):
    """What was noticed when a source was read. The notes are kept with the cached examples."""

    source: str
    skipped: list[str] = []  # the errors of the parts that do not follow the format
    warnings: list[str] = []  # of what is read but is probably not what it seems
    left_out: list[str] = []  # the numbers of what is right but does not become an example, or is changed

    def about(self, source: str) -> Notes:
        """The same notes; their messages name this source, which has the content of the one that was read."""
        before = self.source

        def renamed(message: str) -> str:
            return f"{source}{message.removeprefix(before)}" if message.startswith(before) else message

        skipped, warnings = list(map(renamed, self.skipped)), list(map(renamed, self.warnings))
        left_out = [text.replace(before, source) for text in self.left_out]
        return Notes(source=source, skipped=skipped, warnings=warnings, left_out=left_out)

    def log(self, file: Path) -> None:
        """Logs the notes; `file` has them all."""
        for text in self.left_out:
            logger.info("%s: %s", self.source, text)
        for message in self.warnings:
            logger.warning("%s", message)
        if self.skipped:
            shown = "".join(f"\n  {error}" for error in self.skipped[:_SHOWN_ERRORS])
            number = len(self.skipped) - _SHOWN_ERRORS
            rest = f"\n  and {number} more, see {file}" if number > 0 else ""
            problem = f"skipped {len(self.skipped)} part(s) that do not follow the format"
            logger.warning("%s: %s:%s%s", self.source, problem, shown, rest)


class DatasetReaderConfig(Part):
    """The kind of part that reads a data set.

    Class attributes:
        reads_tables: whether it reads tables such as `.csv`, so that `predict` needs no `--format reader` for them.
    """

    reads_tables: ClassVar[bool] = False

    on_error: Literal["fail", "skip"] = Field(
        "fail",
        description="What happens with a sentence, document, proposition or row that does not follow the format: "
        "'fail' ends with an error; 'skip' leaves it out, and a warning names the lines.",
    )
    tokenizer: TokenizerChoice = Field(
        "treebank",
        description="How raw text is split into sentences and tokens: text of the source that is not tokenized, and "
        "text to predict. 'treebank' is for English, 'unicode' for any language; 'whitespace' splits lines that are "
        "tokenized.",
    )

    @property
    def task(self) -> Task:
        """The task whose examples the reader makes. A class attribute is enough."""
        raise NotImplementedError(f"{type(self).__name__} does not say for which task it reads")

    def own_columns(self) -> Mapping[str, str]:
        """The names of the source's columns that differ from those of the task, and the task's: `{review: text}`."""
        return {}

    def trained_on(self, path: Path, earlier: DatasetReaderConfig | None = None) -> DatasetReaderConfig:
        """The settings for the run that learns from a file, if other files are read by what is found out from it.

        Arguments:
            earlier: those of a run whose columns are looked for first in the file.
        """
        del path, earlier
        return self

    def build(self) -> DatasetReader:
        """The reader with these settings."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its reader")

    @classmethod
    def can_read(cls, task: Task) -> bool:
        """Whether readers of this type can make examples of a task of this kind, whatever its settings."""
        # The task may depend on a setting without a default: then there is no attribute `task` here.
        return isinstance(getattr(cls.model_construct(), "task", None), type(task))

    def mismatch(self, task: Task, *, key: str, other: Part, other_key: str) -> str | None:
        """Why the reader does not fit another part of an experiment, and what to do; None if it fits.

        Arguments:
            task: the task of the other part.
            key: the reader's key in the experiment's config.
            other, other_key: the config of the other part, and its key.
        """
        problem = self.task.mismatch(task)
        if problem is None:
            return None
        if isinstance(self.task, type(task)):  # only settings differ
            changes = []
            for field in dataclasses.fields(task):
                own, others = getattr(self.task, field.name), getattr(task, field.name)
                if own != others and field.name in type(other).model_fields:
                    changes.append(f"{other_key}.{field.name} to {json.dumps(own)}")
                if own != others and field.name in type(self).model_fields:
                    changes.append(f"{key}.{field.name} to {json.dumps(others)}")
            remedy = f"Set {', or '.join(changes)}" if changes else "Choose another reader"
        else:
            readers = DatasetReaderConfig.choices().items()
            fitting = [repr(name) for name, reader in readers if reader.can_read(task)]
            remedy = f"Readers that fit: {', '.join(fitting) or 'none'}"
        name, other_name = (type(part).model_fields["type"].default for part in (self, other))
        return f"{key} {name!r} does not fit {other_key} {other_name!r}: {problem}. {remedy}"


class DatasetReader(abc.ABC):
    """Reads a publisher's files (or a hub data set) into examples of a task.

    The reading of one source is a `Parsing`: what is skipped and left out, and whether gold labels are needed. A reader
    does not change when it reads. What does not follow the format is a `DataError` that names the file and the line, or
    the row of a hub data set. The log says how much is left out.

    Arguments:
        config: the reader's settings. They are part of the cache's key.

    Class attributes:
        version: raise it when a change of the code gives other examples, so that no cached file is used. A reader of
            your own needs it only in a notebook: otherwise a change of your files is seen.
        reads_text: whether the tokenizer makes tokens of the source, so that its version is part of the cache's key.
    """

    version: ClassVar[int] = 3
    reads_text: ClassVar[bool] = False

    def __init__(self, config: DatasetReaderConfig) -> None:
        self.config = config
        self.task = config.task
        self.tokenizer = build_tokenizer(config.tokenizer)

    def read(self, source: Source, notes: list[Notes] | None = None) -> DataSet:
        """The whole data set, memory-mapped.

        The examples are cached by `datasets` in `<cache folder>/datasets`, by the content of the source, `cache_key`
        and the code of users' own parts. Several processes can read the same source at once. Cached files that cannot
        be read are made again.

        Arguments:
            source: a file, see `stored_file`, or for some readers a folder; a pattern such as `data/*.csv`; or
                `hub:NAME[#CONFIG][:SPLIT]`; or a list of them; or the examples themselves, as a list of dicts or a
                `datasets.Dataset` with the columns of the task.
            notes: gets what is noticed, one item for each file; by default it is logged as warnings.

        Raises:
            DataError: the file is missing, has no example or does not follow its format; or the hub data set does not;
                or an example in memory lacks a column or has a wrong value.
            ElmoTasksError: the hub data set cannot be loaded.
            WriteError: the cache cannot be written to, for example because its disk is full.
        """
        if path_list(source) and (parts := single_sources(source)) != [str(source)]:
            counts = [len(self.origins(part)) for part in parts[:-1]]
            return joined([self.read(part, notes) for part in parts], [0, *itertools.accumulate(counts)])
        parsing = Parsing(skip=self.config.on_error == "skip")
        if not isinstance(source, (str, Path)):
            name = source_name(source)
            content, examples = [name, self.tokenizer.version], self.memory_examples(source, name, parsing)
        elif str(source).startswith(MEMORY_PREFIX):
            raise DataError(source, "the examples were given in memory, and are not kept; give them again, or a file")
        elif str(source).startswith(HUB_PREFIX):
            name, rows = str(source), self._hub_rows(str(source))
            content = [name, *(content_hash(file["filename"]) for file in rows.cache_files)]
            examples = self.hub_examples(rows, name, parsing)
        else:
            path = stored_file(Path(source))
            name, content, examples = str(path), self.file_key(path, parsing), self.examples(path, parsing)
        key = json.dumps([*self.cache_key(), *own_code(self.config, type(self)), *content])
        folder = used_cache("datasets") / hashlib.sha256(key.encode()).hexdigest()
        data, noticed = self._cached(folder, lambda: self._noting(name, examples, parsing, folder / _NOTES))
        if notes is None:
            noticed.about(name).log(folder / _NOTES)
        else:
            notes.append(noticed.about(name))
        return data

    def _cached(self, folder: Path, rows: Callable[[], Iterator[dict[str, Any]]]) -> tuple[DataSet, Notes]:
        """The data set in a folder of the cache, with its notes; what is missing or damaged is made of the rows."""
        import datasets
        import pyarrow as pa

        damage = (pa.ArrowException, OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
        was_there = folder.exists()
        with write_errors(folder):
            try:
                return self._loaded(folder, rows)
            except datasets.exceptions.DatasetGenerationError as error:
                raise error.__cause__ or error from None
            except damage as error:
                if not was_there:
                    raise
                logger.warning("%s: the cached data set is damaged and is built again (%s)", folder, one_line(error))
            shutil.rmtree(folder)  # nothing has its files open now: Windows would keep them
        return self._cached(folder, rows)

    def _loaded(self, folder: Path, rows: Callable[[], Iterator[dict[str, Any]]]) -> tuple[DataSet, Notes]:
        """What `_cached` returns, or an error about damaged files."""
        import datasets

        features = features_of({**self.task.features, **PLACE_FEATURES})
        had_bars = not datasets.are_progress_bars_disabled()
        datasets.disable_progress_bars()
        try:
            data = datasets.Dataset.from_generator(
                rows, features=features, cache_dir=str(folder), fingerprint=folder.name
            )
        finally:
            if had_bars:
                datasets.enable_progress_bars()
        data.data.validate(full=True)  # damaged offsets would read outside of the file
        return data, Notes.model_validate_json((folder / _NOTES).read_text(encoding="utf-8"))

    def _noting(
        self, source: str, examples: Iterator[dict[str, Any]], parsing: Parsing, file: Path
    ) -> Iterator[dict[str, Any]]:
        """The rows of examples. After the last one, a file gets the notes.

        Raises:
            DataError: there is no example.
        """
        logger.info("reading %s", source)
        begin, count, warnings = time.monotonic(), 0, list[str]()
        long: list[tuple[dict[str, Any], int, int]] = []  # example, sentence, tokens
        for count, example in enumerate(examples, start=1):
            row = {"file": 0, "line": None, **example}
            yield row
            if count == 1 and _is_header(row):
                warnings.append(
                    f"{self.location(source, row)}: what looks like the names of columns is read as data; delete the "
                    "line, or for a table set header: true"
                )
            long += [(row, *found) for found in _long_sentences(row, self.task.sentence_columns)]
        left_out = [f"{number} {what} left out" for what, number in (+parsing.left_out).items()]
        left_out += [f"{number} {what}" for what, number in parsing.changed.items()]
        skipped = [str(error) for error in parsing.skipped]
        if count == 0:
            first = [f"{len(skipped)} were skipped, the first because of {skipped[0]}"] if skipped else []
            raise DataError(source, "; ".join(["has no example", *left_out, *first]))
        if long:
            row, sentence, length = long[0]
            inside = f" (sentence {sentence + 1} of the example)" if sentence else ""
            others = f" (and {len(long) - 1} more like it)" if len(long) > 1 else ""
            warnings.append(
                f"{self.location(source, row)}: a sentence of {length:,} tokens{inside}{others}. Real sentences are "
                "shorter: is there no empty line after each sentence, no column named that numbers them, or a quote "
                "that is never closed?"
            )
        notes = Notes(source=source, skipped=skipped, warnings=warnings, left_out=left_out)
        write_json(file, notes.model_dump())
        logger.info("%s: %s in %.1f s", source, counted(count, "example"), time.monotonic() - begin)

    def unlabelled(self, source: str, on_error: OnError | None = None) -> Iterator[dict[str, Any]]:
        """The examples of a file or a hub data set to predict, one by one: those before an error come first.

        They need no gold labels where the format can do without: a column of labels or tags may be missing.

        Arguments:
            on_error: called with the error of each part that does not follow the format, which is left out then; by
                default the error is raised.

        Raises:
            DataError, ElmoTasksError: see `read`.
        """
        parsing = Parsing(on_error=on_error, needs_labels=False)
        if source.startswith(HUB_PREFIX):
            examples = self.hub_examples(self._hub_rows(source), source, parsing)
        else:
            examples = self.examples(stored_file(Path(source)), parsing)
        for example in examples:
            yield {"line": None, **example}
        for what, number in (+parsing.left_out).items():
            logger.warning("%s: %d %s left out", source, number, what)

    def with_predictions(self, path: Path, predicted: Predicted) -> Iterator[str]:
        """The lines of a file with predictions, in the format that the reader reads.

        Arguments:
            predicted: called for each token, in their order, with the number of its line.

        Raises:
            ElmoTasksError: the format has no place for predictions.
        """
        name = type(self.config).model_fields["type"].default
        raise ElmoTasksError(
            f"files of the reader {name!r} have no place for predictions; expected a table (--output FILE.csv) or JSON "
            "lines"
        )

    def _hub_rows(self, source: str) -> DataSet:
        if type(self).hub_examples is DatasetReader.hub_examples:
            raise ElmoTasksError(f"{source}: {type(self).__name__} only reads files; give the path of a file")
        return load_from_hub(source)

    def cache_key(self) -> list[Any]:
        """What the examples depend on, in addition to the source."""
        key = [type(self).__module__, type(self).__name__, self.version, to_json(self.config), sorted(PLACE_FEATURES)]
        return [*key, self.tokenizer.version] if self.reads_text else key

    def file_key(self, path: Path, parsing: Parsing) -> list[str]:
        """What the examples of a file or folder depend on: the content of its files."""
        return [content_hash(file) for file in self.files(path)]

    def location(self, source: Source, example: Mapping[str, Any]) -> str:
        """Where an example begins, as far as the reader says it."""
        return next(self.locations(source, [example]))

    def locations(self, source: Source, examples: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Where each example begins, as far as the reader says it."""
        origins, name = self.origins(source), source_name(source)
        for example in examples:
            origin, line = origins[example["file"]], example["line"]
            if line is None:  # as in SQuAD's files
                yield f"{origin}: {example['id']}" if example.get("id") else name
            else:
                yield f"{origin}{': row ' if origin.startswith((HUB_PREFIX, MEMORY_PREFIX)) else ':'}{line}"

    def origins(self, source: Source) -> list[str]:
        """What the numbers in the column `file` stand for: files, hub data sets or examples in memory.

        Raises:
            DataError: a file is missing.
        """
        origins: list[str] = []
        for part in map(source_name, single_sources(source)):
            is_elsewhere = part.startswith((HUB_PREFIX, MEMORY_PREFIX))
            origins += [part] if is_elsewhere else map(str, self.files(Path(part)))
        return origins

    def unknown_label(self, source: Source, examples: DataSet, error: UnknownLabelError) -> ElmoTasksError:
        """The error for a gold label that the vocabulary does not have, with the location of its first example."""
        number, example = next(
            (number, example)
            for number, example in enumerate(examples, start=1)
            if error.label in self.task.labels(example).get(error.namespace, ())
        )
        name = self.location(source, example)
        problem = f"{error} --unknown-labels count (unknown_labels='count') counts it as an error of the run"
        if example["line"] is None:
            return ElmoTasksError(f"{name}: example {number}: {problem}")
        begins = "" if name.startswith((HUB_PREFIX, MEMORY_PREFIX)) else "in the example that begins here: "
        return DataError(name, f"{begins}{problem}")

    def files(self, path: Path) -> Sequence[Path]:
        """The files of a source, in the order in which they are read. By default, a source is one file.

        Raises:
            DataError: there is no such file, or it is a folder.
        """
        file = stored_file(path)
        if file.is_dir():
            raise DataError(path, "is a folder; expected a file")
        refuse_stream(file)
        if not file.is_file():
            raise MissingDataError(path)
        return (file,)

    @abc.abstractmethod
    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        """Parses a file, or all files of a folder, one example at a time.

        In addition to the columns of the task's `features`, an example may have those of `PLACE_FEATURES`: errors about
        unknown labels name them.

        Raises:
            DataError: the file does not follow its format; file and line are named.
        """

    def memory_examples(self, examples: Examples, name: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        """The examples of a data set in memory, with the columns of the task or its own; errors name it by `name`."""
        examples = with_task_columns(examples, self.config.own_columns())
        return checked_examples(examples, self.task, name, parsing, self.tokenizer)

    def hub_examples(self, rows: DataSet, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        """The examples of a hub data set's rows. A reader that does not override this only reads files.

        Raises:
            ElmoTasksError: the rows lack what the reader needs.
        """
        raise NotImplementedError


def _long_sentences(example: Mapping[str, Any], columns: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The sentences of more than `_MAX_SENTENCE` tokens: the number of the sentence in the example, and its tokens."""
    for column in columns:
        texts = example.get(column) or []
        is_nested = bool(texts) and not isinstance(texts[0], str)  # a list of sentences
        for number, sentence in enumerate(texts if is_nested else [texts]):
            if len(sentence) > _MAX_SENTENCE:
                yield number, len(sentence)


def _is_header(example: Mapping[str, Any]) -> bool:
    """Whether an example is a header row: its only words and its label, or its first word and tag, name columns."""
    texts = [example[column] for column in ("tokens", "premise", "hypothesis") if column in example]
    if "tags" in example:
        words = [*texts[0][:1], *example["tags"][:1]]
    elif "label" in example and all(len(text) == 1 for text in texts):
        words = [*(text[0] for text in texts), example["label"]]
    else:
        return False
    return all(_COLUMN_NAMES.fullmatch(word) for word in words)
