"""Archives that try to leave their folder, to fill the disk or the memory, or to name what is elsewhere.

Each maker gets the workshop, the folder for the archive and the folder that must not be touched. It returns the archive
and whether even opening a file of that folder is a fault.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

Maker = Callable[[Path, Path, Path], tuple[Path, bool]]
_NAMES = ("config.json", "versions.json", "vocabulary.json", "frozen.safetensors", "model.safetensors", "bilm.json")
_BLOCK = 16 << 20


def _member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", **fields: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % 512)


def members(shop: Path, without: tuple[str, ...] = (), **replaced: bytes) -> bytes:
    """The members of a valid archive, in which `config` stands for `config.json` and so on."""
    files = {name: shop / "run" / name for name in _NAMES}
    files |= {f"bilm/{path.name}": path for path in (shop / "bilm").iterdir()}
    contents = {name: replaced.get(name.partition(".")[0], path.read_bytes()) for name, path in files.items()}
    return b"".join(_member(name, content) for name, content in contents.items() if name not in without)


def _written(here: Path, tar: bytes) -> tuple[Path, bool]:
    archive = here / "run.tar.gz"
    archive.write_bytes(gzip.compress(tar + b"\0" * 1024, 1))
    return archive, True


def _and_member(name: str, kind: bytes, link: str = "", content: bytes = b"", **fields: int) -> Maker:
    """A valid archive with one more member at its beginning, which stands for a file of the run if it has its name."""

    def make(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
        own, target = name.format(outside=outside), link.format(outside=outside)
        up = "../" * 40 + str(outside).lstrip("/")
        own, target = own.replace("UP", up), target.replace("UP", up)
        return _written(here, _member(own, content, kind, target, **fields) + members(shop, (own,)))

    return make


def _linked_folder(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
    (outside / "options.json").write_bytes((shop / "bilm" / "options.json").read_bytes())
    link = _member("bilm", kind=tarfile.SYMTYPE, link=str(outside))
    return _written(here, link + members(shop))


def _zeros(name: str, kind: bytes = tarfile.REGTYPE) -> Maker:
    """A member of two gigabytes of zeros, in pieces that are compressed once and repeated."""

    def make(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
        header = tarfile.TarInfo(name)
        header.size, header.type = 128 * _BLOCK, kind
        first = gzip.compress(members(shop, (name,)) + header.tobuf(tarfile.GNU_FORMAT), 1)
        zeros = gzip.compress(b"\0" * _BLOCK, 9) * 128
        (here / "run.tar.gz").write_bytes(first + zeros + gzip.compress(b"\0" * 1024))
        return here / "run.tar.gz", True

    return make


def _many_members(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
    return _written(here, b"".join(_member(f"x{number}") for number in range(100_000)) + members(shop))


def _bilm_elsewhere(keep_reference: bool) -> Maker:
    """An archive without a biLM that names files elsewhere, in `bilm.json` or only in the config."""

    def make(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
        options, weights = outside / "options.json", outside / "weights.hdf5"
        for path in (options, weights):
            path.write_bytes((shop / "bilm" / path.name).read_bytes())
        reference = json.loads((shop / "run" / "bilm.json").read_text())
        config = json.loads((shop / "run" / "config.json").read_text())
        reference |= {"options": str(options), "weights": str(weights)}
        config["model"]["embedder"]["elmo"] |= {"bilm": None, "options": str(options), "weights": str(weights)}
        without = ("bilm/options.json", "bilm/weights.hdf5", *(() if keep_reference else ("bilm.json",)))
        replaced = {"config": json.dumps(config).encode(), "bilm": json.dumps(reference).encode()}
        if not keep_reference:
            replaced.pop("bilm")
        return _written(here, members(shop, without, **replaced))

    return make


def _vectors_elsewhere(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
    config = json.loads((shop / "run" / "config.json").read_text())
    config["model"]["embedder"]["words"]["vectors"] = str(outside / "secret.txt")
    return _written(here, members(shop, config=json.dumps(config).encode()))


MAKERS: dict[str, Maker] = {
    "absolute path": _and_member("{outside}/new.txt", tarfile.REGTYPE, content=b"x"),
    "folder, then ..": _and_member("bilm/UP/new.txt", tarfile.REGTYPE, content=b"x"),
    "link": _and_member("vocabulary.json", tarfile.SYMTYPE, "{outside}/secret.txt"),
    "linked folder": _linked_folder,
    "hard link": _and_member("vocabulary.json", tarfile.LNKTYPE, "UP/secret.txt"),
    "device": _and_member("vocabulary.json", tarfile.CHRTYPE, devmajor=1, devminor=5),
    "program": _and_member("config.json.py", tarfile.REGTYPE, content=b"1/0", mode=0o4777),
    "bomb in a vocabulary": _zeros("vocabulary.json"),
    "bomb in a config": _zeros("config.json"),
    "bomb in the weights": _zeros("model.safetensors"),
    "bomb in an unknown file": _zeros("other"),
    "bomb in a long name": _zeros("././@LongLink", tarfile.GNUTYPE_LONGNAME),  # which the reader holds in memory
    "bomb in a pax header": _zeros("././@PaxHeader", tarfile.XHDTYPE),
    "many members": _many_members,
    "biLM elsewhere": _bilm_elsewhere(True),
    "biLM elsewhere, without bilm.json": _bilm_elsewhere(False),
    "vectors elsewhere": _vectors_elsewhere,
}
