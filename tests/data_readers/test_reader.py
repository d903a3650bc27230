"""What readers share: the cache, several processes at once, hub data sets."""

import logging
import multiprocessing
import os
import re
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import datasets
import pytest

from elmo_tasks.data_readers.conll2003 import Conll2003Config, Conll2003Reader
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.rows import JsonlConfig
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.data_readers.sources import Parsing, Source, parse_hub_source
from elmo_tasks.data_readers.squad import SquadConfig
from elmo_tasks.errors import DataError, ElmoTasksError, UnknownLabelError
from elmo_tasks.extras.compare.systems import is_data_file
from elmo_tasks.modules.word_vectors import WordVectorFile
from elmo_tasks.text import tokenization
from tests.data_readers.readers import write, write_hub

TEXT = "Oslo I-LOC\nsleeps O\n\nMary I-PER\nruns O\n"
READER = Conll2003Config().build()
TOKENS = [["Oslo", "sleeps"], ["Mary", "runs"]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(folder))
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths of the files that were parsed, in order."""
    paths: list[Path] = []
    parse = Conll2003Reader.examples

    def examples(self: Conll2003Reader, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        paths.append(path)
        yield from parse(self, path, parsing)

    monkeypatch.setattr(Conll2003Reader, "examples", examples)
    return paths


def test_what_is_parsed_again(cache: Path, path: Path, parsed: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: Path | str, **settings: Any) -> datasets.Dataset:
        return Conll2003Config(**settings).build().read(source)

    first, second = read(path), read(str(path))
    assert parsed == [path]
    assert first.to_list() == second.to_list()
    (mapped,) = {Path(file["filename"]) for file in second.cache_files}
    assert mapped.is_relative_to(cache / "datasets")
    path = path.rename(path.with_name("other.txt"))  # the name does not matter
    read(path)
    assert len(parsed) == 1
    times = os.stat(path)
    path.write_text(TEXT.replace("Oslo", "Roma"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time
    assert read(path)[0]["tokens"][0] == "Roma"
    assert len(parsed) == 2
    assert read(path, tag_scheme="IOB2")[0]["tags"][0] == "B-LOC"
    assert len(parsed) == 3
    monkeypatch.setattr(Conll2003Reader, "version", Conll2003Reader.version + 1)
    read(path)
    assert len(parsed) == 4
    module = ModuleType("elsewhere")
    module.__file__ = str(path.with_name("elsewhere.py"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    own = type("Conll2003Reader", (Conll2003Reader,), {"__module__": module.__name__})
    for code, count in (("one", 5), ("one", 5), ("another", 6)):
        write(Path(module.__file__), code)
        own(Conll2003Config()).read(path)
        assert len(parsed) == count


def test_readers_that_tokenize_read_anew_with_another_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = [
        config.build() for config in (SquadConfig(), SnliConfig(), JsonlConfig(task="tagging"), Conll2003Config())
    ]
    before = [reader.cache_key() for reader in readers]
    monkeypatch.setattr(tokenization, "VERSION", "another")
    assert [reader.cache_key() != key for reader, key in zip(readers, before, strict=True)] == [True] * 3 + [False]


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "cut short": lambda arrow, notes: arrow.write_bytes(arrow.read_bytes()[:-100]),
    "no bytes": lambda arrow, notes: arrow.write_bytes(b""),
    "other bytes": lambda arrow, notes: arrow.write_bytes(b"x" * 1000),
    "offsets": lambda arrow, notes: arrow.write_bytes(
        arrow.read_bytes().replace(struct.pack("<3i", 0, 2, 4), struct.pack("<3i", 0, 10**9, 4))
    ),
    "no data": lambda arrow, notes: arrow.unlink(),
    "no notes": lambda arrow, notes: notes.unlink(),
    "broken notes": lambda arrow, notes: notes.write_text("{"),
    "skipped is a number": lambda arrow, notes: notes.write_text(notes.read_text().replace("[]", "3")),
    "broken description": lambda arrow, notes: arrow.with_name("dataset_info.json").write_text("{"),
    "description without an end": lambda arrow, notes: arrow.with_name("dataset_info.json").write_text("[" * 100_000),
    "no description": lambda arrow, notes: arrow.with_name("dataset_info.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_cache_file_is_made_anew(
    cache: Path,
    path: Path,
    parsed: list[Path],
    damage: Callable[[Path, Path], object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    READER.read(path)
    (arrow,), (notes,) = cache.rglob("*.arrow"), cache.rglob("notes.json")
    damage(arrow, notes)
    for _ in range(2):
        assert READER.read(path)["tokens"][:] == TOKENS
        assert len(parsed) == 2
    is_said = damage is not DAMAGE["no description"]  # which `datasets` itself takes for no data set
    assert caplog.text.count("the cached data set is damaged and is built again") == is_said


def test_what_was_skipped_in_a_source_that_was_given_up_does_not_count(
    cache: Path, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Conll2003Config(on_error="skip").build()
    broken = tmp_path / "broken.txt"
    broken.write_bytes(TEXT.replace("runs O", "runs").encode() + b"\n\xff\n")
    with pytest.raises(DataError, match="not UTF-8"):
        reader.read(broken)
    assert list(cache.rglob("*.arrow")) == []
    assert reader.read(path)["tokens"][:] == TOKENS
    assert "skipped" not in caplog.text


def test_reading_is_logged_once(cache: Path, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        READER.read(path)
        READER.read(path)
    reading, read = caplog.messages
    assert reading == f"reading {path}"
    assert re.fullmatch(rf"{path}: 2 examples in \d\.\d s", read)


def test_reading_shows_no_bar_and_leaves_those_of_others(
    cache: Path, path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    READER.read(path)
    assert capfd.readouterr() == ("", "")
    assert not datasets.are_progress_bars_disabled()


def _read_tokens(path: str) -> list[list[str]]:
    return READER.read(path)["tokens"][:]


@pytest.mark.slow
def test_several_processes_at_once(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "larger.txt"
    path.write_text((TEXT + "\n") * 500)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(_read_tokens, [str(path)] * 4, chunksize=1)
    assert results == [TOKENS * 500] * 4
    assert len(list(cache.rglob("*.arrow"))) == len(list((cache / "datasets").iterdir())) == 1


@pytest.mark.parametrize("read", [WordVectorFile, is_data_file])
def test_what_is_read_twice_must_be_a_file(read: Callable[[Path], object], cache: Path) -> None:
    with pytest.raises(DataError, match=r"^/dev/null: is a pipe or a device, and this file is read twice; expected"):
        read(Path("/dev/null"))


def test_a_file_that_a_pattern_finds_twice_is_read_once(cache: Path, path: Path) -> None:
    for ending in (".bz2", ".gz"):
        write(Path(f"{path}{ending}"), b"")
    for source in (f"{path.parent}/*", [str(path), f"{path.parent}/../{path.parent.name}/{path.name}"]):
        assert READER.read(source)["tokens"][:] == TOKENS
        assert READER.origins(source) == [str(path)]


def test_examples_of_several_files_name_their_own(cache: Path, path: Path) -> None:
    source = [str(path), *(str(shutil.copy(path, path.with_name(name))) for name in ("more.txt", "rest.txt"))]
    origins = READER.origins(source)
    assert [origins[file] for file in READER.read(source)["file"]] == [file for file in source for _ in TOKENS]


def test_hub_sources() -> None:
    assert parse_hub_source("hub:conll") == ("conll", None, None)
    assert parse_hub_source("hub:owner/conll:test") == ("owner/conll", None, "test")
    assert parse_hub_source("hub:owner/conll#english:train[:10%]") == ("owner/conll", "english", "train[:10%]")
    with pytest.raises(ElmoTasksError, match=r"hub::train: not the name of a data set; expected hub:NAME"):
        parse_hub_source("hub::train")


def write_tagged(folder: Path, **splits: list[tuple[list[str], list[str]]]) -> str:
    """A hub data set with class ids for tags."""
    labels = datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": labels})
    columns = {split: dict(zip(features, zip(*rows, strict=True), strict=True)) for split, rows in splits.items()}
    return write_hub(folder, {split: datasets.Dataset.from_dict(each, features) for split, each in columns.items()})


HUB_ROWS = [(["-DOCSTART-"], ["O"]), (["Oslo", "sleeps"], ["B-LOC", "O"]), (["Mary", "Oak"], ["B-PER", "I-PER"])]


def test_splits_and_documents_of_a_hub_data_set(cache: Path, tmp_path: Path) -> None:
    source = write_tagged(tmp_path / "hub", train=HUB_ROWS * 2, test=HUB_ROWS[1:2])
    train = READER.read(f"{source}:train")
    assert train["tags"][:] == [["U-LOC", "O"], ["B-PER", "L-PER"]] * 2
    assert train["document"][:] == [0, 0, 1, 1]
    assert train["sentence"][:] == [0, 1, 0, 1]
    assert train["line"][:] == [1, 2, 4, 5]  # the rows
    assert len(READER.read(f"{source}:test")) == 1
    assert len(READER.read(f"{source}:train[:2]")) == 1
    strings = write_hub(tmp_path / "strings", [{"words": ["Oslo"], "tags": ["B-LOC"]}])
    assert Conll2003Config(hub_columns=("words", "tags")).build().read(strings)["tags"][:] == [["U-LOC"]]


def test_rows_of_a_hub_data_set_without_tokens_are_left_out(
    cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = write_tagged(tmp_path / "hub", train=[([], []), *HUB_ROWS, ([], [])])
    for _ in ("read", "from the cache"):
        with caplog.at_level(logging.INFO, logger="elmo_tasks"):
            assert READER.read(source)["tokens"][:] == [["Oslo", "sleeps"], ["Mary", "Oak"]]
        assert f"{source}: 2 row(s) without tokens left out" in caplog.messages
        caplog.clear()


def test_a_hub_data_set_that_has_changed_is_read_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "IN_MEMORY_MAX_SIZE", 1 << 30)  # whatever else is kept in memory
    source, reader = write_tagged(tmp_path / "hub", train=HUB_ROWS), READER
    assert len(reader.read(source)) == 2
    shutil.rmtree(tmp_path / "hub")
    assert write_tagged(tmp_path / "hub", train=HUB_ROWS[1:2]) == source
    assert reader.read(source)["tokens"][:] == [["Oslo", "sleeps"]]


def test_hub_data_sets_that_cannot_be_loaded(cache: Path, tmp_path: Path) -> None:
    source = write_tagged(tmp_path / "hub", train=HUB_ROWS, test=HUB_ROWS)
    write(tmp_path / "script" / "script.py", "")
    for name, message in (
        (source, f": say which split: {source}:train, {source}:test"),
        (f"{source}:dev", ": cannot be loaded: .*dev"),
        (f"hub:{tmp_path}/nowhere", ": cannot be loaded"),
        (f"hub:{tmp_path}/script", ": cannot be loaded: .*script"),
    ):
        with pytest.raises(ElmoTasksError, match=f"^{name}{message}"):
            READER.read(name)


def unknown_label(reader: DatasetReader, source: Source, namespace: str, label: str) -> str:
    error = UnknownLabelError(namespace, label, ["other"])
    return str(reader.unknown_label(source, reader.read(source), error))


def test_without_lines_an_unknown_label_is_named_with_its_example(
    cache: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = Conll2003Reader.examples

    def examples(self: Conll2003Reader, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        return ({**example, "line": None} for example in parse(self, path, parsing))

    monkeypatch.setattr(Conll2003Reader, "examples", examples)
    message = unknown_label(READER, path, "tags", "U-PER")
    assert message.startswith(f"{path}: example 2: the label 'U-PER' is not among the tags of the run")
