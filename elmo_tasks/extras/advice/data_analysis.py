"""What the data of a config is like, what in it will hurt a training, and whether a training has learned anything."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import datasets
import numpy as np

from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.config.packaged import packaged_configs
from elmo_tasks.data_readers.reader import Notes
from elmo_tasks.errors import DataError, WeightsError, counted, some_of
from elmo_tasks.extras.advice.language import language_problem
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import TRAINING, Data
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.tagging import TAGS
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.tag_schemes import OUTSIDE
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.task_training import TaskAgenda
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)

# The kinds of warnings, the most important first.
KINDS = (
    "broken", "suspicious", "no_spans", "other_language", "unseen_labels", "same_texts", "few_steps",
    "few_vectors", "several_labels", "similar_labels", "no_labels", "one_label",
    "few_examples", "rare_labels", "long",
)  # fmt: skip
_FEW_STEPS = 200
_FEW_EXAMPLES, _RARE = 30, 5  # of held-out data; of a label in the training data
_SAME, _WITH_VECTOR, _ONE_LABEL = 1, 20, 90  # percentages
_MOST_IN_A_LOG = 3
_FEW_TO_READ = 5000  # examples
_LONG = 10  # times as long as 95 % of the examples


class DataWarning(NamedTuple):
    """What will hurt and what to do, in one line. `kind` is one of `KINDS`."""

    kind: str
    text: str


def analyse(config: ExperimentConfig) -> dict[str, Any]:
    """Reads the data of a config and reports on it. What does not follow the format is left out and reported.
    There are no copies that `augment` would add.

    Returns:
        the `parts`, see `_report`, by their names, and the `warnings`, the most important first; JSON can hold it.

    Raises:
        ElmoTasksError: a data set is missing, or nothing can be read.
    """
    config = config.model_copy(update={"augment": None})
    keys = ("dataset_reader", "validation_dataset_reader")
    readers = {key: reader.model_copy(update={"on_error": "skip"}) for key in keys if (reader := getattr(config, key))}
    notes = dict[str, list[Notes]]()
    try:
        data = Data.read(config, notes=notes)
    except MissingDataError:
        raise
    except DataError:
        notes.clear()
        data = Data.read(config.model_copy(update=readers), notes=notes)
    vocabulary, lengths = data.vocabulary(config), data.counts[TRAINING].batch_lengths
    loader = BatchLoader(config.data_loader, data.training, data.reader.task, vocabulary, lengths=lengths)
    parts = {name: _report(config, data, name, notes.get(name, [])) for name in data.parts}
    found = [
        *training_warnings(
            config, data, loader, TaskAgenda(loader, config.trainer, config.model.trained_by_steps).total
        )
    ]
    found += [*_contradictions(config, data), *_label_warnings(config, data, parts)]
    for name, part in parts.items():
        found += _part_warnings(config, name, part)
    found.sort(key=lambda warning: KINDS.index(warning.kind))
    return {"parts": parts, "warnings": [warning._asdict() for warning in found]}


def training_warnings(
    config: ExperimentConfig, data: Data, loader: BatchLoader, num_steps: int | None
) -> Iterator[DataWarning]:
    """What will hurt, as far as it is known at no cost before a training, in the order of `KINDS`.

    Arguments:
        loader: of the training data.
        num_steps: optimizer steps of the run; 0 for a model that is fitted without any; None for a run that starts
            from another, which needs fewer.
    """
    learned = data.counts[TRAINING].labels
    if set(learned.get(TAGS, ())) == {OUTSIDE}:
        text = f"all tags of the training data are {OUTSIDE!r}, so there is nothing to learn"
        yield DataWarning("no_spans", f"{text}; is it the right file, and the right column of tags?")
    with contextlib.suppress(WeightsError):  # `elmo-tasks data` does not need the biLM
        tokens = data.counts[TRAINING].tokens
        if (elmo := config.elmo()) and (problem := language_problem(elmo.files(local_only=True), tokens)):
            yield DataWarning("other_language", problem)
    for name in data.held_out:
        unseen = Counter(
            {
                f"{label!r} of the {namespace}": number
                for namespace, found in data.counts[name].labels.items()
                for label, number in found.items()
                if label not in learned.get(namespace, ())
            }
        )
        if unseen:
            shown = some_of([f"{label} ({counted(number, 'time')})" for label, number in unseen.most_common()], 10)
            text = f"labels of the {name} data that the training data lacks, so no model learns them: {shown}"
            yield DataWarning("unseen_labels", f"{text}; correct them, or add training examples with them")
    for name, examples in data.held_out.items():
        if 100 * (same := _same_texts(data, name)) >= _SAME * len(examples):
            text = f"{same:,} of {counted(len(examples), f'{name} example')} have the same texts as a training example"
            yield DataWarning("same_texts", f"{text}, which may raise the score; in your own data, remove them")
    if num_steps and num_steps < _FEW_STEPS:
        steps, examples = counted(num_steps, "optimizer step"), counted(len(data.training), "training example")
        text = f"only {steps} in all, for {examples}, and a model needs a few hundred to learn"
        yield DataWarning("few_steps", f"{text}; {_more_steps(config.trainer, loader)}")
    words = _words(config, data, TRAINING)
    lacking = _without_vector(config, words) or set()
    if 100 * (len(words) - len(lacking)) < _WITH_VECTOR * len(words):
        share = f"{len(words) - len(lacking)} of the {len(words)} words of the training data"
        text = (
            f"the file of word vectors has only {share}; is it the right file, in the language of the data? Words are"
        )
        yield DataWarning("few_vectors", f"{text} looked up as they are written, then in lower case")
    if alike := [" and ".join(map(repr, labels)) for labels in _same_looks(data) if len(labels) > 1]:
        text = f"labels that look the same, or differ only in case, spaces or zeros: {some_of(alike)}"
        yield DataWarning("similar_labels", f"{text}; write each of them in one way")
    if LABELS in data.reader.task.features and (number := sum(not labels for labels in data.training[LABELS])):
        text = f"{counted(number, 'training example has', 'training examples have')} no label, so the model learns"
        yield DataWarning("no_labels", f"{text} that none fits; leave out what nobody has labelled")


def _same_looks(data: Data) -> Iterable[Collection[str]]:
    """The labels of all parts, those that look the same together."""
    found = defaultdict[tuple[str, str], dict[str, None]](dict)
    for part in data.counts.values():
        for namespace, labels in part.labels.items():
            for label in labels:
                same = "".join(each for each in unicodedata.normalize("NFKC", label).casefold() if each.isprintable())
                same = re.sub(r"^0+(?=\d)|\.0+$", "", " ".join(same.split()))
                found[namespace, same][label] = None
    return found.values()


def check_before_training(
    config: ExperimentConfig, data: Data, loader: BatchLoader, num_steps: int | None
) -> Iterator[str]:
    """The most important warnings, for the log of a training; `elmo-tasks data` shows all.

    Only small data is read once more, to find examples with the same texts and other labels.
    """
    found = training_warnings(config, data, loader, num_steps)
    if len(data.training) <= _FEW_TO_READ:
        found = itertools.chain(found, _contradictions(config, data))
    for warning in itertools.islice(found, _MOST_IN_A_LOG):
        yield warning.text


def judge(
    scores: Mapping[str, float],
    task: Task,
    trainer: TrainerConfig,
    training: BatchLoader,
    validation: datasets.Dataset,
    num_steps: int,
) -> None:
    """Compares the best epoch with a model that has learned nothing, and warns if it is not better.

    Arguments:
        scores: those of the best epoch on the validation data.
        task: that of the model, which may score tags of its data's spans one by one.
        num_steps: the optimizer steps of the run.
    """
    metric = task.build_metric()
    score, floor = scores[metric.main], metric.floor(validation)
    result = f"validation {metric.main} {score:.2f} in the best epoch"
    if floor:
        result += f"; always giving the most frequent label has {floor:.2f}"
    if score > floor:
        logger.info("%s", result)
        return
    remedy = (
        "check that both files have the same kind of labels; more examples or steps, or another learning rate may help"
    )
    if 0 < num_steps < _FEW_STEPS:
        remedy = _more_steps(trainer, training)
    logger.warning("%s: the model has learned nothing useful; %s", result, remedy)


def _more_steps(trainer: TrainerConfig, training: BatchLoader) -> str:
    """What to change for more optimizer steps."""
    task = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(training.task).__name__).lower()
    config = f"; the config small/{task} is made for small data" if f"small/{task}" in packaged_configs() else ""
    size = training.config.batch_size
    batches = f"data_loader.batch_size (now {size})" if size else "data_loader.batch_tokens"
    return f"raise trainer.num_epochs (now {trainer.num_epochs}) or lower {batches}{config}"


def _report(config: ExperimentConfig, data: Data, name: str, notes: Sequence[Notes]) -> dict[str, Any]:
    """What the training, validation or test data is like.

    Arguments:
        notes: of the files that the data is from.
    """
    (reader, source), examples, counts = data.origin(config, name), data.parts[name], data.counts[name]
    lengths = np.array(counts.lengths)
    rows = np.argsort(-lengths, kind="stable")[:3].tolist()
    locations = reader.locations(source, (examples[row] for row in rows))
    longest = dict[str, int]()
    for location, row in zip(locations, rows, strict=True):  # of several in one place, such as a line, the longest
        longest.setdefault(location, int(lengths[row]))
    words = _words(config, data, name)
    without = _without_vector(config, words)
    scores = dict[str, float]()
    if "score" in reader.task.features:
        found = np.array(examples["score"][:])
        scores = {"lowest_score": found.min(), "mean_score": found.mean(), "highest_score": found.max()}
    return {
        "examples": len(examples),
        **{name: float(score) for name, score in scores.items()},
        "texts": counts.num_texts,  # sequences of tokens that the model reads, such as sentences; a pair has two
        "tokens": counts.tokens.total(),
        "distinct_tokens": len(counts.tokens),
        "mean_length": float(lengths.mean()),  # of an example, in tokens
        "length_of_95_percent": int(np.percentile(lengths, 95, method="inverted_cdf")),  # at most
        "longest_length": int(lengths.max()),
        "percent_of_tokens_not_in_training": _percentage(words, words.keys() - _words(config, data, TRAINING)),
        "percent_of_tokens_without_vector": None if without is None else _percentage(words, without),
        "examples_with_training_texts": 0 if name == TRAINING else _same_texts(data, name),
        "longest": longest,
        # For tags in a scheme, the tokens with each label.
        "labels": dict(Counter(label for each in examples for label in _labels(reader.task, each)).most_common()),
        "skipped": [error for each in notes for error in each.skipped],
        "left_out": [f"{each.source}: {text}" for each in notes for text in each.left_out],
        "warnings": [text for each in notes for text in each.warnings],
    }


def _words(config: ExperimentConfig, data: Data, part: str) -> Counter[str]:
    """How often a part has each word, in the form in which it is looked up."""
    words: Counter[str] = Counter()
    for token, number in data.counts[part].tokens.items():
        words[config.vocabulary.key(token)] += number
    return words


def _without_vector(config: ExperimentConfig, words: Iterable[str]) -> set[str] | None:
    """The words that the file of vectors lacks, also in lower case; None without a file."""
    if (vectors := config.model.embedder.word_vectors()) is None:
        return None
    known = set(vectors.words)
    return {word for word in words if word not in known and word.lower() not in known}


def _same_texts(data: Data, part: str) -> int:
    """The examples of a part whose texts are those of a training example."""
    known = set(data.counts[TRAINING].keys)
    return sum(key in known for key in data.counts[part].keys)


def _percentage(words: Mapping[str, int], some: set[str]) -> float:
    """The share of some words among all tokens."""
    return 100 * sum(words[word] for word in some) / max(1, sum(words.values()))


def _labels(task: Task, example: Example) -> Sequence[str]:
    """The labels of an example that a confusion table would compare, otherwise those of the vocabulary."""
    if type(task).compared_labels is not Task.compared_labels:
        return task.compared_labels(example)
    return [label for labels in task.labels(example).values() for label in labels]


def _contradictions(config: ExperimentConfig, data: Data) -> Iterator[DataWarning]:
    """Training examples with the same texts and other labels."""
    task, first = data.reader.task, dict[Hashable, tuple[str, ...]]()
    rows = []
    for row, (key, example) in enumerate(zip(data.counts[TRAINING].keys, data.training, strict=True)):
        labels = tuple(_labels(task, example))
        if labels != first.setdefault(key, labels):
            rows.append(row)
    if rows:
        location = data.reader.location(config.train_data_path, data.training[rows[0]])
        text = f"{counted(len(rows), 'training example')} with the same texts as an earlier one and other labels"
        yield DataWarning("several_labels", f"{text}, the first at {location}; correct the labels, or remove them")


def _label_warnings(config: ExperimentConfig, data: Data, parts: Mapping[str, dict[str, Any]]) -> Iterator[DataWarning]:
    training = parts[TRAINING]["labels"]
    metric = data.reader.task.build_metric()
    if (floor := metric.floor(data.training)) >= _ONE_LABEL:
        text = f"always giving the label {next(iter(training))!r} has {metric.main} {floor:.1f} on the training data"
        remedy = "data_loader.sampling=balanced draws rare labels as often"
        if not config.model.trained_by_steps:
            remedy = "model.class_weights=balanced makes rare labels count as much"
        yield DataWarning("one_label", f"{text}; {remedy}")
    if rare := [f"{label!r} ({number})" for label, number in training.items() if number < _RARE]:
        text = f"labels that the training data has fewer than {_RARE} times: {some_of(rare[::-1], 10)}"
        yield DataWarning("rare_labels", f"{text}; a model hardly learns them: add examples, or join labels")


def _part_warnings(config: ExperimentConfig, name: str, part: Mapping[str, Any]) -> Iterator[DataWarning]:
    if part["skipped"]:
        number, first = counted(len(part["skipped"]), "part does", "parts do"), part["skipped"][0]
        text = f"{name} data: {number} not follow the format, the first: {first}"
        yield DataWarning("broken", f"{text}. Correct what is wrong, or leave it out: dataset_reader.on_error=skip")
    for text in part["warnings"]:
        yield DataWarning("suspicious", text)
    if name != TRAINING and (count := part["examples"]) < _FEW_EXAMPLES:
        metric = config.model.task.build_metric().main
        each = f"each is {100 / count:.0f} points of an accuracy, so " if metric == "accuracy" else ""
        text = f"{counted(count, f'{name} example')}: {each}small differences of {metric} are chance"
        yield DataWarning("few_examples", f"{text}; hold out more, or train --folds 5")
    usual = part["length_of_95_percent"]
    location, longest = next(iter(part["longest"].items()))
    if config.data_loader.batch_tokens is None and longest > _LONG * usual:
        text = f"{location}: an example of {longest:,} tokens, where 95 % of the {name} data have at most {usual}"
        yield DataWarning("long", f"{text}, needs much memory; split it, or set data_loader.batch_tokens")
