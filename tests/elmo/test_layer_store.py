"""The layer store: right vectors whatever happens, each sentence computed once, clear words where it cannot be.

Run as a program, this file fills the store of `KEY` with `SENTENCES`, as a process of its own; see `_start_filler`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import logging
import multiprocessing
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import filelock
import pytest
import torch

from elmo_tasks.cache import human_size
from elmo_tasks.elmo import cached_layers, layer_store
from elmo_tasks.elmo.cached_layers import CachedLayers, LayerCacheConfig
from elmo_tasks.elmo.layer_store import LayerKey, LayerStore, Storage, clear, info, sentence_key, usage
from elmo_tasks.elmo.layers import LayerOutput, LayerSource
from elmo_tasks.elmo.options import BiLMOptions, CharacterCnnOptions, CharacterEmbeddingOptions, LstmOptions
from elmo_tasks.elmo.random_weights import random_bilm
from elmo_tasks.errors import CacheError

HALF, NUM_LAYERS = 4, 3
KEY = LayerKey("0123abcd", "float32", NUM_LAYERS, 2 * HALF, "float32")
HALF_PRECISION_KEY = LayerKey("0123abcd", "float32", NUM_LAYERS, 2 * HALF, "float16")
SENTENCES = [[f"word{number % 7}", *["and"] * (number % 5), f"so{number}"] for number in range(40)]
SMALL_PART = 6 * 10 * KEY.token_bytes


class FakeSource:
    """Layers drawn at random for each sentence and place; counts what it is given.

    Arguments:
        fail_after: raises an error at the call that follows so many.
        before_call: called with the number of each call.
        scale: of the numbers.
    """

    def __init__(
        self,
        fail_after: int | None = None,
        before_call: Callable[[int], None] | None = None,
        scale: float = 1.0,
    ) -> None:
        self.calls: list[list[list[str]]] = []
        self.fail_after = fail_after
        self.before_call = before_call
        self.scale = scale

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        if self.fail_after is not None and len(self.calls) >= self.fail_after:
            raise InterruptedError
        if self.before_call is not None:
            self.before_call(len(self.calls))
        self.calls.append([list(tokens) for tokens in sentences])
        longest = max(map(len, sentences), default=0)
        layers = torch.zeros(len(sentences), NUM_LAYERS, longest, 2 * HALF)
        for row, tokens in enumerate(sentences):
            seed = int.from_bytes(hashlib.sha256("|".join(tokens).encode()).digest()[:7], "big")
            drawn = torch.randn(NUM_LAYERS, len(tokens), 2 * HALF, generator=torch.Generator().manual_seed(seed))
            drawn[0, :, HALF:] = drawn[0, :, :HALF]
            layers[row, :, : len(tokens)] = drawn * self.scale
        lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.int64)
        return LayerOutput(layers, torch.arange(longest)[None, :] < lengths[:, None])

    @property
    def computed(self) -> list[list[str]]:
        return [tokens for call in self.calls for tokens in call]


class Unwanted:
    """A source that nobody may ask."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        raise AssertionError(f"computed {sentences} though it is stored")


class Answer(NamedTuple):
    """A source with a ready answer."""

    output: LayerOutput

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        return self.output


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store folder for each test, and small parts, so that there are some."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path))
    monkeypatch.setattr(cached_layers, "_PART_BYTES", SMALL_PART)
    return tmp_path


@pytest.fixture
def full_store() -> LayerStore:
    store = LayerStore(KEY)
    fill(store, SENTENCES, FakeSource())
    return store


