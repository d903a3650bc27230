"""BiLMs in the files of ELMoForManyLangs, against the formulas of its modules."""

import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo import BiLM, Elmo, FastBiLM, batch_to_ids, weights
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import ElmoTasksError, WeightsError
from elmo_tasks.extras.weights.many_langs import _PUBLISHED_NAME
from tests.elmo.formulas import allennlp_lstm_layers

CELLS, SIZE, WORD_DIM, CHAR_DIM, WIDTH = 9, 6, 5, 4, 8
FILTERS = ((1, 3), (2, 4), (3, 5))
SETTINGS: dict[str, Any] = {
    "encoder": {
        "name": "elmo",
        "dim": CELLS,
        "projection_dim": SIZE,
        "n_layers": 2,
        "cell_clip": 0.5,
        "proj_clip": 0.4,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": FILTERS,
        "n_highway": 2,
        "word_dim": WORD_DIM,
        "char_dim": CHAR_DIM,
        "max_characters_per_token": WIDTH,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 8192},
    "dropout": 0.1,
}
WORDS = ["the", "<oov>", "猫", "<eos>", "<bos>", "<pad>", "cat", "abcdef"]
CHARACTERS = ["<eow>", "t", "h", "e", "<pad>", "猫", "<oov>", "<bow>", "<bos>", "a", "b", "c", "<eos>"]
CLOSE: dict[str, Any] = {"rtol": 0.0, "atol": 1e-5}
SENTENCES = [["the", "猫", "cat"], [], ["abcdefgh", "het", "né", "\U0001d4b3", "<bos>"], ["the"]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))


def token_shapes(
    filters: Sequence[tuple[int, int]], word_dim: int, char_dim: int, size: int
) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in token_embedder.pkl, with two highway layers."""
    num_filters = sum(number for _, number in filters)
    shapes: dict[str, tuple[int, ...]] = {
        "word_emb_layer.embedding.weight": (len(WORDS), word_dim),
        "char_emb_layer.embedding.weight": (len(CHARACTERS), char_dim),
        "projection.weight": (size, word_dim + num_filters),
        "projection.bias": (size,),
    }
    for number, (width, count) in enumerate(filters):
        shapes |= {f"convolutions.{number}.weight": (count, char_dim, width), f"convolutions.{number}.bias": (count,)}
    for number in range(2):
        shapes[f"highways._layers.{number}.weight"] = (2 * num_filters, num_filters)
        shapes[f"highways._layers.{number}.bias"] = (2 * num_filters,)
    return shapes


def lstm_shapes(cells: int, size: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in encoder.pkl, with two layers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for prefix in (f"{direction}_layer_{number}" for direction in ("forward", "backward") for number in range(2)):
        shapes[f"{prefix}.input_linearity.weight"] = shapes[f"{prefix}.state_linearity.weight"] = (4 * cells, size)
        shapes[f"{prefix}.state_linearity.bias"] = (4 * cells,)
        shapes[f"{prefix}.state_projection.weight"] = (size, cells)
    return shapes


def token_tensors() -> dict[str, Tensor]:
    return random_tensors(token_shapes(FILTERS, WORD_DIM, CHAR_DIM, SIZE), 1)


def lstm_tensors() -> dict[str, Tensor]:
    return random_tensors(lstm_shapes(CELLS, SIZE), 2)


def random_tensors(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) * 0.6 for name, shape in shapes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A biLM in ELMoForManyLangs' files, which names its settings by a path of another machine."""
    path = tmp_path / "zht.model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"config_path": "/home/someone/configs/cnn_x.json", "seed": 1}))
    (path / "cnn_x.json").write_text(json.dumps(SETTINGS))
    for name, items in (("word.dic", WORDS), ("char.dic", CHARACTERS)):
        lines = [f"{item}\t{number}\n" for number, item in enumerate(items)]
        (path / name).write_text("".join(reversed(lines)), encoding="utf-8")
    torch.save(token_tensors(), path / "token_embedder.pkl")
    torch.save(lstm_tensors(), path / "encoder.pkl", _use_new_zipfile_serialization=False)  # as the published ones
    return path


def token_vector(token: str) -> Tensor:
    """(P,): `create_one_batch` and `ConvTokenEmbedder`, of one token."""
    tensors = token_tensors()
    if len(token) + 2 > WIDTH:
        token = token[: WIDTH - 2]
    letters = [token] if token in ("<bos>", "<eos>") else list(token)
    spelled = ["<eow>", *(letter if letter in CHARACTERS else "<oov>" for letter in letters), "<bow>"]
    spelled += ["<pad>"] * (WIDTH - len(spelled))
    characters = tensors["char_emb_layer.embedding.weight"][[CHARACTERS.index(letter) for letter in spelled]]
    values = []
    for number in range(len(FILTERS)):
        weight, bias = (tensors[f"convolutions.{number}.{name}"] for name in ("weight", "bias"))
        values.append(functional.conv1d(characters.t()[None], weight, bias).amax(dim=-1)[0].relu())
    vector = torch.cat(values)
    for number in range(2):
        weight, bias = (tensors[f"highways._layers.{number}.{name}"] for name in ("weight", "bias"))
        nonlinear, gate = functional.linear(vector, weight, bias).chunk(2)
        vector = gate.sigmoid() * vector + (1 - gate.sigmoid()) * nonlinear.relu()
    word = tensors["word_emb_layer.embedding.weight"][WORDS.index(token if token in WORDS else "<oov>")]
    return functional.linear(torch.cat([word, vector]), tensors["projection.weight"], tensors["projection.bias"])


