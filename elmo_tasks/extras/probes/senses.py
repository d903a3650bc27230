"""Word sense disambiguation with a biLM's vectors: the nearest mean vector of a sense.

Source: Peters et al. 2018, section 5.3 and table 5, after Melamud et al. 2016; scores as the Scorer of Raganato et al.
2017 computes them.

The data are in the format of the unified evaluation framework for word sense disambiguation (Raganato,
Camacho-Collados and Navigli 2017). An XML file has sentences of `<wf>` (plain words) and `<instance id lemma pos>`
(annotated ones); a key file has the senses of each instance: its id and one or more sense keys of WordNet 3.0 in a
line. The first part of an id of the evaluation data, up to the dot, names its data set.

# R rows: the layers and their mean, or word vectors; S senses, D features
"""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.errors import DataError, ElmoTasksError, counted
from elmo_tasks.extras.probes.span_vectors import TokenSpan, row_names, sources, span_vectors
from elmo_tasks.files.paths import stored_file
from elmo_tasks.files.text import DAMAGE_ERRORS, open_binary, read_lines
from elmo_tasks.modules.word_vectors import WordVectorFile

logger = logging.getLogger(__name__)

ALL_SETS = "ALL"
# Table 5 of the paper leaves out the development set of Raganato et al. 2017 (EMNLP).
_DEVELOPMENT_SET = "semeval2007"
PAPER_SETS = f"ALL but {_DEVELOPMENT_SET}"
# Senses whose words have the same forms in training differ on the token layer only by rounding.
_TOLERANCE = 1e-6
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


@dataclasses.dataclass(frozen=True)
class SenseProbe:
    """What `probe_senses` measured.

    Groups of instances are the data sets; `ALL but semeval2007`, the four sets whose F1 is in table 5 of the paper;
    `ALL`; and parts of speech.

    Attributes:
        instances: how many instances each group has.
        f1: by row and group, in percent. The rows are `first sense` (of WordNet), `most frequent sense` (in the
            training data), each layer, the mean of the layers, and the word vectors.
    """

    instances: Mapping[str, int]
    f1: Mapping[str, Mapping[str, float]]


def probe_senses(bilm: LayerSource, data: SenseData, *, vectors: WordVectorFile | None = None) -> SenseProbe:
    """Disambiguates words by the nearest mean vector of a sense, with the vectors of each layer.

    A sense's vector is the mean of the vectors of its instances in the training data; that of several tokens is their
    mean. An instance gets the sense of its lemma and part of speech whose vector has the largest cosine with its own,
    the one that WordNet has first if several have. A word that the training data lacks gets its first sense.

    Memory grows with the senses of the words to disambiguate, not with the training data. `vectors` are compared with.

    Raises:
        ElmoTasksError: the training data has none of the words.
    """
    instances = [instance for sentence in data.evaluation for instance in sentence.instances]
    training = _only_of(data.training, {instance.word for instance in instances})
    counts = collections.Counter(
        (instance.word, sense) for sentence in training for instance in sentence.instances for sense in instance.senses
    )
    if not counts:
        raise ElmoTasksError("the training data has none of the words to disambiguate; is it in the same language?")
    known = _known_senses(counts, data.inventory)
    first = {word: senses[0] for word, senses in data.inventory.items()}
    fallback = {each.id: first[each.word] for each in instances if each.word in first}
    frequent = {
        word: max((counts[word, sense], -index, sense) for index, sense in enumerate(senses))[2]
        for word, senses in known.items()
    }
    rows = {
        "first sense": fallback,
        "most frequent sense": fallback | {each.id: frequent[each.word] for each in instances if each.word in frequent},
    }
    tokens = [sentence.tokens for sentence in (*training, *data.evaluation)]
    for source, name in sources(bilm, vectors, tokens):
        logger.info("%s: %s", name, counted(len(tokens), "sentence"))
        means = _sense_means(source, training, counts)
        found = _nearest(source, data.evaluation, known, means)
        rows |= {row: {**fallback, **answers} for row, answers in zip(row_names(name, len(found)), found, strict=True)}
    groups = _groups(instances)
    gold = {name: {each.id: each.senses for each in members} for name, members in groups.items()}
    return SenseProbe(
        instances={name: len(members) for name, members in groups.items()},
        f1={row: {name: f1_of_senses(gold[name], answers) for name in groups} for row, answers in rows.items()},
    )


