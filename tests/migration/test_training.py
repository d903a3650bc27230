"""Which of AllenNLP's settings of the training are taken over, and under which names."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.migration.params import Params
from elmo_tasks.migration.training import convert_data_loader, convert_trainer
from elmo_tasks.tasks import Tagging

BUCKETS = {"type": "bucket", "sorting_keys": ["a"], "batch_size": 7}
ALPHA = {"type": "l2", "alpha": 1}
ELMO_PENALTY = ["scalar_parameters", ALPHA]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"batch_size": 32}),
        ({"iterator": {"batch_size": 80, "padding_noise": 0.0}}, {"batch_size": 80, "padding_noise": 0.0}),
        ({"data_loader": {"shuffle": True, "batch_sampler": BUCKETS}}, {"batch_size": 7}),
        ({"data_loader": {"batch_size": 8}, "iterator": {"batch_size": 9}}, {"batch_size": 8}),
        ({"iterator": {"batch_size": 5, "padding_noise": 0.25}}, {"batch_size": 5, "padding_noise": 0.25}),
        ({"iterator": {"batch_size": 5, "padding_noise": 1}}, {"batch_size": 5}),
        ({"iterator": {"batch_size": 5, "padding_noise": -0.1}}, {"batch_size": 5}),
        ({"iterator": {"batch_size": 5, "padding_noise": "0.1"}}, {"batch_size": 5}),
    ],
)
def test_batches(given: dict[str, Any], expected: dict[str, Any]) -> None:
    params = Params(given)
    assert convert_data_loader(params) == expected
    if len(given) < 2:
        assert params.unread() == []


def trainer(params: Params | None = None, **settings: Any) -> dict[str, Any]:
    return convert_trainer(params or Params({"trainer": settings}), Tagging("BIOUL").build_metric())[0]


def test_settings_of_the_same_name_are_kept_and_those_that_mean_nothing_count_as_read() -> None:
    kept: dict[str, Any] = {"num_epochs": 9, "patience": 2, "grad_norm": 1.5, "grad_clipping": 3.0}
    kept["num_gradient_accumulation_steps"] = 4
    assert trainer(**kept) == {**kept, "validation_metric": "-loss"}
    assert trainer() == {"num_epochs": 20, "validation_metric": "-loss"}
    ignored = ("type", "cuda_device", "summary_interval", "histogram_interval", "shuffle", "no_grad")
    above = ("serialization_dir", "evaluate_on_test", "numpy_seed", "pytorch_seed", "random_seed", "vocabulary")
    optimizer = {"type": "adam", "lr": 0.1, "warmup": 3}
    settings = {**dict.fromkeys(ignored, 1), "checkpointer": 1, "optimizer": optimizer}
    params = Params({"trainer": settings, **dict.fromkeys(above, 1), "distributed": 1})
    trainer(params)
    assert params.unread() == ["distributed", "trainer.checkpointer", "trainer.optimizer.warmup"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("+f1-measure-overall", "+f1"),
        ("-f1", "-f1"),
        ("-loss", "-loss"),
        ("+span_acc", "+f1"),  # the main score
        ("f1", "+f1"),
        ("=f1", "+f1"),
        ("-accuracy", "-accuracy"),
    ],
)
def test_the_name_of_the_score(given: str, expected: str) -> None:
    assert trainer(validation_metric=given)["validation_metric"] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("adam", {"type": "adam"}),
        ("dense_sparse_adam", {"type": "adam"}),
        ("bert_adam", None),
        (None, None),
        (3, None),
        ({"lr": 0.1}, {"type": "adam", "lr": 0.1}),
        ({"type": "adam_w", "lr": 0.1, "amsgrad": True, "parameter_groups": []}, {"type": "adamw", "lr": 0.1}),
        ({"type": "huggingface_adamw", "weight_decay": 0.2}, {"type": "adamw", "weight_decay": 0.2}),
        ({"type": "bert_adam", "lr": 0.1}, None),
    ],
)
def test_the_optimizer_with_the_settings_that_torch_has(given: Any, expected: dict[str, Any] | None) -> None:
    assert trainer(optimizer=given).get("optimizer") == expected


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"trainer": {"optimizer": {"type": "bert_adam"}}}, "the optimizer is not available; the default one is used"),
        (
            {"trainer": {"validation_metric": "+span_acc"}},
            "the validation metric '+span_acc' is not available; '+f1' is used",
        ),
        ({"model": {"regularizer": [ELMO_PENALTY, ["w", ALPHA]]}}, "1 regularizer(s) are not imported"),
        ({"trainer": {"optimizer": "adam", "validation_metric": "+f1-measure-overall"}}, None),
    ],
)
def test_what_is_not_taken_over_is_noted(settings: dict[str, Any], note: str | None) -> None:
    _, notes = convert_trainer(Params(settings), Tagging("BIOUL").build_metric())
    assert len(notes) == (note is not None)
    assert all(note and found.startswith(note) for found in notes)


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ([["scalar_parameters", ALPHA]], True),
        ([["weight", ALPHA], [".*scalar_parameters.*", ALPHA]], True),
        ({"regexes": [["scalar_parameters", ALPHA]]}, True),
        ({}, False),
        ([["weight", ALPHA]], False),
        ([["scalar_parameters", {"type": "l1", "alpha": 1}]], False),
        ([["scalar_parameters", {"type": "l2", "alpha": "1"}]], False),
        ("scalar_parameters", False),
    ],
)
def test_the_penalty_on_the_weights_of_elmo_s_mixes(given: Any, is_taken: bool) -> None:
    config = trainer(Params({"model": {"regularizer": given}}))
    expected = [{"parameters": r"elmo\.mixes\..*weights", "l2": 1.0}] if is_taken else None
    assert config.get("regularizers") == expected
