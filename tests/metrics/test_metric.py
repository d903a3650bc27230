from __future__ import annotations

import numpy as np

from elmo_tasks.metrics.metric import f1_scores, quotient


def test_what_is_divided_by_nothing_is_zero() -> None:
    whole = np.array([0.0, 4.0] * 50)
    for _ in range(3):
        np.full(100, 7.0)  # whatever the memory held before
        assert quotient(np.ones(100), whole).tolist() == [0.0, 0.25] * 50


def test_scores_of_many_samples_at_once() -> None:
    scores = f1_scores([1, 0, 2], [2, 0, 2], [4, 3, 2])
    assert {name: values.round(3).tolist() for name, values in scores.items()} == {
        "f1": [33.333, 0, 100],
        "precision": [50, 0, 100],
        "recall": [25, 0, 100],
    }
