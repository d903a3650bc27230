"""Estimators of scikit-learn: vectors of texts from a frozen biLM, a classifier of texts, and a tagger.

    from elmo_tasks.estimators import ElmoVectorizer

    make_pipeline(ElmoVectorizer(), LogisticRegression()).fit(texts, labels)

# N texts, D features of a text, K labels
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from elmo_tasks.config import Overrides, load_config, override_list
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.elmo.fast import FastBiLM, Precision, load_frozen
from elmo_tasks.errors import ArgumentError, ElmoTasksError, RunError
from elmo_tasks.extras.raw_text import tokenizer_of_bilm
from elmo_tasks.extras.vectors.embed import embed_sentences
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.modules.devices import Device, torch_device
from elmo_tasks.predictors import Predictor
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import load_predictor, with_device
from elmo_tasks.runs.train import train
from elmo_tasks.text.tag_schemes import OUTSIDE, TagScheme, convert_tags, detect_scheme, is_tag
from elmo_tasks.training.state import random_state as random_generators
from elmo_tasks.training.state import set_random_state as set_random_generators

_ROW = "row"  # a key of inputs, which results keep
_MISSING = ("None", "nan", "<NA>", "NaT")  # how labels that are missing are written; those of pandas equal nothing

Texts = Iterable[str | Sequence[str]]
"""Texts, each a string or a list of tokens: a list, an array of one dimension, or a column of a table."""


class _TextEstimator(BaseEstimator):
    """The base of all: its input is a column of texts, and what it has loaded is not pickled."""

    _loaded: Any = None  # the biLM or the predictor

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_loaded"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.no_validation = True  # X has no features to count, and no numbers to check
        return tags


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _TextEstimator):
    """The vector of each text from a frozen biLM, for pipelines of scikit-learn.

    `transform` takes texts or lists of tokens, and gives (N, D) float32. A text without tokens has zeros. A text is
    split into sentences as that of the biLM was, and the vectors of a sentence depend only on that sentence. Nothing is
    learned: `transform` works without `fit`, which only checks the settings. A pickle has no weights, only the name of
    the biLM.

    Arguments:
        bilm: the folder of a biLM, `default` for the one in the package.
        layers: "mix", the mean of all layers; "top"; one layer's number, "0" being the token layer; or "all", one after
            the other.
        pool: "mean" or "max" over the tokens of a text.
        precision: of the products; bfloat16 and int8 are less exact, and faster on processors with AVX-512 or AMX.
        device: "auto" uses a GPU if there is one; "cpu"; or "cuda".

    Raises (from `fit` and `transform`):
        WeightsError: the biLM's files are missing or damaged.
        ElmoTasksError: a setting is wrong.
        ArgumentError: the input is not one column of texts or lists of tokens; the first wrong row is named, from 0.
    """

    def __init__(
        self,
        bilm: str | Path = DEFAULT_BILM,
        *,
        layers: str = "mix",
        pool: Literal["mean", "max"] = "mean",
        precision: Precision = "float32",
        device: Device = "auto",
    ) -> None:
        self.bilm = bilm
        self.layers = layers
        self.pool = pool
        self.precision = precision
        self.device = device

    def fit(self, X: Texts, y: object = None) -> ElmoVectorizer:
        """Loads the biLM and checks the settings; reads neither texts nor labels."""
        self._bilm()
        return self

    def transform(self, X: Texts) -> NDArray[np.float32]:
        """The vectors of texts or lists of tokens, (N, D)."""
        bilm, tokenizer = self._bilm(), tokenizer_of_bilm(BiLMFiles.in_folder(self.bilm).options.parent)
        texts = [[row["tokens"]] if "tokens" in row else list(tokenizer.strings(row["text"])) for row in _rows(X)]
        sentences = [tokens for text in texts for tokens in text if tokens]
        embedded = embed_sentences(sentences, bilm, layers=self.layers, pool=self.pool)
        result = np.zeros((len(texts), self._n_features_out), np.float32)
        start = 0
        for row, text in enumerate(texts):
            lengths = [len(tokens) for tokens in text if tokens]
            if lengths:
                vectors = torch.stack(embedded[start : start + len(lengths)]).flatten(1).cpu().numpy()  # (sentences, D)
                is_mean = self.pool == "mean"
                result[row] = np.average(vectors, axis=0, weights=lengths) if is_mean else vectors.max(axis=0)
                start += len(lengths)
        return result

    @property
    def _n_features_out(self) -> int:
        """D, for `get_feature_names_out`."""
        bilm = self._bilm()
        return bilm.output_size * (bilm.num_layers if self.layers == "all" else 1)

    def _bilm(self) -> FastBiLM:
        """The biLM, which all estimators and models of this process share. Raises an error if a setting is wrong."""
        if self.pool not in ("mean", "max"):
            raise ElmoTasksError(f"pool: got {self.pool!r}; expected 'mean' or 'max'")
        bilm = load_frozen(BiLMFiles.in_folder(self.bilm), self.precision, torch_device(self.device))
        embed_sentences([], bilm, layers=self.layers)  # checks the layers
        self._loaded = bilm
        return bilm

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []  # float32, whatever the texts are
        return tags


class RunEstimator(_TextEstimator):
    """The base of `ElmoClassifier` and `ElmoTagger`, which train a run of elmo-tasks and predict with it.

    `fit` logs its progress with Python's `logging`, and leaves the global random numbers of Python, NumPy and torch as
    they were.

    Arguments:
        config: the name of a config in the package, the path of a Jsonnet or JSON file, or its values as a dict; None:
            `default_config`. Its data paths are not used.
        bilm: the folder of a biLM, or `default` for the one in the package; None: the config's.
        num_epochs: None: the config's.
        validation_share: the share of the examples that is held out to choose the best epoch, such as 0.2; None: all
            are learned from, and the last epoch is kept.
        random_state: the seed; None: the config's.
        overrides: other changes of the config, `{"model.dropout": 0.3}`.
        device: "auto" uses a GPU if there is one; "cpu"; or "cuda".

    Attributes:
        run_: the contents of the run's files by their names, which a pickle has. A frozen biLM is not among them: it
            must be where it was when the pickle is used.

    Raises (from `fit`):
        ConfigError: the config has problems; all are named.
        DataError: an example does not have what the config's task needs.
        ArgumentError: the input is not one column of texts or lists of tokens; the first wrong row is named, from 0.
        ValueError: a label is missing, which is named, from 0; or all texts have the same.
    """

    default_config: str

    def __init__(
        self,
        config: str | Path | Mapping[str, Any] | None = None,
        *,
        bilm: str | Path | None = None,
        num_epochs: int | None = None,
        validation_share: float | None = None,
        random_state: int | None = None,
        overrides: Overrides | None = None,
        device: Device = "auto",
    ) -> None:
        self.config = config
        self.bilm = bilm
        self.num_epochs = num_epochs
        self.validation_share = validation_share
        self.random_state = random_state
        self.overrides = overrides
        self.device = device

    def save_run(self, folder: str | Path) -> None:
        """Writes the run into a new folder, for `elmo-tasks predict`, `evaluate`, `serve` and the other commands.

        Raises:
            RunError: the folder exists.
        """
        check_is_fitted(self)
        if Path(folder).exists():
            raise RunError(f"{folder}: exists; expected the name of a new folder")
        with atomic_folder(folder) as temporary:
            self._write(temporary)

    def _write(self, folder: Path) -> None:
        for name, content in self.run_.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def _train(self, examples: Sequence[Mapping[str, Any]], **changes: Any) -> None:
        """Trains a run on examples in memory, with changes of the config before those of the arguments."""
        own = {
            "model.embedder.elmo.bilm": self.bilm,
            "trainer.num_epochs": self.num_epochs,
            "random_seed": self.random_state,
        }
        settings = {**changes, **{key: value for key, value in own.items() if value is not None}}
        settings |= {"validation_share": self.validation_share, "trainer.device": self.device, "trainer.trackers": []}
        settings["folds"] = None  # scikit-learn has cross-validations of its own
        if self.validation_share is None:
            settings["trainer.patience"] = None
        overrides = [*override_list(settings), *override_list(self.overrides or ())]
        data = {"train_data_path": examples, "validation_data_path": None, "test_data_path": None}
        earlier = random_generators()
        with tempfile.TemporaryDirectory() as folder:
            run = RunFolder(Path(folder) / "run")
            try:
                train(self.config or self.default_config, run.path, datasets=data, overrides=overrides)
            finally:
                set_random_generators(earlier)
            self.run_ = {name: path.read_bytes() for name, path in run.packed().items() if path.is_file()}
        self._loaded = None

    def _predictor(self) -> Predictor:
        """The predictor of the run, which is loaded when it is first used."""
        check_is_fitted(self)
        if self._loaded is None:
            with tempfile.TemporaryDirectory() as folder:
                self._write(Path(folder))
                self._loaded = load_predictor(folder, overrides=with_device(self.device, ()))
        return self._loaded

    def _results(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The predictor's result of each text; raises an error if a text has no tokens."""
        results = self._predictor()({**row, _ROW: number} for number, row in enumerate(rows))
        if blank := set(range(len(rows))) - {result[_ROW] for result in results}:
            raise ElmoTasksError(f"X[{min(blank)}] is {rows[min(blank)]}; expected a text with at least one token")
        return results


