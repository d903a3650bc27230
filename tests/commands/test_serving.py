"""What `serve` makes of its options."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import elmo_tasks.server.app
import elmo_tasks.server.bilm_vectors
import elmo_tasks.server.served_runs
import elmo_tasks.server.serving
from elmo_tasks import cli
from elmo_tasks.files import installed_models
from elmo_tasks.files.installed_models import InstalledModel
from elmo_tasks.sample_data import SENTENCES
from elmo_tasks.server.bounds import Limits


def test_serve_passes_on_its_arguments_and_loads_all_before_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictors, bilms = [Mock(), Mock()], {"one": Mock(), "other": Mock()}
    runs = {name: SimpleNamespace(predictor=each) for name, each in zip("ab", predictors, strict=True)}
    load_runs, bilms_of_runs, create_app = Mock(return_value=runs), Mock(return_value=bilms), Mock(return_value="app")

    def serve(app: str, bound: object, limits: Limits) -> None:
        assert app == "app"
        assert all(each.warm_up.called for each in (*predictors, *bilms.values()))
        served.append(limits)

    served: list[Limits] = []
    monkeypatch.setattr(elmo_tasks.server.served_runs, "load_runs", load_runs)
    monkeypatch.setattr(elmo_tasks.server.bilm_vectors, "bilms_of_runs", bilms_of_runs)
    monkeypatch.setattr(elmo_tasks.server.app, "create_app", create_app)
    monkeypatch.setattr(elmo_tasks.server.serving, "serve", serve)
    limits = "--batch-tokens 101 --batch-wait 250 --max-tokens 102 --max-bytes 103 --max-requests 104 --timeout 106"
    given = (
        "--max-waiting-tokens 105 --device cpu --neighbors text.txt --allow-origin o --note n --include-package json"
    )
    assert cli.main(["serve", "a=one", "two", "--port", "0", *limits.split(), *given.split()]) == 0
    sizes = {"batch_tokens": 101, "request_tokens": 102, "body_bytes": 103, "queue_requests": 104, "queue_tokens": 105}
    assert served == [Limits(**sizes, wait_seconds=0.25, timeout_seconds=106, connections=208)]
    assert load_runs.call_args.args == (["a=one", "two"],)
    assert load_runs.call_args.kwargs == {"batch_tokens": 101, "overrides": ["trainer.device=cpu"]}
    assert bilms_of_runs.call_args.args == (runs, Path("text.txt"))
    assert create_app.call_args.args == (runs, bilms, served[0])
    names = ["localhost", "127.0.0.1", "::1", "[::1]", "127.0.0.1"]
    assert create_app.call_args.kwargs == {"note": "n", "allowed_hosts": names, "allowed_origins": ["o"]}

    monkeypatch.setattr(
        installed_models,
        "installed_models",
        lambda: [InstalledModel("one", tmp_path / "a", "x"), InstalledModel("two", tmp_path / "b", "x")],
    )
    assert cli.main(["serve", "--port", "0"]) == 0
    assert load_runs.call_args.args == ([f"one={tmp_path}/a", f"two={tmp_path}/b"],)
    assert served.pop() == Limits()

    assert cli.main(["serve", "two", "--port", "0"]) == 0
    assert served[1] == Limits()
    assert load_runs.call_args.kwargs == {"batch_tokens": Limits().batch_tokens, "overrides": []}
    assert bilms_of_runs.call_args.args == (runs, SENTENCES)
    assert create_app.call_args.kwargs == {"note": None, "allowed_hosts": names, "allowed_origins": []}
