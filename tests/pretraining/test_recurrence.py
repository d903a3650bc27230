"""The training recurrence against autograd through the plain LSTM."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from elmo_tasks.elmo.lstm import LstmState, ProjectedLstm
from elmo_tasks.elmo.options import LstmOptions
from elmo_tasks.pretraining.recurrence import run_layer

STEPS, ROWS, SIZE, CELLS = 5, 3, 4, 6


def make_lstm(options: LstmOptions, seed: int) -> ProjectedLstm:
    torch.manual_seed(seed)
    lstm = ProjectedLstm(options).double()
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.normal_(0.0, 0.7)
    return lstm


def make_state(size: int, cells: int) -> LstmState:
    return 0.3 * torch.randn(ROWS, size, dtype=torch.float64), 0.3 * torch.randn(ROWS, cells, dtype=torch.float64)


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
    lstms = make_lstm(options, 1), make_lstm(options, 2)
    inputs = [torch.randn(STEPS, ROWS, SIZE, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    states = [make_state(SIZE, options.dim) for _ in range(2)]
    variables = [*inputs, *(parameter for lstm in lstms for parameter in lstm.parameters())]

    expected, expected_states = zip(
        *(run_plainly(*each) for each in zip(lstms, inputs, states, strict=True)), strict=True
    )
    outputs, after = run_layer(lstms, (inputs[0], inputs[1]), (states[0], states[1]), torch.float64)
    if options.proj_clip is not None and options.has_projection:
        assert any((output.abs() == options.proj_clip).any() for output in outputs), "the clip must bite"
    torch.testing.assert_close(list(after), list(expected_states))
    assert_same(outputs, expected, variables)
    with torch.no_grad():
        evaluated, after = run_layer(lstms, (inputs[0], inputs[1]), (states[0], states[1]), torch.float64)
    torch.testing.assert_close(evaluated, outputs, rtol=0, atol=0)
    torch.testing.assert_close(list(after), list(expected_states))


def test_a_reset_row_starts_from_zero_and_lets_no_gradient_through() -> None:
    options = LstmOptions(dim=CELLS, projection_dim=SIZE, n_layers=1, cell_clip=0.4, proj_clip=0.5)
    lstms = make_lstm(options, 1), make_lstm(options, 2)
    inputs = [torch.randn(STEPS, ROWS, SIZE, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    states = [make_state(SIZE, CELLS) for _ in range(2)]
    reset_at, reset_row = 2, 1
    resets = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    resets[reset_at, reset_row] = True
    variables = [*inputs, *(parameter for lstm in lstms for parameter in lstm.parameters())]

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
    outputs, _ = run_layer(lstms, (inputs[0], inputs[1]), (states[0], states[1]), torch.float64, resets)
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
