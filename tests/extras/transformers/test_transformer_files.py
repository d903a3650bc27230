"""Folders of transformers: what is read of them, and what is said of those that cannot be read."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402

from elmo_tasks.errors import ElmoTasksError, WeightsError  # noqa: E402
from elmo_tasks.extras.transformers.transformer import TransformerConfig  # noqa: E402
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles  # noqa: E402
from tests.extras.transformers.tiny_bert import PIECES, TEXTS, frozen, save_bert, states  # noqa: E402
from tests.fake_hub import FakeHub  # noqa: E402


def test_the_key_of_the_store_follows_every_file(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "bert")
    seen = {TransformerFiles(folder).fingerprint()}
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_text((folder / name).read_text() + "\n")
        seen.add(TransformerFiles(folder).fingerprint())
    seen.add(TransformerFiles(save_bert(folder, seed=1)).fingerprint())
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "no such file; .*pickles"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json: no such file"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 100), r"model\.safetensors: .*damaged"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), r"tokenizer\.json: missing, or not a tokenizer"),
        (lambda folder: (folder / "config.json").write_text("["), r"config\.json:1: Invalid JSON"),
        (lambda folder: _change(folder, model_type="other"), "model_type: got 'other'"),
        (lambda folder: _change(folder, hidden_size="8"), r"config\.json: .*hidden_size"),
        (
            lambda folder: _change(folder, max_position_embeddings=0),
            "max_position_embeddings: got 0; expected the size",
        ),
        (lambda folder: _change(folder, is_encoder_decoder=True), "a model with a decoder; expected an encoder"),
        (lambda folder: _change(folder, hidden_size=1 << 20), r"[\d,]+ numbers; config\.json describes a model of"),
        (lambda folder: _change(folder, num_hidden_layers=1001), "num_hidden_layers: got 1001; at most 1000"),
        (lambda folder: _change(folder, intermediate_size=15), r"model\.safetensors: does not fit config\.json"),
        (lambda folder: _change_tokenizer(folder, lambda own: own.add_tokens(["x"])), "15 word pieces; .* has 14"),
        (lambda folder: _change_tokenizer(folder, _without_words), "gives no piece for the word 'a'"),
        (lambda folder: _without(folder, "encoder.layer.1.output.dense.bias"), "numbers|lacks encoder.layer.1"),
    ],
)
def test_damaged_and_foreign_folders_are_one_clear_error(change: Any, message: str, bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "bert")
    change(folder)
    with pytest.raises(WeightsError, match=message) as caught:
        TransformerConfig(model=str(folder)).build()(TEXTS)
    assert "\n" not in str(caught.value)


def _change(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def _without(folder: Path, name: str) -> None:
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    del tensors[name]
    tensors["other"] = torch.zeros(100)
    safetensors.torch.save_file(tensors, folder / "model.safetensors")


def _without_pooler(folder: Path) -> None:
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    rest = {name: tensor for name, tensor in tensors.items() if "pooler" not in name}
    assert len(rest) < len(tensors)
    safetensors.torch.save_file(rest, folder / "model.safetensors")


def _with_code_and_another_file(folder: Path) -> None:
    _change(folder, auto_map={"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"}, attn_implementation="some/kernel")
    _change(folder, _attn_implementation="some/kernel")
    (folder / "evil.py").write_text("raise SystemExit('run')")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/private"}')


def _change_tokenizer(folder: Path, change: Callable[[Any], object]) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    change(tokenizer)
    tokenizer.save(str(folder / "tokenizer.json"))


def _without_words(tokenizer: Any) -> None:
    tokenizer.normalizer = normalizers.Replace("a", "")


def _with_padding(folder: Path) -> None:
    _change_tokenizer(folder, lambda tokenizer: tokenizer.enable_padding(length=9))


def test_a_thousand_layers_are_not_too_many(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "bert")
    _change(folder, num_hidden_layers=1000)
    assert TransformerFiles(folder).read_config().num_hidden_layers == 1000


@pytest.mark.parametrize("change", [_without_pooler, _with_code_and_another_file, _with_padding])
def test_what_changes_no_vector(change: Callable[[Path], None], bert: Path, tmp_path: Path) -> None:
    """The model may lack its pooler; no code of its author is used, and the tokenizer's padding is not read."""
    folder = shutil.copytree(bert, tmp_path / "bert")
    change(folder)
    torch.testing.assert_close(frozen(folder).layers(TEXTS).layers, frozen(bert).layers(TEXTS).layers)


def test_words_of_pieces_of_bytes_are_read_as_within_a_sentence(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "bert")
    pieces = {"\u0120": 4, "a": 5, "\u0120a": 6, "[CLS]": 2, "[SEP]": 3, "[PAD]": 0}  # the first is a space
    tokenizer = Tokenizer(models.BPE(pieces, [("\u0120", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    for prefix_space, piece in ((True, PIECES[6]), (False, PIECES[5])):
        embedder = TransformerConfig(
            model=str(folder), prefix_space=prefix_space, layer_cache=None, dropout=0.0
        ).build()
        torch.testing.assert_close(embedder([["a", "a"]])["input"][0], states(bert, [piece, piece]).mean(0))


def test_the_librarys_reports_are_as_before(bert: Path) -> None:
    logging = transformers.utils.logging
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    TransformerFiles(bert).load()
    assert logging.get_verbosity() == logging.INFO
    assert logging.is_progress_bar_enabled()


def test_a_model_of_the_hub(hub: FakeHub, bert: Path) -> None:
    hub.add("some/bert", bert)
    files = TransformerFiles.of("hub:some/bert")
    assert files.fingerprint() == TransformerFiles(bert).fingerprint()
    hub.shutdown()
    hub.server_close()
    assert TransformerFiles.of("hub:some/bert", local_only=True) == files
    with pytest.raises(WeightsError, match="hub:some/other: cannot be downloaded from the hub"):
        TransformerConfig(model="hub:some/other").build()


def test_without_the_library(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ElmoTasksError, match=r"needs the package transformers; .*elmo-tasks\[transformers\]"):
        TransformerConfig(model=str(bert)).build()
