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
import pyarrow.parquet as pq
import spacy
from fastapi.testclient import TestClient
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
from elmo_tasks.tasks import Batch, Classification, Tagging, Task
from elmo_tasks.text.vocabulary import Vocabulary
from tests.predictors.stub_models import CapitalTagger, NoOutput, StubModel


class Ruled(StubModel):
    """What can be trained for an epoch without learning anything. A text of more than three tokens is long."""

    task: Task = Classification()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder

    def forward(self, batch: Batch) -> NoOutput:
        return NoOutput()

    def loss(self, output: NoOutput, batch: Batch) -> Tensor:
        return next(self.parameters()).square().sum()

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        label, other = ("long", "short") if len(example["tokens"]) > 3 else ("short", "long")
        return {"label": label, "probabilities": {label: 0.75, other: 0.25}}


class RuledTagger(Ruled, CapitalTagger):
    """Names are runs of capitalized tokens."""

    task, prediction = CapitalTagger.task, CapitalTagger.prediction


class RuledConfig(ModelConfig):
    type: Literal["ruled"] = "ruled"
    finds: Literal["names", "lengths"]

    @property
    def task(self) -> Task:
        return Tagging("BIOUL") if self.finds == "names" else Classification()

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> Ruled:
        return (RuledTagger if self.finds == "names" else Ruled)(embedder)


TAGGED = {"tokens": ["Orla", "Lund", "left"], "tags": ["B-NAME", "I-NAME", "O"]}
LABELLED = [{"tokens": ["So", "it", "is", "."], "label": "long"}, {"tokens": ["Oh"], "label": "short"}]
READERS: dict[str, Any] = {
    "names": {"type": "jsonl", "task": "tagging", "tag_scheme": "BIOUL"},
    "lengths": {"type": "delimited", "task": "classification"},
}


def config(finds: str) -> dict[str, Any]:
    return {
        "dataset_reader": READERS[finds],
        "model": {"type": "ruled", "finds": finds, "embedder": {"words": {"size": 2}}},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "trackers": [], "validation_metric": "-loss", "optimizer": {"type": "adam"}},
    }


