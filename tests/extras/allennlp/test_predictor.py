"""AllenNLP's `Predictor` with an archive of AllenNLP's; with a run, it is tested in `test_api`."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import elmo_tasks
from elmo_tasks import cli, compat
from elmo_tasks.errors import (
    AllenNlpArchiveError,
    ArgumentError,
    DataError,
    ElmoTasksError,
    MigrationError,
    RemoteError,
    RunError,
)
from elmo_tasks.extras.allennlp import predictor
from elmo_tasks.extras.allennlp.importing import import_allennlp
from elmo_tasks.extras.allennlp.predictor import Predictor
from elmo_tasks.runs.archive import open_run
from tests.extras.allennlp.archives import write_archive
from tests.extras.allennlp.heads import write

WORDS = ["@@PADDING@@", "@@UNKNOWN@@", "the", "cat", "sat", "down"]
TAGS = ["DET", "NOUN", "VERB"]
TOKENS = ["the", "cat", "sat", "there"]


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    """Those of a `simple_tagger`: word vectors, an LSTM, a projection."""
    torch.manual_seed(4)
    lstm = {f"encoder._module.{name}": tensor for name, tensor in nn.LSTM(4, 3).state_dict().items()}
    embedding = {"text_field_embedder.token_embedder_tokens.weight": 2 * torch.randn(len(WORDS), 4)}
    projection = {"weight": 4 * torch.randn(len(TAGS), 3), "bias": torch.randn(len(TAGS))}
    return embedding | lstm | {f"tag_projection_layer._module.{name}": each for name, each in projection.items()}


@pytest.fixture
def archive(weights: dict[str, torch.Tensor], tmp_path: Path) -> Path:
    model = {
        "type": "simple_tagger",
        "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
        "encoder": {"type": "lstm", "input_size": 4, "hidden_size": 3},
    }
    config = {"dataset_reader": {"type": "sequence_tagging"}, "train_data_path": "train.tsv", "model": model}
    return write_archive(tmp_path / "model.tar.gz", config, weights, {"tokens": WORDS[1:], "labels": TAGS})


@pytest.fixture
def unpacked(archive: Path, tmp_path: Path) -> Path:
    """The folder that an archive unpacks to."""
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_an_archive_is_imported_once(
    archive: Path, weights: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm = nn.LSTM(4, 3)
    lstm.load_state_dict({name: weights[f"encoder._module.{name}"] for name in lstm.state_dict()})
    rows = torch.tensor([WORDS.index(token) if token in WORDS else 1 for token in TOKENS])
    encoded = lstm(weights["text_field_embedder.token_embedder_tokens.weight"][rows])[0]
    logits = encoded @ weights["tag_projection_layer._module.weight"].t() + weights["tag_projection_layer._module.bias"]
    tags = [TAGS[number] for number in logits.argmax(dim=1).tolist()]
    assert len(set(tags)) > 1
    for _ in range(2):
        result = Predictor.from_path(archive, "sentence_tagger").predict(sentence=" ".join(TOKENS))
        torch.testing.assert_close(torch.tensor(result.pop("logits")), logits.detach(), atol=1e-5, rtol=1e-5)
        shares = torch.tensor(result.pop("class_probabilities"))
        torch.testing.assert_close(shares, logits.detach().softmax(1), atol=1e-5, rtol=1e-5)
        assert result == {"words": TOKENS, "tags": tags, "mask": [True] * len(TOKENS)}
        monkeypatch.delattr(predictor, "import_allennlp", raising=False)


def test_elsewhere_an_archive_says_how_it_is_imported(
    archive: Path, unpacked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (archive, unpacked):
        expected = f"{path}: an AllenNLP archive; `elmo-tasks import-allennlp {path} RUN` turns it into a run"
        with pytest.raises(AllenNlpArchiveError) as caught:
            open_run(path)
        assert str(caught.value) == expected
        assert cli.main(["predict", str(path), str(unpacked / "config.json")]) == 2
        assert capsys.readouterr().err == f"error: {expected}\n"
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(RunError, match="damaged, or not the archive of a run"):
        open_run(archive)


SENTENCE = "The nice nurse knew his rights and could sing."


def test_a_script_of_roles() -> None:
    roles = compat.Predictor.from_path("roles", cuda_device=-1, import_plugins=True)
    assert isinstance(roles, compat.SemanticRoleLabelerPredictor)
    before, result, after = roles.predict_batch_json([{"sentence": ""}, {"sentence": SENTENCE}, {"sentence": " "}])
    assert before == after == roles.predict_tokenized([]) == {"verbs": [], "words": []}
    with pytest.raises(DataError, match="expected"):
        roles.predict(sentence=None)
    assert [verb["verb"] for verb in result["verbs"]] == ["knew", "could", "sing"]
    nouns = compat.Predictor.from_path("roles", predicates="predicates").predict(sentence=SENTENCE)
    assert "could" not in [verb["verb"] for verb in nouns["verbs"]]
    assert roles.predict_tokenized(SENTENCE.replace(".", " .").split())["verbs"] == result["verbs"]


def test_a_document_of_spacy_s_is_resolved() -> None:
    """Its clusters may count other tokens, which are given then."""
    spacy = pytest.importorskip("spacy")
    resolve, english = compat.CorefPredictor.replace_corefs, spacy.blank("en")
    document = english("Ann lost her keys.")
    assert resolve(document, [[[0, 0], [2, 2]]]) == "Ann lost Ann's keys."
    for token, tag in zip(document, ["NNP", "VBD", "PRP", "NNS", "."], strict=True):
        token.tag_ = tag
    assert resolve(document, [[[0, 0], [2, 2]]]) == "Ann lost Ann keys."
    text, tokens = "Ann-Lee  came. She didn't say.", ["Ann-Lee", "came", ".", "She", "did", "n't", "say", "."]
    document = english(text)
    clusters, own = [[[0, 0], [3, 3]]], [[[0, 2], [6, 6]]]
    assert [token.text for token in document][:7] == ["Ann", "-", "Lee", " ", "came", ".", "She"]
    for given in (clusters, own):
        with pytest.raises(ElmoTasksError, match=r"expected tokens=result\['document'\], or tokens="):
            resolve(document, given)
    for given, words in ((clusters, tokens), (own, [token.text for token in document])):
        assert resolve(document, given, words) == "Ann-Lee  came. Ann-Lee didn't say."
    assert resolve(document, []) == text
    for wrong, words in (([[[0, 0], [99, 99]]], tokens), ([[[0, 0], [1, 1]]], ["Ann-Lee", "gone"])):
        with pytest.raises(ElmoTasksError, match="are not those of the document"):
            resolve(document, wrong, words)


def test_overrides_change_the_config_of_an_archive(archive: Path) -> None:
    changes: dict[str, Any] = {"model": {"encoder": {"hidden_size": 7}}}
    jsonnet = "{model+: {encoder+: {hidden_size: 3 + 4}}}  // as AllenNLP reads them"
    for overrides in (changes, {"model.encoder.hidden_size": 7}, json.dumps(changes), jsonnet):
        with pytest.raises(MigrationError, match=r"by its config it should be|do not fit"):
            compat.Predictor.from_path(archive, overrides=overrides)
    same = compat.Predictor.from_path(archive, overrides={"random_seed": 3}).predict(sentence=" ".join(TOKENS))
    assert same == compat.Predictor.from_path(archive).predict(sentence=" ".join(TOKENS))
    for wrong, problem in (("a", "expected a mapping"), ({"a": 1}, "overrides are for AllenNLP's archives")):
        with pytest.raises(ArgumentError, match=problem):
            compat.Predictor.from_path("ner", overrides=wrong)


def test_texts_are_read_as_allennlp_predicts(archive: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the validation reader, also within another; what has no meaning here is said once."""
    reader = {"type": "sequence_tagging", "token_indexers": {"tokens": {"type": "single_id", "lowercase_tokens": True}}}
    for given in (reader, {"type": "sharded", "base_reader": reader}):
        caplog.clear()
        overrides: dict[str, Any] = {"validation_dataset_reader": given, "trainer": {}}
        for _ in range(2):
            tagger = compat.Predictor.from_path(archive, cuda_device=torch.device("cpu"), overrides=overrides)
            assert tagger.predict(sentence="THE cat")["logits"] == tagger.predict(sentence="the CAT")["logits"]
        _, message = (each.getMessage() for each in caplog.records)
        assert message == f"{archive}: without a meaning here: trainer"
    for overrides, problem in (
        ({"dataset_reader": {"readers": {"a": reader}}}, r"dataset_reader\.readers is "),
        ({"model.type.x": 3}, r"config\.json and weights\.th do not fit together"),
    ):
        with pytest.raises(MigrationError, match=problem):
            compat.Predictor.from_path(archive, overrides=overrides)


