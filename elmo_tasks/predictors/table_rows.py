"""Results as rows of a table: one for each text, or for each span, token, role or mention in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

Row = dict[str, Any]

_AROUND = 60  # characters of the text on each side of a span
_OF_SENTENCES = ("text", "start_char", "end_char", "description")  # not in the rows of their parts


def table_rows(result: Mapping[str, Any], number: int) -> Iterator[Row]:
    """The rows of a result: what is carried over from its input, and what was found.

    Arguments:
        number: that of the result, from 1, as the `sentence` of tokens, spans and roles.
    """
    whole = {key: value for key, value in result.items() if value is None or isinstance(value, (str, int, float))}
    carried = {key: value for key, value in whole.items() if key not in _OF_SENTENCES}
    sentence = {**carried, "sentence": number}
    if "frames" in result:
        for frame in result["frames"]:
            for role in frame["roles"] or [{}]:
                names = {"predicate": frame["predicate_text"], "role": role.get("role")}
                yield {**sentence, **names, **_part(result, role)}
    elif "mentions" in result:
        names = dict[int, str]()
        for mention in result["mentions"]:
            name = names.setdefault(mention["cluster"], mention["text"])
            yield {**carried, "cluster": mention["cluster"], "first_mention": name, **_part(result, mention)}
    elif "spans" in result:
        yield from ({**sentence, **_part(result, span), "label": span["label"]} for span in result["spans"])
    elif "tags" in result:
        columns = zip(result["tokens"], result["tags"], result["probabilities"], strict=True)
        yield from ({**sentence, "token": token, "tag": tag, "probability": each} for token, tag, each in columns)
    else:
        yield {**_texts(result), **whole, **_labels(result)}


def _texts(result: Mapping[str, Any]) -> Row:
    """The texts of a result that has only their tokens."""
    names = {"tokens": "text", "premise_tokens": "premise", "hypothesis_tokens": "hypothesis"}
    return {name: " ".join(result[key]) for key, name in names.items() if key in result}


def _labels(result: Mapping[str, Any]) -> Row:
    """The label or the labels of a result, with their probabilities."""
    probabilities = result.get("probabilities", {})
    if "labels" in result:
        found = [f"{label} ({probabilities[label]:.2f})" for label in result["labels"]]
        return {"labels": ",".join(result["labels"]), "probabilities": ", ".join(found)}
    return {"probability": probabilities[result["label"]]} if "label" in result else {}


def _part(result: Mapping[str, Any], span: Mapping[str, Any]) -> Row:
    """A span between the text before and after it, its position in characters if it is known, and its probability."""
    if not span:
        return {}
    if "start_char" in span:
        text, start = result["text"], result.get("start_char", 0)
        first, last = span["start_char"] - start, span["end_char"] - start
    else:
        tokens = result.get("tokens") or list(itertools.chain.from_iterable(result["sentences"]))
        text, first = " ".join(tokens), len("".join(f"{token} " for token in tokens[: span["start"]]))
        last = first + len(span["text"])
    before, after = text[max(0, first - _AROUND) : first], text[last : last + _AROUND]
    known = {key: span[key] for key in ("start_char", "end_char", "probability") if key in span}
    return {"before": before, "text": span["text"], "after": after, **known}
