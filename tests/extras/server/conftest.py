"""Small trained runs behind the application."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from fastapi.testclient import TestClient

from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from elmo_tasks.extras.server import Limits, bilm_vectors
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.bilm_vectors import ServedBiLM, bilms_of_runs
from elmo_tasks.extras.server.served_runs import ServedRun, load_runs
from elmo_tasks.runs import train

Serve = Callable[..., AbstractContextManager[TestClient]]
TASK_CONFIGS = (
    "ner_conll03",
    "predicates_ewt",
    "cpu/srl_ewt",
    "cpu/coref_ontogum",
    "cpu/squad",
    "cpu/snli",
    "cpu/sst5",
)


def post(client: TestClient, path: str, body: Any, status: int = 200) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if status == 200 else answer.json()["error"]


@contextlib.contextmanager
def blocked(run: ServedRun, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Within the block, the run's first batch waits for the event."""
    started, go, answer = threading.Event(), threading.Event(), run.answer

    def wait(requests: list[Any]) -> Any:
        started.set()
        assert go.wait(30)
        return answer(requests)

    with monkeypatch.context() as patch:
        patch.setattr(run, "answer", wait)
        yield started
        go.set()


def train_tasks(folder: Path) -> None:
    """Trains a run of each task for an epoch on sample data, by the name of its config."""
    write_sample_data(folder / "data", ALL_TASKS, sentences=(24, 8, 8))
    overrides = ["trainer.num_epochs=1", "data_loader.batch_size=8", "evaluate_on_test=false"]
    for config in TASK_CONFIGS:
        AcceleratorState._reset_state(reset_partial_state=True)  # the configs differ in precision
        variables = {"ELMO_TASKS_DATA": str(folder / "data")}
        train.train(config, folder / Path(config).name, overrides=overrides, variables=variables)
    (folder / "ner_conll03" / "README.md").write_text("# Names <b>& more</b>\n", encoding="utf-8")


@pytest.fixture(scope="session")
def task_runs(made_once: Callable[..., Path]) -> Path:
    """A folder with a run of each task."""
    return made_once("task_runs", train_tasks)


@pytest.fixture(scope="session")
def run_folder(short_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a tagger, trained for an epoch."""
    return shutil.copytree(short_run, tmp_path_factory.mktemp("served") / "ner")


@pytest.fixture(scope="session")
def runs(run_folder: Path) -> dict[str, ServedRun]:
    return load_runs([str(run_folder), f"again={run_folder}"], batch_tokens=256)


@pytest.fixture(scope="session")
def bilms(runs: dict[str, ServedRun], tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServedBiLM]:
    text = tmp_path_factory.mktemp("pool") / "pool.txt"
    text.write_text("The dog barks at night. The bark of the tree is old.\n\nNobody barks.\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bilm_vectors, "SENTENCES", text)
        return bilms_of_runs(runs)


@pytest.fixture
def serve(runs: dict[str, ServedRun], bilms: dict[str, ServedBiLM]) -> Serve:
    """A function for `with` blocks that gives a client of the application, with limits of its own."""

    @contextlib.contextmanager
    def serving(limits: Limits | None = None, **settings: Any) -> Iterator[TestClient]:
        with TestClient(create_app(runs, bilms, limits, **settings), raise_server_exceptions=False) as client:
            yield client

    return serving


@pytest.fixture
def client(serve: Serve) -> Iterator[TestClient]:
    with serve() as client:
        yield client
