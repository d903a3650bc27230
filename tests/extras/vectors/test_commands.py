import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elmo_tasks
import elmo_tasks.extras.vectors.embed
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS
from tests.random_bilm import random_bilm

Printed = Callable[[], tuple[str, list[list[str]]]]


@pytest.fixture
def bilm(tmp_path: Path) -> Path:
    """The folder of a tiny biLM with random weights."""
    random_bilm(TINY_OPTIONS, seed=2).save(tmp_path / "bilm" / "options.json", tmp_path / "bilm" / "weights.hdf5")
    return tmp_path / "bilm"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def test_embed_reads_raw_text_unless_it_is_tokenized(bilm: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.npz"
    source.write_text("Boeing. Bo stayed.\n\u6211\u6765\n", encoding="utf-8")
    lengths = {}
    for option in ("--quiet", "--tokenized", "--tokenizer=unicode"):
        arguments = ["embed", str(source), "--bilm", str(bilm), "--output", str(target), "--force", option]
        assert cli.main(arguments) == 0
        vectors = np.load(target)
        lengths[option] = [vectors[name].shape[1] for name in sorted(vectors.files) if name.isdecimal()]
    assert lengths == {"--quiet": [2, 3, 1], "--tokenized": [3, 1], "--tokenizer=unicode": [2, 3, 2]}


def test_embed_has_the_settings_that_its_arguments_say(
    bilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("One. Two three.\n")
    batches: list[int] = []
    embed_file = elmo_tasks.extras.vectors.embed.embed_file

    def noting(*arguments: Any, **settings: Any) -> int:
        batches.append(settings["max_tokens"])
        return embed_file(*arguments, **settings)

    monkeypatch.setattr(elmo_tasks.extras.vectors.embed, "embed_file", noting)
    files = f"--options {bilm}/options.json --weights {bilm}/weights.hdf5"
    for given, names, settings in (
        (f"{files} --batch-tokens 9", ["0", "1", "sentence_to_index"], {"bilm": bilm}),
        (
            f"--bilm {bilm} --layers top --pool max --no-index",
            ["0", "1"],
            {"bilm": bilm, "layers": "top", "pool": "max"},
        ),
        (f"--bilm {bilm} --precision int8 --layers mix", None, {"bilm": bilm, "precision": "int8", "layers": "mix"}),
    ):
        target = tmp_path / "out.npz"
        assert cli.main(["embed", str(tmp_path / "in.txt"), "--output", str(target), "--force", *given.split()]) == 0
        found = np.load(target)
        assert names is None or sorted(found.files) == names
        expected = elmo_tasks.embed("One. Two three.", **settings)
        for number, vectors in enumerate(expected):
            np.testing.assert_allclose(found[str(number)], vectors, atol=2e-6)
    assert batches == [9, 4096, 4096]


@pytest.fixture
def static(tmp_path: Path, cache: Path) -> Path:
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
