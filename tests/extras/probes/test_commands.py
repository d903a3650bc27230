"""What `pretrain` and `probe` pass on and print."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from accelerate import PartialState

import elmo_tasks.extras.pretraining.pretrain
import elmo_tasks.extras.probes.label_probes
import elmo_tasks.extras.probes.senses
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.extras.probes.label_probes import LabelProbe, ProbeRow
from elmo_tasks.extras.probes.senses import SenseProbe
from elmo_tasks.extras.samples import VECTORS
from tests.random_bilm import random_bilm

Printed = Callable[[], tuple[str, list[list[str]]]]
SENTENCE = "1\t{name}\t_\tPROPN\tNNP\t_\t2\t_\t_\t_\n2\tleft\t_\tVERB\tVBD\t_\t0\t_\t_\t_\n\n"
PROBE = LabelProbe(12, 34567, 8901, 45.678, [ProbeRow("layer 0", 90.126, 60.0, 30.126), ProbeRow("layer 1", 95, 5, 90)])


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for the computation, in a folder with the data set `data.conllu`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    Path("data.conllu").write_text("".join(SENTENCE.format(name=f"Ann{number}") for number in range(10)))
    probe = Mock(return_value=PROBE)
    monkeypatch.setattr(elmo_tasks.extras.probes.label_probes, "probe_labels", probe)
    return probe


def test_the_defaults_of_a_probe(probe: Mock) -> None:
    assert cli.main(["probe", "data.conllu"]) == 0
    bilm, training, tested = probe.call_args.args
    assert (bilm.output_size, len(training), len(tested)) == (256, 8, 2)
    assert probe.call_args.kwargs == {"vectors": None, "seed": 0}
    assert training[0].labels == ["PROPN", "VERB"]


def test_a_probe_with_a_test_file_and_word_vectors(probe: Mock, tmp_path: Path) -> None:
    Path("test.conllu").write_text(SENTENCE.format(name="Bo"))
    for path in (tmp_path / "mine.txt", tmp_path / "data" / VECTORS):
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b"the 0.1 0.2\n"
        path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
    Path("b").mkdir()
    random_bilm(TINY_OPTIONS).save("b/options.json", "b/weights.hdf5")
    given = ["--test", "test.conllu", "--seed", "7", "--bilm", "b"]
    reader = '{"type": "conllu", "tag_column": "xpos"}'
    assert cli.main(["probe", "data.conllu", "--vectors", "mine.txt", "--reader", reader, *given]) == 0
    bilm, training, tested = probe.call_args.args
    assert bilm.output_size == 64
    assert len(training) == 10
    assert [(each.tokens, each.labels) for each in tested] == [(("Bo", "left"), ["NNP", "VBD"])]
    settings = probe.call_args.kwargs
    assert (settings["vectors"].path, settings["seed"]) == (Path("mine.txt"), 7)
    assert cli.main(["probe", "data.conllu"]) == 0
    assert probe.call_args.kwargs["vectors"].path == Path("data") / VECTORS


@pytest.mark.usefixtures("probe")
def test_the_table_of_a_probe_and_its_file(printed: Printed) -> None:
    assert cli.main(["probe", "data.conllu", "--output", "out.json"]) == 0
    text, rows = printed()
    title = "accuracy of linear classifiers: 12 labels, 34,567 items to learn from, 8,901 to test on\n"
    assert text.startswith(title)
    assert rows == [
        ["vectors", "accuracy", "control task", "selectivity"],
        ["none: the most frequent label", "45.68", "", ""],
        ["layer 0", "90.13", "60.00", "30.13"],
        ["layer 1", "95.00", "5.00", "90.00"],
    ]
    written = json.loads(Path("out.json").read_text())
    assert (written["probe"], written["bilm"], written["labels"]) == ("data.conllu", "default", 12)
    assert written["rows"][1] == {"vectors": "layer 1", "accuracy": 95, "control": 5, "selectivity": 90}
    assert cli.main(["probe", "data.conllu", "--output", "out.json"]) == 2
    assert cli.main(["probe", "data.conllu", "--output", "out.json", "--force", "--json"]) == 0
    assert json.loads(printed()[0]) == written


@pytest.mark.usefixtures("probe")
def test_the_tables_of_word_senses_end_the_first_with_all_sets(
    monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    groups = ["one", "two", "ALL but semeval2007", "ALL", "nouns"]
    percent = {name: 10.0 * index for index, name in enumerate(groups)}
    probe = SenseProbe({name: 1000 + index for index, name in enumerate(groups)}, {"layer 0": percent})
    monkeypatch.setattr(elmo_tasks.extras.probes.senses, "probe_senses", Mock(return_value=probe))
    monkeypatch.setattr(elmo_tasks.extras.probes.senses, "read_sense_data", Mock())
    assert cli.main(["probe", "wsd"]) == 0
    _, rows = printed()
    assert rows == [
        ["vectors", *groups[:4]],
        ["instances", "1,000", "1,001", "1,002", "1,003"],
        ["layer 0", "0.0", "10.0", "20.0", "30.0"],
        ["vectors", "nouns"],
        ["instances", "1,004"],
        ["layer 0", "40.0"],
    ]


def test_the_first_process_prints_the_perplexities_before_and_after(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = {"forward": 1234.567, "backward": 20.0, "mean": 157.1, "unknown_percent": 0.256, "targets": 12345}
    results = {"before": {**after, "mean": 2000.0}, "held_out": after, "held_out_unigram": 456.78}
    monkeypatch.setattr(elmo_tasks.extras.pretraining.pretrain, "pretrain", Mock(return_value=results))
    assert cli.main(["pretrain", "own.jsonnet"]) == 0
    text, rows = printed()
    assert rows == [
        ["", "before", "after"],
        ["forward perplexity", "1,234.57", "1,234.57"],
        ["backward perplexity", "20.00", "20.00"],
        ["mean perplexity", "2,000.00", "157.10"],
        ["unknown words, %", "0.26", "0.26"],
        ["tokens, including sentence ends", "12,345", "12,345"],
    ]
    assert text.endswith("\nperplexity of a unigram model: 456.8\n")
    results["before"] = None
    assert cli.main(["pretrain", "own.jsonnet"]) == 0
    assert printed()[1][0] == ["", "after"]
    monkeypatch.setattr(PartialState, "is_main_process", False)
    assert cli.main(["pretrain", "own.jsonnet"]) == 0
    assert printed() == ("", [])
