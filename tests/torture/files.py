"""Targets that the package itself writes: weights, runs, archives, the layer store and other caches."""

import functools
import gzip
import io
import json
import random
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.torture.mutations import Target, change_value, write_changed
from tests.torture.sandbox import allowed

SENTENCES = [["Orla", "left", "Old", "Brusk", "."], ["Quiet"], ["Tavo", "sold", "a", "mill"]]


def targets(shop: Path) -> list[Target]:
    return [
        *_weights(shop),
        *_runs(shop),
        *_archives(shop),
        *_allennlp_archives(),
        *_stores(shop),
        *_other_caches(shop),
    ]


def _weights(shop: Path) -> Iterator[Target]:
    options, weights = shop / "bilm" / "options.json", shop / "bilm" / "weights.hdf5"

    def load(path: Path) -> None:
        from elmo_tasks.elmo import BiLM

        chosen = (path, weights) if path.suffix == ".json" else (options, path)
        BiLM.load(*chosen).layers(SENTENCES[:1])

    def tensors(path: Path) -> None:
        from elmo_tasks.files.tensor_files import read_tensors

        read_tensors(path)

    yield Target("weights: options", "options.json", "json", [options.read_bytes()], load, 1.5)
    yield Target("weights: hdf5 bytes", "weights.hdf5", "binary", [weights.read_bytes()], load, 4)
    yield Target("weights: hdf5 structure", "weights.hdf5", "binary", [weights.read_bytes()], load, 2, _change_hdf5)
    seeds = [(shop / "run" / name).read_bytes() for name in ("model.safetensors", "frozen.safetensors")]
    yield Target("weights: safetensors", "model.safetensors", "binary", seeds, tensors, 2, _change_safetensors)


def _is_there(file: Any, name: str) -> bool:
    try:
        return name in file
    except RuntimeError:  # behind a link that leads back to itself
        return False


def _change_hdf5(path: Path, target: Target, draw: random.Random) -> None:
    """Replaces datasets of a valid file by others of another type or shape, by groups or by links."""
    import h5py
    import numpy as np

    path.write_bytes(target.seeds[0])
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        for name in draw.sample(names, draw.choice((1, 1, 2))):
            if not _is_there(file, name):
                continue  # it was in a group that has been replaced
            shape = getattr(file[name], "shape", ())
            del file[name]
            action = draw.choice(("dataset", "dataset", "dataset", "nan", "group", "soft", "external", "gone", "empty"))
            if action == "dataset":
                shapes = ((), (0,), (1,), shape, shape[::-1], (*shape, 1), shape[1:], (2**20, 2**30))
                dtype = draw.choice(("f2", "f4", "f8", "i4", "u1", "c8", "S5", "?", h5py.string_dtype(), "V3"))
                chosen = draw.choice(shapes)
                file.create_dataset(name, chosen, dtype, chunks=True if chosen and draw.random() < 0.5 else None)
            elif action == "nan":
                file[name] = np.full(shape, draw.choice((np.nan, np.inf, 1e38)), "f4")
            elif action == "group":
                file.create_group(f"{name}/{draw.choice(('W_0', 'x'))}")
            elif action == "soft":
                file[name] = h5py.SoftLink(draw.choice(("/", f"/{name}", "/nothing")))
            elif action == "external":
                file[name] = h5py.ExternalLink(draw.choice(("/dev/zero", "weights.hdf5", "nothing")), "/x")
            elif action == "empty":
                file[name] = h5py.Empty("f4")


def _change_safetensors(path: Path, target: Target, draw: random.Random) -> None:
    """Changes the bytes, or the JSON header by its structure."""
    if draw.random() < 0.4:
        write_changed(path, target, draw)
        return
    seed = draw.choice(target.seeds)
    length = int.from_bytes(seed[:8], "little")
    header = json.dumps(change_value(json.loads(seed[8 : 8 + length]), draw)).encode("utf-8", "surrogatepass")
    path.write_bytes(len(header).to_bytes(8, "little") + header + seed[8 + length :])


def _runs(shop: Path) -> Iterator[Target]:
    """A run of which one file has changed is loaded and predicts, or is resumed."""
    forms = {"safetensors": "binary", "hdf5": "binary", "pt": "binary", "jsonl": "jsonl", "json": "json", "txt": "text"}
    for path in sorted((shop / "run").iterdir()):
        if path.suffix == ".pt" or path.name in ("metrics.jsonl", "metrics.json", "versions.json"):
            run, weight = functools.partial(_resume, shop), 0.3
        else:
            run, weight = functools.partial(_predict), 1.5
        write = functools.partial(_change_run, shop / "run")
        form = forms[path.suffix.lstrip(".")]
        yield Target(f"run: {path.name}", f"run/{path.name}", form, [path.read_bytes()], run, weight, write)


