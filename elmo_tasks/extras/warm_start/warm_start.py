"""A warm start: a new model gets what fits of a trained run; rows of words, characters and labels by name."""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.elmo import ElmoConfig
from elmo_tasks.errors import RunError, some_of
from elmo_tasks.files.cache import content_hash
from elmo_tasks.files.tensor_files import read_tensors
from elmo_tasks.models.embedder import EmbedderConfig
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.frozen_models import FrozenModel
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

logger = logging.getLogger(__name__)

Shapes = Mapping[str, tuple[int, ...]]

_WORDS = "embedder.words"
_TABLES = (f"{_WORDS}.trained", f"{_WORDS}.fixed")  # which are used as one, under the name above
_NOT_HERE = "not in this model"
_CHARACTERS = "embedder.characters.embedding.weight"
_OF_THE_DATA = "class_weights"  # follows from the config and the data of the new run


def warm_start(
    model: nn.Module,
    vocabulary: Vocabulary,
    shapes_of: Callable[[Vocabulary], Shapes],
    embedder: EmbedderConfig,
    path: str | Path,
) -> dict[str, Any]:
    """Gives a new model the tensors of a trained run that fit. Logs what is new, and what was not copied.

    A tensor fits if it has the same name and shape. Along an axis that has a row for each word, character or label,
    the rows that both vocabularies have are copied by name; the other rows stay as they are.

    Arguments:
        model: the new model.
        vocabulary: the new model's.
        shapes_of: the shapes of the new model's tensors if it had another vocabulary.
        embedder: the new model's, to warn if the run was trained with another biLM or transformer.
        path: the folder or archive of the run, which may be of any head or task.

    Returns:
        the contents of `origin.json`.

    Raises:
        RunError: `path` is not a trained run of a task, or nothing of it fits.
    """
    run = open_run(path)
    if not run.vocabulary.is_file():
        raise RunError(f"{path}: expected the run of a task; a biLM is chosen by --set model.embedder.elmo.bilm=DIR")
    kinds = {_WORDS: {0: "words"}, _CHARACTERS: {0: "characters"}, **_axes_of_labels(vocabulary, shapes_of)}
    tensors = {**read_tensors(run.frozen), **read_tensors(run.model)}
    names, earlier = _names(vocabulary), _names(Vocabulary.load(run.vocabulary))
    state = {name: tensor for name, tensor in model.state_dict().items() if name != _OF_THE_DATA}
    copied = _copy_tensors(state, tensors, kinds, names, earlier)
    if not copied.taken:
        raise RunError(f"{path}: nothing of this run fits the model: {_reasons(copied.not_taken)}")
    copied.log(path)
    for frozen in run.frozen_models:
        if difference := _difference(frozen, embedder):
            logger.warning("%s: %s", path, difference)
    return {"run": str(path), "model": content_hash(run.model), **dataclasses.asdict(copied)}


def _difference(frozen: FrozenModel, embedder: EmbedderConfig) -> str | None:
    """How the biLM or transformer of a run differs from that of the new model's config; None if it does not."""
    config = frozen.config_in(embedder)
    if not config or not frozen.reference.is_file():
        return None
    if not frozen.is_trained():
        is_same = frozen.read_reference().fingerprint == config.files().fingerprint()
        return None if is_same else f"was trained with another {frozen.title}, whose vectors differ"
    if isinstance(config, ElmoConfig) and not config.requires_grad:
        title = frozen.title
        return f"its {title}, trained with the task, is not copied into a model whose {title} is frozen"
    return None


@dataclasses.dataclass(frozen=True)
class _Copied:
    """What was copied: fields of `origin.json`."""

    taken: list[str]  # names of tensors
    not_taken: dict[str, str]  # why the others of the model and of the run were not
    new: dict[str, list[str]]  # the words, characters and labels of each kind that only the model has

    def log(self, path: str | Path) -> None:
        many = ("words", "characters")  # of which none are named
        fresh = ", ".join(
            f"{len(found):,} {kind}" + ("" if kind in many else f" ({some_of(found, 5)})")
            for kind, found in self.new.items()
        )
        num_tensors = len(self.taken) + sum(reason != _NOT_HERE for reason in self.not_taken.values())
        logger.info("%s: %d of %d tensors are copied; new: %s", path, len(self.taken), num_tensors, fresh or "nothing")
        if self.not_taken:
            logger.info("%s: not copied: %s", path, _reasons(self.not_taken))


