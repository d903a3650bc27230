"""The processes that tokenize text."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining import tokenize_files
from elmo_tasks.extras.pretraining.prepare import TextCorpus
from elmo_tasks.text.tokenizers import WhitespaceTokenizer


def test_a_worker_that_is_ended_from_outside() -> None:
    with pytest.raises(ElmoTasksError, match="a tokenizing process was killed"):
        list(tokenize_files.in_processes([partial(os._exit, 1)], 2))


def test_workers_are_light() -> None:
    code = "import sys, elmo_tasks.extras.pretraining.tokenize_files; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


SCRIPT = """
import multiprocessing, os, signal, sys, time
from pathlib import Path
from elmo_tasks.extras.pretraining import tokenize_files
from elmo_tasks.text.tokenizers import WhitespaceTokenizer

read_chunks = tokenize_files.read_chunks

def noting(path):
    for chunk in read_chunks(path):
        chunks.append(chunk)
        yield chunk

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has it ignored
    tokenize_files._CHUNK_CHARACTERS, chunks = 10, []
    tokenize_files.separates_documents = lambda path: False  # it reads the file, too
    tokenize_files.read_chunks = noting
    texts = tokenize_files.tokenize_files([Path(sys.argv[1])], WhitespaceTokenizer(), workers=2)
    tokens, waiting = len(next(texts).tokens), len(chunks)
    workers = [each.pid for each in multiprocessing.active_children()]
    for text, _ in zip(texts, range(50)):
        tokens += len(text.tokens)
    print(tokens, waiting, *workers, flush=True)
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
    (tmp_path / "text").write_text("one two three\n" * 400)  # each line is a chunk
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "text")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        found = [int(number) for number in first.stdout.readline().split()]
        running = [is_running(worker) for worker in found[2:]]
        until = time.monotonic() + 10
        while not (ignoring := all(map(ignores_ctrl_c, found[2:]))) and time.monotonic() < until:
            time.sleep(0.02)
        first.kill()
    tokens, waiting, *workers = found
    assert tokens == 51 * 3
    assert waiting == 5  # two for each worker, and the next one
    assert running == [True, True]
    assert ignoring  # it reaches all processes; the first one ends the others
    until = time.monotonic() + 20
    while any(map(is_running, workers)):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no choice of CPUs on this system")
def test_there_is_a_process_for_each_cpu_that_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize_files, "ProcessPoolExecutor", lambda workers, *_: 1 / (workers - 3))
    (tmp_path / "text").write_text("one two\n")

    def tokenize(workers: int | None) -> int:
        return sum(
            len(each.tokens)
            for each in tokenize_files.tokenize_files([tmp_path / "text"], WhitespaceTokenizer(), workers=workers)
        )

    cpus = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cpus)})
        assert tokenize(None) == 2  # in this process
    finally:
        os.sched_setaffinity(0, cpus)
    assert tokenize(1) == 2
    with pytest.raises(ZeroDivisionError):
        tokenize(3)


def test_small_texts_start_no_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tokenize_files, "ProcessPoolExecutor", None)
    (tmp_path / "text").write_text("one\ntwo\n")
    corpus = TextCorpus(paths=(str(tmp_path / "text"),), tokenized=True).build(workers=2)
    assert sorted(corpus.types) == ["one", "two"]
