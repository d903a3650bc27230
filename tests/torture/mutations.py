"""Random changes of files: of bytes, of texts by line, column and token, and of JSON values by their structure."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ODD_TEXTS = (
    "", " ", "\t", "\x00", "\ufeff", "\u200b", "\u00a0", "\u2028", "\x85", "\x0b", "\x1c", "\r", "é", "e\u0301",
    "\u202e", "👩‍👩‍👧", "\U0010ffff", "ﷺ", "-DOCSTART-", "#", "_", "-", "*", "(", ")", "(0", "0)", "(V*)", "B-",
    "I-PER", "<S>", "{}", "[]", "null", '"', "\\", "\\ud800", "%s", "../../etc/passwd", "/dev/zero", "a" * 5000,
    "a " * 300, "(" * 3000,
)  # fmt: skip
ODD_NUMBERS = (
    "0", "-1", "1", "-0", "2147483648", "-9223372036854775809", "18446744073709551616", "1e999", "-1e-999", "NaN",
    "Infinity", "-Infinity", "1.5", "0x10", "1_000", "٣", "²", "9" * 5000, "1" + "0" * 400, "00", "+1", "1e5",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**64), 10**400, 1e308, 1e-320, 1.5, float("nan"), float("inf"), "",
    " ", "x", "\x00", "a" * 3000, [], {}, [[]], [None], [{}], {"": None}, {"type": "x"}, ["x"] * 200, [0, 0],
)  # fmt: skip
_DEEP = "@deep@"

Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def mutate(seeds: Sequence[bytes], form: str, draw: random.Random) -> bytes:
    """One of the seeds, changed once or a few times.

    Arguments:
        form: `binary`, `text`, `json` or `jsonl` (a JSON value on each line): the changes that suit the file, next to
            those of its bytes.
    """
    data = draw.choice(seeds)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5))):
        data = draw.choice(_FORMS[form])(data, draw, seeds)
    return data


def _flip(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    index = draw.randrange(len(data) or 1)
    return data[:index] + bytes([draw.randrange(256)]) + data[index + 1 :]


def _insert(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    index = draw.randint(0, len(data))
    return data[:index] + draw.randbytes(draw.choice((1, 1, 4, 40))) + data[index:]


def _delete(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    index = draw.randint(0, len(data))
    return data[:index] + data[index + draw.choice((1, 1, 4, 40, 400)) :]


def _duplicate(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = sorted(draw.randint(0, len(data)) for _ in range(2))
    return data[:end] + data[start:end] + data[end:]


def _truncate(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    return data[: draw.randint(0, len(data))]


def _splice(data: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = draw.choice(seeds)
    return data[: draw.randint(0, len(data))] + other[draw.randint(0, len(other)) :]


def _number_field(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Lengths and offsets in binary files are often two, four or eight bytes."""
    size = draw.choice((2, 4, 8))
    index = draw.randint(0, max(0, len(data) - size))
    value = draw.choice((0, 1, 255, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), draw.getrandbits(8 * size)))
    return data[:index] + value.to_bytes(size, draw.choice(("little", "big"))) + data[index + size :]


_BYTES: tuple[Mutation, ...] = (_flip, _flip, _insert, _delete, _duplicate, _truncate, _splice, _number_field)


