"""The biLM of a run: where it is looked for, what is compared, and what a stranger's run cannot read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.elmo import TINY_OPTIONS, BiLM
from elmo_tasks.errors import ConfigError, ElmoTasksError, RunError, WeightsError
from elmo_tasks.runs import load
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.load import load_run
from tests.random_bilm import random_bilm
from tests.runs.small_runs import INPUTS, SmallRun

ELMO = "model.embedder.elmo"
REMEDY = r"name a folder with the run's biLM by --set model\.embedder\.elmo\.bilm=DIR"


@pytest.fixture
def bilm(sample_folder: Path, tmp_path: Path) -> Path:
    """A folder with a biLM, which a test may remove."""
    return shutil.copytree(sample_folder / "bilm", tmp_path / "bilm")


def elmo(**values: Any) -> str:
    """An override of everything about ELMo."""
    return f"{ELMO}={json.dumps(values)}"


def refuses(run: SmallRun, problem: str, *overrides: str, error: type[ElmoTasksError] = RunError) -> str:
    """Loading the run is an error of one line."""
    with pytest.raises(error, match=problem) as caught:
        load_run(run.path, overrides=overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_archive_predicts_the_same_where_nothing_else_is_left(run: SmallRun, bilm: Path, tmp_path: Path) -> None:
    run.train(elmo(bilm=str(bilm)))
    expected = load.load_predictor(run.path)(INPUTS)
    archive(run.path, tmp_path / "run.tar.gz")
    shutil.rmtree(bilm)
    shutil.rmtree(run.path)
    assert load.load_predictor(tmp_path / "run.tar.gz")(INPUTS) == expected
    assert expected[-1]["tokens"] == ["Mary", "slept"]


def test_a_run_does_not_remove_the_bilm_that_it_needs(run: SmallRun, bilm: Path) -> None:
    run.train(elmo(bilm=str(bilm)), "trainer.num_epochs=1", self_contained=True)
    copies = run.path / "bilm"
    for path in bilm.iterdir():
        assert (copies / path.name).read_bytes() == path.read_bytes()
    shutil.rmtree(bilm)
    run.refuses(
        "bilm: the config has this biLM, and a run that begins here removes it",
        elmo(bilm=str(copies)),
        resume=False,
        force=True,
    )
    assert copies.is_dir()


@pytest.mark.slow
def test_a_bilm_that_was_trained_is_part_of_the_run(
    settings: dict[str, Any], run: SmallRun, bilm: Path, sample_folder: Path, tmp_path: Path
) -> None:
    learning = elmo(bilm=str(bilm), requires_grad=True, mixes=["input", "output"])
    metrics = run.train(learning, self_contained=True)
    assert not (run.path / "bilm").exists()
    expected = load.load_predictor(run.path)(INPUTS)
    learned = load_run(run.path).model.state_dict()["embedder.elmo.bilm.token_encoder.projection.weight"]
    assert not learned.equal(BiLM.load(bilm).state_dict()["token_encoder.projection.weight"])
    archives = [tmp_path / "with.tar.gz", tmp_path / "without.tar.gz"]
    for path, self_contained in zip(archives, (True, False), strict=True):
        archive(run.path, path, self_contained=self_contained)
    shutil.rmtree(bilm)
    for path in (run.path, *archives):
        assert load.load_predictor(path)(INPUTS) == expected
    assert evaluate(archives[0], settings["test_data_path"]) == pytest.approx(metrics["test"], abs=1e-4)
    (private := tmp_path / "private.json").write_text('{"lstm": "the-secret"}')
    other = elmo(options=str(private), weights=str(private), requires_grad=True)
    refuses(run, r"private\.json: not the biLM that the run was trained with", other)
    reference = run.json("bilm.json")
    run.remove("bilm.json")
    refuses(run, r"bilm\.json: no such file", other)  # nothing that the config names is opened
    run.write("bilm.json", reference)
    frozen = [f"{ELMO}.requires_grad=false", f"{ELMO}.bilm={sample_folder}/bilm"]
    refuses(run, r"the weights do not fit the config: embedder\.elmo\.bilm", *frozen)
    run.remove("model.safetensors")
    refuses(run, r"model\.safetensors: no such file; the run has not finished its first epoch")


def test_a_trained_bilm_resumes_only_from_the_one_that_it_began_with(run: SmallRun, bilm: Path) -> None:
    learning = elmo(bilm=str(bilm), requires_grad=True)
    run.train(learning)
    run.remove("metrics.json")  # as if the run had been stopped
    run.resume(learning)
    run.remove("metrics.json")
    random_bilm(TINY_OPTIONS, seed=5).save(bilm / "options.json", bilm / "weights.hdf5")
    run.refuses("not the biLM that the run was trained with", learning)


def test_run_whose_bilm_has_gone_or_changed_says_so(finished: SmallRun, sample_folder: Path, tmp_path: Path) -> None:
    reference = finished.json("bilm.json")
    finished.write("bilm.json", {**reference, "weights": str(tmp_path / "gone.hdf5")})
    refuses(finished, r"no longer at .*gone\.hdf5.*--set model\.embedder\.elmo\.bilm=DIR")
    finished.write("bilm.json", {**reference, "weights": "https://example.org/not/here.hdf5"})
    refuses(finished, r"not/here\.hdf5.*--set model\.embedder\.elmo\.bilm=DIR")
    assert load_run(finished.path, overrides=[elmo(bilm=str(sample_folder / "bilm"))]).config.elmo() is not None
    finished.write("bilm.json", {**reference, "fingerprint": "0" * 64})
    refuses(
        finished,
        rf"not the biLM that the run was trained with \(expected fingerprint 0{{12}}, got \w{{12}}\): {REMEDY}",
    )
    finished.write("bilm.json", {"bilm": "default", "fingerprint": "0" * 64})
    refuses(finished, rf"\(.*\): the package has a newer biLM than .*; train again, or {REMEDY}")


def test_a_run_knows_its_bilm_whatever_else_is_overridden(finished: SmallRun, sample_folder: Path) -> None:
    config = finished.json("config.json")
    config["model"]["embedder"]["elmo"] |= {"options": "gone.json", "weights": "gone.hdf5"}  # bilm.json says where
    finished.write("config.json", config)
    for overrides in (
        [f"{ELMO}.layer_cache=null", f"{ELMO}.precision=bfloat16"],
        [f"{ELMO}.bilm={sample_folder}/bilm"],
    ):
        assert load_run(finished.path, overrides=overrides).config.elmo()
    options = f"{ELMO}.options={sample_folder / 'bilm' / 'options.json'}"
    refuses(finished, r"gone\.hdf5", options, error=WeightsError)


def test_a_strangers_run_reads_no_other_file(
    finished: SmallRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "the-secret")
    (private := tmp_path / "private.json").write_text('{"lstm": "the-secret"}')
    files = {"options": str(private), "weights": str(private)}
    config = finished.json("config.json")
    for value in (f'importstr "{private}"', 'std.extVar("SECRET")', 'error std.extVar("SECRET")'):
        finished.write("config.json", json.dumps(config).replace('"+f1"', value))
        assert "secret" not in refuses(finished, r"config\.json:\d+: Invalid JSON", error=ConfigError)
    config["model"]["embedder"]["elmo"] |= files
    finished.write("config.json", config)
    finished.remove("bilm.json")
    refuses(finished, r"bilm\.json: no such file; expected the reference to the biLM of a run")
    finished.write("bilm.json", {**files, "fingerprint": "0" * 64})
    assert "secret" not in refuses(finished, "not the biLM that the run was trained with")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ":1: Invalid JSON"),
        ("[]", ": Input should be an object"),
        ('{"fingerprint": "0"}', ": expected 'bilm' or 'options' and 'weights', got neither"),
        ('{"fingerprint": "0", "options": "x"}', ": expected 'bilm' or 'options' and 'weights', got 'options'"),
        ('{"fingerprint": "0", "options": 1, "weights": "x"}', ": options: .*; got 1"),
        ('{"bilm": "default"}', ": the key 'fingerprint' is missing"),
        ('{"bilm": "other", "fingerprint": "0"}', ": bilm: .*default.*; got 'other'"),
    ],
)
def test_a_damaged_reference_is_one_clear_error(content: str, problem: str, finished: SmallRun) -> None:
    finished.write("bilm.json", content)
    refuses(finished, rf"bilm\.json{problem}")
