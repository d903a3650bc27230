import atexit
import logging
from collections.abc import Callable
from typing import Any

import accelerate
import pytest
import torch
from pydantic import ValidationError

from elmo_tasks.errors import ConfigError
from elmo_tasks.training import processes
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.trainer_config import TrainerConfig, product_type


def trainer(**values: Any) -> TrainerConfig:
    return TrainerConfig.model_validate({"num_epochs": 1, "validation_metric": "+f1", **values})


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("f1", "expected '+f1' if a higher value is better, or '-f1' if a lower one is; got 'f1'"),
        ("loss", "expected '+loss' if a higher value is better, or '-loss' if a lower one is; got 'loss'"),
        ("+", "expected '+f1' if"),
    ],
)
def test_a_validation_metric_needs_a_direction(metric: str, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        trainer(validation_metric=metric)
    assert message in str(error.value)


@pytest.mark.parametrize("available", [False, True])
def test_devices(available: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert trainer(device="cpu").torch_device().type == "cpu"
    assert trainer().torch_device().type == ("cuda" if available else "cpu")
    if available:
        assert trainer(device="cuda").torch_device().type == "cuda"
    else:
        for use in (TrainerConfig.torch_device, start_accelerator):
            with pytest.raises(ConfigError, match="'cuda' needs a GPU"):
                use(trainer(device="cuda"))


@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR])
def test_only_the_first_process_logs_more_than_warnings(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    package = logging.getLogger("elmo_tasks")
    before = package.level
    try:
        package.setLevel(level)
        start_accelerator(trainer(device="cpu"))
        assert package.level == level
        monkeypatch.setattr(accelerate.Accelerator, "is_main_process", False)
        start_accelerator(trainer(device="cpu"))
        assert package.level == max(level, logging.WARNING)
    finally:
        package.setLevel(before)


def test_runs_of_one_process_may_differ_in_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen in ("float32", "bfloat16", "bfloat16", "float32"):
        expected = getattr(torch, chosen)
        assert start_accelerator(trainer(precision=chosen)).factor_type == expected
        with monkeypatch.context() as patch:  # the type that "auto" finds to be faster
            patch.setattr("elmo_tasks.training.trainer_config.product_type", lambda *_, found=expected: found)
            assert start_accelerator(trainer(precision="auto")).factor_type == expected


def test_processes_are_told_that_some_parameters_may_get_no_gradient_only_where_some_are_frozen() -> None:
    found = []
    for entries in ((), ({"parameters": "bilm", "epoch": 2},)):
        handler = start_accelerator(trainer(device="cpu", unfreeze=entries)).ddp_handler
        assert handler is not None
        found.append(handler.find_unused_parameters)
    assert found == [False, True]


def test_one_of_several_processes_leaves_their_group_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_end: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_the_end.append)
    start_accelerator(trainer(device="cpu"))
    assert at_the_end == []
    monkeypatch.setattr(accelerate.Accelerator, "num_processes", 2)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "gather_object", lambda own: [*own, "torch.bfloat16"])
        with pytest.raises(ConfigError, match="'auto' differs between the processes; set float32 or bfloat16"):
            start_accelerator(trainer(device="cpu"))
    start_accelerator(trainer(device="cpu"))
    (leave,) = at_the_end
    leave()  # there is no group
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    leave()
    assert not torch.distributed.is_initialized()


CPU = torch.device("cpu")


def seconds(monkeypatch: pytest.MonkeyPatch, *, float32: list[float], bfloat16: list[float]) -> None:
    """Lets the products take these times, in turn."""
    times, now = {torch.float32: iter(float32), torch.bfloat16: iter(bfloat16)}, [1e3]

    def multiply(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        now.append(now[-1] + next(times[one.dtype]))
        return torch.zeros(1, 1)

    monkeypatch.setattr(torch.Tensor, "__matmul__", multiply)
    monkeypatch.setattr("time.perf_counter", lambda: now[-1])


@pytest.mark.parametrize(("taken", "expected"), [(0.7, torch.bfloat16), (0.75, torch.float32), (10.0, torch.float32)])
def test_auto_is_bfloat16_where_it_is_clearly_faster(
    monkeypatch: pytest.MonkeyPatch, taken: float, expected: torch.dtype
) -> None:
    seconds(monkeypatch, float32=[1.0] * 5, bfloat16=[taken] * 5)
    assert product_type("auto", CPU) == expected


def test_one_slow_product_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, float32=[1.0, 9.0, 9.0, 9.0, 9.0], bfloat16=[9.0, 9.0, 0.9, 9.0, 9.0])
    assert product_type("auto", CPU) == torch.float32


def test_a_type_that_is_named_is_taken_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, float32=[], bfloat16=[])
    assert product_type("float32", CPU) == torch.float32
    assert product_type("bfloat16", CPU) == torch.bfloat16
