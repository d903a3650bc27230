"""The component `elmo` of spaCy pipelines: vectors of tokens from a frozen biLM, and entities from a trained tagger.

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"run": "runs/ner"})

spaCy finds it by the package's entry point. It is an extra: `pip install 'elmo-tasks[spacy]'`.

# T tokens of a document, D features of a token
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.util import minibatch

from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.elmo.fast import FastBiLM, load_frozen
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.vectors.embed import embed_sentences
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.cache import used_cache
from elmo_tasks.files.installed_models import model_named
from elmo_tasks.modules.devices import Device, torch_device
from elmo_tasks.predictors import Predictor
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.load import load_predictor, with_device

_BILM = "bilm"  # the folder where a saved component has its biLM
_FILES = ("run.tar.gz", "predicates.tar.gz", *(f"{_BILM}/{name}" for name in BiLMFiles.names))
_LOADED = ("_vectors", "_tagger", "predictor")  # cached properties


class SavedComponent:
    """A component with a run, or a biLM, or both, that are saved with the pipeline. Installed models are not.

    Arguments:
        run: the folder, the archive or the name of a run.
        bilm: the folder of a biLM; the one in the package is not saved.
        device: "auto" uses a GPU if there is one; "cpu"; or "cuda".
    """

    runs: tuple[str, ...] = ("run",)  # the attributes that name runs

    def __init__(self, run: str | None, bilm: str | None, device: Device) -> None:
        self.run = run
        self.bilm = bilm
        self.device = device

    def __getstate__(self) -> dict[str, Any]:
        """The settings: what is loaded is not pickled, but loaded again."""
        return {name: value for name, value in self.__dict__.items() if name not in _LOADED}

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Yields documents with what the component sets; the sentences of `batch_size` are computed together."""
        for docs in minibatch(stream, batch_size):
            self.annotate(docs)
            yield from docs

    def annotate(self, docs: list[Doc]) -> None:
        """Sets what the component is for."""
        raise NotImplementedError

    @functools.cached_property
    def predictor(self) -> Predictor:
        """The predictor of the run."""
        assert self.run is not None
        return load_predictor(self.run, overrides=with_device(self.device, ()))

    def _own_runs(self) -> list[tuple[str, str]]:
        """The runs that are not installed, with the names of their attributes."""
        named = [(name, getattr(self, name)) for name in self.runs]
        return [(name, run) for name, run in named if run is not None and not model_named(run)]

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Writes the runs, each with its biLM, as archives, and the files of the biLM, into a folder."""
        folder = Path(path)
        for name, run in self._own_runs():
            archive(run, folder / f"{name}.tar.gz")
        if self.bilm not in (None, DEFAULT_BILM):
            for name, source in BiLMFiles.in_folder(self.bilm).paths.items():
                with open(source, "rb") as content, atomic_write(folder / _BILM / name) as copy:
                    shutil.copyfileobj(content, copy)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> SavedComponent:
        """Uses what `to_disk` has written for a component with the same settings."""
        for name in _LOADED:
            self.__dict__.pop(name, None)
        for name, _ in self._own_runs():
            setattr(self, name, str(Path(path) / f"{name}.tar.gz"))
        if self.bilm not in (None, DEFAULT_BILM):
            self.bilm = str(Path(path) / _BILM)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of `to_disk`."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            paths = {name: Path(folder, name) for name in _FILES}
            return srsly.msgpack_dumps({name: path.read_bytes() for name, path in paths.items() if path.is_file()})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> SavedComponent:
        """As `from_disk`; the files are written into the cache."""
        folder, files = used_cache("archives") / hashlib.sha256(data).hexdigest(), srsly.msgpack_loads(data)
        if not folder.is_dir():
            with atomic_folder(folder) as temporary:
                (temporary / _BILM).mkdir()
                for name in files.keys() & set(_FILES):  # and no others: these names could be of any place
                    (temporary / name).write_bytes(files[name])
        return self.from_disk(folder)


class ElmoComponent(SavedComponent):
    """A component of a spaCy pipeline, which sets `doc.tensor`, `token.vector` and, with a run, `doc.ents`.

    The vectors, (T, D) float32, are those of the sentences that an earlier component has set; without one, a document
    is read as one sentence. `vector`, `has_vector` and `similarity` of tokens, spans and documents use them. White
    space has zeros. The entities take the place of those that the document has, or with `overwrite_ents=False` only
    fill what these leave free. Since other components write to `doc.tensor` too, this one should be the last.

    The biLM and the run are loaded when the first document comes. They are saved with the pipeline, the run with its
    biLM, except for the biLM of the vectors if it is the one in the package.

    Arguments:
        bilm: the folder of a biLM, `default` for the one in the package, or None for no vectors.
        layers: "mix", the mean of all layers; "top"; or one layer's number, "0" being the token layer.
        run: the folder or archive of a run that tags spans, such as `ner_conll03`; None for no entities.
        overwrite_ents: False keeps the document's entities, as those of an `entity_ruler`, and leaves out the run's
            that overlap with them.
        device: "auto" uses a GPU if there is one; "cpu"; or "cuda".

    Raises:
        ElmoTasksError: there is neither a biLM nor a run, or several layers are asked for. From documents: a setting
            is wrong, or files are missing or damaged, or the run does not tag spans.
    """

    def __init__(
        self,
        bilm: str | None = DEFAULT_BILM,
        *,
        layers: str = "mix",
        run: str | None = None,
        overwrite_ents: bool = True,
        device: Device = "auto",
    ) -> None:
        if bilm is None and run is None:
            raise ElmoTasksError("elmo: got neither a biLM nor a run; expected 'bilm' for vectors, 'run' for entities")
        if layers == "all":
            raise ElmoTasksError("elmo: got layers 'all'; expected one vector per token: mix, top or a layer's number")
        super().__init__(run, bilm, device)
        self.layers = layers
        self.overwrite_ents = overwrite_ents

    def annotate(self, docs: list[Doc]) -> None:
        sentences = [words for doc in docs for words in sentences_of(doc)]
        texts = [[word.text for word in words] for words in sentences]
        if self.bilm is not None:
            for doc in docs:
                doc.tensor = np.zeros((len(doc), self._vectors.output_size), np.float32)
                doc.user_token_hooks |= {"vector": _token_vector, "has_vector": _has_vector}
                doc.user_hooks["vector"] = doc.user_span_hooks["vector"] = _mean_vector
                for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
                    hooks["similarity"] = _similarity
            embedded = embed_sentences(texts, self._vectors, layers=self.layers)
            for words, vectors in zip(sentences, embedded, strict=True):
                words[0].doc.tensor[[word.i for word in words]] = vectors.cpu().numpy()
        if self.run is None:
            return
        entities: dict[Doc, list[Span]] = {doc: [] if self.overwrite_ents else list(doc.ents) for doc in docs}
        taken = {doc: {token.i for span in spans for token in span} for doc, spans in entities.items()}
        for words, result in zip(sentences, self._tagger([{"tokens": text} for text in texts]), strict=True):
            doc = words[0].doc
            for span in result["spans"]:
                first, last = words[span["start"]].i, words[span["end"]].i
                if taken[doc].isdisjoint(range(first, last + 1)):
                    entities[doc].append(Span(doc, first, last + 1, label=span["label"]))
        for doc, spans in entities.items():
            doc.set_ents(spans)

    @functools.cached_property
    def _vectors(self) -> FastBiLM:
        assert self.bilm is not None
        return load_frozen(BiLMFiles.in_folder(self.bilm), device=torch_device(self.device))

    @functools.cached_property
    def _tagger(self) -> Predictor:
        tagger = self.predictor
        if not getattr(tagger.task, "tag_scheme", None):
            raise ElmoTasksError(f"{self.run}: does not tag spans; expected a run such as that of `ner_conll03`")
        return tagger

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """What `nlp.evaluate` says of the entities, as for spaCy's `ner`; nothing without a run."""
        return get_ner_prf(examples) if self.run is not None else {}


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "token.vector", "doc.ents"],
    default_config={"bilm": DEFAULT_BILM, "layers": "mix", "run": None, "overwrite_ents": True, "device": "auto"},
)
def make_elmo(
    nlp: Language, name: str, bilm: str | None, layers: str, run: str | None, overwrite_ents: bool, device: Device
) -> ElmoComponent:
    """The component `elmo` of a pipeline; for its settings see `ElmoComponent`."""
    return ElmoComponent(bilm, layers=layers, run=run, overwrite_ents=overwrite_ents, device=device)


def sentences_of(doc: Doc) -> Iterator[list[Token]]:
    """The tokens of each sentence, without white space; of the document if nothing has set its sentences."""
    for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
        if words := [token for token in sentence if not token.is_space]:
            yield words


def _token_vector(token: Token) -> Any:
    return token.doc.tensor[token.i]


def _mean_vector(text: Doc | Span) -> Any:
    """The mean of the tokens' vectors; without tokens, zeros of the same length."""
    first = text.start if isinstance(text, Span) else 0
    return text.doc.tensor[first : first + len(text)].sum(axis=0) / max(1, len(text))


def _has_vector(token: Token) -> bool:
    return not token.is_space


def _similarity(one: Doc | Span | Token, other: Doc | Span | Token) -> float:
    """The cosine of two vectors; 0 if one is zero."""
    norm = float(one.vector_norm * other.vector_norm)
    return float(np.asarray(one.vector) @ np.asarray(other.vector)) / norm if norm else 0.0
