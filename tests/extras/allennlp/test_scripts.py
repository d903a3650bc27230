"""Scripts that were written for AllenNLP run when only their import is changed, and perhaps the name of their model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.extras.allennlp.heads import write
from tests.extras.allennlp.transformers import spanbert

# Each reads MODEL and leaves its results in `found`.
DESCRIPTIONS = """
import re
from allennlp.models.archival import load_archive
from allennlp_models.structured_prediction.predictors.srl import SemanticRoleLabelerPredictor

archive = load_archive(MODEL, cuda_device=-1)
predictor = SemanticRoleLabelerPredictor.from_archive(archive, "semantic_role_labeling")
found = []
for text in TEXTS:
    for verb in predictor.predict(sentence=text)["verbs"]:
        parts = re.findall(r"\\[([^:\\]]+): ([^\\]]*)\\]", verb["description"])
        found.append({role: words for role, words in parts})
"""
PAIRS = """
import allennlp_models.coref
from allennlp.predictors import Predictor

predictor = Predictor.from_path(archive_path=MODEL, predictor_name="coreference_resolution")
found = []
for text in TEXTS:
    result = predictor.predict(document=text)
    for number, (start, end) in enumerate(result["top_spans"]):
        chosen = result["predicted_antecedents"][number]
        if chosen != -1:
            first, last = result["top_spans"][result["antecedent_indices"][number][chosen]]
            pair = [result["document"][start : end + 1], result["document"][first : last + 1]]
            found.append([" ".join(words) for words in pair])
"""
RESOLVED = """
from allennlp_models.pretrained import load_predictor
from allennlp_models.coref import CorefPredictor

predictor = load_predictor(MODEL)
assert isinstance(predictor, CorefPredictor)
found = [predictor.coref_resolved(text) for text in TEXTS]
"""


def run(script: str, model: str | Path, texts: list[str]) -> list[Any]:
    """The results of a script with `elmo_tasks.compat` in the place of AllenNLP's modules."""
    changed = re.sub(r"^from allennlp\S* import", "from elmo_tasks.compat import", script, flags=re.MULTILINE)
    changed = re.sub(r"^import allennlp\S*$", "", changed, flags=re.MULTILINE)
    names: dict[str, Any] = {"MODEL": str(model), "TEXTS": texts}
    exec(compile(changed, "script", "exec"), names)
    return names["found"]


def written(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | Path:
    """The archive of a model with random weights, whose transformer is the hub's; or a trained model's own name."""
    if kind == "coreference":
        return kind
    if kind == "coref":
        return write(kind, folder / "coref.tar.gz")
    pytest.importorskip("transformers")
    monkeypatch.setattr("elmo_tasks.extras.allennlp.transformer.hub_folder", lambda *_: folder / "bert")
    return spanbert(folder)


NEWS = ["The company sold its old mill.", "Oh, rain!", "Orla will teach him on Monday."]


def test_roles() -> None:
    expected = [
        {"ARG0": "The company", "V": "sold", "ARG1": "its old mill"},
        {"V": "will"},
        {"ARG0": "Orla", "ARGM-MOD": "will", "V": "teach", "ARG1": "him", "ARGM-TMP": "on Monday"},
    ]
    assert run(DESCRIPTIONS, "roles", NEWS) == expected


@pytest.mark.parametrize("kind", ["coreference", "coref", "spanbert"])
def test_pairs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Peter told Mary that he would help her.", "orla is it ? tarn vale is it ."]
    model = written(kind, tmp_path, monkeypatch)
    pairs = run(PAIRS, model, texts)
    if model == "coreference":
        assert pairs[:2] == [["he", "Peter"], ["her", "Mary"]]
    else:
        assert pairs


def test_resolved_texts(tmp_path: Path) -> None:
    texts = ["Peter told Mary that he would help her.", "Oh, rain!", " "]
    assert run(RESOLVED, "coreference", texts) == ["Peter told Mary that Peter would help Mary.", *texts[1:]]
    assert run(RESOLVED, write("coref", tmp_path / "coref.tar.gz"), ["Rain"]) == ["Rain"]
