"""The runs and the biLMs that are loaded, and their names."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from fastapi.testclient import TestClient

import elmo_tasks
from elmo_tasks.batches import Predict
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from elmo_tasks.extras.server import Limits, served_runs
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.bilm_vectors import bilms_of_runs
from elmo_tasks.extras.server.served_runs import Additions, ServedRun, legend, load_runs, to_bytes
from elmo_tasks.files.cache import content_hash
from elmo_tasks.files.installed_models import About, Score
from elmo_tasks.runs import load, train
from elmo_tasks.runs.archive import archive
from tests.extras.server.conftest import post
from tests.installed import install
from tests.predictors.stub_models import make_predicate_tagger, make_roles

MODELS = Path(elmo_tasks.__file__).parents[1] / "trained_models" / "elmo_tasks_models"


def test_names(run_folder: Path, tmp_path: Path, runs: dict[str, ServedRun]) -> None:
    assert list(runs) == ["ner", "again"]
    bilms = bilms_of_runs(runs)
    assert bilms["ner"] is bilms["again"] is bilms[""]  # it is in memory once
    overrides = ["model.embedder.elmo.precision=bfloat16"]
    (rough,) = load_runs([str(run_folder)], batch_tokens=256, overrides=overrides).values()
    bilms = bilms_of_runs({"ner": runs["ner"], "rough": rough})
    assert bilms["ner"] is not bilms["rough"]
    path = tmp_path / "packed.tar.gz"
    archive(run_folder, path)
    (packed,) = load_runs([str(path)], batch_tokens=256).values()
    assert packed.name == "packed"
    assert packed.about | {"name": "ner"} == runs["ner"].about | {
        key: packed.about[key] for key in ("config", "examples")
    }
    for paths, message in (
        ([run_folder, f"ner={run_folder}"], "have the same name; rename one of them: NAME="),
        ([f"a/b={run_folder}"], "'a/b' is not a valid name of a run"),
        ([tmp_path], "expected a run's folder"),
    ):
        with pytest.raises(ElmoTasksError, match=message):
            load_runs(list(map(str, paths)), batch_tokens=256)


def test_folders_that_are_not_trained_runs_are_left_out(
    run_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "data").mkdir()
    assert list(load_runs([str(tmp_path / "data"), str(run_folder)], batch_tokens=256)) == ["ner"]
    assert f"{tmp_path}/data: not a run that has finished an epoch; skipped" in caplog.text
    with pytest.raises(ElmoTasksError, match=r"data, .*data: none of them is a run"):
        load_runs([str(tmp_path / "data")] * 2, batch_tokens=256)
    with pytest.raises(ElmoTasksError, match="absent: "):  # it is an error, not left out
        load_runs([str(tmp_path / "absent"), str(run_folder)], batch_tokens=256)


def test_what_is_known_of_an_installed_model_is_described(
    run_folder: Path, tmp_path: Path, runs: dict[str, ServedRun]
) -> None:
    assert runs["ner"].about["facts"] == {"data": [], "licence": None, "score": None, "caution": None}
    run = shutil.copytree(run_folder, tmp_path / "ner")
    score = Score(metric="f1", split="test", seeds=3, elmo=91.5, baseline=90, p=0.02)
    about = About(data=("A corpus",), licence="for research only", score=score, caution="Be careful.")
    About.path(run).write_text(about.model_dump_json(), encoding="utf-8")
    facts = load_runs([str(run)], batch_tokens=256)["ner"].about["facts"]
    expected = {"data": ["A corpus"], "licence": "for research only", "caution": "Be careful."}
    assert facts == {**expected, "score": score.model_dump()}


def test_the_twin_without_elmo_is_loaded_when_it_is_asked_for(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = install(tmp_path / "packages", "own-models", {"own_plain": run_folder})
    monkeypatch.syspath_prepend(tmp_path / "packages")
    run = shutil.copytree(run_folder, tmp_path / "own")
    About.path(run).write_text(About(without_elmo="own_plain").model_dump_json(), encoding="utf-8")
    weights = packages / "own_plain" / "model.safetensors"
    hidden = weights.rename(packages / "hidden")
    runs = load_runs([str(run)], batch_tokens=256)  # does not read the twin
    assert runs["own"].about["without_elmo"] == "own_plain"
    body = {"text": "Orla sold the mill."}
    with TestClient(create_app(runs, {})) as client:
        problem = post(client, "/api/runs/own_plain/predict", body, 500)
        assert problem == "internal server error; see the server's log"
        hidden.rename(weights)
        answer = post(client, "/api/runs/own_plain/predict", body)
        weights.unlink()  # it is read once
        assert post(client, "/api/runs/own_plain/predict", body) == answer
        assert answer == post(client, "/api/runs/own/predict", body)
        assert [each["name"] for each in client.get("/api/runs").json()["runs"]] == ["own"]
    About.path(run).write_text(About(without_elmo="gone").model_dump_json(), encoding="utf-8")
    runs = load_runs([str(run)], batch_tokens=256)
    assert runs["own"].about["without_elmo"] is None
    with TestClient(create_app(runs, {})) as client:
        assert "there is no run 'gone'" in post(client, "/api/runs/gone/predict", body, 404)


def test_the_page_of_an_own_run_begins_with_texts_that_it_held_out(
    run_folder: Path, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed model has those of the package. A run from elsewhere shows no other file of this machine."""

    def examples(path: Path | str) -> Any:
        (run,) = load_runs([str(path)], batch_tokens=256).values()
        return run.about["examples"]

    sentences = load.load_run(run_folder).reader.read(settings["validation_data_path"])
    expected = [{"text": " ".join(each["tokens"])} for each in sentences]
    assert examples(run_folder) == expected[:12]
    archive(run_folder, tmp_path / "packed.tar.gz")
    run = shutil.copytree(run_folder, tmp_path / "own")
    config = json.loads((run / "config.json").read_text())
    for path in (settings["test_data_path"], "memory:123", str(tmp_path / "gone.txt"), "hub:org/name"):
        (run / "config.json").write_text(json.dumps({**config, "validation_data_path": path}))
        assert examples(run) == []
    with monkeypatch.context() as patch:
        patch.setattr(served_runs, "read_examples", Mock(side_effect=AssertionError("data are looked for")))
        assert examples(run) == examples(tmp_path / "packed.tar.gz") == []
    install(tmp_path / "packages", "own-models", {"own": run_folder})
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.chdir(tmp_path / "packages")
    assert examples("own") is None


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ("cpu/coref_ontogum", {"text"}),
        ("cpu/squad", {"question", "passage"}),
        ("cpu/snli", {"premise", "hypothesis"}),
    ],
)
def test_the_texts_of_each_task_fit_the_form_of_the_page(config: str, fields: set[str], tmp_path: Path) -> None:
    write_sample_data(tmp_path / "data", ALL_TASKS, sentences=(8, 4, 2))
    overrides = [
        "trainer.num_epochs=1",
        "evaluate_on_test=false",
        "model.embedder.elmo=null",
        "trainer.regularizers=[]",
    ]
    variables = {"ELMO_TASKS_DATA": str(tmp_path / "data")}
    train.train(config, tmp_path / "run", overrides=overrides, variables=variables)
    (run,) = load_runs([str(tmp_path / "run")], batch_tokens=256).values()
    assert run.about["examples"]
    for each in run.about["examples"]:
        assert each.keys() == fields
        assert run.predictor(each)


