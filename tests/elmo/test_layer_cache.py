"""The layer cache: right vectors whatever happens, each sentence computed once, clear words where it cannot be.

Run as a program, this file fills the cache of `KEY` with `SENTENCES`, as a process of its own; see `_start_filler`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from elmo_tasks.elmo import layer_cache
from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.cached_layers import CachedLayers
from elmo_tasks.elmo.layer_cache import LayerCache, LayerCacheConfig
from elmo_tasks.elmo.layer_cache_folders import LayerCacheKey, clear, human_size, info, sole_writer
from elmo_tasks.elmo.layer_segments import SENTENCE_BYTES, SUFFIX, Storage, sentence_keys
from elmo_tasks.elmo.options import BiLMOptions, CharacterCnnOptions, CharacterEmbeddingOptions, LstmOptions
from elmo_tasks.elmo.random_weights import random_bilm
from elmo_tasks.errors import CacheError

HALF, NUM_LAYERS = 4, 3
KEY = LayerCacheKey("0123abcd", "float32", NUM_LAYERS, 2 * HALF, "float32")
HALF_PRECISION_KEY = LayerCacheKey("0123abcd", "float32", NUM_LAYERS, 2 * HALF, "float16")
SENTENCES = [[f"word{number % 7}", *["and"] * (number % 5), f"so{number}"] for number in range(40)]
SMALL_SEGMENT = 6 * 10 * KEY.token_bytes


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
    """An empty cache folder for each test, and small segments, so that there are some."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path))
    monkeypatch.setattr(layer_cache, "_SEGMENT_BYTES", SMALL_SEGMENT)
    return tmp_path


@pytest.fixture
def full_cache() -> LayerCache:
    cache = LayerCache(KEY)
    cache.fill(SENTENCES, FakeSource())
    return cache


def _segments(cache: LayerCache) -> list[Path]:
    return sorted(cache.folder.glob(f"*{SUFFIX}"))


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
        assert len(set(sentence_keys(sentences).tolist())) == len(sentences)

    def test_a_key_depends_on_nothing_but_the_tokens(self) -> None:
        first, second = sentence_keys([["a", "b"]]), sentence_keys([["x"], ("a", "b")])
        assert first[0] == second[1]

    def test_weights_precision_and_form_have_folders_of_their_own(self) -> None:
        keys = [
            KEY,
            dataclasses.replace(KEY, fingerprint="4567"),
            dataclasses.replace(KEY, precision="int8"),
            dataclasses.replace(KEY, num_layers=2),
            dataclasses.replace(KEY, output_size=10),
            dataclasses.replace(KEY, storage="float16"),
        ]
        assert len({key.name for key in keys}) == len(keys)


