"""Text files that are read in chunks, and the processes that tokenize them."""

import gzip
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.pretraining import tokenize_files
from elmo_tasks.extras.pretraining.prepare import TextCorpus
from elmo_tasks.extras.pretraining.tokenize_files import read_chunks, separates_documents
from elmo_tasks.text.tokenizers import WhitespaceTokenizer


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def text_of(path: Path) -> str:
    return "\n".join(line for chunk in read_chunks(path) for line in chunk.lines)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        text_of(tmp_path / "text")


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_chunks_are_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
    text = "a först line\n\nthe ß second\r\nx\n\n\nthe last, without an end"
    path = write(tmp_path / "text", text.encode())
    chunks = list(read_chunks(path))
    assert [line for chunk in chunks for line in chunk.lines] == text.replace("\r", "").split("\n")
    assert [chunk.is_first for chunk in chunks] == [True] + [False] * (len(chunks) - 1)
    assert sum(chunk.num_bytes for chunk in chunks) == path.stat().st_size


def test_compressed_files(tmp_path: Path) -> None:
    content = b"".join(b"line %d\n" % number for number in range(120_000))
    path = write(tmp_path / "text.gz", gzip.compress(content))
    chunks = list(read_chunks(path))
    assert len(chunks) > 1
    assert [line for chunk in chunks for line in chunk.lines] == content.decode().splitlines()
    assert 0 < sum(chunk.num_bytes for chunk in chunks) <= path.stat().st_size


@pytest.mark.parametrize("size", [4, 1 << 20])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"one\ntwo\nth\0ree\nfour\n", "text:3: holds a NUL byte, as binary files do; expected UTF-8 text"),
        (b"one\ntwo\nthree\ncaf\xe9\nfive\n", "text:4: byte 0xe9 at column 4 is not UTF-8; expected UTF-8 text"),
    ],
)
def test_binary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str, size: int) -> None:
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
    with pytest.raises(DataError, match=problem):
        text_of(write(tmp_path / "text", content))


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"a\n \t\r\nb\n", True), (b"a\nb\n", False), (b"\n\na\nb\n\n\n", False), (b"", False)],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_separates_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, expected: bool, size: int
) -> None:
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
    assert separates_documents(write(tmp_path / "text", content)) == expected


def test_a_worker_that_is_ended_from_outside() -> None:
    with pytest.raises(ElmoTasksError, match="a tokenizing process was killed"):
        list(tokenize_files.in_processes([partial(os._exit, 1)], 2))


def test_workers_are_light() -> None:
    code = "import sys, elmo_tasks.extras.pretraining.tokenize_files; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


SCRIPT = """
import multiprocessing, signal, time
from functools import partial
from elmo_tasks.extras.pretraining.tokenize_files import in_processes

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has it ignored
    taken = []
    results = in_processes((taken.append(number) or partial(abs, number) for number in range(100)), workers=2)
    print(next(results), len(taken), *(each.pid for each in multiprocessing.active_children()), flush=True)
    time.sleep(600)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ignores_ctrl_c(process: int) -> bool:
    found = re.search(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & 1 << signal.SIGINT - 1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc on this system")
def test_workers_ignore_ctrl_c_and_end_with_the_first_process_and_few_jobs_wait_for_them(tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", SCRIPT.encode())
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        found = [int(number) for number in first.stdout.readline().split()]
        running = [is_running(worker) for worker in found[2:]]
        until = time.monotonic() + 10
        while not (ignoring := all(map(ignores_ctrl_c, found[2:]))) and time.monotonic() < until:
            time.sleep(0.02)
        first.kill()
    result, waiting, *workers = found
    assert result == 0
    assert waiting == 5  # two for each worker, and the next one
    assert running == [True, True]
    assert ignoring  # it reaches all processes; the first one ends the others
    until = time.monotonic() + 20
    while any(map(is_running, workers)):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no choice of CPUs on this system")
def test_there_is_a_process_for_each_cpu_that_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize_files, "ProcessPoolExecutor", None)
    cpus = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cpus)})
        (text,) = tokenize_files.tokenize_files([write(tmp_path / "text", b"one two\n")], WhitespaceTokenizer())
    finally:
        os.sched_setaffinity(0, cpus)
    assert text.types == ["one", "two"]


def test_small_texts_start_no_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize_files, "ProcessPoolExecutor", None)
    config = TextCorpus(paths=(str(write(tmp_path / "text", b"one\ntwo\n")),), tokenized=True)
    assert sorted(config.build(workers=2).types) == ["one", "two"]
