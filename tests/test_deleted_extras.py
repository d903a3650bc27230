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
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_without(tmp_path_factory.mktemp("core"))


def test_the_core_imports_and_explains_itself(core: Path) -> None:
    assert problems([(core, [])]) == [""]


@pytest.mark.slow
def test_the_core_does_each_task(core: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_sample_data(data, ALL_TASKS, sentences=(8, 4, 4))
    short = ["--set", "trainer.num_epochs=1", "--set", "data_loader.batch_size=8"]
    tasks = []
    for config, (fields, held_out) in TASKS.items():
        folder = tmp_path / config
        folder.mkdir(parents=True)
        (folder / "in.jsonl").write_text(json.dumps(fields))
        run, archive = str(folder / "run"), str(folder / "run.tar.gz")
        commands = [
            ["train", config, "-s", run, *short],
            ["evaluate", run, str(data / held_out)],
            ["archive", run, archive],
            ["predict", archive, str(folder / "in.jsonl"), "--output", str(folder / "out.jsonl")],
        ]
        tasks.append((core, commands))
    assert dict(zip(TASKS, problems(tasks, ELMO_TASKS_DATA=str(data)), strict=True)) == dict.fromkeys(TASKS, "")
    assert [len((tmp_path / config / "out.jsonl").read_text().splitlines()) for config in TASKS] == [1] * len(TASKS)


@pytest.mark.slow
def test_everything_else_works_without_any_one_extra(tmp_path: Path) -> None:
    found = problems([(copy_without(tmp_path / name, [name]), []) for name in EXTRAS])
    assert {name: problem for name, problem in zip(EXTRAS, found, strict=True) if problem} == {}
