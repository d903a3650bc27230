"""Tag schemes: how the tags of tokens describe labelled spans.

# K tags

| scheme | a span of one token | a span of three | where |
|---|---|---|---|
| IOB1  | I-X | I-X I-X I-X | the official CoNLL-2003 files; B-X begins a span right after another of the same label |
| IOB2  | B-X | B-X I-X I-X | also called BIO |
| BIOUL | U-X | B-X I-X L-X | also called BILOU |
| BIOES | S-X | B-X I-X E-X | also called IOBES |
| BMES  | S-X | B-X M-X E-X | common for Chinese |

The last three differ only in their letters.

Within a scheme every set of spans that do not overlap has exactly one valid sequence of tags.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.errors import ElmoTasksError

TagScheme = Literal["IOB1", "IOB2", "BIOUL", "BIOES", "BMES"]
OUTSIDE = "O"
# The letters of a span's first token, of one inside and, where the scheme has them, of an only token and of the last.
_PREFIXES: dict[TagScheme, tuple[str, ...]] = {
    "IOB1": ("B", "I"),
    "IOB2": ("B", "I"),
    "BIOUL": ("B", "I", "U", "L"),
    "BIOES": ("B", "I", "S", "E"),
    "BMES": ("B", "M", "S", "E"),
}
_LETTERS, _FIRST, _LAST = frozenset("BIMESLU"), frozenset("BSU"), frozenset("ESLU")  # of all schemes


class Span(NamedTuple):
    """A labelled run of tokens; both ends are inclusive."""

    label: str
    start: int
    end: int


class Transitions(NamedTuple):
    """Which of K tags may begin a sentence, follow another tag, and end a sentence."""

    start: NDArray[np.bool_]  # (K,) tag may begin a sentence
    between: NDArray[np.bool_]  # (K, K) [i, j]: tag j may follow tag i
    end: NDArray[np.bool_]  # (K,) tag may end a sentence


def is_tag(tag: str, scheme: TagScheme) -> bool:
    """Whether `tag` is O or a prefix of the scheme, a hyphen and a label, such as `B-LOC`."""
    prefix, _, label = tag.partition("-")
    return tag == OUTSIDE or (len(prefix) == 1 and prefix in _PREFIXES[scheme] and label.strip() == label != "")


def tags_of_label(label: str, scheme: TagScheme) -> list[str]:
    """Every tag that a token of a span with this label can have."""
    return [f"{prefix}-{label}" for prefix in _PREFIXES[scheme]]


def label_of_tag(tag: str) -> str | None:
    """The label of a tag, None for O. A label may itself contain hyphens."""
    return None if tag == OUTSIDE else tag.partition("-")[2]


def spans_of_tags(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence, from left to right.

    There is one rule for all schemes, that of conlleval, the official scorer of CoNLL-2003, and of seqeval: a span
    begins at B, U and S, and at any other tag that does not continue one; it ends with L, U, E and S, and before a tag
    that does not continue it. An I- after O, for example, begins a span. Sequences that are not valid are read by the
    same rule.

    Raises:
        ElmoTasksError: something is not a tag of one of these schemes.
    """
    spans, start, previous = list[Span](), 0, OUTSIDE
    for position, tag in enumerate([*checked_span_tags(tags), OUTSIDE]):
        continues = tag[1:] == previous[1:] and tag[0] not in _FIRST and previous[0] not in _LAST
        if previous != OUTSIDE and not continues:
            spans.append(Span(previous[2:], start, position - 1))
        if not continues:
            start = position
        previous = tag
    return spans


def checked_span_tags(tags: Sequence[str]) -> Sequence[str]:
    """The tags themselves; raises an `ElmoTasksError` for one that is not of any scheme."""
    for tag in tags:
        if tag != OUTSIDE and (tag[:1] not in _LETTERS or tag[1:2] != "-" or not tag[2:]):
            raise ElmoTasksError(
                f"{tag!r} is not a span tag; expected O, or one of the letters BIMESLU, a hyphen and a label"
            )
    return tags


