"""The options of a biLM, from the options.json next to its weights; and the options of the published models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from elmo_tasks.config import Config
from elmo_tasks.errors import WeightsError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import read_json

VOCABULARY_FILE = "vocabulary.txt"  # next to the options: the words that were read, the most frequent first

# Bounds that no real biLM comes near. Within them, sizes can be multiplied, and the layers be made.
Size = Annotated[int, Field(ge=1, le=1 << 20)]
Bytes = Annotated[int, Field(ge=1, le=1 << 30)]
Count = Annotated[int, Field(le=1000)]


class _Options(Config):
    """Settings in the reference's JSON layout. Keys that only matter in training are kept but not used."""

    model_config = pydantic.ConfigDict(extra="allow")

    def unused_keys(self) -> list[str]:
        """The keys that have no effect: those of bilm-tf's training, or misspelt ones. `lstm.x` is a key of `lstm`."""
        own = list(self.model_extra or ())
        parts = ((name, value) for name, value in self if isinstance(value, _Options))
        return own + [f"{name}.{key}" for name, part in parts for key in part.unused_keys()]


class CharacterEmbeddingOptions(_Options):
    """The embedding of single characters."""

    dim: Size = Field(description="Features of a character.")


class CharacterCnnOptions(_Options):
    """The token layer: character embedding, convolutions of several widths, highway layers."""

    embedding: CharacterEmbeddingOptions
    filters: Annotated[tuple[tuple[Size, Size], ...], Field(min_length=1, max_length=1000)] = Field(
        description="Width in characters and number of filters, one pair for each convolution."
    )
    activation: Literal["relu", "tanh"] = Field(description="Applied to each filter's maximum over the token.")
    n_highway: Annotated[Count, Field(ge=0)] = Field(0, description="Number of highway layers over all filters.")
    n_characters: Literal[261, 262] = Field(
        262, description="261 as in training, or 262 with the row of the mask; the weights are the same."
    )
    max_characters_per_token: Annotated[Count, Field(ge=3)] = Field(
        50, description="Characters that a token is cut to, its two border characters included."
    )

    @property
    def num_filters(self) -> int:
        """The number of filters of all widths."""
        return sum(number for _, number in self.filters)

    @pydantic.model_validator(mode="after")
    def _widths_fit(self) -> CharacterCnnOptions:
        widest = max(width for width, _ in self.filters)
        if widest > self.max_characters_per_token:
            raise ValueError(f"a filter of width {widest} is wider than a token's {self.max_characters_per_token}")
        return self


class LstmOptions(_Options):
    """The stack of LSTMs of one direction; both directions have the same sizes."""

    dim: Size = Field(description="Cells of a layer.")
    projection_dim: Size = Field(description="Features of the token layer and of a layer's output, in one direction.")
    n_layers: Annotated[Count, Field(ge=1)] = Field(description="Layers, not counting the token layer.")
    cell_clip: Annotated[float, Field(gt=0)] | None = Field(None, description="Bound of a cell's absolute value.")
    proj_clip: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Bound of a projected output's absolute value."
    )
    use_skip_connections: bool = Field(False, description="Add a layer's input to its output, from layer 2 on.")

    @property
    def has_projection(self) -> bool:
        """Whether the cells' outputs are projected; if the sizes are equal, the reference has no projection."""
        return self.projection_dim < self.dim

    @pydantic.model_validator(mode="after")
    def _projects_down(self) -> LstmOptions:
        if self.projection_dim > self.dim:
            raise ValueError(
                f"projection_dim {self.projection_dim} is larger than dim {self.dim}; expected at most dim"
            )
        return self


class LexiconOptions(_Options):
    """The lists of words and characters of a token layer that looks tokens up."""

    num_words: Size = Field(description="Rows of the table of words.")
    word_dim: Size = Field(description="Features of a word.")
    word_bytes: Bytes = Field(description="Size of the list of words.")
    num_characters: Size = Field(description="Rows of the table of characters; `n_characters` has no meaning then.")
    character_bytes: Bytes = Field(description="Size of the list of characters.")


