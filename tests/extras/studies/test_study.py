"""A study's file: what it plans, and every way in which it can be wrong."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.config import load_config, to_json
from elmo_tasks.errors import ConfigError, RunError
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from elmo_tasks.extras.studies import packaged_searches, packaged_studies
from elmo_tasks.extras.studies.study import Arm, Selection, Study, as_overrides
from elmo_tasks.extras.studies.study_runs import StudyFolder
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder

REPOSITORY = Path(__file__).parents[3]
StudyFile = Callable[..., str]


@pytest.fixture
def study_file(config_file: Path) -> StudyFile:
    """Writes a study, next to the experiment's config, and returns its path."""

    def write(*arms: dict[str, Any], **settings: Any) -> str:
        path = config_file.parent / "study.json"
        given = [{"config": config_file.name, **arm} for arm in arms]
        path.write_text(json.dumps({"title": "A study", "arms": given, **settings}))
        return str(path)

    return write


def test_changes_are_set_one_by_one_and_parts_as_a_whole() -> None:
    changes = {"model": {"dropout": 0.5, "encoder": {"type": "x", "sizes": [1]}, "elmo": None}, "a": {}, "b.c": "é"}
    assert list(as_overrides(changes)) == [
        "model.dropout=0.5",
        'model.encoder={"type": "x", "sizes": [1]}',
        "model.elmo=null",
        "a={}",
        'b.c="é"',
    ]


def test_runs_are_arms_times_shares_times_seeds(study_file: StudyFile) -> None:
    optimizer = {"type": "sgd", "lr": 0.1}
    source = study_file(
        {"name": "One", "changes": {"model": {"dropout": 0.1}, "trainer": {"num_epochs": 3}}},
        {"name": "Two", "seeds": [7], "shares": [0.5], "changes": {"trainer": {"optimizer": optimizer}}},
        seeds=[1, 2],
        shares=[1, {"share": 0.1, "changes": {"trainer": {"num_epochs": 9}}}],
        changes={"model": {"dropout": 0.4, "encoder": {"dropout": 0.0}}},
    )
    study = Study.load(source)
    assert [run.title for run in study.runs] == [
        "One, seed 1",
        "One, seed 2",
        "One, 10 %, seed 1",
        "One, 10 %, seed 2",
        "Two, 50 %, seed 7",
    ]
    assert [str(run.folder) for run in study.runs][-2:] == ["one/share_0.1/seed_2", "two/share_0.5/seed_7"]
    first, *_, small, other = (to_json(run.config) for run in study.runs)
    assert (first["model"]["dropout"], first["model"]["encoder"]["dropout"]) == (0.1, 0.0)  # an arm's change wins
    assert (first["train_share"], first["random_seed"], first["trainer"]["num_epochs"]) == (None, 1, 3)
    assert (small["train_share"], small["random_seed"]) == ({"share": 0.1, "seed": 2}, 2)
    assert small["trainer"]["num_epochs"] == 9
    assert other["trainer"]["optimizer"]["lr"] == 0.1
    for run in study.runs:  # what `train` makes of the overrides is the config that was checked
        assert to_json(load_config(run.config_file, ExperimentConfig, run.overrides)) == to_json(run.config)


