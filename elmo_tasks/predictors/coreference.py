"""The mentions in raw or tokenized documents, and which of them mean the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.predictors.fields import one_of, string_field, tokens_field
from elmo_tasks.predictors.predictor import Fields, Predictor, rounded
from elmo_tasks.rendering.drawing import nested_pieces
from elmo_tasks.rendering.tasks import located
from elmo_tasks.tasks.coreference import GENRES, token_speakers
from elmo_tasks.text.tokenizers import Tokenizer


class CoreferencePredictor(Predictor):
    """Finds the mentions in documents of any length, and which of them mean the same.

    An input is a document, in one of these forms:

    - `{"text": "..."}`, raw text that is split into sentences and tokens;
    - `{"sentences": [["...", ...], ...]}`, tokenized sentences, which may have `"speakers"`: for each sentence a name,
      or a name for each of its tokens; `-`, an empty name or null if the speaker is not known;
    - `{"tokens": ["...", ...]}`, a document of one sentence.

    Each can have a `"genre"`, one of those of the run's data. Otherwise genre or speakers are unknown; training
    documents without speakers or with a hidden genre teach the model to do without them. There is one result for each
    document, none for a blank text:

    - `sentences`, the tokens, and the `genre` and the `speakers` of the input, a name for each token;
    - `clusters`, each a list of mentions `[first token, last token]`, numbered in the document, ends inclusive, and
      their `cluster_probabilities`: the mean probability of the links in a cluster, its expected share of right links;
    - `mentions`, all of them in the order of the text, each with its `cluster`, `start` and `end` (tokens, the end
      inclusive), `text`, `antecedent`, the number in this list of the mention that it is linked to, null for the first
      of a cluster, and `probability`, that of any mention in this cluster before it as the antecedent, or of none;
    - `description`, the text with its mentions in brackets after the numbers of their clusters:
      `[0 Orla] sold [1 [0 her] boat]. [1 It] sank.` Mentions do not cross, except those of models from AllenNLP: of
      two that cross, only the first has brackets;
    - for raw text also `text` and positions in it, in characters, ends exclusive: `offsets` of the tokens of each
      sentence, `start_char` and `end_char` of each mention.

    Raises (from `predict`):
        DataError: an input has none or several of text, sentences and tokens; a sentence has no tokens, or one that is
            not a string; speakers do not fit the sentences; the genre is not known.
    """

    read_keys = frozenset({"text", "sentences", "tokens", "speakers", "genre"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        kind = one_of(fields, "text", "sentences", "tokens")
        if "speakers" in fields and kind != "sentences":
            raise ElmoTasksError(f"'speakers' are those of sentences; expected 'sentences' with them, not {kind!r}")
        example = _document(fields, kind, self.tokenizer)
        if not example["sentences"]:
            return
        if fields.get("genre") is not None:
            genre = string_field(fields, "genre")
            self.vocabulary.label_id(GENRES, genre)  # refuses unknown genres
            example["genre"] = genre
        yield example

    def input_of(self, example: Fields) -> dict[str, Any]:
        genre = {"genre": example["genre"]} if example["genre"] in self.vocabulary.labels[GENRES] else {}
        return {**{name: example[name] for name in ("document", "sentences", "speakers")}, **genre}

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        text, offsets = located(example)
        clusters = prediction["clusters"]
        numbers = {tuple(mention): number for number, cluster in enumerate(clusters) for mention in cluster}
        mentions, spans = [], []
        columns = (prediction[key] for key in ("mentions", "antecedents", "probabilities"))
        for (start, end), antecedent, probability in zip(*columns, strict=True):
            first, last = offsets[start][0], offsets[end][1]
            spans.append((first, last))
            mention = {
                "cluster": numbers[start, end],
                "start": start,
                "end": end,
                **({"start_char": first, "end_char": last} if "offsets" in example else {}),
                "text": text[first:last],
                "antecedent": antecedent,
                "probability": probability,
            }
            mentions.append(mention)
        description = marked_text(text, spans, [mention["cluster"] for mention in mentions])
        links: list[list[float]] = [[] for _ in clusters]
        for mention in mentions:
            if mention["antecedent"] is not None:
                links[mention["cluster"]].append(mention["probability"])
        shares = {"cluster_probabilities": [rounded(sum(each) / len(each)) for each in links]}
        return {**example, "clusters": clusters, **shares, "mentions": mentions, "description": description}


def marked_text(text: str, spans: Sequence[tuple[int, int]], clusters: Sequence[int]) -> str:
    """The text with brackets around spans (end exclusive), each after the number of its cluster."""
    brackets = {"open": "[{} ", "close": "]"}
    return "".join(
        piece.text if piece.kind == "text" else brackets[piece.kind].format(clusters[piece.span])
        for piece in nested_pieces(text, spans)
    )


def _document(fields: Fields, kind: str, tokenizer: Tokenizer) -> dict[str, Any]:
    if kind == "tokens":
        return {"sentences": [tokens_field(fields, "tokens")]}
    if kind == "sentences":
        given = fields["sentences"]
        if not isinstance(given, list) or not given:
            raise ElmoTasksError(f"'sentences' is {given!r}; expected a list of at least one sentence")
        named = {f"sentences[{number}]": tokens for number, tokens in enumerate(given)}
        document: dict[str, Any] = {"sentences": [tokens_field(named, key) for key in named]}
        if "speakers" in fields:
            document["speakers"] = token_speakers(fields["speakers"], document["sentences"], "speakers")
        return document
    text = string_field(fields, "text")
    located = tokenizer.tokenize(text)
    return {
        "text": text,
        "sentences": [[token.text for token in sentence] for sentence in located],
        "offsets": [[[token.start, token.end] for token in sentence] for sentence in located],
    }
