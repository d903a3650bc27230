"""The folder of a pretraining: the names and forms of its files.

config.json           the resolved config, every default written out
versions.json         the versions of Python and of the packages that made the run
text.json             the prepared corpus and the vocabulary, by their hashes
options.json          the biLM's architecture  )
weights.hdf5          and weights              ) in the layout of bilm-tf and AllenNLP
vocabulary.txt        the words that the softmax predicts, one a line, as bilm-tf has them
softmax.safetensors   the softmax's weights and biases
log.jsonl             a line for each evaluation on held-out text
results.json          what was trained on, for how long, and the perplexities in the end
training.pt           the state from which training resumes
tensorboard/          curves
"""

from __future__ import annotations

from elmo_tasks.pretraining.language_model import SOFTMAX_FILE, VOCABULARY_FILE
from elmo_tasks.runs import Folder


class PretrainingFolder(Folder):
    """A pretraining's files by name; see the module's text."""

    text = property(lambda self: self.path / "text.json")
    options = property(lambda self: self.path / "options.json")
    weights = property(lambda self: self.path / "weights.hdf5")
    vocabulary = property(lambda self: self.path / VOCABULARY_FILE)
    softmax = property(lambda self: self.path / SOFTMAX_FILE)
    log = property(lambda self: self.path / "log.jsonl")
    results = property(lambda self: self.path / "results.json")
    training_state = property(lambda self: self.path / "training.pt")
    tensorboard = property(lambda self: self.path / "tensorboard")
