from __future__ import annotations

import numpy as np
import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.pretraining.corpus import CorpusPart
from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.objective import StreamObjective
from elmo_tasks.pretraining.output_vocabulary import OutputVocabulary
from elmo_tasks.pretraining.softmax import FullSoftmax, SampledSoftmax, SoftmaxConfig
from elmo_tasks.pretraining.windows import SlotReader, TokenStreams, Window

TYPES = ["a", "b", "c", "d", "e"]


def make_objective(softmax: SoftmaxConfig, dtype: torch.dtype = torch.float32) -> StreamObjective:
    torch.manual_seed(3)
    return StreamObjective(LanguageModel.untrained(TINY_OPTIONS, OutputVocabulary(TYPES)), softmax, dtype)


def make_windows(steps: int = 3) -> list[Window]:
    """Windows of two streams of nine tokens: by default three, of three steps."""
    tokens = np.array([0, 1, 2, 3, 4, 3, 2, 1, 0, 4, 2, 0, 1, 3, 4], dtype=np.uint32)
    part = CorpusPart(tokens, np.array([0, 8, 12, 15]), np.array([0, 1, 3]))
    streams = TokenStreams(SlotReader(part, TYPES, OutputVocabulary(TYPES), 50), batch_size=2, steps=steps, seed=1)
    return list(streams.windows(0))


def test_each_window_begins_with_the_states_after_the_one_before() -> None:
    objective, windows = make_objective(FullSoftmax()), make_windows()
    assert len(windows) == 3
    zeros = objective.model.initial_states(2)
    states = zeros
    for number, window in enumerate(windows):
        expected = objective.model(window, states)
        assert objective(window).equal(expected.mean)
        assert expected.mean.equal(objective.model(window, zeros).mean) == (number == 0)
        states = expected.states


def test_windows_of_any_length_have_the_same_losses() -> None:
    """The states go through all of them; only gradients end at the borders of windows."""
    found = {}
    for steps in (1, 3, 9):
        objective, windows = make_objective(FullSoftmax()), make_windows(steps)
        assert [window.inputs.shape for window in windows] == [(2, steps, 2)] * (9 // steps)
        losses = [objective(window) for window in windows]
        found[steps] = torch.stack(losses).mean().item()
        losses[-1].backward()
        assert all(parameter.grad is not None for parameter in objective.model.parameters())
    assert found[1] == pytest.approx(found[9], abs=1e-6)
    assert found[3] == pytest.approx(found[9], abs=1e-6)


def test_targets_are_compared_with_candidates_that_are_drawn_for_each_window() -> None:
    softmax = SampledSoftmax(num_samples=2)
    objective, window = make_objective(softmax), make_windows()[0]
    torch.manual_seed(5)
    found = objective(window)
    torch.manual_seed(5)
    candidates = softmax.draw(8)
    expected = objective.model(window, objective.model.initial_states(2), candidates)
    assert found.equal(expected.mean)
    assert not found.equal(objective.model(window, objective.model.initial_states(2)).mean)


def test_what_is_carried_into_the_next_step_goes_round() -> None:
    first, second, _ = make_windows()
    objective = make_objective(FullSoftmax())
    objective(first)
    other = make_objective(FullSoftmax(), torch.bfloat16)
    other.load_state(objective.state())
    assert other.dtype == torch.float32
    assert other(second).equal(objective(second))
    with pytest.raises(TypeError, match="nn is not a type of numbers"):
        other.load_state({"dtype": "nn", "states": None})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("softmax", [FullSoftmax(), SampledSoftmax(num_samples=2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recorded_steps_on_a_gpu_are_those_that_are_not_recorded(softmax: SoftmaxConfig, dtype: torch.dtype) -> None:
    found = []
    for records in (False, True):
        objective = StreamObjective(make_objective(softmax).cuda().model, softmax, dtype, records=records)
        torch.manual_seed(5)
        losses = []
        for window in make_windows():
            objective.zero_grad()
            loss = objective(window.to("cuda"))
            loss.backward()
            losses.append(loss.detach())
        found.append((losses, [parameter.grad for parameter in objective.parameters()], objective.states))
    torch.testing.assert_close(*found)
