"""The command and its connections, in processes and over sockets."""

import contextlib
import http.client
import importlib.util
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient

from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.server import Limits, serving
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.bilm_vectors import ServedBiLM
from elmo_tasks.extras.server.served_runs import ServedRun
from elmo_tasks.extras.server.serving import bind, is_loopback, make_server
from elmo_tasks.files import installed_models
from elmo_tasks.files.installed_models import About, InstalledModel
from tests import command_server

Listening = Callable[[Limits], AbstractContextManager[tuple[str, int]]]


@pytest.mark.slow
def test_sigterm_ends_after_the_answers(run_folder: Path) -> None:
    command = [command_server.start(), "-m", "elmo_tasks", "serve", str(run_folder), "--port", "0", "--verbose"]
    environment = {**os.environ, "PASS_SIGTERM": "1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = next(filter(None, (re.search(r"serving at http://127.0.0.1:(\d+);", line) for line in server.stderr)))
        port = int(found[1])
        slow = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"tokens": ["Boeing"] * 1900})
        slow.request("POST", "/api/runs/ner/predict", body, {"content-type": "application/json"})
        while "elmo_tasks_open_requests 0.0" in get(port, "/metrics"):
            assert server.poll() is None
        server.send_signal(signal.SIGTERM)
        answer = slow.getresponse()
        assert answer.status == 200
        assert len(json.loads(answer.read())["results"][0]["tags"]) == 1900
        slow.close()
        assert server.wait(60) == 128 + signal.SIGTERM
        log = server.stderr.read()
        assert "Traceback" not in log
        assert ' - "GET /metrics HTTP/1.1" 200' in log
        assert ' - "POST /api/runs/ner/predict HTTP/1.1" 200' in log


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


@pytest.fixture
def listening(runs: dict[str, ServedRun], bilms: dict[str, ServedBiLM]) -> Listening:
    """A function for `with` blocks that gives the address of a server in another thread of this process."""

    @contextlib.contextmanager
    def listen(limits: Limits) -> Iterator[tuple[str, int]]:
        server = make_server(create_app(runs, bilms, limits), limits)
        with bind("127.0.0.1", 0) as bound:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
            thread.start()
            try:
                until = time.monotonic() + 60
                while not server.started:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                yield bound.getsockname()
            finally:
                server.should_exit = True
                thread.join(60)

    return listen


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side ends; empty also if it cuts the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            received += part
    return received


def test_a_connection_that_is_used_is_not_cut(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "uvicorn.access")
    monkeypatch.setattr(serving, "_GRACE_SECONDS", 0.7)
    with (
        listening(Limits(timeout_seconds=0.5)) as (host, port),
        contextlib.closing(http.client.HTTPConnection(host, port, timeout=60)) as one,
    ):
        one.connect()
        used, begin = one.sock, time.monotonic()
        while time.monotonic() < begin + 1.6:  # more than the deadline, which begins again after each answer
            one.request("GET", "/healthz", headers={"X-Forwarded-For": "1.2.3.4"})
            answer = one.getresponse()
            assert json.loads(answer.read()) == {"status": "ok"}
            assert one.sock is used
            client = f"127.0.0.1:{used.getsockname()[1]}"
        assert "server" not in answer.headers  # the name of its software is nobody's business
    assert {each.getMessage() for each in caplog.records if each.name == "uvicorn.access"} == {
        f'{client} - "GET /healthz HTTP/1.1" 200'
    }


def test_the_parts_of_a_body_are_bounded_together(listening: Listening) -> None:
    with listening(Limits(body_bytes=1000)) as (host, port):
        one = http.client.HTTPConnection(host, port, timeout=60)
        one.putrequest("POST", "/api/runs/ner/predict")
        one.putheader("content-type", "application/json")
        one.putheader("transfer-encoding", "chunked")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the server need not read the rest
            one.endheaders()
            for part in (b'{"text": "', *[b"a" * 100] * 15, b'"}', b""):
                one.send(b"%x\r\n%s\r\n" % (len(part), part))
                time.sleep(0.02)  # so that the server does not read several at once
        assert one.getresponse().status == 413
        one.close()


