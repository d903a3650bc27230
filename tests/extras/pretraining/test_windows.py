"""What the streams read and predict, against the definition of a bidirectional language model."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from elmo_tasks.elmo.characters import tokens_to_ids
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining import windows
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary
from elmo_tasks.extras.pretraining.tokenize_files import number_tokens
from elmo_tasks.extras.pretraining.windows import NO_TARGET, SlotReader, TokenStreams, Window, sentence_windows

DOCUMENTS = [
    [["the", "dog", "barked"], ["it", "slept"]],
    [["rain"]],
    [["a", "storm", "came", "up"], ["the", "dog", "hid"], ["it", "rained"]],
]
VOCABULARY = OutputVocabulary(["the", "dog", "it", "a"])


def make_reader() -> SlotReader:
    text = number_tokens(itertools.chain(*DOCUMENTS))
    part = dataclasses.replace(CorpusPart.of(text), documents=np.cumsum([0, *map(len, DOCUMENTS)]))
    return SlotReader(part, text.types, VOCABULARY, 50)


def expected_slots(sentences: list[list[str]]) -> list[tuple[str, str, str, str]]:
    """What the forward direction reads and predicts in each slot, and the backward one."""
    slots = []
    for tokens in sentences:
        forward, backward = ["<S>", *tokens, "</S>"], ["</S>", *tokens[::-1], "<S>"]
        slots += list(zip(forward[:-1], forward[1:], backward[:-1], backward[1:], strict=True))
    return slots


def known(word: str) -> str:
    return word if word in VOCABULARY.words else "<UNK>"


def texts(window: Window) -> dict[bytes, str]:
    """The words that rows of characters stand for."""
    words = {token for document in DOCUMENTS for sentence in document for token in sentence} | {"<S>", "</S>"}
    return {tokens_to_ids([word]).numpy().tobytes(): word for word in words}


def read_column(window: Window, column: int) -> list[tuple[str, str, str, str]]:
    words = texts(window)
    rows = [words[characters.numpy().tobytes()] for characters in window.words.character_ids]
    read = [[rows[row] for row in inputs[:, column].tolist()] for inputs in window.inputs]
    predicted = [[VOCABULARY.words[word] for word in targets[:, column].tolist()] for targets in window.targets]
    return list(zip(read[0], predicted[0], read[1], predicted[1], strict=True))


def test_slots_are_both_directions_of_each_sentence() -> None:
    reader = make_reader()
    slots = expected_slots([sentence for document in DOCUMENTS for sentence in document])
    assert reader.num_slots == len(slots)
    window = reader.read(np.arange(reader.num_slots)[:, None])
    assert read_column(window, 0) == [(a, known(b), c, known(d)) for a, b, c, d in slots]
    assert len(window.words.lengths) == len({word for slot in slots for word in (slot[0], slot[2])})


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_rows_are_pieces_of_the_documents_in_their_order_of_the_epoch(epoch: int) -> None:
    reader = make_reader()
    streams = TokenStreams(reader, batch_size=2, steps=3, seed=1)
    windows = list(streams.windows(epoch))
    assert len(windows) == streams.windows_per_epoch == reader.num_slots // 6
    length = streams.windows_per_epoch * 3
    pieces = [[slot for window in windows for slot in read_column(window, row)] for row in range(2)]
    orders = []
    for order in np.array(np.meshgrid(*[range(3)] * 3)).T.reshape(-1, 3):
        if len(set(order)) == 3:
            slots = expected_slots([sentence for number in order for sentence in DOCUMENTS[number]])
            orders.append([(a, known(b), c, known(d)) for a, b, c, d in slots])
    assert any(order[:length] == pieces[0] and order[length : 2 * length] == pieces[1] for order in orders)


def test_epochs_differ_and_repeat() -> None:
    streams = TokenStreams(make_reader(), batch_size=1, steps=3, seed=1)
    epochs = [[read_column(window, 0) for window in streams.windows(epoch)] for epoch in range(6)]
    assert any(epoch != epochs[0] for epoch in epochs[1:])
    assert epochs[3] == [read_column(window, 0) for window in streams.windows(3)]
    assert epochs[3][2:] == [read_column(window, 0) for window in streams.windows(3, first=2)]


def test_processes_share_the_rows() -> None:
    whole = TokenStreams(make_reader(), batch_size=4, steps=2, seed=2)
    halves = [TokenStreams(make_reader(), 4, 2, 2, process=(index, 2)) for index in range(2)]
    for window, *parts in zip(whole.windows(0), *(half.windows(0) for half in halves), strict=True):
        columns = [read_column(window, row) for row in range(4)]
        assert columns == [read_column(part, row) for part in parts for row in range(2)]


def test_processes_prepare_the_same_windows() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    streams = TokenStreams(make_reader(), batch_size=2, steps=3, seed=1)
    expected, found = list(streams.windows(1, first=1)), list(streams.windows(1, first=1, num_workers=1))
    assert [read_column(window, 0) for window in found] == [read_column(window, 0) for window in expected]
    assert torch.get_rng_state().equal(before)


def test_resets_are_only_at_beginnings_of_sentences() -> None:
    reader = make_reader()
    every = TokenStreams(reader, batch_size=2, steps=3, seed=1, reset_share=1.0)
    none = TokenStreams(reader, batch_size=2, steps=3, seed=1)
    some = TokenStreams(reader, batch_size=2, steps=3, seed=1, reset_share=0.5)
    counts = np.zeros(2)
    for epoch in range(20):
        for all_reset, never, sometimes in zip(*(each.windows(epoch) for each in (every, none, some)), strict=True):
            begins = [[slot[0] == "<S>" for slot in read_column(all_reset, row)] for row in range(2)]
            assert all_reset.resets.t().tolist() == begins
            assert not never.resets.any()
            assert not (sometimes.resets & ~all_reset.resets).any()
            counts += sometimes.resets.sum().item(), all_reset.resets.sum().item()
    assert 0.3 < counts[0] / counts[1] < 0.7


def test_sentence_windows_hold_every_sentence_once_and_padding_without_targets() -> None:
    reader = make_reader()
    found = []
    for window in sentence_windows(reader, max_slots=9):
        steps, rows = window.targets[0].shape
        assert steps * rows <= 9 or rows == 1
        for row in range(rows):
            length = int((window.targets[0][:, row] != NO_TARGET).sum())
            assert torch.equal(window.targets[0] == NO_TARGET, window.targets[1] == NO_TARGET)
            found.append(tuple(slot[0] for slot in read_column(window, row)[:length]))
    sentences = [("<S>", *sentence) for document in DOCUMENTS for sentence in document]
    assert sorted(found) == sorted(sentences)


def test_beginning_is_cut_at_a_sentence() -> None:
    reader = make_reader().beginning(6)
    assert reader.num_slots == 3 + 2 + 1 + 3
    assert [len(window.targets[0]) for window in sentence_windows(reader, 1)] == [2, 3, 4]
    assert make_reader().beginning(1).num_slots == 4


@pytest.mark.parametrize("tokens_at_once", [3, 1 << 20])
def test_targets_are_counted(tokens_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_TOKENS_AT_ONCE", tokens_at_once)
    counts = make_reader().count_targets(len(VOCABULARY))
    assert dict(zip(VOCABULARY.words, counts.tolist(), strict=True)) == {
        "<S>": 0, "</S>": 6, "<UNK>": 8, "the": 2, "dog": 2, "it": 2, "a": 1,
    }  # fmt: skip


def test_a_token_that_is_written_as_the_end_of_a_sentence_counts_as_one() -> None:
    text = number_tokens([["</S>", "the"], ["</S>"]])
    reader = SlotReader(CorpusPart.of(text), text.types, VOCABULARY, 50)
    assert reader.count_targets(len(VOCABULARY))[1] == 4


def test_too_little_text_is_an_error() -> None:
    with pytest.raises(ElmoTasksError, match=r"has 21 tokens.*batch_size x unroll_steps = 11 x 2"):
        TokenStreams(make_reader(), batch_size=11, steps=2, seed=0)
    assert TokenStreams(make_reader(), batch_size=7, steps=3, seed=0).windows_per_epoch == 1
