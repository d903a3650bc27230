"""The settings of readers: the task that they mean, and which are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pydantic
import pytest

from elmo_tasks.config import describe, load_config
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ConfigError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, Task, TextPairs
from tests.data_readers.readers import (
    CONLLU,
    LINES,
    NER,
    PREDICATES,
    SNLI,
    SQUAD,
    SST,
    STARS,
    TABLE,
    TEXTS,
    Settings,
    build,
    write,
)


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        (NER, Tagging("BIOUL")),
        (NER | {"tag_scheme": "IOB2"}, Tagging("IOB2")),
        (NER | {"tag_scheme": None}, Tagging()),
        (PREDICATES, Tagging("IOB2", single_tokens=True)),
        (TEXTS, Classification()),
        (TEXTS | {"task": "text_pairs"}, TextPairs()),
        (TABLE, Tagging()),
        (TABLE | {"tag_scheme": "BMES"}, Tagging("BMES")),
        (LINES | {"type": "hub", "task": "reading"}, Reading()),
        (LINES | {"type": "hub", "task": "reading", "no_answer": True}, Reading(no_answer=True)),
        (LINES | {"type": "hub", "task": "semantic_roles"}, SemanticRoles()),
        (LINES | {"type": "hub", "task": "coreference"}, Coreference()),
    ],
)
def test_the_task_of_a_reader(settings: Settings, task: Task) -> None:
    assert build(settings).task == build(settings).config.task == task


def test_settings_are_described_and_named_where_another_reader_does_not_fit() -> None:
    assert 'task: "classification"' in describe(build(STARS).config)
    assert build(TABLE).config.can_read(Classification())
    assert not build(TABLE).config.can_read(Reading())  # only with JSON or the hub


def test_columns_that_may_be_missing() -> None:
    assert Coreference.optional == {"document", "genre", "speakers"}
    assert Reading.optional == {"id"}
    assert Classification.optional == set()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (TEXTS | {"task": "taging"}, "task: expected one of .*, got \"taging\". Did you mean 'tagging'?"),
        (TABLE | {"columns": {}}, "without a header row they have numbers; expected those of tokens, tags"),
        (TABLE | {"columns": {"text": 0}}, "'text' is not a column of this task; expected: tokens, tags"),
        (LINES | {"task": "coreference", "columns": {"text": "a"}},
         "'text' is not a column of this task; expected: sentences, clusters; possible: speakers, genre, document"),
        (TEXTS | {"tag_scheme": "IOB2"}, "tag_scheme is for the task 'tagging'"),
        (TABLE | {"no_label": ["-"]}, "no_label is for the tasks 'classification' and 'text_pairs'"),
        (TEXTS | {"no_answer": True}, "no_answer is for the task 'reading'"),
        (TEXTS | {"tokenizer": "unicod"}, "tokenizer: expected one of .* Did you mean 'unicode'?"),
        (NER | {"columns": [1, 1]}, "words and tags cannot both be in column 1"),
        (NER | {"tag_scheme": "BILOU"}, "tag_scheme"),
        (SST | {"granularity": 3}, "granularity"),
        (SST | {"min_length": 0}, "min_length"),
        (SNLI | {"tokenized": "yes"}, "tokenized"),
        (SNLI | {"columns": ["a", "b"]}, "columns"),
        (SNLI | {"semeval_set": "DEV"}, "semeval_set"),
        (SQUAD | {"share": 0.0}, "share"),
        (SQUAD | {"share": 1.1}, "share"),
        ({"type": "predicates", "source": CONLLU}, "unknown type"),
    ],
)  # fmt: skip
def test_settings(settings: Settings, expected: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", json.dumps({"dataset_reader": settings}))
    with pytest.raises(ConfigError, match=expected):
        load_config(path, ExperimentConfig)
    with pytest.raises(pydantic.ValidationError):
        DatasetReaderConfig.model_validate_json(json.dumps(settings))
