"""Everything that takes a user's list, file or table and gives one back: the table for `test_every_edge.py`.

Behind all of them stand two runs that decide by rules, so that a test knows what they find.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import gc
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import openpyxl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import spacy
import torch
from fastapi.testclient import TestClient
from openpyxl.cell import WriteOnlyCell
from torch import Tensor

import elmo_tasks
from elmo_tasks import cli, compat
from elmo_tasks.batches import Embed, Predict
from elmo_tasks.data_readers import Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.estimators import ElmoClassifier, ElmoTagger
from elmo_tasks.extras.annotation.spans import SpansConfig
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.served_runs import load_runs
from elmo_tasks.models import ModelConfig
from elmo_tasks.models.embedder import Embedder
from elmo_tasks.predictors import Predictor
from elmo_tasks.tasks import Batch, Classification, Tagging, Task
from elmo_tasks.text.vocabulary import Vocabulary
from tests.predictors.stub_models import CapitalTagger, NoOutput, StubModel

# The runs


class NoLearning(StubModel):
    """What can be trained for an epoch without learning anything."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder

    def forward(self, batch: Batch) -> NoOutput:
        return NoOutput()

    def loss(self, output: NoOutput, batch: Batch) -> Tensor:
        return torch.stack([parameter.square().mean() for parameter in self.parameters()]).sum()


class RuledTagger(NoLearning, CapitalTagger):
    """Names are runs of capitalized tokens."""


class RuledClassifier(NoLearning):
    """A text is long if it has more than three tokens."""

    task = Classification()

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        label, other = ("long", "short") if len(example["tokens"]) > 3 else ("short", "long")
        return {"label": label, "probabilities": {label: 0.75, other: 0.25}}


class NamesConfig(ModelConfig):
    type: Literal["ruled_names"] = "ruled_names"

    @property
    def task(self) -> Task:
        return Tagging("BIOUL")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> RuledTagger:
        return RuledTagger(embedder)


class LengthsConfig(ModelConfig):
    type: Literal["ruled_lengths"] = "ruled_lengths"

    @property
    def task(self) -> Task:
        return Classification()

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> RuledClassifier:
        return RuledClassifier(embedder)


NAMES, LENGTHS = "ruled_names", "ruled_lengths"
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    NAMES: [{"tokens": ["Orla", "Lund", "left"], "tags": ["B-NAME", "I-NAME", "O"]}],
    LENGTHS: [{"tokens": ["So", "it", "is", "."], "label": "long"}, {"tokens": ["Oh"], "label": "short"}],
}
READERS: dict[str, dict[str, Any]] = {
    NAMES: {"type": "jsonl", "task": "tagging", "tag_scheme": "BIOUL"},
    LENGTHS: {"type": "delimited", "task": "classification"},
}


def config(model: str) -> dict[str, Any]:
    return {
        "dataset_reader": READERS[model],
        "model": {"type": model, "embedder": {"words": {"size": 2}}},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "trackers": [], "validation_metric": "-loss", "optimizer": {"type": "adam"}},
    }


