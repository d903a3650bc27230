"""Which readers and models fit each other, and what is said of those that do not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from elmo_tasks.compatibility import find_misfit
from elmo_tasks.data_readers import DatasetReaderConfig, SstReader
from elmo_tasks.models import (
    BiattentiveClassifierConfig,
    BidafConfig,
    BidafSelfAttentionConfig,
    CoreferenceResolverConfig,
    CrfTaggerConfig,
    EsimConfig,
    ModelConfig,
    SemanticRoleLabelerConfig,
)

PREDICATES = {"type": "predicates", "source": {"type": "srl_conll2012"}}
FITTING: dict[type[ModelConfig], list[dict[str, Any]]] = {
    BiattentiveClassifierConfig: [{"type": "sst"}],
    BidafConfig: [{"type": "squad"}],
    BidafSelfAttentionConfig: [{"type": "squad"}],
    CoreferenceResolverConfig: [{"type": "coref_conll2012"}],
    CrfTaggerConfig: [{"type": "conll2003"}, {"type": "conllu"}, PREDICATES],
    EsimConfig: [{"type": "snli"}],
    SemanticRoleLabelerConfig: [{"type": "srl_conll2005"}, {"type": "srl_conll2012"}],
}
READERS = [reader for model, readers in FITTING.items() if model is not BidafConfig for reader in readers]


def misfit(reader: dict[str, Any], model: ModelConfig) -> str | None:
    return find_misfit("dataset_reader", DatasetReaderConfig.model_validate(reader), model)


@pytest.mark.parametrize("model", FITTING)
def test_a_model_takes_the_batches_that_it_is_made_for(model: type[ModelConfig]) -> None:
    for reader in READERS:
        problem = misfit(reader, model.model_construct(tag_scheme=None))
        assert (problem is None) == (reader in FITTING[model])


def test_both_types_and_what_would_fit_are_named() -> None:
    problem = misfit({"type": "sst"}, CrfTaggerConfig.model_construct())
    assert problem is not None
    assert re.fullmatch(
        r"dataset_reader 'sst' gives ClassificationBatch \(Texts with a label each\); 'crf_tagger' wants TaggingBatch "
        r"\(Sentences with a tag for every token\)\. Readers that fit: .*'conll2003', 'conllu'.*'predicates'.*",
        problem,
    )


@pytest.mark.parametrize(
    ("reader", "scheme", "problem"),
    [
        (PREDICATES, "IOB2", None),
        (PREDICATES, None, None),
        (PREDICATES, "BIOUL", 'gives tags in IOB2; .* wants them in BIOUL: set model.tag_scheme to "IOB2"'),
        ({"type": "conllu"}, "BIOUL", "gives tags that are no spans; .*: set model.tag_scheme to null"),
        ({"type": "conll2003"}, "BIOUL", None),
        (
            {"type": "conll2003", "tag_scheme": "IOB1"},
            "IOB2",
            'gives tags in IOB1; .*: set model.tag_scheme to "IOB1", or dataset_reader.tag_scheme to "IOB2"',
        ),
    ],
)
def test_the_tagger_s_scheme_is_the_reader_s(reader: dict[str, Any], scheme: str | None, problem: str | None) -> None:
    found = misfit(reader, CrfTaggerConfig.model_construct(tag_scheme=scheme))
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert re.fullmatch(rf"dataset_reader '{reader['type']}' {problem}", found)


def test_what_annotations_do_not_tell_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    for annotation in ("NameForTypeCheckersAlone", "Batch"):
        monkeypatch.setitem(SstReader.collate.__annotations__, "return", annotation)
        assert misfit({"type": "sst"}, CrfTaggerConfig.model_construct()) is None