def fill(
    store: LayerStore,
    sentences: Sequence[Sequence[str]],
    source: LayerSource,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> None:
    CachedLayers(lambda: source, store).fill(sentences, progress)


def read(store: LayerStore, sentences: Sequence[Sequence[str]]) -> LayerOutput:
    """The layers of sentences that are all there."""
    output, missing = store.read(sentences)
    assert not missing
    return output


def _database(store: LayerStore) -> Path:
    return store.folder / "layers.sqlite"


def _query(store: LayerStore, statement: str) -> list[tuple[int, ...]]:
    with contextlib.closing(sqlite3.connect(_database(store))) as connection:
        return connection.execute(statement).fetchall()


def _assert_same(output: LayerOutput, wanted: LayerOutput) -> None:
    assert output.layers.dtype == torch.float32
    assert torch.equal(output.layers, wanted.layers)
    assert torch.equal(output.mask, wanted.mask)


class TestKeys:
    def test_different_tokens_have_different_keys(self) -> None:
        sentences = [
            [],
            [""],
            ["", ""],
            ["ab"],
            ["a", "b"],
            ["a b"],
            ["ab", ""],
            ["", "ab"],
            ["\0"],
            ["\0", "\0"],
            ["b", "a"],
        ]
        sentences += [["é"], ["e\u0301"], ["\ud83d\ude00"], ["\U0001f600"], ["1", "a"], ["1a"]]
        assert len({sentence_key(tokens) for tokens in sentences}) == len(sentences)

    def test_a_key_depends_on_nothing_but_the_tokens(self) -> None:
        assert sentence_key(["a", "b"]) == sentence_key(("a", "b"))

    def test_weights_precision_and_form_have_folders_of_their_own(self) -> None:
        keys = [
            KEY,
            dataclasses.replace(KEY, fingerprint="4567"),
            dataclasses.replace(KEY, precision="int8"),
            dataclasses.replace(KEY, num_layers=2),
            dataclasses.replace(KEY, output_size=10),
            dataclasses.replace(KEY, storage="float16"),
            dataclasses.replace(KEY, has_token_layer=False),
        ]
        assert len({key.name for key in keys}) == len(keys)

    def test_the_stores_of_earlier_versions_are_found(self) -> None:
        assert KEY.name == "c31b2c51a79d6ed9006383d9784a3055"


class TestFillAndRead:
    def test_float32_gives_the_sources_vectors_bit_for_bit(self, full_store: LayerStore) -> None:
        for sentences in (SENTENCES, SENTENCES[::-1], SENTENCES[3:4], [SENTENCES[5]] * 3):
            _assert_same(read(full_store, sentences), FakeSource().layers(sentences))

    def test_float16_gives_the_sources_vectors_rounded(self) -> None:
        store = LayerStore(HALF_PRECISION_KEY)
        fill(store, SENTENCES, FakeSource())
        wanted = FakeSource().layers(SENTENCES)
        _assert_same(read(store, SENTENCES), LayerOutput(wanted.layers.half().float(), wanted.mask))

    def test_a_new_process_finds_everything(self, full_store: LayerStore) -> None:
        again = LayerStore(KEY)
        fill(again, SENTENCES, Unwanted())
        _assert_same(read(again, SENTENCES), FakeSource().layers(SENTENCES))

    def test_empty_sentences_and_empty_batches_need_no_computation(self) -> None:
        store = LayerStore(KEY)
        fill(store, [[], []], Unwanted())
        fill(store, [], Unwanted())
        assert read(store, [[], []]).layers.shape == (2, NUM_LAYERS, 0, 2 * HALF)
        assert read(store, []).layers.shape == (0, NUM_LAYERS, 0, 2 * HALF)
        fill(store, [[], ["a", "b"], []], FakeSource())
        _assert_same(read(store, [[], ["a", "b"], []]), FakeSource().layers([[], ["a", "b"], []]))

    def test_each_distinct_sentence_is_computed_and_stored_once(self) -> None:
        store, source = LayerStore(KEY), FakeSource()
        fill(store, SENTENCES[:20] * 2, source)
        fill(store, SENTENCES, source)
        assert sorted(source.computed) == sorted(SENTENCES)
        assert info()[0].sentences == len(SENTENCES)

    def test_the_token_layer_is_stored_once(self, full_store: LayerStore) -> None:
        tokens = sum(map(len, SENTENCES))
        size, count = _query(full_store, "SELECT sum(length(layers)), count(*) FROM sentences")[0]
        assert size == tokens * 4 * (HALF + 2 * HALF * (NUM_LAYERS - 1)) == tokens * KEY.token_bytes
        assert count == len(SENTENCES)

    def test_the_source_gets_sentences_of_like_length_in_bounded_parts(self) -> None:
        source = FakeSource()
        fill(LayerStore(KEY), SENTENCES, source)
        assert len(source.calls) > 3
        lengths = [len(tokens) for tokens in source.computed]
        assert lengths == sorted(lengths, reverse=True)
        assert all(len(call) * len(call[0]) * KEY.token_bytes <= SMALL_PART for call in source.calls)

    def test_a_sentence_larger_than_a_part_is_a_part(self) -> None:
        store = LayerStore(KEY)
        long = [str(number) for number in range(500)]
        fill(store, [["a"], long], FakeSource())
        _assert_same(read(store, [long]), FakeSource().layers([long]))

    def test_progress_ends_at_the_total(self) -> None:
        told: list[tuple[int, int]] = []
        fill(LayerStore(KEY), SENTENCES, FakeSource(), lambda done, total: told.append((done, total)))
        tokens = sum(map(len, SENTENCES))
        assert len(told) > 3
        assert told == sorted(told)
        assert told[-1] == (tokens, tokens)

    def test_reading_what_is_not_there_names_it(self, full_store: LayerStore) -> None:
        sentences = [SENTENCES[0], ["not", "there"], []]
        output, missing = full_store.read(sentences)
        assert missing == [1]
        assert not output.layers[1].any()
        assert torch.equal(output.mask, FakeSource().layers(sentences).mask)
        _assert_same(read(full_store, SENTENCES[:1]), FakeSource().layers(SENTENCES[:1]))

    def test_what_another_process_stores_is_seen(self) -> None:
        reader, writer = LayerStore(KEY), LayerStore(KEY)
        assert reader.read(SENTENCES)[1] == list(range(len(SENTENCES)))
        fill(writer, SENTENCES, FakeSource())
        _assert_same(read(reader, SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_copy_opens_the_store_anew(self, full_store: LayerStore) -> None:
        pickled = pickle.dumps(full_store)
        assert len(pickled) < 1000
        _assert_same(read(pickle.loads(pickled), SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_a_forked_process_opens_the_store_anew(self, full_store: LayerStore) -> None:
        _assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))
        with multiprocessing.get_context("fork").Pool(2) as workers:
            children = [workers.apply_async(_connections_after_reading, (full_store,)) for _ in range(4)]
            processes = {process for child in children for process in child.get(timeout=60)}
        assert os.getpid() not in processes
        _assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))

    def test_threads_read_at_once(self, full_store: LayerStore) -> None:
        problems: list[Exception] = []

        def read_often() -> None:
            try:
                for _ in range(20):
                    _assert_same(read(full_store, SENTENCES), wanted)
            except Exception as error:
                problems.append(error)

        wanted = FakeSource().layers(SENTENCES)
        threads = [threading.Thread(target=read_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems

    def test_what_a_reader_does_to_its_vectors_stays_with_it(self, full_store: LayerStore) -> None:
        read(full_store, SENTENCES).layers.fill_(7.0)
        _assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))
        _assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))


