"""Exported models find what the models find that they are made of, without torch."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import save_file

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS, BiLM
from elmo_tasks.errors import ElmoTasksError, WriteError
from elmo_tasks.extras.samples import SENTENCES as SAMPLE
from elmo_tasks.files.text import read_lines
from tests.random_bilm import random_bilm
from tests.test_own_texts import FOLDER, READERS, read

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from elmo_tasks_runtime import Model

from elmo_tasks.extras.export.export import export

RUNTIME = Path(elmo_tasks.__file__).parents[1] / "elmo_runtime"
LONG = SAMPLE.read_text(encoding="utf-8").split()[:1500]
SENTENCES = [["One"], LONG, ["x" * 200, "Zürich", "über", "😀", "我", "."], [], ["<S>", "a", "</S>"], ["É", "é"]]
TEXTS: list[Any] = [
    "Ann Lee met 3 friends in Zürich. “Wow,” said Dr. Orla Kerrin, “it's U.S. soil!” They didn't stay.",
    "",
    "EUROPE ROCKED BY BSE CLAIMS 😀 at the Tarn Mill Co.\n\nIn 1996, Bob's dog\u200b left.",
    {"tokens": ["Peter", "x" * 300, "Blackburn"], "id": 7},
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that exports an installed model or a biLM, once."""
    folder = tmp_path_factory.mktemp("exported")

    def once(name: str, **settings: Any) -> Path:
        target = folder / "_".join([name, *settings])
        if not target.exists():
            export(name, target, **settings)
        return target

    return once


def differences(expected: list[dict[str, Any]], found: list[dict[str, Any]], tolerance: float) -> Iterator[Any]:
    """The results that differ in something else than rounded probabilities."""
    for one, other in zip(expected, found, strict=True):
        if not same(one, other, tolerance):
            yield one, other


def same(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float):
        return abs(one - other) <= tolerance
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other, [tolerance] * len(one)))
    return bool(one == other)


@pytest.mark.parametrize("name", ["ner", "pos_without_elmo", pytest.param("pos", marks=pytest.mark.slow)])
def test_a_trained_model_gives_the_same_json(exported: Callable[..., Path], name: str) -> None:
    texts: list[Any] = [*TEXTS, *(FOLDER / "visitors" / "names.txt").read_text(encoding="utf-8").splitlines()]
    expected = elmo_tasks.load(name).predict(filter(None, texts))
    assert not [*differences(list(expected), list(Model(exported(name)).predict(texts)), 2e-5)]


@pytest.mark.slow
def test_the_same_on_own_texts_and_on_two_benchmarks(exported: Callable[..., Path], data_folder: Path) -> None:
    inputs: list[Any] = []
    for name in READERS:
        for row in list(read(name))[::3]:
            lists = [row[key] for key in ("tokens", "premise", "hypothesis") if key in row]
            inputs += [{"tokens": tokens} for tokens in (*lists, *row.get("sentences", ()))]
            inputs += [row["passage"]] if "passage" in row else []
    for name, column in (("ner_conll2003/eng.testb", 0), ("pos_ud_ewt/en_ewt-ud-test.conllu", 1)):
        rows = [line.split() for _, line in read_lines(data_folder / name)][:1500]
        inputs.append(" ".join(row[column] for row in rows if len(row) > 3 and row[0] != "-DOCSTART-"))
    inputs = [each for place, each in enumerate(inputs) if each not in inputs[:place]]
    model = elmo_tasks.load("ner")
    expected, found = list(model.predict(inputs)), list(Model(exported("ner")).predict(inputs))
    assert sum(len(each["tokens"]) for each in expected) > 7_000
    assert not [*differences(expected, found, 5e-4)]


def test_layers_are_those_of_the_bilm(exported: Callable[..., Path]) -> None:
    bilm = BiLM.load()
    found = Model(exported("default")).layers(SENTENCES)
    assert [layers.shape for layers in found] == [(3, len(tokens), 256) for tokens in SENTENCES]
    for tokens, layers in zip(SENTENCES, found, strict=True):
        expected = bilm.layers([tokens]).layers[0].numpy()
        np.testing.assert_allclose(layers, expected, atol=1e-5)
    assert Model(exported("default")).layers([]) == []


def test_eight_bits_take_half_of_the_space(exported: Callable[..., Path]) -> None:
    whole, small = exported("ner"), exported("ner", int8=True)
    sizes = [(folder / "words.onnx").stat().st_size for folder in (small, whole)]
    assert sizes[0] < 0.55 * sizes[1]
    one, other = (list(Model(folder).predict([text for text in TEXTS if text])) for folder in (whole, small))
    assert [each["tags"] for each in one] == [each["tags"] for each in other]
    assert one != other  # probabilities are rounded


ONCE: dict[str, Any] = {"trainer.num_epochs": 1, "trainer.moving_average": None, "trainer.regularizers": []}
ONCE |= {"validation_data_path": None, "test_data_path": None}
LEARNED = [{"tokens": ["Orla", "left", "."], "tags": ["B-PER", "O", "O"]}]
HEADS: dict[str, dict[str, Any]] = {
    "gru, layers before the scores, two normalized mixes": {
        "model.encoder": {"type": "stacked_bigru", "hidden_sizes": [8]},
        "model.feedforward": {"hidden_sizes": [7], "activation": "tanh"},
        "model.embedder.elmo.mixes": ["input", "output"],
        "model.embedder.elmo.layers": [0, 2],
        "model.embedder.elmo.layer_normalization": "token",
        "model.embedder.characters": {"embedding_size": 4, "filters": 6, "padding": "none", "activation": "none"},
    },
    "one direction, only characters, without a random field": {
        "model": {
            "type": "simple_tagger",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": [8], "bidirectional": False},
            "embedder": {"characters": {"embedding_size": 4, "filters": 6}},
            "tag_scheme": "BIOUL",
        },
        "dataset_reader.tokenizer": "whitespace",
    },
}