@pytest.mark.parametrize(("host", "other_names"), [("localhost", False), ("0.0.0.0", True)])
def test_only_a_public_server_takes_any_name(
    host: str, other_names: bool, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the page of another site could give its own name this machine's address."""
    settings: dict[str, Any] = {}
    apps = "elmo_tasks.extras.server.app.create_app"
    monkeypatch.setattr(apps, lambda runs, bilms, limits, **given: settings.update(given, limits=limits))
    monkeypatch.setattr(serving, "serve", lambda *_: None)
    proxy = ["--allow-host", "elmo.example", "--allow-host", "b.example"]
    names = ("batch-tokens", "max-tokens", "max-bytes", "max-requests", "max-waiting-tokens", "timeout")
    limits = [f"--{name}={number}" for number, name in enumerate(names, start=1)]
    given = [*proxy, *limits] if other_names else proxy
    assert cli.main(["serve", str(run_folder), "--port", "0", "--host", host, *given]) == 0
    assert settings["limits"] == (Limits(1, 2, 3, 4, 5, 6, connections=8) if other_names else Limits())
    assert (settings["allowed_hosts"] == ["*"]) == other_names
    assert other_names or set(settings["allowed_hosts"]) == {
        *("localhost", "127.0.0.1", "[::1]", "elmo.example", "b.example")
    }


def test_slow_and_greedy_clients_are_cut(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_GRACE_SECONDS", 0.2)
    post = b"POST /api/runs/ner/predict HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n"
    limits = Limits(timeout_seconds=0.6)
    with listening(limits) as address, contextlib.ExitStack() as stack:
        silent, unfinished, bodiless, begun, deaf = (
            stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(5)
        )
        unfinished.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        bodiless.sendall(post + b"Content-Length: 20\r\n\r\n")
        begun.sendall(post + b"Content-Length: 20\r\n\r\n{")
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps({"tokens": ["a"] * 1500}).encode()
        head = post.replace(b"runs/ner/predict", b"embed") + b"Content-Length: %d\r\n\r\n" % len(body)
        deaf.sendall(head + body)
        begin = time.monotonic()
        assert read_all(silent) == read_all(unfinished) == b""
        assert b" 408 " in read_all(bodiless)
        assert b" 408 " in read_all(begun)
        until = time.monotonic() + 60
        while "elmo_tasks_open_tokens 0.0" not in (text := get(address[1], "/metrics")):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert 'status="200"' in text or 'status="504"' in text
        assert time.monotonic() - begin < 60
        large = stack.enter_context(socket.create_connection(address, timeout=30))
        large.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"a" * 20_000)
        assert read_all(large).startswith(b"HTTP/1.1 400 ")
        assert get(address[1], "/healthz") == '{"status":"ok"}'


def test_connections_are_bounded_while_they_are_open(listening: Listening) -> None:
    with listening(Limits(connections=4)) as address:
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(socket.create_connection(address, timeout=30))
            assert get(address[1], "/healthz") == "Service Unavailable"
        until = time.monotonic() + 30
        while get(address[1], "/healthz") == "Service Unavailable":
            assert time.monotonic() < until


def test_without_runs_all_installed_models_are_served_but_those_without_elmo(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [InstalledModel(name, shutil.copytree(run_folder, tmp_path / name), "own") for name in ("own", "plain")]
    About.path(models[0].folder).write_text(About(without_elmo="plain").model_dump_json(), encoding="utf-8")
    monkeypatch.setattr(installed_models, "installed_models", lambda: models)
    apps: list[Any] = []
    monkeypatch.setattr(serving, "serve", lambda app, *_: apps.append(app))
    assert cli.main(["serve", "--port", "0"]) == 0
    with TestClient(apps[0], base_url="http://localhost") as client:
        runs = client.get("/api/runs").json()["runs"]
        assert [(run["name"], run["without_elmo"]) for run in runs] == [("own", "plain")]
        assert client.post("/api/runs/plain/predict", json={"text": "Orla left."}).status_code == 200


def test_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = ("127.0.0.1", "127.1.2.3", "::1", "localhost", "0.0.0.0", "example.org")
    assert [host for host in hosts if is_loopback(host)] == list(hosts[:4])
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            taken.accept()[0].close()
        with pytest.raises(
            ElmoTasksError,
            match=rf"127\.0\.0\.1:{port}: Address already in use; choose another address with --host and --port",
        ):
            bind("127.0.0.1", port)
        assert cli.main(["serve", "runs/none", "--port", str(port)]) == 2
    assert "Address already in use" in capsys.readouterr().err
    bind("127.0.0.1", port).close()  # at once, also after it had connections


@pytest.mark.parametrize(("level", "address"), [("INFO", ("127.0.0.1", 80)), ("DEBUG", ("::1", 80, 0, 0))])
def test_the_address_is_told_while_it_listens(
    level: str, address: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "elmo_tasks")
    requests = logging.getLogger("uvicorn.access")
    monkeypatch.setattr(requests, "level", logging.WARNING)
    bound, server = Mock(), Mock()
    bound.getsockname.return_value = address
    monkeypatch.setattr(serving, "make_server", lambda *_: server)
    serving.serve(Mock(), bound, Limits())
    bound.listen.assert_called_once()
    server.run.assert_called_once_with(sockets=[bound])
    host = {"INFO": "127.0.0.1", "DEBUG": "[::1]"}[level]
    assert caplog.messages == [f"serving at http://{host}:80; press Ctrl-C to stop"]
    assert requests.level == (logging.INFO if level == "DEBUG" else logging.WARNING)


@pytest.mark.parametrize("host", ["192.168..1", "a" * 64])
def test_what_cannot_be_a_host_is_named(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "runs/none", "--host", host]) == 2
    expected = f"error: {host}:8000: not a host name; choose another address with --host and --port\n"
    assert capsys.readouterr().err == expected
    assert cli.main(["serve", "runs/none", "--port", "0"]) == 2
    assert capsys.readouterr().err.startswith("error: runs/none: expected a run's folder")


def test_without_the_extra_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find: Any = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "uvicorn" else find(name, *rest)
    )
    assert cli.main(["serve", "runs/none"]) == 2
    assert capsys.readouterr().err == (
        "error: serve needs packages that are not installed: pip install 'elmo-tasks[server]'\n"
    )