class World:
    """The runs, what is loaded of them, and where files are written."""

    def __init__(self, folder: Path, bilm: Path) -> None:
        self.folder, self.bilm = folder, bilm
        self._numbers = itertools.count()
        self.runs = {model: str(folder / model) for model in EXAMPLES}
        for model, run in self.runs.items():
            elmo_tasks.train(config(model), run, train=EXAMPLES[model], validation=EXAMPLES[model])
        self.predictors: dict[str, Predictor] = {model: elmo_tasks.load(run) for model, run in self.runs.items()}

    def file(self, ending: str) -> Path:
        """The name of a new file."""
        return self.folder / f"{next(self._numbers)}{ending}"

    def predict(self, model: str, source: Path, *options: str) -> str:
        """Calls `elmo-tasks predict`, which leaves out what is not usable; returns what it says."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            on_error = () if "record" in options else ("--on-error", "skip")
            code = cli.main(["predict", self.runs[model], str(source), *on_error, *options])
        gc.unfreeze()  # the command keeps all that is there when it begins
        assert code == 0, said.getvalue()
        return said.getvalue()

    @functools.cached_property
    def client(self) -> TestClient:
        """Of a server of the runs."""
        return TestClient(create_app(load_runs(list(self.runs.values()), batch_tokens=64), {}))

    @functools.cached_property
    def compatible(self) -> compat.Predictor:
        return compat.Predictor.from_path(self.runs[NAMES])

    @functools.cached_property
    def pipeline(self) -> spacy.Language:
        nlp = spacy.blank("xx")
        nlp.add_pipe("elmo", config={"bilm": None, "run": self.runs[NAMES]})
        return nlp

    @functools.cached_property
    def tables(self) -> dict[str, Any]:
        """Functions of tables of Arrow."""
        return {
            "predict": Predict(run=self.runs[NAMES], on_error="record"),
            "embed": Embed(bilm=self.bilm, pool="mean", on_error="record"),
        }

    @functools.cached_property
    def estimators(self) -> dict[str, Any]:
        tagged, labelled = EXAMPLES[NAMES], EXAMPLES[LENGTHS]
        tagger = ElmoTagger(config(NAMES)).fit([each["tokens"] for each in tagged], [each["tags"] for each in tagged])
        texts, labels = [each["tokens"] for each in labelled], [each["label"] for each in labelled]
        return {NAMES: tagger, LENGTHS: ElmoClassifier(config(LENGTHS)).fit(texts, labels)}


# What comes back


class Answers(NamedTuple):
    """What an edge gives for inputs.

    Attributes:
        found: for each input the list of its results, or what is wrong with it; of a file, all results in one list.
        said: what the user is told meanwhile.
    """

    found: list[Any]
    said: str = ""


def same(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same, also in their types."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def write_lines(path: Path, inputs: Sequence[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in inputs), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


# Lists


def each(world: World, inputs: list[Any]) -> Answers:
    found = world.predictors[NAMES].each(inputs)
    return Answers([answer[0]["error"] if answer and "error" in answer[0] else answer for answer in found])


def served(world: World, inputs: list[Any]) -> Answers:
    answer = world.client.post(f"/api/runs/{NAMES}/predict-batch", json={"inputs": inputs})
    assert answer.status_code == 200, answer.text
    return Answers([each.get("results", each.get("error")) for each in answer.json()["results"]])


_COLUMNS = ("text", "tokens", "tags")
_OWN = {*_COLUMNS, "id", "start_char", "end_char", "offsets", "probabilities", "spans"}


def by_row(rows: Sequence[dict[str, Any]], count: int, columns: Sequence[str] = _COLUMNS) -> list[Any]:
    """The results of each line, or its error."""
    lines = [[row for row in rows if row["line"] == line] for line in range(1, count + 1)]
    assert [row["line"] for row in rows] == [row["line"] for line in lines for row in line]

    def result(row: dict[str, Any]) -> dict[str, Any]:
        others = {"other": json.loads(row["other"] or "{}")} if "other" in row else {}
        key = None if row["id"] == f"{row.get('source', 'table')}:{row['line']}" else row["id"]
        return {**{name: row[name] for name in columns}, "id": key, **others}

    return [line[0]["error"] if line and line[0]["error"] else [*map(result, line)] for line in lines]


def json_table(function: str, world: World, inputs: list[Any]) -> Answers:
    rows = [{"source": "in", "line": line, "json": json.dumps(each)} for line, each in enumerate(inputs, start=1)]
    schema = pa.schema({"source": pa.string(), "line": pa.int64(), "json": pa.string()})
    found = world.tables[function](pa.Table.from_pylist(rows, schema)).to_pylist()
    return Answers(by_row(found, len(inputs), _COLUMNS if function == "predict" else ("tokens",)))


def column_table(world: World, inputs: list[Any]) -> Answers:
    rows = [{"line": line, "text": each["text"], "id": each.get("id")} for line, each in enumerate(inputs, start=1)]
    schema = pa.schema({"line": pa.int64(), "text": pa.string(), "id": pa.string()})
    return Answers(by_row(world.tables["predict"](pa.Table.from_pylist(rows, schema)).to_pylist(), len(inputs)))


def compatible(world: World, inputs: list[Any]) -> Answers:
    given = [{"sentence": each["text"]} if isinstance(each, dict) and "text" in each else each for each in inputs]
    found = world.compatible.predict_batch_json(given)
    return Answers([answer.get("error") or [answer][: len(answer["words"])] for answer in found])


def piped(world: World, inputs: list[Any]) -> Answers:
    docs = [*world.pipeline.pipe([(each["text"], each) for each in inputs], as_tuples=True, batch_size=3)]
    return Answers(
        [
            [{"text": doc.text, "given": context, "found": [(e.start_char, e.end_char, e.label_) for e in doc.ents]}]
            for doc, context in docs
        ]
    )


def estimated(model: str, world: World, inputs: list[Any]) -> Answers:
    """Texts, or their tokens between spaces for the tagger."""
    texts = [each["text"] if model == LENGTHS else each["text"].split() for each in inputs]
    return Answers([[each] for each in world.estimators[model].predict(texts)])


# Files


def lines_to_lines(world: World, inputs: list[Any], *options: str) -> Answers:
    source, target = write_lines(world.file(".jsonl"), inputs), world.file(".jsonl")
    said = world.predict(NAMES, source, "--output", str(target), *options)
    return Answers(read_lines(target), said)


def text_to_lines(world: World, inputs: list[Any]) -> Answers:
    source, target = world.file(".txt"), world.file(".jsonl")
    source.write_bytes("".join(f"{each['text']}\n" for each in inputs).encode())
    said = world.predict(NAMES, source, "--format", "text", "--output", str(target))
    return Answers(read_lines(target), said)


def lines_to_parts(world: World, inputs: list[Any]) -> Answers:
    source, target = write_lines(world.file(".jsonl"), inputs), world.file("")
    options = ("--output", f"{target}/", "--on-error", "record", "--part-tokens", "60")
    said = world.predict(NAMES, source, *options)
    rows = [row for part in sorted(target.glob("*.parquet")) for row in pq.read_table(part).to_pylist()]
    answers = Answers(by_row(rows, len(inputs)), said)
    errors = sum(isinstance(answer, str) for answer in answers.found)
    noun = "line has" if errors == 1 else "lines have"
    assert (f"{errors} {noun} no results; the column `error` says why" in said) == bool(errors)
    return answers


# Tables


def write_table(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    """Writes a table as other programs do; the first row has the names of the columns."""
    if path.suffix == ".parquet":
        columns = [*zip(*rows, strict=True)]
        pq.write_table(pa.table({str(name): pa.array(cells, pa.string()) for name, *cells in columns}), path)
    elif path.suffix == ".xlsx":
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet()
        for row in rows:
            cells = [
                WriteOnlyCell(sheet, re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x)", excel_escape, text))
                for text in row
            ]
            for cell in cells:
                cell.data_type = "s"
            sheet.append(cells)
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)
    return path


def excel_escape(found: re.Match[str]) -> str:
    return f"_x{ord(found[0]):04X}_"


def read_table(path: Path) -> list[list[Any]]:
    """The rows of a table as other programs read it, None for empty cells."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return [table.column_names, *([*row.values()] for row in table.to_pylist())]
    if path.suffix == ".xlsx":
        sheet: Any = openpyxl.load_workbook(path).active
        return [[excel_text(cell) for cell in row] for row in sheet.values]
    with path.open(encoding="utf-8-sig", newline="") as stream:
        csv.field_size_limit(1 << 20)
        return [*csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)]


