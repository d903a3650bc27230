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
from elmo_tasks.text.tokenizers import TREEBANK

FindTags = Callable[[list[list[str]]], list[list[str]]]
"""Tags the tokens of sentences with the Penn Treebank's parts of speech."""

_PRONOUNS = {
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "you", "your", "yours", "yourself",
    "yourselves", "he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself", "they", "them",
    "their", "theirs", "themselves", "this", "that", "these", "those", "who", "whom", "whose", "which", "oneself",
}  # fmt: skip
_POSSESSIVE = {"my", "your", "his", "its", "our", "their", "whose"}
_ABSOLUTE = {"mine", "yours", "hers", "ours", "theirs"}
_DETERMINERS = {"a", "an", "the", "this", "that", "these", "those", "some", *_POSSESSIVE, "her"}
_TITLES = {"Excellency", "Grace", "Highness", "Holiness", "Honor", "Honour", "Ladyship", "Lordship", "Majesty"}
_ENDINGS = ("\u2019s", "\u2019", "'s", "'")


def resolved_text(result: Fields, find_tags: FindTags | None = None) -> str:
    """The text of a coreference result, with each mention replaced by the name of its chain.

    The name is the first mention that is not a pronoun; a chain of pronouns stays as it is. Possessives stay
    possessives: "his boat" becomes "Tavo's boat"; "Her Majesty" stays. A mention within one that is replaced is gone
    with it, and one that overlaps the name stays. A name that begins a sentence with an article has a small letter
    elsewhere.

    Source: `coref_resolved` of AllenNLP 2.10. It takes the first mention also if it is a pronoun, writes "'s" after
    plurals, too, and leaves capitals as they are.

    Arguments:
        result: of `CoreferencePredictor`.
        find_tags: distinguishes "her boat" from "saw her"; without it, "her" is possessive if a word follows it in its
            sentence, but not a capital in the next line.
    """
    text, offsets = located(result)
    sentences: Sequence[Sequence[str]] = result["sentences"]
    tokens = [token for sentence in sentences for token in sentence]
    starts = {0}  # of sentences
    for sentence in sentences:
        starts.add(max(starts) + len(sentence))
    tags = [tag for sentence in find_tags([*map(list, sentences)]) for tag in sentence] if find_tags else None

    def is_possessive(first: int, last: int) -> bool:
        token = tokens[last].lower()
        if token in _ENDINGS or (token == "her" and tags is not None):
            return tags is None or tags[last] in ("PRP$", "POS")
        if token == "her" and last + 1 not in starts:
            next_line = "\n" in text[offsets[last][1] : offsets[last + 1][0]]
            return tokens[last + 1][0].isalnum() and not (next_line and tokens[last + 1][0].isupper())
        return token in _POSSESSIVE or (first == last and token in _ABSOLUTE)

    changes: list[tuple[int, int, str]] = []  # from, to, in characters, and the new text
    for cluster in result["clusters"]:
        names = [(first, last) for first, last in cluster if first < last or tokens[first].lower() not in _PRONOUNS]
        if not names:
            continue
        first, last = names[0]
        name = text[offsets[first][0] : offsets[last][1]]
        for ending in _ENDINGS if len(tokens[last]) <= 2 else ():
            name = name.removesuffix(ending).rstrip()
        if first in starts and tokens[first].lower() in _DETERMINERS and not _is_title(tokens, first):
            name = name[0].lower() + name[1:]
        for start, end in cluster:
            if (end < first or start > last) and not (start == end and _is_title(tokens, start)):
                new = name[0].upper() + name[1:] if start in starts else name
                begin, stop = offsets[start][0], offsets[end][1]
                if is_possessive(start, end):
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


def resolved_document(
    document: Any, clusters: Sequence[Sequence[Sequence[int]]], tokens: Sequence[str] | None = None
) -> str:
    """The same of a document of spaCy's with clusters of tokens, the end inclusive.

    Arguments:
        tokens: what the clusters count; not needed if the document has the same ones as a result of coreference.

    Raises:
        ElmoTasksError: it is needed, or the tokens are not in the document.
    """
    from spacy.training import Alignment

    if not clusters:
        return str(document.text)
    own, words = [token.text for token in document], [token for token in document if not token.is_space]
    read = 1 + max(last for cluster in clusters for _, last in cluster)  # how many tokens these count
    if tokens is None and own[:read] != [token.text for token in TREEBANK.words(document.text)][:read]:
        expected = "tokens=result['document'], or tokens=[token.text for token in document] if the clusters count these"
        raise ElmoTasksError(f"the document has other tokens than a result of coreference; expected {expected}")
    try:
        aligned = Alignment.from_strings(list(own if tokens is None else tokens), [word.text for word in words]).x2y
        spans = [[(int(aligned[first][0]), int(aligned[last][-1])) for first, last in each] for each in clusters]
    except (ValueError, IndexError):
        raise ElmoTasksError("the tokens that the clusters count are not those of the document") from None
    sentences = document.sents if document.has_annotation("SENT_START") else [document]
    result = {
        "text": document.text,
        "sentences": [*filter(None, ([word.text for word in each if not word.is_space] for each in sentences))],
        "offsets": [[[word.idx, word.idx + len(word)] for word in words]],
        "clusters": spans,
    }
    tags = [[word.tag_ for word in words]]
    return resolved_text(result, (lambda _: tags) if any(tags[0]) else tags_by_installed_model())


def _is_title(tokens: Sequence[str], first: int) -> bool:
    """Whether these tokens are as in "Her Majesty"."""
    return tokens[first].lower() in (*_POSSESSIVE, "her") and not _TITLES.isdisjoint(tokens[first + 1 : first + 2])
