"""The application in one process: what it answers, and what it refuses."""

import gzip
import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elmo_tasks
from elmo_tasks.extras.server import Limits
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.bilm_vectors import bilms_of_runs
from elmo_tasks.extras.server.served_runs import ServedRun, to_bytes
from elmo_tasks.rendering.drawing import INK, PALETTE
from tests.extras.server.conftest import Serve, post

TEXT = "Mary Collins joined Boeing as coach. Boeing closed a mill."


# What it answers


def test_results_are_those_of_predict(client: TestClient, runs: dict[str, ServedRun]) -> None:
    predictor = runs["ner"].predictor
    single = {"text": TEXT, "id": 7}
    assert post(client, "/api/runs/ner/predict", single)["results"] == predictor(single)
    assert post(client, "/api/runs/ner/predict-batch", {"inputs": []}) == {"results": []}


def test_details_are_the_most_probable_tags(client: TestClient, runs: dict[str, ServedRun]) -> None:
    (plain,) = post(client, "/api/runs/ner/predict", {"tokens": TEXT.split()})["results"]
    (detailed,) = post(client, "/api/runs/ner/predict?details=true", {"tokens": TEXT.split()})["results"]
    tags = detailed.pop("tag_probabilities")
    assert detailed == plain
    assert len(tags) == len(plain["tokens"])
    for token, tag, probability in zip(tags, plain["tags"], plain["probabilities"], strict=True):
        assert token.get(tag, probability) == pytest.approx(probability, abs=1e-5)
        assert list(token.values()) == sorted(token.values(), reverse=True)
        assert len(token) == 5
        assert sum(token.values()) <= 1 + 1e-5


def test_results_are_explained(
    client: TestClient, runs: dict[str, ServedRun], favour_spans: Callable[[Any], None]
) -> None:
    favour_spans(runs["ner"].predictor.model)
    single = {"tokens": TEXT.split()[:4]}
    expected = runs["ner"].predictor(single, explain=True)
    assert expected[0]["saliency"]
    assert post(client, "/api/runs/ner/predict?explain=true", single)["results"] == expected
    several = {"inputs": [single, "Karvel"]}
    answers = post(client, "/api/runs/ner/predict-batch?explain=true&details=true", several)["results"]
    (first,) = answers[0]["results"]
    assert first["saliency"][0]["tokens"] == [
        [token, pytest.approx(share, abs=1e-4)] for token, share in expected[0]["saliency"][0]["tokens"]
    ]


def test_too_much_to_explain_is_refused(
    serve: Serve, runs: dict[str, ServedRun], favour_spans: Callable[[Any], None]
) -> None:
    favour_spans(runs["ner"].predictor.model)
    long = {"tokens": TEXT.split() * 2}
    with serve(Limits(request_tokens=50, queue_tokens=50)) as client:
        post(client, "/api/runs/ner/predict", long)
        problem = post(client, "/api/runs/ner/predict?explain=true", long, 422)
        assert problem.startswith("the work of 660 tokens; expected at most 50: sentences are read once for each")
    with serve(Limits(request_tokens=600, queue_tokens=3 * 512)) as client:
        short = {"tokens": TEXT.split()[:4]}  # has four spans, for which 16 tokens are read
        path = "/api/runs/ner/predict-batch?explain=true"
        assert len(post(client, path, {"inputs": [short] * 3})["results"]) == 3
        *found, refused = post(client, path, {"inputs": [short] * 4})["results"]
        assert [list(each) for each in found] == [["results"]] * 3
        assert refused["error"].startswith("so far the work of 2,048 tokens; expected at most 1,536 in a request: ")


