"""The sampled and the full softmax against their definitions, and the vocabulary that they predict."""

from pathlib import Path

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from elmo_tasks.errors import DataError
from elmo_tasks.extras.pretraining import softmax
from elmo_tasks.extras.pretraining.softmax import (
    Candidates,
    FullSoftmax,
    OutputVocabulary,
    SampledSoftmax,
    most_frequent,
    softmax_losses,
)

TOKENS, SIZE, WORDS = 7, 4, 30


@pytest.fixture(params=[1 << 22, 25], ids=["at once", "in pieces"])
def scores_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "_SCORES_AT_ONCE", request.param)


def draw_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(5)
    hidden = torch.randn(TOKENS, SIZE, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(WORDS, SIZE, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(WORDS, dtype=torch.float64, requires_grad=True)
    return hidden, torch.tensor([0, 3, 3, 29, 7, 1, 12]), weight, bias


def drawn(num_samples: int, num_words: int = WORDS) -> Candidates:
    candidates = SampledSoftmax(num_samples=num_samples).draw(num_words)
    assert candidates is not None
    return candidates


@pytest.mark.usefixtures("scores_at_once")
def test_full_softmax_is_the_cross_entropy() -> None:
    hidden, targets, weight, bias = draw_inputs()
    expected = functional.cross_entropy(hidden @ weight.t() + bias, targets, reduction="sum")
    [loss] = softmax_losses([hidden], [targets], weight, bias, FullSoftmax().draw(WORDS), torch.float64)
    variables = (hidden, weight, bias)
    torch.testing.assert_close(loss, expected)
    gradients, expected_gradients = (torch.autograd.grad(3.0 * each, variables) for each in (loss, expected))
    torch.testing.assert_close(gradients, expected_gradients)


@pytest.mark.usefixtures("scores_at_once")
def test_sampled_softmax_is_its_definition() -> None:
    hidden, targets, weight, bias = draw_inputs()
    words = torch.tensor([3, 4, 7, 20, 2, 0])  # three of them are targets of some token
    candidates = Candidates(words, drawn(6).log_expected.double())
    corrected = hidden @ weight.t() + bias - candidates.log_expected  # (N, V)
    losses = []
    for scores, target in zip(corrected, targets, strict=True):
        others = scores[words[words != target]]
        losses.append(torch.cat([scores[target][None], others]).logsumexp(dim=0) - scores[target])
    expected = torch.stack(losses).sum()
    [loss] = softmax_losses([hidden], [targets], weight, bias, candidates, torch.float64)
    variables = (hidden, weight, bias)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, variables), torch.autograd.grad(expected, variables))


@pytest.mark.parametrize("num_samples", [6, WORDS])
def test_without_gradients_the_losses_are_the_same_and_cost_a_third(num_samples: int) -> None:
    hidden, targets, weight, bias = draw_inputs()
    candidates = SampledSoftmax(num_samples=num_samples).draw(WORDS)
    losses, costs = [], []
    for with_gradients in (True, False):
        with torch.set_grad_enabled(with_gradients), FlopCounterMode(display=False) as counter:
            # As a model gives them: computed from its weights.
            [loss] = softmax_losses([hidden * 1.0], [targets], weight, bias, candidates, torch.float64)
        losses.append(loss.item())
        costs.append(counter.get_total_flops())
    assert losses[0] == losses[1]
    assert costs[0] == 3 * costs[1] > 0


@pytest.mark.parametrize("num_samples", [8, 25])  # nearly all words come after many tries
def test_drawn_words_are_distinct_and_as_frequent_as_stated(num_samples: int) -> None:
    torch.manual_seed(6)
    repeats, counts, expected = 2000, torch.zeros(WORDS), torch.zeros(WORDS)
    for _ in range(repeats):
        candidates = drawn(num_samples)
        assert len(candidates.words.unique()) == num_samples
        counts[candidates.words] += 1
        expected += candidates.log_expected.exp()
    assert counts[0] > 1.05 * counts[10] > 1.1 * counts[29] > 0
    # Binomial deviations are at most sqrt(0.25 / 2000) = 0.011; the formula itself is off by about as much.
    torch.testing.assert_close(counts / repeats, expected / repeats, atol=0.06, rtol=0.0)
    assert expected.sum() / repeats == pytest.approx(num_samples, rel=0.1)


def test_all_words_are_compared_where_more_would_be_drawn_than_there_are() -> None:
    assert SampledSoftmax(num_samples=WORDS).draw(WORDS) is None
    assert len(drawn(WORDS - 1).words.unique()) == WORDS - 1
    assert SampledSoftmax().draw(8192) is None
    assert len(drawn(8192, 8193).words) == 8192


@pytest.mark.parametrize(
    ("size", "min_count", "words"),
    [(None, 1, ["a", "b", "c"]), (5, 1, ["a", "b"]), (None, 2, ["a", "b"]), (4, 2, ["a"]), (3, 1, [])],
)
def test_the_most_frequent_words_and_the_special_ones_among_them(
    size: int | None, min_count: int, words: list[str]
) -> None:
    assert most_frequent(["a", "b", "c"], [3, 2, 1], size, min_count).words == ("<S>", "</S>", "<UNK>", *words)


def test_words_that_its_file_cannot_hold_are_unknown(tmp_path: Path) -> None:
    vocabulary = most_frequent(["a", "\n", "b\r", "\ufeff", "\ufeffa", "", "c\u2028"], range(7, 0, -1), None, 1)
    vocabulary.save(tmp_path / "words.txt")
    assert OutputVocabulary.load(tmp_path / "words.txt").words == ("<S>", "</S>", "<UNK>", "a", "c\u2028")
    OutputVocabulary([]).save(tmp_path / "words.txt")
    assert len(OutputVocabulary.load(tmp_path / "words.txt")) == 3


def test_a_vocabulary_goes_round_and_numbers_its_words(tmp_path: Path) -> None:
    vocabulary = OutputVocabulary(["the", "</S>", "mill"])
    assert vocabulary.numbers(["mill", "<S>", "boat", "</S>", "the"]) == [4, 0, 2, 1, 3]
    vocabulary.save(tmp_path / "words.txt")
    assert (tmp_path / "words.txt").read_text() == "<S>\n</S>\n<UNK>\nthe\nmill\n"
    loaded = OutputVocabulary.load(tmp_path / "words.txt")
    assert loaded.words == vocabulary.words
    assert loaded.fingerprint() == vocabulary.fingerprint() != OutputVocabulary(["mill", "the"]).fingerprint()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["<S>", "</S>", "the"], ":3: got 'the'; expected '<UNK>', as bilm-tf"),
        (["the"], ":1: got 'the'; expected '<S>', as bilm-tf"),
        (["<S>", "</S>"], ": got 2 lines; expected <S>, </S>, <UNK> and the words"),
        (["<S>", "</S>", "<UNK>", "the", "", "a"], ":5: is empty; expected one word per line"),
        (["<S>", "</S>", "<UNK>", "the", "a", "the"], ":6: 'the' is already on line 4; expected one word per line"),
        (["<S>", "</S>", "<UNK>", "<S>"], ":4: '<S>' is already on line 1"),
    ],
)
def test_files_that_are_not_vocabularies(lines: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataError) as caught:
        OutputVocabulary.load(tmp_path / "words.txt")
    assert f"words.txt{message}" in str(caught.value)
