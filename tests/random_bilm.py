"""BiLMs with random weights, for tests and benchmarks."""

import math

import torch
from torch import nn

from elmo_tasks.elmo import BiLM, BiLMOptions
from elmo_tasks.elmo.lstm import ProjectedLstm
from elmo_tasks.modules.devices import shapes_only


def random_bilm(options: BiLMOptions, seed: int = 0, scale: float = 1.0) -> BiLM:
    """A biLM whose weights are drawn from normal distributions, frozen like a loaded one.

    Every layer's variance follows the number of its inputs, so that activations keep their size from layer to layer;
    highway layers pass most of their input through at first, as in bilm-tf. Such a biLM distinguishes words by spelling
    and context, but knows no language.

    Arguments:
        options: the architecture.
        seed: the same seed gives the same weights, whatever else draws random numbers.
        scale: a factor on the LSTMs' weights. At 1 the published clips change few values, at 1.5 a few percent; far
            above that, rounding errors grow from token to token.
    """
    with shapes_only():
        bilm = BiLM(options)
    bilm.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in bilm.modules():
            for name, parameter in module.named_parameters(recurse=False):
                parameter.normal_(0.0, _spread(module, name, parameter, scale), generator=generator)
        for highway in bilm.token_encoder.highways:
            highway.carry.bias.sub_(2.0)
        bilm.token_encoder.embedding.weight[0] = 0.0
    return bilm.requires_grad_(False).eval()


def _spread(module: nn.Module, name: str, parameter: nn.Parameter, scale: float) -> float:
    """The standard deviation of a parameter of a module."""
    if name == "bias":
        return 0.1
    if isinstance(module, nn.Embedding):
        return 1.0
    gain = scale if isinstance(module, ProjectedLstm) else 1.0
    if name == "projection_weight":
        gain *= 2.0  # outputs of cells are about a half, inputs are about 1
    return gain * (1.0 / math.sqrt(parameter[0].numel()))