def test_the_runs_are_described_without_places_on_the_machine(
    client: TestClient, run_folder: Path, settings: dict[str, Any]
) -> None:
    answer = client.get("/api/runs")
    run, again = answer.json()["runs"]
    assert (run["name"], again["name"], run["task"]) == ("ner", "again", "tagging")
    assert "U-PER" in run["labels"]
    metrics = json.loads((run_folder / "metrics.json").read_text())
    assert (run["scores"], run["scored_on"]) == (metrics["test"], "test")
    assert run["bilm"] == json.loads((run_folder / "bilm.json").read_text())["fingerprint"]
    (mix,) = run["mixes"]
    assert (mix["name"], mix["layers"]) == ("input", [0, 1, 2])
    assert sum(mix["weights"]) == pytest.approx(1)
    assert run["config"]["train_data_path"] == "eng.train"
    assert run["metric"] == "f1"
    assert run["bilm_size"].startswith("reads characters; 2 LSTM layers of ")
    card = client.get("/api/runs/ner/card")
    assert (card.status_code, card.json()["error"]) == (404, "the run 'ner' has no README.md")
    assert str(Path(settings["train_data_path"]).parent) not in answer.text
    assert run["predicates"] is None


def test_vectors_are_those_of_embed(client: TestClient, sample_folder: Path) -> None:
    sentence = ["The", "dog", "barks"]
    (vectors,) = elmo_tasks.embed([sentence], bilm=sample_folder / "bilm")
    assert post(client, "/api/embed", {"tokens": sentence})["tokens"] == sentence
    for chosen, expected in (
        ({}, vectors),
        ({"layers": [2, 0], "pooling": "mean", "run": "ner"}, vectors.mean(1)[[2, 0]]),
        ({"layers": [2, 0], "pooling": "max"}, vectors.amax(1)[[2, 0]]),
    ):
        answer = post(client, "/api/embed", {"text": "The dog barks", **chosen})
        found = torch.tensor(answer["layers"], dtype=torch.float64)
        torch.testing.assert_close(found.float(), expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(found, found.round(decimals=6), rtol=0, atol=1e-9)
    sides = {"one": {"tokens": sentence, "index": 2}, "other": {"text": "A dog", "index": 1}}
    (other,) = elmo_tasks.embed([["A", "dog"]], bilm=sample_folder / "bilm")
    cosines = torch.cosine_similarity(vectors[:, 2], other[:, 1], dim=-1).tolist()
    same = [{"layer": layer, "cosine": pytest.approx(cosine, abs=1e-5)} for layer, cosine in enumerate(cosines)]
    assert post(client, "/api/similarity", sides) == {"layers": same}


def test_ten_neighbors_in_the_first_layer_are_found_unless_others_are_wanted(client: TestClient) -> None:
    plain = post(client, "/api/neighbors", {"text": "An old cat", "index": 2})
    assert len(plain["neighbors"]) == 10
    assert plain == post(client, "/api/neighbors", {"text": "An old cat", "index": 2, "layer": 1, "k": 10})
    assert plain != post(client, "/api/neighbors", {"text": "An old cat", "index": 2, "layer": 2, "k": 10})
    assert len(post(client, "/api/neighbors", {"text": "An old cat", "index": 2, "k": 50})["neighbors"]) == 17  # all


@pytest.mark.parametrize(("count", "found"), [(2, 2), (50, 14)])
def test_neighbors_are_not_of_the_same_sentence(count: int, found: int, client: TestClient) -> None:
    neighbors = post(client, "/api/neighbors", {"text": "Nobody barks.", "index": 0, "k": count})["neighbors"]
    assert len(neighbors) == found
    assert ["Nobody", "barks", "."] not in [each["tokens"] for each in neighbors]
    assert [each["cosine"] for each in neighbors] == sorted((each["cosine"] for each in neighbors), reverse=True)


def test_scores_are_those_of_the_language_model() -> None:
    """Each token counts ten times, since that takes about as much longer than its vectors."""
    given, model, bilms = {"tokens": ["A", "dog", "barks", "."]}, elmo_tasks.load_language_model(), bilms_of_runs({})
    with TestClient(create_app({}, bilms, Limits(request_tokens=4, queue_tokens=40))) as client:
        for more, count in (({}, 0), ({"substitutes": 2}, 2)):
            (expected,) = model.score([given["tokens"]], count)
            assert post(client, "/api/score", given | more) == json.loads(to_bytes(expected.record()))
    with TestClient(create_app({}, bilms, Limits(request_tokens=4, queue_tokens=39))) as client:
        assert "the work of 40 tokens; expected at most 39: " in post(client, "/api/score", given, 422)


def test_many_clients_get_their_own_answers(serve: Serve, runs: dict[str, ServedRun]) -> None:
    texts = [f"{name}{number} closed a mill in Boeing{number}." for number in range(32) for name in ("Mary", "Collins")]
    expected = runs["ner"].predictor([{"text": text, "id": text} for text in texts])
    with serve(Limits()) as client, ThreadPoolExecutor(64) as threads:
        found = list(threads.map(lambda text: post(client, "/api/runs/ner/predict", {"text": text, "id": text}), texts))
        together = re.search(r'elmo_tasks_batch_requests_bucket\{le="1.0"\} (\S+)', client.get("/metrics").text)
    for each, result, text in zip(found, expected, texts, strict=True):
        (single,) = each["results"]
        assert single["id"] == text
        assert single["tags"] == result["tags"]
        assert single["probabilities"] == pytest.approx(result["probabilities"], abs=2e-5)
    assert together is not None
    assert float(together[1]) < 32  # most were not alone


def test_it_is_well_and_counts(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    post(client, "/api/runs/ner/predict", {"tokens": ["Boeing"]})
    post(client, "/api/runs/nor/predict", {}, 404)
    assert client.get("/nowhere").status_code == 404
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in (
        'requests_total{endpoint="/api/runs/{name}/predict",status="200"} 1.0',
        'requests_total{endpoint="/api/runs/{name}/predict",status="404"} 1.0',
        'requests_total{endpoint="/healthz",status="200"} 1.0',
        'requests_total{endpoint="other",status="404"} 1.0',
        'request_seconds_count{endpoint="/api/runs/{name}/predict"} 2.0',
        "open_requests 0.0",
        "open_tokens 0.0",
        "batch_tokens_sum 1.0",
        "batch_requests_sum 1.0",
        "batch_seconds_count 1.0",
    ):
        assert f"\nelmo_tasks_{line}\n" in answer.text, line
    for name, powers in (("requests", range(9)), ("tokens", range(3, 13))):
        bounds = re.findall(rf'batch_{name}_bucket{{le="(\d+)\.0"}} 1\.0', answer.text)
        assert list(map(int, bounds)) == [2**power for power in powers]
    assert all(0 <= float(seconds) < 60 for seconds in re.findall(r"_seconds_sum\S* (\S+)", answer.text))
    assert "\nprocess_resident_memory_bytes " in answer.text
    assert "nor" not in answer.text


def test_pages_need_nothing_from_elsewhere(client: TestClient) -> None:
    seen: set[str] = set()

    def follow(path: str) -> None:
        if path in seen:
            return
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert ("unsafe-inline" in policy) == (path == "/docs")
        assert answer.headers["x-content-type-options"] == "nosniff"
        if "html" in answer.headers["content-type"]:
            own = re.sub('<a href="https://[^>]*>', "", answer.text)  # what is only opened by a click
            assert not re.search(r"""(src|href)=["'](https?:)?//""", own)
            for target in re.findall(r"""(?:src|href)=["']([^"'#]+)""", own):
                follow(target if target.startswith("/") else f"/{target}")

    follow("/")
    assert {"/", "/docs", "/page.js"} <= seen
    assert any(path.startswith("/docs-files/") for path in seen)
    assert client.get("/redoc").status_code == 404  # would come from elsewhere
    schema = client.get("/openapi.json").json()
    assert schema["info"]["title"] == "elmo-tasks"
    assert schema["info"]["version"] == elmo_tasks.__version__
    assert "Predictions of trained runs" in schema["info"]["description"]
    predict = schema["paths"]["/api/runs/{name}/predict"]["post"]
    assert set(predict["responses"]) == {"200", "404", "405", "408", "413", "415", "422", "429", "504"}
    answer = predict["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/Answer"}
    assert set(schema["paths"]) == {
        *("/api/runs", "/api/runs/{name}/card", "/api/runs/{name}/predict", "/api/runs/{name}/predict-batch"),
        *("/api/embed", "/api/similarity", "/api/neighbors", "/api/score", "/healthz", "/metrics"),
    }


def test_the_page_has_the_colours_of_other_pictures(client: TestClient) -> None:
    answer = client.get("/palette.css")
    assert answer.headers["content-type"].startswith("text/css")
    found = dict(re.findall(r"--([\w-]+): ([^;]+);", answer.text))
    colors = {f"color-{number}": color for number, color in enumerate(PALETTE)}
    assert found == {**colors, "colors": str(len(PALETTE)), "on-color": INK}


def test_an_application_that_ends_leaves_no_thread(serve: Serve) -> None:
    before = threading.enumerate()  # other tests may have an application of their own
    with serve() as client:
        post(client, "/api/embed", {"text": "a"})
    left = [each.name for each in threading.enumerate() if each not in before]
    assert not [name for name in left if name.startswith(("batches", "preparing"))]


# What it refuses


def answer_to(client: TestClient, path: str, content: bytes) -> Any:
    """The answer to a body that says that it is JSON."""
    return client.post(f"/api/{path}", content=content, headers={"content-type": "application/json"})


RUN, BATCH = "runs/ner/predict", "runs/ner/predict-batch"
SIDES = {"one": {"text": "a", "index": 0}, "other": {"text": "a", "index": -1}}
NINES = b'{"text": "a", "id": ' + b"9" * 5000 + b"}"
DEEP = b'{"text": ' + b"[" * 5000 + b"]" * 5000 + b"}"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (RUN, {"txt": "a"}, "the keys are ['txt']; expected either 'text' or 'tokens' among them"),
        (RUN, {"tokens": []}, "'tokens' is []; expected a list of at least one string"),
        (RUN, b'{"text": NaN}', "NaN is not a finite number"),
        (RUN, b'{"text": "a", "id": 1e999}', "1e999 is not a finite number"),
        (RUN, b'{"text": "\\ud800"}', "end of hex escape"),
        (RUN, NINES, "number out of range"),
        (RUN, DEEP, "recursion limit exceeded"),
        (RUN, b'{"text": "a', "EOF while parsing a string"),
        (RUN, b"\xff\xfe", "byte 1 is not UTF-8"),
        (RUN, b"[1]", "the request: Input should be a valid dictionary; got [1]"),
        (RUN, b"", "Field required"),
        (RUN, {"sentence": "a"}, "either 'text' or 'tokens' among them; AllenNLP's 'sentence' is 'text' here"),
        (RUN, b"null", "valid dictionary; got null"),
        (BATCH, {"inputs": None}, "inputs: Input should be a valid list; got null"),
        (BATCH, {"imputs": []}, 'inputs: Field required; got {"imputs": []}'),
        ("embed", {}, "the keys are []; expected either 'text' or 'tokens' among them"),
        ("embed", {"text": " "}, "'text' is ' '; expected a string that is not blank"),
        ("embed", {"text": "a", "layers": [3]}, "there is no layer 3; the biLM has layers 0 to 2"),
        ("embed", {"text": "a", "layers": [0, 1, 0]}, "'layers' names a layer twice; expected each layer once"),
        ("embed", {"text": "a", "pooling": "sum"}, "pooling: Input should be 'none', 'mean' or 'max'; got \"sum\""),
        ("similarity", SIDES, "'index' is -1; expected"),
        ("neighbors", {"text": "a b", "index": 2}, "'index' is 2; expected the index of a token, from 0 to 1"),
        ("neighbors", {"text": "a", "index": 0, "layer": 9}, "there is no layer 9; the biLM has layers 0 to 2"),
        ("neighbors", {"text": "a", "index": 0, "k": 51}, "k: Input should be less than or equal to 50; got 51"),
        ("score", {"text": "a", "substitutes": 51}, "substitutes: Input should be less than or equal to 50; got 51"),
        ("score", {"text": "a"}, "this biLM has no softmax, so it cannot predict words"),
    ],
)
def test_wrong_requests_get_a_sentence(client: TestClient, path: str, body: Any, message: str) -> None:
    answer = answer_to(client, path, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert answer.status_code == 422
    assert message in answer.json()["error"]


def test_only_json_is_read_so_that_forms_of_other_sites_are_not(client: TestClient) -> None:
    long = {"content-type": "a" * 99}
    plain = {"content-type": "text/plain"}
    for headers, found in ((plain, "'text/plain'"), (long, f"'{'a' * 80}'"), ({}, "missing")):
        answer = client.post("/api/runs/ner/predict", content=b'{"text": "a"}', headers=headers)
        assert answer.status_code == 415
        assert answer.json()["error"] == f"the header Content-Type is {found}; expected application/json"
    charset = {"content-type": "Application/JSON; charset=utf-8"}
    assert client.post("/api/runs/ner/predict", content=b'{"text": "a"}', headers=charset).status_code == 200


def test_a_compressed_body_is_refused_by_its_header(client: TestClient) -> None:
    for name, shown in (("gzip", "gzip"), ("g" * 99, "g" * 80)):
        headers = {"content-type": "application/json", "content-encoding": name}
        answer = client.post("/api/runs/ner/predict", content=gzip.compress(b'{"text": "a"}'), headers=headers)
        assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
        assert answer.json()["error"] == f"the header Content-Encoding is '{shown}'; send the body uncompressed"


def test_another_method_is_answered_with_those_that_work(client: TestClient) -> None:
    for method, path, allowed in (
        ("GET", "/api/runs/ner/predict", "POST"),
        ("DELETE", "/api/embed", "POST"),
        ("POST", "/api/runs", "GET, HEAD"),
        ("POST", "/docs", "GET, HEAD"),
        ("POST", "/page.js", "GET, HEAD"),
    ):
        answer = client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), path
        expected = f"the method is {method}; expected {allowed}. See /docs for the methods of each address"
        assert answer.json()["error"] == expected


