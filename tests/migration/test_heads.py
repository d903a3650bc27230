"""Heads of AllenNLP's layout give the numbers of its formulas, whatever the order of the embedder's features."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_tasks.migration.heads import bcn, bidaf, coref, decomposable_attention, esim, semantic_role_labeler
from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights
from elmo_tasks.models import ModelConfig, TaskModel
from elmo_tasks.tasks.reading import unanswered
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

SIZE, HIDDEN = 6, 3  # of the embedder and of one direction of an encoder
LABELS = ("entailment", "neutral", "contradiction")
WORDS = ("tarn", "vale", "moro", "orla", "brusk", "it", "is", "?", "@@NULL@@")
LSTM = {"type": "lstm", "bidirectional": True, "num_layers": 1, "hidden_size": HIDDEN}


class Archive:
    """The config and the tensors of a model of AllenNLP's, and the vectors that its embedder gives."""

    def __init__(self, model: dict[str, Any], **reader: Any) -> None:
        torch.manual_seed(3)
        self.config: dict[str, Any] = {"model": model, "dataset_reader": reader}
        self.tensors: dict[str, Tensor] = {}
        self.table = torch.randn(len(SPECIAL) + len(WORDS), SIZE)
        self.table[0] = 0

    def add(self, name: str, *shape: int) -> None:
        self.tensors[name] = torch.randn(*shape) / 2

    def linear(self, name: str, inputs: int, outputs: int) -> None:
        self.add(f"{name}.weight", outputs, inputs)
        self.add(f"{name}.bias", outputs)

    def layers(self, name: str, *sizes: int) -> None:
        for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
            self.linear(f"{name}._linear_layers.{number}", inputs, outputs)

    def lstm(self, name: str, inputs: int) -> dict[str, Any]:
        for key, tensor in nn.LSTM(inputs, HIDDEN, bidirectional=True).state_dict().items():
            self.tensors[f"{name}._module.{key}"] = tensor
        return {**LSTM, "input_size": inputs}

    def convert(self, kind: Any, labels: tuple[str, ...] = LABELS) -> tuple[Head, TaskModel[Any, Any], Vocabulary]:
        """Our model, whose embedder has its features in another order; no tensor and no key of the model is left."""
        columns = torch.randperm(SIZE)
        params, weights = Params(self.config), Weights(dict(self.tensors))
        params.part("model").ignore("type")
        head: Head = kind.convert(params, weights, AllenNlpVocabulary({"labels": labels}), columns)
        assert weights.unused() == []
        assert [key for key in params.unread() if key.startswith("model.") and "input_size" not in key] == []
        words = (*SPECIAL, *WORDS)
        vocabulary = Vocabulary(words, len(words), SPECIAL, dict(head.labels))
        values = {**head.config, "embedder": {"words": {"size": SIZE}}}
        config = ModelConfig.model_validate_json(json.dumps(values))
        model = config.build(vocabulary, config.embedder.build(vocabulary))
        words_table = {"trained": self.table[:, columns], "fixed": torch.zeros(0, SIZE)}
        model.load_state_dict({**head.tensors, **{f"embedder.words.{key}": each for key, each in words_table.items()}})
        return head, model.eval(), vocabulary

    def embed(self, words: list[str]) -> Tensor:
        return self.table[[len(SPECIAL) + WORDS.index(word) for word in words]]

    def run_linear(self, name: str, inputs: Tensor) -> Tensor:
        return inputs @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def run_layers(self, name: str, inputs: Tensor, last: bool = False) -> Tensor:
        """Linear layers with rectifiers, except after the last one if it is that of the scores."""
        numbers = [int(key.split(".")[-2]) for key in self.tensors if key.startswith(name) and key.endswith("weight")]
        for number in sorted(numbers):
            inputs = self.run_linear(f"{name}._linear_layers.{number}", inputs)
            inputs = inputs if last and number == max(numbers) else inputs.relu()
        return inputs

    def run_lstm(self, name: str, inputs: Tensor) -> Tensor:
        module = nn.LSTM(inputs.shape[1], HIDDEN, bidirectional=True)
        start = f"{name}._module."
        module.load_state_dict({key[len(start) :]: each for key, each in self.tensors.items() if key.startswith(start)})
        return module(inputs)[0]


