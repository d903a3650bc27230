"""What the sample data of all tasks share: names for each split, synonyms, and files and texts that a seed decides."""

from __future__ import annotations

import dataclasses
import lzma
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.sample_data.names import make_names

SPLITS = ("train", "dev", "test")
_CONLL_2012_SPLITS = ("train", "development", "test")
_WORD = re.compile(r"\w+")
_SHARE_OF_SYNONYMS = 0.8


@dataclasses.dataclass(frozen=True)
class SampleTask:
    """Makes the files of a task. The development and test files have other names than the training file.

    They may also have other words, `synonyms`, which the word vectors do not know either. A model without ELMo can only
    guess them from their context and spelling, while a biLM has read them in other text.

    Arguments:
        files: for each split its files, below the folder of all data. They have the same lines.
        lines: the lines of a split's files, from its names, the number of sentences, a random number generator and the
            name of its first file.
        text: tokenized sentences without labels, from the names of all splits and a random number generator.
        num_texts: how many times `text` is called for the text that word vectors are made from.
        seed_prefix: begins the names of the random seeds, which differ between tasks.
        split_seed: the name of a split's seed, with `{split}` or `{file}`.
        num_names: the number of names of each split.
        synonyms: for words of the training file, those that take their place in most lines of the other files.
            A word is replaced everywhere in a line, or nowhere.
    """

    files: Sequence[Sequence[str]]
    lines: Callable[[Sequence[str], int, random.Random, str], Iterable[str]]
    text: Callable[[Sequence[str], random.Random], Iterable[list[str]]]
    num_texts: int
    seed_prefix: str
    split_seed: str
    num_names: Sequence[int] = (200, 50, 50)
    synonyms: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def texts(self, seed: int, sentences: tuple[int, int, int]) -> Iterator[tuple[str, str]]:
        """The files of all splits, below the folder of all data, and their texts with about this many sentences."""
        for split, files, names, count in zip(SPLITS, self.files, self._names(seed), sentences, strict=False):
            file = Path(files[0]).name
            name = f"{seed} {self.split_seed.format(split=split, file=file)}"
            lines = self.lines(names, count, random.Random(name), file)
            if split != "train":
                generator = random.Random(f"{name} synonyms")
                lines = [self._with_synonyms(line, generator) for line in lines]
            text = join_lines(lines)
            yield from ((each, text) for each in files)

    def corpus(self, seed: int) -> Iterator[list[str]]:
        """Sentences without labels, with the names of all files. Word vectors are made from them."""
        names = [name for of_split in self._names(seed) for name in of_split]
        generator = random.Random(f"{seed} {self.seed_prefix}corpus")
        for _ in range(self.num_texts):
            yield from self.text(names, generator)

    def _with_synonyms(self, line: str, generator: random.Random) -> str:
        words = set(_WORD.findall(line))
        chosen = {
            word: generator.choice(synonyms)
            for word, synonyms in self.synonyms.items()
            if word in words and generator.random() < _SHARE_OF_SYNONYMS
        }
        return _WORD.sub(lambda match: chosen.get(match[0], match[0]), line)

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
