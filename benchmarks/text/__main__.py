"""Puts together English text under free licences to pretrain a biLM on.

`python -m benchmarks.text FOLDER` writes a file of raw text for each source of `sources.json`: a paragraph on each line
and a blank line between documents, as `elmo-tasks pretrain` reads it.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import hashlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pydantic

import elmo_tasks.data_readers  # noqa: F401 - registers the readers
from benchmarks.common import markdown_table
from benchmarks.text.reading import clean, documents, num_tokens, words_of
from benchmarks.text.sources import LIST, Source, files, read_sources
from elmo_tasks.config.data_folder import DATA_VARIABLE, DEFAULT_DATA_FOLDER
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.text import read_lines

GRAM = 13  # words in a row that text to learn from must not share with text to test on
_TEST_DATA: dict[str, dict[str, Any]] = {  # in $ELMO_TASKS_DATA, with their readers
    "ner_conll2003/eng.test?": {"type": "conll2003"},
    "sst5/[dt]e[vs]*.txt": {"type": "sst"},
    "snli/snli_1.0_[dt]e[vs]*.jsonl": {"type": "snli"},
    "squad/dev-v1.1.json": {"type": "squad"},
    "pos_ud_ewt/en_ewt-ud-[dt]e[vs]*.conllu": {"type": "conllu"},
    "coref_ontogum/ontogum.[dt]e[vs]*.v4_gold_conll": {"type": "coref_conll2012"},
    "srl_ewt/ewt.[dt]e[vs]*.gold_conll": {"type": "srl_conll2012"},
}

logger = logging.getLogger("benchmarks.text")


@dataclasses.dataclass
class Counts:
    """What a source's file of text contains, and what was left out of it."""

    source: str
    licence: str
    megabytes: float = 0.0  # of the files read, decompressed
    documents: int = 0
    paragraphs: int = 0
    duplicates: int = 0
    dropped_for_test_data: int = 0
    tokens: int = 0  # words and punctuation marks
    sha256: str = ""


class EvaluationText:
    """The sequences of `GRAM` words of texts to test on.

    Text to learn from is searched in steps: each sequence of `GRAM` words contains one of `_PART` words that begins at
    a multiple of `_STEP`. These are rarely shared, so few texts are searched whole.
    """

    _PART, _STEP = 8, 6  # GRAM - _PART + 1

    def __init__(self) -> None:
        self._sequences: set[int] = set()  # their hashes
        self._parts: set[int] = set()

    def __len__(self) -> int:
        return len(self._sequences)

    def add(self, text: str) -> None:
        words = words_of(text)
        self._sequences.update(_sequences(words, GRAM))
        self._parts.update(_sequences(words, self._PART))

    def shares(self, words: Sequence[bytes]) -> bool:
        """Whether a text of these words shares `GRAM` words in a row with one of the texts."""
        return not self._parts.isdisjoint(_sequences(words, self._PART, self._STEP)) and not (
            self._sequences.isdisjoint(_sequences(words, GRAM))
        )

    @classmethod
    def read(cls, paths: Iterable[Path]) -> EvaluationText:
        """That of files: data sets under their usual names, or plain text.

        Raises:
            DataError: a file is missing or damaged.
        """
        data = cls()
        for path in paths:
            before = len(data)
            for text in dict.fromkeys(_texts(path)):
                data.add(text)
            logger.info("%s: %d new sequences of %d words to avoid", path, len(data) - before, GRAM)
        return data


def _sequences(words: Sequence[bytes], length: int, step: int = 1) -> Iterator[int]:
    return map(hash, zip(*(words[start::step] for start in range(length)), strict=False))


def usual_test_files() -> list[Path]:
    """The test and validation files of the project's data sets in `$ELMO_TASKS_DATA`."""
    folder = Path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA_FOLDER))
    return [path for pattern in _TEST_DATA for path in sorted(folder.glob(pattern))]


