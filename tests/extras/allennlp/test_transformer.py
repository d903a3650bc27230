"""Models with a fine-tuned transformer, compared with what the library computes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from elmo_tasks.cli import main  # noqa: E402
from elmo_tasks.errors import MigrationError  # noqa: E402
from elmo_tasks.extras.allennlp.importing import import_allennlp  # noqa: E402
from elmo_tasks.files import downloads as hub  # noqa: E402
from elmo_tasks.runs.archive import archive  # noqa: E402
from elmo_tasks.runs.load import load_predictor, load_run  # noqa: E402
from tests.extras.allennlp.archives import with_changes  # noqa: E402
from tests.extras.allennlp.transformers import (  # noqa: E402
    CLASSIFIER,
    MISMATCHED,
    SRL,
    TAGGER,
    classifier,
    fine_tuned,
    published,
    roles,
    tagger,
)
from tests.extras.transformers.tiny_bert import states  # noqa: E402

WORDS = ["Mary", "went", "to", "Boeing", "."]
PIECES = ["ma", "##ry", "went", "to", "boe", "##ing", "."]
TOKENS = "model.text_field_embedder.token_embedders.tokens"
INDEXER = "dataset_reader.token_indexers.tokens"


def logits(run: Path, example: dict[str, Any]) -> torch.Tensor:
    loaded = load_run(run)
    with torch.no_grad():
        return loaded.model(loaded.model.task.collate([example], loaded.vocabulary)).logits[0]


def imported(path: Path, made: Path, bert: Path | None = None) -> Path:
    import_allennlp(made, path / "run", transformer=str(bert or path / "bert"))
    return path / "run"


def check_tags(run: Path, tokens: list[str], words: torch.Tensor, tensors: dict[str, torch.Tensor]) -> None:
    """Compares the scores of a run with those of AllenNLP's projection of these words' vectors."""
    layer = [tensors[f"tag_projection_layer._module.{name}"] for name in ("weight", "bias")]
    expected = torch.nn.functional.linear(words, *layer)
    torch.testing.assert_close(logits(run, {"tokens": tokens}), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("mode", "window"), [("avg", None), ("avg", 6), ("first", 6)])
def test_a_tagger_reads_words_from_their_pieces(tmp_path: Path, mode: str, window: int | None) -> None:
    settings = {**MISMATCHED, "max_length": window}
    kwargs = {"tokenizer_kwargs": {"use_fast": True, "max_length": 9, "add_prefix_space": True}}
    changes = {TOKENS: {**settings, "sub_token_mode": mode}, INDEXER: {**settings, **kwargs}}
    made, tensors = tagger(tmp_path, with_changes(TAGGER, changes))
    parts = [PIECES] if window is None else [PIECES[:4], PIECES[4:]]  # [CLS] and [SEP] are two of six
    last = torch.cat([states(tmp_path / "bert", part)[-1] for part in parts])
    means = torch.stack([last[:2].mean(0), last[2], last[3], last[4:6].mean(0), last[6]])
    run = imported(tmp_path, made)
    assert json.loads((run / "origin.json").read_text())["unread"] == []
    assert load_run(run).config.model.embedder.transformer.prefix_space  # type: ignore[union-attr]
    check_tags(run, WORDS, means if mode == "avg" else last[[0, 2, 3, 4, 6]], tensors)


def test_a_mix_of_layers_is_without_the_embeddings(tmp_path: Path) -> None:
    parameters = {f"_scalar_mix.scalar_parameters.{layer}": torch.randn(1) for layer in range(2)}
    more = {**parameters, "_scalar_mix.gamma": torch.tensor([1.5])}
    made, tensors = tagger(tmp_path, with_changes(TAGGER, {f"{TOKENS}.last_layer_only": False}), more)
    shares = torch.cat(list(parameters.values())).softmax(0)
    layers = states(tmp_path / "bert", ["went", "to"])[1:]
    words = 1.5 * (shares[0] * layers[0] + shares[1] * layers[1])
    check_tags(imported(tmp_path, made), ["went", "to"], words, tensors)


def test_a_run_and_its_archive_need_nothing_else(tmp_path: Path) -> None:
    made, _ = tagger(tmp_path)
    run = imported(tmp_path, made)
    shutil.rmtree(tmp_path / "bert")
    expected = load_predictor(run)([{"tokens": WORDS}])
    assert len(expected[0]["tags" if "tags" in expected[0] else "tokens"]) == 5
    archive(run, tmp_path / "run.tar.gz")
    shutil.rmtree(run)
    assert load_predictor(tmp_path / "run.tar.gz")([{"tokens": WORDS}]) == expected


def test_the_hub_has_the_config_and_the_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = tagger(tmp_path)
    asked: list[str] = []

    def hub_folder(source: str, *_: Any, **__: Any) -> Path:
        asked.append(source)
        return published(tmp_path / "bert", tmp_path / source.rpartition("/")[2].replace(":", "-"), vocabulary=True)

    monkeypatch.setattr("elmo_tasks.extras.allennlp.transformer.hub_folder", hub_folder)
    import_allennlp(made, tmp_path / "named")
    import_allennlp(made, tmp_path / "given", transformer="hub:org/other")
    assert asked == ["hub:bert-base-cased", "hub:org/other"]
    copied = imported(tmp_path, made)
    for run in (tmp_path / "named", tmp_path / "given"):  # the pieces are enough for a tokenizer
        torch.testing.assert_close(logits(run, {"tokens": WORDS}), logits(copied, {"tokens": WORDS}))


def test_word_pieces_come_with_whether_they_are_lowercase(tmp_path: Path) -> None:
    """They are by default, as another test shows."""
    made, _ = tagger(tmp_path)
    folder = published(tmp_path / "bert", tmp_path / "pieces", vocabulary=True)
    for lowercase in (True, False):
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}))
        import_allennlp(made, tmp_path / "run", transformer=str(folder), force=True)
        name, lower, unknown = (logits(tmp_path / "run", {"tokens": [word]}) for word in ("Mary", "mary", "?"))
        assert (torch.equal(name, unknown), torch.equal(name, lower)) == (not lowercase, lowercase)


@pytest.mark.parametrize(
    ("make", "config", "unread"),
    [
        (tagger, TAGGER, set()),
        (roles, SRL, {"data_loader"}),
        (classifier, CLASSIFIER, {"dataset_reader.tokenizer"}),
    ],
)
def test_what_has_no_meaning_here_is_named(
    make: Callable[..., tuple[Path, Any]], config: dict[str, Any], unread: set[str], tmp_path: Path
) -> None:
    changes = {f"{part}.no_such_key": 1 for part in ("model", "dataset_reader")}
    made, _ = make(tmp_path, with_changes(config, changes))
    found = import_allennlp(made, tmp_path / "run", transformer=str(tmp_path / "bert"))
    assert set(found.unread) == {*changes, *unread}


def test_problems_are_one_line_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "is_offline", lambda: True)
    made, _ = tagger(tmp_path)
    bert = tmp_path / "bert"
    (bare := tmp_path / "bare").mkdir()
    shutil.copy(bert / "config.json", bare)
    other = tmp_path / "other"
    fine_tuned(other, "", hidden_size=4)
    (pieces := tmp_path / "pieces").mkdir()
    shutil.copy(bert / "config.json", pieces)
    (pieces / "vocab.txt").write_text("the\n")
    cases = {
        str(tmp_path / "none"): "has no config.json; name a folder with config.json and tokenizer.json",
        str(bare): "has no tokenizer.json or vocab.txt",
        str(other): "model.safetensors: does not fit config.json",
        str(pieces): "vocab.txt: not BERT's word pieces",
        "hub:org/none": "its transformer's config and tokenizer: hub:org/none: ",
    }
    capsys.readouterr()
    for given, message in cases.items():
        assert main(["import-allennlp", str(made), str(tmp_path / "run"), "--transformer", given]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert list((tmp_path / "run").glob("*")) == []


def test_a_folder_that_an_archive_names_is_not_read(tmp_path: Path) -> None:
    made, _ = tagger(tmp_path, with_changes(TAGGER, {f"{TOKENS}.model_name": str(tmp_path / "bert")}))
    with pytest.raises(MigrationError, match="not a name on the hub; name a folder"):
        import_allennlp(made, tmp_path / "run")
