"""Text that several machines prepare together: the same corpus as one makes."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

from elmo_tasks import cli
from elmo_tasks.errors import CacheError, ElmoTasksError
from elmo_tasks.files.cache import usage
from elmo_tasks.files.locks import claimed
from elmo_tasks.pretraining import pieces, text_files
from elmo_tasks.pretraining.dataset_corpus import DatasetCorpus
from elmo_tasks.pretraining.prepare import TextCorpus
from tests.pretraining.conftest import make_text


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_CHUNK_BYTES", 500)
    monkeypatch.setattr(pieces, "_CHUNKS_OF_A_PIECE", 2)


@pytest.fixture
def corpus(tmp_path: Path) -> TextCorpus:
    for seed, name in enumerate(("a.txt", "b.txt")):
        (tmp_path / name).write_text(make_text(seed, 20))
    return TextCorpus(paths=(f"{tmp_path}/*.txt",), deduplicate=True, held_out=0.1)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_shares_in_any_order_make_the_corpus_of_one_machine(corpus: TextCorpus, cache: Path) -> None:
    expected = files(corpus.build().folder)
    shutil.rmtree(cache)
    assert corpus.prepare_share((3, 3), workers=1) is None
    assert corpus.prepare_share((1, 3), workers=1) is None
    assert corpus.prepare_share((1, 3), workers=1) is None
    made = corpus.prepare_share((2, 3), workers=1)
    assert made is not None
    assert files(made.folder) == expected
    assert list(cache.iterdir()) == [made.folder]
    again = corpus.prepare_share((1, 3), workers=1)
    assert again is not None
    assert list(cache.iterdir()) == [made.folder]


def test_what_a_lost_machine_leaves_is_made_by_another(corpus: TextCorpus, cache: Path) -> None:
    expected = files(corpus.build().folder)
    shutil.rmtree(cache)
    corpus.prepare_share((2, 2), workers=1)
    (folder,) = cache.iterdir()
    made = sorted(folder.glob("*.parquet"))
    made[0].unlink()
    times = [path.stat().st_mtime_ns for path in made[1:]]
    with claimed(folder / "lock"):  # of another process, which puts the pieces together
        assert corpus.prepare_share((1, 1), workers=1) is None
    assert [path.stat().st_mtime_ns for path in made[1:]] == times
    together = corpus.prepare_share((1, 1), workers=1)
    assert together is not None
    assert files(together.folder) == expected


def test_the_last_piece_may_come_while_another_machine_ends(
    corpus: TextCorpus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = []

    class OtherMachine(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if " missing" in record.getMessage():
                made.append(corpus.prepare_share((2, 2), workers=1))

    logger = logging.getLogger("elmo_tasks")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, OtherMachine()])
    with caplog.at_level(logging.INFO, "elmo_tasks"):
        assert corpus.prepare_share((1, 2), workers=1) is None
    assert made[0] is not None


def test_a_damaged_piece_is_named(corpus: TextCorpus, cache: Path) -> None:
    corpus.prepare_share((1, 2), workers=1)
    (folder,) = cache.iterdir()
    damaged = min(folder.glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(CacheError, match=f"{damaged}: cannot be read .*; remove it"):
        corpus.prepare_share((2, 2), workers=1)
    assert usage("corpora")[0] == 1  # so that `cache clear` removes it


def test_the_command_prepares_a_share_and_stops(config_file: Path, tmp_path: Path, cache: Path) -> None:
    command = ["pretrain", str(config_file), "-s", str(tmp_path / "run"), "--quiet", "--prepare"]
    assert cli.main([*command, "1/2"]) == cli.main([*command, "2/2"]) == 0
    assert not (tmp_path / "run").exists()
    (folder,) = cache.iterdir()
    assert json.loads((folder / "corpus.json").read_text())["files"]


def test_only_text_files_are_shared() -> None:
    with pytest.raises(ElmoTasksError, match="only text files are prepared in shares"):
        DatasetCorpus.model_construct().prepare_share((1, 2))  # type: ignore[call-arg]
