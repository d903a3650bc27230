"""Tag schemes against brute force: every set of spans, and every sequence of tags, of short sentences."""

import itertools
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tag_schemes import (
    Span,
    TagScheme,
    allowed_transitions,
    convert_tags,
    detect_scheme,
    find_fault,
    is_tag,
    spans_of_tags,
    tags_of_label,
    tags_of_spans,
)

SCHEMES = get_args(TagScheme)
LABELS = ("LOC", "PER")


def every_set_of_spans(length: int, start: int = 0) -> list[list[Span]]:
    """All sets of spans without overlap in a sentence."""
    if start >= length:
        return [[]]
    found = every_set_of_spans(length, start + 1)  # the token at `start` is outside
    for end in range(start, length):
        for label in LABELS:
            found.extend([[Span(label, start, end), *rest] for rest in every_set_of_spans(length, end + 1)])
    return found


def all_tags(scheme: TagScheme) -> list[str]:
    return ["O", *(tag for label in LABELS for tag in tags_of_label(label, scheme))]


def test_written_by_hand() -> None:
    spans = [Span("PER", 0, 0), Span("PER", 1, 2), Span("LOC", 3, 5), Span("LOC", 7, 7)]
    assert tags_of_spans(spans, 8, "IOB1") == ["I-PER", "B-PER", "I-PER", "I-LOC", "I-LOC", "I-LOC", "O", "I-LOC"]
    assert tags_of_spans(spans, 8, "IOB2") == ["B-PER", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-LOC", "O", "B-LOC"]
    assert tags_of_spans(spans, 8, "BIOUL") == ["U-PER", "B-PER", "L-PER", "B-LOC", "I-LOC", "L-LOC", "O", "U-LOC"]
    assert tags_of_spans(spans, 8, "BIOES") == ["S-PER", "B-PER", "E-PER", "B-LOC", "I-LOC", "E-LOC", "O", "S-LOC"]
    assert tags_of_spans(spans, 8, "BMES") == ["S-PER", "B-PER", "E-PER", "B-LOC", "M-LOC", "E-LOC", "O", "S-LOC"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("length", range(5))
def test_tags_and_spans_are_one_to_one(scheme: TagScheme, length: int) -> None:
    sets = every_set_of_spans(length)
    sequences = [tuple(tags_of_spans(spans, length, scheme)) for spans in sets]
    assert len(set(sequences)) == len(sets)
    for spans, tags in zip(sets, sequences, strict=True):
        assert spans_of_tags(tags) == spans
        assert find_fault(tags, scheme) is None
        for other in SCHEMES:
            assert convert_tags(convert_tags(tags, other), scheme) == list(tags)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("length", range(1, 4))
def test_allowed_transitions_admit_exactly_the_valid_sequences(scheme: TagScheme, length: int) -> None:
    valid = {tuple(tags_of_spans(spans, length, scheme)) for spans in every_set_of_spans(length)}
    tags = all_tags(scheme)
    start, between, end = allowed_transitions(tags, scheme)
    for ids in itertools.product(range(len(tags)), repeat=length):
        admitted = start[ids[0]] and end[ids[-1]] and all(between[pair] for pair in itertools.pairwise(ids))
        assert bool(admitted) == (tuple(tags[i] for i in ids) in valid)


@pytest.mark.parametrize("scheme", ["IOB2", "BIOUL", "BMES"])
@pytest.mark.parametrize("length", range(1, 4))
def test_a_fault_is_found_in_exactly_the_invalid_sequences(scheme: TagScheme, length: int) -> None:
    valid = {tuple(tags_of_spans(spans, length, scheme)) for spans in every_set_of_spans(length)}
    for tags in itertools.product(all_tags(scheme), repeat=length):
        fault = find_fault(tags, scheme)
        assert (fault is None) == (tags in valid)
        if fault is not None:
            # Up to the fault the sequence is the beginning of a valid one.
            position = fault[0]
            longer = {
                tuple(tags_of_spans(spans, position + 1, scheme))[:position]
                for spans in every_set_of_spans(position + 1)
            }
            assert tags[:position] in longer


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-PER I-PER O B-LOC", [("PER", 0, 1), ("LOC", 3, 3)]),  # IOB2
        ("I-PER I-PER B-PER I-LOC", [("PER", 0, 1), ("PER", 2, 2), ("LOC", 3, 3)]),  # IOB1
        ("B-PER L-PER U-LOC U-LOC O", [("PER", 0, 1), ("LOC", 2, 2), ("LOC", 3, 3)]),  # BIOUL
        ("B-PER I-PER E-PER S-LOC", [("PER", 0, 2), ("LOC", 3, 3)]),  # BIOES
        ("B-PER M-PER E-PER S-LOC", [("PER", 0, 2), ("LOC", 3, 3)]),  # BMES
        ("O I-PER I-LOC", [("PER", 1, 1), ("LOC", 2, 2)]),  # ill-formed: I after O and after another type
        ("L-PER L-PER I-PER", [("PER", 0, 0), ("PER", 1, 1), ("PER", 2, 2)]),
        ("B-A-B I-A-B", [("A-B", 0, 1)]),  # a hyphen in the label
    ],
)
def test_spans_are_read_as_conlleval_reads_them(tags: str, spans: list[tuple[str, int, int]]) -> None:
    assert spans_of_tags(tags.split()) == spans


