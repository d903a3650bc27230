"""Results as rows of a table: one for each text, or for each span, token, role or mention in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

Row = dict[str, Any]

_AROUND = 60  # characters of the text on each side of a span
_TEXTS = {"tokens": "text", "premise_tokens": "premise", "hypothesis_tokens": "hypothesis"}


def table_rows(result: Mapping[str, Any], number: int) -> Iterator[Row]:
    """The rows of a result: what is carried over from its input, and what was found.

    Arguments:
        number: that of the result, from 1, as the `sentence` of tokens, spans and roles.
    """
    plain = {key: value for key, value in result.items() if value is None or isinstance(value, (str, int, float))}
    own = ("text", "start_char", "end_char", "description")  # of the whole text
    carried = {key: value for key, value in plain.items() if key not in own}
    sentence = {**carried, "sentence": number}
    if "frames" in result:
        for frame in result["frames"]:
            for role in frame["roles"]:
                names = {"predicate": frame["predicate_text"], "role": role["role"]}
                yield {**sentence, **names, **_span(result, role)}
    elif "mentions" in result:
        firsts = dict[int, str]()
        for each in result["mentions"]:
            first = firsts.setdefault(each["cluster"], each["text"])
            yield {**carried, "cluster": each["cluster"], "first_mention": first, **_span(result, each)}
    elif "spans" in result:
        yield from ({**sentence, "label": span["label"], **_span(result, span)} for span in result["spans"])
    elif "tags" in result:
        for token, tag, probability in zip(result["tokens"], result["tags"], result["probabilities"], strict=True):
            yield {**sentence, "token": token, "tag": tag, "probability": probability}
    else:
        texts = {name: " ".join(result[key]) for key, name in _TEXTS.items() if key in result}
        yield {**texts, **plain, **_labels(result, result.get("probabilities", {}))}


def _labels(result: Mapping[str, Any], probabilities: Mapping[str, float]) -> Row:
    if "labels" in result:
        found = [f"{label} ({probabilities[label]:.2f})" for label in result["labels"]]
        return {"labels": ",".join(result["labels"]), "probabilities": ", ".join(found)}
    return {"probability": probabilities[result["label"]]} if "label" in result else {}


def _span(result: Mapping[str, Any], span: Mapping[str, Any]) -> Row:
    """A span between the text before and after it, with its position in characters if it is known."""
    if "start_char" in span:
        text, start = result["text"], span["start_char"] - result.get("start_char", 0)
    else:
        tokens = result.get("tokens") or list(itertools.chain(*result["sentences"]))
        text, start = " ".join(tokens), len("".join(f"{token} " for token in tokens[: span["start"]]))
    end = start + len(span["text"])
    around = {"before": text[max(0, start - _AROUND) : start], "text": span["text"], "after": text[end : end + _AROUND]}
    return {**around, **{key: span[key] for key in ("start_char", "end_char", "probability") if key in span}}
