"""Tokens per second when pretraining a biLM, as a share of the machine's peak.

    python -m benchmarks.pretraining_step [--sizes small medium] [--precision bfloat16] [--json FILE]

The text consists of sentences from $ELMO_TASKS_DATA. A step includes reading a window, the forward and backward pass,
clipping and the optimizer.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterator

import numpy as np
import torch

from benchmarks import common
from benchmarks.common import Clock, Measurement
from elmo_tasks.elmo import PUBLISHED_OPTIONS, BiLMOptions
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary, SampledSoftmax
from elmo_tasks.extras.pretraining.windows import SlotReader, TokenStreams, Window
from elmo_tasks.training.optimizers import AdamW

VOCABULARY, BATCH, STEPS, GRAD_NORM = 50_000, 128, 20, 10.0


@dataclasses.dataclass
class Work:
    """A language model in training, and an endless sequence of windows."""

    model: LanguageModel
    windows: Iterator[Window]
    dtype: torch.dtype

    def __post_init__(self) -> None:
        self.optimizer = AdamW(lr=1e-4).build(list(self.model.named_parameters()))
        self.softmax = SampledSoftmax()
        self.states = self.model.initial_states(BATCH)

    def whole_step(self) -> None:
        window = next(self.windows)
        drawn = self.softmax.draw(VOCABULARY)
        forward, backward, self.states = self.model(window, self.states, drawn, self.dtype)
        self.optimizer.zero_grad(set_to_none=True)
        ((forward + backward) / window.targets.numel()).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRAD_NORM)
        self.optimizer.step()


def operations(options: BiLMOptions, distinct: float) -> float:
    """The multiplications and additions in the matrix products of a step: three times those of the forward pass."""
    lstm, cnn = options.lstm, options.char_cnn
    token = sum(width * number for width, number in cnn.filters) * cnn.embedding.dim * 12  # positions
    token += 2 * cnn.n_highway * cnn.num_filters**2 + cnn.num_filters * lstm.projection_dim
    cell = 2 * lstm.projection_dim * 4 * lstm.dim + lstm.dim * lstm.projection_dim
    slot = 2 * lstm.n_layers * cell + 2 * lstm.projection_dim * SampledSoftmax().num_samples
    return 3 * 2 * (distinct * token + BATCH * STEPS * slot)


def build(size: str, dtype: torch.dtype, sentences: list[list[str]]) -> Work:
    types = list(dict.fromkeys(token for sentence in sentences for token in sentence))
    numbers = {token: number for number, token in enumerate(types)}
    tokens = np.array([numbers[token] for sentence in sentences for token in sentence], dtype=np.uint32)
    starts = np.cumsum([0, *map(len, sentences)])
    part = CorpusPart(tokens, starts, np.arange(0, len(starts), 10))
    filled = itertools.chain(types, (f"word-{number}" for number in itertools.count()))
    vocabulary = OutputVocabulary(itertools.islice(filled, VOCABULARY - 3))
    options = PUBLISHED_OPTIONS[size]
    reader = SlotReader(part, types, vocabulary, options.char_cnn.max_characters_per_token)
    streams = TokenStreams(reader, BATCH, STEPS, seed=0, reset_share=0.25)
    windows = itertools.chain.from_iterable(streams.windows(epoch) for epoch in itertools.count())
    return Work(LanguageModel.untrained(options, vocabulary, dropout=0.1), windows, dtype)


def measure(run: Callable[[], None], repeats: int) -> tuple[float, int]:
    """The median seconds of `repeats` runs after a first one, and how many of them were undisturbed."""
    run()
    found: list[Measurement] = []
    for _ in range(repeats):
        clock = Clock()
        run()
        found.append(clock.stop())
    return common.median_of_quiet(found)


def main() -> None:
    parser = common.make_parser(__doc__, sentences=14_000)
    parser.add_argument("--sizes", nargs="+", choices=tuple(PUBLISHED_OPTIONS), default=["small"])
    parser.add_argument("--precision", choices=("float32", "bfloat16"), nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sentences = common.read_sentences(arguments)
    results = [
        _measure_size(size, precision, sentences, arguments.repeats)
        for size in arguments.sizes
        for precision in arguments.precision
    ]
    header = tuple(results[0])
    print(common.markdown_table(header, [tuple(_shown(result[name]) for name in header) for result in results]))
    common.write_results(arguments.json, results=results)


def _measure_size(size: str, precision: str, sentences: list[list[str]], repeats: int) -> dict[str, object]:
    work = build(size, getattr(torch, precision), sentences)
    distinct = statistics.fmean(len(next(work.windows).words.lengths) for _ in range(10))
    seconds, undisturbed = measure(work.whole_step, repeats)
    peak = common.product_peak("bfloat16" if precision == "bfloat16" else "float32")
    rate = operations(PUBLISHED_OPTIONS[size], distinct) / seconds
    return {
        "size": size,
        "precision": precision,
        "tokens/s": BATCH * STEPS / seconds,
        "share of peak, %": 100 * rate / peak,
        "ms per step": 1000 * seconds,
        "distinct words": distinct,
        "undisturbed": f"{undisturbed} of {repeats}",
    }


def _shown(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
