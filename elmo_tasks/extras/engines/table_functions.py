"""Vectors and predictions from Arrow table to Arrow table, for any engine that applies a function to tables.

An object of `Embed` or `Predict` can be pickled. It loads its model in the process that first calls it, and keeps it.

The input has a column `text`, `tokens` (lists of strings) or `json` (an object on a line); for `Predict`, the keys of
the task may also be columns. `source` and `line` are carried over. `id` is that of the input, or else source and line.
A row with an `error` is not computed.

# D features, K layers that are kept
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import torch
from pydantic_core import to_jsonable_python

from elmo_tasks.config import Overrides, override_list
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.elmo.embedder import text_checks
from elmo_tasks.elmo.fast import FastBiLM, Precision, load_frozen
from elmo_tasks.errors import DataError, ElmoTasksError, check_argument, check_choice, check_count
from elmo_tasks.extras.raw_text import tokenizer_of_bilm
from elmo_tasks.extras.vectors.embed import Pooling, embed_sentences, shape_of_layers
from elmo_tasks.files.cache import content_hash
from elmo_tasks.files.json_files import json_text, parse_json, read_json
from elmo_tasks.modules.devices import Device
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Predictor
from elmo_tasks.predictors.classifier import ClassifierPredictor, InferencePredictor
from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.predictors.fields import sentence_examples
from elmo_tasks.predictors.predictor import Fields
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import RunPaths, load_predictor, predicates_for, run_paths, with_device
from elmo_tasks.text.tokenizer_config import parse_tokenizer
from elmo_tasks.text.tokenizers import Tokenizer

_CARRIED = ("source", "line")
_OWN = (*_CARRIED, "json", "error")
_OFFSETS = pa.list_(pa.list_(pa.int32(), 2))

_WORDS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.float64())
_MATRIX = pa.list_(_NUMBERS)
_PAIRS = pa.list_(pa.list_(pa.int64(), 2))
_BY_LABEL = pa.map_(pa.string(), pa.float64())
_RANGE = {"start_char": pa.int64(), "end_char": pa.int64()}
_ENDS = {"start": pa.int64(), "end": pa.int64(), **_RANGE, "text": pa.string(), "probability": pa.float64()}
_SENTENCE = {"text": pa.string(), **_RANGE, "tokens": _WORDS, "offsets": _PAIRS}
_ANSWER = {
    "answer": pa.string(), "probability": pa.float64(), "start": pa.int64(), "end": pa.int64(), **_RANGE
}  # fmt: skip
_LABEL = {"label": pa.string(), "score": pa.float64(), "probabilities": _BY_LABEL}
_FRAME = pa.struct(
    {"predicate": pa.int64(), "predicate_text": pa.string(), "probability": pa.float64(), "tags": _WORDS}
    | {"roles": pa.list_(pa.struct({"role": pa.string(), **_ENDS})), "description": pa.string()}
)
RESULT_TYPES: Mapping[type[Predictor], Mapping[str, pa.DataType]] = {
    ClassifierPredictor: {"text": pa.string(), "tokens": _WORDS, "offsets": _PAIRS, "label": pa.string()}
    | {"labels": _WORDS, "score": pa.float64(), "probabilities": _BY_LABEL, "attention": _NUMBERS},
    InferencePredictor: {"premise_tokens": _WORDS, "hypothesis_tokens": _WORDS, **_LABEL}
    | {"premise_attention": _MATRIX, "hypothesis_attention": _MATRIX},
    CoreferencePredictor: {"text": pa.string(), "sentences": pa.list_(_WORDS), "offsets": pa.list_(_PAIRS)}
    | {"clusters": pa.list_(_PAIRS), "cluster_probabilities": _NUMBERS}
    | {"mentions": pa.list_(pa.struct({"cluster": pa.int64(), "antecedent": pa.int64(), **_ENDS}))}
    | {"description": pa.string()},
    ReadingPredictor: {"question": pa.string(), "passage": pa.string(), **_ANSWER}
    | {"best": pa.list_(pa.struct(_ANSWER)), "best_answer": pa.string()}
    | {"no_answer_score": pa.float64(), "no_answer_probability": pa.float64()},
    SemanticRolesPredictor: {**_SENTENCE, "frames": pa.list_(_FRAME)},
    TaggerPredictor: {**_SENTENCE, "tags": _WORDS, "probabilities": _NUMBERS}
    | {"spans": pa.list_(pa.struct({"label": pa.string(), **_ENDS}))},
}
"""The types of the keys of results. Other predictors have their own `result_types`."""

Result = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFunction(abc.ABC):
    """A function of tables that loads its model at the first call, and again after it was pickled.

    Arguments:
        on_error: "fail" raises the first error of a row; "record" writes it into the column `error`, which also says
            that a text is blank.
    """

    on_error: Literal["fail", "record"] = "fail"

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, ("fail", "record"))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    @abc.abstractmethod
    def result_types(self) -> Mapping[str, pa.DataType]:
        """The types of the columns that it adds."""

    @abc.abstractmethod
    def settings(self) -> dict[str, Any]:
        """What decides about the results, as values for JSON: the model by its hash, not by its path."""

    @abc.abstractmethod
    def compute(self, inputs: Mapping[int, Fields]) -> Iterator[tuple[int, Result]]:
        """Yields the results of inputs, each with the number of its input; `{"error": why}` if it is not usable."""

    def schema(self, table: pa.Schema) -> pa.Schema:
        """The schema of the results of a table with this schema."""
        carried = [table.field(name) for name in _CARRIED if name in table.names]
        return pa.schema([("id", pa.string()), *carried, *self.result_types.items(), ("error", pa.string())])

    def __call__(self, table: pa.Table) -> pa.Table:
        """The results of a table's rows, in their order. A row has at least one, and may have several.

        Raises:
            ElmoTasksError: a row is not usable, and `on_error` is "fail".
        """
        check_argument("table", table, (pa.Table, pa.RecordBatch), "a table of pyarrow")
        rows = table.to_pylist()
        inputs, results, errors = dict[int, Fields](), list[tuple[int, Result]](), dict[int, ElmoTasksError]()
        for row, values in enumerate(rows):
            try:
                inputs[row] = _fields(values, *_location(row, values))
            except ElmoTasksError as error:
                errors[row] = error

        def fail(row: int, problem: str) -> None:
            source, line = _location(row, rows[row])
            nulls = [repr(key) for key, value in rows[row].items() if value is None and key not in _OWN]
            if nulls and problem.startswith("the keys are"):
                problem += f"; null: {', '.join(nulls)}"
            errors[row] = DataError(source, problem, line)

        for row, result in self.compute(inputs):
            if result.keys() == {"error"}:
                fail(row, result["error"])
            else:
                results.append((row, result))
        if errors and self.on_error == "fail":
            raise errors[min(errors)]
        for row in inputs.keys() - errors.keys() - {row for row, _ in results}:
            fail(row, "a blank text, which has no results")
        results += [(row, {"error": str(error)}) for row, error in errors.items()]
        results.sort(key=lambda each: each[0])
        for row, result in results:
            source, line = _location(row, rows[row])
            given = inputs.get(row, rows[row]).get("id")
            result["id"] = f"{source}:{line}" if given is None else str(given)
            result |= {name: rows[row].get(name) for name in _CARRIED}
        values = [{name: _nested(value) for name, value in result.items()} for _, result in results]
        return pa.Table.from_pylist(values, self.schema(table.schema))


def _location(row: int, values: Mapping[str, Any]) -> tuple[str, int]:
    """The file and line of a row, as far as the table says it."""
    return str(values.get("source") or "table"), values.get("line") or row + 1


def _fields(values: Mapping[str, Any], source: str, line: int) -> Fields:
    """The input of a row; raises `ElmoTasksError` if it is not usable."""
    if error := values.get("error"):
        raise ElmoTasksError(error)
    if (text := values.get("json")) is None:
        return {key: value for key, value in values.items() if key not in _CARRIED and value is not None}
    value = parse_json(text, source, "a JSON object on each line", line)
    if not isinstance(value, dict):
        raise DataError(source, f"a JSON {type(value).__name__}; expected a JSON object on each line", line)
    return value


def _nested(value: Any) -> Any:
    """A value as Arrow takes it: an array (..., D) as lists of vectors, which are converted at once."""
    return [_nested(each) for each in value] if isinstance(value, np.ndarray) and value.ndim > 1 else value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Embed(TableFunction):
    """The vectors of each sentence of each row, from a frozen biLM.

    Its results are `sentence` (its number in the row, from 0), `tokens`, `offsets` (of the tokens in a `text`, in
    characters, ends exclusive) and `vectors`: lists of one vector for each token, or one vector if tokens are pooled. A
    vector is a fixed-size list of D numbers, or with `layers="all"` one of K such lists.

    Arguments:
        bilm: the folder of a biLM, or `default`; or its two files.
        layers: "mix", the mean of all; "all"; "top"; or one layer's number, "0" being the token layer.
        pool: what is kept of a sentence's tokens: "none" keeps each, "mean" and "max" make one vector of them.
        number_type: of the vectors.
        precision: of the products, see `elmo_tasks.embed`.
        tokenizer: splits `text`, see `elmo_tasks.tokenize`; by default as the text of the biLM was split.
        batch_tokens: the most tokens of a batch; a longer sentence is a batch of its own.
        device: where the biLM computes.
    """

    bilm: str | Path | BiLMFiles = DEFAULT_BILM
    layers: str = "mix"
    pool: Pooling = "none"
    number_type: Literal["float16", "float32"] = "float16"
    precision: Precision = "float32"
    tokenizer: str | None = None
    batch_tokens: int = 4096
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("number_type", self.number_type, ("float16", "float32"))
        check_choice("pool", self.pool, get_args(Pooling))
        check_choice("precision", self.precision, get_args(Precision))
        check_count("batch_tokens", self.batch_tokens, 1)

    @functools.cached_property
    def _files(self) -> BiLMFiles:
        return self.bilm if isinstance(self.bilm, BiLMFiles) else BiLMFiles.in_folder(self.bilm)

    @functools.cached_property
    def _bilm(self) -> FastBiLM:
        return load_frozen(self._files, self.precision, torch.device(self.device))

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        if self.tokenizer:
            return parse_tokenizer(self.tokenizer)
        return tokenizer_of_bilm(self._files.options.parent)

    def settings(self) -> dict[str, Any]:
        return {
            "bilm": self._files.fingerprint(),
            "tokenizer": self._tokenizer.version,
            **{key: getattr(self, key) for key in ("layers", "pool", "number_type", "precision", "batch_tokens")},
        }

    @functools.cached_property
    def result_types(self) -> Mapping[str, pa.DataType]:
        vector: pa.DataType = pa.from_numpy_dtype(self.number_type)
        for size in reversed(shape_of_layers(self._bilm, self.layers)):
            vector = pa.list_(vector, size)
        vectors = pa.list_(vector) if self.pool == "none" else vector
        return {"sentence": pa.int32(), "tokens": pa.list_(pa.string()), "offsets": _OFFSETS, "vectors": vectors}

    def compute(self, inputs: Mapping[int, Fields]) -> Iterator[tuple[int, Result]]:
        found: list[tuple[int, Result]] = []
        for row, fields in inputs.items():
            try:
                examples = list(sentence_examples(fields, self._tokenizer))
                found += [(row, {"sentence": number, **example}) for number, example in enumerate(examples)]
            except ElmoTasksError as error:
                yield row, {"error": str(error)}
        for check in text_checks(self._files):
            check.see([result["tokens"] for _, result in found])
        vectors = embed_sentences(
            [result["tokens"] for _, result in found],
            self._bilm,
            layers=self.layers,
            pool=self.pool,
            max_tokens=self.batch_tokens,
        )
        for (row, result), each in zip(found, vectors, strict=True):
            tokens_first = each.transpose(0, 1) if self.layers == "all" and self.pool == "none" else each
            yield row, result | {"vectors": tokens_first.cpu().numpy().astype(self.number_type)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predict(TableFunction):
    """The results of a trained run for each row, as `elmo-tasks predict` gives them.

    Their keys are columns; see `RESULT_TYPES`. `other` has the keys of the input that are carried over, and
    those of a predictor without such types, as JSON. `saliency` is JSON, too.

    Arguments:
        run: the folder or the archive of a run, or of several, which are an ensemble.
        predicates: for semantic roles, the run of a tagger that finds the predicates; by default, that of an installed
            model, see `predicates_for`.
        explain: adds the column `saliency`, see `Predictor.explain`.
        device: as for `elmo_tasks.load`.
        batch_tokens: the same.
        overrides: the same.
    """

    run: RunPaths
    predicates: str | Path | None = None
    explain: bool = False
    device: Device | None = None
    batch_tokens: int = DEFAULT_BATCH_TOKENS
    overrides: Overrides = ()

    @functools.cached_property
    def _predictor(self) -> Predictor:
        predicates: Predict | None = None
        if tagger := self.predicates or predicates_for(self.run):
            predicates = dataclasses.replace(self, run=tagger, predicates=None, overrides=())
        configs = [read_json(each.config, dict[str, Any], "a config") for each in _folders(self.run)]
        embedders = [config["model"]["embedder"] for config in configs]
        frozen = [name for name in ("elmo", "transformer") if all(each.get(name) for each in embedders)]
        uncached = [f"model.embedder.{name}.layer_cache=null" for name in frozen]  # each sentence comes only once
        return load_predictor(
            self.run,
            overrides=with_device(self.device, [*uncached, *override_list(self.overrides)]),
            batch_tokens=self.batch_tokens,
            predicates=predicates._predictor if predicates else None,
        )

    def settings(self) -> dict[str, Any]:
        tagger = self.predicates or predicates_for(self.run)
        predicates = open_run(tagger) if tagger else None
        runs = _folders(self.run)
        files = [file for each in runs for file in (each.config, each.vocabulary, each.model, each.calibration)]
        return {
            "run": [content_hash(file) for file in files if file.is_file()],
            "predicates": content_hash(predicates.model) if predicates else None,
            "explain": "integrated" if self.explain else None,
            "overrides": override_list(self.overrides),
            "batch_tokens": self.batch_tokens,
        }

    @functools.cached_property
    def result_types(self) -> Mapping[str, pa.DataType]:
        saliency = {"saliency": pa.string()} if self.explain else {}
        return {**self._own_types, **saliency, "other": pa.string()}

    @functools.cached_property
    def _own_types(self) -> Mapping[str, pa.DataType]:
        """The types of what the predictor finds."""
        kinds = type(self._predictor).__mro__
        return self._predictor.result_types or next((RESULT_TYPES[kind] for kind in kinds if kind in RESULT_TYPES), {})

    def compute(self, inputs: Mapping[int, Fields]) -> Iterator[tuple[int, Result]]:
        types = self._own_types
        found = self._predictor.each(list(inputs.values()), explain=self.explain)
        for row, result in ((row, result) for row, results in zip(inputs, found, strict=True) for result in results):
            if result.keys() == {"error"}:
                yield row, result
                continue
            own = {key: value for key, value in result.items() if key in types}
            if self.explain:
                own["saliency"] = json_text(result.pop("saliency"))
            other = {key: value for key, value in result.items() if key not in {"id", *types}}
            plain = to_jsonable_python(other, bytes_mode="base64")  # a Parquet file may have dates, decimals and bytes
            yield row, {**own, "other": json_text(plain) if other else None}


def _folders(run: RunPaths) -> list[RunFolder]:
    return [open_run(path) for path in run_paths(run)]
