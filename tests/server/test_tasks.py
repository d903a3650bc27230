"""Runs of all six tasks in one application: its results are those of `predict`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import elmo_tasks
from elmo_tasks.server.app import PAGE, create_app
from elmo_tasks.server.bilm_vectors import bilms_of_runs
from elmo_tasks.server.bounds import Limits
from elmo_tasks.server.served_runs import Additions, ServedRun, load_runs

TEXT = "Mira Dolvane joined Karvel as coach. She closed a mill."
NAMES = {
    "predicates": "predicates_ewt",
    "roles": "srl_ewt",
    "ner": "ner_conll03",
    "sentiment": "sst5",
    "plain": "sst5_plain",
    "inference": "snli",
    "reading": "squad",
    "coreference": "coref_ontogum",
}
INPUTS: dict[str, list[dict[str, Any]]] = {
    "predicates": [{"text": TEXT}],
    "roles": [{"text": TEXT}, {"tokens": TEXT.split(), "predicates": [2, 7], "id": "given"}],
    "ner": [{"text": TEXT, "id": [1, None]}, {"tokens": ["Karvel"]}],
    "sentiment": [{"text": TEXT}, {"tokens": ["cold"]}],
    "plain": [{"text": TEXT}],
    "inference": [{"premise": TEXT, "hypothesis": "Nobody joined Karvel."}],
    "reading": [{"passage": f"{TEXT} " * 8, "question": "Who closed a mill?"}],
    "coreference": [{"text": TEXT}, {"sentences": [TEXT.split()], "speakers": ["Mira"]}],
}


@pytest.fixture(scope="module")
def runs(task_runs: Path) -> dict[str, ServedRun]:
    return load_runs([f"{name}={task_runs / folder}" for name, folder in NAMES.items()], batch_tokens=256)


@pytest.fixture(scope="module")
def client(runs: dict[str, ServedRun]) -> Iterator[TestClient]:
    assert len(set(bilms_of_runs(runs).values())) == 1  # one for all
    with TestClient(create_app(runs, bilms_of_runs(runs), Limits(batch_tokens=256))) as client:
        yield client


@pytest.mark.slow
def test_every_task_is_described(client: TestClient) -> None:
    runs = {run["name"]: run for run in client.get("/api/runs").json()["runs"]}
    assert {name: run["task"] for name, run in runs.items()} == {
        "predicates": "tagging",
        "roles": "semantic_roles",
        "ner": "tagging",
        "sentiment": "classification",
        "plain": "classification",
        "inference": "text_pairs",
        "reading": "reading",
        "coreference": "coreference",
    }
    assert {name for name, run in runs.items() if run["predicates"]} == {"roles"}
    assert runs["roles"]["predicates"] == "predicates"
    assert {name for name, run in runs.items() if run["labels"] is None} == {"reading", "coreference"}
    for key in ("bilm", "mixes"):
        assert {name for name, run in runs.items() if run[key] is None} == {"plain"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_predict(name: str, task_runs: Path, client: TestClient) -> None:
    predicates = task_runs / NAMES["predicates"] if name == "roles" else None
    predictor = elmo_tasks.load(task_runs / NAMES[name], batch_tokens=256, predicates=predicates)
    path = f"/api/runs/{name}/predict"
    for one in INPUTS[name]:
        expected = json.loads(json.dumps(predictor(one)))
        assert client.post(path, json=one).json()["results"] == expected
        detailed = client.post(path, params={"details": True}, json=one).json()["results"]
        assert [{key: each[key] for key in plain} for each, plain in zip(detailed, expected, strict=True)] == expected
    batch = client.post(f"{path}-batch", json={"inputs": INPUTS[name]}).json()["results"]
    assert batch == json.loads(json.dumps(predictor(INPUTS[name])))
    wrong = client.post(path, json={"other": 1})
    assert wrong.status_code == 422
    assert "expected" in wrong.json()["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "examples"),
    [
        ("ner", "names"),
        ("ner", "parts_of_speech"),
        ("roles", "semantic_roles"),
        ("coreference", "coreference"),
        ("reading", "reading"),
        ("inference", "text_pairs"),
        ("sentiment", "sentiment"),
    ],
)
def test_every_example_of_the_page_gets_a_result(name: str, examples: str, client: TestClient) -> None:
    inputs = json.loads((PAGE / "examples.json").read_text(encoding="utf-8"))[examples]
    assert len({json.dumps(each) for each in inputs}) == 12
    answer = client.post(f"/api/runs/{name}/predict-batch", json={"inputs": inputs})
    assert {result["about"] for result in answer.json()["results"]} == {each["about"] for each in inputs}


@pytest.mark.slow
def test_only_the_request_with_too_many_roles_is_refused(
    runs: dict[str, ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs["roles"]
    monkeypatch.setattr(run.predictor, "most_tags", 10)
    short, long = {"tokens": ["a"], "predicates": [0]}, {"tokens": TEXT.split(), "predicates": [2, 7]}
    requests = [run.prepare(each, Additions(), numbered=True) for each in ([short], [short, long], [short, short])]
    one, refused, two = run.answer(requests)
    assert str(refused).startswith("inputs:2: 10 tokens x 2 predicates are 20 tags; expected at most 10")
    assert isinstance(one, bytes)
    assert isinstance(two, bytes)
    assert json.loads(two)["results"] == 2 * json.loads(one)["results"]
