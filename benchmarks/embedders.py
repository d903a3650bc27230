"""Words per second of frozen transformers and of the biLM in the package, all layers, without a cache.

    python -m benchmarks.embedders DIR [DIR...] [--sentences FILE] [--json FILE]

Each DIR is the folder of a transformer. Times are processor seconds, the best of three.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="DIR")
    parser.add_argument("--number", type=int, default=1000, help="sentences (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="sentences in a batch (default: %(default)s)")
    common.add_common_arguments(parser)
    arguments = parser.parse_args()
    sentences = common.read_sentences(arguments.sentences, arguments.number)
    sources: dict[str, LayerSource] = {"biLM in the package": FastBiLM(BiLM.load())}
    for folder in arguments.models:
        model, tokenizer = TransformerFiles.of(folder).load()
        sources[folder] = FrozenTransformer(model, tokenizer, range(model.config.num_hidden_layers + 1), "mean")
    rates = {
        name: common.count_words(sentences) / seconds(each, sentences, arguments.batch)
        for name, each in sources.items()
    }
    print(common.markdown_table(("model", "words/s"), ([name, f"{rate:,.0f}"] for name, rate in rates.items())))
    common.write_json(arguments.json, {"machine": common.machine(), "words_per_second": rates})


if __name__ == "__main__":
    main()
