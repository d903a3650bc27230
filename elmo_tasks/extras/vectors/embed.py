"""The vectors of a text file, in memory that does not grow with the file.

A file of vectors has bilm-tf's and AllenNLP's HDF5 layout, or is a NumPy archive with the same entries.

# B batch, T tokens of a sentence, L+1 layers, D features of a layer
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import itertools
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, get_args

import h5py
import numpy as np
import torch
from torch import Tensor

from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.elmo.characters import check_sentences
from elmo_tasks.elmo.embedder import TextCheck
from elmo_tasks.elmo.fast import FastBiLM, Precision, can_be_fast, load_frozen
from elmo_tasks.errors import ArgumentError, ElmoTasksError, check_argument, check_choice
from elmo_tasks.extras.raw_text import raw_lines, tokenizer_of_bilm
from elmo_tasks.files.atomic import atomic_output, atomic_write
from elmo_tasks.files.cache import file_state
from elmo_tasks.files.paths import is_stream
from elmo_tasks.files.text import read_lines
from elmo_tasks.progress import counted_items
from elmo_tasks.text.tokenizers import TREEBANK, Tokenizer
from elmo_tasks.text.tokens import batches_of_like_lengths

Pooling = Literal["none", "mean", "max"]
Tokenize = Callable[[str], list[list[str]]]
_Sentence = tuple[int, list[str]]  # its number and its tokens

SENTENCES = "sentence_to_index"  # the name of the entry that says which one belongs to which sentence
# Since HDF5 1.8 (2008), a group of a million entries does not have to be held in memory.
_HDF5_VERSIONS = ("v108", "v110")
_BATCHES_SORTED_AT_ONCE = 16
_WORTH_A_COPY = 2000  # tokens for which copying the weights into a `FastBiLM` takes less time than it saves


def embed(
    sentences: str | Sequence[Sequence[str]],
    *,
    bilm: str | Path | BiLM | FastBiLM = DEFAULT_BILM,
    layers: str | int = "all",
    pool: Pooling = "none",
    precision: Precision = "float32",
) -> list[Tensor]:
    """The vectors of sentences.

    Arguments:
        sentences: a text, which is split into sentences as that of the biLM was (a biLM that is already loaded: in
            English, see `tokenize`); or sentences as lists of tokens.
        bilm: the folder of a biLM, `default` for the one in the package, or a biLM that is already loaded: a `FastBiLM`
            computes a frozen one's vectors faster than the `BiLM` that it was made of.
        layers: "all"; "mix", the mean of all; "top"; or one layer's number, 0 being the token layer.
        pool: what is kept of a sentence's tokens: "none" keeps each, "mean" and "max" make one vector of them.
        precision: of the products, if the biLM is loaded here; bfloat16 and int8 are less exact, and faster on
            processors with AVX-512 or AMX.

    Returns:
        for each sentence (layers, tokens, features), without the first axis if one layer is kept, and without the
        second if tokens are pooled.

    Raises:
        WeightsError: the biLM's files are missing or damaged.
        ElmoTasksError: `layers` names no layer of the biLM, or `pool` or `precision` is unknown.
        ArgumentError: a sentence is not a list of strings that are not empty, or another argument is of the wrong kind.
    """
    bilm, tokenizer = with_tokenizer(bilm, precision)
    split = list(tokenizer.strings(sentences)) if isinstance(sentences, str) else sentences
    return embed_sentences(split, bilm, layers=layers, pool=pool)


def embed_sentences(
    sentences: Sequence[Sequence[str]],
    bilm: BiLM | FastBiLM,
    *,
    layers: str | int = "all",
    pool: Pooling = "none",
    max_tokens: int = 4096,
) -> list[Tensor]:
    """The vectors of tokenized sentences, (L+1, T, D), as `embed_file` writes them; arguments: see there.

    Raises:
        ElmoTasksError: `layers` names no layer of the biLM, or `pool` is unknown.
        ArgumentError: a sentence is a string, or a token is empty or not a string.
    """
    check_sentences(sentences)
    for number, tokens in enumerate(sentences):
        if not all(tokens):  # bilm-tf has vectors of empty tokens, but no text has such tokens
            raise ArgumentError(f"sentence {number} has the token ''; expected strings that are not empty")
    choose, _ = _selection(layers, bilm.num_layers, pool)
    vectors: dict[int, Tensor] = {}
    batches: Iterable[list[int]] = batches_of_like_lengths([len(tokens) for tokens in sentences], max_padded=max_tokens)
    if isinstance(bilm, BiLM) and bilm.stateful:  # one by one, from a fresh start, as bilm-tf reads them
        bilm.reset_state()
        batches = ([row] for row in range(len(sentences)))
    if isinstance(bilm, BiLM) and can_be_fast(bilm) and sum(map(len, sentences)) >= _WORTH_A_COPY:
        bilm = FastBiLM(bilm)
    for rows in batches:
        vectors |= zip(rows, _vectors([sentences[row] for row in rows], bilm, choose, pool), strict=True)
    return [vectors[row] for row in range(len(sentences))]


@torch.no_grad()
def _vectors(
    sentences: Sequence[Sequence[str]], bilm: BiLM | FastBiLM, choose: Callable[[Tensor], Tensor], pool: Pooling
) -> Iterator[Tensor]:
    """The chosen layers of each sentence of a batch, (L+1, T, D) or (T, D); without the axis T if tokens are pooled."""
    for tokens, layers in zip(sentences, bilm.layers(sentences).layers, strict=True):
        vectors = choose(layers[:, : len(tokens)])
        if pool == "none":
            yield vectors.clone()
        elif not tokens:
            yield vectors.new_zeros(vectors.shape[:-2] + vectors.shape[-1:])
        else:
            yield vectors.mean(dim=-2) if pool == "mean" else vectors.amax(dim=-2)


def check_vector_file(path: str | Path) -> None:
    """Raises `ElmoTasksError` if the name of a file of vectors has an unknown ending."""
    if Path(path).suffix not in (".hdf5", ".h5", ".npz"):
        raise ElmoTasksError(
            f"{path}: expected a name that ends in .hdf5, .h5 or .npz, or for a folder, a slash: {path}/"
        )


@contextlib.contextmanager
def create_vector_file(path: str | Path) -> Iterator[Callable[[str, np.ndarray], None]]:
    """Opens a new file of vectors, HDF5 (.hdf5, .h5) or NumPy archive (.npz) by its ending.

    Yields a function that writes an entry, of numbers or of strings, under a name. The file appears, complete, when the
    block ends without an error.

    Raises:
        ElmoTasksError: another ending.
        WriteError: the file cannot be written.
    """
    check_vector_file(path)
    with atomic_output(path) as stream:
        npz = Path(path).suffix == ".npz"
        with zipfile.ZipFile(stream, "w") if npz else h5py.File(stream, "w", libver=_HDF5_VERSIONS) as file:

            def write(key: str, values: np.ndarray) -> None:
                if isinstance(file, zipfile.ZipFile):
                    with file.open(f"{key}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, values, allow_pickle=False)
                elif values.dtype.kind == "U":
                    file.create_dataset(key, data=values.tolist(), dtype=h5py.string_dtype())
                else:
                    file.create_dataset(key, data=values)
                stream.check()

            yield write


def shape_of_layers(bilm: FastBiLM, layers: str | int) -> tuple[int, ...]:
    """The shape of a token's vectors: (D,), or (L+1, D) for all layers; raises `ElmoTasksError` as `embed_file`."""
    return (*_selection(layers, bilm.num_layers)[1], bilm.output_size)