def feed_forward(*sizes: int, activations: Any = "relu", **settings: Any) -> dict[str, Any]:
    inputs, *outputs = sizes
    return {
        "input_dim": inputs,
        "num_layers": len(outputs),
        "hidden_dims": outputs,
        "activations": activations,
        **settings,
    }


PAIRS = ((["tarn", "vale", "is", "moro"], ["orla", "?"]), (["it"], ["vale", "brusk", "tarn"]))


def logits_of_pairs(model: TaskModel[Any, Any], vocabulary: Vocabulary) -> Tensor:
    examples = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in PAIRS]
    return model(model.task.collate(examples, vocabulary)).logits


def make_esim(**settings: Any) -> Archive:
    archive = Archive({"type": "esim", "similarity_function": {"type": "dot_product"}, **settings}, type="snli")
    both = 2 * HIDDEN
    archive.config["model"] |= {
        "dropout": 0.4,
        "encoder": archive.lstm("_encoder", SIZE),
        "projection_feedforward": feed_forward(4 * both, 5),
        "inference_encoder": archive.lstm("_inference_encoder", 5),
        "output_feedforward": feed_forward(4 * both, 4, dropout=0.2),
        "output_logit": feed_forward(4, 3, activations="linear"),
    }
    archive.layers("_projection_feedforward", 4 * both, 5)
    archive.layers("_output_feedforward", 4 * both, 4)
    archive.layers("_output_logit", 4, 3)
    return archive


@torch.no_grad()
def test_esim() -> None:
    archive = make_esim()
    head, model, vocabulary = archive.convert(esim)
    logits = logits_of_pairs(model, vocabulary)
    for row, pair in enumerate(PAIRS):
        first, second = (archive.run_lstm("_encoder", archive.embed(text)) for text in pair)
        sides = []
        for own, other in ((first, second), (second, first)):
            seen = (own @ other.T).softmax(1) @ other
            compared = torch.cat([own, seen, own - seen, own * seen], dim=1)
            composed = archive.run_lstm("_inference_encoder", archive.run_layers("_projection_feedforward", compared))
            sides += [composed.mean(0), composed.amax(0)]
        pooled = archive.run_layers("_output_feedforward", torch.cat(sides))
        assert logits[row].tolist() == pytest.approx(
            archive.run_layers("_output_logit", pooled, True).tolist(), abs=1e-5
        )
    assert head.labels == {"labels": LABELS}
    assert head.dataset_reader == {"type": "snli"}
    assert head.config["dropout"] == head.config["encoder"]["dropout"] == head.config["composition"]["dropout"] == 0.4
    assert head.config["output"]["dropout"] == 0.2
    assert head.notes == ()


TAGS = ("O", "B-V", "B-A0", "I-A0", "B-AM-TMP")


def make_srl() -> Archive:
    settings = {"embedding_dropout": 0.2, "label_smoothing": 0.1, "ignore_span_metric": True}
    archive = Archive({"type": "srl", "binary_feature_dim": 4, **settings}, type="srl")
    archive.config["model"]["encoder"] = archive.lstm("encoder", SIZE + 4)
    archive.add("binary_feature_embedding.weight", 2, 4)
    archive.linear("tag_projection_layer._module", 2 * HIDDEN, len(TAGS))
    return archive