def f1_of_senses(gold: Mapping[str, Collection[str]], answers: Mapping[str, str]) -> float:
    """F1 in percent, as the Scorer of Raganato et al. (2017) computes it: any of the gold senses is right.

    Arguments:
        gold: the right senses of each instance.
        answers: a sense for each instance, or for some of them.
    """
    right = sum(answers.get(name) in senses for name, senses in gold.items())
    return 200.0 * right / (sum(name in answers for name in gold) + len(gold))


def nearest_sense(vectors: NDArray[np.float32], means: NDArray[np.float64]) -> NDArray[np.int64]:
    """The sense whose mean has the largest cosine with the vector: (R, D), (S, R, D) -> (R,).

    The first of several that are equal up to rounding; 0 for a vector of zeros.
    """
    norms = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(means, axis=-1)  # (S, R)
    cosines = np.einsum("rd,srd->sr", vectors, means) / np.where(norms > 0, norms, 1.0)
    return np.argmax(cosines >= cosines.max(axis=0) - _TOLERANCE, axis=0)


def _only_of(sentences: Sequence[SenseSentence], words: Collection[Word]) -> list[SenseSentence]:
    """The sentences with instances of these words, without the instances of others."""
    kept = (
        dataclasses.replace(each, instances=tuple(instance for instance in each.instances if instance.word in words))
        for each in sentences
    )
    return [each for each in kept if each.instances]


def _known_senses(
    counts: Mapping[tuple[Word, str], int], inventory: Mapping[Word, Sequence[str]]
) -> dict[Word, list[str]]:
    """The senses of each word in the training data, in the order of WordNet; others after them."""
    found: dict[Word, set[str]] = collections.defaultdict(set)
    for word, sense in counts:
        found[word].add(sense)
    known = {}
    for word, senses in found.items():
        ordered = [sense for sense in inventory.get(word, ()) if sense in senses]
        known[word] = [*ordered, *sorted(senses.difference(ordered))]
    return known


def _sense_means(
    source: LayerSource, sentences: Sequence[SenseSentence], counts: Mapping[tuple[Word, str], int]
) -> dict[tuple[Word, str], NDArray[np.float64]]:
    """The mean vector of each sense of each word, (R, D)."""
    sums: dict[tuple[Word, str], NDArray[np.float64]] = {}
    for instance, vectors in _instance_vectors(source, sentences):
        for sense in instance.senses:
            key, vector = (instance.word, sense), vectors.astype(np.float64)
            sums[key] = sums[key] + vector if key in sums else vector
    return {key: total / counts[key] for key, total in sums.items()}


def _nearest(
    source: LayerSource,
    sentences: Sequence[SenseSentence],
    known: Mapping[Word, Sequence[str]],
    means: Mapping[tuple[Word, str], NDArray[np.float64]],
) -> list[dict[str, str]]:
    """The answers of each row for the instances whose words are known."""
    answers: list[dict[str, str]] = []
    for instance, vectors in _instance_vectors(source, _only_of(sentences, known.keys())):
        answers = answers or [{} for _ in vectors]
        senses = known[instance.word]
        nearest = nearest_sense(vectors, np.stack([means[instance.word, sense] for sense in senses]))
        for row, sense in zip(answers, nearest, strict=True):
            row[instance.id] = senses[sense]
    return answers


def _instance_vectors(
    source: LayerSource, sentences: Sequence[SenseSentence]
) -> Iterator[tuple[Instance, NDArray[np.float32]]]:
    """The instances of sentences, each with its vectors: (R, D)."""
    spans = [[instance.span for instance in sentence.instances] for sentence in sentences]
    for number, vectors in span_vectors(source, [each.tokens for each in sentences], spans):
        for index, instance in enumerate(sentences[number].instances):
            yield instance, vectors[:, index]


def _groups(instances: Sequence[Instance]) -> dict[str, list[Instance]]:
    """The instances of each group that has a score; see `SenseProbe`."""
    sets: dict[str, list[Instance]] = collections.defaultdict(list)
    parts: dict[str, list[Instance]] = collections.defaultdict(list)
    for instance in instances:
        sets[instance.id.partition(".")[0]].append(instance)
        parts[instance.word.part_of_speech].append(instance)
    if _DEVELOPMENT_SET in sets:
        others = [each for name, members in sets.items() if name != _DEVELOPMENT_SET for each in members]
        sets |= {PAPER_SETS: others} if others else {}
    return {**sets, ALL_SETS: list(instances), **dict(sorted(parts.items()))}


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
