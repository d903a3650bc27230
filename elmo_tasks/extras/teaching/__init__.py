"""Checks the answers to the exercises of the course in `notebooks`.

from elmo_tasks.extras.teaching import check

check("1a", answer)  # prints "1a: right", or a hint
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining.language_model import LanguageModel


def check(exercise: str, answer: Any) -> None:
    """Prints whether an answer is right; if not, a hint that does not give it away.

    Arguments:
        exercise: its name in the notebook, such as `1a`.
        answer: a number, a list or a function, which is called with small inputs; None if there is no answer yet.

    Raises:
        ElmoTasksError: there is no such exercise.
    """
    if exercise not in list(_IS_RIGHT):
        raise ElmoTasksError(f"{exercise!r} is not an exercise; expected one of {', '.join(_IS_RIGHT)}")
    hint = f"Hint: {_HINTS[exercise]}"
    try:
        verdict = "no answer yet" if answer is None else "right" if _IS_RIGHT[exercise](answer) else f"not yet. {hint}"
    except NotImplementedError:  # as the notebook's functions raise it
        verdict = "no answer yet"
    except Exception as error:  # whatever the student's function raises
        verdict = f"it fails with {type(error).__name__}: {error}. {hint}"
    print(f"{exercise}: {verdict}")


def _is_near(number: Any, expected: float, tolerance: float = 0.001) -> bool:
    return math.isclose(float(number), expected, abs_tol=tolerance)


def _is_fooled(pair: tuple[str, str]) -> bool:
    """Whether the default biLM prefers the second of two sentences that differ in the number of one verb."""
    model = LanguageModel.load(DEFAULT_BILM)
    ((right,), (wrong,)) = map(model.score, pair)
    pairs = zip(right.tokens, wrong.tokens, strict=True)
    [(one, other), *others] = [(each, its) for each, its in pairs if each.token != its.token]
    return not others and {one.token, other.token} in _VERBS and one.forward > other.forward


_VERBS = ({"is", "are"}, {"was", "were"}, {"has", "have"})
_LAYERS, _WEIGHTS = torch.tensor([[[1.0, 2.0]], [[5.0, 6.0]]]), torch.tensor([0.0, math.log(3)])  # (2, 1, 2), (2,)
_CENTROIDS = {"near": torch.tensor([1.0, 0.4]), "like": torch.tensor([9.0, 8.0]), "long": torch.tensor([30.0, 3.0])}

_IS_RIGHT: dict[str, Callable[[Any], bool]] = {
    "1a": lambda cosine: _is_near(cosine(torch.tensor([3.0, 4.0]), torch.tensor([6.0, 0.0])), 0.6),
    "1b": lambda layers: list(layers) == [0],
    "1c": lambda mixed: torch.allclose(mixed(_LAYERS, _WEIGHTS, 2.0), torch.tensor([[8.0, 10.0]])),
    "1d": lambda w: len(w) == 3 and bool(torch.tensor(w).double().softmax(0)[2] > 0.95),
    "2a": lambda perplexity: _is_near(perplexity([1.0, 2.0, 6.0]), 8.0),
    "2b": _is_fooled,
    "2c": lambda bits: _is_near(bits, 3.78, 0.02),
    "2d": lambda factor: _is_near(factor, 0.777, 0.008),
    "3a": lambda spans: (
        spans(["B-LOC", "O", "B-PER", "I-PER", "B-PER"]) == [("LOC", 0, 0), ("PER", 2, 3), ("PER", 4, 4)]
    ),
    "3b": lambda f1: _is_near(f1(6, 8, 16), 0.5) and f1(0, 0, 4) == 0,
    "3c": lambda interval: [round(float(end)) for end in interval([*map(float, range(2000, 999, -1))])] == [1025, 1975],
    "3d": lambda nearest: nearest(torch.tensor([1.0, 1.0]), _CENTROIDS) == "like",
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
