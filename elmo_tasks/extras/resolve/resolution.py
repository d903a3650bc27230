"""Texts in which each mention of something is replaced by its name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.installed_models import VERBS, model_named
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.rendering.tasks import located
from elmo_tasks.runs.load import load_predictor
from elmo_tasks.tasks import Coreference

FindTags = Callable[[list[list[str]]], list[list[str]]]
"""Tags the tokens of sentences with the Penn Treebank's parts of speech."""

_PRONOUNS = {
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "you", "your", "yours", "yourself",
    "yourselves", "he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself", "they", "them",
    "their", "theirs", "themselves", "this", "that", "these", "those", "who", "whom", "whose", "which", "oneself",
}  # fmt: skip
_POSSESSIVE = {"my", "your", "his", "its", "our", "their", "whose"}
_DETERMINERS = {"a", "an", "the", "this", "that", "these", "those", "some", *_POSSESSIVE, "her"}
_ENDINGS = ("\u2019s", "\u2019", "'s", "'")


def resolved_text(result: Fields, find_tags: FindTags | None = None) -> str:
    """The text of a coreference result, with each mention replaced by the name of its chain.

    The name is the first mention that is not a pronoun; a chain of pronouns stays as it is. Possessives stay
    possessives: "his boat" becomes "Tavo's boat". A mention within one that is replaced is gone with it. A name that
    begins a sentence with an article has a small letter elsewhere.

    Source: `coref_resolved` of AllenNLP 2.10. It takes the first mention also if it is a pronoun, writes "'s" after
    plurals, too, and leaves capitals as they are.

    Arguments:
        result: of `CoreferencePredictor`.
        find_tags: distinguishes "her boat" from "saw her"; without it, "her" is possessive if a letter or digit
            follows it.
    """
    text, offsets = located(result)
    sentences: Sequence[Sequence[str]] = result["sentences"]
    tokens = [token for sentence in sentences for token in sentence]
    starts = {0}  # of sentences
    for sentence in sentences:
        starts.add(max(starts) + len(sentence))
    tags = [tag for sentence in find_tags([*map(list, sentences)]) for tag in sentence] if find_tags else None
    changes: list[tuple[int, int, str]] = []  # from, to, in characters, and the new text
    for cluster in result["clusters"]:
        names = [(first, last) for first, last in cluster if first < last or tokens[first].lower() not in _PRONOUNS]
        if not names:
            continue
        first, last = names[0]
        name = text[offsets[first][0] : offsets[last][1]]
        for ending in _ENDINGS if len(tokens[last]) <= 2 else ():
            name = name.removesuffix(ending).rstrip()
        if first in starts and tokens[first].lower() in _DETERMINERS:
            name = name[0].lower() + name[1:]
        for start, end in cluster:
            if (start, end) != (first, last):
                new = name[0].upper() + name[1:] if start in starts else name
                begin, stop = offsets[start][0], offsets[end][1]
                if _is_possessive(tokens, tags, end):
                    new += "'" if new.endswith("s") else "'s"
                changes.append((begin, stop, new))
    pieces, position = [], 0
    for begin, stop, new in sorted(changes, key=lambda change: (change[0], -change[1])):
        if begin >= position:
            pieces += [text[position:begin], new]
            position = stop
    return "".join([*pieces, text[position:]])


@functools.cache
def tags_by_installed_model() -> FindTags | None:
    """A function that tags sentences with parts of speech; None if no such model is installed."""
    model = model_named(VERBS)
    if model is None:
        return None
    predictor = load_predictor(model.folder)
    return lambda sentences: [each["tags"] for each in predictor.predict({"tokens": tokens} for tokens in sentences)]


def adding_resolved(predictor: Predictor) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that adds the resolved text to a result; raises an `ElmoTasksError` if it is not of coreference."""
    if not isinstance(predictor.task, Coreference):
        raise ElmoTasksError(f"--resolve is for coreference; the model is a {type(predictor.model).__name__}")
    find_tags = tags_by_installed_model()
    return lambda result: {**result, "resolved": resolved_text(result, find_tags)}


def resolved_document(document: Any, clusters: Sequence[Sequence[Sequence[int]]]) -> str:
    """The same of a document of spaCy's with clusters of its tokens, the end inclusive, and its tags if it has any."""
    tokens = list(document)
    sentences = document.sents if document.has_annotation("SENT_START") else [document]
    result = {
        "text": document.text,
        "sentences": [[token.text for token in sentence] for sentence in sentences],
        "offsets": [[[token.idx, token.idx + len(token.text)] for token in tokens]],
        "clusters": clusters,
    }
    has_tags = any(token.tag_ for token in tokens)
    return resolved_text(result, (lambda _: [[token.tag_ for token in tokens]]) if has_tags else None)


def _is_possessive(tokens: Sequence[str], tags: Sequence[str] | None, last: int) -> bool:
    token = tokens[last].lower()
    if tags is not None:
        return tags[last] in ("PRP$", "WP$", "POS")
    if token == "her":
        return last + 1 < len(tokens) and tokens[last + 1][0].isalnum()
    return token in _POSSESSIVE or token in _ENDINGS
