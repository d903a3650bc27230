"""Says whether this laptop is ready for the course, or what is missing: python check.py

Run it with the Python of the environment that the kit was installed into, see README.md.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

KIT = Path(__file__).resolve().parent
SPACE = 500e6  # bytes, for what the notebooks write
INSTALL = (
    f'"{sys.executable}" -m pip install --no-index --find-links "{KIT / "wheels"}" -r "{KIT / "requirements.txt"}"'
)


def problems_of_files(contents: dict[str, Any]) -> Iterator[str]:
    """Files of the kit that are not there or damaged. Notebooks change when students work with them."""
    for name, expected in contents["files"].items():
        path = KIT / name
        if not path.is_file():
            yield f"{name}: it is not in {KIT}; copy it from the stick again"
            continue
        is_wheel = path.suffix == ".whl"
        found = f"{path.stat().st_size} bytes" if is_wheel else hashlib.sha256(path.read_bytes()).hexdigest()
        if found != expected and path.suffix != ".ipynb":
            yield f"{name}: it is not as in the kit; copy it from the stick again"


def problems_of_disk(contents: dict[str, Any]) -> Iterator[str]:
    try:
        with tempfile.TemporaryFile(dir=KIT / "notebooks"):
            pass
    except OSError as error:
        yield f"a folder to write to ({error}): copy the kit to the disk of the laptop"
    free = shutil.disk_usage(KIT).free
    if free < SPACE:
        yield f"space: {free / 1e6:.0f} MB are free, expected {SPACE / 1e6:.0f} MB"


def problems_of_packages(contents: dict[str, Any]) -> Iterator[str]:
    found = ".".join(map(str, sys.version_info[:2]))
    if found != contents["python"]:
        yield f"Python {contents['python']}: this is Python {found}, {sys.executable}"
        return
    for line in (KIT / "requirements.txt").read_text(encoding="utf-8").split():
        name, _, version = line.partition("==")
        try:
            installed = metadata.version(name)
            if version and installed != version:
                yield f"{name} {version}: {installed} is installed"
        except metadata.PackageNotFoundError:
            yield f"{name} {version}".strip()


def problems_of_work(contents: dict[str, Any]) -> Iterator[str]:
    """Whether the default biLM computes the vectors that it should, and a trained model finds a name."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    import elmo_tasks

    (vectors,) = elmo_tasks.embed("The dog barked.")
    found = vectors[1, 1, :8].tolist()
    if any(abs(one - other) > 0.005 for one, other in zip(found, contents["vector"], strict=True)):
        yield f"the right vectors: expected {contents['vector']}, got {found}"
    (sentence,) = elmo_tasks.load("ner")("Marie Curie left Warsaw.")
    if not sentence["spans"]:
        yield "the name in 'Marie Curie left Warsaw.', which the model `ner` does not find"


def problems(contents: dict[str, Any]) -> list[str]:
    # Meanwhile, pip looks for packages that other packages need.
    command = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    missing = [*problems_of_files(contents), *problems_of_disk(contents), *problems_of_packages(contents)]
    failures: list[str] = []
    if not missing:
        try:
            failures = [*problems_of_work(contents)]
        except Exception as error:
            failures = [f"what works: {type(error).__name__}: {error}"]
    output, _ = pip.communicate()
    if pip.returncode:
        missing += output.splitlines()
    return missing or failures


def main() -> int:
    begin = time.monotonic()
    contents = json.loads((KIT / "kit.json").read_text(encoding="utf-8"))
    if not (missing := problems(contents)):
        print(f"ready ({time.monotonic() - begin:.0f} s)")
        return 0
    for problem in missing:
        print(f"missing: {problem}")
    print(f"This installs all packages:\n  {INSTALL}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
