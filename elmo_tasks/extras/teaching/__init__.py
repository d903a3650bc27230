"""Checks the answers to the exercises of the course in `notebooks`.

from elmo_tasks.extras.teaching import check

check("1a", answer)  # prints "1a: right", or a hint
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Set
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining.language_model import LanguageModel


def check(exercise: str, answer: Any) -> None:
    """Prints whether an answer is right; if not, a hint that does not give it away.

    Arguments:
        exercise: its name in the notebook, such as `1a`.
        answer: a number, a list or a function, which is called with small inputs; None if there is no answer yet.
            Tuples, iterators, arrays, tensors and, where order does not matter, sets are lists, too.

    Raises:
        ElmoTasksError: there is no such exercise.
    """
    if exercise not in list(_IS_RIGHT):
        raise ElmoTasksError(f"{exercise!r} is not an exercise; expected one of {', '.join(_IS_RIGHT)}")
    print(f"{exercise}: {_verdict(exercise, answer)}")


def _verdict(exercise: str, answer: Any) -> str:
    if answer is None:
        return "no answer yet"
    if callable(answer) != (exercise in _FUNCTIONS):
        kind = "the function itself, such as `f` and not `f(x)`" if exercise in _FUNCTIONS else "not a function"
        return f"not yet. Hint: the answer is {kind}."
    if isinstance(answer, Set) and exercise in _ORDERED:
        return "not yet. Hint: a set has no order; answer with a list."
    try:
        return "right" if _IS_RIGHT[exercise](answer) else f"not yet. Hint: {_HINTS[exercise]}"
    except NotImplementedError:  # as the notebook's functions raise it
        return "no answer yet"
    except Exception as error:  # whatever the student's function raises
        return f"it fails with {type(error).__name__}: {error}. Hint: {_HINTS[exercise]}"


def _plain(answer: Any) -> Any:
    """Numbers, texts and lists of them, from any form that an answer has. Sets are sorted."""
    if isinstance(answer, Tensor | np.ndarray | np.generic):
        return _plain(answer.tolist())
    if isinstance(answer, Iterable) and not isinstance(answer, str):
        found = [_plain(each) for each in answer]
        return sorted(found) if isinstance(answer, Set) else found
    return answer


def _is_near(answer: Any, expected: float | list[Any], tolerance: float = 0.001) -> bool:
    """Whether an answer has the expected numbers: as many, in the same order and lists."""
    found = np.array(_plain(answer), float)
    found = found.squeeze() if np.ndim(expected) == 0 else found
    return found.shape == np.shape(expected) and np.allclose(found, expected, rtol=0, atol=tolerance)


def _is_fooled(pair: Iterable[str]) -> bool:
    """Whether the default biLM prefers the second of two sentences that differ in the number of one verb."""
    model = LanguageModel.load(DEFAULT_BILM)
    right, wrong = ([token for each in model.score(text) for token in each.tokens] for text in _plain(pair))
    differing = [(one, other) for one, other in zip(right, wrong, strict=False) if one.token != other.token]
    verbs = [{one.token.lower(), other.token.lower()} for one, other in differing]
    if len(right) != len(wrong) or len(verbs) != 1 or verbs[0] not in _VERBS:
        return False
    return differing[0][0].forward > differing[0][1].forward


_VERBS = ({"is", "are"}, {"was", "were"}, {"has", "have"})
_LAYERS, _WEIGHTS = torch.tensor([[[1.0, 2.0]], [[5.0, 6.0]]]), torch.tensor([0.0, math.log(3)])  # (2, 1, 2), (2,)
_CENTROIDS = {"near": torch.tensor([1.0, 0.4]), "like": torch.tensor([9.0, 8.0]), "long": torch.tensor([30.0, 3.0])}
_FUNCTIONS = ("1a", "1c", "2a", "3a", "3b", "3c", "3d")
_ORDERED = ("1d", "2b")  # answers for which a set does not do

# Numbers may be rounded to one decimal, as the notebooks print them.
_IS_RIGHT: dict[str, Callable[[Any], bool]] = {
    "1a": lambda cosine: _is_near(cosine(torch.tensor([3.0, 4.0]), torch.tensor([6.0, 0.0])), 0.6),
    "1b": lambda layers: {*np.ravel(_plain(layers)).tolist()} == {0},
    "1c": lambda mixed: _is_near(mixed(_LAYERS, _WEIGHTS, 2.0), [[8.0, 10.0]]),
    "1d": lambda w: np.shape(raw := _plain(w)) == (3,) and bool(softmax(np.array(raw, float))[2] > 0.95),
    "2a": lambda perplexity: _is_near(perplexity([1.0, 2.0, 6.0]), 8.0),
    "2b": _is_fooled,
    "2c": lambda bits: _is_near(bits, 3.78, 0.03),
    "2d": lambda factor: _is_near(factor, 0.777, 0.025),
    "3a": lambda spans: (
        sorted(_plain(spans(["B-LOC", "O", "B-PER", "I-PER", "B-PER"])))
        == [["LOC", 0, 0], ["PER", 2, 3], ["PER", 4, 4]]
    ),
    "3b": lambda f1: _is_near(f1(6, 8, 16), 0.5) and _is_near(f1(0, 0, 4), 0),
    "3c": lambda interval: _is_near(interval(np.arange(2000.0, 999.0, -1)), [1025, 1975], 1),  # an array, as there
    "3d": lambda nearest: _plain([nearest(torch.tensor([1.0, 1.0]), _CENTROIDS)]) in (["like"], [["like"]]),
}

_HINTS = {
    "1a": "a vector that is twice as long has the same cosine; divide by the lengths of both.",
    "1b": "which layer sees only the letters of the word?",
    "1c": "the weights go through a softmax first, and gamma multiplies the whole sum.",
    "1d": "three numbers; a difference of 1 between two of them makes one weight e = 2.7 times the other.",
    "2a": "first the mean of the bits, then 2 to its power.",
    "2b": "only one verb differs; put other nouns or many words between the subject and its verb.",
    "2c": "a perplexity is 2 to the power of the bits; how many bits is each of the two?",
    "2d": "doing it twice has the whole effect, so the factor of one doubling is a square root.",
    "3a": "a name may have one token, and may begin right after another; the last token belongs to it.",
    "3b": "2 P R / (P + R), where P is right / found and R is right / gold; what if nothing is found?",
    "3c": "sort the scores; which percentiles are the ends?",
    "3d": "return a name; the cosine compares directions, not distances, and the largest is the most similar.",
}