def layers(sentence: list[str], options: BiLMOptions) -> Tensor:
    """(L+1, T, D)"""
    vectors = torch.stack([token_vector(token) for token in ("<bos>", *sentence, "<eos>")])
    return allennlp_lstm_layers(lstm_tensors(), vectors, options.lstm)[:, 1:-1]


def assert_computes(bilm: BiLM | FastBiLM) -> None:
    found = bilm.layers(SENTENCES)
    for row, sentence in enumerate(SENTENCES):
        vectors = found.layers[row, :, : len(sentence)]
        torch.testing.assert_close(vectors, layers(sentence, bilm.options), **CLOSE)


def test_it_computes_what_elmoformanylangs_does(folder: Path) -> None:
    bilm = BiLM.load(folder)
    assert_computes(bilm)
    fast = FastBiLM(bilm).layers(SENTENCES)
    torch.testing.assert_close(fast.layers, bilm.layers(SENTENCES).layers, **CLOSE)
    assert_computes(bilm.requires_grad_(True))
    bilm.layers([["cat", "né"]]).layers.sum().backward()
    assert all(parameter.grad is not None for parameter in bilm.parameters())


def test_it_is_converted_once(folder: Path, tmp_path: Path) -> None:
    files = BiLMFiles.in_folder(folder)
    names = sorted(path.name for path in files.options.parent.iterdir())
    assert names == ["options.json", "vocabulary.txt", "weights.hdf5"]
    assert files.options.with_name("vocabulary.txt").read_text(encoding="utf-8").split("\n") == WORDS
    assert files.weights.is_relative_to(tmp_path / "cache" / "archives")
    known = files.fingerprint(), files.weights.stat()
    assert (BiLMFiles.in_folder(folder).fingerprint(), files.weights.stat()) == known
    shutil.rmtree(tmp_path / "cache")
    assert BiLMFiles.in_folder(folder).fingerprint() == known[0]
    archive = tmp_path / "zht.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in folder.iterdir():
            zipped.write(path, f"zht/{path.name}")
    assert BiLMFiles.in_folder(archive) == files


def test_a_list_of_other_numbers_is_refused(folder: Path) -> None:
    files = BiLMFiles.in_folder(folder)
    with h5py.File(files.weights, "r+") as file:
        values = file["characters"][...] + 0.5
        del file["characters"]
        file["characters"] = values
    with pytest.raises(WeightsError, match=r"weights\.hdf5: characters holds float64; expected bytes"):
        BiLM.load(files.options, files.weights)


def test_character_ids_are_refused(folder: Path) -> None:
    ids = batch_to_ids([["the", "cat"]])
    bilm = BiLM.load(folder)
    for compute in (bilm, bilm.layers_of_ids, Elmo(folder)):
        with pytest.raises(ValueError, match="looks words up in a list; expected tokens"):
            compute(ids)
    cached = Elmo(folder, dropout=0.0, vocab_to_cache=["", "the", "cat"])
    vectors = cached(None, torch.tensor([[1, 2]]))["elmo_representations"][0]
    torch.testing.assert_close(vectors[0], layers(["the", "cat"], bilm.options).mean(dim=0), **CLOSE)


def test_where_the_settings_are(folder: Path) -> None:
    known = BiLMFiles.in_folder(folder)
    (folder / "configs").mkdir()
    (folder / "cnn_x.json").rename(folder / "configs" / "cnn_x.json")
    assert BiLMFiles.in_folder(folder) == known
    (folder / "configs" / "cnn_x.json").rename(folder.parent / "cnn_x.json")
    (folder / "config.json").write_text(json.dumps({"config_path": "../cnn_x.json"}))
    with pytest.raises(WeightsError, match=r"names the settings 'cnn_x.json', which are not in .*zht.model"):
        BiLMFiles.in_folder(folder)
    (folder / "config.json").write_text(json.dumps({"config_path": f"C:\\configs\\{_PUBLISHED_NAME}"}))
    with pytest.raises(WeightsError, match=r"the weights do not fit config.json .*Missing key"):
        BiLMFiles.in_folder(folder)


