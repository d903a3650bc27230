"""Several models of a task as one, whose output is the mean of theirs."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from elmo_tasks.config import Overrides
from elmo_tasks.elmo.fast.bilm import layers_kept
from elmo_tasks.errors import ElmoTasksError, RunError, some_of
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.load import Run, load_run
from elmo_tasks.tasks import Batch
from elmo_tasks.text.tokens import TensorRecord, Tokens
from elmo_tasks.text.vocabulary import Vocabulary

_RecordT = TypeVar("_RecordT", bound=TensorRecord)


class Member(NamedTuple):
    """A model of an ensemble."""

    name: str  # in messages
    model: TaskModel[Any, Any]
    vocabulary: Vocabulary


def load_ensemble(paths: Sequence[str | Path], overrides: Overrides = ()) -> Run:
    """Several runs as one, whose config, reader and vocabulary are those of the first; errors as of `load_run`."""
    for path, times in Counter(map(str, paths)).items():
        if times > 1:
            raise RunError(f"{path}: given {times} times; expected different runs")
    runs = [load_run(path, overrides=overrides) for path in paths]
    members = [Member(str(path), run.model, run.vocabulary) for path, run in zip(paths, runs, strict=True)]
    own_paths = [run.path for run in runs if isinstance(run.path, Path)]
    return dataclasses.replace(runs[0], path=own_paths, model=ensemble(members))


def ensemble(members: Sequence[Member]) -> TaskModel[Any, Any]:
    """The first member's model, whose output is the mean of all members' outputs.

    It reads batches of the first member's vocabulary. What is averaged is up to the head: see `TaskModel.to_average`.
    The members may know other words, but have the same labels, which are in alphabetical order. A frozen biLM that
    several members share computes a batch once.

    Raises:
        ElmoTasksError: the members are of different tasks or heads, or do not have the same labels.
    """
    first, *others = members
    for other in others:
        if mismatch := other.model.task.mismatch(first.model.task) or first.model.task.mismatch(other.model.task):
            raise ElmoTasksError(f"{other.name}: cannot be combined with {first.name}: {mismatch}")
        if type(other.model) is not type(first.model):
            heads = f"{type(other.model).__name__}; expected {type(first.model).__name__}, as {first.name} has"
            raise ElmoTasksError(f"{other.name}: cannot be combined: its head is a {heads}")
        for kind, labels in first.vocabulary.labels.items():
            if (own := other.vocabulary.labels[kind]) != labels:
                different = sorted(set(labels).symmetric_difference(own))  # none in imported runs with another order
                problem = f"only one of it and {first.name} knows the {kind} {some_of(different)}"
                problem = problem if different else f"its {kind} are not in the order of {first.name}"
                raise ElmoTasksError(f"{other.name}: cannot be combined: {problem}; expected runs with the same labels")
    models = [member.model for member in members]
    lead = _averaged(first.model, models)
    lead._modules["members"] = nn.ModuleList(models)
    lead.forward = functools.partial(_mean_output, lead, members)  # type: ignore[method-assign]
    return lead.eval()


def _averaged(model: TaskModel[Any, Any], models: Sequence[TaskModel[Any, Any]]) -> TaskModel[Any, Any]:
    """A copy of a model that decodes the mean output of models of the same head; its threshold is the mean of theirs.

    The scores of single tags are averaged with the outputs. The scores of transitions are averaged here.
    """
    twin = copy.copy(model)
    twin.temperature = 1.0  # means are less certain than each model, whose temperature would be too high
    twin._modules, twin._buffers = dict(model._modules), dict(model._buffers)
    if model.threshold is not None:
        twin.threshold = torch.stack([each.threshold for each in models if each.threshold is not None]).mean()
    if isinstance(twin, CrfTagger):
        twin.crf = copy.deepcopy(twin.crf)
        taggers = [each for each in models if isinstance(each, CrfTagger)]
        for name, parameter in twin.crf.named_parameters():  # (K,) or (K, K)
            own = [each.crf.get_parameter(name) for each in taggers]
            parameter.data = torch.stack(own).mean(dim=0).detach()
    return twin


def _mean_output(lead: TaskModel[Any, Any], members: Sequence[Member], batch: Batch) -> TensorRecord:
    """The forward pass of an ensemble."""
    vocabulary = members[0].vocabulary
    batches = [batch if each.vocabulary == vocabulary else _own_batch(each, batch) for each in members]
    with layers_kept():
        outputs = [each.model(own) for each, own in zip(members, batches, strict=True)]
        chosen = [each.model.with_choices(outputs, own) for each, own in zip(members, batches, strict=True)]
        if chosen[0] is not batch:
            outputs = [each.model(own) for each, own in zip(members, chosen, strict=True)]
    averaged = [each.model.to_average(output) for each, output in zip(members, outputs, strict=True)]
    return lead.from_average(_mean(averaged))


def _own_batch(member: Member, batch: Batch) -> Batch:
    """The same batch in a member's vocabulary, without gold labels."""
    gold = member.model.task.predicted_field
    examples = [{column: value for column, value in each.items() if column != gold} for each in batch.examples]
    own = member.model.task.collate(examples, member.vocabulary).to(next(member.model.parameters()).device)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(own):
        value, given = getattr(own, field.name), getattr(batch, field.name)
        if isinstance(value, Tokens):
            values[field.name] = dataclasses.replace(value, scales=given.scales)
        elif value is None:
            values[field.name] = given  # the spans to keep
    return dataclasses.replace(own, **values)


def _mean(records: Sequence[_RecordT]) -> _RecordT:
    """A record of the means of all numbers; what is not a floating-point number is the first record's."""
    means: dict[str, Any] = {}
    for field in dataclasses.fields(records[0]):
        first, *others = values = [getattr(record, field.name) for record in records]
        if isinstance(first, TensorRecord):
            means[field.name] = _mean(values)
        elif isinstance(first, Tensor) and first.is_floating_point():
            if any(getattr(other, "shape", None) != first.shape for other in others):
                raise ElmoTasksError(f"the models' {field.name} differ in size; expected runs with the same settings")
            means[field.name] = torch.stack(values).mean(dim=0)
    return dataclasses.replace(records[0], **means)
