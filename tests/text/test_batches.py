"""Records of tensors, and batches of like lengths: every row in one batch, and none smaller than it could be."""

import dataclasses
import itertools

import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from elmo_tasks.text.tokens import TensorRecord, batches_of_like_lengths

LENGTHS = st.lists(st.integers(0, 60), max_size=80)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_rows": st.integers(1, 10),
        "max_padded": st.integers(1, 200),
        "max_tokens": st.integers(1, 200),
        "enough_tokens": st.floats(1, 200),
        "least_share": st.floats(0, 1),
    },
)


def fits(lengths: list[int], limits: dict[str, float]) -> bool:
    """Whether rows of these lengths, in this order, may be a batch."""
    return len(lengths) == 1 or (
        len(lengths) <= limits.get("max_rows", 1000)
        and len(lengths) * max(lengths) <= limits.get("max_padded", 1e9)
        and sum(lengths) <= limits.get("max_tokens", 1e9)
        and sum(lengths[:-1]) < limits.get("enough_tokens", 1e9)
        and lengths[-1] >= limits.get("least_share", 0.0) * max(lengths[:-1])
    )


@given(lengths=LENGTHS, limits=LIMITS, longest_first=st.booleans())
@example(lengths=[4, 1, 10, 3], limits={"enough_tokens": 10}, longest_first=True)
@example(lengths=[5, 10, 4], limits={"least_share": 0.5}, longest_first=True)
def test_batches_are_as_large_as_the_limits_allow(
    lengths: list[int], limits: dict[str, float], longest_first: bool
) -> None:
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=longest_first)
    given_order = None if longest_first else order
    batches = list(batches_of_like_lengths(lengths, given_order, **limits))
    assert [row for batch in batches for row in batch] == order
    in_batches = [[lengths[row] for row in batch] for batch in batches]
    assert all(fits(rows[:end], limits) for rows in in_batches for end in range(1, len(rows) + 1))
    assert not any(fits([*rows, after[0]], limits) for rows, after in itertools.pairwise(in_batches))


@dataclasses.dataclass(frozen=True)
class Inner(TensorRecord):
    values: Tensor
    mask: Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Outer(TensorRecord):
    inner: Inner
    labels: Tensor
    texts: list[str]


def test_a_record_moves_with_the_records_in_it() -> None:
    moved = Outer(Inner(torch.ones(2)), torch.ones(3), ["a"]).to("meta")
    assert moved.labels.device.type == moved.inner.values.device.type == "meta"
    assert moved.inner.mask is None
    assert moved.texts == ["a"]