def test_the_folder_of_a_training_is_imported_once(
    archive: Path, unpacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has `best.th`, and files of the training that do not count; another config is another model."""
    expected = Predictor.from_path(archive).predict_tokenized(TOKENS)
    (unpacked / "weights.th").rename(unpacked / "best.th")
    assert Predictor.from_path(unpacked).predict_tokenized(TOKENS) == expected
    (unpacked / "log").mkdir()
    (unpacked / "metrics.json").write_text("{}")
    with monkeypatch.context() as patch:
        patch.setattr(predictor, "import_allennlp", None)
        assert Predictor.from_path(unpacked).predict_tokenized(TOKENS) == expected
    config = json.loads((unpacked / "config.json").read_text())
    config["model"]["encoder"]["hidden_size"] = 7
    (unpacked / "config.json").write_text(json.dumps(config))
    with pytest.raises(MigrationError, match="the tensors do not fit the config"):
        Predictor.from_path(unpacked)


def test_classes_are_of_their_tasks(archive: Path) -> None:
    assert type(compat.Predictor.from_path(archive)) is compat.SentenceTaggerPredictor
    with pytest.raises(ElmoTasksError, match="its predictor is a SentenceTaggerPredictor; expected a CorefPredictor"):
        compat.CorefPredictor.from_path(archive)
    with pytest.raises(ArgumentError, match="weights_file"):
        compat.load_archive(archive, weights_file="best.th")  # type: ignore[arg-type]


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "model.tar.gz"
    loaders: list[Any] = [compat.load_archive, compat.Predictor.from_path, compat.load_predictor]
    for loader in loaders:
        with pytest.raises(RunError, match=f"^{missing}: expected a run's folder, .*; there is no such file or folder"):
            loader(missing)
        with pytest.raises(ArgumentError, match="is None; expected an archive, or a run"):
            loader(None)


def test_a_function_finds_the_predicates_that_an_input_does_not_have(tmp_path: Path) -> None:
    path = write("srl", tmp_path / "roles.tar.gz")
    roles = compat.Predictor.from_path(path, predicates=lambda tokens: [tokens.index("is")])
    result = roles.predict(sentence="orla is it ?")
    assert [verb["verb"] for verb in result["verbs"]] == ["is"]
    assert roles.predict_json({"text": "orla is it ?"}) == roles.predict_tokenized(result["words"]) == result
    given = roles.predict_json({"tokens": result["words"], "predicates": [0, 2]})
    assert [verb["verb"] for verb in given["verbs"]] == ["orla", "it"]
    with pytest.raises(
        DataError, match="'predicates' are indices of tokens; expected 'tokens' with them, not 'sentence'"
    ):
        roles.predict_json({"sentence": "orla is it ?", "predicates": [0]})


def test_an_input_is_given_once(archive: Path) -> None:
    tagger = compat.Predictor.from_path(archive)
    assert tagger.predict("the cat") == tagger.predict(sentence="the cat")
    for values, inputs in ((("the", "cat"), {}), (("the cat",), {"sentence": "the cat"})):
        with pytest.raises(ArgumentError, match="predict takes sentence, each once"):
            tagger.predict(*values, **inputs)


def test_labels_are_those_of_the_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Here, the numbers of the sentiment treebank have names, and evaluation reads its files with them."""
    changes = {"dataset_reader": {"type": "sst_tokens"}}
    path = write("bcn", tmp_path / "sst.tar.gz", changes, labels=("3", "0", "2"))
    result = compat.Predictor.from_path(path).predict(sentence="orla is it")
    assert result["labels"] == ["3", "0", "2"]
    assert result["label"] == result["labels"][result["probs"].index(max(result["probs"]))]
    import_allennlp(path, tmp_path / "run")
    own = elmo_tasks.load(tmp_path / "run")("orla is it")[0]
    assert set(own["probabilities"]) == {"positive", "very negative", "neutral"}
    (tmp_path / "a.txt").write_text("orla is it")
    assert cli.main(["predict", str(tmp_path / "run"), str(tmp_path / "a.txt"), "--format", "allennlp"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == ["3", "0", "2"]


def test_each_input_of_a_list_has_a_result(tmp_path: Path, archive: Path) -> None:
    """As in AllenNLP also a sentence without words; what cannot be read says why, and the others have theirs."""
    tagger, classifier = map(compat.Predictor.from_path, (archive, write("bcn", tmp_path / "bcn.tar.gz")))
    inputs: list[Any] = [{"sentence": text} for text in ("the cat", " ", None)]
    others: list[Any] = [3, {"tokens": []}]
    first, blank, null, other, tokens = tagger.predict_batch_json(inputs + others)
    assert first == tagger.predict_json(inputs[0])
    assert blank == tokens == {"words": [], "tags": [], "mask": [], "logits": [], "class_probabilities": []}
    assert (null["error"], other["error"][:11]) == ("'sentence' is null; expected a string", "3; expected")
    found = classifier.predict_batch_json(inputs)
    assert found[1:] == [{"error": "'sentence' is ' '; expected a string that is not blank"}, null]
    with pytest.raises(DataError, match="not blank"):
        classifier.predict_json(inputs[1])
    for predictor_of in (tagger, compat.Predictor.from_path("roles")):
        for wrong in ("the cat", archive, {"sentence": "the cat"}):
            with pytest.raises(ArgumentError, match=r"^inputs is .*; expected a list of dicts$"):
                predictor_of.predict_batch_json(wrong)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"^inputs is 'the cat'; expected a dict$"):
            predictor_of.predict_json("the cat")  # type: ignore[arg-type]


def test_an_address_is_downloaded_once(archive: Path) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=archive.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        found = compat.Predictor.from_path(f"{address}/{archive.name}").predict(sentence=" ".join(TOKENS))
        server.shutdown()
    again = compat.Predictor.from_path(f"{address}/{archive.name}")
    assert again.predict(sentence=" ".join(TOKENS)) == found


def test_a_published_model_that_cannot_be_imported(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"^rc-bidaf-elm: .* Not all published models .* Did you mean 'rc-bidaf-elmo'\?$"
    ):
        compat.load_predictor("rc-bidaf-elm")
    with pytest.raises(RunError) as caught:
        compat.load_predictor(str(tmp_path))  # another problem
    assert "Not all" not in str(caught.value)


def test_an_address_without_a_network(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says where a file from elsewhere is found; then the script works as it is."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    name = "ner-elmo.2021-02-12.tar.gz"
    for loaded in (
        lambda: compat.Predictor.from_path(f"https://storage.googleapis.com/allennlp-public-models/{name}"),
        lambda: compat.load_predictor("tagging-elmo-crf-tagger"),
    ):
        with pytest.raises(RemoteError) as caught:
            loaded()
        assert "\n" not in str(caught.value)
        pattern = rf"give the path of {re.escape(name)}, or put it into (.+)$"
        (folder,) = map(Path, re.findall(pattern, str(caught.value)))
    folder.mkdir(parents=True)
    shutil.copy(archive, folder / name)
    assert loaded().predict(sentence="the cat")["words"] == ["the", "cat"]
