"""The cache folder, and the sizes of what is in it."""

from pathlib import Path

import pytest

from elmo_tasks.errors import WriteError
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.cache import folder_size, human_size, used_cache


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
