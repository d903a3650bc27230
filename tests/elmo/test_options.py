import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.elmo import PUBLISHED_OPTIONS, TINY_OPTIONS, BiLM, BiLMOptions
from elmo_tasks.errors import WeightsError
from elmo_tasks.modules.devices import shapes_only


@pytest.fixture
def published_json() -> dict[str, Any]:
    return {
        "bidirectional": True,
        "all_clip_norm_val": 10.0,
        "n_train_tokens": 1000,
        "dropout": 0.1,
        "lstm": {
            "cell_clip": 3, "dim": 8, "n_layers": 2, "proj_clip": 3, "projection_dim": 4, "use_skip_connections": True
        },
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 4},
            "filters": [[1, 3], [2, 5]],
            "max_characters_per_token": 50,
            "n_characters": 261,
            "n_highway": 2,
        },
    }  # fmt: skip


def _load(tmp_path: Path, content: dict[str, Any]) -> BiLMOptions:
    path = tmp_path / "options.json"
    path.write_text(json.dumps(content))
    return BiLMOptions.load(path)


def test_training_keys_are_kept(tmp_path: Path, published_json: dict[str, Any]) -> None:
    published_json["lstm"]["n_layer"] = 3
    options = _load(tmp_path, published_json)
    assert options.unused_keys() == ["bidirectional", "all_clip_norm_val", "n_train_tokens", "dropout", "lstm.n_layer"]
    assert PUBLISHED_OPTIONS["small"].unused_keys() == []
    assert (options.output_size, options.num_layers, options.char_cnn.num_filters) == (8, 3, 8)
    options.save(tmp_path / "again.json")
    text = (tmp_path / "again.json").read_text()
    assert json.loads(text) == published_json
    assert text == json.dumps(json.loads(text), indent=2) + "\n"
    assert BiLMOptions.load(tmp_path / "again.json") == options


@pytest.mark.parametrize(
    ("part", "key", "value", "expected"),
    [
        ("lstm", "dim", None, "'lstm.dim' is missing"),
        ("char_cnn", "activation", "gelu", "char_cnn.activation: .*'relu' or 'tanh'; got 'gelu'"),
        ("char_cnn", "n_characters", 256, "char_cnn.n_characters: .*261 or 262; got 256"),
        ("char_cnn", "filters", [[51, 3]], "char_cnn: .*width 51 is wider than a token's 50"),
        ("lstm", "projection_dim", 9, "lstm: .*projection_dim 9 is larger than dim 8"),
        ("lstm", "cell_clip", -1, "lstm.cell_clip: .*greater than 0; got -1"),
        ("char_cnn", "filters", [], "char_cnn.filters: .*at least 1 item"),
    ],
)
def test_bad_options_are_named(
    tmp_path: Path, published_json: dict[str, Any], part: str, key: str, value: object, expected: str
) -> None:
    published_json[part][key] = value
    if value is None:
        del published_json[part][key]
    with pytest.raises(WeightsError, match=rf"options\.json: .*{expected}") as caught:
        _load(tmp_path, published_json)
    assert "\n" not in str(caught.value)


def test_missing_file_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"absent\.json: no such file; .*the options"):
        BiLMOptions.load(tmp_path / "absent.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(WeightsError, match=r"bad\.json:1: Invalid JSON"):
        BiLMOptions.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (PUBLISHED_OPTIONS["small"], 13_593_296),
        (PUBLISHED_OPTIONS["medium"], 28_027_728),
        (PUBLISHED_OPTIONS["original"], 93_600_848),
        (TINY_OPTIONS, 197_360),
    ],
)
def test_sizes(options: BiLMOptions, parameters: int) -> None:
    with shapes_only():
        bilm = BiLM(options)
    mask_row = bilm.token_encoder.embedding.weight[0].numel()
    assert sum(parameter.numel() for parameter in bilm.parameters()) - mask_row == parameters
    lstm, char_cnn = options.lstm, options.char_cnn
    assert (lstm.cell_clip, lstm.proj_clip, lstm.use_skip_connections) == (3, 3, True)
    assert (char_cnn.activation, char_cnn.n_characters, char_cnn.max_characters_per_token) == ("relu", 262, 50)
