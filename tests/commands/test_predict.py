"""Where the inputs of `predict` come from, and where its results go."""

import io
import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pandas
import pytest
from rich.console import Console
from rich.progress import Progress

import elmo_tasks.predictors
import elmo_tasks.runs.evaluate
import elmo_tasks.runs.load
from elmo_tasks import cli
from elmo_tasks.errors import DataError, ElmoTasksError, counted
from elmo_tasks.extras.allennlp import allennlp_format
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Predictor
from elmo_tasks.predictors.fields import text_field
from elmo_tasks.predictors.predictor import ExampleError
from elmo_tasks.tasks import Classification, Regression
from elmo_tasks.text.tokenizers import TREEBANK
from tests import command_server

ODD_FILES = Path(__file__).parents[1] / "odd_files"


class EchoPredictor:
    task = SimpleNamespace(names=tuple)  # has no description of its own

    def warm_up(self) -> None:
        pass

    def predict(self, inputs: Iterable[Mapping[str, Any]], *, source: str, **_: Any) -> Iterator[dict[str, Any]]:
        for fields in inputs:
            if fields["text"] == "bad":
                raise DataError(source, "bad input")
            yield {"said": fields["text"], "source": source}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Mock:
    load = Mock(return_value=EchoPredictor())
    monkeypatch.setattr(elmo_tasks.runs.load, "load_predictor", load)
    return load


