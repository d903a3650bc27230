"""Perplexities of a language model, with the softmax over its whole vocabulary."""

from __future__ import annotations

import math

import numpy as np
import torch

from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.pretraining.output_vocabulary import UNKNOWN_NUMBER
from elmo_tasks.extras.pretraining.windows import SlotReader, sentence_windows
from elmo_tasks.progress import progress_bar

_SLOTS_AT_ONCE = 4096


@torch.no_grad()
def evaluate_perplexity(
    model: LanguageModel, reader: SlotReader, dtype: torch.dtype = torch.float32, *, visible: bool = True
) -> dict[str, float]:
    """The perplexities of sentences, each read from a state of zeros, as ELMo reads them.

    The result depends neither on the order of the sentences nor on how they are batched.

    Arguments:
        dtype: of the products' factors.
        visible: whether to draw a progress bar.

    Returns:
        forward, backward, and mean: the geometric mean of both directions, as bilm-tf reports it;
        unknown_percent: the share of targets that the vocabulary lacks. All are predicted as one unknown word: the
        more there are, the lower the perplexity;
        targets: the number of targets of each direction, the tokens and one border per sentence.
    """
    training = model.training
    model.eval()
    forward = backward = 0.0
    targets = unknown = 0
    with progress_bar(visible=visible) as bar:
        task = bar.add_task("perplexity", total=reader.num_slots, note="")
        for window in sentence_windows(reader, _SLOTS_AT_ONCE):
            rows = window.inputs.shape[2]
            loss = model(window.to(model.softmax_bias.device), model.initial_states(rows), None, dtype)
            forward += loss.forward.item()
            backward += loss.backward.item()
            targets += loss.num_targets
            unknown += int((window.targets[0] == UNKNOWN_NUMBER).sum())
            bar.update(task, completed=targets)
    model.train(training)
    forward, backward = _exp(forward / targets), _exp(backward / targets)
    return {
        "forward": forward,
        "backward": backward,
        "mean": math.sqrt(forward * backward),
        "unknown_percent": 100.0 * unknown / targets,
        "targets": targets,
    }


def unigram_perplexity(training: SlotReader, held_out: SlotReader, num_words: int) -> float:
    """The held-out text's perplexity by the frequencies of V words in the training text, one added to each."""
    counts = training.count_targets(num_words) + 1.0
    losses = np.log(counts.sum()) - np.log(counts)
    occurrences = held_out.count_targets(num_words)
    return float(np.exp((losses * occurrences).sum() / occurrences.sum()))


def _exp(value: float) -> float:
    """e to the power of a value, infinite where Python's own function fails."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
