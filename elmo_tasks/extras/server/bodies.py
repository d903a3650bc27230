"""What the addresses of the server take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic
from fastapi import Query
from pydantic import Field

from elmo_tasks.config import Config

_MOST = 50  # neighbours, and substitutes of a token

Details = Annotated[bool, Query(description="adds what the page draws, such as the probabilities of other tags")]


Explain = Annotated[bool, Query(description="adds how much each token contributes to each result")]
RunName = Annotated[str | None, Field(description="the run whose biLM is used; by default, the first run with one")]
TokenIndex = Annotated[int, Field(description="the index of the token, from 0")]


class Sentence(Config):
    """A sentence, as raw text or as tokens."""

    text: str | None = Field(None, description="raw text, read as one sentence")
    tokens: list[str] | None = Field(None, description="the tokens, instead of `text`")

    def fields(self) -> dict[str, Any]:
        return {key: value for key in ("text", "tokens") if (value := getattr(self, key)) is not None}


class SentenceOfRun(Sentence):
    """A sentence, and which biLM reads it."""

    run: RunName = None


class EmbedBody(SentenceOfRun):
    layers: list[int] | None = Field(None, description="the layers to return; 0 is the token layer, null returns all")
    pooling: Literal["none", "mean", "max"] = Field("none", description="mean and max return one vector for each layer")


class TokenInSentence(Sentence):
    index: TokenIndex


class SimilarityBody(Config):
    one: TokenInSentence
    other: TokenInSentence
    run: RunName = None


class NeighborsBody(SentenceOfRun):
    index: TokenIndex
    layer: int = Field(1, description="the layer whose vectors are compared; 0 is the token layer")
    k: Annotated[int, Field(ge=1, le=_MOST)] = Field(10, description="the number of neighbours")


class ScoreBody(SentenceOfRun):
    substitutes: Annotated[int, Field(ge=0, le=_MOST)] = Field(
        0, description="the number of likely words to return for each token"
    )


class BatchBody(Config):
    inputs: list[Any] = Field(description="texts, or objects in the form of a line for `elmo-tasks predict`")


class Answer(pydantic.BaseModel):
    """The results of an input, such as one for each sentence: the JSON lines that `elmo-tasks predict` prints."""

    results: list[dict[str, Any]]


class Problem(pydantic.BaseModel):
    """What is wrong."""

    error: str


class BatchAnswer(pydantic.BaseModel):
    """For each input, in their order, its results or what is wrong with it."""

    results: list[Answer | Problem]
