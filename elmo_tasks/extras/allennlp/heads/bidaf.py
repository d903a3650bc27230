"""AllenNLP's `bidaf`."""

from __future__ import annotations

from torch import Tensor

from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Weights
from elmo_tasks.extras.allennlp.heads.head import Head, other_reader


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `bidaf`; see `elmo_tasks.extras.allennlp.heads.head`."""
    model = params.part("model")
    head = Head(
        type="bidaf",
        num_highway_layers=model.number("num_highway_layers"),
        dropout=model.number("dropout", 0.2),
        max_answer_length=None,
        window=None,
    )
    size = len(columns)
    for number in range(head.config["num_highway_layers"]):
        # The gate says in AllenNLP how much of the input passes, and here how much does not.
        layer = weights.part(f"_highway_layer._module._layers.{number}.")
        transform, gate = layer.take("weight", 2 * size, size)[:, columns].split(size)
        transform_bias, gate_bias = layer.take("bias", 2 * size).split(size)
        head.tensors |= {
            f"text_encoder.highways.{number}.transform.weight": transform[columns],
            f"text_encoder.highways.{number}.transform.bias": transform_bias[columns],
            f"text_encoder.highways.{number}.carry.weight": -gate[columns],
            f"text_encoder.highways.{number}.carry.bias": -gate_bias[columns],
        }
    head.add_encoder("text_encoder.encoder", model.part("phrase_layer"), weights.part("_phrase_layer."), columns)
    _add_attention(head, model, weights.part("_matrix_attention."))
    head.add_encoder("modeling_encoder", model.part("modeling_layer"), weights.part("_modeling_layer."))
    head.add_encoder("end_encoder", model.part("span_end_encoder"), weights.part("_span_end_encoder."))
    for name in ("start", "end"):
        predictor = weights.part(f"_span_{name}_predictor._module.")
        head.tensors[f"{name}.weight"] = predictor.take("weight", 1, None)
        predictor.take("bias", 1)  # the same for all tokens, so that it changes no probability
    notes = other_reader(params, "squad", "squad", "squad1")
    if not model.get("mask_lstms", True):
        notes = (*notes, "mask_lstms is false in AllenNLP: predictions are those of its batches of one example")
    return head.reads({"type": "squad"}, notes)


def _add_attention(head: Head, model: Params, weights: Weights) -> None:
    """The scores of pairs of tokens, linear in [x; y; x * y], whose three parts are separate here."""
    settings = model.part("similarity_function" if "similarity_function" in model else "matrix_attention")
    settings.expect("type", "linear")
    settings.expect("combination", "x,y,x*y", default="x,y")
    settings.expect("activation", "linear", None)
    size = settings.number("tensor_1_dim")
    settings.expect("tensor_2_dim", size)
    scores = weights.part("_similarity_function." if "_similarity_function._weight_vector" in weights else "")
    for name, values in zip(
        ("first", "second", "product"), scores.take("_weight_vector", 3 * size).split(size), strict=True
    ):
        head.tensors[f"attention.scores.{name}"] = values
    scores.take("_bias", 1)  # the same for all pairs, so that it changes no softmax