class TestFillAndRead:
    def test_float32_gives_the_sources_vectors_bit_for_bit(self, full_cache: LayerCache) -> None:
        assert len(_segments(full_cache)) > 3
        for sentences in (SENTENCES, SENTENCES[::-1], SENTENCES[3:4], [SENTENCES[5]] * 3):
            _assert_same(full_cache.read(sentences), FakeSource().layers(sentences))

    def test_float16_gives_the_sources_vectors_rounded(self) -> None:
        cache = LayerCache(HALF_PRECISION_KEY)
        cache.fill(SENTENCES, FakeSource())
        wanted = FakeSource().layers(SENTENCES)
        _assert_same(cache.read(SENTENCES), LayerOutput(wanted.layers.half().float(), wanted.mask))

    def test_a_new_process_finds_everything(self, full_cache: LayerCache) -> None:
        again = LayerCache(KEY)
        again.fill(SENTENCES, Unwanted())
        _assert_same(again.read(SENTENCES), FakeSource().layers(SENTENCES))

    def test_empty_sentences_and_empty_batches_need_no_computation(self) -> None:
        cache = LayerCache(KEY)
        cache.fill([[], []], Unwanted())
        cache.fill([], Unwanted())
        assert cache.read([[], []]).layers.shape == (2, NUM_LAYERS, 0, 2 * HALF)
        assert cache.read([]).layers.shape == (0, NUM_LAYERS, 0, 2 * HALF)
        cache.fill([[], ["a", "b"], []], FakeSource())
        _assert_same(cache.read([[], ["a", "b"], []]), FakeSource().layers([[], ["a", "b"], []]))

    def test_each_distinct_sentence_is_computed_and_stored_once(self) -> None:
        cache, source = LayerCache(KEY), FakeSource()
        cache.fill(SENTENCES[:20] * 2, source)
        cache.fill(SENTENCES, source)
        assert sorted(source.computed) == sorted(SENTENCES)
        assert info()[0].sentences == len(SENTENCES)

    def test_the_token_layer_is_stored_once(self, full_cache: LayerCache) -> None:
        tokens = sum(map(len, SENTENCES))
        size = sum(path.stat().st_size for path in _segments(full_cache))
        headers = 128 * len(_segments(full_cache))
        assert size == headers + tokens * 4 * (HALF + 2 * HALF * (NUM_LAYERS - 1)) + len(SENTENCES) * SENTENCE_BYTES

    def test_the_source_gets_sentences_of_like_length_in_bounded_parts(self) -> None:
        source = FakeSource()
        LayerCache(KEY).fill(SENTENCES, source)
        lengths = [len(tokens) for tokens in source.computed]
        assert lengths == sorted(lengths, reverse=True)
        assert all(len(call) * len(call[0]) * KEY.token_bytes <= SMALL_SEGMENT for call in source.calls)

    def test_a_sentence_larger_than_a_part_is_a_part(self) -> None:
        cache = LayerCache(KEY)
        long = [str(number) for number in range(500)]
        cache.fill([["a"], long], FakeSource())
        _assert_same(cache.read([long]), FakeSource().layers([long]))

    def test_progress_ends_at_the_total(self) -> None:
        told: list[tuple[int, int]] = []
        LayerCache(KEY).fill(SENTENCES, FakeSource(), lambda done, total: told.append((done, total)))
        tokens = sum(map(len, SENTENCES))
        assert len(told) > 3
        assert told == sorted(told)
        assert told[-1] == (tokens, tokens)

    def test_reading_what_is_not_there_names_it(self, full_cache: LayerCache) -> None:
        with pytest.raises(KeyError, match="1 of 2 sentences are not in the layer cache, such as 'not there'"):
            full_cache.read([SENTENCES[0], ["not", "there"]])

    def test_what_another_process_stores_is_seen(self) -> None:
        reader, writer = LayerCache(KEY), LayerCache(KEY)
        assert reader.read_available(SENTENCES)[1] == list(range(len(SENTENCES)))
        writer.fill(SENTENCES, FakeSource())
        _assert_same(reader.read(SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_copy_opens_the_cache_anew(self, full_cache: LayerCache) -> None:
        pickled = pickle.dumps(full_cache)
        assert len(pickled) < 1000
        _assert_same(pickle.loads(pickled).read(SENTENCES), FakeSource().layers(SENTENCES))

    def test_what_a_reader_does_to_its_vectors_stays_with_it(self, full_cache: LayerCache) -> None:
        full_cache.read(SENTENCES).layers.fill_(7.0)
        _assert_same(full_cache.read(SENTENCES), FakeSource().layers(SENTENCES))
        _assert_same(LayerCache(KEY).read(SENTENCES), FakeSource().layers(SENTENCES))


class TestWrongSources:
    def test_a_value_beyond_float16_is_refused(self) -> None:
        cache = LayerCache(HALF_PRECISION_KEY)
        with pytest.raises(CacheError, match=r"beyond float16's 65504; store them as float32"):
            cache.fill(SENTENCES, FakeSource(scale=1e6))
        assert not _segments(cache)

    def test_float32_holds_any_value(self) -> None:
        cache = LayerCache(KEY)
        cache.fill(SENTENCES, FakeSource(scale=1e30))
        _assert_same(cache.read(SENTENCES), FakeSource(scale=1e30).layers(SENTENCES))

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
        cache = LayerCache(KEY)
        with pytest.raises(ValueError, match=problem):
            cache.fill([["a", "b"]], Answer(spoil(FakeSource().layers([["a", "b"]]))))
        assert not _segments(cache)


class TestAccidents:
    def test_an_interrupted_fill_keeps_what_was_stored(self) -> None:
        cache = LayerCache(KEY)
        first, second = FakeSource(fail_after=2), FakeSource()
        with pytest.raises(InterruptedError):
            cache.fill(SENTENCES, first)
        cache.fill(SENTENCES, second)
        assert sorted(first.computed + second.computed) == sorted(SENTENCES)
        _assert_same(cache.read(SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.parametrize(
        ("damage", "problem"),
        [
            (lambda content: content[:-1], "bytes instead of"),
            (lambda content: content[: len(content) // 2], "bytes instead of"),
            (lambda content: content[:60], "header"),
            (lambda content: b"", "header"),
            (lambda content: content + b"more", "bytes instead of"),
            (lambda content: b"\x93NUMPY" + content[6:], "header"),
            (lambda content: b"[1, 2, 3, 4]".ljust(128) + content[128:], "header"),
            (lambda content: content[:130] + bytes([content[130] ^ 1]) + content[131:], "not what was written"),
        ],
    )
    def test_a_damaged_segment_is_computed_again(
        self,
        full_cache: LayerCache,
        damage: Callable[[bytes], bytes],
        problem: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        whole = info()[0]
        path = _segments(full_cache)[1]
        # A new file, as the old one is mapped into memory: to cut that short would be another accident.
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(damage(content))
        assert info()[0].sentences <= whole.sentences
        cache, source = LayerCache(KEY), FakeSource()
        assert path.name in caplog.text
        assert problem in caplog.text
        cache.fill(SENTENCES, source)
        assert 0 < len(source.computed) < len(SENTENCES)
        _assert_same(cache.read(SENTENCES), FakeSource().layers(SENTENCES))
        assert info()[0].sentences == whole.sentences

    def test_two_processes_fill_and_one_is_killed_half_way(self, folder: Path) -> None:
        stopped = _start_filler(folder, stop_at=3)
        _wait_for(lambda: (folder / "stopped").exists(), stopped)
        waiting = _start_filler(folder)
        try:
            _wait_for(lambda: "waiting for another process" in (folder / f"log{waiting.pid}").read_text(), waiting)
            cache = LayerCache(KEY)
            kept = {path: path.stat().st_mtime_ns for path in _segments(cache)}
            assert len(kept) == 3
            left_over = cache.folder / f".something{SUFFIX}.abc.tmp"
            left_over.write_bytes(b"half of it")
            stopped.send_signal(signal.SIGKILL)
            assert stopped.wait(timeout=60) == -signal.SIGKILL
            assert waiting.wait(timeout=60) == 0, (folder / f"log{waiting.pid}").read_text()
        finally:
            for process in (stopped, waiting):
                process.kill()
                process.wait()
        _assert_same(cache.read(SENTENCES), FakeSource().layers(SENTENCES))
        assert {path: path.stat().st_mtime_ns for path in kept} == kept, "computed twice"
        assert info()[0].sentences == len(SENTENCES)
        assert not left_over.exists()
        LayerCache(KEY).fill(SENTENCES, Unwanted())

    def test_without_file_locks_both_compute_and_both_are_right(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def no_locks(*_: object) -> None:
            raise OSError("Function not implemented")

        monkeypatch.setattr("fcntl.flock", no_locks)
        second = FakeSource()

        def fill_meanwhile(call: int) -> None:
            if call == 1:
                LayerCache(KEY).fill(SENTENCES, second)

        cache = LayerCache(KEY)
        cache.fill(SENTENCES, FakeSource(before_call=fill_meanwhile))
        assert "no file locks here" in caplog.text
        assert second.computed
        _assert_same(cache.read(SENTENCES), FakeSource().layers(SENTENCES))
        _assert_same(LayerCache(KEY).read(SENTENCES), FakeSource().layers(SENTENCES))
        # The same sentences make the same segment, so that even now nothing is stored twice.
        assert info()[0].sentences == len(SENTENCES)


class TestRoom:
    def test_the_estimate_is_what_is_written(self) -> None:
        cache = LayerCache(KEY)
        need = cache.estimate(SENTENCES * 2)
        assert need[:2] == (len(SENTENCES), sum(map(len, SENTENCES)))
        cache.fill(SENTENCES, FakeSource())
        assert need.bytes + 128 * len(_segments(cache)) == sum(path.stat().st_size for path in _segments(cache))
        assert cache.estimate(SENTENCES) == (0, 0, 0)

    def test_filling_tells_how_much_it_will_be(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        cache = LayerCache(KEY)
        cache.fill(SENTENCES, FakeSource())
        assert f"{cache.key.token_bytes * 160 + 40 * SENTENCE_BYTES:,}" == "13,760"
        assert f"13.8 kB for 40 distinct sentences of 160 tokens to compute, kept in {cache.folder}" in caplog.text

    def test_the_bound_counts_all_caches_and_says_what_to_do(self, full_cache: LayerCache, folder: Path) -> None:
        cache = LayerCache(HALF_PRECISION_KEY, max_gigabytes=2e-5)
        with pytest.raises(CacheError) as caught:
            cache.fill(SENTENCES, Unwanted())
        message = str(caught.value)
        assert "needs 7.36 kB for 40 distinct sentences of 160 tokens" in message
        assert "its bound of 20 kB" in message
        for advice in ("max_gigabytes (now 2e-05)", "elmo-tasks cache clear", "layer_cache: null"):
            assert advice in message
        assert not cache.folder.exists()
        clear()
        cache.fill(SENTENCES, FakeSource())

    def test_a_full_cache_beyond_its_bound_can_be_read(self, full_cache: LayerCache) -> None:
        cache = LayerCache(KEY, max_gigabytes=1e-9)
        cache.fill(SENTENCES, Unwanted())
        _assert_same(cache.read(SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_disk_without_room_is_named(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage(folder)
        monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=1500))
        with pytest.raises(CacheError, match=rf"the disk of {folder} has only 1\.5 kB left.*ELMO_TASKS_CACHE"):
            LayerCache(KEY).fill(SENTENCES, Unwanted())

    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (999_999, "1000 kB"), (1_041_234_567, "1.04 GB")],
    )
    def test_sizes_are_readable(self, size: int, text: str) -> None:
        assert human_size(size) == text


class TestInfoAndClear:
    def test_nothing_is_there_at_first(self) -> None:
        assert info() == []
        assert clear() == 0

    def test_info_tells_of_each_cache(self, full_cache: LayerCache) -> None:
        LayerCache(HALF_PRECISION_KEY).fill(SENTENCES[:2], FakeSource())
        os.utime(full_cache.folder / "about.json", (1e9, 1e9))
        half, full = info()
        assert (half.key, half.sentences, half.tokens) == (HALF_PRECISION_KEY, 2, sum(map(len, SENTENCES[:2])))
        assert (full.key, full.sentences, full.tokens) == (KEY, len(SENTENCES), sum(map(len, SENTENCES)))
        assert full.name == KEY.name
        assert full.bytes == sum(path.stat().st_size for path in full_cache.folder.iterdir())
        assert full.last_used.isoformat() == "2001-09-09T01:46:40+00:00"
        before = time.time() - 60
        LayerCache(KEY)
        assert next(entry for entry in info() if entry.key == KEY).last_used.timestamp() > before

    def test_a_description_that_cannot_be_read_is_named(self, full_cache: LayerCache) -> None:
        (full_cache.folder / "about.json").write_text("{}")
        with pytest.raises(CacheError, match=f"elmo-tasks cache clear {KEY.name}"):
            info()
        assert clear(KEY.name) > 0
        assert info() == []

    def test_clear_removes_one_or_all(self, full_cache: LayerCache) -> None:
        LayerCache(HALF_PRECISION_KEY).fill(SENTENCES, FakeSource())
        size = next(entry.bytes for entry in info() if entry.key == KEY)
        assert clear(KEY.name[:6]) == size
        assert [entry.key for entry in info()] == [HALF_PRECISION_KEY]
        assert clear() > 0
        assert info() == []

    def test_clear_leaves_readers_undisturbed(self, full_cache: LayerCache) -> None:
        clear()
        _assert_same(full_cache.read(SENTENCES), FakeSource().layers(SENTENCES))
        source = FakeSource()
        LayerCache(KEY).fill(SENTENCES, source)
        assert len(source.computed) == len(SENTENCES)

    def test_clear_names_what_there_is(self, full_cache: LayerCache) -> None:
        with pytest.raises(CacheError, match=f"begins with 'xyz'; there are: {KEY.name}"):
            clear("xyz")
        LayerCache(HALF_PRECISION_KEY).fill(SENTENCES, FakeSource())
        with pytest.raises(CacheError, match="more than one"):
            clear("")

    def test_clear_refuses_what_is_being_filled(self, full_cache: LayerCache) -> None:
        with sole_writer(full_cache.folder), pytest.raises(CacheError, match="a run is filling this layer cache"):
            clear()
        assert len(info()) == 1


class TestCachedLayers:
    def test_with_a_full_cache_no_source_is_built(self, full_cache: LayerCache) -> None:
        def never() -> Unwanted:
            raise AssertionError("built without need")

        cached = CachedLayers(never, full_cache)
        cached.fill(SENTENCES)
        _assert_same(cached.layers(SENTENCES), FakeSource().layers(SENTENCES))
        assert (cached.num_layers, cached.output_size) == (NUM_LAYERS, 2 * HALF)

    def test_missing_sentences_are_computed_and_not_stored(self, full_cache: LayerCache) -> None:
        built: list[FakeSource] = []

        def build() -> FakeSource:
            built.append(FakeSource())
            return built[-1]

        cached = CachedLayers(build, full_cache)
        new = [[f"new{number}"] * number for number in range(12)]
        mixed = [tokens for pair in zip(SENTENCES, new, strict=False) for tokens in pair]
        _assert_same(cached.layers(mixed), FakeSource().layers(mixed))
        _assert_same(cached.layers(new), FakeSource().layers(new))
        assert len(built) == 1
        assert sorted(built[0].computed) == sorted(new[1:] * 2)
        assert full_cache.estimate(new).sentences == len(new) - 1

    def test_fill_stores_for_good(self) -> None:
        cached = CachedLayers(
            FakeSource, LayerCacheConfig(storage="float32").build("ab", "float32", NUM_LAYERS, 2 * HALF)
        )
        cached.fill(SENTENCES)
        again = CachedLayers(Unwanted, LayerCache(cached.cache.key))
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
        cache = config.build(bilm.fingerprint(), "float32", bilm.num_layers, bilm.output_size)
        cached = CachedLayers(lambda: bilm, cache)
        cached.fill(SENTENCES[::2])
        output, wanted = cached.layers(SENTENCES), bilm.layers(SENTENCES)
        assert cache.estimate(SENTENCES).sentences == len(SENTENCES) // 2
        torch.testing.assert_close(output.layers, wanted.layers, atol=tolerance, rtol=0)
        assert torch.equal(output.mask, wanted.mask)


def _start_filler(folder: Path, stop_at: int | None = None) -> subprocess.Popen[bytes]:
    """A process that fills the cache of `KEY`, in small segments.

    Arguments:
        stop_at: the call of the source at which it writes the file `stopped` and then waits to be killed.
    """
    command = [sys.executable, __file__, *([] if stop_at is None else [str(stop_at)])]
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


def _fill_as_process(stop_at: int | None) -> None:
    def stop(call: int) -> None:
        if call == stop_at:
            Path("stopped").touch()
            signal.pause()

    logging.basicConfig(filename=f"log{os.getpid()}", level=logging.INFO)
    layer_cache._SEGMENT_BYTES = SMALL_SEGMENT
    LayerCache(KEY).fill(SENTENCES, FakeSource(before_call=stop))


if __name__ == "__main__":
    _fill_as_process(int(sys.argv[1]) if sys.argv[1:] else None)
