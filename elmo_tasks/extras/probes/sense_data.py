"""Sense-annotated text in the format of Raganato et al. (2017), and the senses of WordNet.

Source: the unified evaluation framework for word sense disambiguation (Raganato, Camacho-Collados and Navigli 2017).
An XML file has sentences of `<wf>` (plain words) and `<instance id lemma pos>` (annotated ones); a key file has the
senses of each instance: its id and one or more sense keys of WordNet 3.0 in a line. The first part of an id of the
evaluation data, up to the dot, names its data set.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from elmo_tasks.errors import DataError
from elmo_tasks.extras.probes.span_vectors import TokenSpan
from elmo_tasks.files.paths import stored_file
from elmo_tasks.files.text import DAMAGE_ERRORS, open_binary, read_lines

# The type in a sense key (lemma%type:...); 5 are satellite adjectives, which are numbered with the other adjectives.
_PARTS_OF_SPEECH = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}


class Word(NamedTuple):
    """What has senses: a lemma in lower case, with underscores for spaces, and NOUN, VERB, ADJ or ADV."""

    lemma: str
    part_of_speech: str


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """An annotated word of a sentence, which may be several tokens, and the sense keys that are right."""

    id: str
    word: Word
    span: TokenSpan
    senses: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SenseSentence:
    """A sentence and its annotated words."""

    tokens: tuple[str, ...]
    instances: tuple[Instance, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SenseData:
    """Everything that the sense probe needs."""

    training: Sequence[SenseSentence]
    evaluation: Sequence[SenseSentence]
    inventory: Mapping[Word, Sequence[str]]  # the senses of a word in the order of WordNet, the first sense first


def read_sense_data(folder: str | Path) -> SenseData:
    """Reads `semcor/semcor.data.xml`, `evaluation/ALL/ALL.data.xml`, their `.gold.key.txt` and `wordnet30/index.sense`.

    Arguments:
        folder: the folder with the files, plain or compressed.

    Raises:
        DataError: a file is missing or does not follow its format; file and line are named.
    """
    folder = Path(folder)
    return SenseData(
        read_sense_sentences(*(folder / "semcor" / f"semcor.{end}" for end in ("data.xml", "gold.key.txt"))),
        read_sense_sentences(*(folder / "evaluation/ALL" / f"ALL.{end}" for end in ("data.xml", "gold.key.txt"))),
        read_inventory(folder / "wordnet30" / "index.sense"),
    )


def read_sense_sentences(data: Path, gold: Path) -> list[SenseSentence]:
    """The sentences of an XML file, with the senses of its key file.

    Raises:
        DataError: one of them does not follow the format, or the key file lacks an instance.
    """
    data, gold = stored_file(data), stored_file(gold)
    senses = {}
    for number, line in read_lines(gold):
        name, *keys = line.split()
        if not keys:
            raise DataError(gold, f"{line[:80]!r}; expected an id and its sense keys, separated by spaces", number)
        senses[name] = tuple(keys)
    return list(_sentences(data, gold, senses))


def read_inventory(path: Path) -> dict[Word, list[str]]:
    """The senses of all words of WordNet's `index.sense`: a sense key, an offset, the sense's number, its frequency.

    Raises:
        DataError: a line does not follow the format.
    """
    numbered: dict[Word, list[tuple[int, str]]] = collections.defaultdict(list)
    for line_number, line in read_lines(path):
        fields = line.split()
        lemma, _, rest = fields[0].partition("%") if len(fields) == 4 else ("", "", "")
        if rest[:1] not in _PARTS_OF_SPEECH or not fields[2].isdecimal():
            problem = f"{line[:80]!r}; expected a sense key, an offset, the number of the sense and its frequency"
            raise DataError(path, problem, line_number)
        numbered[Word(lemma, _PARTS_OF_SPEECH[rest[0]])].append((int(fields[2]), fields[0]))
    return {word: [key for _, key in sorted(senses)] for word, senses in numbered.items()}


def _sentences(data: Path, gold: Path, senses: Mapping[str, tuple[str, ...]]) -> Iterator[SenseSentence]:
    try:
        with open_binary(data) as stream:
            for _, element in ElementTree.iterparse(stream):
                if element.tag == "sentence":
                    yield _sentence(element, data, gold, senses)
                    element.clear()  # what is read is not kept in memory
    except ElementTree.ParseError as error:
        raise DataError(data, f"not well-formed XML ({error})", error.position[0]) from None
    except DAMAGE_ERRORS as error:
        raise DataError(data, f"the archive is damaged or cut short ({error})") from None


def _sentence(
    element: ElementTree.Element, data: Path, gold: Path, senses: Mapping[str, tuple[str, ...]]
) -> SenseSentence:
    tokens: list[str] = []
    instances = []
    for child in element:
        words = (child.text or "").split()  # an instance may be several words
        if child.tag == "instance":
            name, lemma, part_of_speech = (child.get(key) for key in ("id", "lemma", "pos"))
            if not (name and lemma and part_of_speech and words):
                where = f"the sentence {element.get('id')!r}"
                raise DataError(data, f"an instance of {where} lacks its id, lemma, pos or text: {child.attrib}")
            if name not in senses:
                raise DataError(gold, f"no senses of the instance {name!r} of {data}")
            span = (len(tokens), len(tokens) + len(words) - 1)
            instances.append(Instance(name, Word(lemma.lower(), part_of_speech), span, senses[name]))
        tokens += words
    return SenseSentence(tuple(tokens), tuple(instances))
