"""The settings of AllenNLP's training that mean something here."""

from __future__ import annotations

from typing import Any

from elmo_tasks.metrics import Metric
from elmo_tasks.migration.params import Params
from elmo_tasks.training.optimizers import OptimizerConfig

_OPTIMIZERS = {"dense_sparse_adam": "adam", "adam_w": "adamw", "huggingface_adamw": "adamw"}
_METRICS = {  # AllenNLP's names
    "f1-measure-overall": "f1", "coref_f1": "conll_f1", "start_acc": "exact_match", "em": "exact_match",
}  # fmt: skip
_DEFAULT_BATCH = 32
# What makes no difference to a trained model, or has another name here.
_IGNORED = ("serialization_dir", "evaluate_on_test", "numpy_seed", "pytorch_seed", "random_seed", "vocabulary")


def convert_data_loader(params: Params) -> dict[str, Any]:
    """The batches: `data_loader`, or `iterator` until 0.9."""
    loader = params.part("data_loader" if "data_loader" in params else "iterator")
    sampler = loader.part("batch_sampler") if "batch_sampler" in loader else loader
    config: dict[str, Any] = {"batch_size": sampler.get("batch_size", None) or _DEFAULT_BATCH}
    loader.ignore("type", "sorting_keys", "shuffle")
    sampler.ignore("type", "sorting_keys")
    noise = sampler.get("padding_noise", None)
    if isinstance(noise, float | int) and 0 <= noise < 1:
        config["padding_noise"] = float(noise)
    return config


def convert_trainer(params: Params, metric: Metric) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The trainer, and what is not taken over, a line each.

    `metric` is the model's here: a name that it does not have becomes its main score.
    """
    trainer, notes = params.part("trainer"), []
    config: dict[str, Any] = {"num_epochs": trainer.get("num_epochs", 20)}
    for key in ("patience", "grad_norm", "grad_clipping", "num_gradient_accumulation_steps"):
        if (value := trainer.get(key, None)) is not None:
            config[key] = value
    trainer.ignore("type", "cuda_device", "summary_interval", "histogram_interval", "shuffle", "no_grad")
    params.ignore(*_IGNORED)
    given = str(trainer.get("validation_metric", "-loss"))
    config["validation_metric"] = chosen = _metric_name(given, metric)
    if chosen[1:] not in (given[1:], _METRICS.get(given[1:])):
        notes.append(f"the validation metric {given!r} is not available; {chosen!r} is used")
    if optimizer := _optimizer(trainer):
        config["optimizer"] = optimizer
    elif trainer.get("optimizer", None) is not None:
        notes.append("the optimizer is not available; the default one is used")
    regularizers, num_others = _regularizers(params)
    if regularizers:
        config["regularizers"] = regularizers
    if num_others:
        notes.append(f"{num_others} regularizer(s) are not imported, only that of the weights of ELMo's mixes")
    return config, tuple(notes)


def _metric_name(given: str, metric: Metric) -> str:
    sign, name = given[:1], _METRICS.get(given[1:], given[1:])
    return sign + name if sign in ("+", "-") and name in {*metric.compute(), "loss"} else f"+{metric.main}"


def _optimizer(trainer: Params) -> dict[str, Any] | None:
    """AllenNLP's optimizer, with those of its settings that torch's has; None for one that is not there."""
    given = trainer.get("optimizer", None)
    if isinstance(given, str):
        given = {"type": given}
    if not isinstance(given, dict):
        return None
    part = trainer.part("optimizer") if isinstance(trainer.get("optimizer"), dict) else Params(given)
    name = str(part.get("type", "adam"))
    kind = OptimizerConfig.choices().get(_OPTIMIZERS.get(name, name))
    if kind is None:
        return None
    keys = [key for key in part.keys() if key in kind.model_fields and key not in ("type", "parameter_groups")]  # noqa: SIM118
    return {"type": _OPTIMIZERS.get(name, name), **{key: part.get(key) for key in keys}}


def _regularizers(params: Params) -> tuple[list[dict[str, Any]], int]:
    """The penalty on the weights of ELMo's mixes, and the number of others: they name parameters that differ here."""
    model = params.part("model")
    given = model.get("regularizer", None)
    pairs = given.get("regexes", []) if isinstance(given, dict) else given if isinstance(given, list) else []
    for pair in pairs:
        match pair:
            case [str(pattern), {"type": "l2", "alpha": int() | float() as alpha}] if "scalar_parameters" in pattern:
                return [{"parameters": r"elmo\.mixes\..*weights", "l2": float(alpha)}], len(pairs) - 1
    return [], len(pairs)