class TestWrongSources:
    def test_a_value_beyond_float16_is_refused(self) -> None:
        store = LayerStore(HALF_PRECISION_KEY)
        with pytest.raises(CacheError, match=r"beyond float16's 65504; store them as float32"):
            fill(store, SENTENCES, FakeSource(scale=1e6))
        assert not store.folder.exists()

    def test_float32_holds_any_value(self) -> None:
        store = LayerStore(KEY)
        fill(store, SENTENCES, FakeSource(scale=1e30))
        _assert_same(read(store, SENTENCES), FakeSource(scale=1e30).layers(SENTENCES))

    @pytest.mark.parametrize(
        ("spoil", "problem"),
        [
            (lambda output: LayerOutput(output.layers + torch.randn(2 * HALF), output.mask), "halves"),
            (
                lambda output: LayerOutput(output.layers[:, :2], output.mask),
                r"shape \(1, 2, 2, 8\); wanted \(1, 3, 2, 8\)",
            ),
            (lambda output: LayerOutput(output.layers, ~output.mask), "mask"),
        ],
    )
    def test_what_cannot_be_right_is_not_stored(
        self, spoil: Callable[[LayerOutput], LayerOutput], problem: str
    ) -> None:
        store = LayerStore(KEY)
        with pytest.raises(ValueError, match=problem):
            fill(store, [["a", "b"]], Answer(spoil(FakeSource().layers([["a", "b"]]))))
        assert not store.folder.exists()


