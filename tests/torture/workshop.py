"""What the cases start from: tiny data in every format, a tiny biLM, configs, and runs that are trained once."""

import contextlib
import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NER = (
    "-DOCSTART- -X- O O\n\nOrla NNP I-NP I-PER\nleft VBD I-VP O\nOld NNP I-NP I-LOC\nBrusk NNP I-NP I-LOC\n. . O O\n\n"
    + (
        "Tavo NNP I-NP I-PER\nMelin NNP I-NP I-PER\nsold VBD I-VP O\na DT I-NP O\nmill NN I-NP O\n\nQuiet JJ I-NP O\n\n"
        * 2
    )
)
VECTORS = "".join(
    f"{word} {' '.join(str((3 * row + 7 * number) % 10 / 10) for number in range(4))}\n"
    for row, word in enumerate(("orla", "left", "old", "brusk", "tavo", "sold", "a", "mill", "quiet", "."))
)
TEXT = "\n\n".join(
    f"the {animal} by the {place} {verb} again .\nthen the {animal} left the {place} ."
    for animal, verb in (("dog", "barked"), ("cat", "purred"), ("cow", "mooed"))
    for place in ("river", "old mill", "bridge")
)
BILM_OPTIONS = {
    "lstm": {"dim": 6, "projection_dim": 4, "n_layers": 2, "cell_clip": 3.0, "proj_clip": 3.0},
    "char_cnn": {
        "embedding": {"dim": 3},
        "filters": [[1, 2], [2, 3]],
        "activation": "relu",
        "n_highway": 1,
        "n_characters": 262,
        "max_characters_per_token": 20,
    },
}


def tagger_config(folder: Path) -> dict[str, Any]:
    """A small tagger with everything random in use, which saves its state after every step."""
    data = {f"{name}_data_path": str(folder / f"{name}.txt") for name in ("train", "validation", "test")}
    return {
        "dataset_reader": {"type": "conll2003"},
        **data,
        "model": {
            "type": "crf_tagger",
            "embedder": {
                "words": {"size": 4, "vectors": str(folder / "vectors.txt"), "unknown_probability": 0.1},
                "characters": {"embedding_size": 3, "filters": 4},
                "elmo": {"bilm": str(folder / "bilm")},
            },
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": [4], "dropout": 0.3},
            "dropout": 0.3,
        },
        "data_loader": {"batch_size": 2},
        "trainer": {
            "num_epochs": 3,
            "validation_metric": "-loss",
            "optimizer": {"type": "adam", "lr": 0.02},
            "moving_average": {"decay": 0.9},
            "checkpoint_every_steps": 1,
            "device": "cpu",
            "trackers": [],
        },
        "random_seed": 3,
    }


def pretraining_config(folder: Path) -> dict[str, Any]:
    """A small biLM on a few lines, which saves its state after every second step."""
    return {
        "bilm": BILM_OPTIONS,
        "corpus": {"paths": [str(folder / "text.txt")], "tokenized": True, "held_out": 0.2},
        "vocabulary_size": 50,
        "min_count": 1,
        "softmax": {"type": "sampled", "num_samples": 5},
        "trainer": {
            "num_epochs": 3,
            "batch_size": 2,
            "unroll_steps": 8,
            "checkpoint_every_steps": 2,
            "evaluate_every_steps": 3,
            "device": "cpu",
            "precision": "float32",
            "trackers": [],
        },
    }


def make_workshop(folder: Path) -> None:
    """Fills a folder with data, configs, a biLM and two finished runs, `run` and `pretrained`."""
    import torch

    from elmo_tasks.elmo import BiLMOptions
    from tests.random_bilm import random_bilm

    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"train.txt": NER, "validation.txt": NER, "test.txt": NER, "vectors.txt": VECTORS, "text.txt": TEXT}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    random_bilm(BiLMOptions.model_validate_json(json.dumps(BILM_OPTIONS)), 1).save(
        folder / "bilm" / "options.json", folder / "bilm" / "weights.hdf5"
    )
    for name, config in (("tagger.json", tagger_config(folder)), ("pretraining.json", pretraining_config(folder))):
        (folder / name).write_text(json.dumps(config, indent=1), encoding="utf-8")
    os.environ["ELMO_TASKS_CACHE"] = str(folder / "cache")
    _make_runs(folder)


def _make_runs(folder: Path) -> None:
    """Finished runs, one of another seed, its archive, and runs that were stopped in the middle."""
    from elmo_tasks.extras.pretraining.pretrain import pretrain
    from elmo_tasks.runs.train import train
    from elmo_tasks.training.callbacks import Callback, Progress

    class Stop(Callback):
        def on_step(self, progress: Progress, loss: float) -> None:
            if progress.step == 5:
                raise KeyboardInterrupt

    tagger, pretraining = str(folder / "tagger.json"), str(folder / "pretraining.json")
    run_command(["train", tagger, "-s", str(folder / "run")])
    (folder / "run" / "calibration.json").write_text('{"temperature": 1.5}')
    run_command(["train", tagger, "-s", str(folder / "other"), "--set", "random_seed=4"])
    run_command(["pretrain", pretraining, "-s", str(folder / "pretrained")])
    run_command(["archive", str(folder / "run"), str(folder / "run.tar.gz")])
    with contextlib.suppress(KeyboardInterrupt):
        train(tagger, folder / "half", callbacks=[Stop()])
    with contextlib.suppress(KeyboardInterrupt):
        pretrain(pretraining, folder / "half_pretrained", callbacks=[Stop()])


def import_everything() -> None:
    """Imports the whole package and what its commands import late, so that copies of this process need not."""
    import torch

    import elmo_tasks

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import seqeval.metrics  # noqa: F401
        import torch._dynamo

        for module in pkgutil.walk_packages(elmo_tasks.__path__, "elmo_tasks."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # of a package that is not installed
                    importlib.import_module(module.name)


def run_command(arguments: Sequence[str]) -> None:
    """Runs a command of the command line in this process; raises unless it ends with 0."""
    from elmo_tasks import cli

    code = cli.main([*arguments])
    if code:
        raise RuntimeError(f"elmo-tasks {' '.join(arguments)} ended with {code}")


def fork(action: Callable[[], object], output: Path | int) -> int:
    """Starts an action in a copy of this process, and returns the copy's number.

    The copy ends with what the action returns as exit code, or with 1 and a traceback in `output`, the file or the open
    stream where its standard output and error go.
    """
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        stream = output if isinstance(output, int) else os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        code = action() or 0  # type: ignore[assignment]
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def wait_for(pid: int) -> int:
    """The exit code of a copy; negative for the signal that has ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_end(code: int, output: str) -> list[str]:
    """Fails unless a command ended as it should: with success, or with one line of error, which is returned."""
    end = output[-3000:]
    assert "Traceback" not in output, f"a traceback\n{end}"
    assert code in (0, 1, 2), f"exit code {code}\n{end}"
    errors = [line for line in output.splitlines() if line.startswith("error: ")] if code else []
    assert len(errors) == (code > 0), f"{len(errors)} lines with an error instead of one\n{end}"
    return errors


def apart(action: Callable[[], object], log: Path) -> None:
    """Runs an action in a copy of this process, which keeps this one as it is; raises unless it succeeds."""
    if code := wait_for(fork(action, log)):
        raise RuntimeError(f"the preparation ended with {code}:\n{log.read_text(errors='replace')[-3000:]}")
