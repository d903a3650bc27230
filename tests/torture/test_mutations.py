from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.torture.mutations import change_value, mutate

SEEDS = {
    "binary": [b"\x89HDF\r\n\x1a\n" + bytes(range(200))],
    "text": [b"EU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP I-PER\n"],
    "json": [b'{"a": [1, 2.5, null], "b": {"type": "x"}}'],
    "jsonl": [b'{"text": "A b."}\n{"tokens": ["A"]}\n'],
}


@pytest.mark.parametrize("form", SEEDS)
def test_a_seed_decides_the_change(form: str) -> None:
    made = [mutate(SEEDS[form], form, random.Random(number)) for number in range(50)]
    assert made == [mutate(SEEDS[form], form, random.Random(number)) for number in range(50)]
    assert len(set(made)) > 40


@pytest.mark.parametrize("form", SEEDS)
@given(data=st.binary(max_size=60), number=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_every_content_can_be_changed_again(form: str, data: bytes, number: int) -> None:
    assert isinstance(mutate([data, b""], form, random.Random(number)), bytes)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "a", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner),
    max_leaves=5,
)


@given(value=JSON, number=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_a_changed_value_can_be_written_and_the_given_one_stays(value: Any, number: int) -> None:
    before = json.dumps(value)
    json.dumps(change_value(value, random.Random(number)))
    assert json.dumps(value) == before