@pytest.mark.parametrize("path", ["/", "/page.js", "/docs", "/openapi.json", "/healthz", "/metrics", "/api/runs"])
def test_head_is_answered_as_get_without_a_body(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]


@pytest.mark.parametrize(
    "name",
    ["nor", "..", "../ner", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "ner%2f..", "~", "a" * 5000, "%F0%9F%92%A9", "*"],
)
def test_names_are_only_looked_up(client: TestClient, name: str) -> None:
    answer = client.post(f"/api/runs/{name}/predict", json={"text": "a"})
    assert answer.status_code in (404, 405)
    assert len(answer.content) < 1000
    assert "no run" in post(client, "/api/embed", {"text": "a", "run": name}, 404)


def test_an_unknown_run_gets_the_names_of_those_there_are(client: TestClient) -> None:
    expected = "there is no run 'nor'. Did you mean 'ner'? Runs: ner, again"
    assert post(client, "/api/runs/nor/predict", {"text": "a"}, 404) == expected
    expected = "there is no run 'nor'. Did you mean 'ner'? Runs with a frozen biLM: ner, again"
    assert post(client, "/api/embed", {"text": "a", "run": "nor"}, 404) == expected
    expected = f"there is no run '{'a' * 80}'. Runs: ner, again"
    assert post(client, f"/api/runs/{'a' * 99}/predict", {"text": "a"}, 404) == expected


