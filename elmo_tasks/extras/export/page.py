"""The page without a server: that of the server, a model, and what runs it in the browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import IO, Any, cast

from elmo_tasks import __version__
from elmo_tasks.config import Overrides, override_list
from elmo_tasks.errors import ElmoTasksError, RemoteError, one_line
from elmo_tasks.extras.export.export import FILES, export
from elmo_tasks.extras.server.served_runs import PAGE, load_runs, palette_css
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.cache import kept_hash, used_cache
from elmo_tasks.files.json_files import write_json

ONNX_RUNTIME = "onnxruntime-web@1.30.0"
"""The package of npm whose files run the model (MIT licence)."""

_HASH = "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"  # SHA-256
_OF_RUNTIME = {"ort.wasm.bundle.min.mjs": "ort.mjs", "ort-wasm-simd-threaded.wasm": "ort-wasm-simd-threaded.wasm"}
_NOTE = (
    "This page has no server: the model runs in your browser, and what you type stays there. The page, its ELMo and "
    f"its tagger come from elmo-tasks {__version__}, by elmo-tasks export --page."
)
_DOCUMENTATION = ' <a href="docs">Documentation</a>'  # of the server
_NO_SCRIPT = re.compile("<noscript>.*?</noscript>")
_WAIT = "<p>This page needs JavaScript, and an address that begins with http: it does not work from a folder.</p>"


def export_page(
    name: str, folder: str | Path, *, int8: bool = False, runtime: str | Path | None = None, overrides: Overrides = ()
) -> dict[str, Any]:
    """Exports a tagger with ELMo, whose tags are not spans, with the page that uses it.

    Arguments:
        name, folder, int8, overrides: see `export`.
        runtime: the archive of `ONNX_RUNTIME`; by default npm downloads it, once.

    Raises:
        ElmoTasksError: the run is something else, or `runtime` is another file.
    """
    (served,) = load_runs([name], batch_tokens=2048, overrides=override_list(overrides)).values()
    about = {**served.about, "is_local": True, "has_card": False, "without_elmo": None}
    with atomic_folder(folder, merge=Path(folder).exists()) as temporary:
        result = export(name, temporary, int8=int8, overrides=overrides)
        if served.elmo is None or result["spans"]:
            raise ElmoTasksError(f"{name}: a page needs a tagger with ELMo whose tags are not spans, such as pos")
        source = runtime or downloaded_runtime()
        try:
            with tarfile.open(source) as archive:
                for member, target in _OF_RUNTIME.items():
                    file = archive.extractfile(f"package/dist/{member}")
                    with atomic_write(temporary / target) as stream:
                        shutil.copyfileobj(cast(IO[bytes], file), stream)
        except (KeyError, OSError, tarfile.TarError) as problem:
            expected = f"expected the archive that `npm pack {ONNX_RUNTIME}` downloads"
            raise ElmoTasksError(f"{source}: cannot be read ({one_line(problem)}); {expected}") from None
        for path in (*PAGE.iterdir(), *(Path(__file__).parent / "page").iterdir()):
            (temporary / path.name).write_bytes(path.read_bytes())
        index = (PAGE / "index.html").read_text(encoding="utf-8").replace('"page.js"', '"local.js"')
        index = _NO_SCRIPT.sub(_WAIT, index.replace(_DOCUMENTATION, ""))
        (temporary / "index.html").write_text(index, encoding="utf-8")
        (temporary / "palette.css").write_text(palette_css(), encoding="utf-8")
        sizes = {file: (temporary / file).stat().st_size for file in FILES}
        write_json(
            temporary / "page.json",
            {"id": result["id"], "files": sizes, "runs": [about], "note": _NOTE},
        )
    return result


def downloaded_runtime(*, local_only: bool = False) -> Path:
    """The archive of `ONNX_RUNTIME` in the cache, where npm puts it at the first use.

    Arguments:
        local_only: never downloads it.

    Raises:
        RemoteError: it is not there and cannot be downloaded, or it is another file.
    """
    path = used_cache("downloads") / f"{ONNX_RUNTIME.replace('@', '-')}.tgz"
    if path.is_file() and kept_hash(path) == _HASH:
        return path
    npm = shutil.which("npm")
    remedy = f"give the archive that `npm pack {ONNX_RUNTIME}` downloads as --runtime"
    if npm is None or local_only:
        raise RemoteError(f"{path}: not there, and there is no npm to download it; {remedy}")
    with atomic_folder(path.parent, merge=True) as temporary:
        packed = subprocess.run([npm, "pack", "--silent", ONNX_RUNTIME], cwd=temporary, capture_output=True, text=True)
        found = temporary / path.name
        if packed.returncode or not found.is_file():
            raise RemoteError(f"npm cannot download {ONNX_RUNTIME}: {packed.stderr.strip()[:200]}; {remedy}")
        if kept_hash(found) != _HASH:
            raise RemoteError(f"{ONNX_RUNTIME}: not the expected file, whose SHA-256 is {_HASH}")
    return path