def embed_file(
    source: str | Path | IO[bytes],
    output: str | Path,
    bilm: BiLM | FastBiLM,
    *,
    layers: str | int = "all",
    pool: Pooling = "none",
    tokenize: Tokenize | None = None,
    max_tokens: int = 4096,
    keep_sentences: bool = True,
    checks: Sequence[TextCheck] = (),
) -> int:
    """Writes the vectors of every sentence of a text file.

    Source: bilm-tf's `dump_bilm_embeddings` and AllenNLP's `elmo` command. The HDF5 layout is theirs: one float32
    dataset per sentence, named by the sentence's number from 0, of shape (L+1, T, D), or (T, D) if one layer is kept,
    without the axis T if tokens are pooled; and `sentence_to_index`, a dataset of shape (1,) with a JSON object from
    sentences, tokens joined by spaces, to names. A sentence that comes twice has two datasets; the object names the
    second.

    Arguments:
        source: UTF-8 text: a file, compressed or not, or standard input as an open stream.
        output: the file to write, .hdf5, .h5 or .npz; it appears when it is complete.
        bilm: the biLM, best a `FastBiLM`.
        layers: "all"; "mix", the mean of all; "top"; or one layer's number, "0" being the token layer.
        pool: what is kept of a sentence's tokens: "none" keeps each, "mean" and "max" make one vector of them.
        tokenize: splits a line into sentences and those into tokens; a line without sentences is skipped. By default
            each line is one sentence, tokens separated by white space. An empty line then is a sentence without tokens
            (zeros if pooled), so that the numbers are those of the lines.
        max_tokens: most tokens of a batch, which bounds memory; a longer sentence is a batch by itself.
        keep_sentences: whether `sentence_to_index` is written, for which all sentences are held in memory.
        checks: see the sentences.

    Returns:
        the number of sentences.

    Raises:
        DataError: `source` is missing, damaged or not UTF-8, or a data file; see `text.prose`.
        ElmoTasksError: `layers` names no layer of the biLM, `pool` is unknown, or `output` has an unknown ending.
    """
    choose, _ = _selection(layers, bilm.num_layers, pool)
    sentence_to_index: dict[str, str] = {}
    total = 0
    with create_vector_file(output) as write:
        for batch in _batches(enumerate(_sentences(source, tokenize)), max_tokens):
            sentences = [tokens for _, tokens in batch]
            for check in checks:
                check.see(sentences)
            for (number, tokens), each in zip(batch, _vectors(sentences, bilm, choose, pool), strict=True):
                write(str(number), each.float().cpu().numpy())
                if keep_sentences:  # equal sentences come in the file's order, since they are equally long
                    sentence_to_index[" ".join(tokens)] = str(number)
            total += len(batch)
        if keep_sentences:
            write(SENTENCES, np.array([json.dumps(sentence_to_index)]))
    return total


