"""The training recurrence against autograd through the plain LSTM, and the losses of windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.lstm import LstmState, ProjectedLstm
from elmo_tasks.elmo.options import LstmOptions
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.pretraining.pretrain import StreamObjective
from elmo_tasks.extras.pretraining.recurrence import run_layer
from elmo_tasks.extras.pretraining.softmax import FullSoftmax, OutputVocabulary, SampledSoftmax, SoftmaxConfig
from elmo_tasks.extras.pretraining.windows import SlotReader, TokenStreams, Window

STEPS, ROWS, SIZE, CELLS = 5, 3, 4, 6


def make_lstm(options: LstmOptions, seed: int) -> ProjectedLstm:
    torch.manual_seed(seed)
    lstm = ProjectedLstm(options).double()
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.normal_(0.0, 0.7)
    return lstm


def make_layer(
    options: LstmOptions,
) -> tuple[tuple[ProjectedLstm, ProjectedLstm], tuple[Tensor, Tensor], tuple[LstmState, LstmState], list[Tensor]]:
    """The LSTMs of both directions, what they read, where they start, and what has gradients."""
    lstms = make_lstm(options, 1), make_lstm(options, 2)
    one, other = (torch.randn(STEPS, ROWS, SIZE, dtype=torch.float64, requires_grad=True) for _ in range(2))
    sizes = (SIZE, options.dim, SIZE, options.dim)
    hidden, cells, *rest = (0.3 * torch.randn(ROWS, size, dtype=torch.float64) for size in sizes)
    variables = [one, other, *(parameter for lstm in lstms for parameter in lstm.parameters())]
    return lstms, (one, other), ((hidden, cells), (rest[0], rest[1])), variables


def assert_same(outputs: Sequence[Tensor], expected: Sequence[Tensor], variables: Sequence[Tensor]) -> None:
    """In values and in gradients."""
    torch.testing.assert_close(list(outputs), list(expected))
    factors = [torch.randn_like(each) for each in expected]
    gradients, expected_gradients = (
        torch.autograd.grad(list(each), variables, factors) for each in (outputs, expected)
    )
    torch.testing.assert_close(gradients, expected_gradients)


def run_plainly(lstm: ProjectedLstm, inputs: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
    packed, after = lstm(inputs.flatten(0, 1), [ROWS] * STEPS, state)
    return packed.view(STEPS, ROWS, -1), after


@pytest.mark.parametrize(
    "options",
    [
        LstmOptions(dim=CELLS, projection_dim=SIZE, n_layers=1, cell_clip=0.4, proj_clip=0.5),
        LstmOptions(dim=CELLS, projection_dim=SIZE, n_layers=1),
        LstmOptions(dim=SIZE, projection_dim=SIZE, n_layers=1, cell_clip=0.4, proj_clip=0.5),
    ],
    ids=["clips", "no clips", "no projection"],
)
def test_outputs_states_and_gradients_equal_the_plain_layers(options: LstmOptions) -> None:
    lstms, inputs, states, variables = make_layer(options)
    expected, expected_states = zip(
        *(run_plainly(*each) for each in zip(lstms, inputs, states, strict=True)), strict=True
    )
    outputs, after = run_layer(lstms, inputs, states, torch.float64)
    if options.proj_clip is not None and options.has_projection:
        assert any((output.abs() == options.proj_clip).any() for output in outputs), "the clip must bite"
    torch.testing.assert_close(list(after), list(expected_states))
    assert_same(outputs, expected, variables)
    with torch.no_grad():
        evaluated, after = run_layer(lstms, inputs, states, torch.float64)
    torch.testing.assert_close(evaluated, outputs, rtol=0, atol=0)
    torch.testing.assert_close(list(after), list(expected_states))


def test_a_reset_row_starts_from_zero_and_lets_no_gradient_through() -> None:
    options = LstmOptions(dim=CELLS, projection_dim=SIZE, n_layers=1, cell_clip=0.4, proj_clip=0.5)
    lstms, inputs, states, variables = make_layer(options)
    reset_at, reset_row = 2, 1
    resets = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    resets[reset_at, reset_row] = True

    expected = []
    for lstm, read, (hidden, cells) in zip(lstms, inputs, states, strict=True):
        rows = []
        for row in range(ROWS):
            pieces = [(0, reset_at), (reset_at, STEPS)] if row == reset_row else [(0, STEPS)]
            chunks, state = [], (hidden[row : row + 1], cells[row : row + 1])
            for start, end in pieces:
                state = lstm.initial_state(1) if start else state
                output, state = lstm(read[start:end, row], [1] * (end - start), state)
                chunks.append(output)
            rows.append(torch.cat(chunks))
        expected.append(torch.stack(rows, dim=1))
    outputs, _ = run_layer(lstms, inputs, states, torch.float64, resets)
    assert_same(outputs, expected, variables)


def test_bfloat16_products_are_near_the_exact_ones() -> None:
    options = LstmOptions(dim=64, projection_dim=SIZE, n_layers=1, cell_clip=3.0, proj_clip=3.0)
    torch.manual_seed(3)
    lstms = ProjectedLstm(options), ProjectedLstm(options)
    inputs = torch.randn(STEPS, ROWS, SIZE), torch.randn(STEPS, ROWS, SIZE)
    states = lstms[0].initial_state(ROWS), lstms[1].initial_state(ROWS)
    exact, _ = run_layer(lstms, inputs, states, torch.float32)
    rounded, _ = run_layer(lstms, inputs, states, torch.bfloat16)
    for expected, got in zip(exact, rounded, strict=True):
        assert got.dtype == torch.float32
        assert 0 < (got - expected).norm() < 0.02 * expected.norm()


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


def mean_loss(model: LanguageModel, window: Window, *arguments: Any) -> tuple[Tensor, Any]:
    """The loss of one target, and the states after the window."""
    forward, backward, states = model(window, *arguments)
    return (forward + backward) / window.targets.numel(), states


def test_each_window_begins_with_the_states_after_the_one_before() -> None:
    objective, windows = make_objective(FullSoftmax()), make_windows()
    assert len(windows) == 3
    zeros = objective.model.initial_states(2)
    states = zeros
    for number, window in enumerate(windows):
        expected, states = mean_loss(objective.model, window, states)
        assert objective(window).equal(expected)
        assert expected.equal(mean_loss(objective.model, window, zeros)[0]) == (number == 0)


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
    zeros = objective.model.initial_states(2)
    assert found.equal(mean_loss(objective.model, window, zeros, candidates)[0])
    assert not found.equal(mean_loss(objective.model, window, zeros)[0])


def test_what_is_carried_into_the_next_step_goes_round() -> None:
    first, second, _ = make_windows()
    objective = make_objective(FullSoftmax())
    objective(first)
    other = make_objective(FullSoftmax(), torch.bfloat16)
    other.load_state(objective.state())
    assert other.dtype == torch.float32
    assert other(second).equal(objective(second))


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