class BiLMOptions(_Options):
    """A biLM's architecture, in the layout of bilm-tf's and AllenNLP's options.json, which have no `lexicon`."""

    lstm: LstmOptions
    char_cnn: CharacterCnnOptions
    lexicon: LexiconOptions | None = Field(None, description="The token layer's lists, as in ELMoForManyLangs.")

    @property
    def output_size(self) -> int:
        """The features of a layer, both directions together."""
        return 2 * self.lstm.projection_dim

    @property
    def num_layers(self) -> int:
        """The number of layers of the output: the token layer and the LSTM layers."""
        return self.lstm.n_layers + 1

    @property
    def has_token_projection(self) -> bool:
        """Whether the filters are projected; if the sizes are equal, the reference has no projection."""
        return self.lexicon is not None or self.char_cnn.num_filters != self.lstm.projection_dim

    def summary(self) -> str:
        """What the biLM reads, and its sizes, in words."""
        lstm, read = self.lstm, "words and characters" if self.lexicon else "characters"
        return (
            f"reads {read}; {lstm.n_layers} LSTM layers of {lstm.dim:,} cells in each direction, {self.output_size:,} "
            "features in each layer"
        )

    def architecture(self) -> dict[str, Any]:
        """The settings that a token's vectors depend on, as JSON values."""
        lstm = self.lstm.model_dump(mode="json", include=set(LstmOptions.model_fields))
        own = set(CharacterCnnOptions.model_fields) - {"n_characters", "embedding"}
        char_cnn = self.char_cnn.model_dump(mode="json", include=own)
        char_cnn["embedding"] = {"dim": self.char_cnn.embedding.dim}
        lexicon = {"lexicon": self.lexicon.model_dump(mode="json")} if self.lexicon else {}
        return {"lstm": lstm, "char_cnn": char_cnn, **lexicon}

    @classmethod
    def load(cls, path: str | Path) -> BiLMOptions:
        """Reads an options.json.

        Raises:
            WeightsError: the file is missing, is not JSON, lacks a key or has an impossible value; a line per problem.
        """
        return read_json(path, cls, "the options of a character-based biLM", error=WeightsError)

    def save(self, path: str | Path) -> None:
        """Writes an options.json that bilm-tf and AllenNLP read, atomically."""
        with atomic_write(path) as stream:
            stream.write((self.model_dump_json(indent=2, exclude_none=True) + "\n").encode())


_PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


def _published(cells: int, projection: int, highways: int) -> BiLMOptions:
    return BiLMOptions(
        lstm=LstmOptions(
            dim=cells, projection_dim=projection, n_layers=2, cell_clip=3.0, proj_clip=3.0, use_skip_connections=True
        ),
        char_cnn=CharacterCnnOptions(
            embedding=CharacterEmbeddingOptions(dim=16),
            filters=_PUBLISHED_FILTERS,
            activation="relu",
            n_highway=highways,
            n_characters=262,
            max_characters_per_token=50,
        ),
    )


PUBLISHED_OPTIONS: dict[str, BiLMOptions] = {
    "small": _published(1024, 128, highways=1),
    "medium": _published(2048, 256, highways=1),
    "original": _published(4096, 512, highways=2),
}
"""The architectures of the published models, 13.6, 28.0 and 93.6 million parameters (Peters et al. 2018, bilm-tf)."""

TINY_OPTIONS = BiLMOptions(
    lstm=PUBLISHED_OPTIONS["small"].lstm.model_copy(update={"dim": 128, "projection_dim": 32}),
    char_cnn=PUBLISHED_OPTIONS["small"].char_cnn.model_copy(update={"filters": ((1, 16), (2, 16), (3, 32), (4, 64))}),
)
"""The small published architecture with far fewer units, to try things out with."""
