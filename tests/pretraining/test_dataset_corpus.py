"""Data sets of tasks as text for a biLM."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.pretraining.dataset_corpus import DatasetCorpus

PAIRS = [("she sang", "it is"), ("she sang", "she left"), ("it is", "she sang"), ("she left", "it rains")]
ROLES = [("Orla sang", 1), ("Orla sang", 0), ("She left", 1), ("Orla sang", 1)]


@pytest.mark.parametrize(
    ("task", "rows", "documents"),
    [
        (
            "text_pairs",
            [{"premise": premise, "hypothesis": other, "label": "same"} for premise, other in PAIRS],
            [["she sang", "it is"], ["she left"], ["it is"], ["she left", "it rains"]],
        ),
        (
            "semantic_roles",
            [{"tokens": text, "predicate": index, "tags": "O B-V" if index else "B-V O"} for text, index in ROLES],
            [["Orla sang"], ["She left"], ["Orla sang"]],
        ),
        (
            "classification",
            [{"text": text, "label": "good"} for text, _ in ROLES],
            [["Orla sang"], ["She left"], ["Orla sang"]],
        ),
    ],
    ids=["text_pairs", "semantic_roles", "classification"],
)
def test_a_text_that_neighbours_share_is_read_once(
    tmp_path: Path, task: str, rows: list[dict[str, Any]], documents: list[list[str]]
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = {"type": "jsonl", "task": task}
    config = {"dataset_reader": reader, "train_data_path": str(path), "validation_data_path": str(path)}
    corpus = DatasetCorpus.model_validate(config).build()
    tokens, sentences = corpus.training.tokens, corpus.training.sentences
    texts = [" ".join(corpus.types[number] for number in tokens[a:b]) for a, b in itertools.pairwise(sentences)]
    assert [texts[a:b] for a, b in itertools.pairwise(corpus.training.documents)] == documents


def test_a_change_in_any_of_several_files_is_seen(tmp_path: Path) -> None:
    texts = {"a": "she sang", "b": "it rains", "held_out": "she left"}

    def types() -> set[str]:
        for name, text in texts.items():
            (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": text, "label": "good"}) + "\n")
        config = {
            "dataset_reader": {"type": "jsonl", "task": "classification"},
            "train_data_path": str(tmp_path / "[ab].jsonl"),
            "validation_data_path": str(tmp_path / "held_out.jsonl"),
        }
        return set(DatasetCorpus.model_validate(config).build().types)

    assert types() == {"she", "sang", "it", "rains", "left"}
    texts["b"] = "it snows"
    assert types() == {"she", "sang", "it", "snows", "left"}
