"""The language model that a biLM is trained in: the biLM, and one softmax for both directions.

# T steps of a window, B rows of a batch, U distinct tokens, P features of one direction, V words of the vocabulary
"""

from __future__ import annotations

import bisect
import itertools
import math
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles, bilm_folder
from elmo_tasks.elmo.characters import check_sentences
from elmo_tasks.elmo.lstm import LstmState, ProjectedLstm
from elmo_tasks.elmo.options import VOCABULARY_FILE, BiLMOptions
from elmo_tasks.elmo.token_encoder import TOKENS_AT_ONCE, TokenEncoder
from elmo_tasks.errors import ElmoTasksError, WeightsError, check_argument, check_count
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.recurrence import run_layer
from elmo_tasks.extras.pretraining.scores import SentenceScores, score_texts
from elmo_tasks.extras.pretraining.softmax import Candidates, OutputVocabulary, softmax_losses
from elmo_tasks.extras.pretraining.windows import NO_TARGET, SlotReader, Window
from elmo_tasks.extras.raw_text import find_token, tokenizer_of_bilm
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.tensor_files import read_tensors, write_tensors
from elmo_tasks.text.tokenizers import TREEBANK, Tokenizer

SOFTMAX_FILE = "softmax.safetensors"

_WORD = re.compile(r"\S+")
_WORD_SCORES = (
    "word_number", "word", "tokens", "known", "forward_bits", "backward_bits", "both_bits", "forward_entropy_bits",
    "backward_entropy_bits",
)  # fmt: skip

# A byte outside ASCII is rare if a smaller share of the vocabulary has it. Training hardly changes its embedding: a
# random one would stay longer than those that are learned, and make vectors of words in other scripts many times too
# long. ASCII is another case: its punctuation is in few words, but often in a text.
_RARE_SHARE = 1 / 5000

LayerStates = list[tuple[LstmState, LstmState]]  # of each layer's forward and backward LSTM


