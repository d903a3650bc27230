"""Packing runs, opening them, and what loaded runs predict and score."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import PartialState

from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import RunError, UnknownTypeError, WeightsError
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.runs import load
from elmo_tasks.runs.archive import archive, open_run
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.text.tokenizers import TREEBANK
from tests.random_bilm import random_bilm
from tests.runs.small_runs import SmallRun


@pytest.fixture
def small_run(tmp_path: Path) -> RunFolder:
    """What an archive needs of a run, and its biLM outside of the folder."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.config.write_text("{}")
    write_tensors(folder.model, {"a": torch.ones(2)})
    files = BiLMFiles(tmp_path / "small_options.json", tmp_path / "small_weights.hdf5")
    random_bilm(TINY_OPTIONS, seed=1).save(files.options, files.weights)
    reference = {"options": str(files.options), "weights": str(files.weights), "fingerprint": files.fingerprint()}
    write_json(folder.bilm.reference, reference)
    return folder


def test_an_archive_has_what_a_run_needs_and_is_opened_like_its_folder(small_run: RunFolder, tmp_path: Path) -> None:
    small_run.training_state.write_text("large")
    (small_run.path / "notes.txt").write_text("mine")
    archive(small_run.path, tmp_path / "run.tar.gz", self_contained=False)
    for _ in range(2):
        opened = open_run(tmp_path / "run.tar.gz")
        names = ["bilm.json", "config.json", "model.safetensors"]
        assert sorted(path.name for path in opened.path.iterdir()) == names
    small_run.model.unlink()
    with pytest.raises(RunError, match=r"no model\.safetensors"):
        archive(small_run.path, tmp_path / "run.tar.gz")


@pytest.mark.parametrize("self_contained", [False, True])
def test_an_archive_has_the_bilm_if_wanted_and_leaves_the_run_as_it_is(
    small_run: RunFolder, tmp_path: Path, self_contained: bool
) -> None:
    if self_contained:
        small_run.bilm.copy_files()
    before = sorted(small_run.path.rglob("*"))
    without = {"bilm.json", "config.json", "model.safetensors"}
    for with_bilm, names in ((True, {"bilm/options.json", "bilm/weights.hdf5", *without}), (False, without)):
        archive(small_run.path, tmp_path / "run.tar.gz", self_contained=with_bilm)
        with tarfile.open(tmp_path / "run.tar.gz") as tar:
            assert set(tar.getnames()) == names
    assert sorted(small_run.path.rglob("*")) == before
    if not self_contained:
        (tmp_path / "small_weights.hdf5").unlink()
        with pytest.raises(RunError, match=r"no longer at .*small_weights\.hdf5"):
            archive(small_run.path, tmp_path / "other.tar.gz")
        assert not (tmp_path / "other.tar.gz").exists()


def test_an_archive_names_no_bilm_outside_of_it(small_run: RunFolder, tmp_path: Path) -> None:
    archive(small_run.path, tmp_path / "run.tar.gz", self_contained=False)
    opened = open_run(tmp_path / "run.tar.gz")
    with pytest.raises(RunError, match=r"run\.tar\.gz: does not contain its biLM.* --set model\.embedder\.elmo\.bilm"):
        opened.bilm.files()
    with pytest.raises(RunError, match=r"run\.tar\.gz: does not contain its biLM"):
        archive(tmp_path / "run.tar.gz", tmp_path / "other.tar.gz")


