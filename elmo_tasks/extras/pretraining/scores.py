"""How well a language model expects a text: its perplexity, the surprisal and rank of each token, and likelier words.

# N tokens, P features of one direction, V words of the output vocabulary
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo.characters import check_sentences
from elmo_tasks.errors import ElmoTasksError, check_count
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.softmax import NUM_SPECIAL_WORDS, UNKNOWN_NUMBER
from elmo_tasks.extras.pretraining.tokenize_files import number_tokens
from elmo_tasks.extras.pretraining.windows import NO_TARGET, SlotReader, sentence_windows
from elmo_tasks.progress import progress_bar
from elmo_tasks.text.tokens import batches_of_like_lengths

if TYPE_CHECKING:
    from elmo_tasks.extras.pretraining.language_model import LanguageModel

_TEXTS_AT_ONCE = 512
_SLOTS_AT_ONCE = 2048
_PERPLEXITY_SLOTS_AT_ONCE = 4096
_SCORES_AT_ONCE = 1 << 21  # of tokens with all words: 8 MB for each of a few tensors, which may fit into caches


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
        for window in sentence_windows(reader, _PERPLEXITY_SLOTS_AT_ONCE):
            states = model.initial_states(window.inputs.shape[2])
            forward_loss, backward_loss, _ = model(window.to(model.softmax_bias.device), states, None, dtype)
            forward += forward_loss.item()
            backward += backward_loss.item()
            targets += int((window.targets[0] != NO_TARGET).sum())
            unknown += int((window.targets[0] == UNKNOWN_NUMBER).sum())
            bar.update(task, completed=targets)
    model.train(training)
    forward, backward = (torch.tensor([forward, backward], dtype=torch.float64) / targets).exp().tolist()
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


@dataclasses.dataclass(frozen=True)
class TokenScores:
    """What the language model expected where a token is.

    Surprisals are negative logarithms of probabilities, in nats. A word that the vocabulary lacks has those of the
    unknown word. `both` is that of both directions together: the product of their probabilities, normalized over the
    vocabulary, as if the two were independent.

    Attributes:
        forward_entropy, backward_entropy: the expected surprisal there, before the token is read.
        forward_rank, backward_rank: how many words are at least as likely, the word included; 1 for the likeliest.
        substitutes: the likeliest words by both directions together, with their probabilities.
    """

    token: str
    is_known: bool
    forward: float
    backward: float
    both: float
    forward_entropy: float
    backward_entropy: float
    forward_rank: int
    backward_rank: int
    substitutes: tuple[tuple[str, float], ...] = ()

    def record(self) -> dict[str, Any]:
        """The scores for JSON; without substitutes if there are none."""
        record = dataclasses.asdict(self)
        substitutes = record.pop("substitutes")
        return {**record, "substitutes": dict(substitutes)} if substitutes else record


@dataclasses.dataclass(frozen=True)
class SentenceScores:
    """The scores of a sentence's tokens, and the surprisals of its end (forward) and of its begin (backward)."""

    tokens: tuple[TokenScores, ...]
    end: float
    begin: float

    @property
    def forward(self) -> float:
        """The surprisal of the sentence in reading order: the sum of its tokens' and of its end's."""
        return sum(each.forward for each in self.tokens) + self.end

    @property
    def backward(self) -> float:
        """The surprisal of the sentence from its end: the sum of its tokens' and of its begin's."""
        return sum(each.backward for each in self.tokens) + self.begin

    @property
    def pseudo_log_likelihood(self) -> float:
        """The sum of the log-probabilities of the tokens by both directions together (Wang and Cho 2019; Salazar et al.
        2020 for masked language models)."""
        return -sum(each.both for each in self.tokens)

    def record(self) -> dict[str, Any]:
        """The scores for JSON, with their sums."""
        return {
            "tokens": [each.record() for each in self.tokens],
            "begin": self.begin,
            "end": self.end,
            "forward": self.forward,
            "backward": self.backward,
            "pseudo_log_likelihood": self.pseudo_log_likelihood,
        }


def score_texts(
    model: LanguageModel, texts: Iterable[Sequence[Sequence[str]]], substitutes: int = 0
) -> Iterator[SentenceScores]:
    """The scores of the tokenized sentences of texts in their order, with the whole softmax.

    Each text is read from a state of zeros. Within it, as in training, both directions go on from the sentences before:
    the backward one reads a sentence from its end, then the next one from its end. If each text is a sentence, sums are
    those of `evaluate_perplexity`. Only a bounded number of texts is in memory.

    Arguments:
        substitutes: how many likely words to give for each token.

    Raises:
        ArgumentError: a sentence is not a list of strings, or the number of substitutes is not a whole one.
        ElmoTasksError: a sentence has no token.
    """
    check_count("substitutes", substitutes, 0)
    training = model.training
    model.eval()
    for some in _lots(texts):
        sentences = [sentence for text in some for sentence in text]
        check_sentences(sentences)
        if not all(sentences):
            raise ElmoTasksError("a sentence has no token; expected at least one in each")
        yield from _score(model, sentences, list(map(len, some)), substitutes)
    model.train(training)


