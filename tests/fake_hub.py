"""A small server in the place of the Hugging Face hub, and of any other: it has what `huggingface_hub` asks for."""

import contextlib
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class FakeHub(http.server.ThreadingHTTPServer):
    """Models with their files, and plain files below `/files/`.

    Attributes:
        models: the files of each model by their names.
        files: the plain files.
        denied: the status and the error code that the hub answers for a model.
        shortened: files whose download ends in the middle.
        asked: the methods and paths of all requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models: dict[str, dict[str, bytes]] = {}
        self.files: dict[str, bytes] = {}
        self.denied: dict[str, tuple[int, str]] = {}
        self.shortened: set[str] = set()
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, name: str, folder: Path) -> None:
        files = (path for path in folder.rglob("*") if path.is_file())
        self.models[name] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

    def add_file(self, path: Path) -> str:
        """Returns the address of the file with its hash."""
        self.files[path.name] = path.read_bytes()
        return f"{self.address}/files/{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}"

    def commit(self, name: str) -> str:
        content = repr(sorted(self.models[name].items())).encode()
        return hashlib.sha1(content).hexdigest()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """The server, which `huggingface_hub` takes for the hub, with empty caches."""
    from huggingface_hub import constants

    from elmo_tasks.files import downloads as own

    with FakeHub() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
        own._hub_snapshot.cache_clear()
        yield server
        own._hub_snapshot.cache_clear()
        server.shutdown()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: FakeHub

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._get()

    def do_GET(self) -> None:
        self._get()

    def _get(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        if path.startswith("/files/"):
            self._file(self.server.files.get(path.removeprefix("/files/")))
            return
        found = re.fullmatch(r"/(?:api/models/)?([^/]+/[^/]+?)(?:/(revision|tree|resolve)/([^/]+))?(?:/(.+))?", path)
        assert found, path
        name, kind, revision, file = found.groups()
        if self._is_denied(name):
            return
        if name not in self.server.models:
            self._refuse(404, "RepoNotFound")
        elif revision not in (None, "main", commit := self.server.commit(name)):
            self._refuse(404, "RevisionNotFound")
        elif kind == "resolve":
            self._file(self.server.models[name].get(file), commit)
        elif kind == "tree":
            self._json([self._entry(*item) for item in self.server.models[name].items()])
        else:
            siblings = [{"rfilename": each} for each in self.server.models[name]]
            self._json({"id": name, "sha": commit, "siblings": siblings})

    @staticmethod
    def _entry(name: str, content: bytes) -> dict[str, Any]:
        return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

    def _is_denied(self, name: str) -> bool:
        if name in self.server.denied:
            self._refuse(*self.server.denied[name])
        return name in self.server.denied

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, b"{}", {"X-Error-Code": code})

    def _json(self, value: Any) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _file(self, content: bytes | None, commit: str = "") -> None:
        if content is None:
            self._refuse(404, "EntryNotFound")
            return
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": commit}
        self._answer(200, content, headers, is_cut=self.path.rpartition("/")[2] in self.server.shortened)

    def _answer(self, status: int, content: bytes, headers: dict[str, str], *, is_cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            if self.command != "HEAD":
                self.wfile.write(content[: len(content) // 2] if is_cut else content)
