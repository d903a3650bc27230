import dataclasses
import itertools
import os
from collections import Counter
from typing import Any

import datasets
import pydantic
import pytest
import torch

from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.data_readers.sources import features_of
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.tasks import Coreference, Reading
from elmo_tasks.tasks.classification import Classification
from elmo_tasks.tasks.tagging import Tagging
from elmo_tasks.text.vocabulary import Counts, VocabularyConfig
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.data_splits import Fold, TrainShare

TASK = Tagging("BIOUL")
LENGTHS = [3, 9, 1, 4, 4, 7, 2, 30, 5, 6, 1, 8, 3]
DATA = datasets.Dataset.from_list(
    [{"tokens": [f"w{n}"] * n, "tags": ["O"] * n, "document": 0, "sentence": row} for row, n in enumerate(LENGTHS)],
    features=features_of(TASK.features),
)
VOCABULARY = VocabularyConfig().build(Counts.of(TASK, DATA), [])


def loader(rank: int = 0, num_processes: int = 1, seed: int = 1, **limits: Any) -> BatchLoader:
    config = DataLoaderConfig(**limits)
    return BatchLoader(config, DATA, TASK, VOCABULARY, seed=seed, rank=rank, num_processes=num_processes)


@pytest.mark.parametrize("limits", [{"batch_size": 4}, {"batch_tokens": 20}, {"batch_size": 3, "batch_tokens": 12}])
def test_every_row_once_and_no_batch_over_a_limit(limits: dict[str, int]) -> None:
    plan = loader(**limits).plan(0)
    assert sorted(row for batch in plan for row in batch) == list(range(len(LENGTHS)))
    for batch in plan:
        assert len(batch) <= limits.get("batch_size", 99)
        padded = len(batch) * max(LENGTHS[row] for row in batch)
        assert padded <= limits.get("batch_tokens", 999) or len(batch) == 1


@pytest.mark.parametrize("sampling", [None, "balanced"])
def test_plan_depends_only_on_seed_and_epoch(sampling: str | None) -> None:
    given: dict[str, Any] = {"batch_size": 4, "sampling": sampling}
    assert loader(**given).plan(2) == loader(**given).plan(2)
    assert loader(**given).plan(2) != loader(**given).plan(3)
    assert loader(**given).plan(2) != loader(**given, seed=2).plan(2)
    assert loader(**given, rank=1, num_processes=2).plan(2) == loader(**given).plan(2)


@pytest.mark.parametrize(
    ("task", "field", "labels"),
    [
        (Classification(), "label", {"good": 30, "bad": 8, "odd": 2}),
        (TASK, "tags", {("U-PER", "O"): 30, ("O", "O"): 8, ("U-ORG", "U-PER"): 2}),
    ],
)
def test_a_balanced_sample_has_each_label_as_often(task: Any, field: str, labels: dict[Any, int]) -> None:
    """A sentence counts for the rarest kind of tag: the third one for ORG, the second for O, the first for PER."""
    gold = [label if field == "label" else list(label) for label, count in labels.items() for _ in range(count)]
    other = {"document": 0, "sentence": 0} if field == "tags" else {}
    data = datasets.Dataset.from_list(
        [{"tokens": ["a", "b"], field: label, **other} for label in gold], features=features_of(task.features)
    )
    vocabulary = VocabularyConfig().build(Counts.of(task, data), [])
    balanced = BatchLoader(DataLoaderConfig(batch_size=4, sampling="balanced"), data, task, vocabulary)
    drawn = Counter(str(gold[row]) for epoch in range(50) for batch in balanced.plan(epoch) for row in batch)
    assert drawn.total() == 50 * 40
    assert [drawn[str(label if field == "label" else list(label))] / 2000 for label in labels] == pytest.approx(
        [1 / 3] * 3, abs=0.03
    )


