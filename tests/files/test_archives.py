"""Archives made to write outside of their folder or to fill the disk, and damaged ones. Each is refused in one line."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.files.archives import contains, pack, unpack
from elmo_tasks.files.limits import (
    MAX_JSON_BYTES,
    MAX_LINE_BYTES,
    VARIABLE,
    bounded,
    limit,
    unpacked_numbers,
    unpacked_text,
)
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.folder import RunFolder

NAMES = ("config.json", "bilm/weights.hdf5")
Members = list[tuple[tarfile.TarInfo, bytes]]


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, content


def write(path: Path, members: Members) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return path


def links_beyond_the_longest_path(outside: Path) -> Members:
    """The chain of links of CVE-2025-4517, which `realpath` gives up on, and which leads out of the folder."""
    members = []
    below, step = "", "d" * 247
    for letter in "abcdefghijklmnop":
        members.append(member(f"{below}{step}", kind=tarfile.DIRTYPE))
        members.append(member(f"{below}{letter}", kind=tarfile.SYMTYPE, link=step))
        below += f"{step}/"
    long_link = "/".join("abcdefghijklmnop") + "/" + "l" * 254
    members.append(member(long_link, kind=tarfile.SYMTYPE, link="../" * 16))
    members.append(member("escape", kind=tarfile.SYMTYPE, link=f"{long_link}/../../{outside.name}"))
    members.append(member("escape/written", b"x"))
    return members


HOSTILE: dict[str, tuple[Callable[[Path], Members], str]] = {
    "a chain of links": (links_beyond_the_longest_path, "/?[a-z]' is not a regular file"),
    "a link": (lambda outside: [member("config.json", kind=tarfile.SYMTYPE, link=f"{outside}/old")], "not a regular"),
    "a hard link": (
        lambda outside: [
            member("config.json", b"{}"), member("bilm/weights.hdf5", kind=tarfile.LNKTYPE, link="config.json")
        ],
        "'bilm/weights.hdf5' is not a regular file",
    ),
    "a device": (lambda outside: [member("config.json", kind=tarfile.CHRTYPE)], "'config.json' is not a regular file"),
    "only a folder": (lambda outside: [member("bilm", kind=tarfile.DIRTYPE)], "expected a run's folder, with a config"),
    "only clutter": (lambda outside: [member("._config.json"), member(".DS_Store")], "expected a run's folder"),
    "two runs": (lambda outside: [member("a/config.json"), member("b/config.json")], "contains 'b/config"),
    "a file in and outside of a folder": (
        lambda outside: [member("run/bilm/weights.hdf5", b"{}"), member("config.json")], "contains 'run/bilm/weights",
    ),
    "a file in two folders": (lambda outside: [member("a/run/config.json", b"{}")], "contains 'a/run/config.json'"),
    "a link with the name of clutter": (
        lambda outside: [member("._config.json", kind=tarfile.SYMTYPE, link=f"{outside}/old")], "not a regular"
    ),
    "a path upwards as clutter": (lambda outside: [member("../outside/._written", b"x")], "contains '../outside/._wr"),
    "another file in the folder": (
        lambda outside: [member("run/config.json", b"{}"), member("run/run.sh", b"x")], "contains 'run/run.sh'"
    ),
    "a file in the folder twice": (
        lambda outside: [member("run/config.json", b"1"), member("run/config.json", b"2")], "'run/config.json' twice"
    ),
    "a link in the folder": (
        lambda outside: [member("run/config.json", kind=tarfile.SYMTYPE, link=f"{outside}/old")], "not a regular"
    ),
    "an absolute path": (lambda outside: [member(str(outside / "written"), b"x")], "contains '/"),
    "a path upwards": (lambda outside: [member("../outside/written", b"x")], "contains '../outside/written'"),
    "a path upwards from within": (lambda outside: [member("bilm/../config.json", b"x")], "contains 'bilm/../config"),
    "a file twice": (lambda outside: [member("config.json", b"1"), member("config.json", b"2")], "'config.json' twice"),
    "another file": (
        lambda outside: [member("config.json", b"{}"), member(f"run.{'s' * 300}", b"x")], f"contains 'run.{'s' * 196}'"
    ),
    "a file that bursts": (lambda outside: [member("config.json", bytes(700_000))], "unpacks to more than 6[45]"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "problem"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_write_nothing(
    make: Callable[[Path], Members], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0.01")  # 640,000 bytes
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").write_text("old")
    archive = write(tmp_path / "run.tar.gz", make(outside))
    with pytest.raises(RunError, match=rf"run\.tar\.gz: .*{problem}") as caught:
        open_run(archive)
    assert "\n" not in str(caught.value)
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("old", "old")]
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    info, _ = member("config.json")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "config.json"}
    info.pax_headers |= {"GNU.sparse.size": str(10**13), "GNU.sparse.map": f"0,0,{10**13},0"}
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    with pytest.raises(RunError, match=r"'config\.json' is not a regular file"):
        unpack(tmp_path / "run.tar.gz", tmp_path / "unpacked", NAMES.__contains__)


def test_a_header_that_bursts_and_a_chain_of_headers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, _ = member("config.json")
    info.pax_headers = {"comment": "x" * 700_000}
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    monkeypatch.setenv(VARIABLE, "0.01")
    with pytest.raises(RunError, match="unpacks to more than"):
        unpack(tmp_path / "run.tar.gz", tmp_path / "unpacked", NAMES.__contains__)
    monkeypatch.delenv(VARIABLE)
    write(tmp_path / "chain.tar.gz", [member("x", b"y", kind=tarfile.GNUTYPE_LONGNAME)] * 5000)
    with pytest.raises(RunError, match=r"chain\.tar\.gz: damaged"):
        unpack(tmp_path / "chain.tar.gz", tmp_path / "other", NAMES.__contains__)


def test_the_environment_allows_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write(tmp_path / "run.tar.gz", [member("config.json", bytes(700_000))])
    monkeypatch.setenv(VARIABLE, "0.02")
    (tmp_path / "unpacked").mkdir()
    unpack(archive, tmp_path / "unpacked", NAMES.__contains__)
    assert (tmp_path / "unpacked" / "config.json").stat().st_size == 700_000


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    for name in NAMES:
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(os.urandom(2000))
    pack({name: tmp_path / "run" / name for name in NAMES}, tmp_path / "run.tar.gz")
    return (tmp_path / "run.tar.gz").read_bytes()


def test_a_whole_archive_is_unpacked(whole: bytes, tmp_path: Path) -> None:
    unpack(tmp_path / "run.tar.gz", tmp_path / "unpacked", RunFolder(tmp_path).packed().__contains__)
    for name in NAMES:
        assert (tmp_path / "unpacked" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def as_macos(names: tuple[str, ...], top: str) -> tuple[list[str], list[str]]:
    """The names of the files and of what macOS adds, with their folders."""
    clutter = [f"{top}{name.rpartition('/')[0]}{'/' * ('/' in name)}._{name.rpartition('/')[2]}" for name in names]
    return [f"{top}{name}" for name in names], [*clutter, f"{top}.DS_Store", f"__MACOSX/{top}._{names[0]}"]


@pytest.mark.parametrize("top", ["", "./", "run/", "./my run/"])
def test_an_archive_that_was_packed_anew_is_unpacked(top: str, whole: bytes, tmp_path: Path) -> None:
    files, clutter = as_macos(NAMES, top)
    with tarfile.open(tmp_path / "anew.tar.gz", "w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x"}) as tar:
        for folder in (top, f"{top}bilm/"):
            tar.addfile(member(folder or "./", kind=tarfile.DIRTYPE)[0])
        for name, source in zip([*files, *clutter], [*NAMES, *[NAMES[0]] * len(clutter)], strict=True):
            info, content = member(name, (tmp_path / "run" / source).read_bytes())
            info.pax_headers = {"LIBARCHIVE.xattr.com.apple.provenance": "AQI", "mtime": "1700000000.123456789"}
            tar.addfile(info, io.BytesIO(content))
    unpack(tmp_path / "anew.tar.gz", tmp_path / "unpacked", NAMES.__contains__)
    found = {path.relative_to(tmp_path / "unpacked").as_posix() for path in (tmp_path / "unpacked").rglob("*")}
    assert found == {*NAMES, "bilm"}
    for name in NAMES:
        assert (tmp_path / "unpacked" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert contains(tmp_path / "anew.tar.gz", NAMES[0])
    assert not contains(tmp_path / "anew.tar.gz", "weights.th")


def test_damage_after_the_last_file_is_refused(whole: bytes, tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(gzip.decompress(whole) + bytes(4_000_000)))
    damaged[-5] ^= 0xFF  # of the checksum
    (tmp_path / "run.tar.gz").write_bytes(damaged)
    with pytest.raises(RunError, match=r"run\.tar\.gz: damaged"):
        open_run(tmp_path / "run.tar.gz")


@pytest.mark.parametrize("index", [1, 100, 1000, -9, -5, -1])
def test_damaged_archives_are_refused(index: int, whole: bytes, tmp_path: Path) -> None:
    damaged = bytearray(whole)
    damaged[index] ^= 0xFF
    for content in (whole[:index], damaged, gzip.compress(gzip.decompress(whole)[:1000])):
        (tmp_path / "run.tar.gz").write_bytes(content)
        with pytest.raises(RunError, match=r"run\.tar\.gz: damaged"):
            open_run(tmp_path / "run.tar.gz")
    (tmp_path / "run.tar.gz").write_bytes(b"not an archive")
    assert not contains(tmp_path / "run.tar.gz", NAMES[0])


def test_a_link_is_packed_as_the_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    pack({"config.json": tmp_path / "link"}, tmp_path / "run.tar.gz")
    unpack(tmp_path / "run.tar.gz", tmp_path / "unpacked", ["config.json"].__contains__)
    assert (tmp_path / "unpacked" / "config.json").read_text() == "content"


@pytest.mark.parametrize("names", [NAMES[1:], ()])
def test_a_folder_is_made_whatever_comes_first(names: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / "run.tar.gz", [member(f"run/{name}", b"content") for name in names])
    unpack(tmp_path / "run.tar.gz", tmp_path / "unpacked", NAMES.__contains__)
    unpacked = tmp_path / "unpacked"
    assert [str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()] == list(names)
    assert unpacked.is_dir()


def test_files_that_are_not_known_may_be_left_out(tmp_path: Path) -> None:
    members = [member("old/config.json", b"2"), member("config.json", b"1"), member("notes.txt", b"x")]
    unpack(write(tmp_path / "run.tar.gz", members), tmp_path / "unpacked", NAMES.__contains__, only_known=False)
    assert {path.name: path.read_bytes() for path in (tmp_path / "unpacked").rglob("*")} == {"config.json": b"1"}


def test_a_stream_of_just_the_most_bytes_is_read_to_its_end() -> None:
    stream = bounded(io.BytesIO(b"abcde"), 5, ElmoTasksError)
    assert (stream.read(2), stream.read(), stream.read()) == (b"ab", b"cde", b"")
    with pytest.raises(ElmoTasksError, match=r"^unpacks to more than 4 bytes; if the file is as it should be, ELMO"):
        bounded(io.BytesIO(b"abcde"), 4, ElmoTasksError).read()


def test_what_a_file_may_unpack_to_grows_with_it_and_with_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/reference/runs.md has them, in millions of bytes."""
    for factor in ("1", "2.5"):
        monkeypatch.setenv(VARIABLE, factor)
        found = [limit(MAX_LINE_BYTES), limit(MAX_JSON_BYTES)]
        found += [bound(size) for bound in (unpacked_text, unpacked_numbers) for size in (0, 1_000_000)]
        assert found == [float(factor) * 1e6 * bound for bound in (100, 16, 256, 356, 64, 84)]
    assert limit(101) == 252