@torch.no_grad()
def test_srl() -> None:
    archive = make_srl()
    head, model, vocabulary = archive.convert(semantic_role_labeler, TAGS)
    sentences = (["tarn", "vale", "is", "moro"], 2), (["orla", "is"], 0)
    examples = [{"tokens": tokens, "predicate": predicate} for tokens, predicate in sentences]
    logits = model(model.task.collate(examples, vocabulary)).logits
    for row, (tokens, predicate) in enumerate(sentences):
        flags = torch.tensor([int(place == predicate) for place in range(len(tokens))])
        inputs = torch.cat([archive.embed(tokens), archive.tensors["binary_feature_embedding.weight"][flags]], dim=1)
        wanted = archive.run_linear("tag_projection_layer._module", archive.run_lstm("encoder", inputs))
        torch.testing.assert_close(logits[row, : len(tokens)], wanted, atol=1e-5, rtol=1e-5)
    assert head.labels == {"tags": TAGS}
    assert head.dataset_reader == {"type": "srl_conll2012"}
    assert (head.config["dropout"], head.config["decoded_scores"]) == (0.2, "probabilities")
    with pytest.raises(MigrationError, match=r"the label 'U-V' is not a tag of IOB2"):
        make_srl().convert(semantic_role_labeler, (*TAGS[:-1], "U-V"))


def make_decomposable_attention(*aggregate: int, **tokenizer: Any) -> Archive:
    archive = Archive(
        {
            "type": "decomposable_attention",
            "matrix_attention": {"type": "dot_product"},
            "attend_feedforward": feed_forward(SIZE, 5, 4),
            "compare_feedforward": feed_forward(2 * SIZE, 4),
            "aggregate_feedforward": feed_forward(
                *aggregate, activations=["relu"] * (len(aggregate) - 2) + ["linear"], dropout=0.1
            ),
        },
        type="snli",
        tokenizer=tokenizer,
    )
    archive.layers("_attend_feedforward._module", SIZE, 5, 4)
    archive.layers("_compare_feedforward._module", 2 * SIZE, 4)
    archive.layers("_aggregate_feedforward", *aggregate)
    return archive


@torch.no_grad()
@pytest.mark.parametrize("end", [[], ["@@NULL@@"]])
@pytest.mark.parametrize("aggregate", [(8, 3), (8, 5, 3)])
def test_decomposable_attention(aggregate: tuple[int, ...], end: list[str]) -> None:
    archive = make_decomposable_attention(*aggregate, end_tokens=end)
    head, model, vocabulary = archive.convert(decomposable_attention)
    logits = logits_of_pairs(model, vocabulary)
    for row, pair in enumerate(PAIRS):
        first, second = (archive.embed([*text, *end]) for text in pair)
        attending = [archive.run_layers("_attend_feedforward._module", side) for side in (first, second)]
        scores = attending[0] @ attending[1].T
        sides = [
            archive.run_layers("_compare_feedforward._module", torch.cat([own, weights.softmax(1) @ other], dim=1)).sum(
                0
            )
            for own, other, weights in ((first, second, scores), (second, first, scores.T))
        ]
        wanted = archive.run_layers("_aggregate_feedforward", torch.cat(sides), True)
        assert logits[row].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    assert head.dataset_reader.get("end_token") == head.config["end_token"] == (end[0] if end else None)


def test_what_pairs_cannot_have() -> None:
    with pytest.raises(MigrationError, match=r"model\.similarity_function\.type is bilinear; only dot_product"):
        make_esim(similarity_function={"type": "bilinear"}).convert(esim)
    archive = make_decomposable_attention(8, 3)
    archive.config["model"]["premise_encoder"] = LSTM
    with pytest.raises(MigrationError, match=r"model\.premise_encoder: decomposable attention has no encoder here"):
        archive.convert(decomposable_attention)
    with pytest.raises(MigrationError, match=r"dataset_reader\.tokenizer\.end_tokens: wanted at most one token"):
        make_decomposable_attention(8, 3, end_tokens=["a", "b"]).convert(decomposable_attention)
    archive = make_esim()
    archive.config["model"]["projection_feedforward"]["activations"] = "elu"
    with pytest.raises(MigrationError, match=r"model\.projection_feedforward: elu; wanted relu, tanh or maxout"):
        archive.convert(esim)
    archive = make_esim()
    archive.config["model"]["output_logit"]["activations"] = "relu"
    with pytest.raises(MigrationError, match=r"model\.output_logit: the last activation is relu; wanted linear"):
        archive.convert(esim)


