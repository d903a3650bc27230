from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.metrics.accuracy import Accuracy


def test_one_label_an_example() -> None:
    metric = Accuracy()
    metric.update([{"label": "good"}, {"label": "bad"}], [{"label": "good"}, {"label": "fair"}])
    metric.update([{"label": "fair"}], [{"label": "fair"}])
    assert metric.compute() == {"accuracy": pytest.approx(200 / 3)}
    metric.reset()
    assert metric.compute() == {"accuracy": 0}


def test_one_label_a_token() -> None:
    metric = Accuracy(field="tags")
    metric.update([{"tags": ["DT", "NN", "NN"]}, {"tags": ["UH"]}], [{"tags": ["DT", "NN", "VB"]}, {"tags": ["UH"]}])
    assert metric.compute() == {"accuracy": 75}


@pytest.mark.parametrize(
    ("labels", "share"), [(["a", "b", "a"], 200 / 3), ([["N", "V"], ["N", "N"], ["V"]], 60.0), ([], 0.0)]
)
def test_what_the_most_frequent_label_scores(labels: list[Any], share: float) -> None:
    assert Accuracy().floor([{"label": each} for each in labels]) == pytest.approx(share)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        Accuracy().update([{"label": "1"}], [])
    with pytest.raises(ValueError, match="argument 2 is"):
        Accuracy(field="tags").update([{"tags": ["DT"]}], [{"tags": ["DT", "NN"]}])
