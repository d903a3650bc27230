"""What several predictors make of the fields of an input: checked values, examples, and spans with their positions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tag_schemes import spans_of_tags
from elmo_tasks.text.tokenizers import Tokenizer

_ALLENNLP_KEYS = frozenset({"sentence", "document"})


def string_field(fields: Mapping[str, Any], key: str) -> str:
    """The string under `key`, which may be blank.

    Raises:
        ElmoTasksError: the key is missing, or its value is not a string.
    """
    if not isinstance(text := _value(fields, key), str):
        raise ElmoTasksError(f"{key!r} is {_as_json(text)}; expected a string")
    return text


def text_field(fields: Mapping[str, Any], key: str) -> str:
    """The string under `key`, which is not blank; errors as for `string_field`."""
    if not (text := string_field(fields, key)).strip():
        raise ElmoTasksError(f"{key!r} is {text!r}; expected a string that is not blank")
    return text


def tokens_field(fields: Mapping[str, Any], key: str) -> list[str]:
    """The tokens under `key`, of all sentences together.

    Raises:
        ElmoTasksError: the key is missing, or its value is not a list of at least one string, none of them empty, or
            of such lists.
    """
    return list(itertools.chain.from_iterable(sentences_field(fields, key)))


def sentences_field(fields: Mapping[str, Any], key: str) -> list[list[str]]:
    """The tokens under `key`: of one sentence or, as `elmo_tasks.tokenize` gives them, a list for each sentence.

    Errors as for `tokens_field`.
    """
    value = _value(fields, key)
    sentences = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    for tokens in sentences:
        if not isinstance(tokens, list) or not tokens:
            raise ElmoTasksError(f"{key!r} is {_as_json(tokens)}; expected a list of at least one string")
        for position, token in enumerate(tokens):
            if not isinstance(token, str) or not token:
                problem = f"{key!r} has {_as_json(token)} at position {position}; expected strings that are not empty"
                raise ElmoTasksError(problem)
    return sentences


def words_field(fields: Mapping[str, Any], key: str, tokenizer: Tokenizer) -> list[str]:
    """The tokens of the text under `key`, at least one; errors as for `text_field`."""
    text = text_field(fields, key)
    if not (tokens := tokenizer.words(text)):
        raise ElmoTasksError(f"{key!r} is {text!r}; expected a text with at least one token")
    return [token.text for token in tokens]


def one_of(fields: Mapping[str, Any], *keys: str) -> str:
    """The one of the keys that the input has.

    Raises:
        ElmoTasksError: it has none of them, or several.
    """
    given = [key for key in keys if key in fields]
    if len(given) != 1:
        some, several = f"either {' or '.join(map(repr, keys))} among them", ", ".join(map(repr, given))
        expected = f"only one of {several}" if given else some
        hints = [f"; AllenNLP's {key!r} is 'text' here" for key in _ALLENNLP_KEYS & fields.keys()]
        raise ElmoTasksError(f"the keys are {sorted(fields)}; expected {expected}{''.join(hints)}")
    return given[0]


def sentence_examples(fields: Mapping[str, Any], tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    """An example for each sentence of an input's raw `text` or of its `tokens`.

    A sentence of a raw text also has the positions of itself and of its tokens, in characters, ends exclusive.
    """
    if one_of(fields, "text", "tokens") == "tokens":
        yield from ({"tokens": tokens} for tokens in sentences_field(fields, "tokens"))
        return
    text = string_field(fields, "text")
    for spans in tokenizer.spans(text):
        start, end = spans[0][0], spans[-1][1]
        yield {
            "text": text[start:end],
            "start_char": start,
            "end_char": end,
            "tokens": [text[first:last] for first, last in spans],
            "offsets": list(map(list, spans)),
        }


def task_keys(fields: Mapping[str, Any], own_columns: Mapping[str, str]) -> dict[str, Any]:
    """Values under the task's names instead of those of the data's own columns, unless there are values under both.

    A text stays under `text` where the data has tokens there, and tokens are `tokens` where it has texts.
    """
    renamed = {}
    for key, value in fields.items():
        name = own_columns.get(key, key)
        if key == "text" and isinstance(value, str) and name in ("tokens", "sentences"):
            name = key
        elif name == "text" != key and isinstance(value, list):
            name = "tokens"
        renamed[key if name in fields else name] = value
    return renamed


def labelled_spans(
    example: Mapping[str, Any], tags: Sequence[str], probabilities: Sequence[float], name: str
) -> list[dict[str, Any]]:
    """The spans of a sentence's tags, each with its label under `name` and the probability of its least certain tag."""
    spans: list[dict[str, Any]] = []
    for label, start, end in spans_of_tags(tags):
        span = {name: label, "start": start, "end": end}
        if "offsets" in example:  # of raw text
            first, last = example["offsets"][start][0], example["offsets"][end][1]
            text = example["text"][first - example["start_char"] : last - example["start_char"]]
            span |= {"start_char": first, "end_char": last, "text": text}
        else:
            span["text"] = " ".join(example["tokens"][start : end + 1])
        spans.append({**span, "probability": min(probabilities[start : end + 1])})
    return spans


def _as_json(value: Any) -> str:
    """A value in messages: null, true and false as people have written them."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def _value(fields: Mapping[str, Any], key: str) -> Any:
    if key not in fields:
        raise ElmoTasksError(f"the keys are {sorted(fields)}; expected {key!r} among them")
    return fields[key]