def tags_of_spans(spans: Iterable[Span], length: int, scheme: TagScheme) -> list[str]:
    """The tags of a sentence of `length` tokens with these spans, in any order.

    Raises:
        ValueError: two spans overlap, or one lies outside the sentence.
    """
    tags = [OUTSIDE] * length
    first, inside, *closing = _PREFIXES[scheme]
    for label, start, end in sorted(spans, key=lambda span: span.start):
        if not 0 <= start <= end < length or any(tag != OUTSIDE for tag in tags[start : end + 1]):
            raise ValueError(
                f"the span {start}-{end} ({label}) overlaps another or leaves the sentence of {length} tokens"
            )
        tags[start : end + 1] = [f"{inside}-{label}"] * (end - start + 1)
        after_same_label = start > 0 and label_of_tag(tags[start - 1]) == label
        if scheme != "IOB1" or after_same_label:
            tags[start] = f"{first}-{label}"
        if closing:
            only, last = closing
            tags[end] = f"{only if start == end else last}-{label}"
    return tags


def convert_tags(tags: Sequence[str], scheme: TagScheme) -> list[str]:
    """A valid sequence of any scheme in another scheme."""
    return tags_of_spans(spans_of_tags(tags), len(tags), scheme)


def detect_scheme(tags: Sequence[str]) -> TagScheme | None:
    """The scheme of a sentence's tags, from the first span; None where there is none.

    The first span of a sentence follows no other, so only in IOB1 does it begin with I; and only BIOUL (L, U), BIOES
    and BMES (E, S) close spans. The last two differ where a span has more than two tokens: None if the sentence has no
    such span, and then its tags are valid in both schemes or in neither. Otherwise, the rest of the sentence is not
    looked at: `find_fault` says whether it follows the scheme.
    """
    start = next((position for position, tag in enumerate(tags) if tag != OUTSIDE), None)
    if start is None:
        return None
    label = label_of_tag(tags[start])
    letters = [tag[0] for tag in itertools.takewhile(lambda tag: label_of_tag(tag) == label, tags[start:])]
    if "L" in letters or "U" in letters:
        return "BIOUL"
    if "E" in letters or "S" in letters or "M" in letters:
        inside = {tag[0] for tag in tags} & set("IM")
        return None if not inside else "BMES" if "M" in inside else "BIOES"
    return "IOB1" if letters[0] == "I" else "IOB2"


def find_fault(tags: Sequence[str], scheme: TagScheme) -> tuple[int, str] | None:
    """The position of the first tag that the scheme forbids, and the reason; None for a sequence that is accepted.

    In IOB1 a B is accepted where only I is valid: the official training file has two of them.
    """
    previous: str | None = None
    for position, tag in enumerate(tags):
        if not is_tag(tag, scheme):
            prefixes = ", ".join(f"{prefix}-LABEL" for prefix in _PREFIXES[scheme])
            return position, f"{tag!r} is not a tag of {scheme}; expected O or one of {prefixes}"
        if scheme != "IOB1" and not _may_follow(previous, tag, scheme):
            where = "at the beginning of a sentence" if previous is None else f"after {previous!r}"
            return position, f"{tag!r} {where} is not valid in {scheme}"
        previous = tag
    if tags and not _may_follow(previous, None, scheme):
        return len(tags) - 1, f"{previous!r} at the end of a sentence is not valid in {scheme}"
    return None


def allowed_transitions(tags: Sequence[str], scheme: TagScheme) -> Transitions:
    """Which of K tags may begin a sentence, follow one another, and end a sentence, for the constraints of a CRF.

    A sequence is valid exactly if its first tag, its last tag and every pair of neighbours are allowed.

    Raises:
        ValueError: one of the tags is not a tag of the scheme.
    """
    for tag in tags:
        if not is_tag(tag, scheme):
            raise ValueError(f"{tag!r} is not a tag of {scheme}")
    return Transitions(
        start=np.array([_may_follow(None, tag, scheme) for tag in tags], dtype=bool),
        between=np.array([[_may_follow(one, other, scheme) for other in tags] for one in tags], dtype=bool),
        end=np.array([_may_follow(tag, None, scheme) for tag in tags], dtype=bool),
    )


def _may_follow(previous: str | None, tag: str | None, scheme: TagScheme) -> bool:
    """Whether `tag` may stand after `previous`; None is the border of the sentence."""
    same_label = previous is not None and tag is not None and previous[1:] == tag[1:] != ""
    first, inside, *closing = _PREFIXES[scheme]
    prefix = OUTSIDE if tag is None else tag[0]
    if scheme == "IOB1":
        return prefix != first or same_label
    if not closing:
        return prefix != inside or same_label
    only, last = closing
    span_is_open = previous is not None and previous[0] in (first, inside)
    return (prefix in (inside, last) and same_label) if span_is_open else prefix in (OUTSIDE, first, only)
