"""Heads of AllenNLP's layout give the numbers of its formulas, whatever the order of the embedder's features."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.models import TaskModel
from elmo_tasks.tasks.reading import unanswered
from elmo_tasks.text.vocabulary import Vocabulary
from tests.extras.allennlp.heads import BOTH, MENTION_LAYERS, SIZE, Archive, make

PAIRS = ((["tarn", "vale", "is", "moro"], ["orla", "?"]), (["it"], ["vale", "brusk", "tarn"]))
SENTENCES = [["tarn", "vale", "is"], ["moro"], ["it", "is", "orla", "?", "brusk", "it", "vale"]]


def pairs_of(model: TaskModel[Any, Any], vocabulary: Vocabulary) -> Any:
    return model.task.collate([{"premise": first, "hypothesis": second} for first, second in PAIRS], vocabulary)


@torch.no_grad()
def test_esim() -> None:
    archive = make("esim")
    _, model, vocabulary = archive.convert()
    logits = model(pairs_of(model, vocabulary)).logits
    for row, pair in enumerate(PAIRS):
        first, second = (archive.run_lstm("_encoder", archive.embed(text)) for text in pair)
        sides = []
        for own, other in ((first, second), (second, first)):
            seen = (own @ other.T).softmax(1) @ other
            compared = torch.cat([own, seen, own - seen, own * seen], dim=1)
            composed = archive.run_lstm("_inference_encoder", archive.run_layers("_projection_feedforward", compared))
            sides += [composed.mean(0), composed.amax(0)]
        pooled = archive.run_layers("_output_feedforward", torch.cat(sides))
        expected = archive.run_layers("_output_logit", pooled, True)
        torch.testing.assert_close(logits[row], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_srl() -> None:
    archive = make("srl")
    _, model, vocabulary = archive.convert()
    sentences = (["tarn", "vale", "is", "moro"], 2), (["orla", "is"], 0)
    examples = [{"tokens": tokens, "predicate": predicate} for tokens, predicate in sentences]
    logits = model(model.task.collate(examples, vocabulary)).logits
    for row, (tokens, predicate) in enumerate(sentences):
        flags = torch.tensor([int(index == predicate) for index in range(len(tokens))])
        inputs = torch.cat([archive.embed(tokens), archive.tensors["binary_feature_embedding.weight"][flags]], dim=1)
        expected = archive.run_linear("tag_projection_layer._module", archive.run_lstm("encoder", inputs))
        torch.testing.assert_close(logits[row, : len(tokens)], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("end", [[], ["@@NULL@@"]])
@pytest.mark.parametrize("aggregate", [(8, 3), (8, 5, 3)])
def test_decomposable_attention(aggregate: tuple[int, ...], end: list[str]) -> None:
    archive = make("decomposable_attention", {"dataset_reader.tokenizer.end_tokens": end}, aggregate=aggregate)
    head, model, vocabulary = archive.convert()
    batch = pairs_of(model, vocabulary)
    output = model(batch)
    for row, (pair, prediction) in enumerate(zip(PAIRS, model.decode(output, batch), strict=True)):
        first, second = (archive.embed([*text, *end]) for text in pair)
        attending = [archive.run_layers("_attend_feedforward._module", side) for side in (first, second)]
        scores = attending[0] @ attending[1].T
        sides = []
        for name, own, other, weights in (
            ("premise", first, second, scores.softmax(1)),
            ("hypothesis", second, first, scores.T.softmax(1)),
        ):
            aligned = torch.cat([own, weights @ other], dim=1)
            sides.append(archive.run_layers("_compare_feedforward._module", aligned).sum(0))
            shown = weights[: len(own) - len(end), : len(other) - len(end)]
            torch.testing.assert_close(torch.tensor(prediction[f"{name}_attention"]), shown)
        expected = archive.run_layers("_aggregate_feedforward", torch.cat(sides), True)
        torch.testing.assert_close(output.logits[row], expected, atol=1e-5, rtol=1e-5)
    assert head.dataset_reader.get("end_token") == head.config["end_token"] == (end[0] if end else None)


@torch.no_grad()
@pytest.mark.parametrize("version", [0, 2])
def test_bidaf(version: int) -> None:
    archive = make("bidaf", version=version)
    _, model, vocabulary = archive.convert()
    text, asked = "tarn vale is moro orla it brusk", "is it tarn ?"
    batch = model.task.collate([unanswered(asked, text)], vocabulary)
    output = model(batch)
    passage, question = (_highways(archive, archive.embed(each.split())) for each in (text, asked))
    passage, question = (archive.run_lstm("_phrase_layer", each) for each in (passage, question))
    inner = "" if version else "_similarity_function."
    first, second, product = archive.tensors[f"_matrix_attention.{inner}_weight_vector"].split(BOTH)
    scores = (passage @ first).unsqueeze(1) + question @ second + (passage * product) @ question.T
    seen = scores.softmax(1) @ question
    summary = scores.amax(1).softmax(0) @ passage
    merged = torch.cat([passage, seen, passage * seen, passage * summary], dim=1)
    modeled = archive.run_lstm("_modeling_layer", merged)
    start = archive.run_linear("_span_start_predictor._module", torch.cat([merged, modeled], dim=1)).softmax(0)
    likely = (start.T @ modeled).expand_as(modeled)
    last = archive.run_lstm("_span_end_encoder", torch.cat([merged, modeled, likely, modeled * likely], dim=1))
    end = archive.run_linear("_span_end_predictor._module", torch.cat([merged, last], dim=1)).softmax(0)
    torch.testing.assert_close(output.start_logits[0].softmax(0), start[:, 0], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(output.end_logits[0].softmax(0), end[:, 0], atol=1e-6, rtol=1e-6)
    spans = itertools.combinations_with_replacement(range(len(text.split())), 2)  # of any length
    best = max(spans, key=lambda span: (start[span[0]] * end[span[1]]).item())
    (prediction,) = model.decode(output, batch)
    assert (prediction["start"], prediction["end"]) == best


def _highways(archive: Archive, inputs: Tensor) -> Tensor:
    for number in range(2):
        new, gate = archive.run_linear(f"_highway_layer._module._layers.{number}", inputs).split(SIZE, dim=1)
        inputs = gate.sigmoid() * inputs + (1 - gate.sigmoid()) * new.relu()
    return inputs


@torch.no_grad()
@pytest.mark.parametrize("maxout", [False, True])
def test_bcn(maxout: bool) -> None:
    archive = make("bcn", maxout=maxout)
    head, model, vocabulary = archive.convert()
    texts = (["tarn", "vale", "is", "moro"], ["it"])
    output = model(model.task.collate([{"tokens": text} for text in texts], vocabulary))
    for row, text in enumerate(texts):
        encoded = archive.run_lstm("_encoder", archive.run_layers("_pre_encode_feedforward", archive.embed(text)))
        aligned = (encoded @ encoded.T).softmax(1) @ encoded
        joined = torch.cat([encoded, encoded - aligned, encoded * aligned], dim=1)
        tokens = archive.run_lstm("_integrator", joined)
        weights = archive.run_linear("_self_attentive_pooling_projection", tokens).softmax(0)
        attention = weights.flatten().tolist() + [0.0] * (4 - len(text))
        assert output.attention[row].tolist() == pytest.approx(attention, abs=1e-6)
        pooled = torch.cat([tokens.amax(0), tokens.amin(0), tokens.mean(0), (weights * tokens).sum(0)])
        if maxout:
            for number in range(2):
                pooled = archive.run_linear(f"_output_layer._linear_layers.{number}", pooled).view(-1, 2).amax(1)
        else:
            pooled = archive.run_layers("_output_layer", pooled, True)
        torch.testing.assert_close(output.logits[row], pooled, atol=1e-5, rtol=1e-5)
    if maxout:
        output = {"hidden_sizes": [4, 3], "activation": "maxout", "dropout": 0.2, "pieces": 2}
        assert head.config["output"] == output


def scores_of_antecedents(
    archive: Archive, vectors: Tensor, mentions: Tensor, coarse: bool, order: int
) -> list[dict[int, float]]:
    """Of each kept span, the four candidates for its antecedent and their scores."""
    rows = range(len(vectors))
    bilinear = torch.zeros(len(rows), len(rows))
    if coarse:
        bilinear = vectors @ archive.run_linear("_coarse2fine_scorer", vectors).T
        best = [(bilinear[row, :row] + mentions[:row]).topk(min(4, row)).indices.tolist() for row in rows]
        assert any(row - 4 > min(chosen) for row, chosen in enumerate(best) if chosen)
    else:
        best = [list(range(max(0, row - 4), row)) for row in rows]

    def pair_score(row: int, other: int) -> Tensor:
        feature = archive.tensors["_distance_embedding.weight"][min(row - other, 5)]  # 5 to 7 share an embedding
        assert row - other < 8
        pair = torch.cat([vectors[row], vectors[other], vectors[row] * vectors[other], feature])
        hidden = archive.run_layers("_antecedent_feedforward._module", pair)
        score = archive.run_linear("_antecedent_scorer._module", hidden)[0]
        return score + mentions[row] + mentions[other] + bilinear[row, other]

    scores: list[dict[int, float]] = []
    for step in range(order):
        if step:
            shares = [torch.tensor([*each.values(), 0.0]).softmax(0) for each in scores]
            means = torch.stack(
                [share @ vectors[[*each, row]] for row, (share, each) in enumerate(zip(shares, scores, strict=True))]
            )
            gate = archive.run_linear("_span_updating_gated_sum._gate", torch.cat([vectors, means], dim=1)).sigmoid()
            vectors = gate * vectors + (1 - gate) * means
        scores = [{other: pair_score(row, other).item() for other in sorted(best[row])} for row in rows]
    return scores


@torch.no_grad()
@pytest.mark.parametrize(
    ("version", "widths", "coarse", "order"),
    [(0, 3, False, 1), (2, 5, False, 1), (2, 3, True, 1), (2, 3, False, 2), (2, 3, True, 3)],
)
def test_coref(version: int, widths: int, coarse: bool, order: int) -> None:
    archive = make("coref", version=version, widths=widths, coarse=coarse, order=order)
    _, model, vocabulary = archive.convert()
    output = model(model.task.collate([{"sentences": SENTENCES}], vocabulary))

    words = list(itertools.chain(*SENTENCES))
    inputs = archive.embed(words)
    encoded = archive.run_lstm("_context_layer", inputs)  # over sentences
    heads = archive.run_linear("_attentive_span_extractor._global_attention._module", inputs)
    width_table = archive.tensors["_endpoint_span_extractor._span_width_embedding.weight"]
    spans, vectors = [], []
    for end, sentence in zip(itertools.accumulate(map(len, SENTENCES)), SENTENCES, strict=True):
        for first in range(end - len(sentence), end):
            for last in range(first, min(first + 3, end)):
                inside = slice(first, last + 1)
                head = (heads[inside].softmax(0) * inputs[inside]).sum(0)
                spans.append((first, last))
                vectors.append(torch.cat([encoded[first], encoded[last], width_table[last - first], head]))
    hidden, scorer = MENTION_LAYERS[version]
    scored = archive.run_layers(f"{hidden}._module", torch.stack(vectors))
    scores = archive.run_linear(f"{scorer}._module", scored)[:, 0]
    kept = sorted(scores.topk(int(0.9 * len(words))).indices.tolist())  # crossing ones as well
    assert list(zip(output.starts.tolist(), output.ends.tolist(), strict=True)) == [spans[number] for number in kept]
    pairs = itertools.combinations([spans[number] for number in kept], 2)
    assert any(first[0] < second[0] <= first[1] < second[1] for first, second in pairs)
    expected = scores_of_antecedents(
        archive, torch.stack([vectors[number] for number in kept]), scores[kept], coarse, order
    )
    for row, of_row in enumerate(expected):
        columns = output.antecedents[row] >= 0
        assert output.antecedents[row][columns].tolist() == list(of_row)
        assert output.antecedent_scores[row, :-1][columns].tolist() == pytest.approx(list(of_row.values()), abs=1e-5)
    assert not output.antecedent_scores[:, -1].any()
