"""Who or what is meant, of raw or tokenized documents."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.predictors.fields import one_of, string_field, tokens_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.results import rounded
from elmo_tasks.tasks.coreference import GENRES
from elmo_tasks.text.tokenization import tokenize

CharacterSpan = tuple[int, int]  # end exclusive


class CoreferencePredictor(Predictor):
    """Finds the mentions in documents of any length, and which of them mean the same.

    An input is a document, in one of these forms:

    - `{"text": "..."}`, raw text that is split into sentences and tokens;
    - `{"sentences": [["...", ...], ...]}`, sentences that are tokenized already, with `"speakers"` where they are
      known: for each sentence a name, or a name for each of its tokens, `-` where nobody is known to speak;
    - `{"tokens": ["...", ...]}`, a document of one sentence.

    Each can have a `"genre"`, one of those of the run's data. Without one the genre is unknown, as are without speakers
    those of all tokens; what to do then is learned from training documents without speakers, or whose genre is hidden.
    There is one result for each document, none for a blank text:

    - `sentences`, the tokens; where they were given, the `genre` and the `speakers`, a name for each token;
    - `clusters`, each a list of mentions `[first token, last token]`, numbered in the document, ends inclusive;
    - `mentions`, all of them in the order of the text, each with its `cluster`, `start` and `end` (tokens, the end
      inclusive), `text`, `antecedent`, the number in this list of the mention that it was linked to, null where it is
      the first of its cluster, and `probability`, that of this choice;
    - `description`, the text with its mentions in brackets behind the numbers of their clusters:
      `[0 Orla] sold [1 [0 her] boat]. [1 It] sank.` Mentions never cross, so that brackets always match;
    - for raw text also `text` and where things are in it, in characters, ends exclusive: `offsets` of the tokens of
      each sentence, `start_char` and `end_char` of each mention.

    Raises (from `predict`):
        DataError: an input has none or several of text, sentences and tokens; a sentence has no token, or one that is
            no string; speakers do not fit the sentences; the genre is not known.
    """

    read_keys = frozenset({"text", "sentences", "tokens", "speakers", "genre"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        kind = one_of(fields, "text", "sentences", "tokens")
        if "speakers" in fields and kind != "sentences":
            raise ElmoTasksError(f"'speakers' are those of sentences; wanted 'sentences' beside them, not {kind!r}")
        example = self._document(fields, kind)
        if not example["sentences"]:
            return
        if fields.get("genre") is not None:
            genre = string_field(fields, "genre")
            self.vocabulary.label_id(GENRES, genre)  # refuses what it does not know
            example["genre"] = genre
        yield example

    def _document(self, fields: Fields, kind: str) -> dict[str, Any]:
        if kind == "tokens":
            return {"sentences": [tokens_field(fields, "tokens")]}
        if kind == "sentences":
            sentences = _sentences_field(fields)
            speakers = {"speakers": _speakers_field(fields, sentences)} if "speakers" in fields else {}
            return {"sentences": sentences, **speakers}
        text = string_field(fields, "text")
        located = tokenize(text)
        return {
            "text": text,
            "sentences": [[token.text for token in sentence] for sentence in located],
            "offsets": [[[token.start, token.end] for token in sentence] for sentence in located],
        }

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        text, offsets = _text_and_offsets(example)
        places = [(offsets[start][0], offsets[end][1]) for start, end in prediction["mentions"]]
        numbers = {
            tuple(mention): number for number, cluster in enumerate(prediction["clusters"]) for mention in cluster
        }
        clusters = [numbers[tuple(mention)] for mention in prediction["mentions"]]
        mentions = [
            {
                "cluster": clusters[row],
                "start": start,
                "end": end,
                **({"start_char": places[row][0], "end_char": places[row][1]} if "offsets" in example else {}),
                "text": text[slice(*places[row])],
                "antecedent": prediction["antecedents"][row],
                "probability": rounded(prediction["probabilities"][row]),
            }
            for row, (start, end) in enumerate(prediction["mentions"])
        ]
        description = marked_text(text, places, clusters)
        return {**example, "clusters": prediction["clusters"], "mentions": mentions, "description": description}


def marked_text(text: str, spans: Sequence[CharacterSpan], clusters: Sequence[int]) -> str:
    """The text with brackets around spans that do not cross, each behind the number of its cluster."""
    opened: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # (minus end, cluster) by start
    closed: defaultdict[int, int] = defaultdict(int)  # how many by end
    for (start, end), cluster in zip(spans, clusters, strict=True):
        opened[start].append((-end, cluster))
        closed[end] += 1
    parts = []
    places = sorted({0, len(text), *opened, *closed})
    for place, next_place in itertools.zip_longest(places, places[1:]):
        parts.append("]" * closed[place])
        parts += [f"[{cluster} " for _, cluster in sorted(opened[place])]  # the longest, so the outermost, first
        parts.append(text[place:next_place])
    return "".join(parts)


def _text_and_offsets(example: Fields) -> tuple[str, Sequence[Sequence[int]]]:
    """The text as given, or one with a sentence a line made of the tokens, and where its tokens are."""
    if "offsets" in example:
        return example["text"], list(itertools.chain(*example["offsets"]))
    text = "\n".join(" ".join(tokens) for tokens in example["sentences"])
    lengths = [len(token) for tokens in example["sentences"] for token in tokens]
    starts = itertools.accumulate(lengths[:-1], lambda start, length: start + length + 1, initial=0)
    return text, [[start, start + length] for start, length in zip(starts, lengths, strict=True)]


def _sentences_field(fields: Fields) -> list[list[str]]:
    sentences = fields["sentences"]
    if not isinstance(sentences, list) or not sentences:
        raise ElmoTasksError(f"'sentences' is {sentences!r}; wanted a list of at least one sentence")
    return [
        tokens_field({f"sentences[{number}]": tokens}, f"sentences[{number}]")
        for number, tokens in enumerate(sentences)
    ]


def _speakers_field(fields: Fields, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """A name for each token, where the input has one for each sentence or for each token."""
    given = fields["speakers"]
    if not isinstance(given, list) or len(given) != len(sentences):
        raise ElmoTasksError(
            f"'speakers' is {given!r}; wanted a list with as many items as there are sentences, {len(sentences)}"
        )
    speakers = []
    for number, (item, tokens) in enumerate(zip(given, sentences, strict=True)):
        names = [item] * len(tokens) if isinstance(item, str) else item
        if not isinstance(names, list) or len(names) != len(tokens) or not all(isinstance(name, str) for name in names):
            raise ElmoTasksError(
                f"'speakers[{number}]' is {item!r}; wanted a name, or one for each of {len(tokens)} tokens"
            )
        speakers.append(names)
    return speakers
