"""Studies that train: what fails, what is killed and what is kept."""

import contextlib
import json
import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError, WriteError
from elmo_tasks.extras.samples import write_sample_data
from elmo_tasks.extras.studies import study_runs
from elmo_tasks.extras.studies.study import Study
from elmo_tasks.extras.studies.study_runs import StudyFolder, claimed, read_study, run_study
from elmo_tasks.runs.folder import RunFolder
from tests import command_server
from tests.stopping import start_warm

# The study of the package in its smallest form: one task, with shares of the data.
SMALLEST = """
local quick = import 'elmo_tasks/extras/studies/quick.jsonnet';
quick {
  arms: [arm { shares: [0.5, 1] } for arm in quick.arms if std.member(%s, arm.name)],
  seeds: [1],
  changes+: { trainer+: { num_epochs: 1 } },
}
"""
NAMES = ["benchmarks: NER, baseline", "benchmarks: NER, ELMo"]


@pytest.fixture
def study_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The smallest study, with its data, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write_sample_data("runs/quick-data", "ner", sentences=(40, 8, 8))
    Path("study.jsonnet").write_text(SMALLEST % json.dumps(NAMES))
    return Path("study.jsonnet")


def changed_times(folder: Path) -> dict[str, int]:
    """When each run of a study finished. Other folders may come and go meanwhile, which `rglob` does not stand."""
    found = (Path(parent, "metrics.json") for parent, _, files in os.walk(folder) if "metrics.json" in files)
    return {str(path.parent): path.stat().st_mtime_ns for path in sorted(found)}


