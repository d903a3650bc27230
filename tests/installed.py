"""Distributions with models, made of runs, as an installer leaves them in a folder of `sys.path`."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.files.installed_models import ENTRY_POINTS


def install(
    folder: Path, package: str, models: Mapping[str, Path], about: Mapping[str, Any] | None = None, names: str = ""
) -> Path:
    """Makes a distribution in a folder that is, or will be, in `sys.path`.

    Arguments:
        package: the name of the distribution, with hyphens.
        models: the folders of runs, by the names of the models.
        about: what all models have in `about.json`; None for no such file.
        names: what the entry point names; by default the package with the models.

    Returns:
        the folder of the package with the models.
    """
    module = package.replace("-", "_")
    for name, run in models.items():
        shutil.copytree(run, folder / module / name)
        if about is not None:
            (folder / module / name / "about.json").write_text(json.dumps(about))
    metadata = {
        "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        "entry_points.txt": f"[{ENTRY_POINTS}]\n{package} = {names or module}\n",
    }
    (folder / f"{module}-1.0.dist-info").mkdir(parents=True)
    for name, text in metadata.items():
        (folder / f"{module}-1.0.dist-info" / name).write_text(text)
    return folder / module
