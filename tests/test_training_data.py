"""The scripts that make training data of the trained models."""

from __future__ import annotations

import collections
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.snli import SnliConfig

TRAINED_MODELS = Path(__file__).parents[1] / "trained_models"


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(TRAINED_MODELS / f"{name}.py"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["made_data.py", str(folder)])
        script("made_data")["main"]()
    return folder


def test_made_up_pairs_have_each_label_as_often_and_are_not_those_of_the_tests(made: Path) -> None:
    pairs = list(SnliConfig().build().read(made / "pairs.jsonl"))
    labels = collections.Counter(pair["label"] for pair in pairs)
    assert len(pairs) == 6000
    assert min(labels.values()) > 1900
    texts = {(" ".join(pair["premise"]), " ".join(pair["hypothesis"])) for pair in pairs}
    assert len(texts) == 6000
    own = (TRAINED_MODELS / "own_texts/visitors/inference.txt").read_text(encoding="utf-8").splitlines()
    assert not {tuple(line.replace(".", " .").split("\t")[1:]) for line in own} & texts


def test_names_of_other_sets_get_the_classes_of_conll_2003(tmp_path: Path) -> None:
    (tmp_path / "wnut.conll").write_text(
        "Ann\tB-person\nand\tO\nBo\tB-person\nof\tO\nAcme\tB-corporation\nInc\tI-corporation\n\n\nPad\tB-product\n",
        encoding="utf-8",
    )
    (tmp_path / "wiki.txt").write_text("010 I-MISC\nis O\nMad I-ORG\nCity I-ORG\nOslo I-LOC\n. O\n", encoding="utf-8")
    names = script("names_data")
    sentences = [each for name in ("wnut.conll", "wiki.txt") for each in names["read_sentences"](tmp_path / name)]
    (tmp_path / "names.txt").write_text(names["conll"](sentences), encoding="utf-8")
    found = [(each["tokens"], each["tags"]) for each in Conll2003Config().build().read(tmp_path / "names.txt")]
    assert found == [
        (["Ann", "and", "Bo", "of", "Acme", "Inc"], ["U-PER", "O", "U-PER", "O", "B-ORG", "L-ORG"]),
        (["Pad"], ["U-MISC"]),
        (["010", "is", "Mad", "City", "Oslo", "."], ["U-MISC", "O", "B-ORG", "L-ORG", "U-LOC", "O"]),
    ]


@pytest.mark.slow
def test_exchanged_questions_name_something_else_of_their_passage() -> None:
    passage = "Oslo was founded in 1040 by Harald. Bergen was a port in 1070."
    questions = [
        {"id": "a", "question": "Who founded Oslo?", "answers": [{"text": "Harald", "answer_start": 28}]},
        {"id": "b", "question": "What is a port?", "answers": [{"text": "Bergen", "answer_start": 36}]},
    ]
    article = {"title": "Towns", "paragraphs": [{"context": passage, "qas": questions}]}
    (found,) = script("reading_data")["with_exchanged_names"]([article], every=1)[0]["paragraphs"]
    assert found["qas"][:2] == questions
    assert [(each["question"], each["answers"]) for each in found["qas"][2:]] == [("Who founded Bergen?", [])]
