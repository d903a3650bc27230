"""Folders of runs that try to run code, to name what is elsewhere, or to take all memory.

Each maker gets the workshop, the folder for the run and the folder that must not be touched. It returns the run and
whether even opening a file of that folder is a fault. A run of one's own may name a biLM elsewhere, so that it is not
always one: but what is in the files must not be shown or copied.
"""

import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Maker = Callable[[Path, Path, Path], tuple[Path, bool]]


def _copy(shop: Path, here: Path) -> Path:
    """A copy of a run that was stopped, with its model and its own biLM."""
    run = here / "run"
    shutil.copytree(shop / "half", run)
    shutil.copyfile(shop / "run" / "model.safetensors", run / "model.safetensors")
    shutil.copytree(shop / "bilm", run / "bilm")
    return run


class _Evil:
    """Runs a command of the shell when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (self.command,)


def _changed(change: Callable[[Path, Path], object], is_sealed: bool = True) -> Maker:
    """A copy of a run, which `change` changes; it gets the copy and the folder that must not be touched."""

    def make(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
        run = _copy(shop, here)
        change(run, outside)
        return run, is_sealed

    return make


def _pickle(name: str, zipped: bool) -> Maker:
    """A pickle that writes a file, instead of a file of the run."""

    def change(run: Path, outside: Path) -> None:
        evil = pickle.dumps(_Evil(f"touch {outside}/new.txt"), protocol=2)
        if zipped:  # as torch.save writes it
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr("training/data.pkl", evil)
                archive.writestr("training/version", "3\n")
            evil = buffer.getvalue()
        (run / name).write_bytes(evil)

    return _changed(change)


def _link(name: str, target: str) -> Maker:
    """A link instead of a file of the run."""

    def change(run: Path, outside: Path) -> None:
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.symlink_to(target.format(outside=outside))

    return _changed(change, is_sealed=False)


def _pipe(name: str) -> Maker:
    """A named pipe, which blocks the process that opens it, instead of a file of the run."""

    def change(run: Path, outside: Path) -> None:
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return _changed(change)


def _json(name: str, change: Callable[[Any, Path], Any], is_sealed: bool = True) -> Maker:
    """A changed JSON file of the run."""

    def change_file(run: Path, outside: Path) -> None:
        value = json.loads((run / name).read_text())
        changed = change(value, outside)
        (run / name).write_text(changed if isinstance(changed, str) else json.dumps(value))
        _refer(run)

    return _changed(change_file, is_sealed)


def _refer(run: Path) -> None:
    """Makes the hash of the biLM in the run that of the files in it, as a careful attacker does."""
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.errors import ElmoTasksError

    reference = json.loads((run / "bilm.json").read_text())
    try:
        reference["fingerprint"] = BiLMFiles.in_folder(run / "bilm").fingerprint()
    except ElmoTasksError:
        return
    (run / "bilm.json").write_text(json.dumps(reference))


def _set(*keys: str, value: Any) -> Callable[[Any, Path], None]:
    """Sets a value of nested objects."""

    def change(values: Any, outside: Path) -> None:
        for key in keys[:-1]:
            values = values[key]
        values[keys[-1]] = value

    return change


def _bilm_elsewhere(values: Any, outside: Path) -> None:
    values |= {"options": str(outside / "secret.txt"), "weights": str(outside / "secret.txt")}


def _without_own_bilm(make: Maker) -> Maker:
    def without(shop: Path, here: Path, outside: Path) -> tuple[Path, bool]:
        run, is_sealed = make(shop, here, outside)
        shutil.rmtree(run / "bilm")
        return run, is_sealed

    return without


def _hdf5(change: Callable[[Any, str, Path], None], name: str = "char_embed") -> Maker:
    """Weights of which one dataset or group is in another file."""

    def change_file(run: Path, outside: Path) -> None:
        import h5py

        shutil.copyfile(run / "bilm" / "weights.hdf5", outside / "other.hdf5")
        with h5py.File(run / "bilm" / "weights.hdf5", "r+") as file:
            change(file, name, outside)
        _refer(run)

    return _changed(change_file)


def _external_storage(file: Any, name: str, outside: Path) -> None:
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, "f4", external=[(str(outside / "secret.txt"), 0, 4 * shape[0] * shape[1])])


def _virtual(file: Any, name: str, outside: Path) -> None:
    import h5py

    shape = file[name].shape
    del file[name]
    layout = h5py.VirtualLayout(shape, "f4")
    layout[...] = h5py.VirtualSource(str(outside / "other.hdf5"), name, shape)
    file.create_virtual_dataset(name, layout)


def _external_link(file: Any, name: str, outside: Path) -> None:
    import h5py

    del file[name]
    file[name] = h5py.ExternalLink(str(outside / "other.hdf5"), name)


def _huge(file: Any, name: str, outside: Path) -> None:
    del file[name]
    file.create_dataset(name, (1 << 40, 3), "f4", chunks=(1024, 3))


def _compressed(file: Any, name: str, outside: Path) -> None:
    """Four gigabytes of zeros in chunks that are never written."""
    del file[name]
    file.create_dataset(name, (261, 4 << 20), "f4", chunks=(1, 1 << 20), compression="gzip")


_CONFIG, _OPTIONS = "config.json", "bilm/options.json"

MAKERS: dict[str, Maker] = {
    "pickle as state": _pickle("training.pt", zipped=False),
    "zipped pickle as state": _pickle("training.pt", zipped=True),
    "pickle as weights": _pickle("model.safetensors", zipped=False),
    "pickle as vocabulary": _pickle("vocabulary.json", zipped=False),
    **{
        f"{name} is a link": _link(name, "{outside}/secret.txt")
        for name in ("config.json", "vocabulary.json", "model.safetensors", "bilm.json", "metrics.jsonl", "training.pt")
    },
    "biLM is a link": _link("bilm", "{outside}"),
    "vocabulary is /dev/zero": _link("vocabulary.json", "/dev/zero"),
    "weights are /dev/zero": _link("model.safetensors", "/dev/zero"),
    **{f"{name} is a pipe": _pipe(name) for name in ("config.json", "vocabulary.json", "frozen.safetensors")},
    **{f"{name} is a pipe": _pipe(name) for name in ("metrics.jsonl", "metrics.json", "training.pt")},
    "bilm.json names a secret": _without_own_bilm(_json("bilm.json", _bilm_elsewhere, is_sealed=False)),
    "config with importstr": _json(_CONFIG, lambda _, outside: f"{{ a: importstr '{outside}/secret.txt' }}"),
    "config with vectors elsewhere": _json(
        _CONFIG, lambda config, outside: config["model"]["embedder"]["words"].update(vectors=f"{outside}/secret.txt")
    ),
    "config with a variable": _json(_CONFIG, lambda _, outside: "{ random_seed: std.extVar('SECRET') }"),
    "config with a package": _json(_CONFIG, _set("model", "type", value="os.system")),
    "config with endless work": _json(_CONFIG, lambda _, outside: "std.range(0, 1e9)"),
    "config of a huge model": _json(_CONFIG, _set("model", "encoder", "hidden_sizes", value=[10**9])),
    "config of a large model": _json(_CONFIG, _set("model", "encoder", "hidden_sizes", value=[30000, 30000])),
    "config of many filters": _json(_CONFIG, _set("model", "embedder", "characters", "filters", value=10**9)),
    "config of long words": _json(_CONFIG, _set("model", "embedder", "words", "size", value=10**9)),
    "options of a huge biLM": _json(_OPTIONS, _set("lstm", "dim", value=10**9)),
    "options of many layers": _json(_OPTIONS, _set("lstm", "n_layers", value=10**7)),
    "options of many highways": _json(_OPTIONS, _set("char_cnn", "n_highway", value=10**7)),
    "options of wide characters": _json(_OPTIONS, _set("char_cnn", "embedding", "dim", value=10**9)),
    "options of long tokens": _json(_OPTIONS, _set("char_cnn", "max_characters_per_token", value=10**9)),
    "weights in external storage": _hdf5(_external_storage),
    "weights in a virtual dataset": _hdf5(_virtual),
    "weights behind an external link": _hdf5(_external_link),
    "weights in an external group": _hdf5(_external_link, "CNN"),
    "weights with a huge dataset": _hdf5(_huge),
    "weights with unwritten chunks": _hdf5(_compressed),
}
