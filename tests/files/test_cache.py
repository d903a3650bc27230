"""The cache folder: what is counted, and what is removed."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from elmo_tasks.errors import CacheError, WriteError
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.cache import clear, folder_size, human_size, usage, used_cache


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that does not exist yet, nor does the one that it is in."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "new" / "cache"))
    return tmp_path / "new" / "cache"


def test_the_folder_of_a_kind_is_made_with_those_that_it_is_in(cache: Path) -> None:
    assert used_cache("datasets") == used_cache("datasets") == cache / "datasets"
    assert (cache / "datasets").is_dir()


@pytest.mark.parametrize("name", ["file", "file/cache", "/proc/cache"])
def test_a_cache_that_cannot_be_written_says_what_to_set(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    cache = tmp_path / name
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(cache))
    for write in (atomic_write, atomic_folder):
        target = used_cache("datasets") / ("0" * 64)
        with pytest.raises(WriteError, match=rf"^{target}: cannot be written: .*: set ELMO_TASKS_CACHE to a folder"):
            write(target).__enter__()


def test_a_kind_that_was_never_used_is_empty(cache: Path) -> None:
    assert usage("datasets") == clear("datasets") == (0, 0)
    assert not cache.exists()


def entry(cache: Path, end: str, size: int) -> Path:
    path = cache / "datasets" / f"{'0' * 64}{end}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return path


def test_what_comes_with_a_data_set_does_not_count_as_one(cache: Path) -> None:
    entry(cache, ".arrow", 1000)
    entry(cache, ".json", 20)
    entry(cache, ".v3.arrow", 300)
    other = entry(cache, ".txt", 4000)  # not written by this program
    assert usage("datasets") == (2, 1320)
    assert clear("datasets") == (2, 1320)
    assert list((cache / "datasets").iterdir()) == [other]
    entry(cache, ".arrow", 5)
    assert clear("datasets") == (1, 5)  # the lock was given back


def test_a_kind_that_cannot_be_removed_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "archives" / ("0" * 64)).mkdir(parents=True)
    monkeypatch.setattr(shutil, "rmtree", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(CacheError, match=rf"^{cache}/archives: cannot be removed: Permission denied$"):
        clear("archives")


def test_the_size_of_a_folder_is_that_of_all_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one").write_bytes(bytes(10))
    (tmp_path / "a" / "b" / "two").write_bytes(bytes(200))
    (tmp_path / "a" / "gone").symlink_to(tmp_path / "nowhere")
    assert [folder_size(tmp_path / name) for name in ("a", "a/one", "none")] == [210, 10, 0]


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 bytes"), (1000, "1 kB"), (999_499, "999 kB"), (999_500, "1000 kB"), (10**6, "1 MB"), (10**9, "1 GB"),
     (10**12, "1 TB"), (5 * 10**15, "5000 TB")],
)  # fmt: skip
def test_sizes_change_their_unit_at_a_thousand(size: int, text: str) -> None:
    assert human_size(size) == text
