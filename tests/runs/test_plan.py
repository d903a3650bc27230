"""Runs that are resumed, extended or begun again: what they go on with, and every way in which they are refused."""

import ast
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.tensor_files import read_tensors, tensor_metadata, write_tensors
from elmo_tasks.files.text import read_lines
from elmo_tasks.runs import load, train
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.training import trainer_config
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.trainer import Trainer
from tests.random_bilm import random_bilm
from tests.runs.small_runs import SmallRun, killed_at
from tests.stopping import Killed, stop_at


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("config.json", "[]", "Input should be an object"),
        ("config.json", "{" * 1000, "Invalid JSON"),
        ("metrics.json", "{}", "the key 'best' is missing; expected the metrics of a run"),
        ("metrics.json", '{"best": {"epoch": "1", "validation": {}}}', "best.epoch: .*; got '1'"),
    ],
)
def test_resuming_with_a_damaged_file_is_one_clear_error(
    name: str, content: str, problem: str, finished: SmallRun
) -> None:
    finished.write(name, content)
    finished.refuses(rf"{name}(:1)?: .*{problem}")


def test_the_weights_of_another_epoch_than_the_best_one_are_not_taken_for_them(finished: SmallRun) -> None:
    """A run may be killed when it has written the weights of a better epoch, but not its state."""
    path, epoch = finished.path / "model.safetensors", finished.json("metrics.json")["best"]["epoch"]
    assert tensor_metadata(path) == {"epoch": str(epoch)}
    write_tensors(path, read_tensors(path), epoch="9")
    finished.remove("metrics.json")
    finished.refuses(rf"model\.safetensors: has the weights of epoch 9; expected those of epoch {epoch}; --force")


def test_a_folder_with_a_run_is_not_overwritten(finished: SmallRun) -> None:
    finished.refuses(r"--resume \(resume=True\) continues it, --force", resume=False)
    finished.refuses("expected `resume`, which continues a run, or `force`, which removes it", force=True)
    finished.refuses(r"these keys differ: model\.dropout, random_seed", "random_seed=9", "model.dropout=0.1")
    results = finished.json("metrics.json")
    assert finished.resume() == results
    assert finished.train("trainer.num_epochs=1", force=True) != results


def test_a_run_does_not_resume_with_another_vocabulary_or_bilm(
    settings: dict[str, Any], run: SmallRun, tmp_path: Path
) -> None:
    original = Path(settings["train_data_path"]).read_text(encoding="utf-8")
    data, bilm = tmp_path / "train.txt", tmp_path / "bilm"
    overrides = [f"train_data_path={data}", f'model.embedder.elmo={{"bilm": "{bilm}"}}']

    def write(text: str, seed: int) -> None:
        data.write_text(text, encoding="utf-8")
        random_bilm(TINY_OPTIONS, seed=seed).save(bilm / "options.json", bilm / "weights.hdf5")

    write(original, 2)
    with killed_at(Trainer, "set_parameters"):
        run.train(*overrides)
    before = run.files()
    write(f"{original}\n\nXyzzy NN I-NP O\n", 2)
    run.remove("data.json")  # which earlier versions did not write
    run.refuses(r"cannot resume with other data: its vocabulary differs in words", *overrides)
    (run.path / "data.json").write_bytes(before["data.json"])
    write(original, 3)
    run.refuses("not the biLM that the run was trained with", *overrides)
    assert run.files() == before
    write(original, 2)
    run.resume(*overrides)
    for name in ("vocabulary.json", "frozen.safetensors", "bilm.json"):
        assert run.files()[name] == before[name]


def test_a_run_resumes_where_a_later_version_has_more_keys(finished: SmallRun) -> None:
    config = finished.json("config.json")
    # As if these keys were new: some of them nested, one of them set to what is not its default.
    del config["evaluate_on_test"], config["trainer"]["grad_clipping"], config["model"]["embedder"]["elmo"]["stateful"]
    finished.write("config.json", config)
    assert finished.resume()
    del config["model"]["embedder"]["words"]["unknown_probability"]
    finished.write("config.json", config)
    finished.refuses(r"these keys differ: model\.embedder\.words\.unknown_probability$")


def test_a_run_resumes_with_the_word_vectors_that_it_began_with(
    settings: dict[str, Any], run: SmallRun, tmp_path: Path
) -> None:
    vectors = tmp_path / "vectors.txt"
    words = [line.split(" ") for _, line in read_lines(settings["model"]["embedder"]["words"]["vectors"])]
    vectors.write_text("\n".join(map(" ".join, words)), encoding="utf-8")
    override = f"model.embedder.words.vectors={vectors}"
    expected = SmallRun(tmp_path / "whole", run.config).train(override)
    with killed_at(Trainer, "set_parameters"):
        run.train(override)
    others = [" ".join([word, *(str(3 - float(number)) for number in numbers)]) for word, *numbers in words]
    vectors.write_text("\n".join(others), encoding="utf-8")
    assert run.resume(override)["test"] == expected["test"]


