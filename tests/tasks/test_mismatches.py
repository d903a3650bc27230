"""Which readers and models fit each other, and what is said of those that do not."""

import dataclasses
import re
from typing import Any, ClassVar

import pytest

from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.extras.other_tasks.bidaf import BidafConfig
from elmo_tasks.extras.other_tasks.decomposable_attention import DecomposableAttentionConfig
from elmo_tasks.models import ModelConfig
from elmo_tasks.models.biattentive_classifier import BiattentiveClassifierConfig
from elmo_tasks.models.bidaf import BidafSelfAttentionConfig
from elmo_tasks.models.coreference_resolver import CoreferenceResolverConfig
from elmo_tasks.models.crf_tagger import CrfTaggerConfig
from elmo_tasks.models.inference import EsimConfig
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabelerConfig
from elmo_tasks.tasks import Classification

PREDICATES = {"type": "predicates", "source": {"type": "srl_conll2012"}}
FITTING: dict[type[ModelConfig], list[dict[str, Any]]] = {
    BiattentiveClassifierConfig: [{"type": "sst"}],
    BidafConfig: [{"type": "squad"}],
    BidafSelfAttentionConfig: [{"type": "squad"}],
    CoreferenceResolverConfig: [{"type": "coref_conll2012"}],
    CrfTaggerConfig: [{"type": "conll2003"}, {"type": "conllu"}, PREDICATES],
    DecomposableAttentionConfig: [{"type": "snli"}],
    EsimConfig: [{"type": "snli"}],
    SemanticRoleLabelerConfig: [{"type": "srl_conll2005"}, {"type": "srl_conll2012"}],
}
TWICE = (BidafConfig, DecomposableAttentionConfig)
READERS = [reader for model, readers in FITTING.items() if model not in TWICE for reader in readers]


def mismatch(reader: dict[str, Any], model: ModelConfig) -> str | None:
    config = DatasetReaderConfig.model_validate(reader)
    return config.mismatch(model.task, key="dataset_reader", other=model, other_key="model")


def made(model: Any, **settings: Any) -> ModelConfig:
    """A config with only these settings: no others matter."""
    return model.model_construct(**settings)


@pytest.mark.parametrize("model", FITTING)
def test_a_model_learns_from_the_readers_of_its_task(model: type[ModelConfig]) -> None:
    for reader in READERS:
        problem = mismatch(reader, made(model, tag_scheme=None))
        assert (problem is None) == (reader in FITTING[model])


def test_both_types_and_what_would_fit_are_named() -> None:
    problem = mismatch({"type": "sst"}, made(CrfTaggerConfig))
    assert problem is not None
    assert re.fullmatch(
        r"dataset_reader 'sst' does not fit model 'crf_tagger': texts with a label each \(Classification\); expected "
        r"sentences with a tag for every token \(Tagging\)\. Readers that fit: 'conll2003', 'conllu', 'delimited', "
        r"'hub', 'jsonl', 'ner_conll2012', 'predicates', 'spans'",
        problem,
    )


@pytest.mark.parametrize(
    ("reader", "model", "problem"),
    [
        (PREDICATES, made(CrfTaggerConfig, tag_scheme="IOB2"), None),
        (PREDICATES, made(CrfTaggerConfig, tag_scheme=None), None),
        (
            {"type": "conllu"},
            made(CrfTaggerConfig, tag_scheme="BIOUL"),
            "tags that are not spans; expected tags in BIOUL. Set model.tag_scheme to null",
        ),
        ({"type": "conll2003"}, made(CrfTaggerConfig, tag_scheme="BIOUL"), None),
        (
            {"type": "conll2003", "tag_scheme": "IOB1"},
            made(CrfTaggerConfig, tag_scheme="IOB2"),
            'tags in IOB1; expected tags in IOB2. Set model.tag_scheme to "IOB1", '
            'or dataset_reader.tag_scheme to "IOB2"',
        ),
        ({"type": "snli", "end_token": "NULL"}, made(DecomposableAttentionConfig, end_token="NULL"), None),
        (
            {"type": "snli"},
            made(DecomposableAttentionConfig, end_token="NULL"),
            "texts with the end token None; expected 'NULL'. Set model.end_token to null, or "
            'dataset_reader.end_token to "NULL"',
        ),
        ({"type": "squad", "no_answer": True}, made(BidafConfig, no_answer=True), None),
        (
            {"type": "squad", "no_answer": True},
            made(BidafConfig, no_answer=False),
            "questions that may have no answer; expected questions that all have an answer. Set model.no_answer to "
            "true, or dataset_reader.no_answer to false",
        ),
    ],
)
def test_the_settings_of_the_model_are_the_reader_s(reader: dict[str, Any], model: Any, problem: str | None) -> None:
    found = mismatch(reader, model)
    assert found == (problem and f"dataset_reader '{reader['type']}' does not fit model '{model.type}': {problem}")


def test_a_special_case_of_a_task_fits_it_and_not_the_other_way_round() -> None:
    @dataclasses.dataclass(frozen=True)
    class Topics(Classification):
        summary: ClassVar[str] = "texts with a topic each"

    assert Topics().mismatch(Classification()) is None
    assert Classification().mismatch(Topics()) == (
        "texts with a label each (Classification); expected texts with a topic each (Topics)"
    )


def test_two_readers_are_compared_as_a_reader_and_a_model_are() -> None:
    one, other = (Conll2003Config(tag_scheme=scheme) for scheme in ("IOB2", "BIOUL"))
    keys = {"key": "validation_dataset_reader", "other_key": "dataset_reader"}
    assert one.mismatch(one.task, other=one, **keys) is None
    assert one.mismatch(other.task, other=other, **keys) == (
        "validation_dataset_reader 'conll2003' does not fit dataset_reader 'conll2003': tags in IOB2; expected tags in "
        'BIOUL. Set dataset_reader.tag_scheme to "IOB2", or validation_dataset_reader.tag_scheme to "BIOUL"'
    )
