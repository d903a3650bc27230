from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers.squad import SquadConfig
from elmo_tasks.metrics.squad import SquadScores, normalize_answer


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


WORDS = st.lists(st.sampled_from(["red", "Mill", "the", "a", "-", "blue", "Blue."]), max_size=6).map(" ".join)


@settings(deadline=None)
@given(answer=WORDS, gold=st.lists(WORDS, min_size=1, max_size=3))
def test_f1_by_pairing_words_one_by_one(answer: str, gold: list[str]) -> None:
    def words(text: str) -> list[str]:
        bare = ("".join(letter for letter in word if letter not in "-.").lower() for word in text.split())
        return [word for word in bare if word not in ("", "the", "a")]

    expected = []
    for text in gold:
        left, common = words(text), 0
        for word in words(answer):
            if word in left:
                left.remove(word)
                common += 1
        expected.append(200 * common / max(1, len(words(text)) + len(words(answer))))
    exact_match, f1 = score(answer, *gold)
    assert f1 == pytest.approx(max(expected))
    assert exact_match == 100 * (words(answer) in map(words, gold))


@pytest.mark.parametrize("name", ["squad_dev_predictions_match_lstm.json", "squad_dev_predictions_logreg.json"])
def test_evaluate_v1_1_s_verdict_is_reproduced_to_the_printed_digit(data_folder: Path, name: str) -> None:
    expected = json.loads((data_folder / "scorer_cases" / "squad_expected.json").read_text())[name]
    predictions = json.loads((data_folder / "scorer_cases" / name).read_text())
    examples = SquadConfig().build().read(data_folder / "squad" / "dev-v1.1.json").select_columns(["id", "answers"])
    metric = SquadScores()
    metric.update([{"answer": predictions.get(number)} for number in examples["id"]], examples)
    assert metric.compute() == expected
