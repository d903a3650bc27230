"""What `pretrain` and `perplexity` pass on and print."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from accelerate import PartialState

import elmo_tasks.pretraining.pretrain
from elmo_tasks import cli
from elmo_tasks.text.tokenizers import WhitespaceTokenizer

Printed = Callable[[], tuple[str, list[list[str]]]]
HELD_OUT = {"forward": 1234.567, "backward": 20.0, "mean": 157.1, "unknown_percent": 0.256, "targets": 12345}
ROWS = [
    ["forward perplexity", "1,234.57"],
    ["backward perplexity", "20.00"],
    ["mean perplexity", "157.10"],
    ["unknown words, %", "0.26"],
    ["tokens, including sentence ends", "12,345"],
]


@pytest.fixture
def pretrain(monkeypatch: pytest.MonkeyPatch) -> Mock:
    results = {"before": None, "held_out": HELD_OUT, "held_out_unigram": 456.78}
    pretrain = Mock(return_value=results)
    monkeypatch.setattr(elmo_tasks.pretraining.pretrain, "pretrain", pretrain)
    return pretrain


def test_pretrain_prints_the_perplexities_before_and_after(pretrain: Mock, printed: Printed) -> None:
    assert cli.main(["pretrain", "own.jsonnet"]) == 0
    text, rows = printed()
    assert rows == [["", "after"], *ROWS]
    assert text.endswith("\nperplexity of a unigram model: 456.8\n")
    pretrain.return_value["before"] = {**HELD_OUT, "mean": 2000.0}
    assert cli.main(["pretrain", "own.jsonnet"]) == 0
    _, rows = printed()
    assert rows[0] == ["", "before", "after"]
    assert rows[3] == ["mean perplexity", "2,000.00", "157.10"]


@pytest.mark.usefixtures("pretrain")
def test_in_other_processes_nothing_is_printed(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartialState, "is_main_process", False)
    assert cli.main(["pretrain", "own.jsonnet"]) == 0
    assert printed() == ("", [])


def test_perplexity_uses_the_tokenizer_of_the_biLM_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    measure = Mock(return_value=HELD_OUT)
    monkeypatch.setattr(elmo_tasks.pretraining.pretrain, "perplexity_of_text", measure)
    assert cli.main(["perplexity", "one.txt", "*.gz"]) == 0
    assert measure.call_args.args[:3] == ("default", ["one.txt", "*.gz"], None)
    assert printed()[1] == [["", "value"], *ROWS]
    assert cli.main(["perplexity", "one.txt", "--bilm", "bilm", "--tokenized", "--json"]) == 0
    assert measure.call_args.args[:2] == ("bilm", ["one.txt"])
    assert isinstance(measure.call_args.args[2], WhitespaceTokenizer)
    assert json.loads(printed()[0]) == HELD_OUT


def test_the_bilm_of_perplexity_may_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = Mock(return_value=HELD_OUT)
    monkeypatch.setattr(elmo_tasks.pretraining.pretrain, "perplexity_of_text", measure)
    for bilm in (str(tmp_path), "default", "hub:my/bilm"):
        assert cli.main(["perplexity", bilm, "one.txt"]) == 0
        assert measure.call_args.args[:2] == (bilm, ["one.txt"])
    capsys.readouterr()
    assert cli.main(["perplexity", "default", "one.txt", "--bilm", "other"]) == 2
    assert capsys.readouterr().err == "error: default: a biLM, as other is; expected one\n"
