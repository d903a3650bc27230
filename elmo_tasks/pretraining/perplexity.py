"""Perplexities of a language model, with the softmax over its whole vocabulary."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch

from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.output_vocabulary import UNKNOWN_NUMBER
from elmo_tasks.pretraining.windows import SlotReader, sentence_windows
from elmo_tasks.progress import progress_bar

_SLOTS_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """What a language model makes of a text, sentence ends included."""

    forward: float
    backward: float
    targets: int  # that each direction predicted: the tokens and one border for each sentence
    unknown: int  # of them not in the vocabulary

    @property
    def mean(self) -> float:
        """Of both directions, the geometric mean: the exponential of their mean loss, as bilm-tf reports it."""
        return math.sqrt(self.forward * self.backward)

    def as_record(self) -> dict[str, float]:
        """The numbers by name, the unknown targets as a share in percent."""
        share = 100.0 * self.unknown / self.targets
        return {
            "forward": self.forward,
            "backward": self.backward,
            "mean": self.mean,
            "unknown_percent": share,
            "targets": self.targets,
        }


@torch.no_grad()
def evaluate_perplexity(
    model: LanguageModel, reader: SlotReader, dtype: torch.dtype = torch.float32, *, visible: bool = True
) -> Perplexity:
    """The perplexities of sentences, each read from a state of zeros, as ELMo reads them.

    So the result depends neither on the order of the sentences nor on how they are batched. The share of words that
    the vocabulary lacks belongs to it: they are all predicted as one unknown word, and the more there are, the lower
    the perplexity.

    Arguments:
        reader: reads the text.
        dtype: of the products' factors.
        visible: whether to draw a progress bar.
    """
    training = model.training
    model.eval()
    device = model.softmax_bias.device
    forward = backward = 0.0
    targets = unknown = 0
    with progress_bar(visible=visible) as bar:
        task = bar.add_task("perplexity", total=reader.num_slots, note="")
        for window in sentence_windows(reader, _SLOTS_AT_ONCE):
            rows = window.inputs.shape[2]
            loss = model(window.to(device), model.initial_states(rows), None, dtype)
            forward += loss.forward.item()
            backward += loss.backward.item()
            targets += loss.num_targets
            unknown += int((window.targets[0] == UNKNOWN_NUMBER).sum())
            bar.update(task, completed=targets)
    model.train(training)
    return Perplexity(math.exp(forward / targets), math.exp(backward / targets), targets, unknown)


def unigram_perplexity(training: SlotReader, held_out: SlotReader, num_words: int) -> float:
    """The perplexity of a text by the words' frequencies in another text, one added to each.

    A model that ignores the context reaches it.

    Arguments:
        training: reads the text whose words are counted.
        held_out: reads the text that is predicted.
        num_words: V, the size of the vocabulary.
    """
    counts = training.count_targets(num_words) + 1.0
    losses = np.log(counts.sum()) - np.log(counts)
    occurrences = held_out.count_targets(num_words)
    return float(np.exp((losses * occurrences).sum() / occurrences.sum()))
