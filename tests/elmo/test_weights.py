import copy
import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS, BiLM, BiLMOptions, batch_to_ids
from elmo_tasks.elmo.characters import tokens_to_ids
from elmo_tasks.elmo.weights import _file_views
from elmo_tasks.errors import WeightsError, WriteError
from tests.random_bilm import random_bilm

Files = tuple[Path, Path]
CELL = "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell"


def change_options(files: Files, part: str, **values: Any) -> None:
    settings = json.loads(files[0].read_text())
    settings[part] |= values
    files[0].write_text(json.dumps(settings))


def test_round_trip_is_exact(bilm: BiLM, bilm_files: Files) -> None:
    loaded = BiLM.load(*bilm_files)
    assert loaded.options == bilm.options
    for name, value in bilm.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[name]), name
    assert loaded.fingerprint() == bilm.fingerprint()
    assert not loaded.training


def test_every_version_computes_the_same_fingerprint(bilm: BiLM) -> None:
    """Runs and stored layers remember it."""
    even = copy.deepcopy(bilm)
    for parameter in even.parameters():
        parameter.data.fill_(0.5)
    assert even.fingerprint() == "2ceb43d509e1bf4e565c855228c68b69581044b55d7d990c181edd1d910acb23"


def test_half_precision(bilm: BiLM, bilm_files: Files) -> None:
    full_size = bilm_files[1].stat().st_size
    bilm.save(*bilm_files, half_precision=True)
    with h5py.File(bilm_files[1]) as file:
        assert file[f"{CELL}/W_0"].dtype == np.float16
    assert bilm_files[1].stat().st_size < full_size
    loaded = BiLM.load(*bilm_files)
    for name, value in bilm.state_dict().items():
        assert torch.equal(value.half().float(), loaded.state_dict()[name]), name


@pytest.mark.parametrize("value", [1e5, -1e5])
def test_values_too_large_for_half_precision(bilm: BiLM, bilm_files: Files, value: float) -> None:
    bilm.directions[0].layers[1].bias[0] = value
    before = bilm_files[1].read_bytes()
    with pytest.raises(WeightsError, match=f"{CELL}/B holds values too large for half precision"):
        bilm.save(*bilm_files, half_precision=True)
    assert bilm_files[1].read_bytes() == before
    bilm.save(*bilm_files)
    assert BiLM.load(*bilm_files).directions[0].layers[1].bias[0] == value
    bilm.directions[0].layers[1].bias[0] = largest = 65504.0 if value > 0 else -65504.0
    bilm.save(*bilm_files, half_precision=True)
    assert BiLM.load(*bilm_files).directions[0].layers[1].bias[0] == largest


def test_261_and_262_characters_mean_the_same(bilm: BiLM, bilm_files: Files) -> None:
    options, weights = bilm_files
    expected = bilm.layers([["some", "words"]]).layers
    change_options(bilm_files, "char_cnn", n_characters=261)
    loaded = BiLM.load(options, weights)
    assert torch.equal(loaded.layers([["some", "words"]]).layers, expected)
    assert loaded.fingerprint() == bilm.fingerprint()
    with h5py.File(weights, "a") as file:
        characters = file["char_embed"][...]
        del file["char_embed"]
        file["char_embed"] = np.concatenate([np.full((1, 4), 7.0, dtype=np.float32), characters])
    assert torch.equal(BiLM.load(options, weights).layers([["some", "words"]]).layers, expected)


def test_fingerprints_of_bilms_differ(bilm: BiLM) -> None:
    known = bilm.fingerprint()
    assert re.fullmatch("[0-9a-f]{64}", known)
    lstm = bilm.options.lstm.model_copy(update={"cell_clip": 2.0})
    other_clip = random_bilm(bilm.options.model_copy(update={"lstm": lstm}), seed=3, scale=1.2)
    extra = random_bilm(bilm.options.model_copy(update={"n_train_tokens": 5}), seed=3, scale=1.2)
    assert other_clip.fingerprint() != known
    assert extra.fingerprint() == known
    bilm.directions[1].layers[0].bias[0] += 0.5
    assert bilm.fingerprint() != known


def _replace(name: str, values: np.ndarray) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[name]
        file[name] = values

    return change


def _remove(name: str) -> Callable[[h5py.File], None]:
    return lambda file: file.__delitem__(name)