def embed_words(
    source: str | Path | IO[bytes],
    output: str | Path,
    bilm: BiLM | FastBiLM,
    *,
    layers: str | int = "mix",
    tokenize: Tokenize | None = None,
    max_tokens: int = 4096,
) -> int:
    """Writes the mean vector of each word of a text over all its places, the most frequent word first.

    Arguments and errors are as of `embed_file`, but `layers` must not be "all". A .csv file has a header row and the
    `count` of each word; other files have word2vec's text format. Returns the number of words.
    """
    if _selection(layers, bilm.num_layers)[1]:
        raise ElmoTasksError("layers: got 'all'; expected mix, top or a number, because a word has one vector")
    counts, sums = Counter[str](), dict[str, np.ndarray]()
    for window in _windows(enumerate(_sentences(source, tokenize)), max_tokens * _BATCHES_SORTED_AT_ONCE):
        sentences = [tokens for _, tokens in window]
        vectors = embed_sentences(sentences, bilm, layers=layers, max_tokens=max_tokens)
        for word, vector in zip(itertools.chain(*sentences), torch.cat(vectors).double().cpu().numpy(), strict=True):
            counts[word] += 1
            sums[word] = sums.get(word, 0) + vector
    rows = [(word, count, [f"{each:.6g}" for each in sums[word] / count]) for word, count in counts.most_common()]
    is_csv = Path(output).suffix.lower() == ".csv"
    encoding = "utf-8-sig" if is_csv else "utf-8"
    with atomic_write(output) as stream, io.TextIOWrapper(stream, encoding, newline="") as text:
        if is_csv:
            header = ["word", "count", *range(bilm.output_size)]
            csv.writer(text, lineterminator="\n").writerows(
                [header, *([word, count, *mean] for word, count, mean in rows)]
            )
        else:
            text.write(f"{len(rows)} {bilm.output_size}\n")
            text.writelines(f"{word} {' '.join(mean)}\n" for word, _, mean in rows)
    return len(rows)