@pytest.mark.parametrize("min_batches", [1, 4, 5, 9])
def test_a_small_data_set_is_read_several_times_in_an_epoch(min_batches: int) -> None:
    once = loader(batch_size=4)  # 4 batches
    often = loader(batch_size=4, min_batches=min_batches)
    passes = -(-min_batches // 4)
    assert often.num_steps(0) == len(list(often.steps(0))) == 4 * passes >= min_batches
    epochs = [batch for epoch in range(2) for batch in often.plan(epoch)]
    assert epochs == [batch for number in range(2 * passes) for batch in once.plan(number)]  # no pass is repeated


def test_batches_are_not_in_the_order_of_their_lengths() -> None:
    starts = [[LENGTHS[batch[0]] for batch in loader(batch_size=2, seed=seed).plan(0)] for seed in range(5)]
    assert any(sorted(each) not in (each, each[::-1]) for each in starts)


@pytest.mark.parametrize(("noise", "lowest", "highest"), [(0.0, 0, 1), (0.2, 1.01, 1.2 / 0.8)])
def test_batches_hold_sentences_of_like_length_but_for_noise(noise: float, lowest: float, highest: float) -> None:
    ratios = []
    for epoch in range(20):
        plan = loader(batch_size=4, padding_noise=noise).plan(epoch)
        spans = sorted((min(LENGTHS[row] for row in batch), max(LENGTHS[row] for row in batch)) for batch in plan)
        ratios += [earlier[1] / later[0] for earlier, later in itertools.pairwise(spans)]
    assert lowest <= max(ratios) <= highest


def test_without_shuffling_longest_first_in_every_epoch() -> None:
    plan = loader(batch_size=5, shuffle=False).plan(0)
    order = [LENGTHS[row] for batch in plan for row in batch]
    assert order == sorted(LENGTHS, reverse=True)
    assert plan == loader(batch_size=5, shuffle=False).plan(7)


def test_without_shuffling_batches_are_as_large_as_their_tokens_allow() -> None:
    plan = loader(batch_tokens=20, shuffle=False).plan(0)
    assert [[LENGTHS[row] for row in batch] for batch in plan] == [[30], [9, 8], [7, 6], [5, 4, 4, 3], [3, 2, 1, 1]]
    assert plan == loader(batch_tokens=20, shuffle=False, padding_noise=0.9).plan(3)


@pytest.mark.parametrize("num_processes", [1, 2, 3])
@pytest.mark.parametrize("batches_per_step", [1, 2])
def test_weighted_shares_are_the_mean_over_the_step(num_processes: int, batches_per_step: int) -> None:
    loaders = [loader(rank, num_processes, batch_size=5) for rank in range(num_processes)]  # three batches
    plan = loaders[0].plan(0)
    for index, parts in enumerate(zip(*(each.steps(0, batches_per_step) for each in loaders), strict=True)):
        rows = [row for batch in plan[index * batches_per_step : (index + 1) * batches_per_step] for row in batch]
        # The mean over processes of weight x the share's mean is the mean over the step's examples.
        total = 0.0
        for share in parts:
            for batch, weight in share:
                assert weight > 0 or len(batch) == 1  # the work of a process that has no part
                total += weight * sum(len(example["tokens"]) for example in batch.examples) / len(batch)
        assert total / num_processes == pytest.approx(sum(LENGTHS[row] for row in rows) / len(rows))
        assert len({len(share) for share in parts}) == 1
    assert loaders[0].num_steps(0, batches_per_step) == index + 1


@pytest.mark.parametrize("batches_per_step", [1, 2])
def test_an_epoch_can_begin_at_any_step(batches_per_step: int) -> None:
    whole = list(loader(batch_size=3).steps(1, batches_per_step))
    for first in range(len(whole) + 1):
        rest = list(loader(batch_size=3).steps(1, batches_per_step, first=first))
        assert [share[0][0].examples for share in whole[first:]] == [share[0][0].examples for share in rest]


def test_evaluation_sees_each_example_in_one_process_and_processes_yield_equally_often() -> None:
    yielded = [list(loader(rank, 3, batch_size=5, shuffle=False).once()) for rank in range(3)]
    assert {len(batches) for batches in yielded} == {3}
    seen = [row for batches in yielded for rows, _ in batches for row in rows]
    assert sorted(seen) == list(range(len(LENGTHS)))
    for rows, batch in itertools.chain.from_iterable(yielded):
        assert rows == ([example["sentence"] for example in batch.examples] if batch else [])
    # The last batch has three rows; of two, the third process has none.
    last = [list(loader(rank, 3, batch_size=11, shuffle=False).once())[-1] for rank in range(3)]
    assert [len(rows) for rows, _ in last] == [1, 1, 0]
    assert last[2][1] is None


def test_evaluation_has_the_batches_of_the_first_epoch_also_where_they_are_shuffled() -> None:
    shuffled = loader(batch_size=4)
    assert [rows for rows, _ in shuffled.once()] == shuffled.plan(0) != shuffled.plan(1)


def test_preparing_batches_does_not_touch_the_generator_of_dropout() -> None:
    before = torch.get_rng_state()
    assert list(loader(batch_size=4).steps(0))
    assert torch.get_rng_state().equal(before)


class TaskOfProcesses(Tagging):
    """Its batches have the number of the process that prepares them in place of their examples' tags."""

    def collate(self, examples: Any, vocabulary: Any) -> Any:
        batch: Any = super().collate(examples, vocabulary)
        return dataclasses.replace(batch, tags=os.getpid())


def test_workers_prepare_the_same_batches_and_by_default_the_training_process() -> None:
    def batches(**settings: Any) -> list[Any]:
        config = DataLoaderConfig(batch_size=4, **settings)
        return [each for ((each, _),) in BatchLoader(config, DATA, TaskOfProcesses("BIOUL"), VOCABULARY).steps(0)]

    alone, helped = batches(), batches(num_workers=1)
    assert {batch.tags for batch in alone} == {os.getpid()}
    assert os.getpid() not in {batch.tags for batch in helped}
    assert [batch.examples for batch in alone] == [batch.examples for batch in helped]
    assert all(one.tokens.words.equal(other.tokens.words) for one, other in zip(alone, helped, strict=True))


def test_no_limit_and_a_sample_in_a_fixed_order_are_errors() -> None:
    with pytest.raises(ValueError, match="got neither"):
        DataLoaderConfig()
    with pytest.raises(ValueError, match="draws new examples each epoch; expected shuffle: true"):
        DataLoaderConfig(batch_size=4, sampling="balanced", shuffle=False)


UNCHECKED = Tagging(None)


def data(positions: list[tuple[int, int | None]], documents: list[int | None] | None = None) -> datasets.Dataset:
    """Sentences of one word, its row; each begins at a position (file and line) and is from a document."""
    rows = [
        {
            "tokens": [str(row)],
            "tags": ["X"],
            "document": documents[row] if documents else None,
            "sentence": None,
            "file": file,
            "line": line,
        }
        for row, (file, line) in enumerate(positions)
    ]
    return datasets.Dataset.from_list(rows, features=features_of({**UNCHECKED.features, **PLACE_FEATURES}))


def rows(part: datasets.Dataset) -> list[int]:
    return [int(each["tokens"][0]) for each in part]


LINES = data([(0, line) for line in range(1000)])


def test_a_smaller_share_lies_within_a_larger_one_in_the_order_of_the_file() -> None:
    shares = (0.001, 0.01, 0.1, 0.35, 1.0)
    taken = [rows(TrainShare(share=share).take(LINES)) for share in shares]
    assert [len(part) for part in taken] == [1, 10, 100, 350, 1000]
    for smaller, larger in itertools.pairwise(taken):
        assert set(smaller) <= set(larger)
        assert larger == sorted(larger)


def test_sample_and_folds_depend_on_their_seed_which_is_1_by_default() -> None:
    one, again, other = (rows(TrainShare(share=0.1, **seed).take(LINES)) for seed in ({}, {"seed": 1}, {"seed": 2}))
    assert one == again != other
    assert 20 < sum(row < 500 for row in one) < 80  # from all of the file
    few = data([(0, line) for line in range(30)])
    folds = [Fold(number=1, of=3, **seed).split(few, few, UNCHECKED)[1] for seed in ({}, {"seed": 1}, {"seed": 2})]
    assert rows(folds[0]) == rows(folds[1]) != rows(folds[2])


def test_what_begins_in_the_same_line_stays_together() -> None:
    phrases = data([(file, line) for file in range(2) for line in range(10) for _ in range(5)])
    for share in (0.05, 0.5):
        taken = rows(TrainShare(share=share).take(phrases))
        assert len(taken) == 100 * share
        assert {row // 5 * 5 + number for row in taken for number in range(5)} == set(taken)
    unplaced = data([(0, None)] * 10)  # each example is a unit of its own
    assert len(rows(TrainShare(share=0.3).take(unplaced))) == 3


def test_folds_are_a_partition_and_whole_documents() -> None:
    documents: list[int | None] = [row // 4 for row in range(40)]
    whole = data([(0, row) for row in range(40)], documents)
    held_out = []
    for number in (1, 2, 3):
        training, fold = Fold(number=number, of=3).split(whole, whole, UNCHECKED)
        assert sorted(rows(training) + rows(fold)) == list(range(40))
        assert {documents[row] for row in rows(training)}.isdisjoint(documents[row] for row in rows(fold))
        assert len(rows(fold)) in (12, 16)
        held_out += rows(fold)
    assert sorted(held_out) == list(range(40))


def test_as_many_documents_as_folds_stay_whole() -> None:
    whole = data([(0, row) for row in range(12)], [row // 4 for row in range(12)])
    folds = [rows(Fold(number=number, of=3).split(whole, whole, UNCHECKED)[1]) for number in (1, 2, 3)]
    assert sorted(folds) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize("documents", [None, [0] * 12], ids=["unknown", "only one"])
def test_without_enough_documents_examples_are_split(documents: list[int | None] | None) -> None:
    whole = data([(0, row // 2) for row in range(12)], documents)
    _, fold = Fold(number=2, of=3).split(whole, whole, UNCHECKED)
    assert len(fold) == 4
    assert {row // 2 * 2 for row in rows(fold)} | {row // 2 * 2 + 1 for row in rows(fold)} == set(rows(fold))


def test_the_held_out_part_may_be_read_in_another_way() -> None:
    phrases, sentences = data([(0, row // 5) for row in range(50)]), data([(0, row) for row in range(10)])
    training, fold = Fold(number=1, of=2).split(phrases, sentences, UNCHECKED)
    assert len(fold) == 5
    assert {row // 5 for row in rows(training)} == set(range(10)) - set(rows(fold))


def test_what_a_document_is() -> None:
    example: dict[str, Any] = {"document": "wb/1", "passage": "A text."}
    assert Coreference().document(example) == "wb/1"
    assert Reading().document(example) == "A text."
    assert UNCHECKED.document({"tokens": ["a"]}) is None


def test_mistakes() -> None:
    with pytest.raises(pydantic.ValidationError, match="there is no fold 4 of 3; expected a number from 1 to 3"):
        Fold(number=4, of=3)
    few = data([(0, 1), (0, 2)])
    with pytest.raises(ElmoTasksError, match="2 examples to split; expected at least 3"):
        Fold(number=1, of=3).split(few, few, UNCHECKED)
