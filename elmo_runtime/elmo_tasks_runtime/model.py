"""An exported biLM or tagger: sentences in, vectors or tags out.

# B sentences, T tokens of the longest, U distinct words, V features of a word, L+1 layers, D features
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from elmo_tasks_runtime.rule_tokenizer import RuleTokenizer

_FORMAT = 1
_AHEAD = 256  # inputs that are read before the first is predicted, so that batches have little padding
_BATCH_TOKENS, _WORDS_AT_ONCE, _WORDS_KEPT = 2048, 128, 20_000
_UNKNOWN, _MOST_LETTERS = 1, 50
_BORDERS = {"<S>": 257, "</S>": 258}  # the tokens that are sentence borders, and the one character of each
_BEGIN, _END, _PADDING = 259, 260, 261  # further characters of the biLM; a byte b is b + 1

_LINE, _WORD = re.compile(r"[^\n]+"), re.compile(r"\S+")

Array = NDArray[Any]


class Model:
    """A biLM or a tagger.

    Arguments:
        folder: what `elmo-tasks export` has written.
        threads: how many onnxruntime uses.

    Attributes:
        about: the contents of its model.json.

    Raises:
        ValueError: the folder was written for another version of this package.
    """

    def __init__(self, folder: str | Path, threads: int = 1) -> None:
        self.about: dict[str, Any] = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
        if self.about.get("format") != _FORMAT:
            raise ValueError(f"{folder}: format {self.about.get('format')}; expected {_FORMAT}: export the model again")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        self._words, self._sentences = (
            onnxruntime.InferenceSession(str(Path(folder) / name), options, providers=["CPUExecutionProvider"])
            for name in ("words.onnx", "sentences.onnx")
        )
        rules = self.about["tokenizer"]
        self._tokenizer = RuleTokenizer(rules) if rules else None
        self._rows, self._letters = (
            {name: row for row, name in enumerate(self.about.get(key) or ()) if row > _UNKNOWN}
            for key in ("words", "letters")
        )
        self._vectors: dict[str, Array] = {}  # (V,), of words that have been read

    def predict(self, inputs: Iterable[str | Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yields what `elmo-tasks predict` writes: a result for each sentence, in their order.

        Arguments:
            inputs: texts, `{"text": "..."}` or `{"tokens": ["...", ...]}`. Other keys are carried over to the results.

        Raises:
            ValueError: an input is something else, or the model is a biLM.
        """
        if "tags" not in self.about:
            raise ValueError("the model is a biLM; expected a tagger")
        numbered = enumerate(inputs, start=1)
        while window := list(itertools.islice(numbered, _AHEAD)):
            examples = [each for number, given in window for each in self._examples(number, given)]
            outputs = dict(self._run([example["tokens"] for example in examples], "tags", "probabilities"))
            for row, example in enumerate(examples):
                tags, shares = outputs[row]
                chosen = np.minimum(np.take_along_axis(shares, tags[:, None], 1)[:, 0].astype(float), 1.0)
                example["tags"] = [self.about["tags"][tag] for tag in tags]
                example["probabilities"] = [round(share, 6) for share in chosen.tolist()]
                yield {**example, "spans": list(_spans(example))} if self.about["spans"] else example

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        """The biLM's layers (L+1, T, D) of each of several tokenized sentences; layer 0 is the token layer."""
        found = dict(self._run(sentences, "layers"))
        nothing = np.zeros((self.about["num_layers"], 0, self.about["features"]), np.float32)
        return [found[row][0] if row in found else nothing for row in range(len(sentences))]

    def tokenize(self, text: str) -> list[list[tuple[int, int]]]:
        """The (start, end) of the tokens of each sentence, in characters, ends exclusive."""
        if self._tokenizer:
            return list(self._tokenizer.spans(text))
        lines = ([match.span() for match in _WORD.finditer(text, *line.span())] for line in _LINE.finditer(text))
        return [spans for spans in lines if spans]

    def _examples(self, number: int, given: str | Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        fields = {"text": given} if isinstance(given, str) else given
        if not isinstance(fields, Mapping) or ("text" in fields) == ("tokens" in fields):
            raise ValueError(f"input {number} is {given!r:.80}; expected a text, or an object with 'text' or 'tokens'")
        text, tokens = fields.get("text", ""), fields.get("tokens", [""])
        is_list = isinstance(tokens, list) and tokens and all(isinstance(each, str) for each in tokens)
        if not isinstance(text, str) or not is_list or ("tokens" in fields and "" in tokens):
            raise ValueError(f"input {number} is {given!r:.80}; expected a string, or a list of tokens")
        carried = {key: value for key, value in fields.items() if key not in ("text", "tokens")}
        if "tokens" in fields:
            yield {**carried, "tokens": tokens}
        for spans in self.tokenize(text):
            start, end = spans[0][0], spans[-1][1]
            place = {"text": text[start:end], "start_char": start, "end_char": end}
            yield {**carried, **place, "tokens": [text[at:to] for at, to in spans], "offsets": list(map(list, spans))}

    def _run(self, sentences: Sequence[Sequence[str]], *names: str) -> Iterator[tuple[int, list[Array]]]:
        """Yields the number of each sentence that has tokens, and its outputs without padding."""
        rows = sorted((row for row, tokens in enumerate(sentences) if tokens), key=lambda row: len(sentences[row]))
        while rows:
            count = max(1, _BATCH_TOKENS // len(sentences[rows[-1]]))
            batch, rows = rows[-count:], rows[:-count]
            places = {token: place for place, token in enumerate(_BORDERS)}
            index = [[0, *(places.setdefault(each, len(places)) for each in sentences[row]), 1] for row in batch]
            lengths = np.array([len(sentences[row]) for row in batch], np.int64)
            feed = {"words": self._vectors_of(list(places)), "index": _padded(index, 0), "lengths": lengths}
            for row, length, *values in zip(batch, lengths, *self._sentences.run(names, feed), strict=True):
                yield row, [each[..., :length, :] if each.ndim > 2 else each[:length] for each in values]

    def _vectors_of(self, tokens: Sequence[str]) -> Array:
        """(U, V)"""
        if len(self._vectors) > _WORDS_KEPT:
            self._vectors.clear()
        new = sorted((token for token in tokens if token not in self._vectors), key=len)
        make = {"characters": self._characters, "rows": self._word_rows, "letters": self._word_letters}
        for start in range(0, len(new), _WORDS_AT_ONCE):
            part = new[start : start + _WORDS_AT_ONCE]
            (vectors,) = self._words.run(None, {each.name: make[each.name](part) for each in self._words.get_inputs()})
            self._vectors.update(zip(part, vectors, strict=True))
        return np.stack([self._vectors[token] for token in tokens])

    def _characters(self, tokens: Sequence[str]) -> Array:
        """The biLM's (U, C). Of the padding, as much is kept as its widest filter sees."""
        width = self.about["characters"]
        contents = [[each + 1 for each in token.encode("utf-8", "ignore")[: width - 2]] for token in tokens]
        ids = [
            [_BEGIN, *([_BORDERS[token]] if token in _BORDERS else content), _END]
            for token, content in zip(tokens, contents, strict=True)
        ]
        return _padded(ids, _PADDING, self.about["widest_filter"])[:, :width]

    def _word_rows(self, tokens: Sequence[str]) -> Array:
        keys = (token.lower() if self.about["lowercase_words"] else token for token in tokens)
        return np.array([self._rows.get(key, _UNKNOWN) for key in keys], np.int64)

    def _word_letters(self, tokens: Sequence[str]) -> Array:
        return _padded([[self._letters.get(each, _UNKNOWN) for each in token[:_MOST_LETTERS]] for token in tokens], 0)


def _padded(ids: Sequence[Sequence[int]], padding: int, more: int = 0) -> Array:
    width = max(map(len, ids)) + more
    return np.array([[*each, *[padding] * (width - len(each))] for each in ids], np.int64)


def _spans(example: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of tags of any scheme; a tag that does not continue the span before it begins another."""
    found: list[tuple[str, int, int]] = []
    is_open = False
    for place, tag in enumerate(example["tags"]):
        if is_open and tag[0] in "IMLE" and tag[2:] == found[-1][0]:
            found[-1] = (*found[-1][:2], place)
        elif tag != "O":
            found.append((tag[2:], place, place))
        is_open = tag[0] not in "OLEUS"
    for label, start, end in found:
        span = {"label": label, "start": start, "end": end}
        if "offsets" in example:
            first, last = example["offsets"][start][0], example["offsets"][end][1]
            text = example["text"][first - example["start_char"] : last - example["start_char"]]
            span |= {"start_char": first, "end_char": last, "text": text}
        else:
            span["text"] = " ".join(example["tokens"][start : end + 1])
        yield {**span, "probability": min(example["probabilities"][start : end + 1])}
