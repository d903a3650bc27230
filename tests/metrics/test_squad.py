import json
import math
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from elmo_tasks.metrics.squad import Squad2Scores, SquadScores, normalize_answer


def score(answer: str | None, *gold: str) -> tuple[float, float]:
    metric = SquadScores()
    metric.update([{"answer": answer}], [{"answers": list(gold)}])
    scores = metric.compute()
    return scores["exact_match"], scores["f1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Tall  Tower", "tall tower"),
        ("a cat, an owl and the theatre", "cat owl and theatre"),
        ("(A) Day-long \u201cwalk\u201d!", "daylong \u201cwalk\u201d"),  # punctuation is that of ASCII
        ("rock'n'roll", "rocknroll"),
        ("A.", ""),
        ("\tten\u00a0miles\n", "ten miles"),
        ("l'a\u00e9ro-a", "la\u00e9roa"),
        ("\u00e9 the \u00e9the", "\u00e9 \u00e9the"),  # borders of words are those of Unicode
        ("", ""),
    ],
)
def test_normalization(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "exact_match", "f1"),
    [
        ("the red mill", ["Red Mill."], 100, 100),
        ("red", ["red mill"], 0, 200 / 3),
        ("red mill by the river", ["red mill"], 0, 200 / 3),
        ("mill red", ["red mill"], 0, 100),
        ("go go", ["go"], 0, 200 / 3),  # words count as often as they occur
        ("blue", ["red mill"], 0, 0),
        ("red", ["a mill", "the red one", "red mill"], 0, 200 / 3),
        ("red", ["red mill", "RED", "mill"], 100, 100),
        ("the", ["The."], 100, 0),  # no word is left
        ("", ["red"], 0, 0),
        (None, ["the"], 0, 0),
    ],
)
def test_scores_counted_by_hand(answer: str | None, gold: list[str], exact_match: float, f1: float) -> None:
    assert score(answer, *gold) == pytest.approx((exact_match, f1))


@pytest.mark.parametrize("name", ["squad_dev_predictions_match_lstm.json", "squad_dev_predictions_logreg.json"])
def test_evaluate_v1_1_s_verdict_is_reproduced_to_the_printed_digit(data_folder: Path, name: str) -> None:
    expected = json.loads((data_folder / "scorer_cases" / "squad_expected.json").read_text())[name]
    predictions = json.loads((data_folder / "scorer_cases" / name).read_text())
    articles = json.loads((data_folder / "squad" / "dev-v1.1.json").read_text(encoding="utf-8"))["data"]
    metric = SquadScores()
    for question in (each for article in articles for paragraph in article["paragraphs"] for each in paragraph["qas"]):
        answers = [answer["text"] for answer in question["answers"]]
        metric.update([{"answer": predictions.get(question["id"])}], [{"answers": answers}])
    assert metric.compute() == expected


class Predicted(NamedTuple):
    """A question with its gold answers, the best span's text and the no-answer score."""

    gold: list[str]
    text: str
    no_answer_score: float

    def pair(self, threshold: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """The prediction and its example, as a model with this threshold gives them."""
        answer = "" if self.no_answer_score > threshold else self.text
        prediction = {"answer": answer, "no_answer_score": self.no_answer_score, "best_answer": self.text}
        return prediction, {"answers": self.gold}


def made_file(number: int) -> tuple[list[Predicted], float]:
    """Predictions for 5 to 40 questions and a threshold: all right, all wrong, no answers, or mixed; with ties."""
    draw = random.Random(f"squad2 {number}")
    kinds = ("right", "wrong", "empty", "mixed")
    words = ("the", "red", "Mill,", "a", "old", "bridge", "1912", "rock'n'roll", "An", "lake")

    def text() -> str:
        return " ".join(draw.choice(words) for _ in range(draw.randint(1, 4)))

    rows = []
    for _ in range(draw.randint(5, 40)):
        is_unanswerable = draw.random() < (0.5, 0.3, 0, 1, 0.5)[number // 4]
        gold = [] if is_unanswerable else [f"{text()} tarn" for _ in range(draw.randint(1, 3))]
        right, wrong = draw.choice(gold) if gold else "", text()
        kind = draw.choice((*kinds, "mixed")) if number % 4 == 3 else kinds[number % 4]
        predicted = {"right": right, "wrong": wrong, "empty": "", "mixed": f"{right} {wrong}"}[kind]
        score = draw.uniform(0, 1) if number % 3 else draw.uniform(-8, 8)
        rows.append(Predicted(gold, predicted, round(score, 1 + number % 3)))
    return rows, (-0.5, 0.5, 1.0)[number % 3]


def test_the_threshold_with_the_best_f1_is_between_two_scores() -> None:
    metric = Squad2Scores()
    rows = [Predicted(["red"], "red", -2.0), Predicted(["mill"], "red mill", 0.5), Predicted([], "red", 1.5)]
    for chosen, expected in ((rows, 1.0), (rows[:2], 0.5), (rows[2:], -math.inf)):
        metric.reset()
        metric.update(*zip(*(row.pair(0.0) for row in chosen), strict=True))
        assert metric.choose_threshold() == expected
        scores = metric.compute()
        assert scores["f1"] == scores["best_f1"]
        metric.reset()
        metric.update(*zip(*(row.pair(expected) for row in chosen), strict=True))
        assert metric.compute() == scores


def test_the_floor_is_the_score_of_a_model_that_answers_nothing() -> None:
    gold = [["red"], [], ["mill", "a mill"], ["lake"]]
    metric = Squad2Scores()
    metric.update([{"answer": ""}] * 4, [{"answers": answers} for answers in gold])
    assert metric.floor({"answers": answers} for answers in gold) == metric.compute()["f1"] == 25
    assert metric.floor([]) == 0


VERDICTS = json.loads(Path(__file__).with_name("squad2_verdicts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(20))
def test_evaluate_v2_0_s_verdict_is_reproduced_to_the_printed_digit(number: int) -> None:
    """The verdicts are those of the script on the files of `made_file`."""
    rows, threshold = made_file(number)
    metric = Squad2Scores()
    metric.update(*zip(*(row.pair(threshold) for row in rows), strict=True))
    found = metric.compute()
    expected = dict(zip(VERDICTS["names"], VERDICTS["files"][number], strict=True))
    assert list(found) == list(expected)
    assert found == pytest.approx({name: value or 0 for name, value in expected.items()}, rel=1e-14)
