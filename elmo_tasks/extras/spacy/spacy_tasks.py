"""The components `elmo_roles` and `elmo_coref` of spaCy pipelines: semantic roles and coreference.

    nlp = spacy.load("en_core_web_sm")
    nlp.add_pipe("elmo_roles")
    nlp.add_pipe("elmo_coref")

They read the tokens and sentences of the pipeline.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.resolve.resolution import resolved_text, tags_by_installed_model
from elmo_tasks.extras.spacy.spacy_component import SavedComponent, sentences_of
from elmo_tasks.modules.devices import Device
from elmo_tasks.predictors import Predictor
from elmo_tasks.runs.load import load_predictor, with_device
from elmo_tasks.tasks import Coreference, SemanticRoles, Task

# Keys of a document's user data
_ROLES, _RESOLVED, _CHAINS = "elmo_roles", "elmo_resolved_text", "elmo_coref_clusters"
_CLUSTERS = "coref_clusters_"  # the beginning of the names of groups of spans, as spaCy's own component has it


class Frame(NamedTuple):
    """A predicate and its roles."""

    predicate: Token
    roles: list[Span]  # the label of each is the role, such as ARG0


class RolesComponent(SavedComponent):
    """Sets `doc._.roles`, a list of `Frame`s in the order of the text.

    Arguments:
        run: the folder, the archive or the name of a run of semantic roles.
        predicates: that of a tagger that finds the predicates; with `pos`, an installed model, they are all verbs.
        device: "auto" uses a GPU if there is one; "cpu"; or "cuda".
    """

    runs = ("run", "predicates")

    def __init__(self, run: str = "roles", predicates: str = "predicates", device: Device = "auto") -> None:
        super().__init__(run, None, device)
        self.predicates = predicates
        if not Doc.has_extension("roles"):  # that of others stays
            Doc.set_extension("roles", getter=_frames)

    @functools.cached_property
    def predictor(self) -> Predictor:
        overrides = with_device(self.device, ())
        tagger = load_predictor(self.predicates, overrides=overrides)
        return load_predictor(str(self.run), overrides=overrides, predicates=tagger)

    def annotate(self, docs: list[Doc]) -> None:
        sentences = [words for doc in docs for words in sentences_of(doc)]
        for doc in docs:
            doc.user_data[_ROLES] = []
        predictor = _for_task(self.predictor, SemanticRoles, self.run)
        results = predictor([{"tokens": [word.text for word in words]} for words in sentences])
        for words, result in zip(sentences, results, strict=True):
            for frame in result["frames"]:
                roles = [[role["role"], *_place(words, role["start"], role["end"])] for role in frame["roles"]]
                predicate = _place(words, frame["predicate"], frame["predicate"])
                words[0].doc.user_data[_ROLES].append([predicate, roles])


class CorefComponent(SavedComponent):
    """Sets `doc.spans["coref_clusters_1"]`, `doc.spans["coref_clusters_2"]`, ..., and `doc._.resolved_text`.

    A group has the mentions of a chain in the order of the text. `doc._.coref_clusters` has them too, and stays right
    if tokens are merged or split, unlike the groups. In the resolved text, each of them is replaced by the first name
    of its chain; see `resolved_text`. The tags of an earlier component tell possessives, or else the installed model
    `pos`.

    Arguments:
        run: the folder, the archive or the name of a run of coreference.
        device: "auto" uses a GPU if there is one; "cpu"; or "cuda".
    """

    def __init__(self, run: str = "coreference", device: Device = "auto") -> None:
        super().__init__(run, None, device)
        if not Doc.has_extension("resolved_text"):
            Doc.set_extension("resolved_text", getter=lambda doc: doc.user_data.get(_RESOLVED, doc.text))
        if not Doc.has_extension("coref_clusters"):
            Doc.set_extension("coref_clusters", getter=_chains)

    def annotate(self, docs: list[Doc]) -> None:
        documents = [(doc, list(sentences_of(doc))) for doc in docs]
        read = [(doc, sentences) for doc, sentences in documents if sentences]
        predictor = _for_task(self.predictor, Coreference, self.run)
        results = predictor([{"sentences": [[word.text for word in words] for words in each]} for _, each in read])
        for (doc, sentences), result in zip(read, results, strict=True):
            words = [word for sentence in sentences for word in sentence]
            chains = [[_place(words, first, last) for first, last in cluster] for cluster in result["clusters"]]
            doc.user_data[_CHAINS] = chains
            for number, spans in enumerate(_chains(doc), start=1):
                doc.spans[f"{_CLUSTERS}{number}"] = spans
            located = [[[word.idx, word.idx + len(word.text)] for word in words]]
            tags = [[word.tag_ for word in sentence] for sentence in sentences]
            find_tags = (lambda _, tags=tags: tags) if doc.has_annotation("TAG") else tags_by_installed_model()
            doc.user_data[_RESOLVED] = resolved_text({**result, "text": doc.text, "offsets": located}, find_tags)


def _for_task(predictor: Predictor, task: type[Task], run: str | None) -> Predictor:
    if not isinstance(predictor.task, task):
        raise ElmoTasksError(f"{run}: is a run of {predictor.task.name}; expected one of {task.name}")
    return predictor


def _place(words: list[Token], first: int, last: int) -> list[int]:
    """The characters of words, which stay the same when tokens are merged or split."""
    return [words[first].idx, words[last].idx + len(words[last])]


def _span(doc: Doc, start: int, end: int, label: str = "") -> Span:
    """The tokens that have these characters."""
    return doc.char_span(start, end, label=label, alignment_mode="expand")


def _frames(doc: Doc) -> list[Frame]:
    return [
        Frame(_span(doc, *predicate)[0], [_span(doc, start, end, label) for label, start, end in roles])
        for predicate, roles in doc.user_data.get(_ROLES, ())
    ]


def _chains(doc: Doc) -> list[list[Span]]:
    return [[_span(doc, *place) for place in chain] for chain in doc.user_data.get(_CHAINS, ())]


@Language.factory(
    "elmo_roles", assigns=["doc._.roles"], default_config={"run": "roles", "predicates": "predicates", "device": "auto"}
)
def make_roles(nlp: Language, name: str, run: str, predicates: str, device: Device) -> RolesComponent:
    """The component `elmo_roles` of a pipeline; for its settings see `RolesComponent`."""
    return RolesComponent(run, predicates, device)


@Language.factory(
    "elmo_coref",
    assigns=["doc.spans", "doc._.coref_clusters", "doc._.resolved_text"],
    default_config={"run": "coreference", "device": "auto"},
)
def make_coref(nlp: Language, name: str, run: str, device: Device) -> CorefComponent:
    """The component `elmo_coref` of a pipeline; for its settings see `CorefComponent`."""
    return CorefComponent(run, device)
