"""Words per second and memory of frozen transformers and of the biLM in the package, all layers, without a cache.

    python -m benchmarks.embedders DIR [DIR...] [--sentences FILE] [--json FILE]

Each DIR is the folder of a transformer. Each is measured in a separate process: times are processor seconds, the best
of three, and peak memory is that of the whole process, including weights, Python and torch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks import common
from elmo_tasks.elmo import BiLM, FastBiLM
from elmo_tasks.elmo.layers import LayerSource
from elmo_tasks.modules.transformer import FrozenTransformer
from elmo_tasks.modules.transformer_files import TransformerFiles


def seconds(source: LayerSource, sentences: Sequence[Sequence[str]], batch: int) -> float:
    """Processor seconds for all sentences, in batches in their own order; the best of three."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        for first in range(0, len(sentences), batch):
            source.layers(sentences[first : first + batch])
        best = min(best, time.process_time() - begin)
    return best


def measure(folder: str | None, sentences: Sequence[Sequence[str]], batch: int) -> tuple[float, float]:
    """Words per second and peak gigabytes of a transformer, or of the biLM. Call it in a new process."""
    source: LayerSource
    if folder is None:
        source = FastBiLM(BiLM.load())
    else:
        model, tokenizer = TransformerFiles.of(folder).load()
        source = FrozenTransformer(model, tokenizer, range(model.config.num_hidden_layers + 1), "mean")
    rate = common.count_words(sentences) / seconds(source, sentences, batch)
    return rate, common.peak_gigabytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="DIR")
    parser.add_argument("--number", type=int, default=1000, help="sentences (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="sentences in a batch (default: %(default)s)")
    common.add_common_arguments(parser)
    arguments = parser.parse_args()
    sentences = common.read_sentences(arguments.sentences, arguments.number)
    results = {
        folder or "biLM in the package": common.in_own_process(measure, folder, sentences, arguments.batch)
        for folder in (None, *arguments.models)
    }
    rows = ([name, f"{rate:,.0f}", f"{peak:.2f}"] for name, (rate, peak) in results.items())
    print(common.markdown_table(("model", "words/s", "peak memory (GB)"), rows))
    found = {name: {"words_per_second": rate, "peak_gigabytes": peak} for name, (rate, peak) in results.items()}
    common.write_json(arguments.json, {"machine": common.machine(), "models": found})


if __name__ == "__main__":
    main()
