import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.commands import options
from elmo_tasks.elmo import TINY_OPTIONS
from tests.random_bilm import random_bilm

INDEX = "sentence_to_index"
Printed = Callable[[], tuple[str, list[list[str]]]]


@pytest.fixture
def bilm(tmp_path: Path) -> Path:
    """The folder of a tiny biLM with random weights."""
    random_bilm(TINY_OPTIONS, seed=2).save(tmp_path / "bilm" / "options.json", tmp_path / "bilm" / "weights.hdf5")
    return tmp_path / "bilm"


@pytest.mark.parametrize(
    ("options", "lengths"), [("", [2, 3, 1]), ("--tokenized", [3, 1]), ("--tokenizer=unicode", [2, 3, 2])]
)
def test_embed_reads_raw_text_unless_it_is_tokenized(
    options: str, lengths: list[int], bilm: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("Boeing. Bo stayed.\n\u6211\u6765\n", encoding="utf-8")
    arguments = ["embed", str(tmp_path / "in.txt"), "--bilm", str(bilm), "--output", str(tmp_path / "out.npz")]
    assert cli.main([*arguments, *options.split()]) == 0
    vectors = np.load(tmp_path / "out.npz")
    assert [vectors[name].shape[1] for name in sorted(vectors.files) if name.isdecimal()] == lengths


@pytest.mark.parametrize(
    ("options", "names", "settings"),
    [
        ("--options bilm/options.json --weights bilm/weights.hdf5", ["0", "1", INDEX], {"bilm": "bilm"}),
        (
            "--bilm bilm --layers top --pool max --no-index",
            ["0", "1"],
            {"bilm": "bilm", "layers": "top", "pool": "max"},
        ),
        (
            "--bilm bilm --precision int8 --layers 1",
            ["0", "1", INDEX],
            {"bilm": "bilm", "precision": "int8", "layers": 1},
        ),
    ],
)
def test_embed_has_the_settings_that_its_arguments_say(
    options: str,
    names: list[str],
    settings: dict[str, Any],
    bilm: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(bilm.parent)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One. Two three.\n")))
    assert cli.main(["embed", "-", "--output", "out.npz", *options.split()]) == 0
    found = np.load("out.npz")
    assert sorted(found.files) == names
    for number, vectors in enumerate(elmo_tasks.embed("One. Two three.", **settings)):
        np.testing.assert_allclose(found[str(number)], vectors, atol=2e-6)
    assert cli.main(["embed", "-", "--output", "out.npz", *options.split()]) == 2
    assert "out.npz: the file exists; --force replaces it" in capsys.readouterr().err


def test_a_vector_of_each_word(bilm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(bilm.parent)
    Path("in.txt").write_text("One. Two.\n")
    call = ["embed", "in.txt", "--bilm", "bilm", "--per", "word", "--output"]
    assert cli.main([*call, "words.txt"]) == 0
    assert "words.txt: vectors of 3 words" in capsys.readouterr().err
    vectors = {line.split()[0]: line.split()[1:] for line in Path("words.txt").read_text().splitlines()[1:]}
    assert list(vectors) == [".", "One", "Two"]
    expected = elmo_tasks.embed([["One", "."]], bilm="bilm", layers="mix")[0][0]
    np.testing.assert_allclose(np.array(vectors["One"], float), expected, atol=1e-5)
    for wrong, problem in (
        (["a.csv", "--pool", "mean"], "--per word: expected no --pool; it writes one .txt or .csv file"),
        (["a.csv", "--no-index"], "expected no --no-index"),
        (["folder/"], "expected no folder"),
        (["a.npz"], "a.npz: cannot be written as .npz; expected a name that ends in .txt"),
        (["a.csv", "--layers", "all"], "layers: got 'all'"),
    ):
        assert cli.main([*call, *wrong]) == 2
        assert problem in capsys.readouterr().err
    assert cli.main(["embed", "in.txt", "--output", "words.csv"]) == 2
    assert "expected a name that ends in .hdf5, .h5 or .npz" in capsys.readouterr().err


def test_int8_is_computed_on_the_cpu(
    bilm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "chosen_device", lambda _: torch.device("cuda"))
    monkeypatch.chdir(bilm.parent)
    Path("in.txt").write_text("One.\n")
    call = ["embed", "in.txt", "--bilm", "bilm", "--output", "out.npz", "--precision", "int8"]
    assert cli.main([*call, "--device", "cuda"]) == 2
    assert "--precision int8 is only for the CPU" in capsys.readouterr().err
    assert cli.main(call) == 0


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Word vectors, of which no other test has made an index."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text("dog 1 0\ncat 0.6 0.8\ncar -1 0\n", encoding="utf-8")
    return path


def test_neighbors_are_those_of_each_layer_and_of_static_vectors(
    bilm: Path, static: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], printed: Printed
) -> None:
    pool = tmp_path / "pool.txt"
    pool.write_text("the cat saw the dog\na dog barked\nnobody came\n\nthe dog and the other Dog slept")
    call = ["neighbors", "a dog slept", "--word", "dog", "--pool", str(pool), "--bilm", str(bilm)]

    def found(*arguments: str) -> Any:
        assert cli.main([*call, *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    layers = found("--count", "2")
    assert [len(layer) for layer in layers] == [2, 2, 2]
    assert layers[0][0]["similarity"] == pytest.approx(1.0, abs=1e-5)
    words = [[each["sentence"][each["place"]].lower() for each in layer] for layer in found("--same-word")]
    assert words == [["dog"] * 4] * 3
    nearest = [{"word": "cat", "similarity": pytest.approx(0.6)}, {"word": "car", "similarity": -1}]
    assert found("--static", str(static), "--count", "2") == {"static": nearest, "layers": layers}
    assert cli.main([*call, "--static", str(static)]) == 0
    text, rows = printed()
    titles = ["layer 0 (tokens without context)", "layer 1", "layer 2"]
    assert [line for line in text.splitlines() if line.startswith("layer")] == titles
    assert text.startswith("vectors.txt (the same in every sentence)\n")
    assert rows[:4] == [["word", "cosine"], ["cat", "0.600"], ["car", "-1.000"], ["token", "cosine"]]
    assert len(rows) == 3 + 3 * 6
    assert ["a [dog] barked", "1.000"] in rows[4:9]


def test_similarity_compares_a_word_in_sentences(
    bilm: Path, static: Path, capsys: pytest.CaptureFixture[str], printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = ["A dog barked.", "The Dog saw a dog."]
    call = ["similarity", "dog", *sentences, "--bilm", str(bilm), "--static", str(static)]
    expected = elmo_tasks.similarity("dog", sentences, bilm=bilm)
    assert cli.main([*call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["place"] for each in found["occurrences"]] == [1, 1, 4]
    assert found["occurrences"][0]["sentence"] == ["A", "dog", "barked", "."]
    assert [each["pair"] for each in found["pairs"]] == [[0, 1], [0, 2], [1, 2]]
    for each in found["pairs"]:
        one, other = each["pair"]
        assert each["layers"] == pytest.approx(expected.layers[:, one, other].tolist(), abs=1e-5)
        assert each["static"] == pytest.approx(1)
    assert cli.main(call) == 0
    _, rows = printed()
    assert ["2  The [Dog] saw a dog ."] in rows
    numbers = [f"{value:.3f}" for value in (*expected.layers[:, 1, 2].tolist(), 1)]
    assert rows[-1] == ["2 and 3", *numbers]

    assert cli.main(call[:-2]) == 0  # without static vectors
    text, rows = printed()
    assert "vectors.txt" not in text
    assert rows[-1] == ["2 and 3", *numbers[:-1]]
    assert cli.main([*call[:-2], "--json"]) == 0
    assert [each["static"] for each in json.loads(capsys.readouterr().out)["pairs"]] == [None] * 3

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"An ox slept.\n\nThe ox left.\n")))
    assert cli.main(["similarity", "ox", "-", *call[-4:]]) == 0
    captured = capsys.readouterr()
    assert "vectors.txt: has no vector for 'ox'" in captured.err
    assert [line.split("│")[-2].strip() for line in captured.out.splitlines() if "1 and 2" in line] == [""]
    assert cli.main([*call[:3], "The cat."]) == 2
    assert "'dog' is not in 'The cat .'; expected a token of each sentence" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["embed {file} --output {out}", "neighbors Mary --word Mary --pool {file}"])
def test_data_files_are_no_text_unless_they_are_tokenized(
    command: str, bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "in", tmp_path / "out.npz"
    source.write_text("-DOCSTART- O\nMira B-PER\nleft O\nOslo B-LOC\n")
    arguments = [*command.format(file=source, out=target).split(), "--bilm", str(bilm)]
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {source}:1: looks like a token on each line with its tags")
    assert "; expected " in error
    assert not target.exists()
    assert cli.main([*arguments, "--tokenized"]) == 0


def test_text_comes_through_pipes(bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    os.write(write, b"Mary left .\nOrla came .\n")
    os.close(write)
    assert cli.main(["embed", f"/dev/fd/{read}", "--output", str(tmp_path / "out.npz"), "--bilm", str(bilm)]) == 0
    assert "vectors of 2 sentences" in capsys.readouterr().err
    os.close(read)