def without_elmo(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The config of a short training."""
    values = copy.deepcopy(settings)
    values["model"]["embedder"]["elmo"] = None
    values["trainer"] |= {"num_epochs": 1, "moving_average": None, "trackers": [], "regularizers": []}
    return values | changes


def test_what_a_share_held_out_is_shown_too(settings: dict[str, Any], tmp_path: Path) -> None:
    """At most twelve texts, and of each at most 1,000 characters, which end with a word."""
    words = [*["a" * 99] * 9, "b" * 100]
    texts = [" ".join([*words, *["b"] * (row % 2)]) for row in range(40)]
    lines = [[f"{word} X X I-PER" for word in text.split()] for text in texts]
    (tmp_path / "train.txt").write_text("".join("\n".join([*each, "", ""]) for each in lines))
    data = {"train_data_path": str(tmp_path / "train.txt"), "validation_data_path": None, "validation_share": 0.4}
    train.train(without_elmo(settings, **data), tmp_path / "run")
    (run,) = load_runs([str(tmp_path / "run")], batch_tokens=256).values()
    assert [len(each["text"]) for each in run.about["examples"]] == [1000] * 12


def test_the_model_card_is_that_of_the_run_s_folder(run_folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(run_folder, tmp_path / "ner")
    (tmp_path / "secret").write_text("a file of this machine")
    (run / "README.md").symlink_to(tmp_path / "secret")
    served = load_runs([str(run)], batch_tokens=256)["ner"]
    assert (served.card, served.about["has_card"]) == (None, False)
    (run / "README.md").unlink()
    (run / "README.md").write_text("# Ner\n\n" + "x" * 200_000, encoding="utf-8")
    served = load_runs([str(run)], batch_tokens=256)["ner"]
    assert served.card == "# Ner\n\n" + "x" * 99_993
    with TestClient(create_app({"ner": served}, {})) as client:
        answer = client.get("/api/runs/ner/card")
    assert (answer.text, answer.headers["content-type"]) == (served.card, "text/plain; charset=utf-8")


def test_settings_of_a_run_can_be_replaced(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    overrides = ["trainer.device=auto", r"train_data_path=C:\Users\ann\x.csv", "test_data_path=hub:org/name"]
    (run,) = load_runs([str(run_folder)], batch_tokens=256, overrides=overrides).values()
    assert run.about["config"]["trainer"]["device"] == "auto"
    assert run.about["config"]["train_data_path"] == "x.csv"  # without the user's name
    assert run.about["config"]["test_data_path"] == "hub:org/name"


@pytest.mark.parametrize(("others", "are_known"), [([], True), (["x"], True), (["x", "y"], False)])
def test_labels_have_meanings_if_half_of_them_are_known(others: list[str], are_known: bool) -> None:
    meanings = [each["meaning"] for each in legend(["PER", *others]).values()]
    assert [meaning is not None for meaning in meanings] == [are_known, *[False] * len(others)]


def test_a_run_without_a_test_has_the_scores_of_its_best_epoch(run_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(run_folder, tmp_path / "untested")
    metrics = json.loads((run_folder / "metrics.json").read_text())
    metrics["best"]["validation"]["loss"] = None  # it was not a number
    (tmp_path / "untested" / "metrics.json").write_text(json.dumps({**metrics, "test": None}))
    shutil.copytree(run_folder, tmp_path / "unfinished", ignore=shutil.ignore_patterns("metrics.json"))
    runs = load_runs([str(tmp_path / "untested"), str(tmp_path / "unfinished")], batch_tokens=256)
    answer = json.loads(to_bytes({name: run.about for name, run in runs.items()}))
    found = {name: (about["scores"], about["scored_on"]) for name, about in answer.items()}
    assert found == {"untested": (metrics["best"]["validation"], "validation"), "unfinished": (None, None)}


def test_only_a_frozen_bilm_is_shared(settings: dict[str, Any], tmp_path: Path) -> None:
    trained_too = {**settings["model"]["embedder"]["elmo"], "requires_grad": True}
    configs = {name: without_elmo(settings) for name in ("without", "trained")}
    configs["trained"]["model"]["embedder"]["elmo"] = trained_too
    for name, values in configs.items():
        values |= {"validation_data_path": None, "test_data_path": None}
        train.train(values, tmp_path / name, datasets={"train_data_path": [{"tokens": ["a"], "tags": ["O"]}]})
    paths = [str(tmp_path / name) for name in configs]
    without, trained = load_runs(paths, batch_tokens=256).values()
    assert [run.about["bilm"] for run in (without, trained)] == [None, None]
    assert without.about["mixes"] is None
    assert trained.about["mixes"][0]["name"] == "input"
    (bilm,) = bilms_of_runs({"without": without, "trained": trained}).items()
    assert bilm[0] == ""  # the one in the package


def test_what_is_copied_to_each_result_is_bounded(runs: dict[str, ServedRun]) -> None:
    given = {"text": "A mill.\n\n" * 400, "id": "x" * 5000}
    with pytest.raises(
        ElmoTasksError, match=r"keys that are copied to each of 400 results take 2,004,\d+ bytes; expected"
    ):
        runs["ner"].prepare([given], Additions(), single=True)
    assert len(runs["ner"].prepare([given | {"id": 3}], Additions(), single=False).rows) == 400
    rest = 1_000_000 - len(to_bytes({"id": ""}))
    assert runs["ner"].prepare([{"text": "A mill.", "id": "x" * rest}], Additions(), single=True).rows
    with pytest.raises(ElmoTasksError, match="take 1,000,001 bytes; expected at most 1,000,000"):
        runs["ner"].prepare([{"text": "A mill.", "id": "x" * (rest + 1)}], Additions(), single=True)


def test_semantic_roles_get_the_first_run_that_finds_predicates(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no folder has the name of a model
    own = shutil.copytree(MODELS / "roles", tmp_path / "own")
    About.path(own).unlink()
    for given, expected in (
        ([own], None),
        ([own, run_folder, "predicates"], "predicates"),
        (["own=roles", run_folder], "predicates"),  # which is installed with it
        (["first=pos", f"own={MODELS / 'roles'}"], "first"),
        (["first=pos", "own=roles", "predicates"], "predicates"),
    ):
        runs = load_runs(list(map(str, given)), batch_tokens=256)
        assert {name: run.about["predicates"] for name, run in runs.items()} == {**dict.fromkeys(runs), "own": expected}
    own_hash = content_hash(MODELS / "predicates" / "model.safetensors")
    assert Predict(run="roles").settings()["predicates"] == own_hash
    request = runs["own"].prepare([{"tokens": ["a", "b", "c"], "predicates": [0, 2]}], Additions(), single=True)
    assert (request.tokens, request.cost) == (3, 6)  # the sentence is read once for each predicate


def test_the_predicates_of_all_sentences_of_a_request_are_bounded(runs: dict[str, ServedRun]) -> None:
    run = copy.copy(runs["ner"])
    run.predictor = make_roles(make_predicate_tagger("O", "B-V"))
    inputs = [{"tokens": ["asked"] * 4}] * 3  # 16 tokens are read for each
    with TestClient(create_app({"roles": run}, {}, Limits(request_tokens=32, queue_tokens=32))) as client:
        assert len(post(client, "/api/runs/roles/predict-batch", {"inputs": inputs[:2]})["results"]) == 2
        *given, refused = post(client, "/api/runs/roles/predict-batch", {"inputs": inputs})["results"]
        text = post(client, "/api/runs/roles/predict", {"text": "Bo asked and asked and asked and asked.\n\n" * 2}, 422)
    assert all("results" in each for each in given)
    assert refused["error"].startswith("so far the work of 48 tokens; expected at most 32 in a request: sentences are")
    assert text.startswith("so far the work of 36 tokens; expected at most 32 in a request: sentences are read once")
    shapes: Any = run.predictor.model.shapes
    assert sum(size * longest for size, longest in shapes) == 64  # nothing of what is refused