def test_packing_reads_no_private_file(small_run: RunFolder, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("secret")
    reference = json.loads(small_run.bilm.reference.read_text())
    options = Path(reference["options"])
    for files in (BiLMFiles(private, private), BiLMFiles(options, private)):
        # Even if the hash of the file is known.
        named = {"options": str(files.options), "weights": str(files.weights), "fingerprint": files.fingerprint()}
        write_json(small_run.bilm.reference, named)
        with pytest.raises(WeightsError, match="private"):
            archive(small_run.path, tmp_path / "run.tar.gz")
    write_json(small_run.bilm.reference, {**reference, "fingerprint": "0" * 64})
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        archive(small_run.path, tmp_path / "run.tar.gz")
    write_json(small_run.bilm.reference, reference)
    small_run.metrics.symlink_to(private)
    with pytest.raises(RunError, match=r"metrics\.json: a link to .*private"):
        archive(small_run.path, tmp_path / "run.tar.gz")
    assert not (tmp_path / "run.tar.gz").exists()


@pytest.mark.parametrize("content", [b"not an archive", None])
def test_what_is_no_run_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match="thing"):
        open_run(path)


def test_a_folder_of_seeds_says_what_it_is(tmp_path: Path) -> None:
    for kind in ("fold", "seed"):  # the seeds come first
        for number in (1, 2):
            RunFolder(tmp_path / f"{kind}_{number}").create({"a": 1})
        problem = rf"a folder of runs, one for each {kind} \({kind}_1, {kind}_2\); name one of them, such as .*{kind}_1"
        with pytest.raises(RunError, match=problem):
            open_run(tmp_path)
    RunFolder(tmp_path).create({"a": 1})  # a run of its own beside them
    assert open_run(tmp_path).path == tmp_path


def test_the_tokenizer_of_the_config_splits_what_is_predicted(trained: SmallRun) -> None:
    assert load.load_predictor(trained.path).tokenizer.version == TREEBANK.version
    predictor = load.load_predictor(trained.path, overrides=["dataset_reader.tokenizer=unicode"])
    (result,) = predictor.predict([{"text": "\u6211\u6765"}])
    assert result["tokens"] == ["\u6211", "\u6765"]


def test_evaluate_gives_the_metrics_of_training(
    trained: SmallRun, settings: dict[str, Any], tmp_path: Path, terminal: Callable[[], str]
) -> None:
    predictions = tmp_path / "predictions.jsonl"
    for limit in (None, 30):  # other batches change nothing
        found = evaluate(trained.path, settings["test_data_path"], predictions=predictions, batch_tokens=limit)
        assert found == pytest.approx(trained.json("metrics.json")["test"], abs=1e-4)
        assert re.search(r"evaluation +\S* +12/12 ", terminal())
    records = [json.loads(line) for line in predictions.read_text().splitlines()]
    first = [record["example"]["sentence"] for record in records if record["example"]["document"] == 0]
    assert first == list(range(len(first)))
    assert all(len(each["prediction"]["probabilities"]) == len(each["example"]["tokens"]) for each in records)


def test_evaluate_counts_confusions(trained: SmallRun, settings: dict[str, Any]) -> None:
    table = evaluate(trained.path, settings["test_data_path"], confusion=True)["confusion"]
    lines = (line.split() for line in Path(settings["test_data_path"]).read_text().splitlines())
    tags = [words[-1] for words in lines if words and words[0] != "-DOCSTART-"]
    gold = Counter(tag if tag == "O" else tag[2:] for tag in tags)
    rows = dict(zip(table["labels"], map(sum, table["counts"]), strict=True))
    assert rows == {label: gold[label] for label in table["labels"]}
    assert sum(rows.values()) == len(tags)