def _on_lines(change: Callable[[list[str], random.Random], None]) -> Mutation:
    def mutation(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        change(lines, draw)
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    return mutation


def _on_columns(change: Callable[[list[str], random.Random], None]) -> Mutation:
    """Changes the columns of one line, separated as the line has them."""

    def on_lines(lines: list[str], draw: random.Random) -> None:
        index = draw.randrange(len(lines))
        separator = "\t" if "\t" in lines[index] else " "
        columns = lines[index].split(separator)
        change(columns, draw)
        lines[index] = separator.join(columns)

    return _on_lines(on_lines)


def _swap(items: list[str], draw: random.Random) -> None:
    one, other = draw.randrange(len(items)), draw.randrange(len(items))
    items[one], items[other] = items[other], items[one]


def _drop(items: list[str], draw: random.Random) -> None:
    del items[draw.randrange(len(items))]


def _double(items: list[str], draw: random.Random) -> None:
    index = draw.randrange(len(items))
    items[index:index] = [items[index]] * draw.choice((1, 1, 3, 200))


def _odd(items: list[str], draw: random.Random) -> None:
    items[draw.randrange(len(items))] = draw.choice(draw.choice((ODD_TEXTS, ODD_NUMBERS)))


def _odd_more(items: list[str], draw: random.Random) -> None:
    index = draw.randrange(len(items))
    items[index] += draw.choice(ODD_TEXTS)


def _line_ends(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\n \n", b"", b"\x00\n")))


def _mark(data: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    return draw.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00", b"#", b"{")) + data


_TEXT: tuple[Mutation, ...] = (
    *(_on_lines(change) for change in (_swap, _drop, _double, _odd, _odd_more)),
    *(_on_columns(change) for change in (_swap, _drop, _double, _odd, _odd, _odd_more)),
    _line_ends,
    _mark,
)


def _json(data: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    try:
        text = json.dumps(change_value(json.loads(data), draw), ensure_ascii=draw.random() < 0.5)
    except (ValueError, RecursionError):
        return _flip(data, draw, seeds)
    opening, closing = draw.choice((("[", "]"), ('{"a":', "}")))
    depth = draw.choice((50, 5000, 20_000))
    deep = opening * depth + "1" + closing * depth
    return text.replace(f'"{_DEEP}"', deep).encode("utf-8", "surrogatepass")


def _json_line(data: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    index = draw.choice([number for number, line in enumerate(lines) if line.strip()] or [0])
    lines[index] = _json(lines[index], draw, seeds)
    return b"\n".join(lines)


_FORMS: dict[str, tuple[Mutation, ...]] = {
    "binary": _BYTES,
    "text": (*_BYTES, *_TEXT, *_TEXT),
    "json": (*_BYTES, *[_json] * 24),
    "jsonl": (*_BYTES, *[_json_line] * 24),
}


def change_value(value: Any, draw: random.Random) -> Any:
    """A JSON value with one change somewhere in it: another value, a key more or less, another order."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(list(value))
        action = draw.random()
        if action < 0.75:
            return {**value, key: change_value(value[key], draw)}
        if action < 0.85:
            return {name: each for name, each in value.items() if name != key}
        return {**value, draw.choice((key + "x", "", "type", key.upper())): draw.choice(ODD_VALUES)}
    if isinstance(value, list) and value and draw.random() < 0.85:
        index = draw.randrange(len(value))
        action = draw.random()
        if action < 0.75:
            return [*value[:index], change_value(value[index], draw), *value[index + 1 :]]
        if action < 0.85:
            return [*value[:index], *value[index + 1 :]]
        return [*value, *value[index:]] if action < 0.95 else value[::-1]
    choices = [draw.choice(ODD_VALUES), draw.choice(ODD_TEXTS), [value], {"a": value}, str(value), _DEEP]
    if isinstance(value, (int, float)):
        choices += [-value, value + 1, value * 10**6, float(value)] if abs(value) < 1e100 else []
    return draw.choice(choices)


def write_changed(path: Path, target: Target, draw: random.Random) -> None:
    """Writes a changed seed of the target."""
    path.write_bytes(target.changed(draw))


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of file and what reads it.

    Arguments:
        kind: the row of the table that counts its cases.
        file: the name of the file, below the folder of a case.
        form: see `mutate`.
        seeds: valid contents.
        run: reads the file.
        weight: how often it is drawn, compared with others. Those that take long have less.
        write: writes the file.
    """

    kind: str
    file: str
    form: str
    seeds: Sequence[bytes]
    run: Callable[[Path], object]
    weight: float = 1.0
    write: Callable[[Path, Target, random.Random], None] = write_changed

    def changed(self, draw: random.Random) -> bytes:
        return mutate(self.seeds, self.form, draw)