class TestAccidents:
    def test_an_interrupted_fill_keeps_what_was_stored(self) -> None:
        store = LayerStore(KEY)
        first, second = FakeSource(fail_after=2), FakeSource()
        with pytest.raises(InterruptedError):
            fill(store, SENTENCES, first)
        fill(store, SENTENCES, second)
        assert sorted(first.computed + second.computed) == sorted(SENTENCES)
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.parametrize(
        ("damage", "problem"),
        [
            (lambda content: content[:-1], "malformed|checksum"),
            (lambda content: content[: len(content) // 2], "malformed"),
            (lambda content: content[:60], "malformed|no such table|not a database"),
            (lambda content: b"", "no such table"),
            (lambda content: content.replace(b"CREATE TABLE", b"CREATE T\xb1BLE"), "can't decode"),
            (lambda content: b"\x93NUMPY" + content[6:], "not a database"),
            (lambda content: b"[1, 2, 3, 4]".ljust(128) + content[128:], "not a database"),
            (lambda content: _with_other_bit(content, content.index(_stored_bytes())), "checksum"),
        ],
    )
    def test_a_damaged_store_is_made_anew(
        self,
        full_store: LayerStore,
        damage: Callable[[bytes], bytes],
        problem: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        whole = info()[0]
        _replace(_database(full_store), damage(_database(full_store).read_bytes()))
        store, source = LayerStore(KEY), FakeSource()
        output, missing = store.read(SENTENCES)
        assert missing == list(range(len(SENTENCES)))
        assert not output.layers.any()
        assert f"{store.folder}: this layer cache is damaged and removed; it will be filled again" in caplog.text
        assert re.search(problem, caplog.text)
        fill(store, SENTENCES, source)
        assert sorted(source.computed) == sorted(SENTENCES)
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))
        assert info()[0].sentences == whole.sentences

    def test_a_damaged_store_stays_while_another_process_fills_it(
        self, full_store: LayerStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        _replace(_database(full_store), b"")
        other = filelock.FileLock(f"{full_store.folder}.lock", thread_local=False)
        other.acquire()
        end = threading.Timer(10, other.release)  # for a reader that waits
        end.start()
        with pytest.raises(CacheError, match="cannot be read: no such table"):
            LayerStore(KEY).read(SENTENCES)
        end.cancel()
        assert _database(full_store).exists()
        assert "removed" not in caplog.text
        other.release()

    def test_a_damaged_store_is_made_anew_by_filling_it(self, full_store: LayerStore) -> None:
        _replace(_database(full_store), _database(full_store).read_bytes()[:-4096])
        store = LayerStore(KEY)
        fill(store, SENTENCES, FakeSource())
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))

    def test_no_damage_gives_wrong_vectors(self, full_store: LayerStore) -> None:
        content, wanted = _database(full_store).read_bytes(), FakeSource().layers(SENTENCES)
        draw = random.Random(1)
        for _ in range(40):
            _replace(_database(full_store), _with_other_bit(content, draw.randrange(len(content))))
            store = LayerStore(KEY)
            cached = CachedLayers(FakeSource, store)
            for _ in range(2):
                _assert_same(cached.layers(SENTENCES), wanted)
                with contextlib.suppress(CacheError):  # which says that the store was damaged and is removed
                    cached.fill(SENTENCES)
            _assert_same(cached.layers(SENTENCES), wanted)

    def test_the_layers_of_another_sentence_are_damage(self, full_store: LayerStore) -> None:
        one, other = SENTENCES[0], SENTENCES[5]
        assert len(one) == len(other)
        statement = "UPDATE sentences SET (checksum, layers) = (SELECT checksum, layers FROM sentences WHERE key = ?)"
        with contextlib.closing(sqlite3.connect(_database(full_store))) as connection, connection:
            connection.execute(f"{statement} WHERE key = ?", (sentence_key(other), sentence_key(one)))
        assert LayerStore(KEY).read([other, one])[1] == [0, 1]

    def test_two_processes_fill_and_one_is_killed_half_way(self, folder: Path) -> None:
        stopped = _start_filler(folder, stop_at=3)
        _wait_for(lambda: (folder / "stopped").exists(), stopped)
        waiting = _start_filler(folder)
        try:
            _wait_for(lambda: "waiting for another process" in (folder / f"log{waiting.pid}").read_text(), waiting)
            store = LayerStore(KEY)
            kept = len(SENTENCES) - len(store.missing(SENTENCES))
            assert 0 < kept < len(SENTENCES)
            stopped.send_signal(signal.SIGKILL)
            assert stopped.wait(timeout=60) == -signal.SIGKILL
            assert waiting.wait(timeout=60) == 0, (folder / f"log{waiting.pid}").read_text()
        finally:
            for process in (stopped, waiting):
                process.kill()
                process.wait()
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))
        computed = f"for {len(SENTENCES) - kept} distinct sentences"
        assert computed in (folder / f"log{waiting.pid}").read_text(), "computed twice"
        assert info()[0].sentences == len(SENTENCES)
        fill(LayerStore(KEY), SENTENCES, Unwanted())

    def test_who_waited_and_finds_the_work_done_computes_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        store, problems = LayerStore(KEY), []

        def wait_and_fill() -> None:
            try:
                fill(LayerStore(KEY), SENTENCES, Unwanted())
            except BaseException as error:
                problems.append(error)

        waiting = threading.Thread(target=wait_and_fill)
        with store.filling(SENTENCES) as missing:
            waiting.start()
            deadline = time.monotonic() + 60
            while "waiting for another process" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.01)
            lengths = [len(tokens) for tokens in missing]
            store.write(missing, cached_layers._stored_features(FakeSource().layers(missing), lengths, KEY))
        waiting.join(timeout=60)
        assert not waiting.is_alive()
        assert not problems
        assert caplog.text.count("to compute") == 1
        _assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("the disk is gone")])
    def test_an_interrupted_write_leaves_the_store_as_it_was(
        self, error: type[BaseException] | OSError, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, made = LayerStore(KEY), 0
        fill(store, SENTENCES[:8], FakeSource())
        before = _query(store, "SELECT count(*), total(checksum) FROM sentences")
        checksum = layer_store._checksum

        def fails_at_the_third(key: bytes, layers: bytes | memoryview) -> int:
            nonlocal made
            made += 1
            if made == 3:
                raise error
            return checksum(key, layers)

        with monkeypatch.context() as patch, store.filling(SENTENCES[8:]) as missing:
            vectors = cached_layers._stored_features(
                FakeSource().layers(missing), [len(tokens) for tokens in missing], KEY
            )
            patch.setattr(layer_store, "_checksum", fails_at_the_third)
            with pytest.raises((KeyboardInterrupt, CacheError)):
                store.write(missing, vectors)
        assert _query(store, "SELECT count(*), total(checksum) FROM sentences") == before
        assert len(LayerStore(KEY).missing(SENTENCES)) == len(SENTENCES) - 8
        _assert_same(read(LayerStore(KEY), SENTENCES[:8]), FakeSource().layers(SENTENCES[:8]))

    @pytest.mark.parametrize("reads_before", [False, True])
    def test_a_process_is_killed_in_the_middle_of_a_change(self, full_store: LayerStore, reads_before: bool) -> None:
        store = LayerStore(KEY)
        if reads_before:
            read(store, SENTENCES)
        before = _database(full_store).read_bytes()
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
        subprocess.run([*command, _database(full_store)], check=False)
        assert _database(full_store).read_bytes() != before, "nothing was half done"
        assert (full_store.folder / "layers.sqlite-journal").exists()
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))
        assert _database(full_store).read_bytes() == before
        fill(store, SENTENCES, Unwanted())

    def test_a_store_without_a_database_is_made_anew(self, full_store: LayerStore) -> None:
        _database(full_store).unlink()
        (full_store.folder / "layers.sqlite-journal").write_bytes(b"of a process that was killed")
        store = LayerStore(KEY)
        fill(store, SENTENCES, FakeSource())
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))
        assert sorted(path.name for path in store.folder.iterdir()) == ["about.json", "layers.sqlite"]

    def test_without_file_locks_filling_ends_with_advice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_locks(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr("fcntl.flock", no_locks)
        with pytest.raises(
            CacheError, match=r"cannot be locked: .*No locks available.*ELMO_TASKS_CACHE.*layer_cache: n"
        ):
            fill(LayerStore(KEY), SENTENCES, Unwanted())
        assert info() == []

    def test_where_sqlite_gets_no_locks_reading_ends_with_advice(
        self, full_store: LayerStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(layer_store, "_LOCK_SECONDS", 0.01)
        with contextlib.closing(sqlite3.connect(_database(full_store))) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(CacheError, match=r"cannot be read: database is locked\. .*ELMO_TASKS_CACHE"):
                LayerStore(KEY).read(SENTENCES)
        _assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
    def test_a_folder_that_cannot_be_written_is_read(self, full_store: LayerStore, folder: Path) -> None:
        closed = [folder / "layers", full_store.folder, *full_store.folder.iterdir()]
        for path in closed:
            path.chmod(0o555)
        try:
            _assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))
            fill(LayerStore(KEY), SENTENCES, Unwanted())
            with pytest.raises(CacheError, match=r"cannot be locked: .*Permission denied.*ELMO_TASKS_CACHE"):
                fill(LayerStore(HALF_PRECISION_KEY), SENTENCES, Unwanted())
        finally:
            for path in closed:
                path.chmod(0o755)