def test_all_problems_are_reported_at_once(study_file: StudyFile) -> None:
    source = study_file(
        {"name": "one", "changes": {"model": {"dropuot": 0.1}}},
        {"name": "two", "changes": {"trainer": {"num_epochs": 0}, "random_sead": 1}},
        {"name": "three", "config": "sst6"},
        {
            "name": "four",
            "changes": {
                "train_data_path": "nowhere.txt", "validation_data_path": "left.txt", "test_data_path": "gone.txt"
            },
        },
        {"name": "five", "changes": {"model": {"embedder": {"words": {"vectors": "no.txt"}}}}},
        {"name": "six", "changes": {"test_data_path": None}, "split": "test"},
        {"name": "seven", "changes": {"model": {"embedder": {"transformer": {"model": "no-bert"}}}}},
        {"name": "eight", "shares": [{"share": share, "changes": {f"no{100 * share:g}": 1}} for share in (0.5, 1)]},
        {"name": "nine", "changes": {"model": {"embedder": {"elmo": {"weights": "no.hdf5"}}}}},
        {"name": "ten", "changes": {"train_data_path": "hub:conll2003"}},  # what is on the Hub is not looked for
    )  # fmt: skip
    with pytest.raises(ConfigError) as raised:
        Study.load(source)
    problems = str(raised.value).splitlines()
    for expected in (
        "arm 'one': --set model.dropuot: unknown key. Did you mean 'dropout'?",
        "arm 'two': --set trainer.num_epochs: expected a whole number of at least 1, got 0",
        "arm 'two': --set random_sead: unknown key.",
        "arm 'three': sst6: no such file, and no config of this name in the package. Did you mean 'sst5'?",
        "nowhere.txt: no such file",
        "left.txt: no such file",
        "gone.txt: no such file",
        "no.txt: no such file",
        "arm 'six': experiment.json has no test data whose score can be reported",
        "no-bert: no such folder",
        "arm 'eight': --set no50: unknown key.",
        "arm 'eight': --set no100: unknown key.",
        "no.hdf5: no such file",
    ):
        assert sum(problem.startswith(expected) for problem in problems) == 1, expected
    assert len(problems) == 13


def test_arms_are_chosen_by_name_or_pattern_with_their_baselines(study_file: StudyFile) -> None:
    missing = {"train_data_path": "nowhere.txt"}
    source = study_file(
        {"name": "SNLI, none"},
        {"name": "SNLI, [ELMo]", "baseline": "SNLI, none"},
        {"name": "NER, ELMo", "baseline": "NER, none"},
        {"name": "NER, none", "changes": missing},
        {"name": "SRL, ELMo", "changes": missing},
    )
    for patterns, chosen in (
        (["SNLI*"], {"SNLI, none", "SNLI, [ELMo]"}),
        (["SNLI, [ELMo]"], {"SNLI, none", "SNLI, [ELMo]"}),
        (["SNLI, none", "SNLI, n*"], {"SNLI, none"}),
    ):
        study = Study.load(source, selection=Selection(patterns))
        assert {run.arm.name for run in study.runs if run.chosen} == chosen
        assert len(study.runs) == 5  # those of all arms, whose results are kept
    for patterns in (["*, none", "SNLI*"], ["NER, ELMo"], []):  # the data of an arm or of its baseline is missing
        with pytest.raises(ConfigError, match=r"nowhere\.txt: no such file"):
            Study.load(source, selection=Selection(patterns))
    with pytest.raises(ConfigError) as raised:
        Study.load(source, selection=Selection(["SST*", "ner, elmo", "SNLI, none"]))
    names = "there are 'SNLI, none', 'SNLI, [ELMo]', 'NER, ELMo', 'NER, none', 'SRL, ELMo'"
    assert str(raised.value).splitlines() == [
        f"no arm has a name like 'SST*'; {names}",
        f"no arm has a name like 'ner, elmo'; {names}",
    ]


def test_runs_are_chosen_by_share_and_seed(study_file: StudyFile) -> None:
    source = study_file({"name": "a"}, {"name": "b", "seeds": [3]}, seeds=[1, 2], shares=[0.1, {"share": 0.5}, 1])
    for selection, titles in (
        (Selection(shares=[0.5], seeds=[2, 3]), ["a, 50 %, seed 2", "b, 50 %, seed 3"]),
        (Selection(arms=["a"], shares=[1, 0.1], seeds=[1]), ["a, 10 %, seed 1", "a, seed 1"]),
    ):
        study = Study.load(source, selection=selection)
        assert [run.title for run in study.runs if run.chosen] == titles
        assert len(study.runs) == 9
    with pytest.raises(ConfigError) as raised:
        Study.load(source, selection=Selection(shares=[0.2, 1], seeds=[1, 12345678]))
    problems = ["no run has the share 0.2; there are 0.1, 0.5, 1", "no run has the seed 12345678; there are 1, 2, 3"]
    assert str(raised.value).splitlines() == problems
    with pytest.raises(ConfigError, match="no run of the chosen arms has one of the chosen shares"):
        Study.load(source, selection=Selection(arms=["b"], seeds=[1]))