def _texts(path: Path) -> Iterator[str]:
    for pattern, config in _TEST_DATA.items():
        if fnmatch.fnmatchcase("/".join(path.parts[-2:]), pattern):
            reader = pydantic.TypeAdapter(DatasetReaderConfig).validate_python(config).build()
            for example in reader.read(path):
                yield from map(" ".join, reader.task.texts(example))
            return
    yield from (line for _, line in read_lines(path))


def assemble(source: Source, clones: Path, folder: Path, seen: set[bytes], avoid: EvaluationText) -> Counts:
    """Writes a source's text to a file of its name.

    Arguments:
        seen: the hashes of the paragraphs of earlier sources; those of this one are added.
        avoid: the texts to test on.
    """
    counts, digest = Counts(source.name, source.licence), hashlib.sha256()
    with atomic_write(folder / f"{source.name}.txt") as output:
        for number, (path, content) in enumerate(files(source, clones), 1):
            counts.megabytes += len(content) / 1e6
            try:
                for document in documents(source, content):
                    kept = list(_kept(document, counts, seen, avoid))
                    if kept:
                        lines = "".join(f"{text}\n" for text in [*kept, ""]).encode()
                        output.write(lines)
                        digest.update(lines)
                        counts.documents += 1
            except (ValueError, SyntaxError, KeyError) as error:  # SyntaxError: XML
                raise DataError(path, f"is not a file in the format {source.format}: {error}") from None
            if number % 500 == 0:
                logger.info("%s: %d files, %d tokens", source.name, number, counts.tokens)
    counts.megabytes = round(counts.megabytes, 1)
    counts.sha256 = digest.hexdigest()
    return counts


def _kept(document: Iterable[str], counts: Counts, seen: set[bytes], avoid: EvaluationText) -> Iterator[str]:
    for paragraph in document:
        if not (cleaned := clean(paragraph)):
            continue
        text, words = cleaned
        key = hashlib.blake2b(text.encode(), digest_size=8).digest()
        if key in seen:
            counts.duplicates += 1
        elif avoid.shares(words):
            counts.dropped_for_test_data += 1
        else:
            seen.add(key)
            counts.paragraphs += 1
            counts.tokens += num_tokens(text, words)
            yield text


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the text and results.json are written")
    parser.add_argument("--list", type=Path, default=LIST, help="the list of sources (default: sources.json)")
    parser.add_argument("--sources", nargs="+", metavar="NAME", help="some of the sources (default: all)")
    parser.add_argument("--mirror", type=Path, help="the folder with the clones (default: FOLDER/clones)")
    parser.add_argument("--exclude", type=Path, nargs="*", metavar="FILE", help="text to test on: paragraphs that share"
                        f" {GRAM} words in a row with it are left out (default: that in $ELMO_TASKS_DATA)")  # fmt: skip
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    try:
        _run(options)
    except ElmoTasksError as error:
        sys.exit(f"error: {error}")


def _run(options: argparse.Namespace) -> None:
    sources = read_sources(options.list, options.sources)
    clones = options.mirror or options.folder / "clones"
    clones.mkdir(parents=True, exist_ok=True)
    avoid = EvaluationText.read(usual_test_files() if options.exclude is None else options.exclude)
    seen: set[bytes] = set()
    results: list[Counts] = []
    for source in sources:
        results.append(assemble(source, clones, options.folder, seen, avoid))
        logger.info("%s: %d tokens", source.name, results[-1].tokens)
        if source.sha256 and source.sha256 != results[-1].sha256:
            logger.warning("%s: not the text of sources.json; its sha256 was %s", source.name, source.sha256)
        write_json(options.folder / "results.json", [dataclasses.asdict(counts) for counts in results])
    header = [field.name.replace("_", " ") for field in dataclasses.fields(Counts)]
    print(markdown_table(header, (dataclasses.astuple(counts) for counts in results)))
    print(f"\n{sum(counts.tokens for counts in results):,} tokens")


if __name__ == "__main__":
    main()
