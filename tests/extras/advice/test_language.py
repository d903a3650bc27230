"""The warning that a text is not in the language that a biLM reads. The words of the other languages are made up."""

import itertools
import logging
from collections import Counter
from pathlib import Path

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.extras.advice.language import language_problem
from elmo_tasks.runs.train import train
from tests.extras.advice.test_data_analysis import config

ENGLISH = (
    "It rained all night, and in the morning the road to the village was under water. The farmer who lives on the hill "
    "had seen it before: he put his boots on, took the long way round and came back with bread, milk and the news that "
    "the bridge was still there, although nobody would want to drive over it before the end of the week."
)
OTHER = " ".join(itertools.chain.from_iterable([f"blorvu{n % 3}", "tekar", "mi", "onsa"] for n in range(20)))
LISTED = ["".join(letters) for letters in itertools.islice(itertools.product("tekarmilobn", repeat=4), 10_000)]


def problem(text: str, files: BiLMFiles | None = None) -> str | None:
    return language_problem(files or BiLMFiles.in_folder("default"), Counter(text.split()))


@pytest.mark.parametrize(
    "text",
    [
        ENGLISH,
        ENGLISH.upper(),
        "Orla Rune",
        "blorvu tekar",
        " ".join(OTHER.split()[:49]),
        " ".join(f"Blorvu{n} Tekar MIRA 12 , ." for n in range(50)),  # names, numbers and marks
        f"{ENGLISH} {OTHER[:150]}",  # a third is in the other language
        "",
    ],
)
def test_nothing_is_wrong_with_english_with_names_and_with_short_texts(text: str) -> None:
    assert problem(text) is None


@pytest.mark.parametrize(
    "text", [OTHER, f"{OTHER} {OTHER} {ENGLISH}", "中 文 " * 25], ids=["other", "mixed", "no case"]
)
def test_another_language_is_found(text: str) -> None:
    words = [word for word in text.split() if word.islower() or word in "中文"]
    unknown = sum(word.startswith(("blorvu", "tekar", "onsa", "中", "文")) or word[-1] in ",.:" for word in words)
    found = problem(text)
    assert found is not None
    assert f": {100 * unknown / len(words):.0f} % of its words" in found
    assert "'tekar'" in found or "'中'" in found
    assert "\n" not in found


@pytest.fixture
def own(bilm_files: tuple[Path, Path]) -> BiLMFiles:
    return BiLMFiles(*bilm_files)


def write_words(files: BiLMFiles, words: list[str]) -> None:
    files.options.with_name("vocabulary.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


def test_a_bilm_with_its_own_words(own: BiLMFiles) -> None:
    write_words(own, [*LISTED, "zebu"])  # "took" and "milk" are among the others
    assert problem(" ".join(LISTED[-60:]), own) is None
    assert f"what the biLM {own.options.parent.name} has read: 97 % of" in str(problem(ENGLISH, own))
    assert "100 %" in str(problem("zebu " * 60, own))  # the rarest of 10,001 words
    half = " ".join([*LISTED[:30], *["zebu"] * 30])
    assert problem(half, own) is None
    assert "51 %" in str(problem(f"{half} zebu", own))


@pytest.mark.parametrize("words", [None, LISTED[1:], [*LISTED, "\udcff"]], ids=["none", "too few", "damaged"])
def test_a_bilm_without_its_words_is_not_judged(own: BiLMFiles, words: list[str] | None) -> None:
    if words:
        content = "\n".join(words).encode("utf-8", "surrogateescape")
        own.options.with_name("vocabulary.txt").write_bytes(content)
    assert problem(ENGLISH, own) is None
    own.weights.unlink()
    assert problem(OTHER, own) is None


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.message for record in caplog.records if "does not look like" in record.message]
    caplog.clear()
    return found


def test_training_prediction_and_vectors_warn_once(
    own: BiLMFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    write_words(own, LISTED)
    rows = [(ENGLISH[start : start + 40], ("good", "bad")[start % 2]) for start in range(20)]
    model = {"type": "text_classifier", "embedder": {"elmo": {"bilm": str(own.options.parent)}}}
    trainer = {"num_epochs": 2, "validation_metric": "+accuracy", "trackers": []}
    path = config(tmp_path, {"train": rows, "dev": rows[:5], "test": rows[:5]}, model=model, trainer=trainer)
    train(path, tmp_path / "run")
    assert len(warnings(caplog)) == 1
    predictor = elmo_tasks.load(tmp_path / "run")
    predictor("Orla left")
    assert warnings(caplog) == []
    predictor([ENGLISH[:150], ENGLISH])
    predictor(ENGLISH)
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("output", ["vectors.npz", "parts/"])
def test_embedding_warns_once(
    own: BiLMFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_words(own, LISTED)
    Path("text.txt").write_text(f"{ENGLISH}\n" * 3)
    assert cli.main(["embed", "text.txt", "--output", output, "--bilm", str(own.options.parent)]) == 0
    assert len(warnings(caplog)) == 1
