"""The predictor of answers, with a model that needs no training: what goes in, what comes out, and windows."""

import dataclasses
import random

import pytest
import torch

from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.extras.explain.saliency import findings
from elmo_tasks.models.reading import ReadingOutput
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.tasks.reading import ReadingBatch
from tests.predictors.stub_models import CapitalReader, make_reader

WINDOW = 12


class NoAnswerReader(CapitalReader):
    """As `CapitalReader`; the score of no answer is -2 where there is a token in capitals, and otherwise 3."""

    def __init__(self) -> None:
        super().__init__(no_answer=True)

    def forward(self, batch: ReadingBatch) -> ReadingOutput:
        scores = [-2.0 if any(map(str.isupper, tokens)) else 3.0 for tokens in batch.passage.texts]
        return dataclasses.replace(super().forward(batch), no_answer_logits=torch.tensor(scores))


@pytest.fixture
def predictor() -> ReadingPredictor:
    return make_reader()


def model(predictor: ReadingPredictor) -> CapitalReader:
    assert isinstance(predictor.model, CapitalReader)
    return predictor.model


def test_an_answer_and_its_place(predictor: ReadingPredictor) -> None:
    passage = "They saw that  ORLA\nOF BRUSK left, at last."
    (result,) = predictor.predict([{"passage": passage, "question": "Who left?", "id": 7}])
    assert list(result) == [
        "id", "question", "passage", "answer", "start_char", "end_char", "start", "end", "probability", "best"
    ]  # fmt: skip
    assert result["id"] == 7
    assert (result["question"], result["passage"]) == ("Who left?", passage)
    assert result["answer"] == "BRUSK" == passage[result["start_char"] : result["end_char"]]
    assert (result["start"], result["end"]) == (5, 5)
    assert [answer["answer"] for answer in result["best"]][:2] == ["BRUSK", "ORLA\nOF BRUSK"]
    assert len(result["best"]) == 5
    assert result["best"][0] == {key: result[key] for key in result["best"][0]}


def test_a_context_is_a_passage(predictor: ReadingPredictor) -> None:
    one, other = predictor.predict([{key: "ORLA left", "question": "Who?"} for key in ("passage", "context")])
    assert one == other


def test_a_passage_of_one_token(predictor: ReadingPredictor) -> None:
    (result,) = predictor.predict([{"passage": "Rain", "question": "What?"}])
    assert result["best"] == [
        {"answer": "Rain", "start_char": 0, "end_char": 4, "start": 0, "end": 0, "probability": 1.0}
    ]


def long_passage(length: int, seed: int) -> str:
    generator = random.Random(seed)
    return " ".join("A" * generator.randint(1, 9) if generator.random() < 0.2 else "so" for _ in range(length))


@pytest.mark.parametrize("length", [WINDOW, WINDOW + 1, 17, 18, 19, 24, 100, 1001])
def test_windows_find_what_the_whole_passage_would(predictor: ReadingPredictor, length: int) -> None:
    """The model's scores do not depend on context, so that windows must change nothing."""
    inputs = [{"passage": long_passage(size, length), "question": "Who?"} for size in (length, 5)]
    found = list(predictor.predict(inputs))
    assert max(shape[1] for shape in model(predictor).shapes) <= WINDOW
    assert all(batch == 1 or batch * longest <= 30 for batch, longest in model(predictor).shapes)
    model(predictor).window = 10_000
    assert found == list(predictor.predict(inputs))
    assert max(shape[1] for shape in model(predictor).shapes) == length
    model(predictor).window = None
    assert found == list(predictor.predict(inputs))


@pytest.mark.parametrize("length", [WINDOW, WINDOW + 1, 100])
def test_a_passage_has_an_answer_if_one_of_its_windows_has_one(predictor: ReadingPredictor, length: int) -> None:
    reader = NoAnswerReader()
    other = ReadingPredictor(reader, predictor.vocabulary, batch_tokens=30)
    fields = {"passage": " ".join(["so"] * (length - 1) + ["MILL"]), "question": "Who?"}
    (found,) = other([fields])
    assert (found["answer"], found["no_answer_score"]) == ("MILL", -10)  # 4 + 4, and -2 in the last window
    assert found["probability"] + found["no_answer_probability"] < 1
    assert reader.threshold is not None
    reader.threshold.fill_(-11)
    (nothing,) = other([fields])
    assert nothing["answer"] == ""
    assert nothing["probability"] == nothing["no_answer_probability"] == found["no_answer_probability"]
    assert [nothing[key] for key in ("start", "end", "start_char", "end_char")] == [None] * 4
    assert nothing["best"] == found["best"]


