"""The configs for small data of one's own: each learns a handful of rows in the files that it names."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.config.packaged import packaged_configs
from elmo_tasks.data_readers.rows import ROW_TASKS
from elmo_tasks.runs import train
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.text.vocabulary import Counts
from elmo_tasks.training.batching import BatchLoader

SMALL = sorted(name for name in packaged_configs() if name.startswith("small/"))

SENTENCES = (
    ("Tavo gave the key to Orla", 1, "B-ARG0 B-V B-ARG1 I-ARG1 B-ARG2 I-ARG2"),
    ("The council closed the old mill", 2, "B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 I-ARG1"),
    ("Yesterday a dog bit Mary", 3, "B-ARGM-TMP B-ARG0 I-ARG0 B-V B-ARG1"),
    ("She sings", 1, "B-ARG0 B-V"),
    ("The window broke at noon", 2, "B-ARG1 I-ARG1 B-V B-ARGM-TMP I-ARGM-TMP"),
)
PASSAGE = "Mary Collins opened a bakery in Harvik in 1989. Her brother Tavo sold it to a baker from Ostlund last year."
QUESTIONS = (
    ("Who opened a bakery?", "Mary Collins"),
    ("Where is the bakery?", "Harvik"),
    ("When was it opened?", "1989"),
    ("Who is the brother of Mary?", "Tavo"),
    ("Where is the new baker from?", "Ostlund"),
)
DOCUMENTS: Sequence[Any] = (
    (
        ["Mary lost her key .", "She found it in the garden of the school ."],
        [[[0, 0], [2, 2], [5, 5]], [[2, 3], [7, 7]]],
    ),
    (
        ["Tavo has a boat .", "He calls it Gull and paints it blue every spring ."],
        [[[0, 0], [5, 5]], [[2, 3], [7, 7], [11, 11]]],
    ),
    (["The judges met .", "They said nothing ."], [[[0, 1], [4, 4]]]),
)
ROWS: dict[str, list[dict[str, Any]]] = {
    "small/semantic_roles": [{"tokens": tokens, "predicate": verb, "tags": tags} for tokens, verb, tags in SENTENCES],
    "small/reading": [
        {"question": question, "passage": PASSAGE, "answers": [{"text": text, "answer_start": PASSAGE.index(text)}]}
        for question, text in QUESTIONS
    ],
    "small/coreference": [
        {"sentences": [sentence.split() for sentence in sentences], "clusters": clusters}
        for sentences, clusters in DOCUMENTS
    ],
    "small/classification": [
        {"text": "What a lovely film!", "label": "good"},
        {"text": "Cold soup, rude staff.", "label": "bad"},
        {"text": "Warm, bright and friendly.", "label": "good"},
        {"text": "It broke on the first day.", "label": "bad"},
    ],
    "small/multi_label": [
        {"text": "What a lovely film!", "labels": "praise"},
        {"text": "Cold soup, rude staff.", "labels": "food, staff"},
        {"text": "Warm, friendly staff.", "labels": "praise, staff"},
        {"text": "It broke on the first day.", "labels": ""},
    ],
    "small/regression": [
        {"text": "What a lovely film!", "score": 9.5},
        {"text": "Cold soup, rude staff.", "score": 1},
        {"text": "Warm, bright and friendly.", "score": 8},
        {"text": "It broke on the first day.", "score": 2.5},
    ],
    "small/pair_regression": [
        {"premise": "A dog runs on a beach.", "hypothesis": "A dog is running.", "score": 4.5},
        {"premise": "A dog runs on a beach.", "hypothesis": "The tax was raised.", "score": 0},
        {"premise": "Two men play chess.", "hypothesis": "There is a game.", "score": 3},
        {"premise": "Two men play chess.", "hypothesis": "The men are swimming.", "score": 1},
    ],
    "small/text_pairs": [
        {"premise": "A dog runs on a beach.", "hypothesis": "An animal is outdoors.", "label": "yes"},
        {"premise": "A dog runs on a beach.", "hypothesis": "The dog is asleep.", "label": "no"},
        {"premise": "Two men play chess.", "hypothesis": "There is a game.", "label": "yes"},
        {"premise": "Two men play chess.", "hypothesis": "The men are swimming.", "label": "no"},
    ],
    "small/tagging": [
        {"tokens": "Mary Collins left Oslo .", "tags": "B-PER I-PER O B-LOC O"},
        {"tokens": "Rain fell in Harvik .", "tags": "O O O B-LOC O"},
        {"tokens": "Nobody asked Tavo .", "tags": "O O B-PER O"},
    ],
}


def as_file(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """The rows as the config's file has them."""
    if name == "small/tagging":
        sentences = (zip(row["tokens"].split(), row["tags"].split(), strict=True) for row in rows)
        return "tokens,tags\n" + "\n".join("".join(f"{token},{tag}\n" for token, tag in each) for each in sentences)
    if str(load_config(name, ExperimentConfig).train_data_path).endswith(".csv"):
        lines = [list(rows[0]), *(row.values() for row in rows)]
        return "".join(",".join(json.dumps(cell) for cell in line) + "\n" for line in lines)
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_task_of_own_data_has_one() -> None:
    assert [f"small/{name}" for name in sorted(ROW_TASKS)] == SMALL == sorted(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_handful_of_rows_is_learned_by_heart(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(name, ExperimentConfig)
    for path in (config.train_data_path, config.validation_data_path):
        assert isinstance(path, str)
        Path(path).write_text(as_file(name, ROWS[name]), encoding="utf-8")
    steps = {"small/coreference": 300, "small/reading": 200}.get(name, 100)
    results = train.train(name, "run", overrides=["trainer.num_epochs=1", f"data_loader.min_batches={steps}"])
    assert results["best"]["validation"][config.model.task.build_metric().main] > 90


@pytest.mark.parametrize("size", [40, 600, 5000])
def test_there_are_enough_steps_for_any_small_size_and_not_too_many(size: int) -> None:
    config = load_config("small/regression", ExperimentConfig)
    task = config.dataset_reader.task
    rows = [{"tokens": ["word"], "score": 1.0}] * size
    data = config.dataset_reader.build().read(rows)
    loader = BatchLoader(config.data_loader, data, task, config.vocabulary.build(Counts.of(task, data), []))
    assert 1000 <= config.trainer.num_epochs * loader.num_steps(0) <= 15_000
