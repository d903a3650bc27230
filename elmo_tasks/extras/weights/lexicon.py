"""A token layer that looks words and characters up in lists, as ELMoForManyLangs has it.

# N tokens, C characters per token, E features of a character, W features of a word, F filters, P features of a token
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.token_encoder import TOKENS_AT_ONCE, TokenEncoder

UNKNOWN, PADDING, BEGIN_WORD, END_WORD = "<oov>", "<pad>", "<eow>", "<bow>"  # words begin with <eow> and end with <bow>
_BORDERS = {BEGIN_SENTENCE: "<bos>", END_SENTENCE: "<eos>"}

NEEDED_WORDS = (UNKNOWN,)
NEEDED_CHARACTERS = (UNKNOWN, PADDING, BEGIN_WORD, END_WORD, *_BORDERS.values())


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
        words, characters = self.numbers()
        rows, spellings = [], []
        for given in map(str, tokens):
            token = _BORDERS.get(given, given[: self.max_characters - 2])
            letters = [token] if token in _BORDERS.values() else token
            spelled = [characters.get(letter, characters[UNKNOWN]) for letter in letters]
            ids = [characters[BEGIN_WORD], *spelled, characters[END_WORD]]
            rows.append(words.get(token, words[UNKNOWN]))
            spellings.append(ids + [characters[PADDING]] * (self.max_characters - len(ids)))
        device = self.embedding.weight.device
        blocks = zip(
            torch.tensor(rows, device=device).split(TOKENS_AT_ONCE),
            torch.tensor(spellings, device=device).split(TOKENS_AT_ONCE),
            strict=True,
        )
        assert self.projection is not None
        padding = characters[PADDING]
        return torch.cat(
            [
                self.projection(torch.cat([self.word_embedding(block), self.filters(spelled, padding)], dim=1))
                for block, spelled in blocks
            ]
        )  # (N, P)

    def own_tensors(self) -> dict[str, Tensor]:
        return {"word_embed": self.word_embedding.weight, "words": self.words, "characters": self.characters}

    def numbers(self) -> Numbers:
        """The rows of words and characters in their tables."""
        if self._numbers is None:
            self._numbers = Numbers(_numbered(self.words), _numbered(self.characters))
        return self._numbers

    def _load_from_state_dict(self, *arguments: Any) -> None:
        """What `load_state_dict` calls: the lists change."""
        self._numbers = None
        super()._load_from_state_dict(*arguments)


def as_bytes(items: Sequence[str]) -> Tensor:
    """A list of strings without line feeds as the buffers have it."""
    return torch.frombuffer(bytearray("\n".join(items).encode()), dtype=torch.uint8)


def _numbered(content: Tensor) -> dict[str, int]:
    """The number of each item of a list that `as_bytes` has made. Numbers without an item have an empty one."""
    items = content.cpu().numpy().tobytes().decode().split("\n")
    return {item: number for number, item in enumerate(items) if item}