def _change_run(source: Path, path: Path, target: Target, draw: random.Random) -> None:
    shutil.copytree(source, path.parent, dirs_exist_ok=True)
    if path.suffix == ".safetensors":
        _change_safetensors(path, target, draw)
    else:
        write_changed(path, target, draw)


def _predict(path: Path) -> None:
    from elmo_tasks.runs.load import load_predictor

    run = path if path.name.endswith(".tar.gz") else path.parent
    list(load_predictor(run, overrides=["trainer.device=cpu"]).predict([{"tokens": SENTENCES[0]}]))


def _resume(shop: Path, path: Path) -> None:
    from elmo_tasks.runs.train import train

    if path.name != "metrics.json":
        (path.parent / "metrics.json").unlink()  # else there would be nothing to do
    train(shop / "tagger.json", path.parent, resume=True)


def _archives(shop: Path) -> Iterator[Target]:
    names = ("config.json", "versions.json", "vocabulary.json", "frozen.safetensors", "model.safetensors", "bilm.json")
    members = {name: (shop / "run" / name).read_bytes() for name in names}
    members |= {f"bilm/{name}": (shop / "bilm" / name).read_bytes() for name in ("options.json", "weights.hdf5")}
    plain = pack(members)

    def write(path: Path, target: Target, draw: random.Random) -> None:
        """Most changes of compressed bytes only break the checksum: these are compressed after the change."""
        path.write_bytes(gzip.compress(target.changed(draw), 1))

    yield Target("archive: compressed", "run.tar.gz", "binary", [gzip.compress(plain)], _predict, 1)
    yield Target("archive: headers", "run.tar.gz", "binary", [plain[:2048] + plain[-4096:]], _predict, 1, write)
    yield Target("archive: members", "run.tar.gz", "binary", [plain], _predict, 1, write)


def _allennlp_archives() -> Iterator[Target]:
    """An archive of AllenNLP's of which one file has changed is imported."""
    from elmo_tasks.extras.allennlp.importing import import_allennlp
    from tests.extras.allennlp.archives import NER, VOCABULARY, files_of, ner_tensors

    new, old = (files_of(NER, ner_tensors(), VOCABULARY, new_format=new) for new in (True, False))

    def run(path: Path) -> None:
        import_allennlp(path, path.parent / "imported")

    def write(name: str, path: Path, target: Target, draw: random.Random) -> None:
        path.write_bytes(gzip.compress(pack({**new, name: target.changed(draw)}), 1))

    forms = {"config.json": "json", "weights.th": "binary"}
    for name in new:
        change, seeds = functools.partial(write, name), list(dict.fromkeys((new[name], old[name])))
        weight = 1.5 if name in forms else 0.3
        yield Target(f"AllenNLP: {name}", "model.tar.gz", forms.get(name, "text"), seeds, run, weight, change)
    yield Target("AllenNLP: compressed", "model.tar.gz", "binary", [gzip.compress(pack(new), 1)], run, 0.5)