def _selection(
    layers: str | int, num_layers: int, pool: Pooling = "none"
) -> tuple[Callable[[Tensor], Tensor], tuple[int, ...]]:
    """What chooses layers, (L+1, T, D) -> (L+1, T, D) or (T, D); and the axes of layers that are left."""
    if pool not in get_args(Pooling):
        raise ElmoTasksError(f"pool: got {pool!r}; expected none, mean or max")
    layers = str(layers)
    if layers == "all":
        return lambda every: every, (num_layers,)
    if layers == "mix":
        return lambda every: every.mean(dim=0), ()
    number = num_layers - 1 if layers == "top" else int(layers) if layers.isdecimal() else num_layers
    if number >= num_layers:
        raise ElmoTasksError(f"layers: got {layers!r}; expected all, mix, top or a number from 0 to {num_layers - 1}")
    return lambda every: every[number], ()


def _sentences(source: str | Path | IO[bytes], tokenize: Tokenize | None) -> Iterator[list[str]]:
    total = None  # of a stream, which can be read only once
    if isinstance(source, (str, Path)) and not is_stream(source):
        total = sum(1 for _ in read_lines(source))
    lines = raw_lines(source, tokenized=tokenize is None)
    with contextlib.closing(counted_items(lines, "lines read", total=total)) as counted:
        for _, line in counted:
            yield from [line.split()] if tokenize is None else tokenize(line)


def _batches(sentences: Iterable[_Sentence], max_tokens: int) -> Iterator[list[_Sentence]]:
    """Batches of sentences of like length: at most `max_tokens` with padding and borders, or one sentence."""
    for window in _windows(sentences, max_tokens * _BATCHES_SORTED_AT_ONCE):
        lengths = [len(tokens) + 2 for _, tokens in window]  # borders included
        order = sorted(range(len(window)), key=lengths.__getitem__)
        for rows in batches_of_like_lengths(lengths, order, max_padded=max_tokens):
            yield [window[row] for row in rows]


def _windows(sentences: Iterable[_Sentence], max_tokens: int) -> Iterator[list[_Sentence]]:
    window: list[_Sentence] = []
    size = 0
    for number, tokens in sentences:
        window.append((number, tokens))
        size += len(tokens) + 2
        if size >= max_tokens:
            yield window
            window, size = [], 0
    if window:
        yield window


def with_tokenizer(bilm: str | Path | BiLM | FastBiLM, precision: Precision) -> tuple[BiLM | FastBiLM, Tokenizer]:
    """A biLM and the tokenizer of its text, or that for English if it is already loaded."""
    kinds = (str, Path, BiLM, FastBiLM)
    check_argument("bilm", bilm, kinds, "the folder of a biLM, 'default', or a biLM that is loaded")
    check_choice("precision", precision, get_args(Precision))
    if not isinstance(bilm, (str, Path)):
        return bilm, TREEBANK
    files = BiLMFiles.in_folder(bilm)
    loaded = _fast_bilm(files, precision, (file_state(files.options), file_state(files.weights)))
    return loaded, tokenizer_of_bilm(files.options.parent)


@functools.lru_cache(maxsize=1)
def _fast_bilm(files: BiLMFiles, precision: Precision, state: object) -> FastBiLM:
    """Kept for the next call, as long as the files stay the same."""
    return load_frozen(files, precision)