class TestRoom:
    @pytest.mark.parametrize("storage", ["float16", "float32"])
    def test_the_bound_is_for_what_is_written(self, storage: Storage) -> None:
        key = LayerKey("0123abcd", "float32", NUM_LAYERS, 256, storage)
        sentences = [[f"{row}", *["and"] * (row % 30)] for row in range(300)]
        store = LayerStore(key, max_gigabytes=1e-9)
        with pytest.raises(CacheError, match=r"needs .* for 300 distinct sentences of 4,650 tokens") as caught:
            fill(store, sentences * 2, Unwanted())
        megabytes = float(str(caught.value).split()[4])
        with LayerStore(key).filling(sentences) as missing:
            store.write(missing, torch.randn(4650, key.features).to(layer_store.TORCH_TYPES[storage]))
        assert 0.97 < sum(path.stat().st_size for path in store.folder.iterdir()) / 1e6 / megabytes < 1.03
        fill(store, sentences, Unwanted())

    def test_filling_tells_how_much_it_will_be(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        store = LayerStore(KEY)
        fill(store, SENTENCES, FakeSource())
        assert f"{store.key.token_bytes * 160 + 40 * 750:,}" == "42,800"
        assert f"42.8 kB for 40 distinct sentences of 160 tokens to compute, kept in {store.folder}" in caplog.text

    def test_a_full_disk_leaves_the_store_as_it_was(self) -> None:
        store, first, second = LayerStore(KEY), FakeSource(), FakeSource()
        fill(store, SENTENCES[:8], FakeSource())
        # A file that may not grow fails as on a full disk: in the middle of writing.
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_database(store).stat().st_size + 6000, unlimited[1]))
        try:
            with pytest.raises(
                CacheError,
                match=r"written: disk I/O error; needs 12\.1 kB for 10 .* tokens\. Make room on its disk",
            ):
                fill(store, SENTENCES, first)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        _assert_same(read(store, SENTENCES[:8]), FakeSource().layers(SENTENCES[:8]))
        fill(store, SENTENCES, second)
        assert first.computed[0] in second.computed or len(first.calls) > 1
        _assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))

    def test_the_bound_counts_all_caches_and_says_what_to_do(self, full_store: LayerStore, folder: Path) -> None:
        store = LayerStore(HALF_PRECISION_KEY, max_gigabytes=4e-5)
        with pytest.raises(CacheError) as caught:
            fill(store, SENTENCES, Unwanted())
        message = str(caught.value)
        assert "needs 36.4 kB for 40 distinct sentences of 160 tokens" in message
        assert "its bound of 40 kB" in message
        for advice in ("max_gigabytes (now 4e-05)", "elmo-tasks cache clear", "layer_cache: null"):
            assert advice in message
        assert not store.folder.exists()
        clear()
        fill(store, SENTENCES, FakeSource())

    def test_a_full_store_beyond_its_bound_can_be_read(self, full_store: LayerStore) -> None:
        store = LayerStore(KEY, max_gigabytes=1e-9)
        fill(store, SENTENCES, Unwanted())
        _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_disk_without_room_is_named(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage(folder)
        monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=1500))
        with pytest.raises(CacheError, match=rf"the disk of {folder} has only 1\.5 kB left.*ELMO_TASKS_CACHE"):
            fill(LayerStore(KEY), SENTENCES, Unwanted())

    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (999_999, "1000 kB"), (1_041_234_567, "1.04 GB")],
    )
    def test_sizes_are_readable(self, size: int, text: str) -> None:
        assert human_size(size) == text


