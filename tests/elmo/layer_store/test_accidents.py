"""Interrupted, killed and damaged: a layer store gives the right vectors, or says that it does not have them."""

import contextlib
import errno
import logging
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elmo_tasks.elmo import layer_store
from elmo_tasks.elmo.frozen_layers import stored_features
from elmo_tasks.elmo.layer_store import LayerStore, sentence_key
from elmo_tasks.errors import CacheError
from tests.elmo.layer_store.fillers import (
    CPU,
    HALF,
    KEY,
    SENTENCES,
    FakeSource,
    Provider,
    Unwanted,
    assert_holds,
    assert_same,
    database,
    fill,
    read,
)


def test_a_store_on_a_read_only_disk_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(LayerStore(KEY))

    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(os, "utime", refuse)
    assert_holds(KEY)


def test_an_interrupted_fill_keeps_what_was_stored() -> None:
    store = LayerStore(KEY)

    def interrupt(call: int) -> None:
        if call == 2:
            raise InterruptedError

    first, second = FakeSource(interrupt), FakeSource()
    with pytest.raises(InterruptedError):
        fill(store, SENTENCES, first)
    fill(store, SENTENCES, second)
    assert sorted(first.computed + second.computed) == sorted(SENTENCES)
    assert_holds(store)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda content: content[:-1], "malformed|checksum"),
        (lambda content: content[:60], "malformed|no such table|not a database"),
        (lambda content: b"", "no such table"),
        (lambda content: content.replace(b"CREATE TABLE", b"CREATE T\xb1BLE"), "can't decode"),
        (lambda content: b"[1, 2, 3, 4]".ljust(128) + content[128:], "not a database"),
        (lambda content: _with_other_bit(content, content.index(_stored_bytes())), "checksum"),
    ],
)
def test_a_damaged_store_is_named_and_filled_again_after_it_is_removed(
    full_store: LayerStore, damage: Callable[[bytes], bytes], problem: str
) -> None:
    _replace(database(full_store), damage(database(full_store).read_bytes()))
    advice = f"damaged .*({problem}).*; remove the folder"
    with pytest.raises(CacheError, match=advice):
        LayerStore(KEY).read(SENTENCES)
    with contextlib.suppress(CacheError):  # the index may be whole
        fill(LayerStore(KEY), SENTENCES)
    shutil.rmtree(full_store.folder)
    fill(full_store)
    assert_holds(KEY)


def test_what_a_killed_process_has_left_of_a_new_store_is_replaced(full_store: LayerStore) -> None:
    database(full_store).unlink()
    (full_store.folder / "layers.sqlite-journal").write_bytes(b"of a process that was killed")
    fill(LayerStore(KEY))
    assert_holds(KEY)
    assert sorted(path.name for path in full_store.folder.iterdir()) == ["about.json", "layers.sqlite"]


def test_no_damage_gives_wrong_vectors(full_store: LayerStore) -> None:
    content, expected = database(full_store).read_bytes(), FakeSource().layers(SENTENCES)
    draw = random.Random(1)
    for _ in range(20):
        _replace(database(full_store), _with_other_bit(content, draw.randrange(len(content))))
        with contextlib.suppress(CacheError):  # which says that the store is damaged
            assert_same(Provider(FakeSource, LayerStore(KEY)).layers(SENTENCES, CPU), expected)


def test_the_layers_of_another_sentence_are_damage(full_store: LayerStore) -> None:
    one, other = SENTENCES[0], SENTENCES[5]
    assert len(one) == len(other)
    statement = "UPDATE sentences SET (checksum, layers) = (SELECT checksum, layers FROM sentences WHERE key = ?)"
    with contextlib.closing(sqlite3.connect(database(full_store))) as connection, connection:
        connection.execute(f"{statement} WHERE key = ?", (sentence_key(other), sentence_key(one)))
    with pytest.raises(CacheError, match="checksum"):
        LayerStore(KEY).read([other, one])


def test_who_waited_and_finds_the_work_done_computes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store = LayerStore(KEY)
    with ThreadPoolExecutor(1) as other:
        with store.filling(SENTENCES) as missing:
            waiting = other.submit(fill, LayerStore(KEY), SENTENCES, Unwanted())
            deadline = time.monotonic() + 60
            while "which computes the same layers" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.01)
            store.write(missing, stored_features(FakeSource().layers(missing), KEY))
        waiting.result(timeout=60)
    assert caplog.text.count("to compute") == 1
    assert_holds(KEY)


def test_who_needs_other_layers_does_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store, ours, others = LayerStore(KEY), SENTENCES[:20], SENTENCES[15:]
    with ThreadPoolExecutor(1) as other, store.filling(ours) as missing:
        other.submit(fill, LayerStore(KEY), others).result(timeout=60)
        store.write(missing, stored_features(FakeSource().layers(missing), KEY))
    assert "waiting" not in caplog.text
    assert_holds(KEY, [*ours, *others])
    assert list(store.folder.parent.iterdir()) == [store.folder], "locks are left"


@pytest.mark.parametrize("reads_before", [False, True])
def test_a_process_is_killed_in_the_middle_of_a_change(full_store: LayerStore, reads_before: bool) -> None:
    store = LayerStore(KEY)
    if reads_before:
        read(store, SENTENCES)
    before = database(full_store).read_bytes()
    program = """
        import os, sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM sentences WHERE rowid % 2")
        for number in range(99):
            connection.execute("INSERT INTO sentences VALUES (?, 9, 9, ?)", (b"%d" % number, b"0" * 999))
        os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run([*command, database(full_store)], check=False)
    assert database(full_store).read_bytes() != before, "nothing was half done"
    assert (full_store.folder / "layers.sqlite-journal").exists()
    assert_holds(store)
    assert database(full_store).read_bytes() == before
    fill(store, SENTENCES, Unwanted())


def test_without_file_locks_filling_ends_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(CacheError, match=r"cannot be locked: .*No locks available.*ELMO_TASKS_CACHE.*layer_cache: n"):
        fill(LayerStore(KEY), SENTENCES, Unwanted())
    assert not LayerStore(KEY).folder.exists()


def test_where_sqlite_gets_no_locks_reading_ends_with_advice(
    full_store: LayerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_store, "_LOCK_SECONDS", 0.01)
    with contextlib.closing(sqlite3.connect(database(full_store))) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CacheError, match=r"cannot be read: database is locked\. .*ELMO_TASKS_CACHE"):
            LayerStore(KEY).read(SENTENCES)
    assert_holds(KEY)


def _stored_bytes() -> bytes:
    """What is stored of one of the sentences."""
    vectors = FakeSource().layers(SENTENCES[4:5]).layers[0].transpose(0, 1).flatten(1)[:, HALF:]
    return vectors.contiguous().numpy().tobytes()


def _with_other_bit(content: bytes, index: int) -> bytes:
    return content[:index] + bytes([content[index] ^ 4]) + content[index + 1 :]


def _replace(path: Path, content: bytes) -> None:
    """Writes a new file, as the old one may be mapped into memory: to change that would be another accident."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
