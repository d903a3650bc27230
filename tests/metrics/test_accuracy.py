from __future__ import annotations

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


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        Accuracy().update([{"label": "1"}], [])
    with pytest.raises(ValueError, match="argument 2 is"):
        Accuracy(field="tags").update([{"tags": ["DT"]}], [{"tags": ["DT", "NN"]}])
