"""The readers for SQuAD: their equations, spelled out for one example at a time, and what they say of answers."""

import dataclasses
from typing import Any

import pydantic
import pytest
import torch
from torch import Tensor

from elmo_tasks.models.model import ModelConfig
from elmo_tasks.models.reading import NoAnswerScore, ReadingModel, ReadingOutput
from elmo_tasks.tasks.reading import Reading, ReadingBatch, unanswered
from elmo_tasks.text.vocabulary import Counts, Vocabulary, VocabularyConfig

GRU = {"type": "stacked_bigru", "hidden_sizes": (4,)}
LSTM = {"type": "stacked_bilstm", "hidden_sizes": (4,)}
SELF_ATTENTION = {
    "type": "bidaf_self_attention",
    "encoder": GRU,
    "matched_size": 6,
    "self_attention_encoder": GRU,
    "start_encoder": GRU,
    "end_encoder": GRU,
}
PLAIN = {"type": "bidaf", "encoder": LSTM, "modeling_encoder": LSTM, "end_encoder": LSTM}
QUESTIONS = ("Who left?", "Where is the old mill of Brusk?", "Why?")
PASSAGES = (
    "Orla left Brusk.",
    "The tarn lies high, and so does the mill by the lake that Tavo built near the town of Kerrin.",
    "Rain",
)


def make(settings: dict[str, Any], **more: Any) -> tuple[ReadingModel, Vocabulary]:
    torch.manual_seed(8)
    embedder: dict[str, Any] = {"words": {"size": 5}}
    config = ModelConfig.model_validate({**settings, "embedder": embedder, **more})
    vocabulary = VocabularyConfig().build(Counts.of(Reading(), examples()), [])
    model = config.build(vocabulary, config.embedder.build(vocabulary))
    assert isinstance(model, ReadingModel)
    return model.eval(), vocabulary


def examples() -> list[dict[str, Any]]:
    return [unanswered(question, passage) for question, passage in zip(QUESTIONS, PASSAGES, strict=True)]


def joined(model: Any, passage: Tensor, question: Tensor) -> Tensor:
    masks = (torch.ones(1, len(text), dtype=torch.bool) for text in (passage, question))
    return model.attention(passage.unsqueeze(0), question.unsqueeze(0), *masks)[0]


def encode(encoder: Any, inputs: Tensor) -> Tensor:
    """(T, D) -> (T, H), also by the attention of a text to itself"""
    return encoder(inputs.unsqueeze(0), torch.ones(1, len(inputs), dtype=torch.bool))[0]


def read_texts(model: Any, batch: ReadingBatch) -> tuple[Tensor, Tensor]:
    texts = []
    for tokens in (batch.passage, batch.question):
        inputs = model.embedder(tokens).inputs[0]
        for highway in model.text_encoder.highways:
            carry = torch.sigmoid(inputs @ highway.carry.weight.t() + highway.carry.bias)
            transformed = (inputs @ highway.transform.weight.t() + highway.transform.bias).relu()
            inputs = carry * transformed + (1 - carry) * inputs
        texts.append(encode(model.text_encoder.encoder, inputs))
    return texts[0], texts[1]


def self_attention_reader(model: Any, batch: ReadingBatch) -> tuple[Tensor, Tensor]:
    matched = (joined(model, *read_texts(model, batch)) @ model.matching.weight.t() + model.matching.bias).relu()
    block = model.self_attention
    encoded = encode(block.encoder, matched)
    attended = encode(block.attention, encoded)
    seen = torch.cat([encoded, attended, encoded * attended], dim=1)
    matched = matched + (seen @ block.projection.weight.t() + block.projection.bias).relu()
    of_start = encode(model.span_scores.start_encoder, matched)
    of_end = encode(model.span_scores.end_encoder, torch.cat([matched, of_start], dim=1))
    return of_start @ model.span_scores.start.weight[0], of_end @ model.span_scores.end.weight[0]


def plain_reader(model: Any, batch: ReadingBatch) -> tuple[Tensor, Tensor]:
    both = joined(model, *read_texts(model, batch))
    modeled = encode(model.modeling_encoder, both)
    start = torch.cat([both, modeled], dim=1) @ model.start.weight[0]
    likely = (start.softmax(0) @ modeled).expand_as(modeled)
    of_end = encode(model.end_encoder, torch.cat([both, modeled, likely, modeled * likely], dim=1))
    return start, torch.cat([both, of_end], dim=1) @ model.end.weight[0]


