"""The core trains, evaluates, predicts and archives without `extras/`, and everything works without any one extra."""

import json
from pathlib import Path

import pytest

from elmo_tasks.extras import EXTRAS
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from tests.deleted_extras import copy_without, problems

# Configs, an input for the predictor of each, and the data that the run is evaluated on.
TASKS = {
    "ner_conll03": ({"text": "Mary Collins joined Boeing."}, "ner_conll2003/eng.testb"),
    "cpu/sst5": ({"text": "A lovely film!"}, "sst5/test.txt"),
    "cpu/snli": ({"premise": "A dog runs.", "hypothesis": "A dog sleeps."}, "snli/snli_1.0_test.jsonl"),
    "cpu/squad": ({"passage": "Mary closed a mill.", "question": "Who closed a mill?"}, "squad/dev-v1.1.json"),
    "cpu/srl_ewt": ({"tokens": ["Mary", "closed", "a", "mill"], "predicates": [1]}, "srl_ewt/ewt.test.gold_conll"),
    "cpu/coref_ontogum": ({"text": "Mary left. She was tired."}, "coref_ontogum/ontogum.test.v4_gold_conll"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample_data(folder, ALL_TASKS, sentences=(16, 8, 8))
    return folder


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_without(tmp_path_factory.mktemp("core"))


def test_the_core_imports_and_explains_itself(core: Path) -> None:
    assert problems([(core, [])]) == [""]


@pytest.mark.parametrize("config", [pytest.param(name, marks=pytest.mark.slow) for name in TASKS])
def test_the_core_does_each_task(config: str, core: Path, data: Path, tmp_path: Path) -> None:
    fields, held_out = TASKS[config]
    (tmp_path / "in.jsonl").write_text(json.dumps(fields))
    run, archive = str(tmp_path / "run"), str(tmp_path / "run.tar.gz")
    short = ["--set", "trainer.num_epochs=1", "--set", "data_loader.batch_size=8"]
    output = tmp_path / "out.jsonl"
    commands = [
        ["train", config, "-s", run, *short],
        ["evaluate", run, str(data / held_out)],
        ["archive", run, archive],
        ["predict", archive, str(tmp_path / "in.jsonl"), "--output", str(output)],
    ]
    assert problems([(core, commands)], ELMO_TASKS_DATA=str(data)) == [""]
    assert len(output.read_text().splitlines()) == 1


@pytest.mark.slow
def test_everything_else_works_without_any_one_extra(tmp_path: Path) -> None:
    found = problems([(copy_without(tmp_path / name, [name]), []) for name in EXTRAS])
    assert {name: problem for name, problem in zip(EXTRAS, found, strict=True) if problem} == {}