def test_arms_must_fit_together(study_file: StudyFile) -> None:
    source = study_file(
        {"name": "a b"},
        {"name": "a b"},
        {"name": "A-B", "baseline": "a c"},
        {"name": "d", "baseline": "d"},
        seeds=[],
    )
    with pytest.raises(ConfigError) as raised:
        Study.load(source)
    text = str(raised.value)
    for expected in (
        "two arms are named 'a b'",
        "arm 'A-B': no arm 'a c'. Did you mean 'a b'?",
        "arm 'd': is its own baseline",
        "seeds: expected a list of at least 1 entry",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("repeated", "problem"),
    [
        ({"seeds": [1, 2, 1]}, "seeds: got 1 more than once; expected each once"),
        ({"shares": [0.5, {"share": 0.5, "changes": {"trainer": {"num_epochs": 9}}}]}, "got 0.5 more than once"),
    ],
)
def test_a_seed_or_share_counts_once(study_file: StudyFile, repeated: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Study.load(study_file({"name": "a"}, **repeated))
    with pytest.raises(ConfigError, match=problem):
        Study.load(study_file({"name": "a", **repeated}))


@pytest.mark.parametrize(
    ("command", "file", "message"),
    [
        (["study", "benchmark"], None, "no study of this name in the package. Did you mean 'benchmarks'?"),
        (["study", "x.json"], '{"model": {}}', "describes a task, not a study; use `elmo-tasks train`"),
        (["train", "x.json"], '{"arms": []}', "describes a study, not a task; use `elmo-tasks study`"),
        (["study"], None, "no study given"),
    ],
)
def test_what_is_not_a_study_says_so(
    command: list[str],
    file: str | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if file:
        Path("x.json").write_text(file)
    assert cli.main(command) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("command", "names"), [("study", packaged_studies()), ("tune", packaged_searches())])
def test_what_the_package_has_is_listed(command: str, names: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(names)


def test_the_score_of_a_run_is_on_test_data_if_there_is_any_and_that_of_its_baseline(study_file: StudyFile) -> None:
    others: dict[str, dict[str, Any]] = {
        "validation f1": {"split": "validation"},
        "validation f1, too": {"changes": {"test_data_path": None}},
        "test loss": {"changes": {"trainer": {"validation_metric": "-loss"}}},
    }
    for score, other in others.items():
        runs = Study.load(study_file({"name": "a"}, {"name": "b", **other})).runs
        assert [run.split for run in runs] == ["test", score.split()[0]]
        found = rf"arm 'b': reports {score.partition(',')[0]}, but its baseline reports test f1; expected"
        with pytest.raises(ConfigError, match=found):
            Study.load(study_file({"name": "a"}, {"name": "b", "baseline": "a", **other}))


def test_an_arm_s_folder_has_a_plain_name() -> None:
    names = {"NER, ELMo (2 layers)": "ner_elmo_2_layers", "v1.5 é": "v1.5", "...": "arm", "_a-": "a", "CON": "_con"}
    assert {name: Arm(name=name, config="x.json").slug for name in names} == names


def begin_run(folder: Path, config: ExperimentConfig) -> RunFolder:
    """A run that has begun with a config."""
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    run.config.write_text(json.dumps(to_json(config)))
    return run


def test_runs_that_match_are_kept_and_others_are_named(
    study_file: StudyFile, tmp_path: Path, printed: Callable[[], tuple[str, list[list[str]]]]
) -> None:
    folder = tmp_path / "runs"
    source = study_file({"name": "one"}, {"name": "two", "changes": {"model": {"dropout": 0.1}}}, seeds=[1, 2])
    study = Study.load(source)
    first, second, third, _ = study.runs
    begin_run(folder / "one" / "seed_1", first.config)
    old = json.loads(begin_run(folder / "two" / "seed_1", third.config).config.read_text())
    del old["train_share"]  # a key that runs of an earlier version do not have
    (folder / "two" / "seed_1" / "config.json").write_text(json.dumps(old))
    (folder / "two" / "seed_1" / "metrics.json").write_text("{}")
    found = StudyFolder(folder, study)
    paths = [run.path.relative_to(folder).as_posix() for run in found.run_folders]
    assert paths == ["one/seed_1", "one/seed_2", "two/seed_1", "two/seed_2"]
    assert cli.main(["study", source, "-s", str(folder), "--dry-run"]) == 0
    text, rows = printed()
    assert text.startswith("A study\n")
    assert rows == [
        ["arm", "share", "seed", "config", "state"],
        ["one", "100 %", "1", first.arm.config, "interrupted"],
        ["one", "100 %", "2", first.arm.config, "missing"],
        ["two", "100 %", "1", first.arm.config, "finished"],
        ["two", "100 %", "2", first.arm.config, "missing"],
    ]
    assert text.endswith(f"\n4 runs in {folder}; 3 to go\n")
    begin_run(folder / "one" / "seed_2", second.config.model_copy(update={"evaluate_on_test": False}))
    problem = r"runs/one/seed_2: holds a run with another config than the study's\nremove what is"
    with pytest.raises(RunError, match=problem):
        StudyFolder(folder, study)


def test_a_run_with_another_bilm_does_not_belong_to_the_study(study_file: StudyFile, tmp_path: Path) -> None:
    study = Study.load(study_file({"name": "one"}))
    (run,) = study.runs
    elmo = run.config.elmo()
    assert elmo is not None
    files = elmo.files()
    earlier = begin_run(tmp_path / "runs" / "one" / "seed_1", run.config)
    reference = {"options": str(files.options), "weights": str(files.weights), "fingerprint": files.fingerprint()}
    earlier.bilm.reference.write_text(json.dumps(reference))
    assert StudyFolder(tmp_path / "runs", study).run_folders[0].path == earlier.path
    earlier.bilm.reference.write_text(json.dumps(reference | {"fingerprint": "0" * 64}))
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        StudyFolder(tmp_path / "runs", study)


def test_arms_with_the_same_config_share_their_runs(study_file: StudyFile, tmp_path: Path) -> None:
    study = Study.load(study_file({"name": "one"}, {"name": "two"}, {"name": "three", "seeds": [2]}))
    paths = [run.path.relative_to(tmp_path).as_posix() for run in StudyFolder(tmp_path, study).run_folders]
    assert paths == ["one/seed_1", "one/seed_1", "three/seed_2"]
    with pytest.raises(ConfigError, match=r"arm 'One': another arm has its folder, one; expected another name"):
        Study.load(study_file({"name": "one"}, {"name": "One", "seeds": [2]}))


def test_studies_are_in_sight_at_the_root() -> None:
    assert (REPOSITORY / "studies").readlink() == Path("elmo_tasks/extras/studies")


@pytest.fixture(scope="module")
def all_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all") / "runs" / "quick-data"
    write_sample_data(folder, ALL_TASKS, sentences=(6, 2, 2))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_studies())
def test_every_study_of_the_package_is_valid_anywhere(
    name: str, all_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(all_data.parents[1])
    monkeypatch.setenv("ELMO_TASKS_DATA", str(all_data))
    monkeypatch.setenv("ELMO_TASKS_TRANSFORMER", str(tmp_path))
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / file).touch()
    study = Study.load(name)
    assert len({run.arm.name for run in study.runs}) == len(study.config.arms)


def test_the_study_of_the_documentation_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sample_data(tmp_path, "ner", sentences=(6, 2, 2))
    monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path))
    text = (REPOSITORY / "docs" / "studies.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```jsonnet\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "study.jsonnet").write_text(block)
    assert len(Study.load(str(tmp_path / "study.jsonnet")).runs) == 6
    listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(packaged_studies())


def test_how_to_make_missing_data_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "local quick = import 'elmo_tasks/extras/studies/quick.jsonnet'; quick { arms: quick.arms[:2] }"
    (tmp_path / "two.jsonnet").write_text(text)
    with pytest.raises(ConfigError) as error:
        Study.load("two.jsonnet")
    *files, advice = str(error.value).splitlines()
    assert len(files) == len(set(files)) > 2
    assert all(line.endswith(("no such file", "no such file or folder")) for line in files)
    assert advice == "Make this sample data: elmo-tasks sample-data runs/quick-data --sentences 300,60,60"
