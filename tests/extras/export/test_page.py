"""The page without a server, in a browser: it finds what `predict` finds, and keeps the model."""

import functools
import http.server
import json
import re
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.nn import functional

import elmo_tasks
from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import ElmoTasksError, RemoteError
from elmo_tasks.extras.server.served_runs import palette_css
from tests.test_own_texts import read

pytest.importorskip("onnx")

from elmo_tasks.extras.export.export import FILES
from elmo_tasks.extras.export.page import ONNX_RUNTIME, downloaded_runtime, export_page

COMPUTE = "async (text) => JSON.parse(JSON.stringify(await elmoTasks.predict(text)))"
LAYERS = (
    "async (tokens) => (await elmoTasks.run([tokens], ['layers']))[0]"
    ".layers.map((layer) => layer.map((each) => [...each]))"
)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A static host."""

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def archive() -> Path:
    """npm's package, where `make environment` keeps it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_CACHE", str(Path(sys.prefix, "cache")))
        try:
            return downloaded_runtime(local_only=True)
        except RemoteError:
            pytest.skip("no onnxruntime-web: make environment downloads it")


@pytest.fixture(scope="module")
def address(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page")
    export_page("pos", folder, runtime=archive)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def context(browser: Any, address: str) -> Iterator[Any]:
    """A phone, which keeps what a page has stored."""
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        yield context


@pytest.fixture
def page(context: Any, address: str) -> Iterator[Any]:
    """The page with its first result. It must not ask others, nor complain."""
    with context.new_page() as page:
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(address)
        page.locator(".found:visible").first.wait_for(timeout=120_000)
        page.asked = asked
        yield page
    assert complaints == []
    assert all(url.startswith((address, "blob:", "data:")) for url in asked)


def test_tags_and_vectors(page: Any) -> None:
    rows = [row["tokens"] for name in ("pos.conllu", "ner.txt") for row in read(name)]
    text = "\n\n".join([*map(" ".join, rows[::16]), "“Zürich 😀,” said Dr. Orla. It's in the U.S.! " + "x" * 200])
    expected = elmo_tasks.load("pos")(text)
    found = page.evaluate(COMPUTE, text)
    assert len(found) == len(expected) >= 40
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other.pop("probabilities"), one.pop("probabilities"), atol=1e-4)
        del other["tag_probabilities"]
        assert one == other
    tokens = [*rows[0], "Zürich", "😀", "x" * 200, "<S>"]
    np.testing.assert_allclose(page.evaluate(LAYERS, tokens), BiLM.load().layers([tokens]).layers[0], atol=1e-4)


def test_a_word_in_its_sentence_and_parts_of_speech(page: Any) -> None:
    sentences = {"one": "The bank of the river.", "same": "A bank of the river.", "other": "The bank lent us money."}
    for name, sentence in sentences.items():
        page.locator(f"#elmo-{name}").fill(sentence)
    page.get_by_role("button", name="Run").first.click()
    page.get_by_role("heading", name="“bank”: similarity").wait_for()
    tokenized = [[*sentence.removesuffix(".").split(), "."] for sentence in sentences.values()]
    one, same, other = (layers[2, 1] for layers in BiLM.load().layers(tokenized).layers)
    shares = [functional.cosine_similarity(one, each, dim=0) for each in (same, other)]
    summary = f"“bank”: similarity {shares[0]:.2f} in the same sense, {shares[1]:.2f} in another"
    assert page.locator(".summary").first.inner_text() == summary
    page.get_by_role("tab", name="Parts of speech").click()
    page.locator("mark:visible").first.wait_for()
    assert page.get_by_text("This page has no server").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_browser_keeps_the_model(page: Any, address: str) -> None:
    page.asked.clear()
    page.reload()
    page.locator(".found:visible").first.wait_for(timeout=120_000)
    assert f"{address}page.json" in page.asked
    assert not [url for url in page.asked if url.endswith((".onnx", "model.json"))]


@pytest.mark.parametrize("name", ["ner", "pos_without_elmo"])
def test_other_models_have_no_page(archive: Path, name: str, tmp_path: Path) -> None:
    with pytest.raises(ElmoTasksError, match="a page needs a tagger with ELMo whose tags are not spans, such as pos"):
        export_page(name, tmp_path / "page", runtime=archive)
    assert not (tmp_path / "page").exists()


def test_the_page_is_that_of_the_server_without_it(tmp_path: Path) -> None:
    names = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
    with tarfile.open(tmp_path / "runtime.tgz", "w:gz") as archive:
        for name in names:
            (tmp_path / name).write_text(name)
            archive.add(tmp_path / name, f"package/dist/{name}")
    export_page("pos", folder := tmp_path / "page", runtime=tmp_path / "runtime.tgz")
    assert [(folder / name).read_text() for name in ("ort.mjs", names[1])] == [*names]
    text, colors = ((folder / name).read_text(encoding="utf-8") for name in ("index.html", "palette.css"))
    assert colors == palette_css()
    assert "This page needs JavaScript, and an address that begins with http" in text
    assert not {"page.js", "docs"} & {*re.findall('(?:src|href)="([^"]+)"', text)}
    assert all((folder / name).is_file() for name in re.findall('(?:src|href)="([^":#]+)"', text))
    about = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    assert about["files"] == {name: (folder / name).stat().st_size for name in FILES}
    assert about["id"] == json.loads((folder / "model.json").read_text(encoding="utf-8"))["id"]
    (run,) = about["runs"]
    assert (run["name"], run["is_local"], run["has_card"], run["without_elmo"]) == ("pos", True, False, None)


NPM = """#!/bin/sh
echo "$PROBLEM" >&2
echo something > "$FOUND"
test -z "$PROBLEM"
"""


@pytest.mark.parametrize(
    ("problem", "found", "said"),
    [
        (
            "no network " * 20,
            "x",
            f"npm cannot download {ONNX_RUNTIME}: {('no network ' * 20)[:200]}; give the archive",
        ),
        ("", "x", f"npm cannot download {ONNX_RUNTIME}: ; give the archive"),
        ("", "onnxruntime-web-1.30.0.tgz", f"{ONNX_RUNTIME}: not the expected file, whose SHA-256 is "),
        (None, "", "onnxruntime-web-1.30.0.tgz: not there, and there is no npm to download it; give the archive"),
    ],
)
def test_what_npm_does_not_download_is_not_kept(
    problem: str | None, found: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "npm").write_text(NPM)
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if problem is not None else "")
    monkeypatch.setenv("PROBLEM", problem or "")
    monkeypatch.setenv("FOUND", found)
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(RemoteError, match=re.escape(said)):
        downloaded_runtime()
    assert not list((tmp_path / "cache").rglob("*.tgz"))


def test_another_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no archive")
    with tarfile.open(tmp_path / "other.tgz", "w:gz") as archive:
        archive.add(tmp_path / "notes.txt", "package/notes.txt")
    for name in ("notes.txt", "other.tgz", "missing.tgz"):
        with pytest.raises(ElmoTasksError, match=rf"{name}: cannot be read .*npm pack onnxruntime-web@"):
            export_page("pos", tmp_path / "page", runtime=tmp_path / name)
    assert not (tmp_path / "page").exists()
