import concurrent.futures
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.elmo.fast import Precision, products, threads
from elmo_tasks.elmo.fast.bilm import plan_groups
from elmo_tasks.elmo.fast.products import (
    HalfProduct,
    OneDnnProduct,
    PackedProduct,
    PlainInt8Product,
    PlainProduct,
    build_product,
)
from elmo_tasks.elmo.fast.recurrence import FastStack, blocks_of_steps, compiled
from elmo_tasks.elmo.fast.threads import run_together
from elmo_tasks.elmo.fast.words import WordEncoder, WordVectors
from elmo_tasks.elmo.lstm import LstmStack
from elmo_tasks.elmo.options import LstmOptions
from elmo_tasks.errors import ConfigError

CPU = torch.device("cpu")
TOLERANCES: dict[Precision, float] = {"float32": 1e-5, "bfloat16": 0.03, "int8": 0.03}


def random_tensor(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def halves(*shape: int) -> Tensor:
    """Random numbers that half precision holds exactly."""
    return random_tensor(*shape).half().float()


def every_way() -> list[tuple[Precision, products.Way]]:
    return [
        (precision, way)
        for precision, plain in products._PLAIN.items()
        for way in (*products._FASTER[precision], plain)
        if way is plain or products._works(way, precision)
    ]


@pytest.mark.parametrize(("precision", "way"), every_way())
@pytest.mark.parametrize("rows", [1, 4, 129])
def test_products(precision: Precision, way: products.Way, rows: int) -> None:
    weight, bias, inputs = halves(40, 30), random_tensor(40, seed=1), random_tensor(rows, 30, seed=2)
    start = random_tensor(rows, 40, seed=3)
    bias[0] = 0.0
    product = way(weight, bias)
    scale = float((inputs @ weight.t()).abs().max())
    close: dict[str, Any] = {"rtol": 0.0, "atol": TOLERANCES[precision] * scale}
    torch.testing.assert_close(product(inputs), inputs @ weight.t() + bias, **close)
    added = product.add(product.start(inputs), inputs)
    torch.testing.assert_close(added, 2 * (inputs @ weight.t()) + bias, **close)
    if precision != "bfloat16":
        torch.testing.assert_close(product.add(start, inputs), inputs @ weight.t() + start, **close)
    assert product(inputs).dtype == added.dtype == torch.float32


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="torch compiles no TorchScript there")
@pytest.mark.parametrize(("precision", "way"), every_way())
@pytest.mark.parametrize("projection_dim", [6, 10])
def test_a_stack_can_be_compiled_with_every_product(
    precision: Precision, way: products.Way, projection_dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it comes to then, `test_accuracy_of_each_precision` says."""
    monkeypatch.setattr(products, "_FASTER", {precision: (way,)})
    options = LstmOptions(dim=10, projection_dim=projection_dim, n_layers=2, cell_clip=None, proj_clip=None)
    stack = LstmStack(options).requires_grad_(False).half().float()
    fast = FastStack(stack, torch.ones(1, projection_dim), precision)
    assert isinstance(compiled(fast), torch.jit.ScriptModule)


def test_steps_that_cannot_be_compiled_run_in_python(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")

    def script(module: nn.Module) -> None:
        raise RuntimeError("no longer supported")

    monkeypatch.setattr(torch.jit, "script", script)
    product = build_product(random_tensor(8, 2), None, "float32")
    assert compiled(product) is product
    reason = "since torch cannot compile them here (no longer supported)"
    assert caplog.messages == [f"recurrent steps run in Python, {reason}"]


SHAPES = """
import torch
from elmo_tasks.elmo.fast.products import build_product
products = [build_product(torch.ones(8, size), torch.ones(8), "float32") for size in (8, 16, 24, 32, 40)]
others = [(rows, product) for rows in range(2, 129) for product in products]
for rows, product in [(1, products[0]), *others, (1, products[0]), (1, products[0])]:
    print("rows", rows, flush=True)
    product.start(torch.ones(rows, product._weight.shape[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not isinstance(build_product(torch.ones(1, 1), None, "float32"), PackedProduct), reason="no oneDNN")
def test_code_for_few_shapes_is_kept() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ONEDNN_")}
    command, environment = [sys.executable, "-c", SHAPES], environment | {"ONEDNN_VERBOSE": "2"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    products_of_one_row = [part.partition("rows")[0] for part in run.stdout.split("rows 1\n")[1:]]
    found = ["hit" if "cache_hit" in part and "cache_miss" not in part else "miss" for part in products_of_one_row]
    assert found == ["miss", "miss", "hit"]  # the first, the one after 635 other shapes, and the one right after that


HAS_FBGEMM = any(way is HalfProduct for _, way in every_way())


@pytest.mark.skipif(not HAS_FBGEMM, reason="no FBGEMM")
def test_only_a_matrix_that_half_precision_holds_is_kept_in_it() -> None:
    weight = halves(600, 30)
    weight[0, :3] = torch.tensor([65504.0, 2.0**-24, -(2.0**-14)])  # the largest, the smallest and a normal one
    inputs = torch.eye(30)
    product = build_product(weight, None, "float32", few_rows=True)
    assert isinstance(product, HalfProduct)
    assert torch.equal(product(inputs), weight.t())  # nothing is rounded
    assert not isinstance(build_product(weight, None, "float32"), HalfProduct)
    for other in (65536.0, 2.0**-25, 1.0 + 2.0**-11, float("nan")):
        changed = weight.clone()
        changed[-1, -1] = other
        assert not isinstance(build_product(changed, None, "float32", few_rows=True), HalfProduct)


def test_int8_is_the_same_with_and_without_its_kernel() -> None:
    weight, bias, inputs = random_tensor(40, 300), random_tensor(40, seed=1), random_tensor(20, 300, seed=2)
    inputs[3] = 0.0
    torch.testing.assert_close(build_product(weight, bias, "int8")(inputs), PlainInt8Product(weight, bias)(inputs))


class Changed(PlainProduct):
    """A way with a fault, or a missing one."""

    def __init__(
        self, weight: Tensor, bias: Tensor, dtype: torch.dtype, change: Callable[[Tensor], Tensor] | None
    ) -> None:
        super().__init__(weight, bias, dtype)
        if change is None:
            raise AttributeError("no such operator")
        self._change = change

    def add(self, start: Tensor, inputs: Tensor) -> Tensor:
        return self._change(super().add(start, inputs))


@pytest.mark.parametrize(
    ("precision", "change", "is_used"),
    [
        ("float32", lambda sums: sums, True),
        ("float32", lambda sums: sums.clamp(max=10.0), False),
        ("float32", lambda sums: 1.001 * sums, False),
        ("bfloat16", lambda sums: 1.01 * sums, True),
        ("bfloat16", lambda sums: 1.03 * sums, False),
        ("bfloat16", lambda sums: sums + 0.1, True),
        ("bfloat16", lambda sums: sums + 0.5, False),
        ("float32", None, None),
    ],
)
def test_a_way_may_differ_by_rounding_and_no_more(
    precision: Precision,
    change: Callable[[Tensor], Tensor] | None,
    is_used: bool | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    way = functools.partial(Changed, dtype=getattr(torch, precision), change=change)
    monkeypatch.setattr(products, "_FASTER", {precision: (way,)})
    product = build_product(random_tensor(40, 30), None, precision)
    assert type(product) is (Changed if is_used else PlainProduct)
    assert ("gives wrong results" in caplog.text) is (is_used is False)


class Counting(OneDnnProduct):
    """Remembers numbers of rows, and gives them back as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def _start(self, inputs: Tensor) -> Tensor:
        self.seen.append(len(inputs))
        return inputs

    def _add(self, start: Tensor, inputs: Tensor) -> Tensor:
        return self._start(start + inputs)


@pytest.mark.parametrize("adds", [False, True])
def test_products_come_in_few_numbers_of_rows(adds: bool) -> None:
    """As memory is kept for each: beyond 128, 16 for each power of two, of which few are filled up with zeros."""
    product, numbers = Counting(), range(1, 1025)
    for rows in numbers:
        inputs = torch.ones(rows, 1)
        found = product.add(inputs, inputs) if adds else product.start(inputs)
        assert torch.equal(found, (1 + adds) * inputs)
    used = dict(zip(numbers, product.seen, strict=True))
    assert all(used[rows] == rows for rows in range(1, 129))
    for power in (128, 256, 512):
        assert len({used[rows] for rows in range(power + 1, 2 * power + 1)}) == 16
    assert all(rows <= used[rows] < rows + rows / 16 for rows in numbers)


def test_no_int8_outside_the_cpu() -> None:
    with pytest.raises(ConfigError, match="only for the CPU"):
        build_product(torch.empty(3, 2, device="meta"), None, "int8")


@pytest.mark.parametrize("budget", [1, 5, 30, 1000])
def test_groups_hold_each_sentence_with_tokens_once(budget: int) -> None:
    lengths = [3, 0, 8, 1, 1, 40, 2, 8, 0, 5]
    groups = plan_groups(lengths, budget)
    assert sorted(number for group in groups for number in group) == [0, 2, 3, 4, 5, 6, 7, 9]
    in_order = [lengths[number] for group in groups for number in group]
    assert in_order == sorted(in_order, reverse=True)
    for group in groups:
        assert len(group) == 1 or sum(lengths[number] for number in group) <= budget


def test_groups_are_of_like_size() -> None:
    sizes = [sum(10 for _ in group) for group in plan_groups([10] * 101, 1000)]
    assert len(sizes) == 2
    assert max(sizes) - min(sizes) <= 20
    assert max(map(len, plan_groups([1] * 2000, 10_000))) == 512


def test_blocks_of_steps() -> None:
    """Sentences of 5, 4, 3, 2, 1, ... tokens: nine have a first token, four a second one, ..."""
    lengths = [5, 4, 3, 2, 1, 1, 1, 1, 1]
    assert blocks_of_steps(lengths, max_rows=7) == [[9], [4, 3], [2, 1]]
    assert blocks_of_steps(lengths, max_rows=19) == [[9, 4, 3, 2, 1]]
    assert blocks_of_steps([3, 3], max_rows=1) == [[2], [2], [2]]


class Encoder:
    """Gives each word a vector of its length, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str | bytes]] = []

    def __call__(self, words: Sequence[str | bytes]) -> Tensor:
        self.asked.append(list(words))
        return torch.tensor([[float(len(word)), float(ord(word[:1]))] for word in words])


def test_word_vectors_are_computed_once_and_bounded() -> None:
    encoder = Encoder()
    vectors = WordVectors(encoder, capacity=4)
    assert vectors.look_up(["aa", "b", "aa"]).tolist() == [[2.0, 97.0], [1.0, 98.0], [2.0, 97.0]]
    vectors.look_up(["b", "ccc", "d"])
    assert vectors.look_up(["d", "aa"]).tolist() == [[1.0, 100.0], [2.0, 97.0]]
    assert encoder.asked == [["aa", "b"], ["ccc", "d"]]
    assert vectors.look_up(["aa", "e"]).tolist() == [[2.0, 97.0], [1.0, 101.0]]  # no room: all are forgotten
    vectors.look_up(["e", "aa"])
    assert encoder.asked[2:] == [["aa", "e"]]
    many = [chr(97 + number % 26) * (1 + number % 7) for number in range(300)]
    assert vectors.look_up(many)[:, 0].tolist() == [float(len(word)) for word in many]
    assert len(vectors) <= 4


def test_words_of_every_length(bilm: BiLM) -> None:
    words = ["", "é", "漢字", *("y" * length for length in range(1, 60)), BEGIN_SENTENCE, END_SENTENCE]
    for chosen in (words, words[:1], words[-1:], words * 20):
        found = WordEncoder(bilm.token_encoder, bilm.options.char_cnn, "float32")(chosen)
        torch.testing.assert_close(found, bilm.token_vectors(chosen), rtol=0.0, atol=1e-5)


def test_tasks_run_together_without_gradient_and_all_end_before_a_fault_is_reported() -> None:
    ended: list[str] = []

    def fail() -> None:
        raise RuntimeError("a fault")

    def end_later() -> None:
        time.sleep(0.1)
        ended.append("later")

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        threads._workers.cache_clear()
        both = threading.Barrier(2, timeout=60)
        assert run_together([both.wait, both.wait], CPU) in ([0, 1], [1, 0])
        assert run_together([torch.is_grad_enabled] * 3, CPU) == [False] * 3
        with pytest.raises(RuntimeError, match="a fault"):
            run_together([fail, end_later], CPU)
        assert ended
        assert run_together([torch.get_num_threads] * 2, CPU) == [1, 1]
        assert torch.get_num_threads() == 2
        with concurrent.futures.ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 2
        assert torch.is_grad_enabled()
    finally:
        torch.set_num_threads(before)
