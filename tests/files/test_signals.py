"""Commands that Ctrl-C or SIGTERM ends, or that are long at work: what stays, and what they say."""

import errno
import itertools
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import elmo_tasks.runs.load
from elmo_tasks import cli, progress
from elmo_tasks.extras.engines.parts import PartsFolder
from elmo_tasks.extras.pretraining import scores
from elmo_tasks.extras.pretraining.scores import SentenceScores
from elmo_tasks.files.signals import ended_cleanly, is_signal, uninterrupted

pytestmark = pytest.mark.usefixtures("interruptible")

SIGNALS = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
TEXT = "Orla left.\nIt rained.\nShe sang.\n"


class Stopping:
    """A predictor whose process gets a signal before the third result."""

    task = SimpleNamespace(names=tuple)

    def __init__(self, stop: Callable[[], object], *, after: int = 2) -> None:
        self._stop, self._after = stop, after

    def predict(self, inputs: Iterable[Mapping[str, Any]], **_: Any) -> Iterator[dict[str, Any]]:
        for number, fields in enumerate(inputs):
            if number == self._after:
                self._stop()
            yield {"said": fields["text"]}


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """A function that runs `predict` on three lines and stops it with a signal; gives its exit code."""
    (tmp_path / "in.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)

    def run(number: signal.Signals, *options: str, after: int = 2) -> int:
        stopping = Stopping(lambda: signal.raise_signal(number), after=after)
        monkeypatch.setattr(elmo_tasks.runs.load, "load_predictor", lambda *_, **__: stopping)
        return code_of("predict", "run", "in.txt", *options)

    return run


def code_of(*arguments: str) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as ended:
        return int(str(ended.code))


def test_signals_that_are_ignored_stay_so() -> None:
    """As SIGHUP is after `nohup`."""
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_cleanly():
            signal.raise_signal(signal.SIGHUP)
            with uninterrupted():
                signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_a_second_sigterm_does_not_interrupt_what_the_first_one_cleans_up() -> None:
    cleaned = []

    def stopped() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            cleaned.append("file")

    with pytest.raises(SystemExit, match="143"), ended_cleanly():
        stopped()
    assert cleaned == ["file"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_thread_that_finds_a_full_disk_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda problem: reported.append(problem.exc_value))
    errors = [OSError(errno.ENOSPC, "No space left"), OSError(errno.EACCES, "Permission denied"), ValueError("wrong")]

    def fail(error: Exception) -> None:
        raise error

    for error in errors:
        with ended_cleanly():
            thread = threading.Thread(target=fail, args=[error])
            thread.start()
            thread.join()
    assert reported == errors[1:]


@pytest.mark.parametrize(
    ("ended", "by_a_signal"),
    [
        (KeyboardInterrupt(), True),
        (SystemExit(129), True),
        (SystemExit(128), False),
        (SystemExit("143"), False),
        (ValueError(), False),
    ],
)
def test_what_a_signal_raises(ended: BaseException, by_a_signal: bool) -> None:
    assert is_signal(ended) == by_a_signal


@SIGNALS
def test_the_results_of_a_stopped_prediction_stay(
    number: signal.Signals, code: int, stop: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stop(number, "--output", "out.jsonl", "--html", "page.html") == code
    said = [json.loads(line)["said"] for line in Path("out.jsonl").read_text().splitlines()]
    assert said == ["Orla left.", "It rained."]
    page = Path("page.html").read_text()
    assert page.count("<section>") == 2
    assert page.endswith("<p><b>The results end here:</b> interrupted</p>\n</body>\n</html>\n")
    message = "interrupted; out.jsonl, page.html: has the first 2 results, all of them complete\n"
    assert capsys.readouterr().err == message


def test_a_prediction_that_is_stopped_before_its_first_result_leaves_no_file(
    stop: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stop(signal.SIGINT, "--output", "out.jsonl", after=0) == 130
    assert [path.name for path in Path().iterdir()] == ["in.txt"]
    assert capsys.readouterr().err == "interrupted; out.jsonl: not written; results are only written whole\n"


def test_what_is_printed_of_a_stopped_prediction_is_whole(
    stop: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stop(signal.SIGINT) == 130
    captured = capsys.readouterr()
    assert captured.out == '{"said": "Orla left."}\n{"said": "It rained."}\n'
    assert captured.err == "interrupted\n"


def test_a_second_ctrl_c_does_not_throw_away_what_the_first_one_has_kept(
    stop: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def impatient(handle: int) -> None:
        signal.raise_signal(signal.SIGINT)
        sync(handle)

    monkeypatch.setattr(os, "fsync", impatient)
    assert stop(signal.SIGINT, "--output", "out.jsonl") == 130
    assert len(Path("out.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_end_of_a_result(number: signal.Signals) -> None:
    written: list[str] = []
    earlier = signal.signal(number, lambda *_: written.append("ended"))
    try:
        with uninterrupted():
            signal.raise_signal(number)
            written.append("whole")
        assert written == ["whole", "ended"]
        signal.raise_signal(number)  # the handler is the earlier one again
        assert written == ["whole", "ended", "ended"]
    finally:
        signal.signal(number, earlier)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "JSON lines"])
def test_the_scores_of_a_stopped_command_stay(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    score_texts = scores.score_texts

    def stopped(*arguments: Any) -> Iterator[SentenceScores]:
        found = score_texts(*arguments)
        yield from itertools.islice(found, 2)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text(TEXT)
    assert code_of("score", "in.txt", "--output", "all", *options) == 0
    monkeypatch.setattr(scores, "score_texts", stopped)
    capsys.readouterr()
    assert code_of("score", "in.txt", "--output", "some", *options) == 143
    kept, whole = Path("some").read_text(), Path("all").read_text()
    assert whole.startswith(kept)
    assert "sang" in whole[len(kept) :]
    assert "rained" in kept
    assert capsys.readouterr().err == "interrupted; some: has the first 2 sentences, all of them complete\n"


def test_the_scores_before_a_bad_line_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, output = tmp_path / "in.txt", tmp_path / "out.tsv"
    text.write_bytes(b"Orla left.\nIt rained.\n\xff\xfe\xff\n")
    assert cli.main(["score", str(text), "--output", str(output)]) == 1
    error = capsys.readouterr().err
    assert f"error: {text}:3: " in error
    assert error.endswith(f"\n{output}: only 2 sentences, of the inputs before it\n")
    assert [line.split("\t")[2] for line in output.read_text().splitlines()].count("</S>") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("embed in.txt --output v.hdf5", "v.hdf5: not written; results are only written whole"),
        ("embed in.txt --output v/", "v/: has 0 complete parts; the same command makes the others"),
        ("probe in.txt --output p.json", "p.json: not written; results are only written whole"),
        ("similarity bank bank", ""),
    ],
)
def test_every_command_says_what_is_left_when_it_is_stopped(
    options: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from elmo_tasks.elmo import BiLM, fast

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "in.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(BiLM, "load", interrupted)
    monkeypatch.setattr(fast, "load_frozen", interrupted)  # another test may have loaded the same biLM
    monkeypatch.setattr(PartsFolder, "check_settings", interrupted)
    assert code_of(*options.split()) == 130
    error = capsys.readouterr().err
    assert error.startswith(f"interrupted; {message}" if message else "interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


@pytest.mark.parametrize("options", [[], ["--output", "out.jsonl"]], ids=["to a pipe", "to a file"])
def test_a_long_prediction_says_how_far_it_is(
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    has_said = threading.Event()
    logging.getLogger("elmo_tasks.progress").addHandler(handler := logging.Handler())
    handler.emit = lambda record: "inputs: 2" in record.getMessage() and has_said.set()  # type: ignore
    (tmp_path / "in.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    predictor = Stopping(lambda: has_said.wait(60))
    monkeypatch.setattr(elmo_tasks.runs.load, "load_predictor", lambda *_, **__: predictor)
    assert cli.main(["predict", "run", "in.txt", *options]) == 0
    logging.getLogger("elmo_tasks.progress").removeHandler(handler)
    assert "inputs: 2 of 3, after 0:00:00" in caplog.text
