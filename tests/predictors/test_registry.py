import dataclasses

import pytest
from torch import nn

import elmo_tasks.predictors
import elmo_tasks.tasks
from elmo_tasks.data_readers.rows import ROW_TASKS
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.allennlp.allennlp_format import FORMATS, AllenNlpPredictor
from elmo_tasks.extras.raw_text.tokenizers import UnicodeTokenizer
from elmo_tasks.models import TaskModel
from elmo_tasks.models.biattentive_classifier import BiattentiveClassifier
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabeler
from elmo_tasks.predictors import PREDICTORS, Predictor, build_predictor, register_predictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.rendering.tasks import DESCRIPTIONS
from elmo_tasks.tasks import Tagging, Task, TaskRegistry


def bare(model: type[TaskModel]) -> TaskModel:
    """A model without its parts."""
    made = model.__new__(model)
    nn.Module.__init__(made)
    return made


def test_the_tagger_s_predictor() -> None:
    model = bare(CrfTagger)
    model.task = Tagging("BIOUL")
    tokenizer = UnicodeTokenizer()
    built = build_predictor(model, None, batch_tokens=7, tokenizer=tokenizer)  # type: ignore[arg-type]
    assert type(built) is TaggerPredictor
    for each in (built, AllenNlpPredictor(built)):
        assert (each.batch_tokens, each.tokenizer) == (7, tokenizer)


def test_the_nearest_base_s_predictor_is_taken(predictor: TaggerPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    class OwnPredictor(TaggerPredictor):
        pass

    @dataclasses.dataclass(frozen=True)
    class OwnTagging(Tagging):
        pass

    monkeypatch.setattr(elmo_tasks.predictors, "PREDICTORS", TaskRegistry())
    predictor.model.task = OwnTagging("BIOUL")

    def build() -> Predictor:
        return build_predictor(predictor.model, predictor.vocabulary)

    with pytest.raises(TypeError, match="no predictor for the task OwnTagging"):
        build()
    register_predictor(Tagging, TaggerPredictor)
    assert type(build()) is TaggerPredictor
    register_predictor(OwnTagging, OwnPredictor)
    assert type(build()) is OwnPredictor


def test_predicates_are_for_semantic_roles_and_found_by_a_tagger(predictor: TaggerPredictor) -> None:
    labeller, classifier = bare(SemanticRoleLabeler), bare(BiattentiveClassifier)
    with pytest.raises(ElmoTasksError, match="the model of the run is a BiattentiveClassifier"):
        build_predictor(classifier, predictor.vocabulary, predicates=predictor)
    other = build_predictor(classifier, predictor.vocabulary)
    with pytest.raises(ElmoTasksError, match="the model of their run is a BiattentiveClassifier"):
        build_predictor(labeller, predictor.vocabulary, predicates=other)


def test_what_belongs_to_a_task_is_registered_under_its_name() -> None:
    """Other tests add tasks of their own."""
    tasks = (getattr(elmo_tasks.tasks, name) for name in elmo_tasks.tasks.__all__)
    names = {task.name for task in tasks if issubclass(task, Task) and task is not Task}
    new = {"multi_label", "regression", "pair_regression"}  # AllenNLP has no predictor for them
    assert names == {"classification", "coreference", "reading", "semantic_roles", "tagging", "text_pairs", *new}
    registries = (PREDICTORS, DESCRIPTIONS, FORMATS, ROW_TASKS)
    missing = [names - registry.keys() - (new if registry is FORMATS else set()) for registry in registries]
    assert missing == [set()] * len(registries)


def test_allennlp_has_no_predictor_for_the_tasks_of_users(
    predictor: TaggerPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(FORMATS, "tagging")
    with pytest.raises(TypeError, match="AllenNLP has no predictor for the task Tagging"):
        AllenNlpPredictor(predictor)