class World:
    """The runs, what is loaded of them, and where files are written."""

    def __init__(self, folder: Path, bilm: Path) -> None:
        self.folder, self.numbers = folder, itertools.count()
        self.names, self.lengths = str(folder / "names"), str(folder / "lengths")
        elmo_tasks.train(config("names"), self.names, train=[TAGGED], validation=[TAGGED])
        elmo_tasks.train(config("lengths"), self.lengths, train=LABELLED, validation=LABELLED)
        self.tagger, self.classifier = elmo_tasks.load(self.names), elmo_tasks.load(self.lengths)
        self.compatible = compat.Predictor.from_path(self.names)
        self.client = TestClient(create_app(load_runs([self.names], batch_tokens=64), {}))
        self.predict_tables = Predict(run=self.names, on_error="record")
        self.embed_tables = Embed(bilm=bilm, pool="mean", on_error="record")
        self.pipeline = spacy.blank("xx")
        self.pipeline.add_pipe("elmo", config={"bilm": None, "run": self.names})
        self.fitted_tagger = ElmoTagger(config("names")).fit([TAGGED["tokens"]], [TAGGED["tags"]])
        texts, labels = ([each[key] for each in LABELLED] for key in ("tokens", "label"))
        self.fitted_classifier = ElmoClassifier(config("lengths")).fit(texts, labels)

    def file(self, ending: str, lines: Sequence[Any] | None = None) -> Path:
        """A new file, with these lines of JSON if there are any."""
        path = self.folder / f"{next(self.numbers)}{ending}"
        if lines is not None:
            path.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
        return path

    def predict(self, run: str, source: Path, target: object, *options: str) -> str:
        """Calls `elmo-tasks predict`, which leaves out what is not usable; returns what it says."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            on_error = () if "record" in options else ("--on-error", "skip")
            code = cli.main(["predict", run, str(source), "--output", str(target), *on_error, *options])
        gc.unfreeze()  # the command keeps all that is there when it begins
        assert code == 0, said.getvalue()
        return said.getvalue()


# What comes back


class Answers(NamedTuple):
    """For each input the list of its results, or what is wrong with it; of a file, all results in one list.

    `said` is what the user is told meanwhile.
    """

    found: list[Any]
    said: str = ""


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def each(world: World, inputs: list[Any]) -> Answers:
    found = world.tagger.each(inputs)
    return Answers([answer[0]["error"] if answer and "error" in answer[0] else answer for answer in found])


def served(world: World, inputs: list[Any]) -> Answers:
    answer = world.client.post("/api/runs/names/predict-batch", json={"inputs": inputs})
    assert answer.status_code == 200, answer.text
    return Answers([each.get("results", each.get("error")) for each in answer.json()["results"]])


def by_row(rows: Sequence[dict[str, Any]], count: int) -> list[Any]:
    """The results of each line as they were before they became a table of Arrow, or its error."""
    lines = [[row for row in rows if row["line"] == line] for line in range(1, count + 1)]
    assert [row["line"] for row in rows] == [row["line"] for line in lines for row in line]

    def known(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if value is not None}

    def result(row: dict[str, Any]) -> dict[str, Any]:
        others, place = json.loads(row.pop("other", None) or "{}"), f"{row.pop('source', 'table')}:{row.pop('line')}"
        own = {key: value for key, value in known(row).items() if (key, value) != ("id", place)}
        return {**others, **own, **({"spans": [*map(known, own["spans"])]} if "spans" in own else {})}

    return [line[0]["error"] if line and line[0]["error"] else [*map(result, line)] for line in lines]


def json_table(world: World, inputs: list[Any], function: str = "predict_tables") -> Answers:
    rows = [{"source": "in", "line": line, "json": json.dumps(each)} for line, each in enumerate(inputs, start=1)]
    schema = pa.schema({"source": pa.string(), "line": pa.int64(), "json": pa.string()})
    return Answers(by_row(getattr(world, function)(pa.Table.from_pylist(rows, schema)).to_pylist(), len(inputs)))


def embedded(world: World, inputs: list[Any]) -> Answers:
    found = json_table(world, inputs, "embed_tables").found
    keys = ("tokens", "id")
    return Answers([row if isinstance(row, str) else [{k: r[k] for k in keys if k in r} for r in row] for row in found])


def column_table(world: World, inputs: list[Any]) -> Answers:
    rows = [{"line": line, "text": each["text"], "id": each.get("id")} for line, each in enumerate(inputs, start=1)]
    schema = pa.schema({"line": pa.int64(), "text": pa.string(), "id": pa.string()})
    return Answers(by_row(world.predict_tables(pa.Table.from_pylist(rows, schema)).to_pylist(), len(inputs)))


def as_sentence(given: Any) -> Any:
    return {"sentence": given["text"]} if isinstance(given, dict) and "text" in given else given


def compatible(world: World, inputs: list[Any]) -> Answers:
    found = world.compatible.predict_batch_json([*map(as_sentence, inputs)])
    return Answers([answer.get("error") or [answer][: len(answer["words"])] for answer in found])


def of_document(doc: spacy.tokens.Doc, given: Any) -> list[dict[str, Any]]:
    return [{"text": doc.text, "given": given, "found": [[e.start_char, e.end_char, e.label_] for e in doc.ents]}]


def piped(world: World, inputs: list[Any]) -> Answers:
    given = [(each["text"], each) for each in inputs]
    return Answers([of_document(*pair) for pair in world.pipeline.pipe(given, as_tuples=True, batch_size=3)])


def tags(world: World, inputs: list[Any]) -> Answers:
    return Answers([[found] for found in world.fitted_tagger.predict([each["text"].split() for each in inputs])])


def labels(world: World, inputs: list[Any]) -> Answers:
    return Answers([[label] for label in world.fitted_classifier.predict([each["text"] for each in inputs])])


def lines_to_lines(world: World, inputs: list[Any]) -> Answers:
    target = world.file(".jsonl")
    said = world.predict(world.names, world.file(".jsonl", inputs), target)
    return Answers(read_lines(target), said)


def text_to_lines(world: World, inputs: list[Any]) -> Answers:
    source, target = world.file(".txt"), world.file(".jsonl")
    source.write_bytes("".join(f"{each['text']}\n" for each in inputs).encode())
    return Answers(said=world.predict(world.names, source, target, "--format", "text"), found=read_lines(target))


def lines_to_parts(world: World, inputs: list[Any]) -> Answers:
    source, target = world.file(".jsonl", inputs), world.file("")
    said = world.predict(world.names, source, f"{target}/", "--on-error", "record", "--part-tokens", "60")
    rows = [row for part in sorted(target.glob("*.parquet")) for row in pq.read_table(part).to_pylist()]
    found = by_row(rows, len(inputs))
    errors = sum(isinstance(answer, str) for answer in found)
    noun = "line has" if errors == 1 else "lines have"
    assert (f"{errors} {noun} no results; the column `error` says why" in said) == bool(errors)
    return Answers(found, said)


# Tables


def write_table(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Writes a table of texts as other programs do; the first row has the names of the columns."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({name: pa.array(cells, pa.string()) for name, *cells in zip(*rows, strict=True)}), path)
    elif path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        sheet: Any = book.active
        for (line, row), column in itertools.product(enumerate(rows, start=1), range(len(rows[0]))):
            cell = sheet.cell(line, column + 1)
            escaped = re.sub("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x)", lambda c: f"_x{ord(c[0]):04X}_", row[column])
            cell.value, cell.data_type = escaped, "s"
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)
    return path


def read_table(path: Path) -> list[list[Any]]:
    """The rows of a table as other programs read it, None or an empty text for empty cells."""

    def text(cell: Any) -> Any:
        is_text = isinstance(cell, str)
        return re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), cell) if is_text else cell

    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return [table.column_names, *([*row.values()] for row in table.to_pylist())]
    if path.suffix == ".xlsx":
        sheet: Any = openpyxl.load_workbook(path).active
        return [[*map(text, row)] for row in sheet.values]
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return [*csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)]


def is_cell(cell: Any, value: Any) -> bool:
    """Whether a cell of a table has this value: a number as one or by its digits, and no value as an empty cell."""
    if value is None:
        return cell in (None, "")
    if isinstance(value, str):
        return (cell or "") == value
    is_number = type(value) in (int, float) and type(cell) in (int, float)
    return cell == json.dumps(value, ensure_ascii=False) or cell is value or (is_number and cell == value)


def lines_to_table(ending: str, world: World, inputs: list[Any]) -> Answers:
    target = world.file(ending)
    said = world.predict(world.lengths, world.file(".jsonl", inputs), target)
    names, *rows = read_table(target)
    return Answers([dict(zip(names, row, strict=True)) for row in rows], said)


# Annotation tools


ANNOTATED = {"doccano": ".jsonl", "label-studio": ".json", "spacy": ".spacy", "brat": ""}


def annotate(tool: str, world: World, source: Path) -> tuple[Path, str]:
    """What `predict` writes for a tool from a file, as the tool would export it, and what it says."""
    target = world.file(ANNOTATED[tool])
    said = world.predict(world.names, source, target, "--output-format", tool)
    if tool == "label-studio":
        tasks = json.loads(target.read_bytes())
        target.write_text(json.dumps([{**each, "annotations": each["predictions"]} for each in tasks]))
    return target, said


def annotated(path: Path) -> Iterator[dict[str, Any]]:
    """The texts of an export, their spans and, where a tool has them, the other keys."""
    for text in SpansConfig().build().texts(path, Parsing(needs_labels=False)):
        fields = {} if text.tool in ("spaCy", "brat") else text.fields.get("data", text.fields)
        keys = {key: value for key, value in fields.items() if key != "text"}
        yield {"text": text.text, "spans": [list(span[:3]) for span in text.spans], "keys": keys}


def to_tool(tool: str, world: World, inputs: list[Any]) -> Answers:
    target, said = annotate(tool, world, world.file(".jsonl", inputs))
    return Answers([*annotated(target)], said)


# What is expected of an input: its results, or what is wrong with it


def letters(text: str) -> str:
    """The letters and digits of a text, which tokens have whatever else is between them."""
    return "".join(filter(str.isalnum, text))


def plain(world: World, given: Any, run: Literal["tagger", "classifier"] = "tagger") -> Any:
    """The results of an input by itself, which have all of its text and its other keys."""
    if not isinstance(given, (str, dict)):
        return "expected a string"
    try:
        results = [*getattr(world, run).predict([given], source="")]
    except DataError as error:
        return error.problem
    if isinstance(given, dict):
        for result, key in itertools.product(results, given.keys() - {"text", "tokens"}):
            values = [result[name] for name in (key, f"input_{key}", f"input_input_{key}") if name in result]
            assert json.dumps(given[key]) in map(json.dumps, values)
        tokens = [token for result in results for token in result["tokens"]]
        assert letters("".join(tokens)) == letters(given.get("text", "".join(given.get("tokens", ()))))
    return results


def of_line(world: World, given: Any) -> Any:
    """Of a line of JSON, which has to be an object."""
    return plain(world, given) if isinstance(given, dict) else "a JSON "


def of_row(world: World, given: Any) -> Any:
    """Of a row of a table of Arrow, where an id is a text and a text without results has an error."""
    results = of_line(world, given)
    if not isinstance(results, list):
        return results
    key = {} if given.get("id") is None else {"id": str(given["id"])}
    return [{**{k: v for k, v in each.items() if k != "id"}, **key} for each in results] or "a blank text"


def of_columns(world: World, given: Any) -> Any:
    return of_row(world, {key: given[key] for key in ("text", "id") if key in given})


def of_embedded(world: World, given: Any) -> Any:
    rows = of_row(world, given)
    return rows if isinstance(rows, str) else [{key: r[key] for key in ("tokens", "id") if key in r} for r in rows]


def of_sentence(world: World, given: Any) -> Any:
    if not isinstance(given, (str, dict)):
        return "expected a string"
    try:
        answer = world.compatible.predict_json(as_sentence({"text": given} if isinstance(given, str) else given))
    except DataError as error:
        return error.problem
    return [answer][: len(answer["words"])]


def of_tags(world: World, given: Any) -> Any:
    """Tags in the scheme that the estimator has learned from."""
    is_name = [False, *(word[0].isupper() for word in given["text"].split())]
    return [["IB"[not before] + "-NAME" if here else "O" for before, here in itertools.pairwise(is_name)]]


def of_cells(world: World, given: Any) -> Any:
    """Of a row of a table: the keys of the input, the label and its probability."""
    results = plain(world, given, "classifier") if isinstance(given, dict) else "a JSON "
    if isinstance(results, str):
        return results
    own = {"tokens", "offsets", "probabilities"}
    rows = [{key: value for key, value in result.items() if key not in own} for result in results]
    return [{"text": " ".join(given.get("tokens", ())), "probability": 0.75, **row} for row in rows]


def of_tool(world: World, given: Any, *, keeps: bool = True) -> Any:
    """Of a text of an annotation tool, also of a blank one."""
    if not isinstance(given, dict) or not isinstance(text := given.get("text"), str):
        return "expected a text"
    spans = [span for result in plain(world, text) for span in result["spans"]]
    keys = {key: given[key] for key in given if keeps and key != "text"}
    return [{"text": text, "spans": [[s["start_char"], s["end_char"], s["label"]] for s in spans], "keys": keys}]


# The table

OTHER_KEYS = ("Note", "Größe", "a b", "line", "input_tags")
COLUMNS = (*OTHER_KEYS, "tags", "spans", "labels", "label", "frames", "clusters", "score")  # some are ours elsewhere


@dataclass(frozen=True)
class Edge:
    """What takes a list of inputs.

    Attributes:
        send: gives the inputs, and takes what comes back.
        expected: of an input: its results, or what is wrong with it.
        takes: "values", also such as are not usable; "objects", each with a `text`; "texts", of at least one token.
        is_file: whether all results come one after another, and the user is told of inputs without one.
        has_lines: whether texts may have several lines.
        is_table: whether results are rows of cells.
        keeps_blank: whether blank texts come back, too.
        keys: which inputs may have, next to `text` and `id`.
    """

    name: str
    send: Callable[[World, list[Any]], Answers]
    expected: Callable[[World, Any], Any] = plain
    takes: Literal["values", "objects", "texts"] = "values"
    is_file: bool = False
    has_lines: bool = True
    is_table: bool = False
    keeps_blank: bool = False
    keys: Sequence[str] = ("", *COLUMNS)


def _table(ending: str) -> Edge:
    send = functools.partial(lines_to_table, ending)
    return Edge(f"JSON lines to {ending}", send, of_cells, is_file=True, is_table=True, keys=COLUMNS)


def _tool(name: str, *, keeps: bool) -> Edge:
    send, expected = functools.partial(to_tool, name), functools.partial(of_tool, keeps=keeps)
    return Edge(name, send, expected, is_file=True, keeps_blank=True, keys=OTHER_KEYS)


EDGES = [
    Edge("Predictor.each", each),
    Edge("server", served),
    Edge("batches.Predict, json", json_table, of_row),
    Edge("batches.Predict, columns", column_table, of_columns, takes="objects"),
    Edge("batches.Embed", embedded, of_embedded),
    Edge("compat", compatible, of_sentence),
    Edge("spaCy", piped, lambda world, given: of_document(world.pipeline(given["text"]), given), takes="objects"),
    Edge("ElmoTagger", tags, of_tags, takes="texts"),
    Edge("ElmoClassifier", labels, lambda world, given: [world.classifier(given["text"])[0]["label"]], takes="texts"),
    Edge("JSON lines", lines_to_lines, of_line, is_file=True),
    Edge("text", text_to_lines, lambda world, given: plain(world, given["text"]), "objects", True, has_lines=False),
    Edge("folder of parts", lines_to_parts, of_row),
    *map(_table, (".csv", ".tsv", ".xlsx", ".parquet")),
    *(_tool(name, keeps=name in ("doccano", "label-studio")) for name in ANNOTATED),
]