class ElmoClassifier(ClassifierMixin, RunEstimator):
    """A classifier of texts. For the arguments, attributes and errors see `RunEstimator`.

    By default it trains the model for small data, `small/classification`, which suits 40 to 5,000 texts.

    Attributes:
        classes_: the K labels, sorted.
    """

    default_config = "small/classification"

    def fit(self, X: Texts, y: ArrayLike) -> ElmoClassifier:
        """Trains on texts or lists of tokens and their labels, (N,)."""
        _check_labels(np.asarray(y, dtype=object).ravel(), "y")  # otherwise NumPy makes a text of NaN among texts
        check_classification_targets(y)
        labels, rows = column_or_1d(y, warn=True), _rows(X)
        check_consistent_length(rows, labels)
        if len(set(labels)) == 1:
            raise ValueError(f"y has only one class, {str(labels[0])!r}; expected at least two")
        self._train([{**row, "label": str(label)} for row, label in zip(rows, labels, strict=True)])
        self.classes_ = np.unique(labels)
        return self

    def predict(self, X: Texts) -> NDArray[Any]:
        """The most probable label of each text, (N,)."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Texts) -> NDArray[np.float64]:
        """The probability of each label, (N, K), in the order of `classes_`.

        Raises:
            ElmoTasksError: a text has no tokens; its row is named, from 0.
        """
        results = self._results(_rows(X))
        names = [str(label) for label in self.classes_]
        values = np.array([[result["probabilities"][name] for name in names] for result in results])
        values = values.reshape(len(results), len(names))
        return values / values.sum(axis=1, keepdims=True)  # results have rounded probabilities


class ElmoTagger(RunEstimator):
    """A tagger of tokenized sentences. For the arguments, attributes and errors see `RunEstimator`.

    By default it trains the model for small data, `small/tagging`. Tags are spans, such as B-PER, or plain, such as
    parts of speech: they are plain if none of them looks like B-PER.

    Attributes:
        tag_scheme_: the scheme of the tags that it was given, in which it predicts; None if they are not spans.
    """

    default_config = "small/tagging"
    tag_scheme_: TagScheme | None

    def fit(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[Any]]) -> ElmoTagger:
        """Trains on lists of tokens and lists of tags. The tags may have any scheme, or be numbers."""
        rows, given = _rows(X, only_tokens=True), [list(each) for each in y]
        for number, each in enumerate(given):
            _check_labels(each, f"y[{number}]")
        tags = [list(map(str, each)) for each in given]
        check_consistent_length(rows, tags)
        examples = [{**row, "tags": each} for row, each in zip(rows, tags, strict=True)]
        schemes = get_args(TagScheme)
        has_spans = any(tag != OUTSIDE and is_tag(tag, scheme) for each in tags for tag in each for scheme in schemes)
        changes: dict[str, Any] = {}
        if not has_spans:
            task = load_config(self.config or self.default_config, ExperimentConfig).model.task
            if getattr(task, "tag_scheme", None) is not None:
                changes = dict.fromkeys(("dataset_reader.tag_scheme", "model.tag_scheme"))
                changes["trainer.validation_metric"] = "+accuracy"
        self._train(examples, **changes)
        # Without a longer span, BIOES has the same tags as BMES; see `TagReader`.
        self.tag_scheme_ = next(filter(None, map(detect_scheme, tags)), "BIOES") if has_spans else None
        self._numbers = {str(tag): tag for each in given for tag in each if not isinstance(tag, str)}
        return self

    def predict(self, X: Iterable[Sequence[str]]) -> list[list[Any]]:
        """The tags of each sentence, as `fit` was given them.

        Raises:
            ElmoTasksError: a sentence has no tokens.
        """
        tags = [result["tags"] for result in self._results(_rows(X, only_tokens=True))]
        if self.tag_scheme_ and getattr(self._predictor().task, "tag_scheme", None):
            return [convert_tags(each, self.tag_scheme_) for each in tags]
        return [[self._numbers.get(tag, tag) for tag in each] for each in tags]

    def score(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[Any]]) -> float:
        """The F1 of spans, or the accuracy of tags that are not spans, from 0 to 1."""
        metric = self._predictor().task.build_metric()
        predicted, gold = ([{"tags": list(map(str, each))} for each in tags] for tags in (self.predict(X), y))
        metric.update(predicted, gold)
        return metric.compute()[metric.main] / 100


def _rows(X: Texts, *, only_tokens: bool = False) -> list[dict[str, Any]]:
    """The `text` or the `tokens` of each row; raises an `ArgumentError` if `X` is not a column of them."""
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        shape = f" of shape {X.shape}" if hasattr(X, "shape") else ""
        raise ArgumentError(
            f"got a {type(X).__name__}{shape}; expected a list or one column of texts or lists of tokens"
        )
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(X):
        if isinstance(row, str) and not only_tokens:
            rows.append({"text": str(row)})
        elif not isinstance(row, str) and isinstance(row, Iterable) and all(isinstance(token, str) for token in row):
            rows.append({"tokens": list(map(str, row))})
        else:
            expected = "a list of tokens" if only_tokens else "a text or a list of tokens"
            raise ArgumentError(f"X[{number}] is {row!r}; expected {expected}")
    return rows


def _check_labels(labels: Iterable[Any], name: str) -> None:
    """Raises a ValueError if a label is missing, as None or NaN of Python, NumPy or pandas."""
    for number, label in enumerate(labels):
        if not isinstance(label, str) and str(label) in _MISSING:
            raise ValueError(f"{name}[{number}] is {label!r}; expected a label; leave out texts without one")
