"""What a cross-validation has found, in words, and what more examples would give."""

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.extras.repeats.report import growth_of, headline, outlook
from elmo_tasks.runs.experiment_config import ExperimentConfig


def test_what_more_examples_would_give() -> None:
    """The error has fallen from 40 to 10 with two doublings, so it falls to 5 with the next."""
    config = load_config("small/classification", ExperimentConfig)
    growth = growth_of({25: -30.0, 50: -13.0}, 90.0, 100, config)
    assert growth
    assert growth["scores"] == {"25": 60.0, "50": 77.0, "100": 90.0}
    assert growth["points_for_twice_as_many"] == pytest.approx(5)
    flat = growth_of({25: 0.0, 50: 0.0}, 90.0, 100, config)
    assert flat
    assert flat["points_for_twice_as_many"] == 0
    worse = growth_of({22: -5.7, 44: 2.3}, 28.4, 88, config)  # than half of them, and better than a quarter
    assert worse
    assert worse["points_for_twice_as_many"] is None
    assert outlook({"examples": 88, "growth": worse}).startswith("it is not clear whether more examples would help")
    by_loss = load_config("small/classification", ExperimentConfig, ["trainer.validation_metric=-loss"])
    falling = growth_of({25: 3.0}, 1.0, 100, by_loss)
    assert falling
    assert falling["points_for_twice_as_many"] == pytest.approx(0.5)
    rising = growth_of({25: 3.0, 50: -0.5}, 1.0, 100, by_loss)
    assert rising
    assert rising["points_for_twice_as_many"] is None
    assert growth_of({}, 90.0, 100, config) is None
    assert growth_of({50: -1.0}, None, 100, config) is None


def test_the_score_and_the_outlook_in_words() -> None:
    score = {"metric": "accuracy", "score": 91.25, "interval": {"low": 88.04, "high": 94}, "examples": 1200}
    score |= {"unknown_start": None}
    text = (
        "accuracy 91.2 (95 % interval 88.0 to 94.0), each of 1,200 examples predicted by a model that had not seen it"
    )
    assert headline({**score, "most_frequent_label": None}) == text
    assert headline({**score, "most_frequent_label": 50}) == f"{text}; always giving the most frequent label has 50.0"
    assert headline({**score, "most_frequent_label": None, "unknown_start": "old"}) == f"{text}, if old had not"
    for floor, is_better in ((91.2, True), (91.25, False), (95, False)):
        said = headline({**score, "most_frequent_label": floor})
        assert said.endswith(": the model is not better than that") != is_better
    growth = {"metric": "accuracy", "scores": {"30": 60.0, "60": 64.0, "120": 67.0}, "points_for_twice_as_many": 3.5}
    assert outlook({"examples": 120, "growth": growth}) == "120 more examples would give about 4 points"
    for points, given in ((0.99, "less than a point"), (1, "about 1 point")):
        few = {"examples": 1200, "growth": {**growth, "points_for_twice_as_many": points}}
        assert outlook(few) == f"1,200 more examples would give {given}"
    assert outlook({"examples": 12, "growth": None}) == ""
