"""The components `elmo_roles` and `elmo_coref` of spaCy pipelines, with the trained models."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

spacy = pytest.importorskip("spacy")

from elmo_tasks.errors import ElmoTasksError  # noqa: E402
from elmo_tasks.extras.allennlp.importing import import_allennlp  # noqa: E402
from elmo_tasks.extras.spacy.spacy_tasks import CorefComponent, RolesComponent  # noqa: E402
from tests.extras.allennlp.heads import write  # noqa: E402

TEXT = "The nurse gave the old man  his blanket.\nHe thanked her."


@pytest.fixture(scope="module")
def nlp() -> Any:
    """A pipeline with both components."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("elmo_roles", config={"predicates": "pos", "device": "cpu"})
    pipeline.add_pipe("elmo_coref", config={"device": "cpu"})
    return pipeline


def test_roles(nlp: Any, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    for pipeline in (nlp, spacy.load(tmp_path / "pipeline")):
        doc = pipeline(TEXT)
        assert [frame.predicate.text for frame in doc._.roles] == ["gave", "thanked"]
        assert [(role.label_, role.text) for role in doc._.roles[0].roles] == [
            ("ARG0", "The nurse"),
            ("ARG2", "the old man"),
            ("ARG1", "his blanket"),
        ]
    assert len(spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())._.roles) == 2
    assert pipeline("")._.roles == []


@pytest.mark.parametrize("text", ["Stop", "Stop.", "Stop. Go"])
def test_sentences_of_one_word(text: str, nlp: Any) -> None:
    doc = nlp(text)
    assert {frame.predicate.text for frame in doc._.roles} <= {"Stop", "Go"}
    assert [frame.predicate.text for frame in doc._.roles][:1] == ["Stop"]
    assert doc._.resolved_text == text
    assert not doc.spans


def test_coreference(nlp: Any) -> None:
    doc = nlp("Peter told  Mary that he would help her.")
    chains = {name: [span.text for span in spans] for name, spans in doc.spans.items()}
    assert chains == {"coref_clusters_1": ["Peter", "he"], "coref_clusters_2": ["Mary", "her"]}
    assert doc._.resolved_text == "Peter told  Mary that Peter would help Mary."
    assert nlp("It rained.")._.resolved_text == "It rained."


def test_tokens_that_are_merged_or_split_later(nlp: Any) -> None:
    doc = nlp(TEXT)

    def results() -> list[Any]:
        frames = [(frame.predicate.text, [role.text for role in frame.roles]) for frame in doc._.roles]
        return [frames, [[span.text for span in chain] for chain in doc._.coref_clusters]]

    expected = results()
    assert len(expected[0]) == 2
    assert len(expected[1]) == 1
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert doc[0].text == "The nurse"
    assert results() == expected
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[2], ["t", "he"], [doc[1], doc[1]])
    assert results() == expected


def test_runs_are_saved_with_a_pipeline(tmp_path: Path) -> None:
    """A pipeline works elsewhere, where its runs are not."""
    nlp = spacy.blank("en")
    for name, kind in (("elmo_roles", "srl"), ("elmo_coref", "coref")):
        import_allennlp(write(kind, tmp_path / f"{kind}.tar.gz"), tmp_path / "runs" / kind)
        more = {"predicates": "pos"} if kind == "srl" else {}
        nlp.add_pipe(name, config={"run": str(tmp_path / "runs" / kind), "device": "cpu", **more})

    def results(pipeline: Any) -> list[Any]:
        doc = pipeline("orla will sell it .")
        spans = {name: [(span.start, span.end) for span in group] for name, group in doc.spans.items()}
        return [doc.to_json()["tokens"], [str(frame) for frame in doc._.roles], spans, doc._.resolved_text]

    expected = results(nlp)
    assert len(expected[1]) == 2
    nlp.to_disk(tmp_path / "pipeline")
    saved = nlp.to_bytes()
    shutil.rmtree(tmp_path / "runs")
    other = spacy.blank("en")
    other.add_pipe("elmo_roles", config={"predicates": "pos", "run": "gone", "device": "cpu"})
    other.add_pipe("elmo_coref", config={"run": "gone", "device": "cpu"})
    for pipeline in (spacy.load(tmp_path / "pipeline"), other.from_bytes(saved)):
        assert results(pipeline) == expected


def test_extensions_of_others_stay() -> None:
    spacy.tokens.Doc.set_extension("roles", default="ours", force=True)
    try:
        doc = RolesComponent("roles", "pos", "cpu")(spacy.blank("en")("Ann left."))
        assert doc._.roles == "ours"
        assert [predicate for predicate, _ in doc.user_data["elmo_roles"]] == [[4, 8]]
    finally:
        spacy.tokens.Doc.remove_extension("roles")


def test_runs_of_other_tasks() -> None:
    doc = spacy.blank("en")(TEXT)
    with pytest.raises(ElmoTasksError, match="ner: is a run of tagging; expected one of coreference"):
        CorefComponent("ner", "cpu")(doc)
    with pytest.raises(ElmoTasksError, match="predicates are for semantic roles"):
        RolesComponent("ner", "predicates", "cpu")(doc)