def test_another_reader_is_noted() -> None:
    archive = make_esim()
    archive.config["dataset_reader"]["type"] = "quora_paraphrase"
    assert archive.convert(esim)[0].notes == ("there is no reader 'quora_paraphrase' here; data are read as by 'snli'",)


@torch.no_grad()
@pytest.mark.parametrize("version", [0, 2])
def test_bidaf(version: int) -> None:
    both = 2 * HIDDEN
    attention = {"type": "linear", "combination": "x,y,x*y", "tensor_1_dim": both, "tensor_2_dim": both}
    archive = Archive({"type": "bidaf", "num_highway_layers": 2, "mask_lstms": False}, type="squad")
    archive.config["model"] |= {
        "matrix_attention" if version else "similarity_function": attention,
        "phrase_layer": archive.lstm("_phrase_layer", SIZE),
        "modeling_layer": archive.lstm("_modeling_layer", 4 * both),
        "span_end_encoder": archive.lstm("_span_end_encoder", 7 * both),
    }
    for number in range(2):
        archive.linear(f"_highway_layer._module._layers.{number}", SIZE, 2 * SIZE)
    inner = "" if version else "_similarity_function."
    archive.add(f"_matrix_attention.{inner}_weight_vector", 3 * both)
    archive.add(f"_matrix_attention.{inner}_bias", 1)
    for name in ("start", "end"):
        archive.linear(f"_span_{name}_predictor._module", 5 * both, 1)
    head, model, vocabulary = archive.convert(bidaf, ())

    text, asked = "tarn vale is moro orla it brusk", "is it tarn ?"
    batch = model.task.collate([unanswered(asked, text)], vocabulary)
    output = model(batch)
    passage, question = (_highways(archive, archive.embed(each.split())) for each in (text, asked))
    passage, question = (archive.run_lstm("_phrase_layer", each) for each in (passage, question))
    first, second, product = archive.tensors[f"_matrix_attention.{inner}_weight_vector"].split(both)
    scores = (passage @ first).unsqueeze(1) + question @ second + (passage * product) @ question.T
    seen = scores.softmax(1) @ question
    summary = scores.amax(1).softmax(0) @ passage
    merged = torch.cat([passage, seen, passage * seen, passage * summary], dim=1)
    modeled = archive.run_lstm("_modeling_layer", merged)
    start = archive.run_linear("_span_start_predictor._module", torch.cat([merged, modeled], dim=1)).softmax(0)
    likely = (start.T @ modeled).expand_as(modeled)
    last = archive.run_lstm("_span_end_encoder", torch.cat([merged, modeled, likely, modeled * likely], dim=1))
    end = archive.run_linear("_span_end_predictor._module", torch.cat([merged, last], dim=1)).softmax(0)
    assert output.start_logits[0].softmax(0).tolist() == pytest.approx(start[:, 0].tolist(), abs=1e-6)
    assert output.end_logits[0].softmax(0).tolist() == pytest.approx(end[:, 0].tolist(), abs=1e-6)
    spans = itertools.combinations_with_replacement(range(len(text.split())), 2)  # of any length
    best = max(spans, key=lambda span: (start[span[0]] * end[span[1]]).item())
    (prediction,) = model.decode(output, batch)
    assert (prediction["start"], prediction["end"]) == best
    assert head.labels == {}
    assert "mask_lstms is false" in head.notes[0]


def _highways(archive: Archive, inputs: Tensor) -> Tensor:
    for number in range(2):
        new, gate = archive.run_linear(f"_highway_layer._module._layers.{number}", inputs).split(SIZE, dim=1)
        inputs = gate.sigmoid() * inputs + (1 - gate.sigmoid()) * new.relu()
    return inputs