def excel_text(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), cell)


def is_cell(cell: Any, value: Any) -> bool:
    """Whether a cell of a table has this value: a number as one or by its digits, and no value as an empty cell."""
    if value is None:
        return cell in (None, "")
    if isinstance(value, (bool, list, dict)):
        return cell is value or cell == json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return cell == json.dumps(value) or (isinstance(cell, (int, float)) and cell == value)
    return (cell or "") == value and isinstance(cell, (str, type(None)))


def lines_to_table(ending: str, world: World, inputs: list[Any]) -> Answers:
    source, target = write_lines(world.file(".jsonl"), inputs), world.file(ending)
    said = world.predict(LENGTHS, source, "--output", str(target))
    names, *rows = read_table(target) or [[]]
    return Answers([dict(zip([name or "" for name in names], row, strict=True)) for row in rows], said)


TABLE = ("--format", "reader", "--set", "dataset_reader.columns.text=text")


def table_to_table(ending: str, other: str, world: World, rows: list[Any]) -> Answers:
    """Rows of cells, the first with their names."""
    source, target = write_table(world.file(ending), rows), world.file(other)
    form = {".csv": ("delimiter=,", "quotes=true"), ".tsv": ("delimiter=\t", "quotes=true")}.get(ending, ())
    settings = [word for setting in form for word in ("--set", f"dataset_reader.{setting}")]
    said = world.predict(LENGTHS, source, *TABLE, *settings, "--output", str(target))
    return Answers(read_table(target), said)


# Annotation tools


ANNOTATED = {"doccano": ".jsonl", "label-studio": ".json", "spacy": ".spacy", "brat": ""}


