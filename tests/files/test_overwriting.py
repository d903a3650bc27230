"""Nothing is overwritten unasked, and what cannot be written is found before anything is computed."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.extras.pretraining.pretrain import PretrainingFolder
from elmo_tasks.extras.studies.study_runs import run_study
from elmo_tasks.extras.studies.tuning import Tuning
from elmo_tasks.files.paths import check_folder, check_output
from elmo_tasks.runs.folder import Folder, RunFolder
from elmo_tasks.runs.plan import plan_folder

COMMANDS = {
    "evaluate run data --output FILE": "runs.evaluate.evaluate",
    "evaluate run data --predictions FILE": "runs.evaluate.evaluate",
    "predict run input --output FILE": "runs.load.load_predictor",
    "archive run FILE": "runs.archive.archive",
    "embed text --output FILE": "extras.vectors.embed.embed_file",
    "config sst5 --copy FILE": "config.packaged.summary",  # computes nothing
}


def test_a_new_file_and_standard_output_are_fine(tmp_path: Path) -> None:
    check_output(None, force=False)
    check_output(tmp_path / "new" / "deep" / "file", force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_replaced_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ElmoTasksError, match=r"file: the file exists; --force replaces it"):
        check_output(tmp_path / "file", force=False)
    check_output(tmp_path / "file", force=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("force", [False, True])
def test_folders_and_devices_are_never_replaced(force: bool, tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(ElmoTasksError, match="not a regular file; expected the name of a file"):
            check_output(path, force=force)
    check_output("/dev/null", force=force, stream=True)
    with pytest.raises(ElmoTasksError, match="not a regular file"):
        check_output(tmp_path, force=force, stream=True)


def test_places_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for write in (check_output, lambda path, force: plan_folder(RunFolder(path), {}, resume=False, force=force)):
        with pytest.raises(ElmoTasksError, match=r"file: not a folder; expected one to write to"):
            write(tmp_path / "file" / "inner", force=False)
    refuse = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)  # root may write anywhere
    with pytest.raises(ElmoTasksError, match=rf"^{tmp_path}: cannot be written to \(Permission denied\)$"):
        check_folder(tmp_path / "new" / "deep")


def test_a_file_that_is_not_compressed_is_not_named_as_if_it_were(tmp_path: Path) -> None:
    problem = r"lines\.jsonl\.gz: cannot be written compressed; expected a name without \.gz"
    with pytest.raises(ElmoTasksError, match=problem):
        check_output(tmp_path / "lines.jsonl.gz", force=False)
    check_output(tmp_path / "run.tar.gz", force=False, packed=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "predict r i --output x.db",
            "x.db: cannot be written as .db; expected a name that ends in .jsonl. Tables end in .csv, ",
        ),
        ("predict r i --html x.jsonl", "x.jsonl: cannot be written as .jsonl; expected a name that ends in .html"),
        ("evaluate r d --predictions x.tsv", "expected a name that ends in .jsonl"),
        ("evaluate r d --output x.CSV", "x.CSV: cannot be written as .csv; expected a name that ends in .json"),
        ("score t --output x.csv", "expected a name that ends in .tsv. --json writes JSON lines"),
        ("score t --json --output x.tsv", "expected a name that ends in .jsonl. Without --json, it is a table"),
        ("data sst5 --output x.md", "expected a name that ends in .json"),
        ("probe f --output x.csv", "expected a name that ends in .json"),
        ("config sst5 --copy x.json", "expected a name that ends in .jsonnet"),
        ("embed t --output v2", "v2: expected a name that ends in .hdf5, .h5 or .npz, or for a folder, a slash: v2/"),
    ],
)
def test_a_name_that_promises_another_format_is_refused(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(line.split()) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_before_they_compute(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compute = Mock(side_effect=ElmoTasksError("computed"))
    monkeypatch.setattr(f"elmo_tasks.{COMMANDS[command]}", compute)
    names = {"archive": "run.tar.gz", "embed": "weights.hdf5"}
    file = tmp_path / names.get(command.split()[0], "results")
    file.write_text("mine")
    arguments = [{"FILE": str(file)}.get(word, word) for word in command.split()]
    assert cli.main(arguments) == 2
    assert f"{file}: the file exists; --force replaces it" in capsys.readouterr().err
    assert not compute.called
    assert file.read_text() == "mine"
    assert cli.main([*arguments, "--force"]) == (0 if "--copy" in command else 2)
    assert compute.called == ("--copy" not in command)


HOLDS = {"config.json": "a run", "study.json": "a study", "trials.journal": "a search"}


@pytest.mark.parametrize(
    ("words", "mark"),
    [
        ("train ner_conll03 -s other", "study.json"),
        ("train ner_conll03 -s other --seeds 1,2", "config.json"),
        ("train ner_conll03 -s other --folds 2", "trials.journal"),
        ("import-allennlp model.tar.gz other", "config.json"),
    ],
)
def test_a_folder_that_holds_something_else_is_left_as_it_is(
    words: str, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / mark).write_text("{}")
    assert cli.main(words.split()) == 2
    assert "error: other: holds " in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "other").iterdir()] == [mark]


@pytest.mark.parametrize("mark", HOLDS)
def test_studies_and_searches_do_not_mix_with_other_folders(mark: str, tmp_path: Path) -> None:
    (tmp_path / mark).write_text("{}")
    runs: dict[str, Callable[[], object]] = {
        "study.json": lambda: run_study(cast(Any, SimpleNamespace(path=tmp_path)), command=""),
        "trials.journal": lambda: Tuning(tmp_path, cast(Any, None)),
    }
    for own, run in runs.items():
        if own != mark:
            with pytest.raises(ElmoTasksError, match=rf"holds {HOLDS[mark]} \({mark}\); -s names another folder"):
                run()


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(("kind", "name"), [(RunFolder, "model.safetensors"), (PretrainingFolder, "weights.hdf5")])
def test_a_run_does_not_begin_over_other_files(kind: type[Folder], name: str, resume: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text("trained elsewhere")
    problem = f"holds {name}, which the run would overwrite; choose another folder, or --force"
    with pytest.raises(RunError, match=problem):
        plan_folder(kind(tmp_path), {}, resume=resume, force=False)
    assert plan_folder(kind(tmp_path), {}, resume=False, force=True).begins
