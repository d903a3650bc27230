"""Paths as people write them: `~` is the home folder, and a URL is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path

from elmo_tasks.errors import DataError

# `pathlib` makes one slash of two. `hub:` may be followed by the path of a folder.
_URL = re.compile(r"(?!hub:)([A-Za-z][A-Za-z0-9+.-]+):/+")


def local_path(name: str | Path) -> Path:
    """The path of a file or folder on this machine.

    Raises:
        DataError: it is a URL.
    """
    path = os.path.expanduser(name)
    if (url := _URL.match(path)) and not os.path.exists(path):
        problem = "is a URL; expected the path of a local file or folder"
        remedy = f"Write it as /{path[url.end() :]}" if url[1].lower() == "file" else "Download it, and give its path"
        hub = ". Data sets of the Hugging Face hub are read by hub:NAME" if "huggingface.co" in path else ""
        raise DataError(_URL.sub(r"\1://", path, count=1), f"{problem}. {remedy}{hub}")
    return Path(path)
