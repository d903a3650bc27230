"""Words per second of a tagger with ELMo, and of taggers with transformers of common sizes on the same sentences.

    OMP_NUM_THREADS=1 python -m benchmarks.peers [--number 1000] [--repeats 3] [--sentences FILE] [--json FILE]

Only time is measured: the transformers have random weights, and so has the head of the tagger with ELMo, which is that
of `ner_conll03`, with the biLM in the package. The times are processor seconds, the best of several, from tokenized
sentences to tags: word pieces or characters, network, decoding. Each tagger sorts the sentences by length and computes
each word anew. The 30,000 word pieces are learned from the beginning of the real text in $ELMO_TASKS_DATA/lm.

Transformers run as the library `transformers` runs them and, in float32, also with the matrix products of the fast
biLM. With bfloat16, the tagger with ELMo has its biLM in bfloat16 and its head in float32, as `predict` does.
"""

from __future__ import annotations

import functools
import itertools
import math
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import common
from elmo_tasks.config import load_config
from elmo_tasks.config.data_folder import DATA_VARIABLE
from elmo_tasks.elmo.fast import forget_words
from elmo_tasks.elmo.fast.products import Precision, build_product
from elmo_tasks.extras.samples import write_sample_data
from elmo_tasks.files.text import read_lines
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.text.tokens import batches_of_like_lengths

Sentences = Sequence[Sequence[str]]
Tagger = Callable[[Sentences], object]

_NUM_PIECES, _TEXT_LINES = 30_000, 20_000
_PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
_WAYS = ("float32", "float32, products of the fast biLM", "bfloat16")
_ELMO = "the biLM in the package"
_NUM_TAGS = 17  # of the four kinds of entities of CoNLL-2003, in the scheme of `ner_conll03`
_MINI_LM = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
_SIZES: dict[str, tuple[str, dict[str, int]]] = {  # the library's classes have the published sizes
    "BERT-base": ("bert", {}),
    "DistilBERT": ("distilbert", {}),
    "MiniLM-L12": ("bert", {"num_hidden_layers": 12, **_MINI_LM}),
    "MiniLM-L6": ("bert", {"num_hidden_layers": 6, **_MINI_LM}),
}


def learn_pieces() -> Any:
    """A tokenizer of word pieces, learned from real text, with BERT's settings for cased text."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    text = common.real_data() / "lm" / "wikipedia_en_2015.txt.xz"
    lines = (line for _, line in itertools.islice(read_lines(text), _TEXT_LINES))
    trainer = trainers.WordPieceTrainer(vocab_size=_NUM_PIECES, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


class PieceTagger:
    """A transformer that tags each word by its first piece.

    Arguments:
        model: the library's, for the classification of tokens.
        tokenizer: a `tokenizers.Tokenizer`, whose padding is piece 0.
        batch_pieces: most pieces of a batch, padding included.
    """

    def __init__(self, model: nn.Module, tokenizer: Any, batch_pieces: int) -> None:
        self._model, self._tokenizer, self._batch_pieces = model, tokenizer, batch_pieces

    @torch.inference_mode()
    def __call__(self, sentences: Sentences) -> list[list[int]]:
        """The tag of each word, by its number."""
        encoded = self._tokenizer.encode_batch(sentences, is_pretokenized=True)
        found: list[list[int]] = [[] for _ in sentences]
        lengths = [len(each) for each in encoded]
        for rows in batches_of_like_lengths(lengths, max_padded=self._batch_pieces):
            longest = max(lengths[row] for row in rows)
            ids = torch.tensor([encoded[row].ids + [0] * (longest - lengths[row]) for row in rows])
            logits = self._model(input_ids=ids, attention_mask=(ids != 0).long()).logits
            for row, tags in zip(rows, logits.argmax(2).tolist(), strict=True):
                words = encoded[row].word_ids
                found[row] = [tags[at] for at, word in enumerate(words) if word is not None and word != words[at - 1]]
        return found


class _ProductLayer(nn.Module):
    """A linear layer with the products of the fast biLM."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.product = build_product(layer.weight, layer.bias, "float32")

    def forward(self, inputs: Tensor) -> Tensor:
        return self.product(inputs.flatten(0, -2)).unflatten(0, inputs.shape[:-1])


def build_transformer(size: str, num_pieces: int, way: str) -> nn.Module:
    """A transformer of a size, with random weights, that computes in one of the `_WAYS`."""
    import transformers

    kind, settings = _SIZES[size]
    config = transformers.AutoConfig.for_model(kind, vocab_size=num_pieces, num_labels=_NUM_TAGS, **settings)
    model: nn.Module = transformers.AutoModelForTokenClassification.from_config(config).eval().requires_grad_(False)
    if way == "bfloat16":
        return model.to(torch.bfloat16)
    for name, layer in list(model.named_modules()):
        if way != "float32" and isinstance(layer, nn.Linear):
            model.set_submodule(name, _ProductLayer(layer))
    return model


def build_elmo_tagger(precision: Precision, folder: str) -> Tagger:
    """The tagger of `ner_conll03` with random weights, from a folder with sample data."""
    overrides = [f"model.embedder.elmo.precision={precision}", "model.embedder.elmo.layer_cache=null"]
    config = load_config("ner_conll03", ExperimentConfig, overrides, variables={DATA_VARIABLE: folder})
    vocabulary = Data.read(config).vocabulary(config)
    predictor = build_predictor(config.build_model(vocabulary, pretrained=False), vocabulary)

    def tag(sentences: Sentences) -> object:
        forget_words()  # what is kept of the last call
        return predictor.predictions([{"tokens": tokens} for tokens in sentences])

    return tag


def add_times(
    best: dict[tuple[str, str], float], taggers: dict[tuple[str, str], Tagger], sentences: Sentences, repeats: int
) -> None:
    """Updates the best processor seconds of each tagger; the taggers take turns."""
    for tagger in taggers.values():
        tagger(sentences[:20])  # the first call compiles
    for _, (name, tagger) in itertools.product(range(repeats), taggers.items()):
        best[name] = min(best.get(name, math.inf), common.best_seconds(functools.partial(tagger, sentences), 1))


def main() -> None:
    parser = common.make_parser(__doc__, sentences=1000)
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--batch-pieces", type=int, default=1024, help="of a batch of pieces (default: %(default)s)")
    arguments = parser.parse_args()
    sentences = common.read_sentences(arguments)
    num_words = common.count_words(sentences)
    tokenizer = learn_pieces()
    encoded = tokenizer.encode_batch(sentences, is_pretokenized=True, add_special_tokens=False)
    print(f"{num_words:,} words, {sum(map(len, encoded)) / num_words:.2f} pieces for each\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write_sample_data(folder, "ner")
        elmo: dict[tuple[str, str], Tagger] = {(_ELMO, each): build_elmo_tagger(each, folder) for each in _PRECISIONS}
    best: dict[tuple[str, str], float] = {}
    for size in _SIZES:
        models = {way: build_transformer(size, tokenizer.get_vocab_size(), way) for way in _WAYS}
        pieces = {(size, way): PieceTagger(model, tokenizer, arguments.batch_pieces) for way, model in models.items()}
        add_times(best, {**elmo, **pieces}, sentences, arguments.repeats)
    rates = {name: {way: num_words / best[name, way] for way in _WAYS if (name, way) in best} for name, _ in best}
    rows = [(name, *(f"{each[way]:,.0f}" if way in each else "" for way in _WAYS)) for name, each in rates.items()]
    print(common.markdown_table(["tagger, words/s", *_WAYS], rows))
    common.write_results(arguments.json, words_per_second=rates)


if __name__ == "__main__":
    main()
