"""Runs of all tasks in one application, without a browser."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from elmo_tasks.extras.resolve.resolution import adding_resolved
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.served_runs import Additions
from tests.extras.server.page.visits import EXAMPLES, TABS, Served

pytestmark = pytest.mark.slow
TEXT = "Mira Dolvane joined Karvel as coach. She closed a mill."


def test_every_task_is_described(served: Served) -> None:
    runs = {name: run.about for name, run in served.runs.items() if not name.startswith("again_")}
    assert {name: run["task"] for name, run in runs.items()} == {
        "ner_conll03": "tagging",
        "srl_ewt": "semantic_roles",
        "coref_ontogum": "coreference",
        "squad": "reading",
        "snli": "text_pairs",
        "sst5": "classification",
        "predicates_ewt": "tagging",
    }
    assert {name: run["predicates"] for name, run in runs.items() if run["predicates"]} == {"srl_ewt": "predicates_ewt"}
    assert {name for name, run in runs.items() if run["labels"] is None} == {"squad", "coref_ontogum"}


@pytest.mark.parametrize(
    ("tab", "examples"),
    [
        ("Names", "names"),
        ("Names", "parts_of_speech"),
        ("Roles", "semantic_roles"),
        ("Coreference", "coreference"),
        ("Questions", "reading"),
        ("Inference", "text_pairs"),
        ("Sentiment", "sentiment"),
    ],
)
def test_every_example_of_the_page_gets_the_result_of_predict(tab: str, examples: str, served: Served) -> None:
    inputs: list[dict[str, Any]] = EXAMPLES[examples]
    assert len({json.dumps(each) for each in inputs}) == 8
    with TestClient(create_app(served.runs, {})) as client:
        path = f"/api/runs/{Path(TABS[tab]).name}/predict-batch"
        answers = client.post(path, json={"inputs": [*inputs, {"other": 1}]}).json()["results"]
    *found, wrong = answers
    results = [result for each in found for result in each["results"]]
    assert results == json.loads(json.dumps(served.of(tab).predictor(inputs)))
    assert {result["about"] for result in results} == {each["about"] for each in inputs}
    assert "expected" in wrong["error"]


def test_the_details_of_coreference_have_the_resolved_text(served: Served) -> None:
    run, given = served.of("Coreference"), {"text": EXAMPLES["coreference"][0]["text"]}
    expected = adding_resolved(run.predictor)(run.predictor(given)[0])
    with TestClient(create_app(served.runs, {})) as client:
        path = f"/api/runs/{run.name}/predict"
        (plain,), (detailed,) = (
            client.post(f"{path}{end}", json=given).json()["results"] for end in ("", "?details=true")
        )
    assert "resolved" not in plain
    assert detailed == json.loads(json.dumps(expected))


def test_only_the_request_with_too_many_roles_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    run = served.of("Roles")
    monkeypatch.setattr(run.predictor, "most_tags", 10)
    short, long = {"tokens": ["a"], "predicates": [0]}, {"tokens": TEXT.split(), "predicates": [2, 7]}
    requests = [run.prepare(each, Additions(), single=False) for each in ([short], [short, long], [short, short])]
    requests.append(run.prepare([long], Additions(), single=True))
    (*batches, alone) = run.answer(requests)
    one, refused, two = (json.loads(each)["results"] for each in batches if isinstance(each, bytes))
    assert refused[0] == one[0]
    assert refused[1]["error"] == str(alone)
    assert str(alone).startswith("10 tokens x 2 predicates are 20 tags; expected at most 10")
    assert two == 2 * one