def _copy_tensors(
    state: Mapping[str, Tensor],
    tensors: Mapping[str, Tensor],
    kinds: Mapping[str, Mapping[int, str]],
    names: Mapping[str, Sequence[str]],
    earlier: Mapping[str, Sequence[str]],
) -> _Copied:
    """Copies a run's tensors into a model's state.

    Arguments:
        kinds: for each tensor, its axes with named rows, and the kind of the names.
        names, earlier: the names of each kind, of the model and of the run.
    """
    target, source = _with_one_table(state), _with_one_table(tensors)
    not_taken = {name: _NOT_HERE for name in source if name not in target}
    new: dict[str, list[str]] = {}
    for name, tensor in target.items():
        rows = {axis: (names[kind], earlier.get(kind, ())) for axis, kind in kinds.get(name, {}).items()}
        problem = _copy(tensor, source[name], rows) if name in source else "not in the run"
        if problem:
            not_taken[name] = problem
        for axis, (here, there) in rows.items():
            known = set(there)
            if found := [label for label in here if label not in known]:
                new[kinds[name][axis]] = found
    if _WORDS in target:
        for table, values in zip(_TABLES, target[_WORDS].split([len(state[each]) for each in _TABLES]), strict=True):
            state[table].copy_(values)
    return _Copied([name for name in target if name not in not_taken], not_taken, new)


def _names(vocabulary: Vocabulary) -> dict[str, tuple[str, ...]]:
    """The words, the characters and the labels of each kind, without the special ones."""
    first = len(SPECIAL)
    return {"words": vocabulary.words[first:], "characters": vocabulary.characters[first:], **vocabulary.labels}


def _with_one_table(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Puts the two tables of word vectors, if they are there, into one."""
    if not tensors.keys() >= set(_TABLES):
        return dict(tensors)
    joined = torch.cat([tensors[name] for name in _TABLES])
    return {_WORDS: joined} | {name: tensor for name, tensor in tensors.items() if name not in _TABLES}


def _axes_of_labels(vocabulary: Vocabulary, shapes_of: Callable[[Vocabulary], Shapes]) -> dict[str, dict[int, str]]:
    """For each tensor, the axes with a row for each label, and the labels' kind.

    They are the axes that one more label makes longer by one, so that heads do not have to say which they are.
    """
    own = shapes_of(vocabulary)
    found: dict[str, dict[int, str]] = collections.defaultdict(dict)
    for kind, labels in vocabulary.labels.items():
        one_more = (*labels, labels[-1] if labels else "")  # no new name, since heads may check that tags are valid
        shapes = shapes_of(dataclasses.replace(vocabulary, labels={**vocabulary.labels, kind: one_more}))
        for name, shape in own.items():
            for axis, size in enumerate(shape):
                if shapes[name][axis] == size + 1:
                    found[name][axis] = kind
    return found


@torch.no_grad()
def _copy(target: Tensor, source: Tensor, rows: Mapping[int, tuple[Sequence[str], Sequence[str]]]) -> str:
    """Copies a tensor, or those of its rows that both sides have; returns why nothing was copied, or nothing.

    `rows` has the names of the rows of an axis, in the target and in the source. Rows before them, such as that of the
    unknown word, have the same indices on both sides.
    """
    mismatch = f"{_size(source)} in the run, {_size(target)} in this model"
    if source.dim() != target.dim():
        return mismatch
    if not rows and source.shape == target.shape:
        target.copy_(source)
        return ""
    indices: list[Tensor] = []
    for axis, size in enumerate(target.shape):
        here, there = rows.get(axis, ((), ()))
        special = size - len(here)
        if special != source.shape[axis] - len(there):
            return mismatch
        row_of = {name: row for row, name in enumerate(there, start=special)}
        common = [(row, row_of[name]) for row, name in enumerate(here, start=special) if name in row_of]
        if here and not common:
            return "no rows of the same names in the run"
        pairs = torch.tensor([*((row, row) for row in range(special)), *common]).view(-1, 2)
        source = source.index_select(axis, pairs[:, 1])
        indices.append(pairs[:, 0].view([-1 if each == axis else 1 for each in range(target.dim())]))
    target[tuple(indices)] = source.to(target.dtype)
    return ""


def _reasons(not_taken: Mapping[str, str]) -> str:
    names: dict[str, list[str]] = {}
    for name, reason in not_taken.items():
        names.setdefault(reason, []).append(name)
    return "; ".join(f"{some_of(found, 5)}: {reason}" for reason, found in names.items())


def _size(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "one number"
