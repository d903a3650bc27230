"""The loss that pretraining minimizes, and the states that its streams carry from window to window."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
from accelerate.utils import recursively_apply, send_to_device
from torch import Tensor, nn

from elmo_tasks.extras.pretraining.language_model import LanguageModel, LayerStates
from elmo_tasks.extras.pretraining.softmax import Candidates, SoftmaxConfig
from elmo_tasks.extras.pretraining.windows import Window
from elmo_tasks.training.trainer import Objective


class StreamObjective(Objective):
    """The mean loss of a window's targets, in nats; each window begins with the states after the last one.

    Windows have no padding, and all of them the same shape.

    Arguments:
        dtype: of the products' factors.
        records: whether to record the largest part of a step as CUDA graphs, which start its thousand kernels at once.
    """

    def __init__(
        self, model: LanguageModel, softmax: SoftmaxConfig, dtype: torch.dtype, *, records: bool = False
    ) -> None:
        super().__init__(model)
        self.dtype = dtype
        self.states: LayerStates | None = None  # of this process's streams; None: zeros
        self._softmax = softmax
        self._records = records
        self._losses: Callable[..., tuple[Tensor, Tensor, LayerStates]] | None = None

    def forward(self, window: Window) -> Tensor:
        states = self.model.initial_states(window.inputs.shape[2]) if self.states is None else self.states
        drawn = self._softmax.draw(len(self.model.vocabulary), self.model.softmax_bias.device)
        candidates = (drawn.words, drawn.log_expected) if drawn else ()
        arguments = self.model.vectors(window, self.dtype), window.targets, window.resets, states, *candidates
        if self._losses is None:
            losses = _Losses(self.model, self.dtype)
            # As a function: a module would become a part of this one.
            self._losses = (_recorded(losses, arguments) if self._records else losses).__call__
        forward, backward, states = self._losses(*arguments)
        self.states = recursively_apply(Tensor.detach, states)  # a recorded graph says that all results have gradients
        return (forward + backward) / window.targets.numel()

    def state(self) -> dict[str, Any]:
        states = recursively_apply(Tensor.clone, self.states)  # or the whole window's outputs would be saved
        return {"dtype": str(self.dtype).removeprefix("torch."), "states": states}

    def load_state(self, state: dict[str, Any]) -> None:
        dtype = getattr(torch, state["dtype"])
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"{state['dtype']} is not a type of numbers")
        self.dtype = dtype
        self.states = send_to_device(state["states"], self.model.softmax_bias.device)


class _Losses(nn.Module):
    """The losses of a window's tokens, and the states, from the tokens' vectors; see `LanguageModel.losses`."""

    def __init__(self, model: LanguageModel, dtype: torch.dtype) -> None:
        super().__init__()
        self._model, self._dtype = model, dtype

    def forward(
        self,
        vectors: tuple[Tensor, Tensor],
        targets: Tensor,
        resets: Tensor | None,
        states: LayerStates,
        *candidates: Tensor,
    ) -> tuple[Tensor, Tensor, LayerStates]:
        drawn = Candidates(*candidates) if candidates else None
        return self._model.losses(vectors, targets, resets, states, drawn, self._dtype)


def _recorded(losses: _Losses, arguments: tuple[Any, ...]) -> _Losses:
    """The same, recorded with arguments like these, which are copied, as one CUDA graph for each pass.

    The gradients of a step are where those of the next one will be: they cannot be accumulated over steps.
    """
    # PyTorch warns, once, that the gradients come from another stream than that of this recording.
    warnings.filterwarnings("ignore", "The AccumulateGrad node's stream")
    samples = recursively_apply(lambda each: each.detach().clone().requires_grad_(each.requires_grad), arguments)
    with torch.autocast("cuda", enabled=False):  # all factors have their type
        recorded: Any = torch.cuda.make_graphed_callables(losses, samples, allow_unused_input=True)
    return cast("_Losses", recorded)
