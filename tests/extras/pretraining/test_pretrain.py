"""Pretraining as a whole: it learns, resumes, fine-tunes, and what it writes can be read."""

import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.elmo import TINY_OPTIONS, BiLM
from elmo_tasks.elmo.options import PUBLISHED_OPTIONS, LexiconOptions
from elmo_tasks.errors import ConfigError, DataError, ElmoTasksError, RunError, WeightsError
from elmo_tasks.extras.pretraining.corpus import Corpus
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.pretraining.pretrain import PretrainingFolder, perplexity_of_text, pretrain
from elmo_tasks.extras.pretraining.pretraining_config import PretrainingConfig
from elmo_tasks.extras.weights.many_langs import NEEDED_CHARACTERS, NEEDED_WORDS, as_bytes
from elmo_tasks.files.locks import locked
from elmo_tasks.files.tensor_files import read_state
from elmo_tasks.text.tokenizers import TREEBANK, WhitespaceTokenizer
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.optimizers import Adagrad
from tests.extras.pretraining.conftest import write_config
from tests.stopping import CtrlC, Killed, run_as_two, run_here, stop_at


def weights(folder: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    with h5py.File(folder / "weights.hdf5") as file:
        file.visititems(lambda name, item: found.update({name: item[...]}) if isinstance(item, h5py.Dataset) else None)
    return found


def assert_same_weights(one: Path, other: Path) -> None:
    """In the files of the biLM, and in the states of the trainings."""
    for name, values in weights(one).items():
        assert np.array_equal(values, weights(other)[name]), name
    states = [read_state(folder / "training.pt")["parameters"] for folder in (one, other)]
    assert all(torch.equal(left, right) for left, right in zip(*states, strict=True))


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def prepared(config_file: Path, *overrides: str) -> Corpus:
    """The corpus of the config's text."""
    return load_config(config_file, PretrainingConfig, overrides).corpus.build()


class Whole(NamedTuple):
    """A pretraining that was not stopped."""

    folder: Path
    results: dict[str, Any]
    plan: Mapping[str, str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Not to be changed. Its config is `config_file`, its text another file with the same content."""
    folder = tmp_path_factory.mktemp("whole")
    plans: list[Mapping[str, str]] = []
    results = pretrain(write_config(folder), folder / "run", announce=plans.append)
    return Whole(folder / "run", results, plans[0])


@pytest.fixture
def finished(whole: Whole, tmp_path: Path) -> Path:
    """A copy of it, as if it had been stopped before it wrote its results."""
    folder = Path(shutil.copytree(whole.folder, tmp_path / "finished"))
    (folder / "results.json").unlink()
    return folder


def test_it_learns_from_context(whole: Whole, config_file: Path) -> None:
    run, results, plan = whole
    # Of eleven or twelve words only the animal and its whereabouts are open: 5 and 4 choices, not some 20.
    assert results["held_out"]["mean"] < 0.25 * results["held_out_unigram"]
    assert results["held_out"]["forward"] < 3
    assert results["held_out"]["backward"] < 3
    folder, steps, log = PretrainingFolder(run), int(plan["steps"]), records(run)
    assert [record["step"] for record in log] == [*range(30, steps, 30), steps]
    assert log[-1]["held_out"]["mean"] < log[0]["held_out"]["mean"]
    assert json.loads(folder.results.read_text()) == results
    assert log[-1]["targets"] == results["trained_targets"] == steps * 8 * 16
    model = LanguageModel.load(run).eval()
    assert results["vocabulary"] == len(model.vocabulary)
    sentence = ["the", "lion", "roared", "."]
    written = BiLM.load(run).layers([sentence]).layers
    assert torch.equal(written, model.bilm.layers([sentence]).layers)
    training = prepared(config_file).training
    assert results["training_targets"] == len(training.tokens) + len(training.sentences) - 1
    seconds = read_state(folder.training_state)["progress"]["seconds"]
    assert results["trained_hours"] == round(seconds / 3600, 3)
    assert 0 < seconds - log[-1]["seconds"] + 0.05 < 0.1


def test_by_default_it_is_evaluated_twenty_times(config_file: Path, tmp_path: Path) -> None:
    plans: list[Mapping[str, str]] = []
    overrides = ["trainer.evaluate_every_steps=null", "trainer.batch_size=4", "trainer.unroll_steps=4"]
    overrides += ["trainer.num_epochs=0.18", "trainer.evaluation_tokens=20"]
    pretrain(config_file, tmp_path / "run", overrides=overrides, announce=plans.append)
    steps = int(plans[0]["steps"])
    assert 40 < steps < 60
    log = records(tmp_path / "run")
    assert [record["step"] for record in log] == [*range(2, steps, 2), steps]
    held_out = prepared(config_file).held_out
    assert {record["held_out"]["targets"] for record in log[:-1]} == {held_out.sentences[1] + 1}  # with its end
    assert log[-1]["held_out"]["targets"] == len(held_out.tokens) + len(held_out.sentences) - 1
    assert [log[0]["learning_rate"], log[-1]["learning_rate"]] == pytest.approx([0.02 * 3 / 6, 0.0])  # warmup: 5 steps
    overrides = ["trainer.evaluate_every_steps=null", "trainer.num_epochs=0.001", "trainer.unroll_steps=1"]
    pretrain(config_file, tmp_path / "short", overrides=overrides, announce=plans.append)
    assert plans[1]["steps"] == "1"
    assert len(records(tmp_path / "short")) == 1


class Stopping(Callback):
    """Stops a training after a step."""

    def __init__(self, after: int) -> None:
        self._after = after

    def on_step(self, progress: Progress, loss: float) -> None:
        if progress.step == self._after:
            self.trainer.stop()


def test_a_callback_that_stops_it_has_it_evaluated_on_all_held_out_text(
    config_file: Path, tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_tasks.extras.pretraining.pretrain._STEPS_TRIED", 0)  # to estimate the time
    results = pretrain(config_file, tmp_path / "run", callbacks=[Stopping(after=33)])
    log = records(tmp_path / "run")
    assert [record["step"] for record in log] == [30, 33]
    assert log[0]["training_loss"] == records(whole.folder)[0]["training_loss"]  # which the estimate does not affect
    held_out = prepared(config_file).held_out
    assert results["held_out"]["targets"] == len(held_out.tokens) + len(held_out.sentences) - 1
    assert results["trained_targets"] == 33 * 8 * 16


def test_the_plan_says_what_there_is_and_how_long_it_takes(
    config_file: Path, text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fastest(precision: str, device: torch.device) -> torch.dtype:
        assert (precision, device.type) == ("auto", "cpu")
        return torch.bfloat16

    module = "elmo_tasks.extras.pretraining.pretrain"
    monkeypatch.setattr(f"{module}.product_type", fastest)
    times = iter([0.0, 10.0, 0.0, 2.0, 0.0, 4.0, 0.0, 8.0])  # the fastest of the steps that are tried counts: 2 seconds
    monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=lambda: next(times)))
    # The other processes' seconds; all wait for the slowest one.
    monkeypatch.setattr(f"{module}.gather_object", lambda own: [1.0, 2 * own[0], *own])
    seconds = 4.0
    with text_file.open("a") as file:
        file.write("\nonce\n" * 5)
    source = tmp_path / "config.jsonnet"
    source.write_text(f"(import '{config_file}') + {{ corpus+: {{ paths: [std.extVar('TEXT')] }} }}")
    overrides = ["trainer.precision=auto", "trainer.num_epochs=1000", "vocabulary_size=5", "corpus.held_out=0.2"]
    overrides.append("bilm=tiny")
    variables = {"TEXT": str(text_file)}
    plans: list[Mapping[str, str]] = []
    pretrain(source, tmp_path / "run", overrides=overrides, variables=variables, dry_run=True, announce=plans.append)

    corpus = prepared(config_file, "corpus.held_out=0.2")
    num_tokens, slots = len(corpus.training.tokens), len(corpus.training.tokens) + len(corpus.training.sentences) - 1
    steps = 1000 * (slots // 128)
    unknown = 100 * (num_tokens - corpus.counts[:2].sum()) / num_tokens
    parameters = sum(each.numel() for each in BiLM(TINY_OPTIONS).parameters()) + 5 * (
        TINY_OPTIONS.lstm.projection_dim + 1
    )
    (found,) = plans
    assert found == {
        "corpus": str(corpus.folder),
        "tokens": f"{num_tokens:,} ({len(corpus.types)} distinct), {len(corpus.held_out.tokens):,} held out",
        "vocabulary": f"5 words; {unknown:.2f} % of the tokens are not among them",
        "parameters": f"{parameters:,}, products in bfloat16",
        "steps": f"{steps:,}",
        "estimated time": f"{steps * seconds / 3600:.1f} hours, {128 / seconds:.0f} tokens/s",
    }


def assert_same_training(run: Path, results: dict[str, Any], whole: Whole) -> None:
    assert results["held_out"] == whole.results["held_out"]
    assert_same_weights(whole.folder, run)
    logs = [[(line["step"], line["training_loss"]) for line in records(folder)] for folder in (whole.folder, run)]
    assert logs[0] == logs[1]


def test_a_killed_training_ends_with_the_same_weights(config_file: Path, tmp_path: Path, whole: Whole) -> None:
    run = tmp_path / "run"
    for stop, files in ((5, False), (37, True)):
        with stop_at(stop), pytest.raises(Killed):
            pretrain(config_file, run, resume=stop > 5)
        assert LanguageModel.is_in_folder(run) is files  # as it was evaluated last
    assert read_state(run / "training.pt")["progress"]["step"] == 30
    with pytest.raises(RunError, match=r"--resume \(resume=True\) continues it"):
        pretrain(config_file, run)
    resumed = pretrain(config_file, run, resume=True)
    assert_same_training(run, resumed, whole)
    assert pretrain(config_file, run, resume=True) == resumed


def test_the_words_to_predict_can_be_a_given_list(config_file: Path, tmp_path: Path) -> None:
    words = ["<S>", "</S>", "<UNK>", "dog", "barked", "unicorn"]
    file = tmp_path / "words.txt"
    file.write_text("".join(f"{word}\n" for word in words))
    overrides = ["trainer.num_epochs=0.1", f"corpus.vocabulary={file}"]
    pretrain(config_file, tmp_path / "run", overrides=overrides)
    assert (tmp_path / "run" / "vocabulary.txt").read_text().split() == words
    (tmp_path / "run" / "results.json").unlink()
    moved = file.rename(tmp_path / "moved.txt")
    overrides[-1] = f"corpus.vocabulary={moved}"
    assert pretrain(config_file, tmp_path / "run", overrides=overrides, resume=True)
    (tmp_path / "run" / "results.json").unlink()
    moved.write_text(moved.read_text().replace("dog", "cat"))
    with pytest.raises(RunError, match=r"other text: expected the vocabulary that the run began with"):
        pretrain(config_file, tmp_path / "run", overrides=overrides, resume=True)


def test_keys_of_bilm_tf_are_said_to_have_no_effect(
    config_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pretrain(config_file, tmp_path / "run", overrides=["bilm.n_epochs=10", "bilm.lstm.n_layer=3"], dry_run=True)
    assert caplog.text.count("bilm: these keys have no effect: n_epochs, lstm.n_layer; the config's keys") == 1


@pytest.mark.parametrize("size", ["medium", "original"])
def test_the_published_recipes(size: str) -> None:
    config = load_config(f"bilm/{size}", PretrainingConfig, (), {"ELMO_TASKS_DATA": "data"})
    assert config.options() == PUBLISHED_OPTIONS[size]
    assert config.corpus.vocabulary == "data/lm_1b/vocabulary.txt"
    # The loss of bilm-tf is 20 times as large: the same steps need its sums of squares and its norm for 1.
    steps = config.trainer.unroll_steps
    optimizer = config.trainer.optimizer
    assert isinstance(optimizer, Adagrad)
    assert optimizer.initial_accumulator_value * steps**2 == pytest.approx(1)
    assert config.trainer.grad_norm == pytest.approx(10 / steps)


def test_a_schedule_of_epochs_is_refused(config_file: Path, tmp_path: Path) -> None:
    schedule = 'trainer.learning_rate_scheduler={"type": "exponential", "gamma": 0.5}'
    with pytest.raises(
        ConfigError, match=r"does not have; expected (?!.*(exponential|plateau)).*constant, cosine_decay, linear_decay"
    ):
        pretrain(config_file, tmp_path / "run", overrides=[schedule])


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_saves_the_state(config_file: Path, tmp_path: Path, whole: Whole) -> None:
    run = tmp_path / "run"
    for step in (3, 30):  # after the last one comes an evaluation
        with pytest.raises(KeyboardInterrupt):
            pretrain(config_file, run, callbacks=[CtrlC(step=step)], resume=step > 3)
        assert read_state(run / "training.pt")["progress"]["step"] == step
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_same_training(run, pretrain(config_file, run, resume=True), whole)


def test_text_that_has_moved_can_be_resumed_and_other_text_not(
    config_file: Path, text_file: Path, whole: Whole, finished: Path
) -> None:
    with pytest.raises(RunError, match=r"these keys differ: dropout"):
        pretrain(config_file, finished, overrides=["dropout=0.4"], resume=True)
    for _ in range(2):  # once as a run that has finished
        results = pretrain(config_file, finished, resume=True)
        assert results["held_out"] == whole.results["held_out"]
        assert json.loads((finished / "config.json").read_text())["corpus"]["paths"] == [str(text_file)]
    (finished / "results.json").unlink()
    original = text_file.read_text()
    text_file.write_text(original.replace("hill", "hall"))
    with pytest.raises(RunError, match=r"other text: expected the corpus and the vocabulary that the run began with"):
        pretrain(config_file, finished, resume=True)
    (finished / "text.json").unlink()  # begun by a version without this record
    text_file.write_text(original)
    assert pretrain(config_file, finished, resume=True)
    assert not (finished / "text.json").exists()  # resuming is not a new beginning


def test_resuming_repeats_no_line_of_the_log(
    config_file: Path, tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, overrides = tmp_path / "run", ["trainer.num_epochs=0.5", "trainer.evaluation_tokens=20"]

    def tune(resume: bool) -> dict[str, Any]:
        return pretrain(config_file, run, overrides=overrides, start_from=whole.folder, resume=resume)

    with stop_at(3), pytest.raises(Killed):  # before the first checkpoint but that of the beginning
        tune(resume=False)
    before = records(run)
    assert [record["step"] for record in before] == [0]
    with monkeypatch.context() as patched:  # after the last evaluation
        patched.setattr("elmo_tasks.extras.pretraining.pretrain._results", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tune(resume=True)
    log = records(run)
    assert log[0] == before[0]
    results = tune(resume=True)
    assert records(run) == log
    assert results["before"] == before[0]["held_out"]
    assert results["before"]["mean"] == pytest.approx(whole.results["held_out"]["mean"], rel=1e-5)
    assert results["held_out"] == log[-1]["held_out"]
    assert results["held_out"]["mean"] < 1.5 * whole.results["held_out"]["mean"]
    assert LanguageModel.load(run).vocabulary.words == LanguageModel.load(whole.folder).vocabulary.words
    assert json.loads((run / "config.json").read_text())["from"] == str(whole.folder)
    with pytest.raises(RunError, match="cannot resume with another config; these keys differ: from"):
        pretrain(config_file, run, overrides=overrides, resume=True)


def test_a_folder_that_another_process_writes_to_is_refused(config_file: Path, tmp_path: Path) -> None:
    with locked(tmp_path / "run"):
        with pytest.raises(RunError, match="in use by process"):
            pretrain(config_file, tmp_path / "run", force=True)
        assert pretrain(config_file, tmp_path / "run", dry_run=True) == {}


def test_force_removes_nothing_before_the_new_training_can_begin(
    config_file: Path, text_file: Path, finished: Path
) -> None:
    run, overrides = finished, ["trainer.num_epochs=0.2"]
    before, text = weights(run), text_file.read_text()
    text_file.unlink()
    with pytest.raises(ElmoTasksError, match=r"text\.txt"):
        pretrain(config_file, run, overrides=overrides, force=True)
    with pytest.raises(RunError, match="contains the biLM to start from"):
        pretrain(config_file, run, start_from=run / "x" / "..", force=True)
    assert all(np.array_equal(values, before[name]) for name, values in weights(run).items())
    text_file.write_text(text.replace("hill", "hall"))
    with stop_at(1), pytest.raises(Killed):
        pretrain(config_file, run, overrides=overrides, force=True)
    begun = {"config.json", "versions.json", "text.json", "tensorboard", "log.jsonl"}
    assert {path.name for path in run.iterdir()} <= begun
    assert pretrain(config_file, run, overrides=overrides, resume=True)
    assert not all(np.array_equal(values, before[name]) for name, values in weights(run).items())


@pytest.mark.parametrize("has_softmax", [True, False])
def test_fine_tuning_has_the_dropout_of_its_config(
    has_softmax: bool, config_file: Path, tmp_path: Path, finished: Path
) -> None:
    if not has_softmax:
        (finished / "softmax.safetensors").unlink()
    stopping = Stopping(after=1)
    pretrain(config_file, tmp_path / "run", start_from=finished, overrides=["dropout=0.45"], callbacks=[stopping])
    assert stopping.trainer.objective.model.dropout.p == 0.45


def test_a_biLM_with_a_list_of_words_is_refused(config_file: Path, tmp_path: Path) -> None:
    words, characters = as_bytes(NEEDED_WORDS), as_bytes(NEEDED_CHARACTERS)
    sizes = {"num_words": len(NEEDED_WORDS), "word_dim": 2, "num_characters": len(NEEDED_CHARACTERS)}
    lexicon = LexiconOptions(**sizes, word_bytes=len(words), character_bytes=len(characters))
    bilm = BiLM(TINY_OPTIONS.model_copy(update={"lexicon": lexicon}))
    lists = {"token_encoder.words": words, "token_encoder.characters": characters}
    bilm.load_state_dict({**bilm.state_dict(), **lists})
    bilm.save(tmp_path / "options.json", tmp_path / "weights.hdf5")
    with pytest.raises(WeightsError, match="a biLM with a list of words; expected one that reads only characters"):
        pretrain(config_file, tmp_path / "run", start_from=tmp_path)


def test_a_dry_run_writes_nothing(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["pretrain", str(config_file), "-s", "run", "--dry-run", "--quiet"]) == 0
    shown = capsys.readouterr().out
    for label in ("tokens", "vocabulary", "steps", "estimated time"):
        assert label in shown
    assert not (tmp_path / "run").exists()


def test_the_command_prints_the_perplexity(text_file: Path, whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(whole.folder)
    with text_file.open("a") as file:
        file.write("the dog, again .\n")
    assert cli.main(["perplexity", str(text_file), "--bilm", run]) == 0  # with the tokenizer of the biLM
    assert f"{perplexity_of_text(run, [str(text_file)], TREEBANK)['mean']:.2f} │" in capsys.readouterr().out
    assert cli.main(["perplexity", str(text_file), "--bilm", run, "--tokenized", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == perplexity_of_text(run, [str(text_file)], WhitespaceTokenizer())
    assert found["mean"] == pytest.approx((found["forward"] * found["backward"]) ** 0.5)
    sentences = [line.split() for line in text_file.read_text().splitlines() if line]
    assert found["targets"] == sum(map(len, sentences)) + len(sentences)
    assert found["unknown_percent"] == pytest.approx(100 / found["targets"])  # of "dog,"
    with pytest.raises(DataError, match="holds no text; expected at least one sentence"):
        perplexity_of_text(run, [os.devnull])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_averaged_biLM_is_written(dtype: torch.dtype, config_file: Path, tmp_path: Path) -> None:
    overrides = ["trainer.num_epochs=0.2", 'trainer.moving_average={"decay": 0.9}', "trainer.grad_clipping=0.01"]
    overrides.append(f"half_precision={str(dtype == torch.float16).lower()}")
    run = tmp_path / "run"
    pretrain(config_file, run, overrides=overrides)
    assert {values.dtype for values in weights(run).values()} == {np.dtype(str(dtype).removeprefix("torch."))}
    state, model = read_state(run / "training.pt"), LanguageModel.load(run)
    for written, average, own in zip(
        model.parameters(), state["average"]["averages"], state["parameters"], strict=True
    ):
        assert written.equal(average.to(dtype).float())
        assert not written.equal(own.to(dtype).float())


def command(config_file: Path, folder: Path, *arguments: str) -> list[str]:
    return ["-m", "elmo_tasks", "pretrain", str(config_file), "-s", str(folder), *arguments]


@pytest.mark.slow
def test_two_processes_train_as_one_on_the_same_streams(config_file: Path, tmp_path: Path) -> None:
    # What depends on each process's own random numbers is off.
    arguments = ("--set=dropout=0", '--set=softmax={"type": "full"}', "--set=trainer.num_epochs=0.2")
    for name, run in (("one", run_here), ("two", run_as_two)):
        run(*command(config_file, tmp_path / name, *arguments))
    one, two = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two"))
    assert two["trained_targets"] == one["trained_targets"]
    assert two["held_out"]["mean"] == pytest.approx(one["held_out"]["mean"], rel=1e-3)
