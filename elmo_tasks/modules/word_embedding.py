"""Vectors of words from tables: trained ones for the training data's words, fixed ones for words only a file has.

# B batch, T tokens, D features, N rows of the trained table, M rows of the fixed table
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.config import Config, LocalPath
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.modules.dropout import Probability
from elmo_tasks.text.vocabulary import PADDING, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from elmo_tasks.modules.word_vectors import WordVectorFile

logger = logging.getLogger(__name__)


class WordEmbeddingConfig(Config):
    """Vectors of words, pretrained or not."""

    size: PositiveInt = Field(description="features of a word; with a file, the size of its vectors")
    vectors: LocalPath | None = Field(
        None, description="pretrained vectors: a text file like that of GloVe or word2vec, plain or compressed"
    )
    trainable: bool = Field(
        True, description="whether the vectors of the training data's words are trained; others never are"
    )
    unknown_probability: Probability = Field(
        0.0, description="in training, the probability that a word is read as the unknown word"
    )

    def build(self, vocabulary: Vocabulary, pretrained: bool = True) -> WordEmbedding:
        """Makes the module.

        Arguments:
            pretrained: read the file of vectors; otherwise the tables are filled later, with the tensors of a run.

        Raises:
            ElmoTasksError: the file's vectors have another size.
        """
        num_fixed_words = len(vocabulary.words) - vocabulary.num_trained_words
        module = WordEmbedding(vocabulary.num_trained_words, num_fixed_words, self)
        if pretrained and (file := self.file()):
            module.load_vectors(file, vocabulary)
        return module

    def file(self) -> WordVectorFile | None:
        """The file of pretrained vectors; None without one."""
        from elmo_tasks.modules.word_vectors import open_word_vectors  # here, since it imports pyarrow

        return open_word_vectors(self.vectors, self.size) if self.vectors else None


class WordEmbedding(nn.Module):
    """Two tables that are used as one: row N of the vocabulary is row 0 of the fixed table.

    Without a file, vectors start normally distributed with a variance of 1 / D, so with a length of about one. The
    padding's vector is always zero.

    Arguments:
        num_trained_words: N, the rows of padding, of the unknown word and of the training data's words.
        num_fixed_words: M.
        config: D, whether the N rows are trained, and how often in training a word is read as the unknown word, whose
            vector is learned this way.
    """

    fixed: Tensor

    def __init__(self, num_trained_words: int, num_fixed_words: int, config: WordEmbeddingConfig) -> None:
        super().__init__()
        self.output_size = size = config.size
        self.unknown_probability = config.unknown_probability
        start = nn.init.normal_(torch.empty(num_trained_words, size), std=size**-0.5)
        self.trained = nn.Parameter(start, requires_grad=config.trainable)  # (N, D)
        self.register_buffer("fixed", torch.zeros(num_fixed_words, size))  # (M, D)
        with torch.no_grad():
            self.trained[PADDING].zero_()

    @torch.no_grad()
    def load_vectors(self, file: WordVectorFile, vocabulary: Vocabulary) -> None:
        """Fills the tables from a file.

        A word that the file lacks gets the vector of its lower-cased form. A training word without that too starts with
        a random vector. Each of its features is normally distributed, with the mean and the standard deviation of the
        vectors that were found, so that it looks like any word to the layers above. The unknown word gets their mean.

        Raises:
            ElmoTasksError: the file has none of the vocabulary's words.
        """
        # Padding and unknown word are names of rows, not words, even if the file has words that are spelled like them.
        begin = UNKNOWN + 1
        words = vocabulary.words[begin:]
        found = torch.from_numpy(file.rows(words))  # (N + M - begin, D)
        lacking = found.isnan().any(1).nonzero().squeeze(1)
        found[lacking] = torch.from_numpy(file.rows([words[row].lower() for row in lacking.tolist()]))
        is_found = ~found.isnan().any(1)
        num_trained = len(self.trained) - begin
        logger.info("%s: vectors for %d of %d words", file.path, int(is_found.sum()), len(found))
        if not is_found.any():
            raise ElmoTasksError(
                f"{file.path}: holds none of the vocabulary's {len(found)} words; is it the right file, in the "
                "language of the data? Words are looked up as they are written, then in lower case"
            )
        deviation, mean = torch.std_mean(found[is_found], dim=0, correction=0)  # (D,), (D,)
        found = torch.where(is_found.unsqueeze(1), found, mean + deviation * torch.randn_like(found))
        self.trained[UNKNOWN] = mean
        self.trained[begin:] = found[:num_trained]
        self.fixed.copy_(found[num_trained:])

    def forward(self, words: Tensor) -> Tensor:
        """(B, T) int64, rows of the vocabulary -> (B, T, D); zero in the padding."""
        if self.training and self.unknown_probability > 0:
            is_hidden = (torch.rand(words.shape, device=words.device) < self.unknown_probability) & (words != PADDING)
            words = words.masked_fill(is_hidden, UNKNOWN)
        is_fixed = words >= len(self.trained)  # (B, T)
        # The padding's row gets no gradient, wherever it stands in for a word of the other table.
        vectors = functional.embedding(words.masked_fill(is_fixed, PADDING), self.trained, padding_idx=PADDING)
        if len(self.fixed) == 0:
            return vectors
        fixed = functional.embedding((words - len(self.trained)).clamp(min=0), self.fixed)
        return torch.where(is_fixed.unsqueeze(2), fixed, vectors)  # (B, T, D)