PATHS = "/../app.py /%2e%2e/app.py /..%2fapp.py /%2fetc/passwd /docs-files/..%2fcore.py /. //etc/passwd /%00"


@pytest.mark.parametrize("path", PATHS.split())
def test_no_other_file_is_served(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert "import" not in answer.text
    assert "root:" not in answer.text
    assert answer.status_code in (200, 404)


def test_long_answers_come_whole(client: TestClient) -> None:
    answer = client.post("/api/embed", json={"tokens": ["a", "b"] * 500})
    assert len(answer.content) > 1_000_000
    assert len(answer.json()["layers"][2]) == 1000


def test_a_fault_is_told_without_its_inside(
    client: TestClient, runs: dict[str, ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(requests: list[Any]) -> Any:
        raise ZeroDivisionError("secret")

    with monkeypatch.context() as patch:
        patch.setattr(runs["ner"], "answer", fail)
        assert (
            post(client, "/api/runs/ner/predict", {"text": "a"}, 500) == "internal server error; see the server's log"
        )
        answer = client.post("/api/runs/ner/predict", json={"text": "a"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert 'status="500"' in client.get("/metrics").text
    assert post(client, "/api/runs/ner/predict", {"text": "a"})["results"]


def test_other_sites_are_let_in_only_where_it_is_said(serve: Serve) -> None:
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    with serve() as client:
        assert "access-control-allow-origin" not in client.options("/api/embed", headers=asked).headers
        assert "access-control-allow-origin" not in client.get("/api/runs", headers=asked).headers
    with serve(allowed_origins=["https://example.org"]) as client:
        answer = client.options("/api/embed", headers={**asked, "access-control-request-headers": "x-own"})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == asked["origin"]
        assert client.get("/api/runs", headers=asked).headers["access-control-allow-origin"] == asked["origin"]
        other = client.options("/api/embed", headers=asked | {"origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers


def test_another_name_for_this_machine_is_refused(serve: Serve) -> None:
    with serve(allowed_hosts=["localhost", "[::1]", "Elmo.Example"]) as client:
        for host in ("localhost:8000", "LOCALHOST", "[::1]:8000", "elmo.example", "elmo.example:443"):
            assert client.get("/healthz", headers={"host": host}).status_code == 200, host
        for host in ("evil.example", "", "elmo.example.evil.example", "localhost:8000:1", "[::1", "*", "a" * 99):
            answer = client.get("/healthz", headers={"host": host})
            assert answer.status_code == 400, host
            name = re.sub(r":\d+$", "", host)
            expected = (
                f"the header Host is '{name[:80]}'; expected one of [::1], elmo.example, localhost, or a name that "
            )
            assert answer.json() == {"error": f"{expected}serve --allow-host has added"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SENTENCE = st.text(max_size=30) | JSON
SIDE = JSON | st.fixed_dictionaries(
    {}, optional={"text": SENTENCE, "tokens": st.lists(SENTENCE, max_size=4), "index": JSON}
)
KEYS = {
    "text": SENTENCE,
    "tokens": st.lists(SENTENCE, max_size=4) | JSON,
    "inputs": st.lists(SIDE, max_size=4) | JSON,
    "layers": st.lists(st.integers(-2, 5), max_size=4) | JSON,
    "pooling": st.sampled_from(["none", "mean", "max"]) | JSON,
    "run": st.sampled_from(["ner", "nor", ""]) | JSON,
    "one": SIDE,
    "other": SIDE,
    "index": st.integers(-2, 4) | JSON,
    "layer": st.integers(-2, 4) | JSON,
    "k": st.integers(-2, 60) | JSON,
    "substitutes": st.integers(-2, 60) | JSON,
}
ENDPOINTS = {
    "runs/ner/predict": ("text", "tokens", "run"),
    "runs/ner/predict-batch": ("inputs",),
    "embed": ("text", "tokens", "layers", "pooling", "run"),
    "similarity": ("one", "other", "run"),
    "neighbors": ("text", "tokens", "index", "layer", "k", "run"),
    "score": ("text", "tokens", "substitutes", "run"),
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_no_body_is_a_fault(endpoint: str, client: TestClient) -> None:
    body = st.fixed_dictionaries({}, optional={key: KEYS[key] for key in ENDPOINTS[endpoint]})

    @settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(value=body | JSON)
    def check(value: Any) -> None:
        content = json.dumps(value).encode()
        answer = answer_to(client, endpoint, content)
        assert answer.status_code in (200, 404, 422), (content, answer.text)
        assert answer.status_code == 200 or answer.json()["error"]

    check()