def _external_storage(file: h5py.File) -> None:
    del file["CNN_proj/b_proj"]
    private = Path(file.filename).with_name("private")
    private.write_bytes(bytes(24))
    file.create_dataset("CNN_proj/b_proj", (6,), np.float32, external=[(str(private), 0, 24)])


def _virtual(file: h5py.File) -> None:
    del file["CNN_proj/b_proj"]
    layout = h5py.VirtualLayout((6,), np.float32)
    layout[:] = h5py.VirtualSource("private.hdf5", "data", (6,))
    file.create_virtual_dataset("CNN_proj/b_proj", layout)


def _bomb(file: h5py.File) -> None:
    """A dataset of 400 GB in a few kilobytes."""
    del file["char_embed"]
    file.create_dataset("char_embed", (100_000_000_000, 1), np.float32, chunks=(1024, 1), compression="gzip")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_remove(f"{CELL}/W_P_0"), f"{CELL}/W_P_0 missing; expected by the options"),
        (_remove("CNN_high_0"), "CNN_high_0/W_carry and 3 more missing"),
        (_replace("char_embed", np.zeros((260, 4))), "char_embed has shape 260 x 4; expected 261 x 4"),
        (_replace(f"{CELL}/W_0", np.zeros((12, 40))), f"{CELL}/W_0 has shape 12 x 40; expected 12 x 48"),
        (_replace("CNN_proj/b_proj", np.full(6, np.nan)), "CNN_proj/b_proj holds values that are not finite"),
        (
            _replace("CNN_proj/b_proj", np.zeros(6, dtype=np.int64)),
            "CNN_proj/b_proj holds int64; expected floating-point",
        ),
        (_replace("CNN_proj/b_proj", np.float32(1)), r"CNN_proj/b_proj has shape \(\); expected 6"),
        (_external_storage, "CNN_proj/b_proj takes its values from other files"),
        (_virtual, "CNN_proj/b_proj takes its values from other files"),
        (_replace("CNN_proj", h5py.ExternalLink("private.hdf5", "/")), "CNN_proj/W_proj and 1 more missing"),
        (_replace("CNN_proj/b_proj", h5py.SoftLink("/CNN/b_cnn_1")), "CNN_proj/b_proj missing"),
        (_replace("CNN_proj/b_proj", h5py.Empty(np.float32)), r"CNN_proj/b_proj has shape \(\); expected 6"),
        (_bomb, "char_embed has shape 100000000000 x 1; expected 261 x 4"),
    ],
)
def test_wrong_datasets_are_named_and_a_file_must_hold_its_values_itself(
    bilm_files: Files, change: Callable[[h5py.File], None], message: str
) -> None:
    with h5py.File(bilm_files[1], "a") as file:
        change(file)
    with h5py.File(bilm_files[1].with_name("private.hdf5"), "w") as private:
        private["data"] = private["b_proj"] = np.zeros(6, dtype=np.float32)
        private["W_proj"] = np.zeros((18, 6), dtype=np.float32)
    _expect_one_line(bilm_files, rf"weights\.hdf5: {message}")


def test_sizes_that_the_file_does_not_have_take_no_memory(bilm_files: Files) -> None:
    change_options(bilm_files, "lstm", dim=1 << 20, projection_dim=1 << 19)  # 70 TB
    _expect_one_line(bilm_files, r"weights\.hdf5: CNN_proj/W_proj has shape 18 x 6; expected 18 x 524288")
    change_options(bilm_files, "lstm", n_layers=10**9)
    _expect_one_line(bilm_files, r"options\.json: lstm\.n_layers: .* less than or equal to 1000; got 1000000000")


def test_weights_that_unpack_to_far_more_than_their_size(options: BiLMOptions, tmp_path: Path) -> None:
    files = tmp_path / "options.json", tmp_path / "weights.hdf5"
    wide = options.lstm.model_copy(update={"dim": 2048, "projection_dim": 2048})  # 134 MB
    random_bilm(options).save(*files)
    options.model_copy(update={"lstm": wide}).save(files[0])
    with torch.device("meta"):
        bilm = BiLM(BiLMOptions.load(files[0]))
    with h5py.File(files[1], "w") as file:  # zeros that take no room
        for name, views in _file_views(bilm.token_encoder, bilm.directions).items():
            shape = (sum(map(len, views)), *views[0].shape[1:])
            file.create_dataset(name, shape, np.float32, chunks=shape)
    _expect_one_line(files, r"weights\.hdf5: unpacks to \d{3},.* bytes; expected at most 6\d,.*ELMO_TASKS_LIMITS=10")


