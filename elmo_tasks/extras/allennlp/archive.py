"""Reads AllenNLP's archives: `model.tar.gz`, or the folder that it unpacks to, or that AllenNLP trained in.

config.json            the config, as JSON, perhaps with comments
weights.th             the tensors, a pickle; best.th in the folder of a training
vocabulary/            a file of names for each namespace, and non_padded_namespaces.txt
meta.json              the version of AllenNLP, since 2.5.0
fta/                   until 1.0: other files that the config names, each named by its key; among them a biLM's options
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import MigrationError, RunError
from elmo_tasks.extras.allennlp.contents import PADDING, UNKNOWN, AllenNlpVocabulary
from elmo_tasks.files.archives import unpack
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.files.json_files import from_json, read_json
from elmo_tasks.files.limits import ADVICE, MAX_JSON_BYTES, MAX_VOCABULARY_BYTES, limit
from elmo_tasks.files.paths import is_clutter
from elmo_tasks.files.tensor_files import read_pickled_tensors
from elmo_tasks.runs.archive import ALLENNLP_WEIGHTS

_KNOWN = re.compile(r"config\.json|meta\.json|(weights|best)\.th|vocabulary/[^/]+\.txt|fta/[^/]*options_file")
_CONFIG = "AllenNLP's config"
# They are linear in the text: what has no end ends with the text.
_COMMENT = re.compile(r'(?P<string>"(?:[^"\\\n]|\\.)*"?)|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'(?P<string>"(?:[^"\\\n]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)
_NOT_PADDED = "non_padded_namespaces"
_EXPECTED = "an archive that AllenNLP has written (model.tar.gz), or the folder that it unpacks to"


@dataclasses.dataclass(frozen=True)
class Archive:
    """What an archive holds."""

    path: Path
    config: dict[str, Any]
    version: str | None  # of AllenNLP, such as 2.8.0; None before 2.5.0
    vocabulary: AllenNlpVocabulary
    tensors: dict[str, Tensor]
    bilm_options: BiLMOptions | None  # those in the archive


def archive_hash(path: Path) -> str:
    """A hash of an archive, or of the files of its folder that are read; raises OSError."""
    if path.is_file():
        return content_hash(path)
    names = sorted(name for each in path.rglob("*") if _KNOWN.fullmatch(name := each.relative_to(path).as_posix()))
    return " ".join(f"{name} {content_hash(path / name)}" for name in names)


@contextlib.contextmanager
def opened(path: str | Path, scratch: Path) -> Iterator[Archive]:
    """Reads an archive.

    Arguments:
        scratch: an existing folder for temporary files, which need as much room as the unpacked archive, and are gone
            at the end of the block.

    Raises:
        MigrationError: the archive is missing or damaged, or its files are not those of AllenNLP.
    """
    path = Path(path)
    if path.is_dir():
        yield _read(path, path)
        return
    if not path.is_file():
        found = "not a regular file" if path.exists() else "no such file or folder"
        raise MigrationError(f"{path}: {found}; expected {_EXPECTED}")
    with tempfile.TemporaryDirectory(prefix=".elmo-tasks.", dir=scratch) as folder:
        try:
            unpack(
                path,
                Path(folder),
                lambda name: bool(_KNOWN.fullmatch(name)),
                kind="an archive of AllenNLP's",
                expected=_EXPECTED,
                only_known=False,
            )
            archive = _read(Path(folder), path)
        except (MigrationError, RunError) as error:
            raise MigrationError(str(error).replace(folder, str(path))) from None
        yield archive


def _read(folder: Path, path: Path) -> Archive:
    """Reads the files in a folder."""
    if not (folder / "config.json").is_file():
        raise MigrationError(f"{folder}: has no config.json; expected {_EXPECTED}")
    if not (weights := [folder / name for name in ALLENNLP_WEIGHTS if (folder / name).is_file()]):
        raise MigrationError(f"{folder}: has no weights.th; expected {_EXPECTED}")
    config = _read_config(folder / "config.json")
    meta: dict[str, Any] = {}
    if (folder / "meta.json").is_file():
        meta = read_json(folder / "meta.json", dict[str, Any], "AllenNLP's meta.json", error=MigrationError)
    options = sorted(path for path in folder.glob("fta/*options_file") if not is_clutter(path.name))
    return Archive(
        path=path,
        config=config,
        version=str(meta["version"]) if "version" in meta else None,
        vocabulary=_read_vocabulary(folder / "vocabulary", config),
        tensors=read_pickled_tensors(weights[0], MigrationError),
        bilm_options=BiLMOptions.load(options[0]) if options else None,
    )


def _read_config(path: Path) -> dict[str, Any]:
    """The config: JSON, or JSON with comments and commas before brackets, as people leave them."""
    try:
        return read_json(path, dict[str, Any], _CONFIG, error=MigrationError)
    except MigrationError:
        text = plain = ""
        with contextlib.suppress(OSError), open(path, encoding="utf-8-sig", errors="replace") as stream:
            text = plain = stream.read(limit(MAX_JSON_BYTES))
        for pattern in (_COMMENT, _LAST_COMMA):
            plain = pattern.sub(lambda match: match["string"] or " ", plain)
        if plain == text:
            raise
        return from_json(plain.encode(), dict[str, Any], path, _CONFIG, error=MigrationError)


def _read_vocabulary(folder: Path, config: dict[str, Any]) -> AllenNlpVocabulary:
    files = {path.stem: path for path in sorted(folder.glob("*.txt")) if not is_clutter(path.name)}
    patterns = tuple(_lines(files.pop(_NOT_PADDED))) if _NOT_PADDED in files else ("*tags", "*labels")
    settings = config.get("vocabulary")
    unknown = settings.get("oov_token", UNKNOWN) if isinstance(settings, dict) else UNKNOWN
    namespaces: dict[str, tuple[str, ...]] = {}
    for namespace, path in files.items():
        names = (UNKNOWN if line == unknown else line.replace("@@NEWLINE@@", "\n") for line in _lines(path))
        is_padded = not any(fnmatch.fnmatchcase(namespace, pattern) for pattern in patterns)
        namespaces[namespace] = (PADDING, *names) if is_padded else tuple(names)
    return AllenNlpVocabulary(namespaces)


def _lines(path: Path) -> list[str]:
    if (size := path.stat().st_size) > (most := limit(MAX_VOCABULARY_BYTES)):
        raise MigrationError(f"{path}: {size:,} bytes; expected at most {most:,}; {ADVICE}")
    try:
        lines = re.split(
            r"\r?\n", path.read_bytes().decode("utf-8-sig")
        )  # names may have other characters that end lines
    except UnicodeDecodeError as error:
        raise MigrationError(f"{path}: not UTF-8 ({error}); expected a file of AllenNLP's vocabulary") from None
    return lines[:-1] if lines[-1] == "" else lines
