"""The ONNX graphs of a biLM and of a tagger, made node by node.

There are two, so that the vectors of words can be kept: from the characters of distinct words to their vectors, and
from sentences of such words to layers and tags. Each function computes what the class does that its docstring names.

# U distinct words, C characters of the longest, V features of a word: P of the biLM's token layer, then the tagger's
# B sentences, T tokens of the longest, S = T + 2 with sentence borders, D = 2P features, L+1 layers, K tags
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.lstm import ProjectedLstm
from elmo_tasks.modules.crf import FORBIDDEN

OPSET, IR_VERSION = 17, 8  # of 2022: old runtimes read them, too
_GATES: dict[type, tuple[str, tuple[int, ...]]] = {nn.LSTM: ("LSTM", (0, 3, 1, 2)), nn.GRU: ("GRU", (1, 0, 2))}
_WHOLE = ("characters", "letters", "rows", "index", "lengths", "tags")  # inputs and outputs with whole numbers
_NUM_AXES = {"rows": 1, "lengths": 1, "layers": 4, "probabilities": 3}  # of the others, 2


class Graph:
    """A graph that grows node by node. `graph.Add(one, other)` adds a node, and gives the name of what it computes.

    Arguments:
        int8: store weights in 8 bits, with a scale for each row; otherwise in 16. All is computed in 32, the CRF in 64.

    Attributes:
        rounded: how many weights are not stored exactly.
    """

    def __init__(self, int8: bool) -> None:
        self.int8 = int8
        self.rounded = 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []
        self._numbers = itertools.count()

    def __getattr__(self, operator: str) -> Callable[..., Any]:
        return functools.partial(self._add, operator)

    def _add(self, operator: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        outputs = [f"{operator}_{next(self._numbers)}" for _ in range(count)]
        self._nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[0] if count == 1 else outputs

    def constant(self, value: Tensor | NDArray[Any] | Sequence[int] | float) -> str:
        """A tensor or array as it is, a list as int64, a number as float32."""
        array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
        array = array.astype(np.float32) if isinstance(value, float) else array
        self._constants.append(numpy_helper.from_array(array, f"constant_{next(self._numbers)}"))
        return self._constants[-1].name

    def weight(self, tensor: Tensor, axes: tuple[int, ...] = (-1,)) -> str:
        """A weight in float32; the axes are those of a row."""
        stored, scales = self._stored(tensor, axes)
        values = self.Cast(stored, to=TensorProto.FLOAT)
        return self.Mul(values, scales) if scales else values

    def rows(self, table: Tensor, ids: str) -> str:
        """Rows of a table; only these become float32."""
        stored, scales = self._stored(table, (-1,))
        values = self.Cast(self.Gather(stored, ids), to=TensorProto.FLOAT)
        return self.Mul(values, self.Gather(scales, ids)) if scales else values

    def _stored(self, tensor: Tensor, axes: tuple[int, ...]) -> tuple[str, str | None]:
        values, scales = tensor.detach().numpy(), None
        if self.int8:
            scales = np.maximum(np.abs(values).max(axes, keepdims=True) / 127, 1e-12).astype(np.float32)
            stored = np.rint(values / scales).astype(np.int8)
        else:
            stored = tensor.detach().half().numpy()
            stored = stored if np.isfinite(stored).all() else values
        self.rounded += int((stored * (1 if scales is None else scales) != values).sum())
        return self.constant(stored), None if scales is None else self.constant(scales)

    def linear(self, values: str, layer: nn.Linear) -> str:
        return self.Add(self.MatMul(values, self.weight(layer.weight.t(), (0,))), self.constant(layer.bias))

    def convolution(self, values: str, layer: nn.Conv1d) -> str:
        return self.Conv(values, self.weight(layer.weight, (1, 2)), self.constant(layer.get_parameter("bias")))

    def activated(self, values: str, name: str) -> str:
        return values if name == "none" else self._add({"relu": "Relu", "tanh": "Tanh"}[name], values)

    def part(self, values: str, axis: int, start: int, end: int) -> str:
        return self.Slice(values, *(self.constant([each]) for each in (start, end, axis)))

    def scan(
        self, states: Sequence[str], inputs: Sequence[str], step: Callable[..., Any], reverse: bool = False
    ) -> list[str]:
        """The last states and the outputs of `step(*states, *inputs) -> (states, outputs)` along the first axis."""
        outer, self._nodes = self._nodes, []
        names = [f"step_{next(self._numbers)}" for _ in (*states, *inputs)]
        results = [self.Identity(each) for each in itertools.chain(*step(*names))]
        begin, end = ([helper.make_empty_tensor_value_info(each) for each in part] for part in (names, results))
        body = helper.make_graph(self._nodes, "step", begin, end)
        self._nodes, count = outer, len(inputs)
        directions = {
            "scan_input_directions": [1] * count,
            "scan_output_directions": [1] * (len(results) - len(states)),
        }
        settings = {"count": len(results), "body": body, "num_scan_inputs": count} | (directions if reverse else {})
        return self.Scan(*states, *inputs, **settings)

    def model(self, inputs: Sequence[str], outputs: dict[str, str]) -> onnx.ModelProto:
        """The model with these inputs and outputs, whose values in the graph are `outputs`."""
        self._nodes += [helper.make_node("Identity", [own], [name]) for name, own in outputs.items()]

        def described(name: str) -> onnx.ValueInfoProto:
            axes = [f"{name}_{axis}" for axis in range(_NUM_AXES.get(name, 2))]
            kind = TensorProto.INT64 if name in _WHOLE else TensorProto.FLOAT
            return helper.make_tensor_value_info(name, kind, axes)

        begin, end = (list(map(described, names)) for names in (inputs, outputs))
        graph = helper.make_graph(self._nodes, "elmo-tasks", begin, end, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def word_graph(graph: Graph, bilm: BiLM | None, embedder: Any) -> onnx.ModelProto:
    """From distinct words to their vectors, `words` (U, V).

    Its inputs are `characters` (U, C), of the biLM, `rows` (U,) of the tagger's table of words, and `letters` (U, C),
    the tagger's characters, 0 in the padding: those of them that the model reads.
    """
    parts: dict[str, str] = {}
    if bilm:
        parts["characters"] = _token_layer(graph, bilm)
    if embedder and (table := embedder.words):
        parts["rows"] = graph.rows(torch.cat([table.trained, table.fixed]), "rows")
    if embedder and embedder.characters:
        parts["letters"] = _character_cnn(graph, embedder.characters)
    return graph.model(list(parts), {"words": graph.Concat(*parts.values(), axis=1)})


def sentence_graph(graph: Graph, bilm: BiLM | None, model: Any) -> onnx.ModelProto:
    """From sentences to `layers` (B, L+1, T, D), and with a tagger to `tags` (B, T) and `probabilities` (B, T, K).

    Its inputs are `words` (U, V), as `word_graph` gives them, `index` (B, S), the rows of each sentence's tokens
    between those of its borders, then anything, and `lengths` (B,), in tokens. Padding has no meaning.
    """
    outputs: dict[str, str] = {}
    layers: list[str] = []
    size = bilm.options.lstm.projection_dim if bilm else 0
    if bilm:
        layers = _layers(graph, bilm, graph.part("words", 1, 0, size))
        outputs["layers"] = graph.Concat(*(graph.Unsqueeze(each, graph.constant([1])) for each in layers), axis=1)
    if model:
        embedder, parts = model.embedder, []
        mixed = {name: _mix(graph, mix, layers) for name, mix in (embedder.elmo.mixes if bilm else {}).items()}
        if embedder.words or embedder.characters:
            parts = [graph.Gather(graph.part("words", 1, size, 1 << 31), graph.part("index", 1, 1, -1))]
        parts += [mixed["input"]] if "input" in mixed else []
        encoded = _encoder(graph, model.encoder, graph.Concat(*parts, axis=2))
        joined = graph.Concat(encoded, mixed["output"], axis=2) if "output" in mixed else encoded
        if feedforward := getattr(model, "feedforward", None):
            for layer in feedforward.layers:
                joined = graph.activated(graph.linear(joined, layer), feedforward.activation)
        outputs |= _decoded(graph, model, graph.linear(joined, model.projection))
    return graph.model(["words", "index", "lengths"], outputs)


def _token_layer(graph: Graph, bilm: BiLM) -> str:
    """`TokenEncoder`: (U, C) -> (U, P)."""
    encoder = bilm.token_encoder
    embedded = graph.Transpose(graph.rows(encoder.embedding.weight, "characters"), perm=[0, 2, 1])
    filters = [
        graph.ReduceMax(graph.convolution(embedded, each), axes=[2], keepdims=0) for each in encoder.convolutions
    ]
    values = graph.activated(graph.Concat(*filters, axis=1), bilm.options.char_cnn.activation)
    for highway in encoder.highways:
        new = graph.Relu(graph.linear(values, highway.transform))
        values = graph.Add(
            values, graph.Mul(graph.Sigmoid(graph.linear(values, highway.carry)), graph.Sub(new, values))
        )
    return graph.linear(values, encoder.projection) if encoder.projection else values


def _character_cnn(graph: Graph, encoder: Any) -> str:
    """`CharacterCnn`: (U, C) -> (U, F). A window counts if it has a letter or, without padding, only letters."""
    width = encoder.width
    margin, enough = (width - 1, 0.5) if encoder.padding == "both_sides" else (0, width - 0.5)
    padded = graph.Pad("letters", graph.constant([0, margin, 0, width - 1]))
    embedded = graph.Transpose(graph.rows(encoder.embedding.weight, padded), perm=[0, 2, 1])
    is_letter = graph.Unsqueeze(graph.Cast(graph.Sign(padded), to=TensorProto.FLOAT), graph.constant([1]))
    letters = graph.Conv(is_letter, graph.constant(np.ones((1, 1, width), np.float32)))  # (U, 1, windows)
    counts = graph.Greater(letters, graph.constant(enough))
    features = graph.Where(counts, graph.convolution(embedded, encoder.convolution), graph.constant(FORBIDDEN))
    maxima = graph.activated(graph.ReduceMax(features, axes=[2], keepdims=0), encoder.activation)
    is_any = graph.Greater(graph.ReduceMax(letters, axes=[2], keepdims=0), graph.constant(enough))
    return graph.Where(is_any, maxima, graph.constant(0.0))


def _layers(graph: Graph, bilm: BiLM, words: str) -> list[str]:
    """`BiLM.contextualize` without the borders: L+1 times (B, T, D)."""
    read = functools.partial(graph.ReverseSequence, time_axis=0, batch_axis=1)  # is its own inverse
    bordered = graph.Add("lengths", graph.constant([2]))
    inputs = graph.Transpose(graph.Gather(words, "index"), perm=[1, 0, 2])  # (S, B, P)
    halves: list[list[str]] = []
    for backward, stack in enumerate(bilm.directions):
        values, layers = read(inputs, bordered) if backward else inputs, [inputs]
        for depth, lstm in enumerate(stack.layers):
            output = _projected_lstm(graph, lstm, values)
            values = graph.Add(output, values) if stack.skips and depth else output
            layers.append(read(values, bordered) if backward else values)
        halves.append(layers)
    joined = (graph.part(graph.Concat(*pair, axis=2), 0, 1, -1) for pair in zip(*halves, strict=True))
    return [graph.Transpose(layer, perm=[1, 0, 2]) for layer in joined]


def _projected_lstm(graph: Graph, lstm: ProjectedLstm, values: str) -> str:
    """`ProjectedLstm` from a state of zeros: (S, B, P) -> (S, B, P)."""
    num_cells, size = len(lstm.bias) // 4, lstm.input_weight.shape[1]
    bias = lstm.bias.detach().clone()
    bias[2 * num_cells : 3 * num_cells] += 1  # of the forget gate
    sums = graph.Add(graph.MatMul(values, graph.weight(lstm.input_weight.t(), (0,))), graph.constant(bias))
    recurrent = graph.weight(lstm.recurrent_weight.t(), (0,))
    projection = None if lstm.projection_weight is None else graph.weight(lstm.projection_weight.t(), (0,))
    shapes = [graph.Concat(graph.Shape("lengths"), graph.constant([each]), axis=0) for each in (size, num_cells)]

    def clipped(values: str, bound: float | None) -> str:
        return graph.Clip(values, graph.constant(-bound), graph.constant(bound)) if bound else values

    def step(hidden: str, cell: str, of_input: str) -> tuple[list[str], list[str]]:
        gates = graph.Add(of_input, graph.MatMul(hidden, recurrent))
        enter, candidate, forget, leave = graph.Split(gates, count=4, axis=1)
        new = graph.Mul(graph.Sigmoid(enter), graph.Tanh(candidate))
        cell = clipped(graph.Add(graph.Mul(graph.Sigmoid(forget), cell), new), lstm.cell_clip)
        hidden = graph.Mul(graph.Sigmoid(leave), graph.Tanh(cell))
        hidden = clipped(graph.MatMul(hidden, projection), lstm.projection_clip) if projection else hidden
        return [hidden, cell], [hidden]

    return graph.scan([graph.ConstantOfShape(each) for each in shapes], [sums], step)[-1]


def _mix(graph: Graph, mix: Any, layers: Sequence[str]) -> str:
    """`ScalarMix` without normalization, or with that of tokens."""
    chosen = [layers[layer] for layer in mix.layers]
    if mix.layer_normalization == "token":
        one = graph.constant(np.ones(1, np.float32))
        chosen = [graph.LayerNormalization(layer, one, epsilon=1e-12) for layer in chosen]
    factors = (mix.gamma * mix.normalized_weights()).tolist()
    return graph.Sum(*(graph.Mul(each, graph.constant(factor)) for each, factor in zip(chosen, factors, strict=True)))


def _encoder(graph: Graph, encoder: Any, values: str) -> str:
    """`StackedEncoder`: (B, T, D) -> (B, T, H)."""
    values = graph.Transpose(values, perm=[1, 0, 2])
    lengths = graph.Cast("lengths", to=TensorProto.INT32)
    for layer in encoder.layers:
        operator, order = next(each for kind, each in _GATES.items() if isinstance(layer, kind))
        directions = ("", "_reverse") if layer.bidirectional else ("",)
        parts = []
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            both = [getattr(layer, f"{name}_l0{each}").detach().chunk(len(order)) for each in directions]
            parts.append(torch.stack([torch.cat([gates[gate] for gate in order]) for gates in both]))
        weights = [*map(graph.weight, parts[:2]), graph.constant(torch.cat(parts[2:], dim=1)), lengths]
        settings: dict[str, Any] = {"direction": "bidirectional" if layer.bidirectional else "forward"}
        settings |= {"linear_before_reset": 1} if operator == "GRU" else {}
        outputs = graph._add(operator, values, *weights, hidden_size=layer.hidden_size, **settings)
        values = graph.Reshape(graph.Transpose(outputs, perm=[0, 2, 1, 3]), graph.constant([0, 0, -1]))
    return graph.Transpose(values, perm=[1, 0, 2])


def _decoded(graph: Graph, model: Any, logits: str) -> dict[str, str]:
    """`SimpleTagger.decode`, or `CrfTagger.decode` in two passes: to the last token, then back to the first."""
    if not hasattr(model, "crf"):
        scaled = graph.Div(logits, graph.constant(float(model.temperature)))
        tags = graph.ArgMax(logits, axis=2, keepdims=0)
        return {"tags": tags, "probabilities": graph.Softmax(scaled, axis=2)}
    crf, allowed = model.crf, model.crf.constraints
    scores = (
        (crf.start_transitions, allowed.start),
        (crf.transitions, allowed.between),
        (crf.end_transitions, allowed.end),
    )
    heat = torch.tensor(model.temperature, dtype=torch.float64)  # does not change which tags are best
    start, between, end = (
        graph.constant((each.double() / heat).masked_fill(~real, FORBIDDEN)) for each, real in scores
    )
    doubles = graph.Cast(graph.Transpose(logits, perm=[1, 0, 2]), to=TensorProto.DOUBLE)
    emissions = graph.Div(doubles, graph.constant(heat))  # (T, B, K)
    zero, one = graph.constant(np.int64(0)), graph.constant(np.int64(1))
    second, third = graph.constant([1]), graph.constant([2])
    times = graph.Range(zero, graph.Squeeze(graph.Shape(emissions, start=0, end=1)), one)  # (T,)
    nothing = graph.Mul(graph.Gather(emissions, zero), graph.constant(torch.zeros_like(heat)))  # (B, K)

    def forward(best: str, total: str, emission: str, time: str) -> tuple[list[str], list[str]]:
        is_first, is_real = graph.Equal(time, zero), graph.Unsqueeze(graph.Less(time, "lengths"), second)  # (B, 1)
        steps = graph.Add(between, graph.Unsqueeze(emission, second))  # (B, K, K)
        paths, sums = (graph.Add(graph.Unsqueeze(each, third), steps) for each in (best, total))
        after = graph.ReduceMax(paths, axes=[1], keepdims=0), graph.ReduceLogSumExp(sums, axes=[1], keepdims=0)
        begin = graph.Add(start, emission)
        states = [
            graph.Where(is_real, graph.Where(is_first, begin, new), old)
            for new, old in zip(after, (best, total), strict=True)
        ]
        return states, [states[1], graph.ArgMax(paths, axis=1, keepdims=0)]

    best, _, before, previous = graph.scan([nothing, nothing], [emissions, times], forward)
    last = graph.ArgMax(graph.Add(best, end), axis=1)  # (B, 1)

    def backward(
        tag: str, total: str, emission: str, before: str, previous: str, time: str
    ) -> tuple[list[str], list[str]]:
        is_inside = graph.Unsqueeze(graph.Less(graph.Add(time, one), "lengths"), second)  # before the last token
        tag, after = graph.Where(is_inside, tag, last), graph.Where(is_inside, total, end)
        sums = graph.Add(graph.Unsqueeze(graph.Add(after, emission), second), between)
        states = [graph.GatherElements(previous, tag, axis=1), graph.ReduceLogSumExp(sums, axes=[2], keepdims=0)]
        return states, [graph.Squeeze(tag, second), graph.Softmax(graph.Add(before, after), axis=1)]

    inputs = [emissions, before, previous, times]
    *_, tags, shares = graph.scan([last, nothing], inputs, backward, reverse=True)
    shares = graph.Cast(graph.Transpose(shares, perm=[1, 0, 2]), to=TensorProto.FLOAT)
    return {"tags": graph.Transpose(tags, perm=[1, 0]), "probabilities": shares}