def test_a_run_resumes_in_the_precision_that_it_began_with(run: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    faster = "bfloat16"  # on the machine where it begins

    def chosen(precision: str, device: torch.device) -> torch.dtype:
        return getattr(torch, faster if precision == "auto" else precision)

    monkeypatch.setattr(trainer_config, "product_type", chosen)
    with killed_at(Trainer, "set_parameters"):
        run.train("trainer.precision=auto")
    precisions: list[str] = []

    def noted(config: Any, folder: Any = None) -> Any:
        precisions.append(config.precision)
        return start_accelerator(config, folder)

    monkeypatch.setattr(train, "start_accelerator", noted)
    faster = "float32"  # on the machine where it goes on
    run.resume("trainer.precision=auto")
    assert precisions == ["bfloat16"]
    assert run.json("config.json")["trainer"]["precision"] == "auto"
    assert load.load_run(run.path).config.trainer.precision == "bfloat16"


OTHER_DATA: dict[str, Callable[[str], str]] = {
    "other words": lambda text: text.replace("e", "a", 1),
    "other tags": lambda text: text.replace("B-LOC", "O").replace("I-LOC", "O"),
    "another order": lambda text: "\n\n".join(reversed(text.strip().split("\n\n"))) + "\n",
    "one sentence less": lambda text: text.strip().rpartition("\n\n")[0] + "\n",
    "blank lines": lambda text: text.replace("\n\n", "\n\n\n"),  # the same content
}


@pytest.mark.parametrize(
    ("split", "change"),
    [*(("training", change) for change in OTHER_DATA), ("validation", "other tags"), ("test", "other words")],
)
def test_a_run_resumes_only_with_the_same_data(
    split: str, change: str, settings: dict[str, Any], stopped: SmallRun, tmp_path: Path
) -> None:
    key, data = f"{split.removesuffix('ing')}_data_path", tmp_path / "data.txt"
    original = Path(settings[key]).read_text(encoding="utf-8")
    data.write_text(OTHER_DATA[change](original), encoding="utf-8")
    assert data.read_text(encoding="utf-8") != original
    if change == "blank lines":
        assert stopped.resume(f"{key}={data}")
        assert stopped.json("config.json")[key] == str(data)
    else:
        problem = f"cannot resume with other {split} data: expected the same content as when"
        stopped.refuses(problem, f"{key}={data}")


def test_what_has_moved_can_be_resumed(
    settings: dict[str, Any], trained: SmallRun, sample_folder: Path, tmp_path: Path, killed: SmallRun
) -> None:
    shutil.copytree(sample_folder, moved := tmp_path / "moved")
    run = SmallRun(tmp_path / "run", ast.literal_eval(str(settings).replace(str(sample_folder), str(moved))))
    expected = trained.json("metrics.json")
    for earlier in (killed, trained):  # a finished run only takes over the paths
        shutil.copytree(earlier.path, run.path)
        results = run.resume()
        assert (results["test"], results["best"]["epoch"]) == (expected["test"], expected["best"]["epoch"])
        assert str(sample_folder) not in str(run.json("config.json")) + str(run.json("bilm.json"))
        assert run.json("bilm.json")["weights"] == str(moved / "bilm" / "weights.hdf5")
        shutil.rmtree(run.path)

    shutil.copytree(killed.path, run.path)
    run.remove("data.json")  # as of an earlier version: nothing says that the content is the same
    run.refuses(r"these keys differ: model\.embedder\.elmo\.options, .*, train_data_path, vali")
    assert SmallRun(run.path, settings).resume()


def test_other_word_vectors_are_not_taken_for_moved_ones(
    settings: dict[str, Any], stopped: SmallRun, tmp_path: Path
) -> None:
    vectors = [line for _, line in read_lines(settings["model"]["embedder"]["words"]["vectors"])]
    (tmp_path / "other.txt").write_text("\n".join(vectors).replace("0.1", "0.2"), encoding="utf-8")
    for path in (tmp_path / "other.txt", "null"):
        stopped.refuses("cannot resume with other word vectors: ", f"model.embedder.words.vectors={path}")


def test_examples_in_memory_are_compared_by_content(run: SmallRun) -> None:
    examples = [{"tokens": ["Mary", "left", "Oslo"], "tags": ["B-PER", "O", "B-LOC"]}] * 3
    noted = [{**example, "note": "a column that is not read"} for example in examples]
    overrides = ["test_data_path=null", NOT_SPANNING]
    given = {"train_data_path": examples, "validation_data_path": examples}
    run.train(*overrides, "trainer.num_epochs=1", datasets=given)
    run.resume(*overrides, datasets=given | {"train_data_path": noted})
    other = given | {"validation_data_path": examples[1:]}
    run.refuses("cannot resume with other validation data: ", *overrides, datasets=other)


NOT_SPANNING = 'trainer.learning_rate_scheduler={"type": "exponential", "gamma": 0.9}'


def test_a_run_keeps_its_balanced_weights_and_a_run_from_it_has_its_own(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    model = {**settings["model"], "type": "simple_tagger", "tag_scheme": "BIOUL", "class_weights": "balanced"}
    values = {**settings, "model": model, "data_loader": {"batch_size": 4, "sampling": "balanced"}}
    run, whole, after = (SmallRun(tmp_path / name, values) for name in ("run", "whole", "after"))
    with killed_at(Trainer, "set_parameters"):
        run.train()
    before = run.files()
    results = run.resume()
    whole.train()
    assert before["frozen.safetensors"] == run.files()["frozen.safetensors"] == whole.files()["frozen.safetensors"]
    assert run.files()["model.safetensors"] == whole.files()["model.safetensors"]

    def weights(of: SmallRun) -> dict[str, float]:
        loaded = load.load_run(of.path)
        values = loaded.model.get_buffer("class_weights").tolist()
        return dict(zip(loaded.vocabulary.labels["tags"], values, strict=True))

    assert weights(run)["O"] < 0.3 < 1 < weights(run)["U-PER"]
    assert evaluate(run.path, settings["test_data_path"]) == pytest.approx(results["test"], abs=1e-4)
    after.train('model.class_weights={"O": 0.25}', from_run=run.path)
    assert set(weights(after).values()) == {0.25, 1}


def test_an_extended_run_that_is_killed_goes_on(run: SmallRun) -> None:
    longer = (NOT_SPANNING, "trainer.num_epochs=3")
    run.train(NOT_SPANNING, "trainer.num_epochs=1")
    with killed_at(Trainer, "fit"):
        run.resume(*longer)
    assert "metrics.json" not in run.files()
    run.resume(*longer)
    assert len(run.records()) == 3


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (("trainer.num_epochs=3",), r"num_epochs cannot change: the learning rates of 'linear_decay' depend on it"),
        (("trainer.num_epochs=3", "model.dropout=0.1"), r"these keys differ: model\.dropout$"),
        ((NOT_SPANNING, "trainer.num_epochs=3"), r"these keys differ: trainer\.learning_rate_scheduler"),
        (("trainer.num_epochs=2", "data_loader.batch_size=4"), r"these keys differ: data_loader\.batch_size$"),
        (("trainer.num_epochs=2", "train_share.share=0.5"), r"these keys differ: train_share$"),
    ],
)
def test_what_would_be_another_training_does_not_go_on(
    overrides: tuple[str, ...], problem: str, finished: SmallRun
) -> None:
    finished.refuses(problem, *overrides)


