"""Files of predictions for every task, and the files of a run that has trained."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

SENTENCE = ["Mary", "left", "Oslo", "."]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {  # example, right and wrong prediction
    "Tagging": (
        {"tokens": SENTENCE, "tags": ["B-PER", "O", "B-LOC", "O"]},
        {"tags": ["B-PER", "O", "B-LOC", "O"]},
        {"tags": ["B-LOC", "O", "B-LOC", "O"]},
    ),
    "parts of speech": (
        {"tokens": SENTENCE, "tags": ["NNP", "VBD", "NNP", "-LRB-"]},
        {"tags": ["NNP", "VBD", "NNP", "-LRB-"]},
        {"tags": ["NNP", "NNP", "NNP", "-LRB-"]},
    ),
    "Classification": ({"tokens": SENTENCE, "label": "good"}, {"label": "good"}, {"label": "bad"}),
    "TextPairs": (
        {"premise": SENTENCE, "hypothesis": SENTENCE[:2], "label": "entailment"},
        {"label": "entailment"},
        {"label": "neutral"},
    ),
    "Reading": (
        {
            "id": "1", "question": "Who left?", "question_tokens": ["Who", "left", "?"], "passage": "Mary left Oslo.",
            "token_starts": [0, 5, 10, 14], "token_ends": [4, 9, 14, 15], "answers": ["Mary"], "answer_spans": [[0, 0]],
        },
        {"answer": "Mary", "best": []},
        {"answer": "Oslo", "best": []},
    ),
    "SemanticRoles": (
        {"tokens": SENTENCE, "predicate": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "O"], "sentence": 0},
        {"tags": ["B-ARG0", "B-V", "B-ARG1", "O"]},
        {"tags": ["B-ARG1", "B-V", "B-ARG1", "O"]},
    ),
    "Coreference": (
        {"sentences": [SENTENCE, ["She", "left", "it", "."]], "clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]]},
        {"clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]]},
        {"clusters": [[[0, 0], [4, 4], [2, 2]]]},
    ),
}  # fmt: skip


def write_run(
    folder: Path, values: Sequence[float], mixes: Mapping[str, Any] | None = None, *, metric: str = "f1", best: int = 2
) -> None:
    """A run with a value of its metric for each epoch, and with mixes of layers in the best one."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"trainer": {"validation_metric": f"+{metric}"}}))
    records = [
        {
            "epoch": epoch, "training": {"loss": 1.0}, "validation": {metric: value, "loss": 1.0},
            "best": epoch == best, "elmo": mixes or {} if epoch == best else {},
        }
        for epoch, value in enumerate(values, start=1)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))


def write(path: Path, pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Path:
    """Writes pairs of examples and predictions to a file."""
    lines = (json.dumps({"example": example, "prediction": prediction}) for example, prediction in pairs)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def write_case(tmp_path: Path) -> Callable[[str, Sequence[bool]], Path]:
    """A function that writes a file of predictions for a task, of which some are right: `0.jsonl`, `1.jsonl` ..."""

    def write_case(name: str, right: Sequence[bool]) -> Path:
        example, good, bad = CASES[name]
        numbered = [{**example, "sentence": row} if name == "SemanticRoles" else example for row in range(len(right))]
        pairs = [(each, good if is_right else bad) for each, is_right in zip(numbered, right, strict=True)]
        return write(tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl", pairs)

    return write_case