class LanguageModel(nn.Module):
    """A bidirectional language model (Peters et al. 2018, section 3.1), in the form of bilm-tf's `LanguageModel`.

    The directions share the token layer and the softmax, but not the LSTMs. In training there is dropout on the inputs
    of every LSTM layer, which the skip connections carry on, and on the softmax's input.

    Arguments:
        bilm: its weights are trained.
        vocabulary: the words that it predicts.
        dropout: probability of dropping a feature in training.

    Attributes:
        tokenizer: splits the raw text that `score` and `substitutes` get; `load` takes that of the biLM's text.
    """

    tokenizer: Tokenizer = TREEBANK

    def __init__(self, bilm: BiLM, vocabulary: OutputVocabulary, dropout: float = 0.0) -> None:
        super().__init__()
        self.bilm = bilm.requires_grad_(True)
        self.vocabulary = vocabulary
        size = bilm.output_size // 2
        self.softmax_weight = nn.Parameter(torch.randn(len(vocabulary), size) / math.sqrt(size))
        self.softmax_bias = nn.Parameter(torch.zeros(len(vocabulary)))
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def untrained(cls, options: BiLMOptions, vocabulary: OutputVocabulary, dropout: float = 0.0) -> LanguageModel:
        """A language model with random weights, except that embeddings of rare bytes are zero."""
        bilm = BiLM(options)
        bilm.apply(_initialize)
        counts = Counter(byte for word in vocabulary.words for byte in set(word.encode()))
        least = _RARE_SHARE * len(vocabulary)
        rare = [byte for byte in range(256) if counts[byte] < (1 if byte < 0x80 else least)]
        with torch.no_grad():
            bilm.token_encoder.embedding.weight[[byte + 1 for byte in rare]] = 0.0  # 0 is padding
        return cls(bilm, vocabulary, dropout)

    @staticmethod
    def is_in_folder(folder: str | Path) -> bool:
        """Whether a folder holds a softmax and its vocabulary, which the published biLMs lack."""
        folder = bilm_folder(folder, VOCABULARY_FILE, SOFTMAX_FILE)
        return all((folder / name).is_file() for name in (VOCABULARY_FILE, SOFTMAX_FILE))

    @classmethod
    def load(cls, folder: str | Path, dropout: float = 0.0) -> LanguageModel:
        """Reads a biLM with its vocabulary and softmax from the folder that `save` wrote.

        Raises:
            WeightsError: a file is missing or damaged, or the files do not fit together.
            DataError: the vocabulary does not follow its format.
        """
        folder = bilm_folder(folder, VOCABULARY_FILE, SOFTMAX_FILE)
        files = BiLMFiles.in_folder(folder)
        if not cls.is_in_folder(folder):
            raise WeightsError(
                f"{folder}: expected {VOCABULARY_FILE} and {SOFTMAX_FILE} in addition to the biLM, as pretraining "
                "writes them; the published biLMs have none"
            )
        vocabulary = OutputVocabulary.load(folder / VOCABULARY_FILE)
        model = cls(BiLM.load(files.options, files.weights), vocabulary, dropout)
        path, own = folder / SOFTMAX_FILE, {"weight": model.softmax_weight, "bias": model.softmax_bias}
        tensors = read_tensors(path, WeightsError)
        shapes = {name: tuple(parameter.shape) for name, parameter in own.items()}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if found != shapes:
            raise WeightsError(f"{path}: holds {found}; expected {shapes}, from the vocabulary and the biLM's options")
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(tensors[name])
        model.tokenizer = tokenizer_of_bilm(folder)
        return model

    def save(self, folder: str | Path, *, half_precision: bool = False) -> None:
        """Writes options.json, weights.hdf5, vocabulary.txt and softmax.safetensors: after an error, none of them.

        Arguments:
            half_precision: writes the weights as float16: half the size, three decimal digits.

        Raises:
            WriteError: a file cannot be written.
        """
        dtype = torch.float16 if half_precision else torch.float32
        softmax = {"weight": self.softmax_weight, "bias": self.softmax_bias}
        with atomic_folder(folder, merge=True) as files:
            write_tensors(files / SOFTMAX_FILE, {name: each.detach().cpu().to(dtype) for name, each in softmax.items()})
            self.vocabulary.save(files / VOCABULARY_FILE)
            self.bilm.save(files / "options.json", files / "weights.hdf5", half_precision)

    def reader(self, part: CorpusPart, types: Sequence[str]) -> SlotReader:
        """The slots of a part of a corpus, whose distinct tokens are `types`, for this model."""
        return SlotReader(part, types, self.vocabulary, self.bilm.options.char_cnn.max_characters_per_token)

    def initial_states(self, rows: int) -> LayerStates:
        """The states of zeros for this many streams."""
        return [(forward.initial_state(rows), backward.initial_state(rows)) for forward, backward in self._layers()]

    def _layers(self) -> Iterator[tuple[ProjectedLstm, ProjectedLstm]]:
        """Each layer's forward and backward LSTM."""
        return zip(*(stack.layers for stack in self.bilm.directions), strict=True)

    def forward(
        self,
        window: Window,
        states: LayerStates,
        candidates: Candidates | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> tuple[Tensor, Tensor, LayerStates]:
        """The losses of a window, summed over the targets of each direction, in nats, () float64; the states after it.

        Arguments:
            states: of the streams before the window; no gradient flows into them.
            candidates: the words that targets are compared with; None for the whole vocabulary.
            dtype: of the products' factors, torch.bfloat16 or that of the weights.
        """
        is_target = (window.targets[0] != NO_TARGET).flatten()  # in both directions at the same steps
        rows = None if bool(is_target.all()) else is_target.nonzero().squeeze(1)
        vectors = self.vectors(window, dtype)
        return self.losses(vectors, window.targets, window.resets, states, candidates, dtype, rows)

    def vectors(self, window: Window, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """The token layer's vectors (T, B, P) of what each direction reads; see `forward`."""
        encoder, words = self.bilm.token_encoder, window.words
        # Words of like lengths are encoded together, so that little is read of their padding.
        blocks = zip(words.character_ids.split(TOKENS_AT_ONCE), words.lengths[::TOKENS_AT_ONCE].tolist(), strict=True)
        weights = encoder.embedding.weight
        with torch.autocast(weights.device.type, dtype, enabled=dtype != weights.dtype):
            table = torch.cat([encoder.encode(*block) for block in blocks]).to(weights.dtype)  # (U, P)
        forward, backward = (functional.embedding(rows, table) for rows in window.inputs)
        return forward, backward

    def losses(
        self,
        vectors: tuple[Tensor, Tensor],
        targets: Tensor,
        resets: Tensor | None,
        states: LayerStates,
        candidates: Candidates | None,
        dtype: torch.dtype,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, LayerStates]:
        """The summed losses of each direction, and the states, from the token layer's vectors; see `forward`.

        Arguments:
            vectors: from `vectors`.
            targets, resets: of the window.
            rows: (N,) the steps and streams that have a target, as numbers of rows of (T B, P); None for all.
        """
        outputs, states = self.run_layers(vectors, resets, states, dtype)
        hidden = [self.dropout(output).flatten(0, 1) for output in outputs]  # (T B, P)
        words = list(targets.flatten(1))  # (T B,)
        if rows is not None:
            hidden, words = [each[rows] for each in hidden], [each[rows] for each in words]
        forward, backward = softmax_losses(hidden, words, self.softmax_weight, self.softmax_bias, candidates, dtype)
        return forward, backward, states

    def run_layers(
        self,
        vectors: tuple[Tensor, Tensor],
        resets: Tensor | None,
        states: LayerStates,
        dtype: torch.dtype = torch.float32,
    ) -> tuple[tuple[Tensor, Tensor], LayerStates]:
        """The topmost layer's outputs (T, B, P) of each direction, in the order in which it reads; see `losses`."""
        forward, backward = vectors
        after: LayerStates = []
        skips = self.bilm.options.lstm.use_skip_connections
        for depth, (lstms, state) in enumerate(zip(self._layers(), states, strict=True)):
            forward, backward = self.dropout(forward), self.dropout(backward)
            outputs, state_after = run_layer(lstms, (forward, backward), state, dtype, resets)
            after.append(state_after)
            if skips and depth > 0:
                forward, backward = forward + outputs[0], backward + outputs[1]
            else:
                forward, backward = outputs
        return (forward, backward), after

    def score(self, sentences: str | Sequence[Sequence[str]], substitutes: int = 0) -> list[SentenceScores]:
        """How surprising each token is from its left, from its right and from both; see `score_texts`.

        Arguments:
            sentences: a text, which is split into sentences as that of the biLM was; or sentences as lists of tokens.
            substitutes: how many likely words to give for each token.

        Raises:
            ArgumentError: a sentence is not a list of strings, or `substitutes` is not a whole number from 0 on.
            ElmoTasksError: a sentence has no token.
        """
        if isinstance(sentences, str):
            sentences = [tokens for tokens in self.tokenizer.strings(sentences) if tokens]
        check_sentences(sentences)
        return list(score_texts(self, ([each] for each in sentences), substitutes))

    def score_words(
        self, rows: Iterable[Mapping[Any, Any]], text: Any, *, context: bool = False, punctuation: bool = True
    ) -> list[dict[Any, Any]]:
        """A row for each word of the texts of a table, words being what white space separates, with scores in bits.

        A word such as `horse,` has several tokens, and the sums of their surprisals: by the chain rule, those of the
        word given all that is on its left (forward) or right (backward). The sum of `both_bits` follows from no such
        rule. The entropies are those before the first token and, from the right, before the last one. `known` is 0 if
        the vocabulary lacks a token, which is scored as any unknown word. Words without tokens have no scores, None.

        Arguments:
            rows: of the table, or a `pandas.DataFrame`. All columns are kept.
            text: the column of the text.
            context: whether a sentence of a text is read after those before it, see `score_texts`, or by itself.
            punctuation: whether tokens without letters and digits count, unless a word has no others.

        Raises:
            ArgumentError: a text is missing or not a string.
            ElmoTasksError: a column has the name of a score.
        """
        given: list[Mapping[Any, Any]] = list(rows.to_dict("records") if hasattr(rows, "to_dict") else rows)
        for number, row in enumerate(given):
            check_argument(f"row {number}: {text!r}", row.get(text), str, f"a text (columns: {list(row)})")
            if taken := [name for name in _WORD_SCORES if name in row]:
                raise ElmoTasksError(f"row {number}: has a column {taken[0]!r}, as the scores have; rename it")
        split = [[each for each in self.tokenizer.tokenize(row[text]) if each] for row in given]
        sentences = [[[token.text for token in sentence] for sentence in each] for each in split]
        texts = filter(None, sentences) if context else ([each] for text in sentences for each in text)
        tokens = itertools.chain.from_iterable(scores.tokens for scores in score_texts(self, texts))
        scored = []
        for row, own in zip(given, split, strict=True):
            words = [*_WORD.finditer(row[text])]
            starts = [word.start() for word in words]
            counts = Counter(bisect.bisect(starts, token.start) for token in itertools.chain.from_iterable(own))
            for number, word in enumerate([match[0] for match in words] or [""], start=1):
                every = list(itertools.islice(tokens, counts[number]))
                summed = [each for each in every if punctuation or any(map(str.isalnum, each.token))] or every
                values: list[Any] = [number, word, " ".join(each.token for each in every)]
                if summed:
                    nats = [sum(getattr(each, name) for each in summed) for name in ("forward", "backward", "both")]
                    nats += [summed[0].forward_entropy, summed[-1].backward_entropy]
                    values.append(int(all(each.is_known for each in summed)))
                    values += [round(each / math.log(2), 4) for each in nats]
                scored.append({**row, **dict(itertools.zip_longest(_WORD_SCORES, values))})
        return scored

    def substitutes(
        self, sentence: str | Sequence[str], word: str | int, count: int = 10
    ) -> tuple[tuple[str, float], ...]:
        """The words that are likeliest in the place of a word, by both directions, with their probabilities.

        Arguments:
            sentence: a text, which is read as one sentence; or its tokens.
            word: a token of the sentence, whatever its case, or its index from 0.

        Raises:
            ElmoTasksError: the word does not occur exactly once, where its index says which one is meant; or the
                sentence has no token with this index.
            ArgumentError: an argument is of another kind.
        """
        check_count("count", count, 1)
        tokens = [each.text for each in self.tokenizer.words(sentence)] if isinstance(sentence, str) else sentence
        check_sentences([tokens])
        check_argument("word", word, (str, numbers.Integral), "a token of the sentence, or its index from 0")
        index = find_token(tokens, word).index if isinstance(word, str) else word
        if not -len(tokens) <= index < len(tokens):
            raise ElmoTasksError(f"word is {index}; expected an index from 0 to {len(tokens) - 1}")
        return self.score([tokens], count)[0].tokens[index].substitutes


def _initialize(module: nn.Module) -> None:
    """Draws a module's weights, without those of its children, as bilm-tf does."""
    if isinstance(module, nn.Embedding):
        nn.init.uniform_(module.weight, -1.0, 1.0)
        with torch.no_grad():
            module.weight[0] = 0.0
    elif isinstance(module, nn.Conv1d):
        nn.init.uniform_(module.weight, -0.05, 0.05)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, ProjectedLstm):
        # Glorot's uniform distribution, over inputs and outputs as one matrix, as in TensorFlow.
        gates, size = module.input_weight.shape
        bound = math.sqrt(6.0 / (gates + 2 * size))
        nn.init.uniform_(module.input_weight, -bound, bound)
        nn.init.uniform_(module.recurrent_weight, -bound, bound)
        nn.init.zeros_(module.bias)
        if module.projection_weight is not None:
            nn.init.xavier_uniform_(module.projection_weight)
    elif isinstance(module, TokenEncoder):
        for highway in module.highways:
            for linear in (highway.carry, highway.transform):
                nn.init.normal_(linear.weight, std=1.0 / math.sqrt(linear.in_features))
            nn.init.constant_(highway.carry.bias, -2.0)
            nn.init.zeros_(highway.transform.bias)
        if module.projection is not None:
            nn.init.normal_(module.projection.weight, std=1.0 / math.sqrt(module.projection.in_features))
            nn.init.zeros_(module.projection.bias)


def load_language_model(bilm: str | Path = DEFAULT_BILM) -> LanguageModel:
    """A biLM with its softmax, which says how surprising words are (`score`) and which it expects (`substitutes`).

    Arguments:
        bilm: the folder of a biLM that `elmo-tasks pretrain` made, `default` for the one in the package. The published
            biLMs have no softmax.

    Raises:
        WeightsError: the biLM's files are missing or damaged, or it has no softmax.
    """
    return LanguageModel.load(bilm)