def test_predict_prints_json_lines(tmp_path: Path, load: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("one\nzwölf\n", encoding="utf-8")
    assert cli.main(["predict", "run", str(source), "--batch-tokens", "99"]) == 0
    expected = [{"said": "one", "source": str(source)}, {"said": "zwölf", "source": str(source)}]
    output = capsys.readouterr().out
    assert "zwölf" in output
    assert [json.loads(line) for line in output.splitlines()] == expected
    assert load.call_args.args == (["run"],)
    assert load.call_args.kwargs == {"overrides": [], "batch_tokens": 99, "predicates": None}

    for option, tokenizer in (
        ("--tokenized", '{"type": "whitespace"}'),
        ("--tokenizer=unicode", '{"type": "unicode"}'),
        ('--tokenizer={"type": "regex", "pattern": "a"}', '{"type": "regex", "pattern": "a"}'),
    ):
        assert cli.main(["predict", "run", str(source), option, "--output", str(tmp_path / "none"), "--force"]) == 0
        assert load.call_args.kwargs["overrides"] == [f"dataset_reader.tokenizer={tokenizer}"]

    target = tmp_path / "out.jsonl"
    assert cli.main(["predict", "run", str(source), "--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == output
    assert capsys.readouterr().out == ""

    assert cli.main(["predict", "run", str(source), "--predicates", "tagger", "--device", "cpu", "--set", "a=b"]) == 0
    loaded = [(*each.args, each.kwargs["overrides"]) for each in load.call_args_list[-2:]]
    assert loaded == [("tagger", ["trainer.device=cpu"]), (["run"], ["trainer.device=cpu", "a=b"])]
    assert isinstance(load.call_args.kwargs["predicates"], EchoPredictor)


@pytest.mark.usefixtures("load")
def test_predict_on_a_terminal_is_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("[red]one\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "300")
    assert cli.main(["predict", "run", str(source)]) == 0
    assert capsys.readouterr().out == f"said: [red]one\nsource: {source}\n\n"
    assert cli.main(["predict", "run", str(source), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"said": "[red]one", "source": str(source)}
    monkeypatch.setattr(allennlp_format, "AllenNlpPredictor", lambda predictor: predictor)
    assert cli.main(["predict", "run", str(source), "--format", "allennlp"]) == 0
    assert json.loads(capsys.readouterr().out) == {"said": "[red]one", "source": str(source)}


def test_data_is_not_typed(
    short_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, keyboard = pty.openpty()
    with os.fdopen(keyboard) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main(["predict", str(short_run), "-", "--format", "reader"]) == 2
    message = capsys.readouterr().err
    assert message.count("error: ") == 1
    assert "Ready" not in message


def test_who_types_is_prompted_and_may_make_mistakes(
    load: Mock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, keyboard = pty.openpty()
    # Types when all is loaded, so that the command waits for the first line, but not for the others.
    load.return_value.warm_up = threading.Timer(0.5, os.write, [terminal, b"bad\nfine\n\x04"]).start
    with os.fdopen(keyboard) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main(["predict", "run", "-"]) == 0
    os.close(terminal)
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"said": "fine", "source": "standard input"}
    ready = "Ready. Type lines of text or JSON objects; the first one decides which. Ctrl-D ends."
    assert captured.err == f"{ready}\n> error: standard input: bad input\n"


def test_predict_answers_while_the_pipe_is_open(
    load: Mock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (read, question), (answer, write) = os.pipe(), os.pipe()
    load.return_value.warm_up = Mock()
    with os.fdopen(read) as stdin, os.fdopen(write, "w") as stdout, os.fdopen(answer, "rb") as answers:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        command = threading.Thread(target=cli.main, args=[["predict", "run", "-"]])
        command.start()
        try:
            until, said = time.monotonic() + 30, ""
            while "ready; waiting for lines on standard input" not in said:
                assert time.monotonic() < until
                time.sleep(0.01)
                said += capsys.readouterr().err
            load.return_value.warm_up.assert_called_once_with()
            for text in ("one", "two"):
                os.write(question, f"{text}\n".encode())
                assert select.select([answers], [], [], 10)[0]
                assert json.loads(answers.readline())["said"] == text
        finally:
            os.close(question)
            command.join()


@pytest.mark.usefixtures("load")
def test_the_format_of_inputs_is_the_one_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in"
    source.write_text('{"text": "one"}\n')
    said = {}
    for given in ("auto", "jsonl", "text"):
        assert cli.main(["predict", "run", str(source), "--format", given]) == 0
        said[given] = json.loads(capsys.readouterr().out)["said"]
    assert said == {"auto": "one", "jsonl": "one", "text": '{"text": "one"}'}
    source.write_text("one\n")
    assert cli.main(["predict", "run", str(source), "--format", "jsonl"]) == 2
    assert "a JSON object on each line" in capsys.readouterr().err


ALLENNLP = "--html and tables cannot show AllenNLP's keys; expected no --format allennlp"
DOUBT = "--least-certain: expected an annotation tool's --output-format, JSON lines or a table"
NEW = "--output-format brat: expected a new folder as --output, or --force to write into one"
ONE_FILE = "--format reader reads one file into a table; got a folder or several files"
TOGETHER = {  # options that do not go together, with what is said
    "--format allennlp --html page": ALLENNLP,
    "--format allennlp --output t.csv": ALLENNLP,
    "--output-format reader": "--output-format reader adds predictions to the data; expected --format reader as well",
    "--format reader --output-format reader --explain": (
        "--explain adds to results, not to data; expected no --output-format reader"
    ),
    "--output-format spacy --explain": "--explain adds to results, not to data; expected no --output-format spacy",
    "--resolve --format allennlp": "--resolve is for text; expected no --format allennlp",
    "--resolve --format reader": "--resolve is for text; expected no --format reader",
    "--resolve --output parts/": "--resolve: not for an output folder",
    "--format text --output parts/": "--format text: not for an output folder",
    "--least-certain 2 --format reader --output-format reader": DOUBT,
    "--least-certain 2 --output parts/": DOUBT,
    "--output-format spacy --html page": "--output-format spacy: expected no --html",
    "--output-format spacy --resolve": "--output-format spacy: expected no --resolve",
    "--output-format spacy --format text": "--output-format spacy: expected no --format",
    "a.xlsx --output-format spacy": (
        "--output-format spacy: a.xlsx is a table; without this option, the run's reader reads it"
    ),
    "a.txt b.txt --output-format spacy": "--output-format spacy: reads one file or folder; got several files",
    "a.txt b.txt --format reader --output t.csv": ONE_FILE,
    "old --format reader --output t.csv": ONE_FILE,
    "--output-format brat": NEW,
    "--output-format brat --output old": NEW,
    "--output-format brat --output a.csv": "a.csv: cannot be written as .csv; expected the name of a folder",
    "--output-format brat --output in --force": "in: not a folder; expected one to write to",
    "--output-format label-studio --output a.csv": (
        "a.csv: cannot be written as .csv; expected a name that ends in .json"
    ),
    "--output-format doccano --output old.jsonl": "old.jsonl: the file exists; --force replaces it",
    "--output old.jsonl": "old.jsonl: the file exists; --force replaces it",
    "--html old.html": "old.html: the file exists; --force replaces it",
    "--html page.csv": "page.csv: cannot be written as .csv; expected a name that ends in .html",
}


@pytest.mark.parametrize("options", TOGETHER)
def test_what_does_not_go_together_is_said_before_anything_is_loaded(
    options: str, load: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    for name in ("in", "a.txt", "b.txt", "old.jsonl", "old.html"):
        (tmp_path / name).touch()
    source = ["in"] if options.startswith("--") else []
    assert cli.main(["predict", "run", *source, *options.split()]) == 2
    assert capsys.readouterr().err.replace(f"{tmp_path}/", "") == f"error: {TOGETHER[options]}\n"
    assert not load.called


def test_numbers_are_not_ranked_by_their_certainty(
    tmp_path: Path, load: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    load.return_value.task = Regression()
    (tmp_path / "in.txt").write_text("one\n")
    assert cli.main(["predict", "run", str(tmp_path / "in.txt"), "--least-certain", "1"]) == 2
    assert "--least-certain: this model gives numbers, which have no probabilities" in capsys.readouterr().err


OWN_FORMATS = """
from pathlib import Path
from elmo_tasks import hooks
from elmo_tasks.commands.predict import InputFormat, OutputFormat

def count(request, predictor, reader, on_error):
    inputs = predictor.inputs_of(reader.unlabelled(request.inputs[0], on_error))
    Path(request.output).write_text(str(len(list(predictor.predict(inputs)))))

hooks.register("output_format", "count", OutputFormat("the number of results", (".txt",), count))
hooks.register("input_format", "prose", InputFormat("one paragraph per line", "text"))
"""


def test_a_package_adds_formats(short_run: Path, sample_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(OWN_FORMATS)
    (tmp_path / "silent.py").write_text(OWN_FORMATS.replace(', (".txt",), count', ""))
    (tmp_path / "prose").write_text('{"text": "one"}\n')
    data = str(sample_folder / "ner_conll2003" / "eng.testb")

    def predict(source: str, *options: str, package: str = "counted") -> tuple[int, str, str]:
        command = [command_server.start(), "-m", "elmo_tasks", "predict", str(short_run), source, *options]
        done = subprocess.run([*command, "--include-package", package], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert predict(data, "--output-format", "count", "--output", "number.txt")[0] == 0
    assert int((tmp_path / "number.txt").read_text()) > 1
    assert json.loads(predict("prose", "--format", "prose")[1])["tokens"][0] == "{"
    code, _, error = predict(data, "--output-format", "cuont")
    assert code == 2
    assert "error: argument --output-format: invalid choice: 'cuont' (choose from jsonl, reader, " in error
    assert "count" in error.partition("choose from ")[2].partition(")")[0].split(", ")
    assert ") Did you mean 'count'?\n" in error
    code, _, error = predict(data, "--output-format", "count", package="silent")
    assert code == 2
    assert "error: --include-package silent: cannot import silent (TypeError: " in error


def test_only_who_has_to_wait_is_told(
    tmp_path: Path, load: Mock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    with open(tmp_path / "in.txt") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main(["predict", "run", "-"]) == 0
    captured = capsys.readouterr()
    assert (json.loads(captured.out)["said"], captured.err) == ("one", "")
    assert load.call_args.kwargs["batch_tokens"] == DEFAULT_BATCH_TOKENS
    monkeypatch.setattr(sys, "stdin", None)
    assert cli.main(["predict", "run", "-"]) == 2
    assert capsys.readouterr().err == "error: standard input: it is closed; expected one input on each line\n"


@pytest.mark.usefixtures("load")
def test_the_progress_of_a_file_counts_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bars: list[Progress] = []

    def bar(*, visible: bool) -> Progress:
        bars.append(Progress(console=Console(file=io.StringIO(), force_terminal=True)))
        return bars[-1]

    monkeypatch.setattr("elmo_tasks.progress.progress_bar", bar)
    source, target = tmp_path / "in.txt", str(tmp_path / "out.jsonl")
    source.write_text("one\ntwo\nthree\n")
    assert cli.main(["predict", "run", str(source), "--output", target]) == 0
    with source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main(["predict", "run", "-", "--output", target, "--force"]) == 0
    assert [(bar.tasks[0].completed, bar.tasks[0].total) for bar in bars] == [(3, 3), (3, None)]
    source.write_bytes(b"one\n\xff\n")  # is found again where the results have come
    assert cli.main(["predict", "run", str(source), "--output", target, "--force"]) == 1
    assert f"error: {source}:2: byte 0xff at column 1 is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["evaluate run data --output", "predict run {input} --output", "config sst5 --copy"]
)
@pytest.mark.usefixtures("load")
def test_results_can_be_written_to_a_device(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elmo_tasks.runs.evaluate, "evaluate", Mock(return_value={"f1": 1.0}))
    (tmp_path / "in.txt").write_text("one\n")
    assert cli.main([*command.format(input=tmp_path / "in.txt").split(), "/dev/null"]) == 0


class TokenPredictor(Predictor):
    """Says how many tokens a text has; it does not take texts of ten tokens, nor with the token `late` in a batch."""

    read_keys = frozenset({"text"})

    def __init__(self) -> None:
        self.task = Mock(spec=Classification, names=list, length=lambda example: len(example["tokens"]))
        self.batch_tokens = 8
        self.tokenizer = TREEBANK

    def examples(self, fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        tokens = text_field(fields, "text").split()
        if len(tokens) == 10:
            raise ElmoTasksError("ten tokens")
        yield {"tokens": tokens}

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        for row, example in enumerate(examples):
            if "late" in example["tokens"]:
                raise ExampleError(row, "too late")
        return [{} for _ in examples]

    def result(self, example: Mapping[str, Any], prediction: Mapping[str, Any]) -> dict[str, Any]:
        return {"number": len(example["tokens"])}


NAN = (ODD_FILES / "nan.jsonl").read_text()
MID = ODD_FILES / "mid.jsonl"
TEN = " ".join("x" * 10)


@pytest.mark.parametrize(
    ("content", "line", "problem", "before", "all_but_bad"),
    [
        (MID.read_text(), 4, "'text' is null; expected a string", 3, 4),
        ('{"text": "a"}\n{"text"\n{"text": "a"}\n', 2, "EOF while parsing an object at column 7", 1, 2),
        ('{"text": "a"}\n\n[1]\n{"text": "a"}\n', 3, "a JSON list", 1, 2),
        ('{"text": "a"}\n' + NAN + '{"text": "a"}\n', 2, "NaN is not a finite number", 1, 2),
        ('{"text": "a"}\n{"text": "a", "x": [-Infinity]}\n', 2, "-Infinity is not a finite number", 1, 1),
        ('{"text": "a"}\n{"text": "a", "x": {"y": 1e400}}\n', 2, "1e400 is not a finite number", 1, 1),
        (f"a\n{TEN}\na\n", 2, "ten tokens", 1, 2),
        ("a\nb\nlate\nlate c\na\n", 3, "too late", 2, 3),
        ("a b c d e f g\n" * 40 + "late\n" + "a\n" * 30, 41, "too late", 40, 70),
        ("a\nb \udcff\na\n", 2, "byte 0xff at column 3 is not UTF-8", 1, 2),
    ],
)
def test_results_before_a_bad_input_are_kept_and_bad_inputs_can_be_skipped(
    content: str,
    line: int,
    problem: str,
    before: int,
    all_but_bad: int,
    tmp_path: Path,
    load: Mock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    load.return_value = TokenPredictor()
    source, lines, page = tmp_path / "in", tmp_path / "out.jsonl", tmp_path / "page.html"
    source.write_bytes(content.encode(errors="surrogateescape"))
    command = ["predict", "run", str(source), "--output", str(lines), "--html", str(page), "--force"]
    assert cli.main(command) == 1
    error = capsys.readouterr().err
    assert f"error: {source}:{line}: {problem}" in error
    advice = "--on-error skip leaves out inputs that are not usable\n"
    assert error.endswith(f"\n{lines}, {page}: only {counted(before, 'result')}, of the inputs before it\n{advice}")
    assert len(lines.read_text().splitlines()) == before
    assert page.read_text().count("<section>") == before
    assert page.read_text().endswith("</html>\n")
    assert "The results end here:" in page.read_text()

    assert cli.main(["predict", "run", str(source)]) == 2
    assert capsys.readouterr().out == lines.read_text()

    assert cli.main([*command, "--on-error", "skip"]) == 0
    bad = len([each for each in content.splitlines() if each.strip()]) - all_but_bad
    error = capsys.readouterr().err
    assert f"skipped {bad} unusable input(s):\n  {source}:{line}: {problem}" in error
    assert len(lines.read_text().splitlines()) == page.read_text().count("<section>") == all_but_bad
    assert "The results end here:" not in page.read_text()


def test_data_is_predicted_and_written_with_its_predictions(
    short_run: Path, sample_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, source, target = str(short_run), tmp_path / "data.txt", tmp_path / "predicted"
    text = (sample_folder / "ner_conll2003" / "eng.testb").read_text()
    source.write_text(text)
    assert cli.main(["predict", run, str(source), "--format", "reader"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    tags = [tag for result in results for tag in result["tags"]]
    assert text.splitlines()[results[1]["line"] - 1].split()[0] == results[1]["tokens"][0]

    same = ["predict", run, str(source), "--format", "reader", "--output-format", "reader"]
    assert cli.main([*same, "--output", str(target)]) == 0
    added = [line for line in target.read_text().splitlines() if line and not line.startswith("-DOCSTART-")]
    assert [line.split()[-1] for line in added] == tags
    assert [line.rpartition(" ")[0] for line in added] == [
        line for line in text.splitlines() if line and not line.startswith("-DOCSTART-")
    ]

    source.write_text("Mary\nleft\n\nTavo NN O\n\nOrla\n")  # without tags
    capsys.readouterr()
    assert cli.main([*same, "--output", str(target), "--force"]) == 1
    assert f"error: {source}:4: 3 column(s); expected 1 as in line 1: 'Tavo NN O'\n" in capsys.readouterr().err
    assert [len(line.split()) for line in target.read_text().splitlines()] == [2, 2]
    assert cli.main([*same, "--on-error", "skip"]) == 0
    captured = capsys.readouterr()
    assert [len(line.split()) for line in captured.out.splitlines()] == [2, 2, 0, 4, 0, 2]
    assert "Tavo NN O _\n" in captured.out
    assert f"skipped 1 unusable input(s):\n  {source}:4: 3 column(s)" in captured.err
    assert cli.main(["predict", run, "-", "--format", "reader"]) == 2
    assert capsys.readouterr().err.endswith("-: no such file\n")
    table = tmp_path / "data.csv"
    table.write_text("text,label\nMira left.,x\n")
    assert cli.main(["predict", run, str(table)]) == 2  # the run has not learned from a table
    assert "data.csv: looks like a table; expected only its column of texts" in capsys.readouterr().err


def classifier(folder: Path) -> str:
    """A run that has hardly learned anything."""
    source = folder / "data.csv"
    source.write_text("id;Text;Urteil\n7;Warme Suppe, schön;gut\n8;Kalter Regen;schlecht\n", encoding="cp1252")
    config = {
        "dataset_reader": {"type": "delimited", "task": "classification", "columns": {"label": "Urteil"}},
        "train_data_path": str(source),
        "validation_data_path": str(source),
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 8}}},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "trackers": [], "validation_metric": "-loss", "optimizer": {"type": "adam"}},
    }
    elmo_tasks.train(config, folder / "run")
    return str(folder / "run")


def test_a_folder_of_texts_becomes_one_table(tmp_path: Path) -> None:
    run, texts, table = classifier(tmp_path), tmp_path / "texts", tmp_path / "Table.XLSX"
    (texts / "more").mkdir(parents=True)
    (texts / "a.txt").write_text("Warm.\n\n=SUM(1)\n")
    (texts / "more" / "b.txt").write_text("Kal\x07t, sehr.\n")
    assert cli.main(["predict", run, str(texts), "--output", str(table)]) == 0
    rows = pandas.read_excel(table)[["file", "line", "text"]].to_numpy().tolist()
    assert rows == [["a.txt", 1, "Warm."], ["a.txt", 3, "=SUM(1)"], ["more/b.txt", 1, "Kal_x0007_t, sehr."]]


def test_only_some_of_many_skipped_inputs_are_named(
    tmp_path: Path, load: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    load.return_value = TokenPredictor()
    (tmp_path / "in").write_text(f"a\n{TEN}\n" * 8)
    assert cli.main(["predict", "run", str(tmp_path / "in"), "--on-error", "skip"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 8
    assert "skipped 8 unusable input(s)" in captured.err
    assert captured.err.count("ten tokens") == 5
    assert captured.err.endswith("\n  and 3 more\n")


def test_where_no_input_is_usable_there_is_no_file(
    tmp_path: Path, load: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    load.return_value = TokenPredictor()
    source, target = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text(f"{TEN}\nfine\n")
    target.write_text("earlier")
    assert cli.main(["predict", "run", str(source), "--output", str(target), "--force"]) == 2
    assert capsys.readouterr().err == f"error: {source}:1: ten tokens\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.jsonl"]
    assert target.read_text() == "earlier"


@pytest.mark.parametrize("content", [(ODD_FILES / "pretty.json").read_bytes(), b"text,label\nMary left.,good\n"])
@pytest.mark.usefixtures("load")
def test_data_is_refused_unless_it_is_said_to_be_text(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(content)
    assert cli.main(["predict", "run", str(source), "--output", str(target)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {source}:1: looks like a ")
    assert error.count("\n") == 1
    assert not target.exists()
    assert cli.main(["predict", "run", str(source), "--output", str(target), "--format", "text"]) == 0
    assert len(target.read_text().splitlines()) == len(content.splitlines())


@pytest.mark.parametrize("way", ["descriptor", "named pipe", "/dev/stdin"])
@pytest.mark.usefixtures("load")
def test_inputs_come_through_pipes(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    path = f"/dev/fd/{read}"
    if way == "named pipe":
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
        writer = threading.Thread(target=Path(path).write_text, args=["one\ntwo\n"])
        writer.start()
    else:
        os.write(write, b"one\ntwo\n")
    os.close(write)
    if way == "/dev/stdin":
        path, earlier = "/dev/stdin", os.dup(0)
        os.dup2(read, 0)
    try:
        assert cli.main(["predict", "run", path, "--output", str(tmp_path / "out")]) == 0
    finally:
        if way == "/dev/stdin":
            os.dup2(earlier, 0)
            os.close(earlier)
        os.close(read)
    results = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert results == [{"said": "one", "source": path}, {"said": "two", "source": path}]
    assert capsys.readouterr().err.endswith(f"{tmp_path / 'out'}: 2 results\n")


@pytest.mark.usefixtures("load")
def test_an_empty_input_is_said_to_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["predict", "run", "/dev/null"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("/dev/null: no text in 0 line(s)\n")


def test_resolved_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "text.txt", tmp_path / "results.jsonl"
    source.write_text("Peter told Mary that he would help her.\n\nIt rained.\n")
    texts = ["Peter told Mary that Peter would help Mary.", "It rained."]
    resolve = ["predict", "coreference", str(source), "--resolve"]
    assert cli.main(resolve) == 0
    assert capsys.readouterr().out.splitlines() == texts
    assert cli.main([*resolve, "--output", str(target)]) == 0
    assert cli.main([*resolve, "--json"]) == 0
    for lines in (target.read_text(), capsys.readouterr().out):
        assert [json.loads(line)["resolved"] for line in lines.splitlines()] == texts
    assert cli.main([*resolve, "--html", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["predict", "ner", str(source), "--resolve"]) == 2
    assert "--resolve is for coreference" in capsys.readouterr().err
