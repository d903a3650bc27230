"""From archives to runs: the forward passes are AllenNLP's, written down step by step, and runs are like any other."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import elmo_tasks
from elmo_tasks.cli import main
from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import MigrationError, RunError
from elmo_tasks.extras.allennlp.importing import Imported, import_allennlp
from elmo_tasks.files.tensor_files import read_tensors
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import load_run
from tests.extras.allennlp.archives import (
    CHARACTERS,
    GONE,
    HIDDEN,
    NER,
    OPTIONS,
    TAGS,
    VOCABULARY,
    WORDS,
    bilm,
    member,
    ner_tensors,
    with_changes,
    write_archive,
)

Embed = Callable[[list[str]], Tensor]
SENTENCES = [["The", "dog", "lives", "in", "Seattle", "."], ["☃"], ["-LRB-", "an", "unheard-of", "THE"]]
PARTS = "model.text_field_embedder.token_embedders"
EMBEDDER = "text_field_embedder.token_embedder"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path / "model.tar.gz", NER, ner_tensors(), VOCABULARY, new_format=False)


def compare_logits(run: Path, sentences: Sequence[list[str]], tensors: dict[str, Tensor], *parts: Embed) -> None:
    """Compares a run's scores with AllenNLP's, whose tagger reads these embeddings one behind the other."""
    for sentence in sentences:
        expected = allennlp_tags(tensors, torch.cat([part(sentence) for part in parts], dim=1))
        torch.testing.assert_close(logits(run, sentence), expected, atol=1e-5, rtol=1e-5)


def logits(run: str | Path, sentence: list[str]) -> Tensor:
    """The scores (T, K) of a run's tags."""
    loaded = load_run(run)
    batch = loaded.model.task.collate([{"tokens": sentence}], loaded.vocabulary)
    with torch.no_grad():
        return loaded.model(batch).logits[0]


def table(tensors: dict[str, Tensor], name: str, names: tuple[str, ...], tokens: list[str]) -> Tensor:
    """Rows of a table, whose first is that of padding; those of unknown names are the first name's."""
    rows = [names.index(each) + 1 if each in names else 1 for each in tokens]
    return tensors[name][rows]


def allennlp_words(tensors: dict[str, Tensor], sentence: list[str]) -> Tensor:
    return table(tensors, f"{EMBEDDER}_tokens.weight", WORDS, [word.lower() for word in sentence])


def allennlp_characters(tensors: dict[str, Tensor], sentence: list[str], *, padded: bool) -> Tensor:
    """The convolutions before 1.2.1, padded to the longest word of the sentence, and those since."""
    prefix = f"{EMBEDDER}_token_characters."
    longest = max(3, *map(len, sentence))
    vectors = []
    for word in sentence:
        embedded = table(tensors, f"{prefix}_embedding._module.weight", CHARACTERS, list(word))
        embedded = torch.cat([embedded, torch.zeros(longest - len(word), 3)]) if padded else embedded
        kernel, bias = (tensors[f"{prefix}_encoder._module.conv_layer_0.{name}"] for name in ("weight", "bias"))
        windows = embedded.unfold(0, 3, 1) if len(embedded) >= 3 else torch.zeros(0, 3, 3)  # (R, E, W)
        features = (torch.einsum("rew,few->rf", windows, kernel) + bias).relu()
        vectors.append(features.amax(0) if len(features) else torch.zeros(7))
    return torch.stack(vectors)


def allennlp_elmo(tensors: dict[str, Tensor], sentence: list[str]) -> Tensor:
    """By a biLM whose files we wrote, and the mix of AllenNLP."""
    layers = bilm().layers([sentence]).layers[0]  # (L + 1, T, D)
    mix = f"{EMBEDDER}_elmo._elmo.scalar_mix_0."
    weights = torch.cat([tensors[f"{mix}scalar_parameters.{layer}"] for layer in range(len(layers))]).softmax(0)
    return tensors[f"{mix}gamma"] * torch.einsum("l,ltd->td", weights, layers)


def allennlp_tags(tensors: dict[str, Tensor], inputs: Tensor) -> Tensor:
    lstm = nn.LSTM(inputs.shape[1], HIDDEN, 2, batch_first=True, bidirectional=True)
    names = [name for name in tensors if name.startswith("encoder._module.")]
    lstm.load_state_dict({name.removeprefix("encoder._module."): tensors[name] for name in names})
    with torch.no_grad():
        encoded = lstm(inputs.unsqueeze(0))[0][0]
    return functional.linear(encoded, *(tensors[f"tag_projection_layer._module.{name}"] for name in ("weight", "bias")))