@pytest.mark.parametrize(("settings", "reader"), [(SELF_ATTENTION, self_attention_reader), (PLAIN, plain_reader)])
@torch.no_grad()
def test_scores_are_those_of_the_paper(settings: dict[str, Any], reader: Any) -> None:
    model, vocabulary = make(settings)
    output = model(Reading().collate(examples(), vocabulary))
    for row, example in enumerate(examples()):
        start, end = reader(model, Reading().collate([example], vocabulary))
        torch.testing.assert_close(output.start_logits[row, : len(start)], start, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(output.end_logits[row, : len(end)], end, atol=1e-5, rtol=1e-5)
    assert output.mask.sum(1).tolist() == [len(example["token_starts"]) for example in examples()]


def test_loss_is_the_mean_of_both_negative_log_likelihoods() -> None:
    model, vocabulary = make(PLAIN)
    spans = [[[0, 0]], [[3, 5]], [[0, 0]]]
    batch = Reading().collate(
        [example | {"answer_spans": s} for example, s in zip(examples(), spans, strict=True)], vocabulary
    )
    output = model(batch)
    expected = 0.0
    for row, [(first, last)] in enumerate(spans):
        length = int(output.mask[row].sum())
        expected -= output.start_logits[row, :length].log_softmax(0)[first].item() / 3
        expected -= output.end_logits[row, :length].log_softmax(0)[last].item() / 3
    assert model.loss(output, batch).item() == pytest.approx(expected, rel=1e-5)
    for side in ("starts", "ends"):
        with pytest.raises(ValueError, match="no gold answers"):
            model.loss(output, dataclasses.replace(batch, **{side: None}))  # type: ignore[arg-type]


@torch.no_grad()
def test_the_score_of_no_answer_is_that_of_clark_and_gardner() -> None:
    score = NoAnswerScore(2, 3, 4)
    assert score.hidden.out_features == 80
    passage, (start, end), of_start, of_end = (
        torch.randn(1, 5, 4),
        torch.randn(2, 1, 5),
        torch.randn(1, 5, 2),
        torch.randn(1, 5, 3),
    )
    mask = torch.tensor([[True, True, True, True, False]])
    sums = [(scores[0, :4].softmax(0) @ vectors[0, :4]) for scores, vectors in ((start, of_start), (end, of_end))]
    attention = (passage[0, :4] @ score.pooling.score.weight[0]).softmax(0)
    hidden = (score.hidden.weight @ torch.cat([*sums, attention @ passage[0, :4]]) + score.hidden.bias).relu()
    expected = score.score.weight[0] @ hidden + score.score.bias
    torch.testing.assert_close(score(passage, mask, (start, of_start), (end, of_end)), expected)


@pytest.mark.parametrize("temperature", [1, 2.5])
def test_one_softmax_covers_every_span_and_no_answer(temperature: float) -> None:
    model, vocabulary = make(PLAIN, no_answer=True)
    model.temperature = temperature
    spans: list[list[list[int]]] = [[[0, 1]], [], [[0, 0]]]
    batch = Reading().collate(
        [{**each, "answer_spans": s} for each, s in zip(examples(), spans, strict=True)], vocabulary
    )
    output = model(batch)
    assert output.no_answer_logits is not None
    expected = 0.0
    predictions = model.decode(output, batch)
    for row, gold in enumerate(spans):
        length = int(output.mask[row].sum())
        scores = output.start_logits[row, :length, None] + output.end_logits[row, None, :length]
        everything = torch.cat([scores.flatten(), output.no_answer_logits[row : row + 1]]).log_softmax(0)
        expected -= everything[gold[0][0] * length + gold[0][1] if gold else -1].item() / 3
        allowed = [scores[i, j] for i in range(length) for j in range(i, min(length, i + 17))]
        shares = (torch.stack([*allowed, output.no_answer_logits[row]]) / temperature).softmax(0)
        assert predictions[row]["no_answer_probability"] == pytest.approx(shares[-1].item(), rel=1e-4)
        assert predictions[row]["best"][0]["probability"] == pytest.approx(shares[:-1].max().item(), rel=1e-4)
        score = (output.no_answer_logits[row] - max(allowed)).item()
        assert predictions[row]["no_answer_score"] == pytest.approx(score, abs=1e-5)
        assert (predictions[row]["answer"] == "") == (score > 0)
        model.threshold = torch.tensor(predictions[row]["no_answer_score"])
        assert model.decode(output, batch)[row]["answer"] != ""  # only a score above the threshold is no answer
        model.threshold -= 1e-3
        assert model.decode(output, batch)[row]["answer"] == ""
        model.threshold.zero_()
    assert model.loss(output, batch).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("settings", [PLAIN, SELF_ATTENTION])
def test_without_the_switch_no_tensor_is_new(settings: dict[str, Any]) -> None:
    plain, no_answer = (make(settings, no_answer=value)[0].state_dict() for value in (False, True))
    new = no_answer.keys() - plain.keys()
    assert plain.keys() < no_answer.keys()
    assert all(name == "threshold" or name.startswith("no_answer.") for name in new)
    assert all(torch.equal(plain[name], no_answer[name]) for name in plain)


def test_answers_are_pieces_of_the_passage() -> None:
    model, vocabulary = make(SELF_ATTENTION, max_answer_length=3, window=12)
    batch = Reading().collate(examples(), vocabulary)
    torch.manual_seed(0)
    mask = batch.passage.mask
    output = ReadingOutput(torch.randn(mask.shape), torch.randn(mask.shape), mask)
    for row, (prediction, example) in enumerate(zip(model.decode(output, batch), examples(), strict=True)):
        assert prediction.items() >= {k: v for k, v in prediction["best"][0].items() if k != "probability"}.items()
        probabilities = [answer["probability"] for answer in prediction["best"]]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1.00001
        for answer in prediction["best"]:
            assert example["passage"][answer["start_char"] : answer["end_char"]] == answer["answer"]
            assert example["token_starts"][answer["start"]] == answer["start_char"]
            assert example["token_ends"][answer["end"]] == answer["end_char"]
            assert 0 <= answer["end"] - answer["start"] < 3
        scores = output.start_logits[row].unsqueeze(1) + output.end_logits[row]
        length = len(example["token_starts"])
        allowed = {(i, j): scores[i, j].item() for i in range(length) for j in range(i, min(length, i + 3))}
        assert (prediction["start"], prediction["end"]) == max(allowed, key=lambda span: allowed[span])
        assert len(prediction["best"]) == min(5, len(allowed))


def test_without_a_limit_an_answer_can_be_the_whole_passage() -> None:
    model, vocabulary = make(PLAIN, max_answer_length=None, window=None)
    batch = Reading().collate(examples(), vocabulary)
    mask = batch.passage.mask
    length = int(mask[1].sum())
    start, end = torch.zeros(mask.shape), torch.zeros(mask.shape)
    start[:, 0], end[1, length - 1] = 30.0, 30.0
    assert length > 17
    prediction = model.decode(ReadingOutput(start, end, mask), batch)[1]
    assert prediction["answer"] == PASSAGES[1]
    assert prediction["best"][0]["probability"] == pytest.approx(1)


def test_a_window_holds_answers_and_their_context() -> None:
    with pytest.raises(pydantic.ValidationError, match="window 40; expected at least 68, 4 x max_answer_length"):
        make(PLAIN, window=40)
    with pytest.raises(pydantic.ValidationError, match="max_answer_length is null; expected a window of null too"):
        make(PLAIN, max_answer_length=None)


@pytest.mark.parametrize(
    ("settings", "count"), [(PLAIN, 2), ({**PLAIN, "num_highway_layers": 1}, 1), (SELF_ATTENTION, 0)]
)
def test_highway_layers_are_those_of_the_config_and_begin_by_letting_inputs_pass(
    settings: dict[str, Any], count: int
) -> None:
    state = make(settings)[0].state_dict()
    biases = [each.tolist() for name, each in state.items() if "highway" in name and name.endswith("carry.bias")]
    assert biases == [[-1.0] * 5] * count


def test_scores_of_starts_and_ends_begin_after_glorot() -> None:
    for settings, prefix in ((PLAIN, ""), (SELF_ATTENTION, "span_scores.")):
        state = make(settings)[0].state_dict()
        for name in ("start", "end"):
            weight = state[f"{prefix}{name}.weight"]
            bound = (6 / (weight.shape[1] + 1)) ** 0.5
            assert 0.7 * bound < weight.abs().max() <= bound
            assert f"{prefix}{name}.bias" not in state  # every softmax would cancel it
