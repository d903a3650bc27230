"""Results as rows of a table: one for each text, or for each span, token, role or mention in it.

A table that was read comes back as it was, with columns for what was found.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.commands.console import binary_output
from elmo_tasks.commands.predict import RANK
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.sources import HUB_PREFIX
from elmo_tasks.errors import counted
from elmo_tasks.extras.tables.delimited import DelimitedReader
from elmo_tasks.extras.tables.table_files import Row, TableCopy, check_written, write_table
from elmo_tasks.files.json_files import json_text
from elmo_tasks.files.paths import stored_file
from elmo_tasks.predictors.predictor import RESULT_KEYS

logger = logging.getLogger(__name__)

_AROUND = 60  # characters of the text on each side of a span
_TEXTS = {"tokens": "text", "premise_tokens": "premise", "hypothesis_tokens": "hypothesis"}
_OWN_LISTS = {*RESULT_KEYS, *_TEXTS, "predicates"}  # other lists and objects come from the input


@contextlib.contextmanager
def result_table(
    path: str, reader: DatasetReader | None = None, source: str = ""
) -> Iterator[Callable[[Mapping[str, Any]], object]]:
    """Yields a function that adds a result to a table, which is written at the end.

    Arguments:
        reader, source: what reads the inputs, and its file, unless they are text. A table that is read comes back with
            what was found at the end of its rows: a row for each span, if its rows are sentences.

    Raises:
        ElmoTasksError: a package that writes the table is not installed.
        DataError: see `TableCopy`.
    """
    check_written(path)
    numbers = itertools.count(1)
    if isinstance(reader, DelimitedReader) and not source.startswith(HUB_PREFIX):
        copy, found = TableCopy(path, reader, stored_file(Path(source))), list[tuple[int, list[Row]]]()
        by_token = reader.config.by_token

        def keep(result: Mapping[str, Any]) -> None:
            rank = {name: result[name] for name in (RANK,) if name in result}
            found.append((result["line"], [{**row, **rank} for row in _found(result, next(numbers), by_token)]))

        yield keep
        with binary_output(path) as stream:
            copy.write(stream, found)
        return
    rows, without = list[Row](), list[int]()  # numbers of the results in which nothing was found

    def add(result: Mapping[str, Any]) -> None:
        number, before = next(numbers), len(rows)
        rows.extend(table_rows(result, number))
        if len(rows) == before:
            without.append(number)

    yield add
    names = [*dict.fromkeys(itertools.chain.from_iterable(rows))]
    with binary_output(path) as stream:
        write_table(path, stream, names, [[row.get(name) for name in names] for row in rows])
    if without:
        problem = (
            f"no row for {counted(len(without), 'result')} in which nothing was found, the first number {without[0]}"
        )
        logger.info("%s: %s; JSON lines have all", path, problem)


def table_rows(result: Mapping[str, Any], number: int) -> Iterator[Row]:
    """The rows of a result: what is carried over from its input, and what was found.

    Arguments:
        number: that of the result, from 1, as the `sentence` of tokens, spans and roles.
    """
    plain = {
        key: json_text(value) if isinstance(value, (list, dict)) else value
        for key, value in result.items()
        if not (isinstance(value, (list, dict)) and key in _OWN_LISTS)
    }
    if not {"frames", "mentions", "spans", "tags"} & result.keys():
        texts = {name: " ".join(result[key]) for key, name in _TEXTS.items() if key in result}
        yield {**texts, **plain, **_labels(result, result.get("probabilities", {}))}
        return
    own = ("text", "start_char", "end_char", "description")  # of the whole text
    carried = {key: value for key, value in plain.items() if key not in own}
    for found in _found(result, number):
        yield {**carried, **found}


def _found(result: Mapping[str, Any], number: int, by_token: bool = False) -> Iterator[Row]:
    """What was found in a text, or in its tokens if each has a row."""
    sentence = {"sentence": number}
    if "frames" in result:
        for frame in result["frames"]:
            for role in frame["roles"]:
                names = {"predicate": frame["predicate_text"], "role": role["role"]}
                yield {**sentence, **names, **_span(result, role)}
    elif "mentions" in result:
        firsts = dict[int, str]()
        for each in result["mentions"]:
            first = firsts.setdefault(each["cluster"], each["text"])
            yield {"cluster": each["cluster"], "first_mention": first, **_span(result, each)}
    elif "spans" in result and not by_token:
        yield from ({**sentence, "label": span["label"], **_span(result, span)} for span in result["spans"])
    elif "tags" in result:
        tokens = zip(result["tokens"], result["tags"], result["probabilities"], strict=True)
        for token, tag, probability in tokens:
            yield {**({} if by_token else {**sentence, "token": token}), "tag": tag, "probability": probability}
    else:
        found = {key: result[key] for key in ("label", "score") if key in result}
        yield {**found, **_labels(result, result.get("probabilities", {}))}


def _labels(result: Mapping[str, Any], probabilities: Mapping[str, float]) -> Row:
    if "labels" in result:
        found = [f"{label} ({probabilities[label]:.2f})" for label in result["labels"]]
        return {"labels": ",".join(result["labels"]), "probabilities": ", ".join(found)}
    if "label" not in result:
        return {}
    return {"probability": max(probabilities.values()) if result["label"] is None else probabilities[result["label"]]}


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