def test_fewer_epochs_than_are_done_and_a_lost_state_are_refused(run: SmallRun) -> None:
    settings = (NOT_SPANNING, "trainer.checkpoint_every_steps=1")
    with stop_at(9), pytest.raises(Killed):  # in the second epoch
        run.train(*settings)
    problem = r"2 epochs have begun; expected trainer\.num_epochs=2 or more"
    run.refuses(problem, *settings, "trainer.num_epochs=1")
    run.resume(*settings)
    run.refuses(problem, *settings, "trainer.num_epochs=1")
    run.remove("training.pt")
    problem = r"finished before, and there is no training\.pt to continue from; .* --from"
    run.refuses(problem, *settings, "trainer.num_epochs=3")


def test_resuming_without_a_state_says_that_it_starts_again(
    finished: SmallRun, caplog: pytest.LogCaptureFixture
) -> None:
    finished.remove("training.pt", "metrics.json", "metrics.jsonl")
    finished.resume()
    assert "no state was saved there to resume from; the training starts again from step 0" in caplog.text


FAILING = {
    "no data": ["train_data_path=nowhere.txt"],
    # In bfloat16, so that no layers are there from other tests.
    "a full cache": [
        "model.embedder.elmo.precision=bfloat16",
        'model.embedder.elmo.layer_cache={"max_gigabytes": 1e-9}',
    ],
}


@pytest.mark.parametrize("fault", FAILING.values(), ids=FAILING.keys())
def test_a_start_that_fails_leaves_no_run_and_removes_none(fault: list[str], run: SmallRun, trained: SmallRun) -> None:
    run.refuses(".", *fault, resume=False, error=ElmoTasksError)
    assert not run.path.exists()
    shutil.copytree(trained.path, run.path)
    run.refuses(".", *fault, resume=False, force=True, error=ElmoTasksError)
