"""Reads AllenNLP's archives: `model.tar.gz`, or the folder that it unpacks to, or that AllenNLP trained in.

An archive holds a config, tensors and a vocabulary. `Params` and `Weights` know what has been read of the first two.

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
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import MigrationError, RunError
from elmo_tasks.extras.weights.foreign_files import read_pickled_tensors
from elmo_tasks.files.archives import unpack
from elmo_tasks.files.cache import content_hash
from elmo_tasks.files.json_files import from_json, read_json
from elmo_tasks.files.limits import ADVICE, MAX_JSON_BYTES, MAX_VOCABULARY_BYTES, limit
from elmo_tasks.files.paths import is_clutter
from elmo_tasks.runs.archive import ALLENNLP_WEIGHTS

_KNOWN = re.compile(r"config\.json|meta\.json|(weights|best)\.th|vocabulary/[^/]+\.txt|fta/[^/]*options_file")
_CONFIG = "AllenNLP's config"
# They are linear in the text: what has no end ends with the text.
_COMMENT = re.compile(r'(?P<string>"(?:[^"\\\n]|\\.)*"?)|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'(?P<string>"(?:[^"\\\n]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)
_NOT_PADDED = "non_padded_namespaces"
_EXPECTED = "an archive that AllenNLP has written (model.tar.gz), or the folder that it unpacks to"
PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"
_MISSING: Any = object()
_MOST = 1 << 20


class Params:
    """The values of a config, or of a part of it.

    Arguments:
        values: the keys and values. Other types of values than JSON's cannot be there.
        path: the key path of the part, for messages; empty for the whole config.
        needed: keys that make a difference here, so that `ignore` does not mark them as read.
    """

    def __init__(self, values: Mapping[str, Any], path: str = "", needed: Collection[str] = ()) -> None:
        self._values = values
        self._path = path
        self._needed = needed
        self._read: set[str] = set()
        self._parts: dict[str, Params] = {}

    def __contains__(self, key: str) -> bool:
        """Whether the key has a value other than null. This does not count as reading it."""
        return self._values.get(key) is not None

    def keys(self) -> list[str]:
        """All keys, in their order. This does not count as reading them."""
        return list(self._values)

    def path(self, key: str) -> str:
        """The key's path in the whole config, for messages."""
        return f"{self._path}.{key}" if self._path else key

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """A value, which then counts as read; raises a `MigrationError` if it is missing and has no default."""
        if key not in self._values and default is _MISSING:
            raise MigrationError(f"config.json: {self.path(key)} is missing")
        self._read.add(key)
        return self._values.get(key, default)

    def number(self, key: str, default: Any = _MISSING) -> Any:
        """Like `get`, for an int or a float that could be a size, a count or a probability."""
        value = self.get(key, default)
        if value is not default and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST
        ):
            expected = f"expected a number, from 0 to {_MOST:,}"
            raise MigrationError(f"config.json: {self.path(key)} is {str(value)[:80]!r}; {expected}")
        return value

    def part(self, key: str) -> Params:
        """A part, whose keys are read one by one; an empty one if the key is missing or null."""
        if key not in self._parts:
            self._read.add(key)
            values = self._values.get(key)
            if isinstance(values, str):  # as in AllenNLP, only the type
                values = {"type": values}
            if not isinstance(values, Mapping | None):
                raise MigrationError(f"config.json: {self.path(key)} is {str(values)[:80]!r}; expected an object")
            self._parts[key] = Params(values or {}, self.path(key), self._needed)
        return self._parts[key]

    def ignore(self, *keys: str) -> None:
        """Marks keys as read, with all that is in them: what they say is known to make no difference."""
        self._read.update(key for key in keys if key not in self._needed)

    def expect(self, key: str, *values: Any, default: Any = None) -> None:
        """Reads a key that may only have one of these values; raises a `MigrationError` if it has another."""
        if (value := self.get(key, default)) not in values:
            expected = " or ".join(str(each) for each in values)
            raise MigrationError(f"config.json: {self.path(key)} is {str(value)[:80]}; only {expected} can be imported")

    def unread(self) -> list[str]:
        """The paths of all keys that have not been read, also of parts."""
        paths = [self.path(key) for key in self._values if key not in self._read]
        return paths + [path for part in self._parts.values() for path in part.unread()]


class Weights:
    """Tensors by their names in AllenNLP. Taking one removes it, so that its memory can be freed.

    Arguments:
        tensors: all tensors of the model; shared by all parts, and emptied by `take`.
        prefix: how the names of this part begin.
    """

    def __init__(self, tensors: MutableMapping[str, Tensor], prefix: str = "") -> None:
        self._tensors = tensors
        self.prefix = prefix

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self._tensors

    def part(self, prefix: str) -> Weights:
        """The tensors whose names begin with `prefix`, such as `encoder._module.`, by the rest of their names."""
        return Weights(self._tensors, self.prefix + prefix)

    def names(self) -> list[str]:
        """The names of this part's tensors that have not been taken, without its prefix."""
        return [name[len(self.prefix) :] for name in self._tensors if name.startswith(self.prefix)]

    def take(self, name: str, *shape: int | None) -> Tensor:
        """Removes a tensor and returns it.

        Arguments:
            shape: the expected sizes of its axes, None for any; not checked if there are none.

        Raises:
            MigrationError: it is not there, or has another shape.
        """
        tensor = self.take_optional(name)
        full = self.prefix + name
        if tensor is None:
            raise MigrationError(f"weights.th has no tensor {full!r}, which a model of this config has")
        fits = len(shape) == tensor.dim() and all(
            size in (None, actual) for size, actual in zip(shape, tensor.shape, strict=True)
        )
        if shape and not fits:
            expected = " x ".join("any" if size is None else str(size) for size in shape)
            actual = " x ".join(map(str, tensor.shape)) or "a single number"
            raise MigrationError(f"weights.th: {full!r} is {actual}; by its config it should be {expected}")
        return tensor

    def take_optional(self, name: str) -> Tensor | None:
        """Removes a tensor and returns it; None if it is not there."""
        return self._tensors.pop(self.prefix + name, None)


class Untrained(Weights):
    """Stands for the tensors of a model that is not trained yet: zeros, and one of them where a size is not known."""

    def part(self, prefix: str) -> Weights:
        return self

    def take(self, name: str, *shape: int | None) -> Tensor:
        return torch.zeros([1 if size is None else size for size in shape])


@dataclasses.dataclass(frozen=True)
class AllenNlpVocabulary:
    """The names of the rows of AllenNLP's tables and of the outputs of its models, by namespace.

    Arguments:
        namespaces: of each namespace all names, in the order of their indices; `@@PADDING@@` is the first in those that
            have it, and has no line in the archive's file.
    """

    namespaces: Mapping[str, tuple[str, ...]]

    def labels(self, namespace: str = "labels") -> tuple[str, ...]:
        """The names of a namespace, in the order of the model's outputs."""
        try:
            return self.namespaces[namespace]
        except KeyError:
            found = ", ".join(sorted(self.namespaces)) or "none"
            raise MigrationError(f"vocabulary/{namespace}.txt is missing; the archive has: {found}") from None


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
        settings = {"kind": "an archive of AllenNLP's", "expected": _EXPECTED}
        try:
            unpack(path, Path(folder), lambda name: bool(_KNOWN.fullmatch(name)), **settings, only_known=False)
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
        # Names may have other characters that end lines.
        lines = re.split(r"\r?\n", path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise MigrationError(f"{path}: not UTF-8 ({error}); expected a file of AllenNLP's vocabulary") from None
    return lines[:-1] if lines[-1] == "" else lines
