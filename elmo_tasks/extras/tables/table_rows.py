"""Results as rows of a table: one for each text, or for each span, token, role or mention in it."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pandas

from elmo_tasks.commands.console import binary_output
from elmo_tasks.errors import ElmoTasksError

Row = dict[str, Any]

_AROUND = 60  # characters of the text on each side of a span
_TEXTS = {"tokens": "text", "premise_tokens": "premise", "hypothesis_tokens": "hypothesis"}


@contextlib.contextmanager
def result_table(path: str) -> Iterator[Callable[[Mapping[str, Any]], object]]:
    """Yields a function that adds the rows of a result to a table, which is written at the end.

    Raises:
        ElmoTasksError: a package that writes the table is not installed.
    """
    ending, rows, numbers = Path(path).suffix.lower(), list[Row](), itertools.count(1)
    if ending == ".xlsx" and importlib.util.find_spec("openpyxl") is None:
        raise ElmoTasksError(f"{path}: needs openpyxl, which is not installed: pip install 'elmo-tasks[tables]'")
    yield lambda result: rows.extend(table_rows(result, next(numbers)))
    frame = pandas.DataFrame(rows).convert_dtypes()
    with binary_output(path) as stream:
        if ending == ".parquet":
            frame.to_parquet(stream, index=False)
        elif ending == ".xlsx":
            _write_sheet(frame, stream)
        else:  # Excel takes a file for UTF-8 by its mark
            encoding, separator = ("utf-8-sig", ",") if ending == ".csv" else ("utf-8", "\t")
            frame.to_csv(stream, sep=separator, index=False, encoding=encoding)


def _write_sheet(frame: pandas.DataFrame, stream: IO[bytes]) -> None:
    """Writes a spreadsheet, where text after an equals sign stays text, and control characters are left out."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    with pandas.ExcelWriter(stream, engine="openpyxl") as writer:
        frame.replace(ILLEGAL_CHARACTERS_RE, "", regex=True).to_excel(writer, index=False, sheet_name="results")
        for cell in itertools.chain(*writer.sheets["results"].iter_rows()):
            cell.data_type = "s" if cell.data_type == "f" else cell.data_type


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
