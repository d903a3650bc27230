"""The core trains, evaluates, predicts and archives without `extras/`, and everything works without any one extra."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elmo_tasks.extras import EXTRAS
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from tests.deleted_extras import copied_package

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
def use_without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    with copied_package(tmp_path_factory.mktemp("copy")) as use:
        yield use


def test_the_core_imports_and_explains_itself(use_without: Callable[..., str]) -> None:
    assert use_without("extras") == ""


@pytest.mark.slow
def test_the_core_does_each_task(use_without: Callable[..., str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_sample_data(data, ALL_TASKS, sentences=(8, 4, 4))
    short = ["--set", "trainer.num_epochs=1", "--set", "data_loader.batch_size=8"]
    commands = []
    for config, (fields, held_out) in TASKS.items():
        folder = tmp_path / config
        folder.mkdir(parents=True)
        (folder / "in.jsonl").write_text(json.dumps(fields))
        run = str(folder / "run")
        commands += [["train", config, "-s", run, *short], ["evaluate", run, str(data / held_out)]]
        if not commands[2:]:  # an archive is the same for all tasks
            archive = str(folder / "run.tar.gz")
            commands, run = [*commands, ["archive", run, archive]], archive
        commands += [["predict", run, str(folder / "in.jsonl"), "--output", str(folder / "out.jsonl")]]
    assert use_without("extras", *commands, ELMO_TASKS_DATA=str(data)) == ""
    assert [len((tmp_path / config / "out.jsonl").read_text().splitlines()) for config in TASKS] == [1] * len(TASKS)


@pytest.mark.slow
def test_everything_else_works_without_any_one_extra(use_without: Callable[..., str]) -> None:
    found = {name: use_without(f"extras/{name}") for name in EXTRAS}
    assert {name: problem for name, problem in found.items() if problem} == {}
