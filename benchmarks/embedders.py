"""Words per second and memory of frozen transformers and of the biLM in the package, all layers, without a cache.

    python -m benchmarks.embedders DIR [DIR...] [--sentences FILE] [--json FILE]

Each DIR is the folder of a transformer. Each is measured in a separate process: times are processor seconds, the best
of three, and peak memory is that of the whole process, including weights, Python and torch.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import common
from elmo_tasks.elmo import BiLM, FastBiLM
from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.extras.transformers.transformer import FrozenTransformer
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles


def measure(folder: str | None, sentences: Sequence[Sequence[str]], batch: int) -> tuple[float, float]:
    """Words per second and peak gigabytes of a transformer, or of the biLM. Call it in a new process."""
    source: LayerSource
    if folder is None:
        source = FastBiLM(BiLM.load())
    else:
        model, tokenizer = TransformerFiles.of(folder).load()
        source = FrozenTransformer(model, tokenizer, range(model.config.num_hidden_layers + 1), "mean")

    def read_all() -> None:
        for first in range(0, len(sentences), batch):
            source.layers(sentences[first : first + batch])

    return common.count_words(sentences) / common.best_seconds(read_all), common.peak_gigabytes()


def main() -> None:
    parser = common.make_parser(__doc__, sentences=1000)
    parser.add_argument("models", nargs="+", metavar="DIR")
    parser.add_argument("--batch", type=int, default=64, help="sentences in a batch (default: %(default)s)")
    arguments = parser.parse_args()
    sentences = common.read_sentences(arguments)
    results = {
        folder or "biLM in the package": common.in_own_process(measure, folder, sentences, arguments.batch)
        for folder in (None, *arguments.models)
    }
    rows = ([name, f"{rate:,.0f}", f"{peak:.2f}"] for name, (rate, peak) in results.items())
    print(common.markdown_table(("model", "words/s", "peak memory (GB)"), rows))
    found = {name: {"words_per_second": rate, "peak_gigabytes": peak} for name, (rate, peak) in results.items()}
    common.write_results(arguments.json, models=found)


if __name__ == "__main__":
    main()