class TestInfoAndClear:
    def test_nothing_is_there_at_first(self) -> None:
        assert info() == []
        assert clear() == (0, 0)

    def test_info_tells_of_each_cache(self, full_store: LayerStore) -> None:
        fill(LayerStore(HALF_PRECISION_KEY), SENTENCES[:2], FakeSource())
        os.utime(full_store.folder / "about.json", (1e9, 1e9))
        half, full = info()
        assert (half.key, half.sentences, half.tokens) == (HALF_PRECISION_KEY, 2, sum(map(len, SENTENCES[:2])))
        assert (full.key, full.sentences, full.tokens) == (KEY, len(SENTENCES), sum(map(len, SENTENCES)))
        assert full.name == KEY.name
        assert full.bytes == sum(path.stat().st_size for path in full_store.folder.iterdir())
        assert full.last_used.isoformat() == "2001-09-09T01:46:40+00:00"
        before = time.time() - 60
        LayerStore(KEY)
        assert next(entry for entry in info() if entry.key == KEY).last_used.timestamp() > before

    def test_a_description_that_cannot_be_read_is_named(self, full_store: LayerStore) -> None:
        (full_store.folder / "about.json").write_text("{}")
        with pytest.raises(CacheError, match=f"elmo-tasks cache clear {KEY.name}"):
            info()
        assert clear(KEY.name)[0] == 1
        assert info() == []

    def test_clear_removes_one_or_all(self, full_store: LayerStore) -> None:
        fill(LayerStore(HALF_PRECISION_KEY), SENTENCES, FakeSource())
        size = next(entry.bytes for entry in info() if entry.key == KEY)
        assert clear(KEY.name[:6]) == (1, size)
        assert [entry.key for entry in info()] == [HALF_PRECISION_KEY]
        rest = usage()
        assert clear() == rest == (1, rest[1])
        assert info() == []
        for key in (KEY, HALF_PRECISION_KEY):
            fill(LayerStore(key), SENTENCES, FakeSource())
        assert clear() == (2, size + rest[1])

    def test_clear_leaves_readers_undisturbed(self, full_store: LayerStore) -> None:
        clear()
        _assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))
        source = FakeSource()
        fill(full_store, SENTENCES, source)
        assert len(source.computed) == len(SENTENCES)
        _assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_reader_of_a_cleared_store_leaves_the_next_one_alone(self, full_store: LayerStore) -> None:
        wanted = FakeSource().layers(SENTENCES)
        _assert_same(read(full_store, SENTENCES), wanted)
        clear()
        fill(LayerStore(KEY), SENTENCES[:20], FakeSource())
        with contextlib.closing(sqlite3.connect(_database(full_store), isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("DELETE FROM sentences")
            # The reader comes upon the journal of a file that is not the one it has open.
            assert (full_store.folder / "layers.sqlite-journal").exists()
            _assert_same(CachedLayers(FakeSource, full_store).layers(SENTENCES), wanted)
            assert (full_store.folder / "layers.sqlite-journal").exists()
            writer.execute("ROLLBACK")
        _assert_same(read(LayerStore(KEY), SENTENCES[:20]), FakeSource().layers(SENTENCES[:20]))

    def test_folders_of_earlier_versions_are_listed_and_cleared(self, folder: Path) -> None:
        old = folder / "layers" / "0a1b"
        old.mkdir(parents=True)
        (old / "about.json").write_text(json.dumps(dataclasses.asdict(KEY)))
        (old / "fill.lock").touch()
        (old / "00ff.segment").write_bytes(b"0" * 1000)
        entry = info()[0]
        assert (entry.name, entry.key, entry.sentences, entry.tokens) == ("0a1b", KEY, 0, 0)
        assert clear("0a") == (1, entry.bytes)
        assert entry.bytes > 1000
        assert not old.exists()

    def test_clear_names_what_there_is(self, full_store: LayerStore) -> None:
        with pytest.raises(CacheError, match=f"begins with 'xyz'; there are: {KEY.name}"):
            clear("xyz")
        fill(LayerStore(HALF_PRECISION_KEY), SENTENCES, FakeSource())
        with pytest.raises(CacheError, match="more than one"):
            clear("")

    def test_clear_refuses_what_is_being_filled(self, full_store: LayerStore) -> None:
        with LayerStore(KEY).filling([["new"]]), pytest.raises(CacheError, match="a run is filling this layer cache"):
            clear()
        assert len(info()) == 1


class TestCachedLayers:
    def test_with_a_full_store_no_source_is_built(self, full_store: LayerStore) -> None:
        def never() -> Unwanted:
            raise AssertionError("built without need")

        cached = CachedLayers(never, full_store)
        cached.fill(SENTENCES)
        _assert_same(cached.layers(SENTENCES), FakeSource().layers(SENTENCES))
        assert (cached.num_layers, cached.output_size) == (NUM_LAYERS, 2 * HALF)

    def test_missing_sentences_are_computed_and_not_stored(self, full_store: LayerStore) -> None:
        built: list[FakeSource] = []

        def build() -> FakeSource:
            built.append(FakeSource())
            return built[-1]

        cached = CachedLayers(build, full_store)
        new = [[f"new{number}"] * number for number in range(12)]
        mixed = [tokens for pair in zip(SENTENCES, new, strict=False) for tokens in pair]
        _assert_same(cached.layers(mixed), FakeSource().layers(mixed))
        _assert_same(cached.layers(new), FakeSource().layers(new))
        assert len(built) == 1
        assert sorted(built[0].computed) == sorted(new[1:] * 2)
        assert len(full_store.missing(new)) == len(new) - 1

    def test_a_stored_sentence_may_be_longer_than_all_missing_ones(self, full_store: LayerStore) -> None:
        batch = [["new"], SENTENCES[4], ["not", "stored"], SENTENCES[0], []]
        assert len(SENTENCES[4]) > 2
        _assert_same(CachedLayers(FakeSource, full_store).layers(batch), FakeSource().layers(batch))

    def test_fill_stores_for_good(self) -> None:
        cached = CachedLayers(
            FakeSource, LayerCacheConfig(storage="float32").build("ab", "float32", NUM_LAYERS, 2 * HALF)
        )
        cached.fill(SENTENCES)
        again = CachedLayers(Unwanted, LayerStore(cached.store.key))
        _assert_same(again.layers(SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.parametrize(("storage", "tolerance"), [("float32", 1e-6), ("float16", 2e-3)])
    def test_a_bilm_gives_the_same_with_and_without(self, storage: Storage, tolerance: float) -> None:
        options = BiLMOptions(
            lstm=LstmOptions(
                dim=12, projection_dim=6, n_layers=2, cell_clip=3.0, proj_clip=3.0, use_skip_connections=True
            ),
            char_cnn=CharacterCnnOptions(
                embedding=CharacterEmbeddingOptions(dim=4), filters=((1, 4), (3, 8)), activation="relu", n_highway=1
            ),
        )
        bilm = random_bilm(options)
        config = LayerCacheConfig(storage=storage)
        store = config.build(bilm.fingerprint(), "float32", bilm.num_layers, bilm.output_size)
        cached = CachedLayers(lambda: bilm, store)
        cached.fill(SENTENCES[::2])
        output, wanted = cached.layers(SENTENCES), bilm.layers(SENTENCES)
        assert len(store.missing(SENTENCES)) == len(SENTENCES) // 2
        torch.testing.assert_close(output.layers, wanted.layers, atol=tolerance, rtol=0)
        assert torch.equal(output.mask, wanted.mask)


def _stored_bytes() -> bytes:
    """What is stored of one of the sentences."""
    vectors = FakeSource().layers(SENTENCES[4:5]).layers[0].transpose(0, 1).flatten(1)[:, HALF:]
    return vectors.contiguous().numpy().tobytes()


def _with_other_bit(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def _replace(path: Path, content: bytes) -> None:
    """Writes a new file, as the old one may be mapped into memory: to change that would be another accident."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _connections_after_reading(store: LayerStore) -> list[int]:
    """The processes to which the connections belong of a store that was read in this one."""
    _assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))
    return [process for process, _ in store._connections]


def _start_filler(folder: Path, stop_at: int | None = None) -> subprocess.Popen[bytes]:
    """A process that fills the store of `KEY`, in small parts.

    Arguments:
        stop_at: the call of the source at which it writes the file `stopped` and then waits to be killed.
    """
    command = [sys.executable, __file__, str(stop_at)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, cwd=folder, env=environment)


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        with contextlib.suppress(FileNotFoundError):
            if condition():
                return
        assert process.poll() is None, f"the process ended with {process.returncode}"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _fill_as_process(stop_at: str) -> None:
    def stop(call: int) -> None:
        if str(call) == stop_at:
            Path("stopped").touch()
            signal.pause()

    logging.basicConfig(filename=f"log{os.getpid()}", level=logging.INFO)
    cached_layers._PART_BYTES = SMALL_PART
    fill(LayerStore(KEY), SENTENCES, FakeSource(before_call=stop))


if __name__ == "__main__":
    _fill_as_process(sys.argv[1])
