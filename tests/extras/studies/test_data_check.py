"""What `study --check-data` finds: files that are whole, cut, missing or damaged, and what is counted in them."""

import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from elmo_tasks.extras.studies import data_check
from elmo_tasks.extras.studies.data_check import PUBLISHED, FileCheck, check_files
from elmo_tasks.extras.studies.study import Selection, Study

ENGLISH = "conll-2012/v4/data/train/data/english"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small data of the six tasks under the names of the paper's."""
    folder = tmp_path / "data"
    write_sample_data(folder, ALL_TASKS, sentences=(6, 2, 2))
    monkeypatch.setenv("ELMO_TASKS_DATA", str(folder))
    return folder


def _checks(*arms: str) -> dict[str, FileCheck]:
    """By kind, of the arms of the study `paper`."""
    study = Study.load("paper", selection=Selection(arms), with_files=False)
    return {check.kind: check for check in check_files(study)}


def _publish(monkeypatch: pytest.MonkeyPatch, **counts: dict[str, int]) -> None:
    """Sets the published counts of the files of named entities."""
    names = {f"ner_conll2003/eng.{name}": each for name, each in counts.items()}
    monkeypatch.setattr(data_check, "PUBLISHED", names)


def _sentences(path: Path) -> int:
    blocks = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())
    return sum(not block.startswith("-DOCSTART-") for block in blocks)


def test_whole_cut_missing_and_unreadable_files_are_told_apart(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ner = data / "ner_conll2003"
    train, dev, test = (_sentences(ner / f"eng.{name}") for name in ("train", "testa", "testb"))
    one_more = {"sentences": dev + 1}
    _publish(monkeypatch, train={"sentences": train}, testa=one_more, testb={"sentences": test - 1})
    found = _checks("NER, ELMo")
    assert {kind: check.state for kind, check in found.items()} == {
        "training": "complete",
        "validation": "cut",
        "test": "more than published",
        "word vectors": "there",
        "biLM": "there",
    }
    assert found["validation"].found["sentences"] == dev
    assert found["training"].arms == ["NER, baseline 90.15", "NER, ELMo 92.22"]
    assert found["biLM"].arms == ["NER, ELMo 92.22"]
    assert found["test"].path == str(ner / "eng.testb")
    (ner / "eng.testa").unlink()
    with lzma.open(ner / "eng.testa.xz", "wb") as file:
        file.write(b"x NN O O\n" * 9_999)
    (ner / "eng.testa.xz").write_bytes((ner / "eng.testa.xz").read_bytes()[:-30])
    (ner / "eng.testb").unlink()
    (data / "glove" / "glove.6B.50d.txt.xz").unlink()
    assert cli.main(["study", "paper", "--arm", "NER*", "--check-data"]) == 1
    output, error = capsys.readouterr()
    states = {row.split("│")[2].strip(): row.split("│")[3].strip() for row in output.splitlines() if "│" in row}
    assert states["training"] == "complete"
    assert (states["validation"], states["test"]) == ("cannot be read", "missing")
    assert states["word vectors"] == "missing"
    assert "eng.testa.xz:1: the compressed file is damaged or cut short" in output.splitlines()[-1]
    assert "error: 3 files are missing or cut: " in error


def test_only_what_a_reader_counts_is_compared(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = _checks("SRL, baseline")["training"].found["sentences"]
    counts = {ENGLISH: {"documents": 99, "sentences": sentences}}
    monkeypatch.setattr(data_check, "PUBLISHED", counts)
    assert _checks("SRL, baseline")["training"].state == "complete"
    assert _checks("coreference, baseline")["training"].state == "cut"


def test_a_study_whose_files_are_all_there(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _publish(monkeypatch)
    assert cli.main(["study", "paper", "--arm", "NER, ELMo", "--check-data"]) == 0
    output = capsys.readouterr().out
    assert output.endswith("\n5 files are there; none is cut\n")
    assert not (Path("runs") / "studies" / "paper").exists()


def test_what_is_counted_of_each_task(data: Path) -> None:
    def found(arm: str, kind: str = "training") -> dict[str, int]:
        return dict(_checks(arm)[kind].found)

    trees = (data / "sst5" / "train.txt").read_text(encoding="utf-8").splitlines()
    labels = len({tree[1] for tree in trees})
    assert found("SST-5, baseline") == {"sentences": len(trees), "labels": labels}  # and not the phrases
    pairs = [json.loads(line) for line in (data / "snli" / "snli_1.0_dev.jsonl").read_text().splitlines()]
    gold = [pair["gold_label"] for pair in pairs if pair["gold_label"] != "-"]
    assert found("SNLI, baseline", "validation") == {"pairs": len(gold), "labels": len(set(gold))}
    articles = json.loads(lzma.decompress((data / "squad" / "train-v1.1.json.xz").read_bytes()))["data"]
    questions = sum(len(part["qas"]) for article in articles for part in article["paragraphs"])
    assert found("SQuAD, baseline") == {"questions": questions}
    files = [path for path in (data / ENGLISH).rglob("*") if path.is_file()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    blocks = re.findall(r"(?:^[^#\s].*\n)+", text, re.MULTILINE)
    rows = [line.split() for block in blocks for line in block.splitlines()]
    mentions = sum(row[-1].count("(") for row in rows)
    documents = {"documents": text.count("#begin document"), "sentences": len(blocks), "mentions": mentions}
    assert found("coreference, baseline") == documents
    predicates = sum(row[7] != "-" for row in rows)
    assert found("SRL, baseline") == {"sentences": len(blocks), "predicates": predicates}


def test_the_published_counts() -> None:
    """As their papers have them: by kind of entity, or with the pairs that have no gold label."""

    def counts(name: str, unit: str) -> list[int]:
        return [each[unit] for path, each in PUBLISHED.items() if path.startswith(f"{name}/") and unit in each]

    assert counts("ner_conll2003", "sentences") == [14_041, 3_250, 3_453]
    entities = [(7_140, 3_438, 6_321, 6_600), (1_837, 922, 1_341, 1_842), (1_668, 702, 1_661, 1_617)]
    assert counts("ner_conll2003", "spans") == [sum(kinds) for kinds in entities]
    assert counts("sst5", "sentences") == [8_544, 1_101, 11_855 - 8_544 - 1_101]
    assert counts("snli", "pairs") == [550_152 - 785, 10_000 - 158, 10_000 - 176]
    assert counts("squad", "questions") == [87_599, 10_570]
    assert counts("conll-2012", "documents") == [2_802, 343, 348]
    assert counts("conll-2012", "sentences") == [75_187, 9_603, 9_479]


@pytest.mark.slow
def test_real_data_has_the_published_counts(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_DATA", str(data_folder))
    for arm, kinds in {"NER": "training validation test", "SST-5": "training validation test", "SNLI": "test"}.items():
        found: dict[str, Any] = _checks(f"{arm}, baseline")
        assert {found[kind].state for kind in kinds.split()} == {"complete"}