@pytest.mark.parametrize(
    ("length", "answer", "first"), [(12, 11, None), (13, 0, 0), (13, 12, 1), (40, 5, 0), (40, 20, 14), (40, 39, 28)]
)
def test_the_window_around_an_answer_is_explained(
    predictor: ReadingPredictor, length: int, answer: int, first: int | None
) -> None:
    passage = " ".join("MILL" if at == answer else "so" for at in range(length))
    (example,) = predictor.examples({"passage": passage, "question": "Who?"})
    (prediction,) = predictor.predictions([example])
    (found,) = findings(predictor, example, prediction)
    assert found.about == {"of": "MILL"} | ({} if first is None else {"first_token": first})
    assert len(found.example["token_starts"]) == len(found.example["token_ends"]) == WINDOW
    at = found.prediction["start"]
    assert at == found.prediction["end"] == answer - (first or 0)
    assert passage[found.example["token_starts"][at] : found.example["token_ends"][at]] == "MILL"


def test_every_token_has_context_on_both_sides(predictor: ReadingPredictor) -> None:
    passage = " ".join(f"t{number}" for number in range(50))
    (example,) = predictor.examples({"passage": passage, "question": "Middle"})
    captured: list[ReadingOutput] = []
    decode = predictor.model.decode
    predictor.model.decode = lambda output, batch, **settings: (  # type: ignore[method-assign]
        captured.append(output) or decode(output, batch, **settings)  # type: ignore[func-returns-value]
    )
    predictor.predictions([example])
    depths = captured[0].start_logits[0]  # of each token in the window that scores it
    assert depths[WINDOW // 4 : -WINDOW // 4].min() >= WINDOW // 4
    assert depths[:3].tolist() == depths.flip(0)[:3].tolist() == [0, 1, 2]
    assert {token for tokens in model(predictor).read for token in tokens} == set(passage.split())
    assert [tokens[0] for tokens in sorted(model(predictor).read, key=lambda each: int(each[0][1:]))] == [
        f"t{start}" for start in (0, 6, 12, 18, 24, 30, 36, 38)
    ]  # each half a window after the one before


def test_passages_of_all_lengths_share_batches(predictor: ReadingPredictor) -> None:
    sizes = [3, 40, 8, 13, 14, 200, 2, 14] * 5
    inputs = [
        {"passage": long_passage(size, number), "question": "Who?", "id": number} for number, size in enumerate(sizes)
    ]
    together = list(predictor.predict(inputs))
    assert [result["id"] for result in together] == list(range(len(sizes)))
    assert together == [result for fields in inputs for result in predictor.predict([fields])]


def test_the_keys_of_allennlp(predictor: ReadingPredictor) -> None:
    fields = {"passage": "They saw that  ORLA of Brusk left.", "question": "Who left?"}
    (result,) = AllenNlpPredictor(predictor)([fields])
    for end in ("span_start", "span_end"):
        logits, probabilities = torch.tensor(result.pop(f"{end}_logits")), result.pop(f"{end}_probs")
        assert logits.softmax(0).tolist() == pytest.approx(probabilities, abs=1e-5)
        assert len(probabilities) == 8
        assert probabilities.index(max(probabilities)) == 3
    assert result == {
        "best_span": [3, 3],
        "best_span_str": "ORLA",
        "question_tokens": ["Who", "left", "?"],
        "passage_tokens": ["They", "saw", "that", "ORLA", "of", "Brusk", "left", "."],
        "token_offsets": [[0, 4], [5, 8], [9, 13], [15, 19], [20, 22], [23, 28], [29, 33], [33, 34]],
    }
