"""What the sample data of all tasks share: names for each split, and files and texts that a seed decides."""

from __future__ import annotations

import dataclasses
import lzma
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.sample_data.names import make_names

SPLITS = ("train", "dev", "test")
_CONLL_2012_SPLITS = ("train", "development", "test")


@dataclasses.dataclass(frozen=True)
class SampleTask:
    """Writes the files of a task. The development and test files have other names than the training file.

    Arguments:
        files: for each split its files, below the folder of all data. They have the same lines.
        lines: the lines of a split's files, from its names, the number of sentences, a random number generator and the
            name of its first file.
        text: tokenized sentences without labels, from the names of all splits and a random number generator.
        num_texts: how many times `text` is called for the text that word vectors are made from.
        seed_prefix: begins the names of the random seeds, which differ between tasks.
        split_seed: the name of a split's seed, with `{split}` or `{file}`.
        num_names: the number of names of each split.
    """

    files: Sequence[Sequence[str]]
    lines: Callable[[Sequence[str], int, random.Random, str], Iterable[str]]
    text: Callable[[Sequence[str], random.Random], Iterable[list[str]]]
    num_texts: int
    seed_prefix: str
    split_seed: str
    num_names: Sequence[int] = (200, 50, 50)

    def write(self, folder: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
        """Writes the files of all splits with about this many sentences each, and returns their paths."""
        return [write_text(folder / file, text) for file, text in self.texts(seed, sentences)]

    def texts(self, seed: int, sentences: tuple[int, int, int]) -> Iterator[tuple[str, str]]:
        """The files of all splits, below the folder of all data, and their texts."""
        for split, files, names, count in zip(SPLITS, self.files, self._names(seed), sentences, strict=False):
            file = Path(files[0]).name
            generator = random.Random(f"{seed} {self.split_seed.format(split=split, file=file)}")
            text = join_lines(self.lines(names, count, generator, file))
            yield from ((each, text) for each in files)

    def corpus(self, seed: int) -> Iterator[list[str]]:
        """Sentences without labels, with the names of all files. Word vectors are made from them."""
        names = [name for of_split in self._names(seed) for name in of_split]
        generator = random.Random(f"{seed} {self.seed_prefix}corpus")
        for _ in range(self.num_texts):
            yield from self.text(names, generator)

    def _names(self, seed: int) -> list[list[str]]:
        return make_names(random.Random(f"{seed} {self.seed_prefix}names"), self.num_names)


def files_of_splits(*templates: str) -> list[list[str]]:
    """The files of each split. Only the training file gets the suffix `.xz` in place of `{xz}`."""
    return [
        [template.format(split=split, conll_2012=name, xz=".xz" if split == "train" else "") for template in templates]
        for split, name in zip(SPLITS, _CONLL_2012_SPLITS, strict=True)
    ]


def join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def write_text(path: Path, text: str) -> Path:
    """Writes a text to a UTF-8 file, atomically, and returns its path. Files that end in `.xz` are compressed."""
    content = text.encode()
    with atomic_write(path) as stream:
        stream.write(lzma.compress(content) if path.suffix == ".xz" else content)
    return path