def annotate(tool: str, world: World, source: Path) -> tuple[Path, str]:
    """What `predict` writes for a tool from a file, as the tool would export it, and what it says."""
    target = world.file(ANNOTATED[tool])
    said = world.predict(NAMES, source, "--output-format", tool, "--output", str(target))
    if tool == "label-studio":
        tasks = json.loads(target.read_bytes())
        target.write_text(json.dumps([{**each, "annotations": each["predictions"]} for each in tasks]))
    return target, said


def annotated(path: Path) -> Iterator[dict[str, Any]]:
    """The texts of an export, their spans and the other keys."""
    for text in SpansConfig().build().texts(path, Parsing(needs_labels=False)):
        fields = text.fields.get("data", text.fields)
        keys = {key: value for key, value in fields.items() if key not in ("text", "file")}
        keys = {} if text.tool in ("spaCy", "brat") else keys
        yield {"text": text.text, "spans": [list(span[:3]) for span in text.spans], "keys": keys}


def to_tool(tool: str, world: World, inputs: list[Any]) -> Answers:
    target, said = annotate(tool, world, write_lines(world.file(".jsonl"), inputs))
    return Answers([*annotated(target)], said)


# What is expected


def letters(text: str) -> str:
    """The letters and digits of a text, which tokens have whatever else is between them."""
    return "".join(filter(str.isalnum, text))


Expected = Callable[[World, int, Any], "list[Any] | str"]


def alone(model: str, world: World, given: Any) -> list[dict[str, Any]] | str:
    """The results of an input by itself, with all of its text and its other keys; or what is wrong with it."""
    if not isinstance(given, (str, dict)):
        return "expected a string"
    try:
        results = [*world.predictors[model].predict([given], source="")]  # without a warning
    except DataError as error:
        return error.problem
    if isinstance(given, dict):
        for result, (key, value) in itertools.product(results, given.items()):
            names = (key, f"input_{key}", f"input_input_{key}")
            assert key in ("text", "tokens") or any(same(result[name], value) for name in names if name in result)
        text = given.get("text", "") if "text" in given else " ".join(given["tokens"])
        tokens = [token for result in results for token in result["tokens"]]
        assert letters("".join(tokens)) == letters(text)
    return results


def plain(world: World, number: int, given: Any) -> list[Any] | str:
    return alone(NAMES, world, given)


def of_line(world: World, number: int, given: Any) -> list[Any] | str:
    """Of a line of JSON, which has to be an object."""
    return plain(world, number, given) if isinstance(given, dict) else "a JSON "


def of_text(world: World, number: int, given: Any) -> list[Any] | str:
    return plain(world, number, given["text"])


def of_row(world: World, number: int, given: Any) -> list[Any] | str:
    """Of a row of a table of Arrow, where a text without results has an error."""
    results = of_line(world, number, given)
    if isinstance(results, str):
        return results
    key = None if given.get("id") is None else str(given["id"])
    others = [{name: value for name, value in result.items() if name not in _OWN} for result in results]
    return [
        {**{name: result.get(name) for name in _COLUMNS}, "id": key, "other": other}
        for result, other in zip(results, others, strict=True)
    ] or "a blank text"


def of_columns(world: World, number: int, given: Any) -> list[Any] | str:
    return of_row(world, number, {key: given[key] for key in ("text", "id") if key in given})


def of_embedded(world: World, number: int, given: Any) -> list[Any] | str:
    results = of_row(world, number, given)
    return results if isinstance(results, str) else [{key: each[key] for key in ("tokens", "id")} for each in results]


def of_cells(world: World, number: int, given: Any) -> list[Any] | str:
    """Of a row of a table: the keys of the input, the label and its probability."""
    results = alone(LENGTHS, world, given) if isinstance(given, dict) else "a JSON "
    if isinstance(results, str):
        return results
    left_out = ("tokens", "offsets", "probabilities")
    return [
        {
            **{"text": " ".join(result["tokens"]), "probability": 0.75},
            **{k: v for k, v in result.items() if k not in left_out},
        }
        for result in results
    ]


def of_tool(world: World, number: int, given: Any, *, keeps: bool = True) -> list[Any] | str:
    """Of a text of an annotation tool, also of a blank one."""
    if not isinstance(given, dict) or not isinstance(text := given.get("text"), str):
        return "expected a text"
    results: Any = plain(world, number, {"text": text})
    spans = [[span["start_char"], span["end_char"], span["label"]] for result in results for span in result["spans"]]
    return [{"text": text, "spans": spans, "keys": {key: given[key] for key in given if keeps and key != "text"}}]


