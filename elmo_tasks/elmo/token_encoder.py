"""The context-independent token layer: character embedding, convolutions, highway layers, projection.

`TokenEncoder` is the reference for `elmo/fast/words.py`, with frozen weights, and for the token layer in pretraining.
`LexiconEncoder` also looks tokens up in a list, as ELMoForManyLangs does.

# N tokens, C characters per token, E features of a character, W features of a word, F filters, P features of a token
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE, NUM_CHARACTERS, PADDING_ID, tokens_to_ids
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import WeightsError

_TOKENS_AT_ONCE = 512  # bounds the memory of the convolutions: about 200 kB per token with the published filters

# Of the lists of a `LexiconEncoder`.
UNKNOWN, PADDING, BEGIN_WORD, END_WORD = "<oov>", "<pad>", "<eow>", "<bow>"  # words begin with <eow> and end with <bow>
_BORDERS = {BEGIN_SENTENCE: "<bos>", END_SENTENCE: "<eos>"}

NEEDED_WORDS = (UNKNOWN,)
NEEDED_CHARACTERS = (UNKNOWN, PADDING, BEGIN_WORD, END_WORD, *_BORDERS.values())


class Highway(nn.Module):
    """One highway layer (Srivastava et al. 2015) as in bilm-tf.

    carry = sigmoid(x W_c + b_c);  y = carry * relu(x W_t + b_t) + (1 - carry) * x
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.carry = nn.Linear(size, size)
        self.transform = nn.Linear(size, size)

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, F) -> (N, F)"""
        carry = torch.sigmoid(self.carry(inputs))
        return carry * functional.relu(self.transform(inputs)) + (1.0 - carry) * inputs


class TokenEncoder(nn.Module):
    """Maps tokens, given as character ids, to vectors that depend only on their spelling.

    Source: Peters et al. 2018, section 3.4, and bilm-tf's `_build_word_char_embeddings`: the activation follows the
    maximum over a token's positions, including those of padding characters; there is no projection if its two sizes
    would be equal.

    Class attributes:
        first_row: the first row of the table of characters that weights files contain.
    """

    first_row = 1

    def __init__(self, options: BiLMOptions) -> None:
        super().__init__()
        cnn = options.char_cnn
        self.embedding = nn.Embedding(NUM_CHARACTERS, cnn.embedding.dim, padding_idx=0)
        convolutions = nn.ModuleList(
            nn.Conv1d(cnn.embedding.dim, number, kernel_size=width) for width, number in cnn.filters
        )
        highways = nn.ModuleList(Highway(cnn.num_filters) for _ in range(cnn.n_highway))
        # A ModuleList has no type for its items.
        self.convolutions = cast("Sequence[nn.Conv1d]", convolutions)
        self.highways = cast("Sequence[Highway]", highways)
        self.projection: nn.Linear | None = None
        if options.has_token_projection:
            self.projection = nn.Linear(cnn.num_filters, options.lstm.projection_dim)
        self.activation = torch.tanh if cnn.activation == "tanh" else torch.relu
        self.max_characters = cnn.max_characters_per_token
        self._widest_filter = max(width for width, _ in cnn.filters)

    def forward(self, character_ids: Tensor) -> Tensor:
        """Encodes tokens. Without gradients, memory is bounded.

        Arguments:
            character_ids: (N, C) int64, as from `tokens_to_ids`.

        Returns:
            (N, P)
        """
        return torch.cat([self._encode(block) for block in character_ids.split(_TOKENS_AT_ONCE)])

    def of_tokens(self, tokens: Sequence[str | bytes]) -> Tensor:
        """The vectors (N, P) of tokens, each a string or what `ids_to_bytes` gives."""
        return self(tokens_to_ids(tokens, self.max_characters).to(self.embedding.weight.device))

    def _encode(self, character_ids: Tensor) -> Tensor:
        vectors = self.filters(character_ids, PADDING_ID)
        return vectors if self.projection is None else self.projection(vectors)  # (N, P)

    def filters(self, character_ids: Tensor, padding: int) -> Tensor:
        """The filters' values after the highway layers, (N, C) -> (N, F); `padding` fills tokens up to their width."""
        # Windows that hold only padding all have the same values. One such window, after the longest token and for the
        # widest filter, is enough.
        used = (character_ids != padding).any(dim=0).nonzero()
        length = int(used.max()) + 1 if len(used) else 0
        characters = self.embedding(character_ids[:, : length + self._widest_filter]).transpose(1, 2)  # (N, E, C)
        filters = torch.cat([convolution(characters).amax(dim=-1) for convolution in self.convolutions], dim=-1)
        vectors = self.activation(filters)  # (N, F)
        for highway in self.highways:
            vectors = highway(vectors)
        return vectors


class Numbers(NamedTuple):
    """The row of each word and of each character in its table."""

    words: dict[str, int]
    characters: dict[str, int]


