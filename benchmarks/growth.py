"""How the time of predictors and readers grows with the size of what they read.

    python -m benchmarks.growth [--predictors 250,500] [--readers 1000,2000] [--json FILE]

Predictors have random weights and the sizes of the packaged configs. Each predicts one input, which doubles in length;
each reader parses the beginning of a training file in $ELMO_TASKS_DATA, which doubles in length. Their times are
processor seconds, the best of three. The exponent is the binary logarithm of how much longer the doubled input takes:
1 is linear, 2 quadratic. Each line is measured in a separate process.
"""

from __future__ import annotations

import functools
import itertools
import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import common
from elmo_tasks.config import load_config
from elmo_tasks.config.data_folder import DATA_VARIABLE
from elmo_tasks.data_readers import Parsing
from elmo_tasks.extras.samples import ALL_TASKS, first_sentences, write_sample_data
from elmo_tasks.files.paths import plain_name
from elmo_tasks.files.text import open_binary
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data

Sentences = list[list[str]]

_LARGEST_EXPONENT = 1.3  # of what is called linear
_FEW_PREDICATES = 8

# The config of each predictor, and the input that is made of this many words.
PREDICTORS: dict[str, tuple[str, Callable[[list[str]], dict[str, Any]]]] = {
    "tagging": ("ner_conll03", lambda words: {"tokens": words}),
    "classification": ("cpu/sst5", lambda words: {"tokens": words}),
    "text pairs, both texts": ("cpu/snli", lambda words: {"premise_tokens": words, "hypothesis_tokens": words}),
    "reading": ("cpu/squad", lambda words: {"passage": " ".join(words), "question": "Who was it?"}),
    "semantic roles, 8 predicates": (
        "cpu/srl_ewt",
        lambda words: {"tokens": words, "predicates": list(range(_FEW_PREDICATES))},
    ),
    "semantic roles, every 32nd token a predicate": (
        "cpu/srl_ewt",
        lambda words: {"tokens": words, "predicates": list(range(0, len(words), 32))},
    ),
    "coreference": (
        "cpu/coref_ontogum",
        lambda words: {"sentences": [words[start : start + 20] for start in range(0, len(words), 20)]},
    ),
}
READERS = (
    "ner_conll03",
    "pos_ewt",
    "cpu/sst5",
    "cpu/snli",
    "cpu/squad",
    "cpu/srl_ewt",
    "predicates_ewt",
    "cpu/coref_ontogum",
)


def time_predictor(name: str, lengths: Sequence[int], sentences: Sentences) -> list[float]:
    """The processor seconds that a predictor takes for one input of each of these numbers of words."""
    torch.set_num_threads(1)
    config_name, make_input = PREDICTORS[name]
    with tempfile.TemporaryDirectory() as folder:
        write_sample_data(folder, ALL_TASKS, sentences=(100, 10, 10))
        config = load_config(config_name, ExperimentConfig, variables={DATA_VARIABLE: folder})
        vocabulary = Data.read(config).vocabulary(config)
        predictor = build_predictor(config.build_model(vocabulary, pretrained=False), vocabulary)
    words = list(itertools.islice(itertools.cycle(itertools.chain.from_iterable(sentences)), max(lengths)))
    inputs = [make_input(words[:length]) for length in lengths]
    predictor(inputs[0])  # the first call compiles
    return [common.best_seconds(functools.partial(predictor, each)) for each in inputs]


def time_reader(name: str, sizes: Sequence[int]) -> list[float]:
    """The processor seconds that the reader of a config takes for the first sentences of its training file."""
    config = load_config(name, ExperimentConfig)
    path = Path(str(config.train_data_path))
    reader = config.dataset_reader.build()
    with open_binary(path) as stream:
        text = stream.read().decode()
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        beginning = Path(folder, plain_name(path))
        for size in sizes:
            beginning.write_text(first_sentences(path, text, size), encoding="utf-8")
            seconds.append(common.best_seconds(lambda: sum(1 for _ in reader.examples(beginning, Parsing()))))
    return seconds


def exponents(sizes: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """How fast the time grows from each size to the next: 1 is linear, 2 quadratic."""
    growth = zip(itertools.pairwise(sizes), itertools.pairwise(seconds), strict=True)
    return [math.log(later / earlier) / math.log(larger / smaller) for (smaller, larger), (earlier, later) in growth]


def _show_growth(
    title: str, unit: str, names: Iterable[str], call: Callable[..., list[float]], sizes: Sequence[int]
) -> dict[str, list[float]]:
    """Prints a table of times and exponents, and returns the times."""
    times = {name: common.in_own_process(call, name, sizes) for name in names}
    header = [title, *(f"{size:,} {unit}, s" for size in sizes), *(f"exponent to {size:,}" for size in sizes[1:]), ""]
    rows = []
    for name, seconds in times.items():
        found = exponents(sizes, seconds)
        verdict = f"above {_LARGEST_EXPONENT}" if max(found, default=0) > _LARGEST_EXPONENT else ""
        rows.append((name, *(f"{each:.3f}" for each in seconds), *(f"{each:.2f}" for each in found), verdict))
    print(f"\n{common.markdown_table(header, rows)}")
    return times


def main() -> None:
    parser = common.make_parser(__doc__, sentences=2000)
    parser.add_argument("--predictors", type=_numbers, default=[250, 500, 1000, 2000], help="words of one input")
    parser.add_argument("--readers", type=_numbers, default=[1000, 2000, 4000, 8000], help="sentences of a file")
    arguments = parser.parse_args()
    sentences = common.read_sentences(arguments)
    time_of_words = functools.partial(time_predictor, sentences=sentences)
    predictors = _show_growth("predictors", "words", PREDICTORS, time_of_words, arguments.predictors)
    readers = _show_growth("readers", "sentences", READERS, time_reader, arguments.readers)
    common.write_results(arguments.json, predictors=predictors, readers=readers)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