@pytest.mark.parametrize("changes", HEADS.values(), ids=HEADS)
def test_other_heads(settings: Mapping[str, Any], changes: Mapping[str, Any], tmp_path: Path) -> None:
    random_bilm(TINY_OPTIONS, seed=1).save(tmp_path / "options.json", tmp_path / "weights.hdf5", half_precision=True)
    if "model" not in changes:
        files = {"options": str(tmp_path / "options.json"), "weights": str(tmp_path / "weights.hdf5")}
        changes = {**{f"model.embedder.elmo.{key}": path for key, path in files.items()}, **changes}
    elmo_tasks.train(dict(settings), tmp_path / "run", train=LEARNED, overrides={**ONCE, **changes})
    for name in ("model", "frozen"):
        round_weights(tmp_path / "run" / f"{name}.safetensors")
    (tmp_path / "run" / "calibration.json").write_text('{"temperature": 1.7}')
    assert export(str(tmp_path / "run"), tmp_path / "exported")["rounded_weights"] == 0
    expected = elmo_tasks.load(tmp_path / "run").predict(filter(None, TEXTS))
    assert not [*differences(list(expected), list(Model(tmp_path / "exported").predict(TEXTS)), 2e-5)]


def round_weights(path: Path) -> None:
    """As the trained models have them: in float16."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        metadata = file.metadata()
    save_file(
        {name: each.half() if each.is_floating_point() else each for name, each in tensors.items()}, path, metadata
    )


REFUSED = {
    "a biLM that carries its state": {"model.embedder.elmo.stateful": True},
    "layer normalization over a batch": {"model.embedder.elmo.layer_normalization": "batch"},
    "characters that are bytes or padded to the right": {"model.embedder.characters.padding": "right"},
}


@pytest.mark.parametrize(("problem", "changes"), REFUSED.items(), ids=REFUSED)
def test_what_the_graphs_do_not_have(problem: str, changes: Any, tmp_path: Path) -> None:
    with pytest.raises(ElmoTasksError, match=f"ner: cannot be exported with {problem}$"):
        export("ner", tmp_path / "exported", overrides=changes)
    assert not (tmp_path / "exported").exists()


def test_other_encoders_are_refused(settings: Mapping[str, Any], tmp_path: Path) -> None:
    changes = {"model.encoder": {"type": "alternating_lstm", "hidden_size": 4, "num_layers": 2}}
    changes["model.feedforward"] = {"hidden_sizes": [4], "activation": "maxout"}
    elmo_tasks.train(dict(settings), tmp_path / "run", train=LEARNED, overrides={**ONCE, **changes})
    with pytest.raises(ElmoTasksError, match=r"with the encoder alternating_lstm, maxout layers$"):
        export(str(tmp_path / "run"), tmp_path / "exported")


def test_other_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "sentiment", str(tmp_path / "exported")]) == 2
    assert "a bcn; only taggers (crf_tagger, simple_tagger) and biLMs can be exported" in capsys.readouterr().err


def test_files_are_replaced_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    command = ["export", "pos_without_elmo", str(tmp_path)]
    assert cli.main(command) == 2
    assert "--force replaces" in capsys.readouterr().err
    assert cli.main([*command, "--force"]) == 0
    assert "opset: 17\n" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "notes.txt", "sentences.onnx", "words.onnx"}


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, room: Callable[[int], AbstractContextManager[None]]) -> None:
    export("pos_without_elmo", tmp_path / "exported")
    before = {path.name: path.read_bytes() for path in (tmp_path / "exported").iterdir()}
    with room(1_000_000), pytest.raises(WriteError):
        export("pos_without_elmo", tmp_path / "exported", int8=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "exported").iterdir()} == before


# Stands in for an environment that has neither of them.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("torch", "elmo_tasks", "onnx", "regex"), None))
from elmo_tasks_runtime.__main__ import main
main()
"""


def run_without_torch(*arguments: str, given: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WITHOUT, *arguments]
    environment = {"PYTHONPATH": str(RUNTIME), "PATH": ""}
    return subprocess.run(command, input=given, env=environment, capture_output=True, text=True, encoding="utf-8")


def test_the_command_needs_neither_torch_nor_this_package(exported: Callable[..., Path]) -> None:
    text = "Orla Kerrin left Zürich. She was tired."
    done = run_without_torch(str(exported("ner")), "-", given=f'{text}\n\n{{"tokens": ["Oslo"], "id": 1}}\n')
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["tokens"] for each in found] == [
        [*text.split()[:3], "Zürich", "."],
        ["She", "was", "tired", "."],
        ["Oslo"],
    ]
    assert [span["text"] for span in found[0]["spans"]] == ["Orla Kerrin", "Zürich"]
    assert found[2]["id"] == 1
    layers = json.loads(run_without_torch(str(exported("default")), "-", given="A dog.").stdout)["layers"]
    np.testing.assert_allclose(layers, BiLM.load().layers([["A", "dog", "."]]).layers[0], atol=2e-5)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ('{"sentence": "a"}', "input 1 is {'sentence': 'a'}; expected a text"),
        ('A word.\n{"tokens": ["a", ""]}', "input 2 is {'tokens': ['a', '']}; expected a string, or a list of tokens"),
    ],
)
def test_an_unusable_input_is_named(exported: Callable[..., Path], given: str, problem: str) -> None:
    done = run_without_torch(str(exported("pos_without_elmo")), "-", given=given)
    assert done.returncode == 1
    assert f"error: {problem}" in done.stderr