@pytest.mark.parametrize("masked", [False, True], ids=["0.x", "2.x"])
def test_a_tagger_with_words_characters_and_elmo(masked: bool, tmp_path: Path) -> None:
    ignored = {"serialization_dir": "x", "evaluate_on_test": True, "numpy_seed": 1, "pytorch_seed": 1}
    tensors, config = ner_tensors(), with_changes(NER, ignored)
    if masked:
        config["data_loader"] = config.pop("iterator")
        name = f"{EMBEDDER}_token_characters._embedding._module.weight"  # since 1.0 it can have more rows than names
        tensors[name] = torch.cat([tensors[name], torch.randn(9, 3)])
    cached = {f"{EMBEDDER}_elmo._elmo._elmo_lstm._word_embedding.weight": torch.zeros(3, 8)}  # of a vocabulary
    run, path = tmp_path / "run", write_archive(tmp_path / "a", config, tensors | cached, VOCABULARY)
    imported = import_allennlp(path, run)
    elmo = functools.partial(allennlp_elmo, tensors)
    characters = functools.partial(allennlp_characters, tensors, padded=not masked)
    compare_logits(run, SENTENCES, tensors, elmo, characters, functools.partial(allennlp_words, tensors))
    loaded = load_run(run)
    crf = loaded.model.state_dict()
    assert torch.equal(crf["crf.transitions"], tensors["crf.transitions"])
    assert not crf["crf.start_transitions"].any()
    assert loaded.vocabulary.labels == {"tags": TAGS}
    assert loaded.config.dataset_reader.task == loaded.config.model.task

    # Settings of the model are carried over, and the rest is listed.
    assert (imported.kind, {*imported.unread}) == ("crf_tagger", {"data_loader" if masked else "iterator", "trainer"})
    assert any("longest word" in note for note in imported.notes) != masked
    # Archives of 1.0 to 2.4 do not say whether padding counts.
    assert any("1.0.0 to 1.2.0" in note and "padding=right" in note for note in imported.notes) == masked
    notes = {"notes": list(imported.notes), "unread": list(imported.unread), "label_names": {}}
    origin = json.loads((run / "origin.json").read_text())
    assert origin == {"allennlp": str(path), "kind": "crf_tagger", **notes}
    given = json.loads((run / "config.json").read_text())
    model = given["model"]
    for part, expected in (
        (given["trainer"], {"num_epochs": 20, "patience": None, "validation_metric": "+f1"}),
        (given["data_loader"], {"batch_size": 32}),
        (given["vocabulary"], {"lowercase_words": True}),
        (model, {"dropout": 0.5}),
        (model["encoder"], {"dropout": 0.5}),
        (model["embedder"]["elmo"], {"dropout": 0.2}),
        (model["embedder"]["characters"], {"padding": "none" if masked else "right", "token_min_padding_length": 3}),
    ):
        assert {key: part[key] for key in expected} == expected


def test_the_data_and_the_seed_are_carried_over(tmp_path: Path) -> None:
    default = ExperimentConfig.model_fields["random_seed"].default
    paths = {"train_data_path": "train.txt", "validation_data_path": "dev.txt", "test_data_path": None}
    for given, expected in (
        ({}, {"random_seed": default}),
        ({"test_data_path": "test.txt", "random_seed": 0}, {"test_data_path": "test.txt", "random_seed": 0}),
        ({"validation_data_path": None, "random_seed": 7}, {"validation_data_path": "train.txt", "random_seed": 7}),
        ({"train_data_path": None, "random_seed": -1}, {"train_data_path": "", "random_seed": default}),
        ({"train_data_path": "https://x.org/train"}, {"train_data_path": "", "random_seed": default}),
    ):
        config = with_changes(NER, {f"{PARTS}.elmo": GONE, "model.encoder.input_size": GONE}) | given
        tensors = {name: each for name, each in ner_tensors().items() if "_elmo." not in name}
        for name in ("weight_ih_l0", "weight_ih_l0_reverse"):
            tensors[f"encoder._module.{name}"] = torch.zeros(4 * HIDDEN, 13)
        run = tmp_path / "run"
        import_allennlp(write_archive(tmp_path / "a", config, tensors, VOCABULARY), run, force=True)
        found = json.loads((run / "config.json").read_text())
        assert {key: found[key] for key in (*paths, "random_seed")} == paths | expected