def make_bcn(*, maxout: bool, **reader: Any) -> Archive:
    archive, both = Archive({"type": "bcn"}, **reader), 2 * HIDDEN
    inputs, pieces = 4 * both, 2 if maxout else 1
    archive.config["model"] |= {
        "embedding_dropout": 0.3,
        "pre_encode_feedforward": feed_forward(SIZE, 5),
        "encoder": archive.lstm("_encoder", 5),
        "integrator": archive.lstm("_integrator", 3 * both),
        "integrator_dropout": 0.2,
        "output_layer": {
            "input_dim": inputs,
            "num_layers": 2,
            "output_dims": [4, 3],
            "pool_sizes": 2,
            "dropout": [0.2, 0],
        }
        if maxout
        else feed_forward(inputs, 4, 3, activations=["relu", "linear"]),
    }
    archive.layers("_pre_encode_feedforward", SIZE, 5)
    archive.linear("_self_attentive_pooling_projection", both, 1)
    archive.linear("_output_layer._linear_layers.0", inputs, 4 * pieces)
    archive.linear("_output_layer._linear_layers.1", 4, 3 * pieces)
    return archive


@torch.no_grad()
@pytest.mark.parametrize("maxout", [False, True])
def test_bcn(maxout: bool) -> None:
    archive = make_bcn(maxout=maxout, type="other")
    head, model, vocabulary = archive.convert(bcn)
    texts = (["tarn", "vale", "is", "moro"], ["it"])
    logits = model(model.task.collate([{"tokens": text} for text in texts], vocabulary)).logits
    for row, text in enumerate(texts):
        encoded = archive.run_lstm("_encoder", archive.run_layers("_pre_encode_feedforward", archive.embed(text)))
        aligned = (encoded @ encoded.T).softmax(1) @ encoded
        joined = torch.cat([encoded, encoded - aligned, encoded * aligned], dim=1)
        tokens = archive.run_lstm("_integrator", joined)
        weights = archive.run_linear("_self_attentive_pooling_projection", tokens).softmax(0)
        pooled = torch.cat([tokens.amax(0), tokens.amin(0), tokens.mean(0), (weights * tokens).sum(0)])
        if maxout:
            for number in range(2):
                pooled = archive.run_linear(f"_output_layer._linear_layers.{number}", pooled).view(-1, 2).amax(1)
        else:
            pooled = archive.run_layers("_output_layer", pooled, True)
        assert logits[row].tolist() == pytest.approx(pooled.tolist(), abs=1e-5)
    assert head.labels == {"labels": LABELS}
    assert head.dataset_reader == {"type": "jsonl", "task": "classification"}
    assert (head.config["embedding_dropout"], head.config["integrator_dropout"]) == (0.3, 0.2)


def test_labels_of_the_sentiment_treebank_have_our_names() -> None:
    archive = make_bcn(maxout=True, type="sst_tokens", granularity="5-class", use_subtrees=True)
    head, _, _ = archive.convert(bcn, ("3", "0", "2"))
    assert head.labels == {"labels": ("positive", "very negative", "neutral")}
    assert head.dataset_reader == {"type": "sst", "granularity": 5, "subtrees": True}
    assert head.notes[-1] == "the labels 3, 0, 2 are positive, very negative, neutral here"


MENTIONS = {
    0: ("_mention_pruner._scorer.0", "_mention_pruner._scorer.1"),
    2: ("_mention_feedforward", "_mention_scorer"),
}
SENTENCES = [["tarn", "vale", "is"], ["moro"], ["it", "is", "orla", "?", "brusk", "it", "vale"]]


