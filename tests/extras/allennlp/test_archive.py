"""Archives as AllenNLP writes them, damaged ones, and those made to do harm. Each of the latter gets one line."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Params, Weights, opened
from elmo_tasks.files.limits import VARIABLE
from tests.extras.allennlp.archives import OPTIONS, member, saved, write_archive

TENSORS = {"one": torch.arange(6.0).view(2, 3), "two": torch.ones(2, dtype=torch.int64)}
CONFIG = {"model": {"type": "simple_tagger"}}


@pytest.fixture(params=[True, False], ids=["since torch 1.6", "before torch 1.6"])
def new_format(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_reads_the_file_and_the_folder(new_format: bool, tmp_path: Path) -> None:
    names = {"tokens": ("@@UNKNOWN@@", "a b", "x\x85y", "two@@NEWLINE@@lines"), "labels": ("B", "A")}
    options = member("fta/model.elmo.options_file", OPTIONS.model_dump_json().encode())
    meta = member("meta.json", b'{"version": "2.8.0"}')
    others = ("._config.json", "vocabulary/._tokens.txt", "fta/._options_file", "backup/config.json", "vocabulary/x.th")
    more = [options, meta, member("vocabulary/own.txt", b"a\r\nb"), *(member(name, b"\0") for name in others)]
    path = write_archive(tmp_path / "model.tar.gz", CONFIG, TENSORS, names, new_format=new_format, more=more)
    with tarfile.open(path) as tar:
        for entry in filter(tarfile.TarInfo.isfile, tar):  # `extractall` has another signature in older Pythons
            target = tmp_path / "folder" / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(entry).read())  # type: ignore[union-attr]
    (tmp_path / "folder" / "weights.th").rename(tmp_path / "folder" / "best.th")  # as in the folder of a training
    (scratch := tmp_path / "scratch").mkdir()
    for given in (path, tmp_path / "folder"):
        with opened(given, scratch) as archive:
            assert bool(list(scratch.iterdir())) == (given == path)  # where it was unpacked
            assert archive.config == CONFIG
            assert archive.version == "2.8.0"
            assert archive.bilm_options == OPTIONS
            assert archive.vocabulary.labels("tokens") == (
                "@@PADDING@@", "@@UNKNOWN@@", "a b", "x\x85y", "two\nlines",
            )  # fmt: skip
            assert archive.vocabulary.labels() == ("B", "A")
            assert archive.vocabulary.labels("own") == ("@@PADDING@@", "a", "b")
            assert archive.tensors.keys() == TENSORS.keys()
            assert all(torch.equal(tensor, TENSORS[name]) for name, tensor in archive.tensors.items())
            with pytest.raises(
                MigrationError, match=r"vocabulary/pos\.txt is missing; the archive has: labels, own, tokens"
            ):
                archive.vocabulary.labels("pos")
        assert not list(scratch.iterdir())


def test_names_of_its_own_for_padded_namespaces_and_for_unknown_words(tmp_path: Path) -> None:
    config = {**CONFIG, "vocabulary": {"oov_token": "UNK"}}
    patterns = ("*pos", "exact")
    names = dict.fromkeys(("tokens", "my_pos", "exact", "not_exact", "labels"), ("x", "UNK"))
    for file, others in (("a", {}), ("b", {"non_padded_namespaces": patterns})):
        with opened(write_archive(tmp_path / file, config, {}, names | others), tmp_path) as archive:
            bare = {name for name in names if archive.vocabulary.labels(name) == ("x", "@@UNKNOWN@@")}
            assert bare == ({"my_pos", "exact"} if others else {"labels"})
            assert archive.vocabulary.labels("not_exact") == ("@@PADDING@@", "x", "@@UNKNOWN@@")
            assert (archive.version, archive.bilm_options) == (None, None)
    names["tokens"] = ("\ufeffabc", "d")  # a byte order mark
    with opened(write_archive(tmp_path / "c", {**CONFIG, "vocabulary": "x"}, {}, names), tmp_path) as archive:
        assert archive.vocabulary.labels() == ("x", "UNK")
        assert archive.vocabulary.labels("tokens") == ("@@PADDING@@", "abc", "d")


def test_of_two_files_of_weights_that_of_the_archive_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "meta.json").write_text("{}")
    for number, name in enumerate(("best.th", "weights.th")):
        (tmp_path / name).write_bytes(saved({"a": torch.tensor([number])}))
    with opened(tmp_path, tmp_path) as archive:
        assert archive.tensors["a"].tolist() == [1]
        assert archive.version is None


def test_a_vocabulary_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_tasks.extras.allennlp.archive.MAX_VOCABULARY_BYTES", 4)
    path = write_archive(tmp_path / "a", CONFIG, {}, {"tokens": ("abc",), "non_padded_namespaces": ()})
    with opened(path, tmp_path) as archive:
        assert archive.vocabulary.labels("tokens") == ("@@PADDING@@", "abc")
    path = write_archive(tmp_path / "a", CONFIG, {}, {"tokens": ("abcd",), "non_padded_namespaces": ()})
    message = rf"^{path}/vocabulary/tokens\.txt: 5 bytes; expected at most 4; .*{VARIABLE}=10"
    with pytest.raises(MigrationError, match=message), opened(path, tmp_path):
        pass


WRITTEN_BY_HAND = """// with a comment, a "quoted one", too
{
  "a": "http://x.org/*,}# \\", // ]", # more
  /* and
     another, ] */
  "b": [1, [2,], /* last */ ],
}
"""


def test_comments_and_last_commas_of_a_config_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(WRITTEN_BY_HAND)
    (tmp_path / "weights.th").write_bytes(saved(TENSORS))
    with opened(tmp_path, tmp_path) as archive:
        assert archive.config == {"a": 'http://x.org/*,}# ", // ]', "b": [1, [2]]}


@pytest.mark.parametrize(
    "config",
    [
        '{"a": import "weights.th"}',
        '{"a": std.range(1, 1000000000)}',
        '{"a": 1 // }',
        *(f"{{ # \n{each * 300_000}" for each in ("/*", '\\"', '"', ",", ", ", "#", "/")),
    ],
)
def test_a_config_is_not_evaluated(config: str, tmp_path: Path) -> None:
    """And what does not end takes no time."""
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "weights.th").write_bytes(saved(TENSORS))
    with pytest.raises(MigrationError, match=r"config\.json"), opened(tmp_path, tmp_path):
        pass


class Code:
    """Its pickle runs code when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, (str(self.path / "harmed"),)