class LexiconEncoder(TokenEncoder):
    """Maps tokens to vectors that depend on the token as a whole, if it is in a list of words, and on its spelling.

    Source: Che et al. 2018, and `ConvTokenEmbedder` and `create_one_batch` of ELMoForManyLangs, whose characters are
    those of Unicode, not bytes. The vector of the word and the values of the filters, after the highway layers, are
    projected together. Tokens are cut to the most characters of a token before they are looked up. `<S>` and `</S>` are
    the sentence borders, as for other biLMs, and so are `<bos>` and `<eos>`.

    The two lists are buffers, each the UTF-8 bytes of its items with line feeds between them, so that the weights never
    lose them.
    """

    first_row = 0

    def __init__(self, options: BiLMOptions) -> None:
        super().__init__(options)
        lexicon = options.lexicon
        assert lexicon is not None
        self.embedding = nn.Embedding(lexicon.num_characters, options.char_cnn.embedding.dim)
        self.word_embedding = nn.Embedding(lexicon.num_words, lexicon.word_dim)
        self.projection = nn.Linear(lexicon.word_dim + options.char_cnn.num_filters, options.lstm.projection_dim)
        self.words: Tensor
        self.characters: Tensor
        self.register_buffer("words", torch.zeros(lexicon.word_bytes, dtype=torch.uint8))
        self.register_buffer("characters", torch.zeros(lexicon.character_bytes, dtype=torch.uint8))
        self._numbers: Numbers | None = None  # of the buffers' items

    def forward(self, character_ids: Tensor) -> Tensor:
        """Refuses character ids, from which the words cannot be known.

        Raises:
            ValueError: always.
        """
        raise ValueError("this biLM looks words up in a list; expected tokens, as for `BiLM.layers`, not character ids")

    def of_tokens(self, tokens: Sequence[str | bytes]) -> Tensor:
        numbers = self.numbers()
        rows, spellings = zip(*(_ids(str(token), numbers, self.max_characters) for token in tokens), strict=True)
        device = self.embedding.weight.device
        blocks = zip(
            torch.tensor(rows, device=device).split(_TOKENS_AT_ONCE),
            torch.tensor(spellings, device=device).split(_TOKENS_AT_ONCE),
            strict=True,
        )
        assert self.projection is not None
        padding = numbers.characters[PADDING]
        return torch.cat(
            [
                self.projection(torch.cat([self.word_embedding(block), self.filters(spelled, padding)], dim=1))
                for block, spelled in blocks
            ]
        )  # (N, P)

    def numbers(self) -> Numbers:
        """The rows of words and characters in their tables.

        Raises:
            WeightsError: a list is damaged.
        """
        if self._numbers is None:
            words = _numbered(self.words, len(self.word_embedding.weight), NEEDED_WORDS)
            self._numbers = Numbers(words, _numbered(self.characters, len(self.embedding.weight), NEEDED_CHARACTERS))
        return self._numbers

    def _load_from_state_dict(self, *arguments: Any) -> None:
        """What `load_state_dict` calls: the lists change."""
        self._numbers = None
        super()._load_from_state_dict(*arguments)


def as_bytes(items: Sequence[str]) -> Tensor:
    """A list of strings without line feeds as the buffers have it."""
    return torch.frombuffer(bytearray("\n".join(items).encode()), dtype=torch.uint8)


def missing(items: Collection[str], needed: Collection[str]) -> str:
    """The needed items that are not there, with commas between them."""
    return ", ".join(sorted(set(needed) - set(items)))


def _numbered(content: Tensor, rows: int, needed: Collection[str]) -> dict[str, int]:
    """The number of each item of a list that `as_bytes` has made. Numbers without an item have an empty one."""
    try:
        items = content.cpu().numpy().tobytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise WeightsError(f"the biLM's list of words or characters is damaged: {error}") from None
    if len(items) != rows:
        raise WeightsError(
            f"the biLM's list of words or characters has {len(items)} items; expected {rows}, as its table"
        )
    if absent := missing(items, needed):
        raise WeightsError(
            f"the biLM's list of words or characters has no {absent}; expected them as in ELMoForManyLangs"
        )
    return {item: number for number, item in enumerate(items) if item}


def _ids(token: str, numbers: Numbers, width: int) -> tuple[int, list[int]]:
    """The row of a token in the table of words, and those of its characters, `width` of them."""
    words, characters = numbers
    token = _BORDERS.get(token, token[: width - 2])
    letters = [token] if token in _BORDERS.values() else token
    spelled = [characters.get(letter, characters[UNKNOWN]) for letter in letters]
    ids = [characters[BEGIN_WORD], *spelled, characters[END_WORD]]
    return words.get(token, words[UNKNOWN]), ids + [characters[PADDING]] * (width - len(ids))
