"""The fields of an input, checked: what several predictors read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tokenization import Token


def string_field(fields: Mapping[str, Any], key: str) -> str:
    """The string under `key`, which may be blank: a text without a sentence.

    Raises:
        ElmoTasksError: there is no such key, or something else under it.
    """
    text = _value(fields, key)
    if not isinstance(text, str):
        raise ElmoTasksError(f"{key!r} is {text!r}; wanted a string")
    return text


def text_field(fields: Mapping[str, Any], key: str) -> str:
    """The string under `key`, which holds more than white space.

    Raises:
        ElmoTasksError: there is no such key, or something else under it.
    """
    text = string_field(fields, key)
    if not text.strip():
        raise ElmoTasksError(f"{key!r} is {text!r}; wanted a string that is not blank")
    return text


def tokens_field(fields: Mapping[str, Any], key: str) -> list[str]:
    """The tokens under `key`: at least one, none of them empty.

    Raises:
        ElmoTasksError: there is no such key, or something else under it.
    """
    tokens = _value(fields, key)
    if not isinstance(tokens, list) or not tokens:
        raise ElmoTasksError(f"{key!r} is {tokens!r}; wanted a list of at least one string")
    for position, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            raise ElmoTasksError(f"{key!r} has {token!r} at position {position}; wanted strings that are not empty")
    return tokens


def one_of(fields: Mapping[str, Any], *keys: str) -> str:
    """Which of the keys the input has: exactly one.

    Raises:
        ElmoTasksError: it has none of them, or several.
    """
    given = [key for key in keys if key in fields]
    if len(given) != 1:
        wanted = " or ".join(repr(key) for key in keys)
        raise ElmoTasksError(f"the keys are {sorted(fields)}; wanted either {wanted} among them")
    return given[0]


def located_sentence(text: str, sentence: list[Token]) -> dict[str, Any]:
    """A sentence of a raw text as an example: its tokens, and where it and they are in the text, ends exclusive."""
    start, end = sentence[0].start, sentence[-1].end
    return {
        "text": text[start:end],
        "start_char": start,
        "end_char": end,
        "tokens": [token.text for token in sentence],
        "offsets": [[token.start, token.end] for token in sentence],
    }


def located_span(example: Mapping[str, Any], start: int, end: int) -> dict[str, Any]:
    """A span of an example's tokens: its first and its last token, its text, and where it is in a raw text, if any.

    Arguments:
        example: as `located_sentence` makes it, or with `tokens` alone.
        start, end: its first and its last token.
    """
    if "offsets" not in example:
        return {"start": start, "end": end, "text": " ".join(example["tokens"][start : end + 1])}
    first, last = example["offsets"][start][0], example["offsets"][end][1]
    shift = example["start_char"]
    text = example["text"][first - shift : last - shift]
    return {"start": start, "end": end, "start_char": first, "end_char": last, "text": text}


def _value(fields: Mapping[str, Any], key: str) -> Any:
    if key not in fields:
        raise ElmoTasksError(f"the keys are {sorted(fields)}; wanted {key!r} among them")
    return fields[key]