def test_code_in_the_pickle_is_not_run_and_nothing_is_written_elsewhere(new_format: bool, tmp_path: Path) -> None:
    tensors: Any = {**TENSORS, "code": Code(tmp_path)}
    path = write_archive(tmp_path / "model.tar.gz", CONFIG, tensors, {}, new_format=new_format)
    with pytest.raises(MigrationError) as error, opened(path, tmp_path):
        pass
    assert "more than tensors, perhaps code, which is not run" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    path = write_archive(tmp_path / "model.tar.gz", CONFIG, TENSORS, {}, more=[member("vocabulary/../../harmed", b"x")])
    with pytest.raises(MigrationError, match=f"^{path}: .* a place outside of its folder"), opened(path, tmp_path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["model.tar.gz"]


WRONG: dict[str, tuple[dict[str, bytes], str]] = {
    "config": ({"config.json": b"{"}, "config.json"),
    "no object": ({"config.json": b"[]"}, "config.json"),
    "no tensors": ({"weights.th": saved([1, 2])}, "holds a list; expected a state dict"),
    "cut short": ({"weights.th": saved(TENSORS, new_format=False)[:-20]}, "damaged, or not a state dict"),
    "endless zeros": ({"weights.th": saved({"a": torch.zeros(1).expand(10**11)})}, f"{VARIABLE}=10"),
    "no UTF-8": ({"vocabulary/tokens.txt": b"\xff"}, "not UTF-8"),
    "meta": ({"meta.json": b"2.8"}, "meta.json"),
}


@pytest.mark.parametrize(("files", "message"), WRONG.values(), ids=WRONG)
def test_wrong_files_are_named(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    contents = {"config.json": json.dumps(CONFIG).encode(), "weights.th": saved(TENSORS), **files}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(MigrationError) as error, opened(tmp_path, tmp_path):
        pass
    assert str(error.value).startswith(str(tmp_path / next(iter(files))))
    assert message in str(error.value)


@pytest.mark.parametrize("missing", ["config.json", "weights.th"])
def test_other_places_are_refused(missing: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "weights.th").write_bytes(b"")
    (tmp_path / missing).unlink()
    with pytest.raises(MigrationError, match=f"has no {missing}"), opened(tmp_path, tmp_path):
        pass
    for given in (tmp_path / "none.tar.gz", tmp_path / "text"):
        (tmp_path / "text").write_text("no archive")
        with pytest.raises(MigrationError) as error, opened(given, tmp_path):
            pass
        assert str(error.value).startswith(f"{given}: ")
        assert "expected an archive that AllenNLP has written" in str(error.value)
        assert ("no such file or folder" in str(error.value)) == (given.name == "none.tar.gz")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MigrationError, match="pipe: not a regular file"), opened(tmp_path / "pipe", tmp_path):
        pass


VALUES = {"a": 1, "b": {"c": 2, "d": None, "e": {"f": [1, 2]}}, "g": "text"}


def test_what_was_not_read_is_known_by_its_path() -> None:
    params = Params(VALUES)
    assert params.unread() == ["a", "b", "g"]
    assert (params.get("a"), params.part("b").get("c"), params.get("h", 7)) == (1, 2, 7)
    assert params.unread() == ["g", "b.d", "b.e"]
    assert ("c" in params.part("b"), "d" in params.part("b")) == (True, False)
    params.ignore("g")
    assert params.part("b").part("e").path("f") == "b.e.f"
    params.part("missing").ignore("x")
    assert params.unread() == ["b.d", "b.e.f"]


def test_wrong_values_are_named() -> None:
    params = Params(VALUES)
    for read, message in (
        (lambda: params.get("h"), "config.json: h is missing"),
        (lambda: params.part("b").number("e"), "b.e is .*; expected a number"),
        (lambda: params.part("a"), "a is '1'; expected an object"),
        (lambda: params.expect("g", "other", None), "g is text; only other or None can be imported"),
        (lambda: params.expect("missing", 5), "missing is None; only 5 can be imported"),
    ):
        with pytest.raises(MigrationError, match=message):
            read()
    for value in ((1 << 20) + 1, 1e9, -1, True, None, float("nan"), "text"):
        with pytest.raises(MigrationError, match=f"n is '{value}'; expected a number, from 0 to 1,048,576"):
            Params({"n": value}).number("n", 3)
    for value in (0, 0.5, 1 << 20):
        assert Params({"n": value}).number("n") == value
    assert params.number("missing", None) is None


def test_tensors_are_taken_once_and_have_the_expected_shapes() -> None:
    weights = Weights({"x.one": torch.zeros(2, 3), "x.two": torch.zeros(4), "y": torch.zeros(())})
    part = weights.part("x.")
    assert part.names() == ["one", "two"]
    assert part.take("one", 2, None).shape == (2, 3)
    assert ("one" in part, "two" in part, part.take_optional("one")) == (False, True, None)
    assert (weights.names(), part.names()) == (["x.two", "y"], ["two"])
    for name, shape, message in (
        ("x.one", (), "has no tensor 'x.one'"),
        ("x.two", (4, 1), "'x.two' is 4; by its config it should be 4 x 1"),
        ("x.two", (3,), "'x.two' is 4; by its config it should be 3"),
        ("x.two", (None, 2), "'x.two' is 4; by its config it should be any x 2"),
        ("y", (2,), "'y' is a single number; by its config it should be 2"),
    ):
        fresh = Weights({"x.two": torch.zeros(4), "y": torch.zeros(())})
        with pytest.raises(MigrationError, match=message):
            fresh.take(name, *shape)
    assert part.take("two").shape == (4,)
