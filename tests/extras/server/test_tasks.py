"""Models of all tasks in one application: the trained ones."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from elmo_tasks.extras.resolve.resolution import adding_resolved
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.served_runs import Additions, ServedRun, load_runs
from tests.extras.server.page.visits import EXAMPLES

EXAMPLES_OF = {
    "ner": "names",
    "pos_without_elmo": "parts_of_speech",
    "roles": "semantic_roles",
    "coreference": "coreference",
    "reading": "reading",
    "inference": "text_pairs",
    "sentiment": "sentiment",
}


@pytest.fixture(scope="module")
def models() -> dict[str, ServedRun]:
    return load_runs([*EXAMPLES_OF, "predicates"], batch_tokens=256)


def test_every_task_is_described(models: dict[str, ServedRun]) -> None:
    about = {name: run.about for name, run in models.items()}
    assert {name: each["task"] for name, each in about.items()} == {
        "ner": "tagging",
        "pos_without_elmo": "tagging",
        "roles": "semantic_roles",
        "coreference": "coreference",
        "reading": "reading",
        "inference": "text_pairs",
        "sentiment": "classification",
        "predicates": "tagging",
    }
    assert {name: each["predicates"] for name, each in about.items() if each["predicates"]} == {"roles": "predicates"}
    assert {name for name, each in about.items() if each["labels"] is None} == {"reading", "coreference"}
    assert {name: each["labels"] for name, each in about.items() if each["is_ordered"]} == {
        "sentiment": ["very negative", "negative", "neutral", "positive", "very positive"],
        "inference": ["entailment", "neutral", "contradiction"],
    }
    assert about["ner"]["legend"].keys() == {"PER", "LOC", "ORG", "MISC"}
    assert about["coreference"]["legend"] == {}
    assert {name for name, each in about.items() if each["bilm"] is None} == {"pos_without_elmo"}


@pytest.mark.parametrize("name", EXAMPLES_OF)
def test_every_example_of_the_page_gets_the_result_of_predict(name: str, models: dict[str, ServedRun]) -> None:
    inputs: list[dict[str, Any]] = EXAMPLES[EXAMPLES_OF[name]]
    assert len({json.dumps(each) for each in inputs}) == 8
    with TestClient(create_app(models, {})) as client:
        path = f"/api/runs/{name}/predict-batch"
        answers = client.post(path, json={"inputs": [*inputs, {"other": 1}]}).json()["results"]
    *found, wrong = answers
    results = [result for each in found for result in each["results"]]
    assert results == json.loads(json.dumps(models[name].predictor(inputs)))
    assert {result["about"] for result in results} == {each["about"] for each in inputs}
    assert "expected" in wrong["error"]


def test_the_details_of_coreference_have_the_resolved_text(models: dict[str, ServedRun]) -> None:
    run, given = models["coreference"], {"text": EXAMPLES["coreference"][0]["text"]}
    expected = adding_resolved(run.predictor)(run.predictor(given)[0])
    with TestClient(create_app(models, {})) as client:
        path = "/api/runs/coreference/predict"
        (plain,), (detailed,) = (
            client.post(f"{path}{end}", json=given).json()["results"] for end in ("", "?details=true")
        )
    assert "resolved" not in plain
    assert detailed == json.loads(json.dumps(expected))


def test_only_the_request_with_too_many_roles_is_refused(
    models: dict[str, ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = models["roles"]
    monkeypatch.setattr(run.predictor, "most_tags", 10)
    text = "Mira Dolvane joined Karvel as coach . She closed"
    short, long = {"tokens": ["a"], "predicates": [0]}, {"tokens": text.split(), "predicates": [2, 8]}
    requests = [run.prepare(each, Additions(), single=False) for each in ([short], [short, long], [short, short])]
    requests.append(run.prepare([long], Additions(), single=True))
    (*batches, alone) = run.answer(requests)
    one, refused, two = (json.loads(each)["results"] for each in batches if isinstance(each, bytes))
    assert refused[0] == one[0]
    assert refused[1]["error"] == str(alone)
    assert str(alone).startswith("9 tokens x 2 predicates are 18 tags; expected at most 10")
    assert two == 2 * one
