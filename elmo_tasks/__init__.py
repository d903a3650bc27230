"""ELMo for the six task models of Peters et al. (2018), in PyTorch 2.

    import elmo_tasks

    elmo_tasks.train("ner_conll03", "runs/ner")  # a config by its name, path or values; data from files or memory
    elmo_tasks.evaluate("runs/ner", "eng.testb")
    tagger = elmo_tasks.load("runs/ner")
    tagger("Mary joined Boeing.")
    elmo_tasks.show(tagger, "Mary joined Boeing.")  # in colours, in a notebook
    elmo_tasks.embed(elmo_tasks.tokenize("The dog barked."))
    elmo_tasks.load_language_model("default").score("The dog barked.")  # how surprising each word is
    elmo_tasks.similarity("bank", ["He sat on the bank.", "The bank closed."])  # of its vectors, layer by layer
    elmo_tasks.include_packages(["my_package"])  # with your own readers, models, ...

`elmo_tasks.elmo` has ELMo itself: `BiLM`, `Elmo`, `batch_to_ids`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from elmo_tasks.hooks import importing_extra

if TYPE_CHECKING:
    from elmo_tasks.api import include_packages, load, show, similarity, tokenize, train
    from elmo_tasks.extras.pretraining.language_model import load_language_model
    from elmo_tasks.extras.vectors.embed import embed
    from elmo_tasks.runs.evaluate import evaluate

__all__ = [
    "__version__", "embed", "evaluate", "include_packages", "load", "load_language_model", "show", "similarity",
    "tokenize", "train",
]  # fmt: skip

__version__ = "0.1.0"


# The modules of functions that are not in `elmo_tasks.api`: each imports what the others can do without.
_HOMES = {
    "embed": "elmo_tasks.extras.vectors.embed",
    "evaluate": "elmo_tasks.runs.evaluate",
    "load_language_model": "elmo_tasks.extras.pretraining.language_model",
}


def __getattr__(name: str) -> Any:
    """Imports a function of `__all__` when it is first used: PyTorch takes seconds, and `--help` does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with importing_extra():
        value = globals()[name] = getattr(importlib.import_module(_HOMES.get(name, "elmo_tasks.api")), name)
    return value


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__})