@pytest.mark.parametrize("tag", ["", "B", "B-", "PER", "X-PER", "BI-PER"])
def test_what_is_not_a_tag_is_named(tag: str) -> None:
    with pytest.raises(ElmoTasksError, match="is not a span tag"):
        spans_of_tags(["O", tag])


def test_allowed_transitions_follow_the_order_of_the_tags() -> None:
    tags = ["O", "B-X", "I-X"]
    allowed = allowed_transitions(tags, "IOB2")
    np.testing.assert_array_equal(allowed.start, [True, True, False])
    np.testing.assert_array_equal(allowed.between, [[True, True, False], [True, True, True], [True, True, True]])
    np.testing.assert_array_equal(allowed.end, [True, True, True])
    with pytest.raises(ValueError, match="'L-X' is not a tag of IOB2"):
        allowed_transitions(["O", "L-X"], "IOB2")


def test_superfluous_begin_tags_of_iob1_are_accepted() -> None:
    assert find_fault(["O", "B-LOC", "I-LOC", "B-PER"], "IOB1") is None
    assert spans_of_tags(["O", "B-LOC", "I-LOC", "B-PER"]) == [Span("LOC", 1, 2), Span("PER", 3, 3)]


@pytest.mark.parametrize(
    ("tags", "scheme", "position", "problem"),
    [
        (["O", "X-LOC"], "IOB1", 1, "'X-LOC' is not a tag of IOB1; expected O or one of B-LABEL, I-LABEL"),
        (["O", "I-LOC"], "IOB2", 1, "'I-LOC' after 'O' is not valid in IOB2"),
        (["I-LOC"], "IOB2", 0, "'I-LOC' at the beginning of a sentence is not valid in IOB2"),
        (["B-LOC", "I-PER"], "IOB2", 1, "'I-PER' after 'B-LOC' is not valid in IOB2"),
        (["U-LOC", "B-LOC"], "BIOUL", 1, "'B-LOC' at the end of a sentence is not valid in BIOUL"),
    ],
)
def test_faults_are_explained(tags: list[str], scheme: TagScheme, position: int, problem: str) -> None:
    assert find_fault(tags, scheme) == (position, problem)


@pytest.mark.parametrize("tag", ["", "B", "B-", "-LOC", "BLOC", "b-LOC", "BI-LOC", "OO", "O-LOC", "L-LOC", "BI"])
def test_what_is_no_tag(tag: str) -> None:
    assert not is_tag(tag, "IOB2")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_scheme_is_told_by_any_span(scheme: TagScheme) -> None:
    closes_with_e = scheme in ("BIOES", "BMES")
    for spans in every_set_of_spans(4):
        is_clear = any(end - start > 1 for _, start, end in spans) if closes_with_e else spans
        assert detect_scheme(tags_of_spans(spans, 4, scheme)) == (scheme if is_clear else None)


@pytest.mark.parametrize("spans", [[Span("X", 0, 1), Span("X", 1, 1)], [Span("X", 1, 2)], [Span("X", 1, 0)]])
def test_spans_that_cannot_be_tagged(spans: list[Span]) -> None:
    with pytest.raises(ValueError, match="overlaps another or leaves the sentence of 2 tokens"):
        tags_of_spans(spans, 2, "IOB2")


@given(tags=st.lists(st.sampled_from(["O", *(f"{letter}-{label}" for letter in "BIMESLU" for label in LABELS)])))
def test_any_sequence_is_read_as_by_seqeval(tags: list[str]) -> None:
    """seqeval knows the letters of BIOES."""
    theirs = [tag[0].translate(str.maketrans("MLU", "IES")) + tag[1:] for tag in tags]
    assert spans_of_tags(tags) == [Span(*span) for span in get_entities(theirs)]