# The table


OTHER_KEYS = ("Note", "Größe", "a b", "line", "input_tags")
COLUMNS = (*OTHER_KEYS, "tags", "spans", "labels", "label", "frames", "clusters", "score")  # some have another meaning
of_bare = functools.partial(of_tool, keeps=False)


@dataclass(frozen=True)
class Edge:
    """What takes a list of inputs.

    Attributes:
        send: gives the inputs, and takes what comes back.
        expected: of an input with its number, from 1: its results, or what is wrong with it.
        takes: "values", also such as are not usable; "objects", each with a `text`; "texts", of at least one token.
        is_file: whether all results come one after another, and the user is told of inputs without one.
        has_lines: whether texts may have several lines.
        is_table: whether results are rows of cells.
        keeps_blank: whether blank texts come back, too.
        keys: which inputs may have, next to `text` and `id`.
    """

    name: str
    send: Callable[[World, list[Any]], Answers]
    expected: Expected = plain
    takes: Literal["values", "objects", "texts"] = "values"
    is_file: bool = False
    has_lines: bool = True
    is_table: bool = False
    keeps_blank: bool = False
    keys: Sequence[str] = ("", *COLUMNS)


def of_compatible(world: World, number: int, given: Any) -> list[Any] | str:
    if not isinstance(given, (str, dict)):
        return "expected a string"
    given = {"text": given} if isinstance(given, str) else given
    given = {"sentence": given["text"]} if "text" in given else given
    try:
        answer = world.compatible.predict_json(given)
    except DataError as error:
        return error.problem
    assert letters("".join(answer["words"])) == letters(given.get("sentence", "".join(given.get("tokens", []))))
    return [answer][: len(answer["words"])]


def of_pipe(world: World, number: int, given: Any) -> list[Any]:
    doc = world.pipeline(given["text"])
    assert doc.text == given["text"]
    return [{"text": doc.text, "given": given, "found": [(e.start_char, e.end_char, e.label_) for e in doc.ents]}]


def of_tags(world: World, number: int, given: Any) -> list[Any]:
    """Tags in the scheme that the estimator has learned from."""
    words = given["text"].split()
    is_name = [False, *(word[0].isupper() for word in words)]
    return [["IB"[not before] + "-NAME" if here else "O" for before, here in itertools.pairwise(is_name)]]


def of_label(world: World, number: int, given: Any) -> list[Any]:
    return [result["label"] for result in world.predictors[LENGTHS]([given["text"]])]


EDGES = [
    Edge("Predictor.each", each),
    Edge("server", served),
    Edge("batches.Predict, json", functools.partial(json_table, "predict"), of_row),
    Edge("batches.Predict, columns", column_table, of_columns, takes="objects"),
    Edge("batches.Embed", functools.partial(json_table, "embed"), of_embedded),
    Edge("compat", compatible, of_compatible),
    Edge("spaCy", piped, of_pipe, takes="objects"),
    Edge("ElmoTagger", functools.partial(estimated, NAMES), of_tags, takes="texts"),
    Edge("ElmoClassifier", functools.partial(estimated, LENGTHS), of_label, takes="texts"),
    Edge("JSON lines", lines_to_lines, of_line, is_file=True),
    Edge("lines of text", text_to_lines, of_text, takes="objects", is_file=True, has_lines=False),
    Edge("folder of parts", lines_to_parts, of_row),
    *(
        Edge(
            f"JSON lines to {ending}", functools.partial(lines_to_table, ending), of_cells, is_file=True, is_table=True
        )
        for ending in (".csv", ".tsv", ".xlsx", ".parquet")
    ),
    Edge("doccano", functools.partial(to_tool, "doccano"), of_tool, is_file=True, keeps_blank=True, keys=OTHER_KEYS),
    Edge(
        "label-studio",
        functools.partial(to_tool, "label-studio"),
        of_tool,
        is_file=True,
        keeps_blank=True,
        keys=OTHER_KEYS,
    ),
    Edge("spacy", functools.partial(to_tool, "spacy"), of_bare, is_file=True, keeps_blank=True, keys=OTHER_KEYS),
    Edge("brat", functools.partial(to_tool, "brat"), of_bare, is_file=True, keeps_blank=True, keys=OTHER_KEYS),
]
