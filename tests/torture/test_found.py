"""Faults that the torture has found, as small cases. Add a line for each new one.

`FOUND` has kinds of the fuzzer's targets, and the content that their file had.
"""

import dataclasses
import functools
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.files.text import read_lines
from tests.torture import files
from tests.torture.mutations import Target
from tests.torture.sandbox import allowed
from tests.torture.workshop import make_workshop

DEEP = b"[" * 100_000 + b"]" * 100_000
LABELS = b'{"words": [], "lowercase_words": false, "characters": [], "labels": %s}'
FOUND = [
    *(("run: bilm.json", content) for content in (b"[]", b'"x"', b"{}", b"{", b"\xff", DEEP)),
    ("run: bilm.json", b'{"options": {"a": 1}, "weights": "x", "fingerprint": "x"}'),
    ("run: bilm.json", b'{"options": "x", "weights": 1, "fingerprint": "x"}'),
    ("run: bilm.json", b'{"bilm": "default", "fingerprint": 1.5}'),
    *(("run: vocabulary.json", content) for content in (DEEP, b'{"words": Infinity}')),
    ("run: vocabulary.json", b'{"words": [["a"]], "lowercase_words": false, "characters": [], "labels": {}}'),
    *(("run: vocabulary.json", LABELS % labels) for labels in (b"{}", b'{"tags": [1.5]}', b'{"tags": "O"}', b"null")),
    *(("run: vocabulary.json", LABELS % labels) for labels in (b'{"tags": [["O"]]}', b'{"tags": {"O": 1}}')),
    *(("run: metrics.json", content) for content in (b"{", b"\xff")),
    *(("run: calibration.json", content) for content in (b"{}", b'{"temperature": 1e-9}', DEEP)),
    ("run: config.json", DEEP),
    *(("run: metrics.jsonl", content) for content in (b"\xff\n\n\n", b"{\n{\n{\n", b"", b'{"a": {}}\n' * 3)),
    ("archive: compressed", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 30),
    *(("cache: corpora", content) for content in (DEEP, b"[]", b"\x93NUMPY\x01\x00\x02\x00{(", b"")),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data and runs; see `make_workshop`."""
    folder = tmp_path_factory.mktemp("found") / "shop"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_CACHE", "")  # is set by the workshop, and set back at the end
        make_workshop(folder)
        yield folder


@dataclasses.dataclass(frozen=True)
class Fixed(Target):
    """A target whose file has one content."""

    def changed(self, draw: random.Random) -> bytes:
        return self.seeds[0]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "content"), FOUND)
def test_a_damaged_file_is_an_error_or_is_made_again(
    kind: str, content: bytes, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, target in enumerate(each for each in files.targets(shop) if each.kind == kind):
        values = {field.name: getattr(target, field.name) for field in dataclasses.fields(target)}
        found, folder = Fixed(**values | {"seeds": [content]}), tmp_path / str(number)
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(folder / "cache"))
        path = folder / found.file
        path.parent.mkdir(parents=True)
        found.write(path, found, random.Random(1))
        allowed(functools.partial(found.run, path))


@pytest.mark.parametrize(
    ("offset", "content"),
    [(0, b"XX"), (26, b"\xff\xff"), (-6, b"\xff\xff\xff\xff"), (-12, b"\xff\xff\xff\xff")],
)
def test_a_damaged_zip_archive_is_an_error(offset: int, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.txt", "a b\n" * 50)
    data = bytearray(path.read_bytes())
    offset %= len(data)
    data[offset : offset + len(content)] = content
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"data\.zip"):
        list(read_lines(path))
