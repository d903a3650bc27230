"""The frozen biLMs that are in use: each is in memory once, however many models use it."""

from __future__ import annotations

import threading
import weakref
from typing import get_args

import torch

from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.fast import FastBiLM, Precision
from elmo_tasks.errors import ElmoTasksError

_CPU = torch.device("cpu")

_loaded: weakref.WeakValueDictionary[tuple[str, Precision, str], FastBiLM] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def load_frozen(files: BiLMFiles, precision: Precision = "float32", device: torch.device = _CPU) -> FastBiLM:
    """A frozen, stateless biLM on a device. As long as it is in use, the same files give the same object.

    Equal files in different folders are the same biLM. Several threads may use the object.

    Raises:
        WeightsError: a file is missing or damaged, or the two do not fit together.
        ElmoTasksError: the precision is unknown.
    """
    if precision not in get_args(Precision):
        raise ElmoTasksError(f"precision: got {precision!r}; expected float32, bfloat16 or int8")
    device = torch.empty(0, device=device).device  # "cuda" may be "cuda:0"
    key = (files.fingerprint(), precision, str(device))
    with _lock:
        bilm = _loaded.get(key)
        if bilm is None:
            _loaded[key] = bilm = FastBiLM(BiLM.load(files.options, files.weights).to(device), precision)
        return bilm


def forget_words() -> None:
    """Makes all frozen biLMs that are in use compute as after they were loaded; see `FastBiLM.forget_words`."""
    for bilm in list(_loaded.values()):
        bilm.forget_words()