def _lots(texts: Iterable[Sequence[Sequence[str]]]) -> Iterator[list[Sequence[Sequence[str]]]]:
    """As many texts as are scored together; before the error of one that cannot be read, the rest."""
    some: list[Sequence[Sequence[str]]] = []
    try:
        for text in texts:
            some.append(text)
            if len(some) == _TEXTS_AT_ONCE:
                yield some
                some = []
    except ElmoTasksError:
        yield some
        raise
    yield some


@torch.no_grad()
def _score(
    model: LanguageModel, sentences: Sequence[Sequence[str]], texts: Sequence[int], substitutes: int
) -> list[SentenceScores]:
    """The scores of sentences; `texts` is the number of sentences in each text."""
    numbered = number_tokens(sentences)
    reader = model.reader(CorpusPart.of(numbered), numbered.types)
    borders = np.cumsum([0, *texts])
    starts, ends = reader.starts[borders[:-1]], reader.starts[borders[1:]]  # of the texts, in slots
    scored: dict[int, SentenceScores] = {}
    for rows in batches_of_like_lengths((ends - starts).tolist(), max_padded=_SLOTS_AT_ONCE):
        window = reader.read_pieces(starts[rows], ends[rows])
        column, step = np.nonzero(window.targets[0].numpy().T != NO_TARGET)  # (N,) of each slot, one text after another
        slots = starts[rows][column] + step
        window = window.to(model.softmax_bias.device)
        outputs, _ = model.run_layers(model.vectors(window), None, model.initial_states(len(rows)))  # (T, B, P) each
        number = np.searchsorted(reader.starts, slots, side="right") - 1  # of a slot's sentence
        first, last = reader.starts[number], reader.starts[number + 1] - 1  # in the last one a border is predicted
        mirrored = np.where(slots < last, first + last - 1 - slots, last)  # where the backward direction does the same
        places = [(step, column), (step + mirrored - slots, column)]
        hidden, targets = (
            [each[place] for each, place in zip(both, places, strict=True)] for both in (outputs, window.targets)
        )
        distinct = list(dict.fromkeys(number.tolist()))
        tokens = [token for each in distinct for token in (*sentences[each], "")]
        scores = _token_scores(model, tokens, hidden, targets, substitutes)
        for each in distinct:
            *own, border = itertools.islice(scores, len(sentences[each]) + 1)
            scored[each] = SentenceScores(tuple(own), border.forward, border.backward)
    return [scored[row] for row in range(len(sentences))]


def _token_scores(
    model: LanguageModel, tokens: Sequence[str], hidden: Sequence[Tensor], targets: Sequence[Tensor], substitutes: int
) -> Iterator[TokenScores]:
    """Scores tokens by the outputs (N, P) and the targets (N,) of each direction, which differ only at borders."""
    size = max(1, _SCORES_AT_ONCE // len(model.vocabulary))
    for start in range(0, len(tokens), size):
        some = slice(start, start + size)
        words = [each[some] for each in targets]
        raw = [functional.linear(each[some], model.softmax_weight, model.softmax_bias) for each in hidden]
        directions = [_normalized(each) for each in raw]  # (n, V) each, log-probabilities
        every = [*directions, _normalized(directions[0] + directions[1])]
        own = [each.gather(1, word[:, None]) for each, word in zip(every, [*words, words[0]], strict=True)]  # (n, 1)
        surprisals = [each.neg().squeeze(1).tolist() for each in own]
        entropies = [(each.exp() * each).sum(dim=1).neg().tolist() for each in directions]
        ranks = [(each > its).sum(dim=1).add(1).tolist() for each, its in zip(directions, own, strict=False)]
        likeliest = _likeliest(model, every[-1], substitutes)
        known = (words[0] != UNKNOWN_NUMBER).tolist()
        for values in zip(tokens[some], known, *surprisals, *entropies, *ranks, likeliest, strict=True):
            yield TokenScores(*values)


def _normalized(scores: Tensor) -> Tensor:
    """What `log_softmax` computes, whose sums over 50,000 words are less exact on CPUs: a mean is off by 3e-6."""
    return scores - scores.logsumexp(dim=1, keepdim=True)


def _likeliest(model: LanguageModel, scores: Tensor, count: int) -> list[tuple[tuple[str, float], ...]]:
    """The likeliest words by log-probabilities (n, V), without the borders of sentences and the unknown word."""
    found = scores[:, NUM_SPECIAL_WORDS:].topk(min(count, scores.shape[1] - NUM_SPECIAL_WORDS), dim=1)
    words = model.vocabulary.words
    return [
        tuple((words[NUM_SPECIAL_WORDS + index], chance) for index, chance in zip(indices, chances, strict=True))
        for indices, chances in zip(found.indices.tolist(), found.values.exp().tolist(), strict=True)
    ]
