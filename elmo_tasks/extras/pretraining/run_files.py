"""The folder of a pretraining and its files.

config.json           the resolved config, with all defaults
versions.json         the versions of Python and of the packages that made the run
text.json             the prepared corpus and the vocabulary, by their hashes
options.json          the biLM's architecture  )
weights.hdf5          and weights              ) in the layout of bilm-tf and AllenNLP
vocabulary.txt        the words that the softmax predicts, one per line, as in bilm-tf
softmax.safetensors   the softmax's weights and biases
log.jsonl             a line for each evaluation on held-out text
results.json          the amount of text, the hours, and the final perplexities
training.pt           the state from which training resumes
tensorboard/          curves
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from elmo_tasks.elmo.options import VOCABULARY_FILE
from elmo_tasks.extras.pretraining.language_model import SOFTMAX_FILE
from elmo_tasks.runs.folder import Folder


class PretrainingFolder(Folder):
    """The files of a pretraining."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.text = self.path / "text.json"
        self.options = self.path / "options.json"
        self.weights = self.path / "weights.hdf5"
        self.vocabulary = self.path / VOCABULARY_FILE
        self.softmax = self.path / SOFTMAX_FILE
        self.records = self.path / "log.jsonl"
        self.results = self.summary = self.path / "results.json"
        self.files += (self.text, self.options, self.weights, self.vocabulary, self.softmax)
        self.files += (self.records, self.results)
        self.begun += (self.text,)

    def adjustable(self) -> Collection[str]:
        """Where the text is: its content is checked."""
        names = ("paths", "train_data_path", "validation_data_path", "vocabulary")
        return tuple(f"corpus.{name}" for name in names) if self.text.is_file() else ()