def test_a_run_like_any_other(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Predicts, evaluates, is packed, and is where training begins."""
    monkeypatch.chdir(tmp_path)
    assert main(["import-allennlp", str(archive), "run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("run: AllenNLP's crf_tagger\n- ")
    assert said.endswith("\n- without a meaning here: iterator, trainer\n")
    assert Imported("x", ("a note",), unread=(), label_names={}).lines() == ["a note"]
    for name in ("train.txt", "dev.txt"):
        Path(name).write_text("The O\ndog O\nlives O\nin O\nSeattle B-LOC\n\nOrla B-PER\n")
    Path("text").write_text("The dog lives .\n")
    assert main(["archive", "run", "run.tar.gz"]) == 0
    expected = logits("run", SENTENCES[0])
    Path("run", "bilm").rename("elsewhere")  # the archive has its own
    assert torch.equal(logits("run.tar.gz", SENTENCES[0]), expected)
    Path("elsewhere").rename(Path("run", "bilm"))
    capsys.readouterr()
    assert main(["predict", "run.tar.gz", "text"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == ["The", "dog", "lives", "."]
    assert 0 <= elmo_tasks.evaluate("run", "dev.txt")["f1"] <= 100
    assert main(["train", "run/config.json", "-s", "more", "--from", "run", "--set", "trainer.num_epochs=1"]) == 0
    origin = json.loads(Path("more", "origin.json").read_text())
    assert not origin["not_taken"]
    kept = load_run("more").vocabulary
    row = kept.word_id("seattle")
    assert "embedder.words" in origin["taken"]
    assert row > 1


def test_the_bilm_is_written_in_the_published_layout(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path / "run")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))  # needs no room anywhere else
    imported = import_allennlp(archive, run.path)
    assert any("clips and skip connections are those of the published models" in note for note in imported.notes)
    written = BiLM.load(run.bilm.copies)
    assert written.options.architecture() == OPTIONS.architecture()
    for name, tensor in bilm().state_dict().items():
        torch.testing.assert_close(written.state_dict()[name], tensor)
    run.bilm.files_to_archive()
    assert not [name for name in (read_tensors(run.model) | read_tensors(run.frozen)) if "bilm" in name]


def test_options_of_the_archive_say_what_the_weights_do_not(tmp_path: Path) -> None:
    lstm = OPTIONS.lstm.model_copy(update={"use_skip_connections": False, "cell_clip": 1.0})
    options = OPTIONS.model_copy(update={"lstm": lstm})
    more = member("fta/model.text_field_embedder.elmo.options_file", options.model_dump_json().encode())
    path = write_archive(tmp_path / "a", NER, ner_tensors(), VOCABULARY, more=[more])
    imported = import_allennlp(path, tmp_path / "run")
    assert not any("clips" in note for note in imported.notes)
    assert BiLM.load(tmp_path / "run" / "bilm").options.lstm == lstm


def test_an_earlier_run_is_kept_without_force(archive: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    import_allennlp(archive, run)
    before = (run / "config.json").stat().st_mtime_ns
    with pytest.raises(RunError, match=r"holds config\.json.*--force removes them first"):
        import_allennlp(archive, run)
    assert (run / "config.json").stat().st_mtime_ns == before
    (state := RunFolder(run).training_state).write_bytes(b"of the earlier run")
    import_allennlp(archive, run, force=True)
    assert (run / "config.json").stat().st_mtime_ns > before
    assert not state.exists()


def without_embedder(size: int) -> dict[str, Tensor]:
    """The tensors of `NER` without its embedder, for one that gives this many features."""
    kept = {name: tensor for name, tensor in ner_tensors().items() if "token_embedder" not in name}
    return {name: tensor[:, :size] if "weight_ih_l0" in name else tensor for name, tensor in kept.items()}


def test_embedders_without_elmo_and_a_projection(tmp_path: Path) -> None:
    embedding = {"embedding_dim": 6, "projection_dim": 4, "vocab_namespace": "tokens", "trainable": False}
    embedder = {"type": "basic", "allow_unmatched_keys": True, "tokens": embedding}  # as until 0.5
    changes = {"model.text_field_embedder": embedder, "model.encoder.input_size": GONE}
    name = f"{EMBEDDER}_tokens"
    tensors = without_embedder(4) | {f"{name}.weight": ner_tensors()[f"{name}.weight"]}
    weight, bias = torch.randn(4, 6), torch.randn(4)
    tensors |= {f"{name}._projection.weight": weight, f"{name}._projection.bias": bias}
    path = write_archive(tmp_path / "a", with_changes(NER, changes), tensors, VOCABULARY)
    import_allennlp(path, tmp_path / "run")
    projected = lambda sentence: functional.linear(allennlp_words(tensors, sentence), weight, bias)  # noqa: E731
    compare_logits(tmp_path / "run", SENTENCES, tensors, projected)
    assert not load_run(tmp_path / "run").model.get_parameter("embedder.words.trained").requires_grad


@pytest.mark.parametrize("borders", [([259], [260]), ([], [260]), ([259], []), ([], [])])
def test_characters_as_bytes_in_an_lstm(borders: tuple[list[int], list[int]], tmp_path: Path) -> None:
    tokenizer: dict[str, Any] = {"byte_encoding": "utf-8"}
    tokenizer |= dict(zip(("start_tokens", "end_tokens"), borders, strict=True)) if any(borders) else {}
    changes = {
        "model.label_encoding": None,
        "dataset_reader.token_indexers.token_characters.character_tokenizer": tokenizer,
        f"{PARTS}.tokens": GONE,
        f"{PARTS}.elmo": GONE,
        f"{PARTS}.token_characters.embedding.num_embeddings": 262,
        f"{PARTS}.token_characters.encoder": {"type": "lstm", "input_size": 3, "hidden_size": 4, "num_layers": 1},
    }
    lstm, table = nn.LSTM(3, 4, batch_first=True), torch.randn(262, 3)
    prefix = f"{EMBEDDER}_token_characters."
    tensors = without_embedder(4) | {f"{prefix}_embedding._module.weight": table}
    tensors |= {f"{prefix}_encoder._module._module.{name}": tensor for name, tensor in lstm.state_dict().items()}
    labels = ("@@UNKNOWN@@", *TAGS[1:])  # without constraints any label can be predicted
    path = write_archive(tmp_path / "a", with_changes(NER, changes), tensors, {"labels": labels})
    import_allennlp(path, tmp_path / "run")

    def characters(sentence: list[str]) -> Tensor:
        rows = [[*borders[0], *(byte + 1 for byte in word.encode()), *borders[1]] for word in sentence]
        return torch.stack([lstm(table[row].unsqueeze(0))[0][0, -1] for row in rows])

    compare_logits(tmp_path / "run", [*SENTENCES, ["naïve", "語"]], tensors, characters)
    assert load_run(tmp_path / "run").vocabulary.labels["tags"] == labels


INPUT_WEIGHT = f"{EMBEDDER}_elmo._elmo._elmo_lstm._elmo_lstm.forward_layer_0.input_linearity.weight"
OTHER_MODELS: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"model.type": "dialog_qa"},
        "model.type is dialog_qa; only basic_classifier or bcn or bidaf or coref or crf_tagger",
    ),
    (dict.fromkeys(("more.0", "more.1", "more.2"), torch.zeros(2)), "unexpected tensors more.0, more.1, more.2"),
    ({f"more.{number}": torch.zeros(2) for number in range(5)}, "unexpected tensors more.0, more.1, more.2 and 2 more"),
    ({"crf.transitions": GONE}, "has no tensor 'crf.transitions'"),
    ({f"{PARTS}.tokens.type": "pretrained_transformer"}, "tokens.type is single_id; only pretrained_transformer can"),
    ({f"{PARTS}.tokens.type": "gpt"}, "tokens.type is gpt; only embedding or"),
    ({f"{PARTS}.pos": {"type": "embedding"}}, "'pos' is the second of its type"),
    ({"model.label_encoding": "BIO"}, "the label 'L-PER' is not a tag of IOB2"),
    ({"model.encoder.num_layers": "two"}, "model.encoder.num_layers is 'two'; expected a number"),
    ({"model.encoder.num_layers": 1.5}, "config.json and weights.th do not fit together"),
    ({"model.encoder": [1]}, "model.encoder is '[1]'; expected an object"),
    ({f"{PARTS}.elmo.do_layer_norm": True}, "do_layer_norm is True; only False can be imported"),
    ({"crf._constraint_mask": torch.ones(11, 11)}, "has other constraints; expected those of BIOUL"),
    ({INPUT_WEIGHT: torch.zeros(5, 4)}, "not the tensors of a biLM"),
    (
        {name: torch.zeros(4 * HIDDEN, 3) for name in ner_tensors() if ".weight_hh_l" in name},
        "the tensors do not fit the config: encoder.layers.0.weight_hh_l0 is (20, 3) (expected (20, 5)), "
        "encoder.layers.0.weight_hh_l0_reverse is (20, 3) (expected (20, 5)), "
        "encoder.layers.1.weight_hh_l0 is (20, 3) (expected (20, 5)) and 1 more",
    ),
)


@pytest.mark.parametrize(("changes", "message"), OTHER_MODELS)
def test_other_models_get_one_line_and_nothing_is_written(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """`changes` are of the config, by key paths, and of the tensors, by their names."""
    of_config = {path: value for path, value in changes.items() if path.startswith("model.")}
    tensors: dict[str, Any] = ner_tensors() | {name: changes[name] for name in changes if name not in of_config}
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not GONE}
    path = write_archive(tmp_path / "model.tar.gz", with_changes(NER, of_config), tensors, VOCABULARY)
    with pytest.raises(MigrationError) as error:
        import_allennlp(path, tmp_path / "run")
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "and 0 more" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["model.tar.gz"]