def report_without_times(folder: Path) -> str:
    """The report of a study as if each run had taken a minute."""
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    (folder / "results.jsonl").write_text("".join(f"{json.dumps({**line, 'seconds': 60.0})}\n" for line in lines))
    assert cli.main(["report", str(folder)]) == 0
    return (folder / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_processes_share_a_study_and_take_over_the_run_of_one_that_is_killed(
    study_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    # The trainings take longer than the half second after which a process that waits for another looks again.
    study_file.write_text(study_file.read_text().replace("num_epochs: 1", "num_epochs: 5"))
    killed, other = (start_warm("-m", "elmo_tasks", "study", "study.jsonnet", "-s", str(folder)) for _ in range(2))
    deadline = time.monotonic() + 300
    while not (changed_times(folder) and len(list(folder.rglob("training.pt"))) > 1) and time.monotonic() < deadline:
        assert killed.poll() is None
        time.sleep(0.05)
    killed.terminate()
    killed.communicate()
    assert killed.returncode == command_server.KILLED
    before = changed_times(folder)
    assert 1 <= len(before) < 4
    _, error = other.communicate()
    assert other.returncode == 0, error.decode()
    assert not any(said in error.decode() for said in ("finished before", "in use"))  # no run was started twice
    after = changed_times(folder)
    assert len(after) == 4
    assert before.items() <= after.items()
    _, results = read_study(folder)
    assert [(each.arm, each.share, each.seed) for each in results] == [
        (name, share, 1) for name in NAMES for share in (0.5, 1.0)
    ]
    for each in results:
        metrics = json.loads((folder / each.folder / "metrics.json").read_text())
        measured = metrics["test"] if each.split == "test" else metrics["best"]["validation"]
        assert each.score == measured[each.metric]
        assert each.seconds > 0

    capsys.readouterr()
    assert cli.main(["study", str(study_file), "-s", str(folder), "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert plan.count("finished") == 4
    assert "; 0 to go\n" in plan
    assert all(RunFolder(folder / each.folder).predictions_for(each.split).is_file() for each in results)
    report = report_without_times(folder)
    assert len(list((folder / "plots").iterdir())) == 2
    assert "| p (randomization) |" in report
    assert "in the way" not in report

    whole = StudyFolder(tmp_path / "whole", Study.load("study.jsonnet"))
    assert run_study(whole, command=f"elmo-tasks study study.jsonnet -s {whole.path}") == []
    assert report_without_times(whole.path).replace(str(whole.path), str(folder)) == report


def planned(config_file: Path, *arms: dict[str, Any], **settings: Any) -> StudyFolder:
    """A study's folder, `my runs`, next to its config."""
    source = config_file.with_name("study.json")
    given = [{"config": str(config_file), **arm} for arm in arms]
    source.write_text(json.dumps({"title": "t", "arms": given, **settings}))
    return StudyFolder(source.with_name("my runs"), Study.load(str(source)))


Trainings = dict[str, Exception]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    """How trainings end, by the first part of their folder: with an error, or else they finish."""
    found: Trainings = {}

    def train(config: str, folder: Path, **settings: Any) -> None:
        assert settings["predictions"] == ["validation" if folder.parts[-2] == "dev" else "test"]
        if error := found.get(folder.parts[-2]):
            raise error
        finish(RunFolder(folder), 10.128)

    monkeypatch.setattr(study_runs, "train", train)
    return found


def finish(run: RunFolder, seconds: float) -> None:
    run.path.mkdir(parents=True, exist_ok=True)
    run.metrics.write_text('{"best": {"epoch": 1, "validation": {"f1": 50.0}}, "test": {"f1": 40.0}}')
    run.records.write_text(f'{{"seconds": {seconds - 4}}}\n{{"seconds": 3.0}}\n{{"seconds": 1.0}}\n')


def test_a_study_counts_what_has_finished_and_goes_on_where_it_was(
    config_file: Path,
    ends: Trainings,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("INFO")
    ends["b"] = ElmoTasksError("the loss is\nnan")
    arms = [
        {"name": name, "changes": {"model": {"dropout": rate}}} for name, rate in (("a", 0.1), ("b", 0.2), ("c", 0))
    ]
    finish(planned(config_file, *arms).run_folders[0], 6)
    folder = planned(config_file, *arms)
    failures = run_study(StudyFolder(folder.path, folder.study), command="a command")
    assert failures == ["b, seed 1: the loss is nan"]
    said = [record.getMessage() for record in caplog.records]
    assert "1 of 3 runs have finished" in said
    assert "2 of 3: b, seed 1: failed: the loss is nan" in said
    assert "3 of 3: c, seed 1: f1 40.00, 10 s" in said
    record, results = read_study(folder.path)
    assert (record.command, record.config) == ("a command", folder.study.config)
    assert [(each.arm, each.score, each.seconds, each.split) for each in results] == [
        ("a", 40, 6, "test"), ("c", 40, 10.13, "test")
    ]  # fmt: skip
    assert results[0].metrics == {"validation": {"f1": 50}, "test": {"f1": 40}}
    assert (results[1].folder, results[1].config, results[1].seed) == ("c/seed_1", str(config_file), 1)
    assert (results[1].metric, results[1].higher_is_better, results[1].share) == ("f1", True, 1)
    assert results[1].changes == ["model.dropout=0", "random_seed=1"]
    ends["b"] = RuntimeError("no memory")
    assert run_study(planned(config_file, *arms), command="another") == ["b, seed 1: no memory"]
    ends["b"] = WriteError("a", "full")
    with pytest.raises(WriteError):
        run_study(planned(config_file, *arms), command="another")
    ends.clear()
    assert run_study(planned(config_file, *arms), command="another") == []
    assert "2 of 3 runs have finished" in caplog.messages
    assert len(read_study(folder.path)[1]) == 3


def test_a_run_that_another_process_trains_is_waited_for(
    config_file: Path, ends: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = planned(config_file, {"name": "a"}, {"name": "dev", "seeds": [2], "split": "validation"})
    (_, first), _ = folder.chosen()
    with contextlib.ExitStack() as other:
        assert other.enter_context(claimed(folder.claim(first)))

        def sleep(seconds: float) -> None:
            assert [each.arm for each in read_study(folder.path)[1]] == ["dev"]
            finish(first, 6)
            other.close()

        monkeypatch.setattr("time.sleep", sleep)
        assert run_study(folder, command="a command") == []
    assert [(each.arm, each.seconds) for each in read_study(folder.path)[1]] == [("a", 6), ("dev", 10.13)]


def test_only_chosen_arms_are_trained_and_the_results_of_the_others_are_kept(
    config_file: Path, ends: Trainings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arms: list[dict[str, Any]] = [
        {"name": name, "changes": {"model": {"dropout": rate}}, "seeds": [1, 2]}
        for name, rate in (("NER, none", 0.1), ("NER, ELMo", 0.2), ("SRL", 0), ("SRL again", 0))
    ]
    arms[1]["baseline"] = "NER, none"
    folder = planned(config_file, *arms)
    monkeypatch.chdir(config_file.parent)
    assert cli.main(["study", "study.json", "--dry-run"]) == 0
    assert "\n6 runs in runs/studies/study; 6 to go\n" in capsys.readouterr().out
    command = ["study", "study.json", "-s", "my runs"]
    assert cli.main([*command, "--arm", "NER, ELMo", "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert "SRL" not in plan
    assert "4 runs in my runs; 4 to go\n" in plan
    assert cli.main([*command, "--arm", "SRL*", "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert plan.count("missing") == 4
    assert "2 runs in my runs; 2 to go\n" in plan  # of two arms each
    given = ["--set", "title=The other", "--ext-var", "N=V", "--include-package", "json"]
    assert cli.main([*command, *given, "--arm", "NER, ELMo"]) == 0
    assert "elmo-tasks report 'my runs'\n" in capsys.readouterr().err
    record, _ = read_study(folder.path)
    assert record.command == f"elmo-tasks study study.json -s 'my runs' {shlex.join(given)}"
    assert (record.config.title, record.variables, record.packages) == ("The other", {"N": "V"}, ["json"])
    arms_done = ["NER, none", "NER, none", "NER, ELMo", "NER, ELMo"]
    assert [each.arm for each in read_study(folder.path)[1]] == arms_done
    ends["srl"] = ElmoTasksError("nan")
    assert cli.main([*command, "--arm", "SRL*"]) == 2
    failed = (
        "error: 2 of 2 runs failed; call again to retry them:\n  SRL again, seed 1: nan\n  SRL again, seed 2: nan\n"
    )
    assert capsys.readouterr().err.endswith(failed)
    assert [each.arm for each in read_study(folder.path)[1]] == arms_done