def test_published_bilms_may_come_without_their_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They all have the same; here with weights that have a shape, but no values."""
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    token, lstm = token_shapes(filters, word_dim=100, char_dim=50, size=512), lstm_shapes(cells=4096, size=512)
    for name, shapes in (("token_embedder.pkl", token), ("encoder.pkl", lstm)):
        torch.save({key: torch.empty(shape, device="meta") for key, shape in shapes.items()}, folder / name)
    (folder / "config.json").write_text(json.dumps({"config_path": _PUBLISHED_NAME}))
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "10")
    monkeypatch.setattr(weights, "write_weights", lambda path, *_: Path(path).touch())
    options = BiLMOptions.load(BiLMFiles.in_folder(folder).options)
    assert options.lstm.model_dump() == {
        **{"dim": 4096, "projection_dim": 512, "n_layers": 2},
        **{"cell_clip": 3, "proj_clip": 3, "use_skip_connections": True},
    }
    assert options.char_cnn.model_dump() == {
        **{"filters": filters, "embedding": {"dim": 50}, "n_highway": 2},
        **{"activation": "relu", "n_characters": 262, "max_characters_per_token": 50},
    }
    assert options.lexicon is not None
    assert options.lexicon.word_dim == 100


def test_a_clip_of_zero_is_none(folder: Path) -> None:
    (folder / "cnn_x.json").write_text(changed(encoder={"cell_clip": 0, "proj_clip": 0}))
    options = BiLMOptions.load(BiLMFiles.in_folder(folder).options)
    assert (options.lstm.cell_clip, options.lstm.proj_clip) == (None, None)


def test_white_space_in_a_list_stands_for_one_character(folder: Path) -> None:
    text = (folder / "char.dic").read_text(encoding="utf-8")
    (folder / "char.dic").write_text(text.replace("猫\t", "\u00a0\t"), encoding="utf-8")
    bilm = BiLM.load(folder)
    found = bilm.token_vectors(["\u3000", "\u00a0"])
    assert not torch.allclose(*found)
    assert "猫" not in bilm.token_encoder.numbers()[1]  # type: ignore[operator]


@pytest.mark.parametrize("name", ["token_embedder.pkl", "encoder.pkl"])
def test_pickles_with_more_than_tensors_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    torch.save({"a": tmp_path}, folder / name)
    with pytest.raises(WeightsError, match=f"{name}: .*it contains more than tensors, perhaps code, which is not run"):
        BiLMFiles.in_folder(folder)
    assert not list((tmp_path / "cache").rglob("*.hdf5"))


@pytest.mark.parametrize(("table", "name"), [("word", "word.dic"), ("char", "char.dic")])
@pytest.mark.parametrize("content", [None, torch.tensor(1.0)])
def test_tables_without_rows(folder: Path, table: str, name: str, content: Tensor | None) -> None:
    tensors = token_tensors()
    del tensors[f"{table}_emb_layer.embedding.weight"]
    if content is not None:
        tensors[f"{table}_emb_layer.embedding.weight"] = content
    torch.save(tensors, folder / "token_embedder.pkl")
    with pytest.raises(WeightsError, match=f"{name}:1: .*; expected an item, a tab and a number below 0"):
        BiLMFiles.in_folder(folder)


def changed(**values: dict[str, Any]) -> str:
    return json.dumps({name: {**part, **values.get(name, {})} for name, part in SETTINGS.items() if name != "dropout"})


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("word.dic", None, "word.dic: no such file; expected a whole biLM"),
        ("encoder.pkl", None, "encoder.pkl: no such file"),
        ("config.json", None, "config.json: no such file"),
        ("config.json", "{}", "config_path"),
        ("word.dic", "the\t0\n", "word.dic: has no <oov>"),
        ("char.dic", "a\t0\n", "char.dic: has no <bos>, <bow>, <eos>, <eow>, <oov>, <pad>"),
        ("char.dic", "a\t13\n", "char.dic:1: 'a\\\\t13'; expected an item, a tab and a number below 13"),
        ("char.dic", f"a\t{'9' * 5000}\n", "char.dic:1: .*; expected an item"),
        ("char.dic", "a b\n", "char.dic:1: 'a b'; expected an item"),
        ("cnn_x.json", changed(encoder={"name": "lstm"}), "encoder.name is 'lstm'; expected 'elmo'"),
        ("cnn_x.json", changed(token_embedder={"name": "lstm"}), "token_embedder.name is 'lstm'"),
        ("cnn_x.json", changed(token_embedder={"word_dim": 0}), "cnn_x.json: .*lexicon.word_dim"),
        ("cnn_x.json", changed(token_embedder={"word_dim": 7}), "do not fit cnn_x.json .*size mismatch"),
        ("cnn_x.json", changed(encoder={"n_layers": 1}), "do not fit cnn_x.json .*layers.1"),
        ("cnn_x.json", changed(encoder={"projection_dim": 10}), "cnn_x.json: .*projection_dim 10 is larger than dim 9"),
    ],
)
def test_files_that_do_not_fit(folder: Path, name: str, content: str | None, problem: str) -> None:
    (folder / name).unlink() if content is None else (folder / name).write_text(content)
    with pytest.raises(ElmoTasksError, match=problem):
        BiLMFiles.in_folder(folder)
