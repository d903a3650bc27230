"""Inputs for predictors, read line by line from a file or from standard input."""

from __future__ import annotations

import io
import logging
import os
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.errors import DataError, OnError
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.paths import JSON_LINES, each_once, is_clutter, matching_paths, plain_name
from elmo_tasks.files.text import STANDARD_INPUT, decode_lines, read_lines
from elmo_tasks.predictors.predictor import Predictor
from elmo_tasks.text.prose import looks_like, noting_no_text, prose_lines

logger = logging.getLogger(__name__)

LineFormat = Literal["auto", "text", "jsonl"]

_ADVICE = (
    "--format reader reads it as the data of the run, `elmo-tasks evaluate RUN FILE` scores labelled data, and "
    "--format text reads any file as text"
)


class LiveLines:
    """The lines of a pipe, a terminal or a file, each as soon as it is complete.

    Arguments:
        descriptor: the number of the open file.
        name: what messages call it.
        prompt: called before each wait for a line.
    """

    def __init__(self, descriptor: int, name: str = STANDARD_INPUT, prompt: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self._file = os.fdopen(descriptor, "rb", buffering=0, closefd=False)  # UTF-8 also in a console of Windows
        self._prompt = prompt
        self._read = bytearray()  # after the lines that were taken

    def readline(self, size: int = -1) -> bytes:
        """The next line with its line end, at most `size` bytes of it; empty at the end."""
        if self.waiting():
            self._prompt()
        end = self._read.find(b"\n") + 1  # 0 if the line is not complete
        while not end and (size < 0 or len(self._read) < size):
            if not (more := self._file.read(io.DEFAULT_BUFFER_SIZE)):
                break
            if b"\n" in more:
                end = len(self._read) + more.find(b"\n") + 1
            self._read += more
        length = end or len(self._read)
        line = bytes(self._read[: length if size < 0 else min(length, size)])
        del self._read[: len(line)]
        return line

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def waiting(self) -> bool:
        """Whether the next line has not come yet, so that reading it would wait. At the end there is no wait."""
        if b"\n" in self._read:
            return False
        try:
            return not select.select([self._file], [], [], 0)[0]
        except OSError:  # on Windows, only sockets can be asked
            return True


def input_name(source: str | Path | LiveLines) -> str:
    """The name of a source in messages."""
    return source.name if isinstance(source, LiveLines) else str(source)


def read_inputs(
    source: str | Path | LiveLines, format: LineFormat = "auto", on_error: OnError | None = None
) -> Iterator[dict[str, Any] | None]:
    """Yields one input for every line, None for a blank one, so that an input has the number of its line.

    A file that is almost surely neither text nor JSON lines is refused, such as a table; see `text.prose`.

    Arguments:
        source: a file, compressed or not, or lines that are still coming.
        format: `text`: a line is a document or a paragraph and becomes `{"text": line}`; `jsonl`: a line is a JSON
            object; `auto`: `jsonl` if the name says so, or if the first line that is not blank begins with a brace,
            otherwise `text`. Only `text` takes any lines.
        on_error: called with the error of a line that is not UTF-8 or not a JSON object, which then counts as a blank
            one; by default the error is raised.

    Raises:
        DataError: the file does not exist or is a data file, or a line is not UTF-8 or not a JSON object; source and
            line are named.
    """
    expected = "a JSON object on each line (or, for raw text, the format 'text')"
    name = input_name(source)
    if format == "auto" and plain_name(Path(name)).lower().endswith(JSON_LINES):
        format = "jsonl"
    if format == "auto" and (found := looks_like(name, "", json_lines=True)):  # before its lines, perhaps not in UTF-8
        raise DataError(name, f"looks like {found}; {_ADVICE}")
    if isinstance(source, LiveLines):
        lines = decode_lines(source, name, on_error=on_error)
    else:
        lines = read_lines(source, on_error=on_error)
    if format != "text":
        lines = prose_lines(lines, name, _ADVICE, json_lines=True)
    for number, line in noting_no_text(lines, name):
        if not line.strip():
            yield None
            continue
        if format == "auto":
            format = "jsonl" if line.lstrip().startswith("{") else "text"
        try:
            value = {"text": line} if format == "text" else parse_json(line, name, expected, number)
            if not isinstance(value, dict):
                raise DataError(name, f"a JSON {type(value).__name__}; expected {expected}", number)
        except DataError as error:
            if on_error is None:
                raise
            on_error(error)
            value = None
        yield value


def find_files(inputs: Sequence[str | Path], output: str | Path | None = None) -> dict[str, Path]:
    """The files that paths, patterns and folders name, by their names relative to the folder that they share.

    In a folder, all files below it are read, except hidden ones. A file that is named in several ways is read once.

    Arguments:
        output: a folder whose files are not read: results that an earlier call wrote below the input.

    Raises:
        DataError: a path, or a pattern, names no file, or there are only those of the output folder.
    """
    found: list[Path] = []
    results = None if output is None else Path(output).resolve()
    for name in inputs:
        files = [file for path in matching_paths(name) for file in (_files_below(path) if path.is_dir() else [path])]
        if not files:
            raise DataError(name, "no such file, and no file in such a folder")
        for file in map(Path.absolute, files):
            if results not in file.resolve().parents:  # the name of a file that is a link stays
                found.append(file.parent.resolve() / file.name if ".." in file.parts else file)
    if not found:
        raise DataError(inputs[0], "contains only files of an output folder; expected the text")
    common = Path(os.path.commonpath([path.parent for path in found]))
    return {path.relative_to(common).as_posix(): path for path in each_once(sorted(found))}


def _files_below(folder: Path) -> list[Path]:
    below = ((path, path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return [
        path
        for path, name in below
        if not is_clutter(name) and not any(part.startswith((".", "_")) for part in name.parts)
    ]


def inputs_of_files(
    files: Mapping[str, Path], format: LineFormat = "auto", on_error: OnError | None = None
) -> Iterator[dict[str, Any] | None]:
    """The inputs of several files, each with the name of its `file` and its `line`; errors as of `read_inputs`."""
    for name, path in files.items():
        for line, fields in enumerate(read_inputs(path, format, on_error), start=1):
            yield {"file": name, "line": line, **fields} if fields else fields


def reader_inputs(
    reader: DatasetReader, predictor: Predictor, source: str, on_error: OnError | None = None
) -> Iterator[dict[str, Any] | None]:
    """Yields the inputs of a data file, and None for each line where none begins, so that inputs count as their lines.

    Arguments and errors: see `DatasetReader.unlabelled`.
    """
    count = 0
    for fields in predictor.inputs_of(reader.unlabelled(source, on_error)):
        for _ in range(count + 1, fields["line"] or 0):
            yield None
        count = max(count + 1, fields["line"] or 0)
        yield fields
    if not count:
        logger.warning("%s: no examples to predict", source)
