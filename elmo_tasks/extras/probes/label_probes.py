"""What linear classifiers read off a biLM's vectors: the labels of tokens or of spans, layer by layer.

Source: Peters et al. 2018, section 5.3 and table 6 (tokens), after Belinkov et al. 2017; edge probing, Tenney et al.
2019 (spans); control tasks, Hewitt and Liang 2019.

# N items (labelled tokens, spans or pairs of spans), D features of an item
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import random
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.data_readers import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.probes.span_vectors import TokenSpan, row_names, sources, span_vectors
from elmo_tasks.modules.word_vectors import WordVectorFile
from elmo_tasks.tasks import SemanticRoles, Tagging
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.tag_schemes import spans_of_tags

logger = logging.getLogger(__name__)

# On the development set of UD-EWT, layer 1 has 92.1 % after 50 and 92.3 % after 100, in 27 seconds. Stochastic gradient
# descent (SGDClassifier, 5 epochs) has 87.9 % after 37 seconds.
_MAX_ITERATIONS = 100
_PREDICATE = "V"


@dataclasses.dataclass(frozen=True)
class LabelledSentence:
    """A sentence and its items. An item is one span, of one token or more, or several, and their label."""

    tokens: tuple[str, ...]
    items: list[tuple[TokenSpan, ...]] = dataclasses.field(default_factory=list)
    labels: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class ProbeRow:
    """The accuracies of two classifiers, in percent: of the labels, and of the control task.

    Attributes:
        vectors: what the classifiers read: a layer, the mean of the layers, or word vectors.
        accuracy: of the labels.
        control: of random labels, the same for all items with the same words.
        selectivity: accuracy minus control: what is not explained by the classifier's memory for words.
    """

    vectors: str
    accuracy: float
    control: float
    selectivity: float


@dataclasses.dataclass(frozen=True)
class LabelProbe:
    """What `probe_labels` measured.

    Attributes:
        labels: the number of different labels in the training data.
        training_items, test_items: the number of labelled tokens or spans.
        most_frequent: the accuracy of always choosing the most frequent label, in percent.
        rows: each layer, the mean of the layers, and the word vectors.
    """

    labels: int
    training_items: int
    test_items: int
    most_frequent: float
    rows: Sequence[ProbeRow]


def labelled_sentences(reader: DatasetReader, source: Source) -> list[LabelledSentence]:
    """The items of a data set: tokens with tags, spans, or pairs of a predicate and a span with its role.

    Items of the same sentence are put together, so that its vectors are computed once.

    Arguments:
        reader: a reader of tagging or semantic roles. If its tags are of spans, the items are the spans.
        source: see `DatasetReader.read`.

    Raises:
        ElmoTasksError: the reader is for another task, or as `DatasetReader.read`.
    """
    task = reader.task
    if not isinstance(task, (Tagging, SemanticRoles)):
        kinds = (Tagging(), SemanticRoles())
        known = DatasetReaderConfig.choices().items()
        fitting = [name for name, each in known if any(map(each.can_read, kinds))]
        raise ElmoTasksError(
            f"the reader makes {task.summary}; expected labels of tokens, spans or roles: {', '.join(fitting)}"
        )
    sentences: dict[tuple[str, ...], LabelledSentence] = {}
    for example in reader.read(source):
        tokens = tuple(example["tokens"])
        sentence = sentences.setdefault(tokens, LabelledSentence(tokens))
        for spans, label in _items(example, task):
            sentence.items.append(spans)
            sentence.labels.append(label)
    return list(sentences.values())


def split_sentences(
    sentences: Sequence[LabelledSentence], seed: int
) -> tuple[list[LabelledSentence], list[LabelledSentence]]:
    """A random fifth of different sentences for testing, and the others for training: (training, test).

    Raises:
        ElmoTasksError: there are fewer than five.
    """
    if len(sentences) < 5:
        raise ElmoTasksError(f"{len(sentences)} different sentence(s); expected at least 5, or a separate test file")
    shuffled = random.Random(seed).sample(sentences, len(sentences))
    cut = len(sentences) // 5
    return shuffled[cut:], shuffled[:cut]


def probe_labels(
    bilm: LayerSource,
    training: Sequence[LabelledSentence],
    test: Sequence[LabelledSentence],
    *,
    vectors: WordVectorFile | None = None,
    seed: int = 0,
) -> LabelProbe:
    """Trains linear classifiers on the vectors of each layer and on those of words, and tests them.

    The classifier is scikit-learn's logistic regression, on features that are scaled to a variance of 1. The vectors of
    all items are in memory.

    Arguments:
        test: a label that is not in the training data counts as wrong.
        vectors: word vectors to compare with.
        seed: draws the labels of the control task.

    Raises:
        ElmoTasksError: the training data has fewer than two labels, or there is nothing to test on.
    """
    from sklearn.preprocessing import StandardScaler

    labels, test_labels = _labels(training), _labels(test)
    num_test = len(test_labels)
    if len(set(labels)) < 2 or num_test == 0:
        raise ElmoTasksError(
            f"{len(set(labels))} label(s) to learn, {num_test} item(s) to test on; expected at least two and one"
        )
    [(most_frequent, _)] = collections.Counter(labels).most_common(1)
    control = _control_labels(training, test, seed)
    rows = []
    sentences = [sentence.tokens for part in (training, test) for sentence in part]
    for source, name in sources(bilm, vectors, sentences):
        (every, learned), (every_test, tested) = (_item_vectors(source, part) for part in (training, test))
        for row, features, test_features in zip(row_names(name, len(every)), every, every_test, strict=True):
            begin = time.monotonic()
            scaler = StandardScaler(copy=False).fit(features)
            features, test_features = scaler.transform(features), scaler.transform(test_features)
            accuracy, random_accuracy = (
                _accuracy(features, _labels(learned, each), test_features, _labels(tested, each))
                for each in (None, control)
            )
            logger.info("%s: %.2f %% in %.1f s", row, accuracy, time.monotonic() - begin)
            rows.append(ProbeRow(row, accuracy, random_accuracy, accuracy - random_accuracy))
    hits = test_labels.count(most_frequent)
    return LabelProbe(len(set(labels)), len(labels), num_test, 100.0 * hits / num_test, rows)


def _items(example: Example, task: Tagging | SemanticRoles) -> Iterator[tuple[tuple[TokenSpan, ...], str]]:
    if isinstance(task, SemanticRoles):
        predicate = (example["predicate"], example["predicate"])
        for label, start, end in spans_of_tags(example["tags"]):
            if label != _PREDICATE:
                yield (predicate, (start, end)), label
    elif task.tag_scheme is None or task.single_tokens:
        yield from ((((index, index),), tag) for index, tag in enumerate(example["tags"]))
    else:
        yield from ((((start, end),), label) for label, start, end in spans_of_tags(example["tags"]))


_Type = tuple[tuple[str, ...], ...]  # the words of an item's spans


def _types(sentence: LabelledSentence) -> list[_Type]:
    return [tuple(sentence.tokens[first : last + 1] for first, last in spans) for spans in sentence.items]


def _control_labels(
    training: Sequence[LabelledSentence], test: Sequence[LabelledSentence], seed: int
) -> dict[_Type, str]:
    """A random label for each type, drawn from the labels of the training data as often as they occur there."""
    types = sorted({each for part in (training, test) for sentence in part for each in _types(sentence)})
    labels = np.random.default_rng(seed).choice(np.array(_labels(training)), size=len(types))
    return dict(zip(types, labels.tolist(), strict=True))


def _labels(sentences: Sequence[LabelledSentence], control: dict[_Type, str] | None = None) -> list[str]:
    """The label of each item, or that of the control task."""
    if control is None:
        return [label for sentence in sentences for label in sentence.labels]
    return [control[each] for sentence in sentences for each in _types(sentence)]


def _item_vectors(
    source: LayerSource, sentences: Sequence[LabelledSentence]
) -> tuple[NDArray[np.float32], list[LabelledSentence]]:
    """The vectors of all items, (R, N, D), and the sentences in their order."""
    spans = [[span for item in sentence.items for span in item] for sentence in sentences]
    found = list(span_vectors(source, [sentence.tokens for sentence in sentences], spans))
    order = [sentences[number] for number, _ in found]
    vectors = np.concatenate([each for _, each in found], axis=1)  # of spans, of which an item may have several
    return vectors.reshape(len(vectors), len(_labels(order)), -1), order


def _accuracy(
    training: NDArray[np.float32], labels: Sequence[str], test: NDArray[np.float32], test_labels: Sequence[str]
) -> float:
    """The accuracy of a linear classifier, in percent."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(set(labels)) == 1:  # of a control task with few words; scikit-learn wants two
        return 100.0 * float(np.mean(np.array(test_labels) == labels[0]))
    classifier = LogisticRegression(max_iter=_MAX_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(training, labels)
    logger.debug("%d iterations", classifier.n_iter_.max())
    return 100.0 * float(classifier.score(test, test_labels))