@pytest.mark.parametrize(
    ("part", "key", "value", "message"),
    [
        ("lstm", "n_layers", 3, "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B and 5 more missing"),
        ("lstm", "n_layers", 1, f"holds {CELL}/B and 5 more, which the options have no layer for"),
        ("lstm", "dim", 13, "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 has shape 12 x 48; expected 12 x 52"),
        ("char_cnn", "n_highway", 0, "holds CNN_high_0/W_carry and 3 more, which the options have no layer for"),
        ("char_cnn", "filters", [[1, 5], [2, 6]], "holds CNN/W_cnn_2 and 1 more"),
    ],
)
def test_options_of_another_model(bilm_files: Files, part: str, key: str, value: Any, message: str) -> None:
    change_options(bilm_files, part, **{key: value})
    _expect_one_line(bilm_files, message)


def test_other_groups_than_the_layers_are_ignored(bilm_files: Files) -> None:
    with h5py.File(bilm_files[1], "a") as file:
        file["softmax/W"] = np.zeros((5, 5))
    BiLM.load(*bilm_files)


def test_damaged_and_foreign_files(bilm_files: Files, tmp_path: Path) -> None:
    options, weights = bilm_files
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    _expect_one_line(bilm_files, r"weights\.hdf5: it is cut short; expected a biLM's weights")
    weights.write_bytes(b"")
    _expect_one_line(bilm_files, r"weights\.hdf5: it is not an HDF5 file, or damaged")
    shutil.copy(options, weights)
    _expect_one_line(bilm_files, r"weights\.hdf5: it is not an HDF5 file, or damaged")
    weights.unlink()
    _expect_one_line(bilm_files, r"weights\.hdf5: no such file")
    for held in ("nothing", "pictures"):
        with h5py.File(weights, "w") as file:
            if held != "nothing":
                file[f"{held}/first"] = np.zeros(3)
        _expect_one_line(bilm_files, rf"weights\.hdf5: holds {held}; expected a biLM's weights in bilm-tf's layout")


def _expect_one_line(files: Files, message: str) -> None:
    with pytest.raises(WeightsError, match=message) as caught:
        BiLM.load(*files)
    assert "\n" not in str(caught.value)


BEGIN, END, PADDING = 259, 260, 261


@pytest.mark.parametrize(
    ("token", "kept"),
    [
        ("ab", b"ab"),
        ("é", b"\xc3\xa9"),
        ("x" * 47, b"x" * 47),
        ("x" * 48, b"x" * 48),
        ("x" * 60, b"x" * 48),
        ("語" * 30, ("語" * 30).encode()[:48]),
        ("a\ud800b", b"ab"),  # half a character
    ],
)
def test_a_token_is_its_first_bytes_plus_one_between_borders(token: str, kept: bytes) -> None:
    ids = tokens_to_ids([token])
    assert ids.dtype == torch.int64
    assert ids.tolist() == [[BEGIN, *(byte + 1 for byte in kept), END, *[PADDING] * (48 - len(kept))]]
    assert tokens_to_ids([token], max_characters=5).tolist() == [
        [BEGIN, *(byte + 1 for byte in kept[:3]), END, *[PADDING] * (3 - len(kept))]
    ]


def test_sentence_borders_have_characters_of_their_own() -> None:
    ids = tokens_to_ids(["<S>", "</S>"])
    assert ids[:, :3].tolist() == [[BEGIN, 257, END], [BEGIN, 258, END]]
    assert (ids[:, 3:] == PADDING).all()


def test_batches_are_padded_with_zeros() -> None:
    ids = batch_to_ids([["one"], [], ["three", "tokens", "here"]])
    assert ids.shape == (3, 3, 50)
    assert (ids > 0).any(dim=-1).sum(dim=1).tolist() == [1, 0, 3]
    assert torch.equal(ids[2], tokens_to_ids(["three", "tokens", "here"]))
    assert batch_to_ids([]).shape == (0, 0, 50)
    assert tokens_to_ids([]).shape == (0, 50)


def test_a_full_disk_leaves_no_weights(tmp_path: Path, room: Callable[[int], AbstractContextManager[None]]) -> None:
    path = tmp_path / "weights.hdf5"
    with room(2000), pytest.raises(WriteError, match=rf"^{path}: cannot be written: File too large.* at least [\d,]+ "):
        random_bilm(TINY_OPTIONS).save(tmp_path / "options.json", path)
    assert not list(tmp_path.iterdir())