@pytest.mark.slow
def test_loading_a_run_does_not_import_the_compiler_of_torch(trained: SmallRun) -> None:
    """It takes a second, and a tensor without memory that gets random values imports it."""
    program = "import sys; from elmo_tasks.runs.load import load_run; load_run(sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-c", program, str(trained.path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not {"torch._dynamo", "torch.fx.experimental.symbolic_shapes"} & {*done.stdout.split()}


def test_the_packages_of_a_run_are_named_where_its_parts_are_unknown(finished: SmallRun) -> None:
    config = finished.json("config.json")
    config["model"]["encoder"]["type"] = "of_mine"
    finished.write("config.json", config)
    with pytest.raises(UnknownTypeError, match="of_mine"):
        load.load_run(finished.path)
    finished.write("versions.json", {"include-package": ["mine", "theirs"]})
    options = r"add --include-package mine --include-package theirs \(in Python, .*packages\(\['mine', 'theirs'\]\)\)"
    with pytest.raises(RunError, match=f"has parts of other packages; {options}"):
        load.load_run(finished.path)


def test_a_predictor_leaves_the_device_of_others_open(trained: SmallRun) -> None:
    load.load_predictor(trained.path, overrides=["trainer.device=cpu"])
    assert not PartialState._shared_state


UNSEEN = Path(__file__).parents[1] / "odd_files" / "unseen.txt"  # a span TIME, which no run here knows
KNOWN = "Brusk B-LOC\n- O\n\nMary B-PER\nworks O\n"


@pytest.mark.parametrize("command", ["evaluate", "compare", "errors"])
def test_a_label_that_the_run_does_not_know_is_refused_or_counted(
    command: str, trained: SmallRun, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    words = [command, str(trained.path), str(UNSEEN), "--json"]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert "unseen.txt:1: in the example that begins here: the label 'U-TIME' is not among" in error
    assert "--unknown-labels count (unknown_labels='count') counts it as an error of the run" in error

    assert cli.main([*words, "--unknown-labels", "count"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "unseen.txt: the run does not know some labels, which count as its errors: 'U-TIME' (1); the" in caplog.text
    predictions = load.load_predictor(trained.path)({"tokens": ["Mary", "works", "Monday"]})
    metric = SpanF1()
    metric.update(predictions, [{"tags": ["B-PER", "O", "B-TIME"]}])
    if command == "compare":
        assert (shown["num_examples"], shown["systems"][0]["score"]) == (1, metric.compute()["f1"])
    else:
        assert (shown["scores"] if command == "errors" else shown) == metric.compute()
        assert metric.compute()["recall"] <= 50


def test_examples_with_unknown_labels_have_no_loss(
    trained: SmallRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known, both = tmp_path / "known.txt", tmp_path / "both.txt"
    known.write_text(KNOWN)
    both.write_text(f"{UNSEEN.read_text()}\n{KNOWN}")
    found, known_only = (evaluate(trained.path, path, unknown_labels="count") for path in (both, known))
    assert known_only == evaluate(trained.path, known)
    assert found["loss"] == pytest.approx(known_only["loss"], rel=1e-5)
    assert found["support/TIME"] == 1
    known.write_text("".join(f"x B-T{number}\n" for number in range(12)))
    assert "loss" not in evaluate(trained.path, known, unknown_labels="count")
    assert "'U-T9' (1) and 2 more; the loss leaves out 1 example(s)" in caplog.text


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (4, "1 of 5 examples were learned from, and are scored apart, as `learned`"),
        (5, "1 of 6 examples ask the same as training examples"),
    ],
)
def test_a_fifth_of_examples_that_were_learned_from_is_scored_apart(
    others: int,
    said: str,
    trained: SmallRun,
    settings: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "elmo_tasks.runs.evaluate")
    known, new = (
        [text for text in Path(settings[f"{part}_data_path"]).read_text().split("\n\n") if "DOCSTART" not in text]
        for part in ("train", "test")
    )
    (data := tmp_path / "data.txt").write_text("\n\n".join([known[0], *new[:others]]) + "\n")
    found = evaluate(trained.path, data)
    assert caplog.messages == [f"{data}: {said}"]
    assert found.get("learned", {}).get("examples") == (1 if others == 4 else None)
    archive(trained.path, tmp_path / "run.tar.gz")
    assert evaluate(tmp_path / "run.tar.gz", data) == found
    shutil.copytree(trained.path, old := tmp_path / "old")
    (old / "learned.safetensors").unlink()
    assert "learned" not in evaluate(old, data)
    assert caplog.messages[-1].startswith(f"{old}: does not say what it has learned from; if these examples are")