def pack(members: dict[str, bytes]) -> bytes:
    """An uncompressed archive of files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _stores(shop: Path) -> Iterator[Target]:
    """A damaged store must give the layers that were stored, or say that it does not have them."""
    (folder,) = [path for path in (shop / "cache" / "layers").iterdir() if path.is_dir()]
    about = json.loads((folder / "about.json").read_text())

    def run(path: Path) -> None:
        from elmo_tasks.elmo import layer_store

        truth, columns = _layers(folder), layer_store.LayerKey(**about).features
        store = layer_store.LayerStore(layer_store.LayerKey(**about))

        def use() -> None:
            output, missing = store.read(SENTENCES)
            for row in set(range(len(SENTENCES))) - set(missing):
                assert output.layers[row].equal(truth.layers[row]), "layers that were not stored"
            fill()

        def fill() -> None:
            with store.filling(SENTENCES) as absent:
                if absent:
                    store.write(absent, _zeros(sum(map(len, absent)), columns))
            assert not store.read(SENTENCES)[1], "layers that were just stored are missing"

        allowed(use)
        shutil.rmtree(store.folder)
        fill()
        shutil.rmtree(store.folder)

    seeds = [(folder / "layers.sqlite").read_bytes()]
    below = f"cache/layers/{folder.name}"
    copied = functools.partial(_change_run, folder)
    yield Target("store: about.json", f"{below}/about.json", "json", [json.dumps(about).encode()], run, 0.5, copied)
    yield Target("store: bytes", f"{below}/layers.sqlite", "binary", seeds, run, 2, copied)
    change = functools.partial(_change_database, folder)
    yield Target("store: rows", f"{below}/layers.sqlite", "binary", seeds, run, 1, change)


@functools.cache
def _layers(folder: Path) -> Any:
    """What the undamaged store holds."""
    import os

    from elmo_tasks.elmo.layer_store import LayerKey, LayerStore

    before, os.environ["ELMO_TASKS_CACHE"] = os.environ["ELMO_TASKS_CACHE"], str(folder.parent.parent)
    try:
        output, missing = LayerStore(LayerKey(**json.loads((folder / "about.json").read_text()))).read(SENTENCES)
    finally:
        os.environ["ELMO_TASKS_CACHE"] = before
    assert len(missing) < len(SENTENCES)
    return output


def _zeros(rows: int, columns: int) -> Any:
    import torch

    return torch.zeros(rows, columns, dtype=torch.float16)


def _change_database(folder: Path, path: Path, target: Target, draw: random.Random) -> None:
    """Changes values, rows and tables by SQL."""
    shutil.copytree(folder, path.parent, dirs_exist_ok=True)
    statements = (
        "DROP TABLE sentences",
        "DELETE FROM sentences",
        "ALTER TABLE sentences RENAME TO other",
        "ALTER TABLE sentences RENAME COLUMN layers TO vectors",
        "CREATE TABLE other (x)",
        "CREATE TRIGGER t BEFORE INSERT ON sentences BEGIN SELECT RAISE(ABORT, 'no'); END",
        "PRAGMA user_version = 9",
        "PRAGMA journal_mode = WAL",
    )
    column = draw.choice(("key", "tokens", "checksum", "layers"))
    value = draw.choice(("NULL", "'x'", "x'00'", "-1", "1e308", "zeroblob(7)", "zeroblob(3000)", "9223372036854775807"))
    update = f"UPDATE sentences SET {column} = {value} WHERE rowid = {draw.randint(1, 3)}"
    connection = sqlite3.connect(path)
    try:
        connection.execute(draw.choice((update, update, *statements)))
        connection.commit()
    except sqlite3.IntegrityError:
        pass  # this value is there already: the store stays as it is
    finally:
        connection.close()


def _other_caches(shop: Path) -> Iterator[Target]:
    """Damaged copies of data, word vectors and corpora in the cache are made again, or an error names them."""

    def changing(source: Path) -> Callable[[Path, Target, random.Random], None]:
        def write(path: Path, target: Target, draw: random.Random) -> None:
            shutil.copytree(shop / "cache", path.parents[len(source.parts) - 1], dirs_exist_ok=True)
            write_changed(path, target, draw)

        return write

    def read(path: Path) -> None:
        from elmo_tasks.data_readers.conll2003 import Conll2003Config

        assert len(Conll2003Config().build().read(shop / "train.txt")) == 5

    def vectors(path: Path) -> None:
        from elmo_tasks.modules.word_vectors import WordVectorFile

        assert WordVectorFile(shop / "vectors.txt").rows(["orla"]).shape == (1, 4)

    def corpus(path: Path) -> None:
        from elmo_tasks.extras.pretraining.prepare import TextCorpus

        built = TextCorpus(paths=(str(shop / "text.txt"),), tokenized=True, held_out=0.2).build(workers=1)
        assert (len(built.types), len(built.training.tokens), len(built.held_out.tokens)) == _CORPUS_SIZES

    for kind, run in (("datasets", read), ("word_vectors", vectors), ("corpora", corpus)):
        for source in sorted((shop / "cache" / kind).rglob("*")):
            if source.is_file():
                form = "json" if source.suffix == ".json" else "binary"
                path = Path("cache", source.relative_to(shop / "cache"))
                seeds = [source.read_bytes()]
                yield Target(f"cache: {kind}", str(path), form, seeds, run, 0.3, changing(Path(*path.parts[1:])))


_CORPUS_SIZES = (16, 111, 30)