def make_coref(*, version: int, widths: int = 3) -> Archive:
    both, features = 2 * HIDDEN, 2
    span = 2 * both + features + SIZE
    archive = Archive({"type": "coref"}, type="coref", max_span_width=3)
    archive.config["model"] |= {
        "context_layer": archive.lstm("_context_layer", SIZE),
        "mention_feedforward": feed_forward(span, 5, 4),
        "antecedent_feedforward": feed_forward(3 * span + features, 6),
        "feature_size": features,
        "max_span_width": widths,
        "spans_per_word": 0.9,
        "max_antecedents": 4,
        "lexical_dropout": 0.3,
    }
    place = MENTIONS[version]
    archive.layers(f"{place[0]}._module", span, 5, 4)
    archive.linear(f"{place[1]}._module", 4, 1)
    archive.layers("_antecedent_feedforward._module", 3 * span + features, 6)
    archive.linear("_antecedent_scorer._module", 6, 1)
    archive.linear("_attentive_span_extractor._global_attention._module", SIZE, 1)
    archive.add("_endpoint_span_extractor._span_width_embedding.weight", widths, features)
    archive.add("_distance_embedding.weight", 10, features)
    return archive


@torch.no_grad()
@pytest.mark.parametrize(("version", "widths"), [(0, 3), (2, 5)])
def test_coref(version: int, widths: int) -> None:
    archive = make_coref(version=version, widths=widths)
    head, model, vocabulary = archive.convert(coref)
    output = model(model.task.collate([{"sentences": SENTENCES}], vocabulary))

    place = MENTIONS[version]
    words = list(itertools.chain(*SENTENCES))
    inputs = archive.embed(words)
    encoded = archive.run_lstm("_context_layer", inputs)  # over sentences
    heads = archive.run_linear("_attentive_span_extractor._global_attention._module", inputs)
    ends = itertools.accumulate(map(len, SENTENCES))
    spans = [
        (first, last)
        for end, sentence in zip(ends, SENTENCES, strict=True)
        for first in range(end - len(sentence), end)
        for last in range(first, min(first + 3, end))
    ]
    vectors = torch.stack(
        [
            torch.cat(
                [
                    encoded[first],
                    encoded[last],
                    archive.tensors["_endpoint_span_extractor._span_width_embedding.weight"][last - first],
                    (heads[first : last + 1].softmax(0) * inputs[first : last + 1]).sum(0),
                ]
            )
            for first, last in spans
        ]
    )
    scores = archive.run_linear(f"{place[1]}._module", archive.run_layers(f"{place[0]}._module", vectors))[:, 0]
    kept = sorted(scores.topk(int(0.9 * len(words))).indices.tolist())  # crossing ones as well
    assert list(zip(output.starts.tolist(), output.ends.tolist(), strict=True)) == [spans[number] for number in kept]
    pairs = itertools.combinations([spans[number] for number in kept], 2)
    assert any(first[0] < second[0] <= first[1] < second[1] for first, second in pairs)
    for row, number in enumerate(kept):
        wanted = []
        for distance in range(4, 0, -1):
            if distance > row:
                wanted.append(-torch.inf)
                continue
            other = kept[row - distance]
            feature = archive.tensors["_distance_embedding.weight"][distance]
            pair = torch.cat([vectors[number], vectors[other], vectors[number] * vectors[other], feature])
            hidden = archive.run_layers("_antecedent_feedforward._module", pair)
            score = archive.run_linear("_antecedent_scorer._module", hidden) + scores[number] + scores[other]
            wanted.append(score.item())
        assert output.antecedent_scores[row].tolist() == pytest.approx([*wanted, 0], abs=1e-5)
    assert head.config["pair_hidden_sizes"] == [6]
    assert head.dataset_reader == {"type": "coref_conll2012"}


@pytest.mark.parametrize(("key", "value"), [("coarse_to_fine", True), ("inference_order", 2)])
def test_what_coref_cannot_have(key: str, value: Any) -> None:
    archive = make_coref(version=2)
    archive.config["model"][key] = value
    with pytest.raises(MigrationError, match=f"model.{key} is {value}; only"):
        archive.convert(coref)
