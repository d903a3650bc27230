"""What the tests of readers share: readers by short names, sample files, and sources that are written for a test."""

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest

from elmo_tasks.data_readers import DatasetReader, DatasetReaderConfig
from elmo_tasks.errors import ElmoTasksError

HERE = Path(__file__).parent
ODD_FILES = HERE.parent / "odd_files"

Settings = dict[str, Any]
NER: Settings = {"type": "conll2003"}
CONLLU: Settings = {"type": "conllu"}
COREF: Settings = {"type": "coref_conll2012"}
NAMES: Settings = {"type": "ner_conll2012"}
ROLES: Settings = {"type": "srl_conll2012"}
PROPS: Settings = {"type": "srl_conll2005"}
PREDICATES: Settings = {"type": "predicates", "source": ROLES}
SST: Settings = {"type": "sst"}
SNLI: Settings = {"type": "snli"}
SQUAD: Settings = {"type": "squad"}
SQUAD2: Settings = {**SQUAD, "no_answer": True}
TABLE: Settings = {"type": "delimited", "task": "tagging", "header": False, "columns": {"tokens": 0, "tags": -1}}
TEXTS: Settings = {"type": "delimited", "task": "classification"}
STARS: Settings = {**TEXTS, "columns": {"text": "review", "label": "stars"}}
LINES: Settings = {"type": "jsonl", "task": "classification"}
# A row of each task; the files in `samples` have it twice.
ROWS: dict[str, Settings] = {
    "classification": {"columns": {"text": "review", "label": "stars"}},
    "multi_label": {"columns": {"labels": "topics"}},
    "regression": {"columns": {"text": "review", "score": "stars"}},
    "pair_regression": {},
    "text_pairs": {},
    "tagging": {"columns": {"tags": "pos"}},
    "semantic_roles": {"columns": {"predicate": "verb"}},
    "reading": {"columns": {"passage": "context"}},
    "coreference": {"columns": {"genre": "kind"}},
}
# A small file for each reader, in the folder `samples`; `examples` has what each becomes.
SAMPLES: dict[str, Settings] = {
    "conll2003.txt": NER,
    "conllu.conllu": CONLLU,
    "coref_conll2012.conll": COREF,
    "ner_conll2012.conll": NAMES,
    "srl_conll2012.conll": ROLES,
    "srl_conll2005.txt": PROPS,
    "predicates.conll": PREDICATES,
    "sst.txt": SST,
    "snli.jsonl": SNLI,
    "spans.jsonl": {"type": "spans"},
    "squad.json": SQUAD,
    "squad2.json": SQUAD2,
    "classification.csv": STARS,
    "multi_label.csv": {**TEXTS, "task": "multi_label", "label_separator": "|"},
    "regression.csv": {**TEXTS, "task": "regression"},
    "tagging.tsv": {**TABLE, "tag_scheme": "BIOUL"},
    **{f"{task}.jsonl": {"type": "jsonl", "task": task, **settings} for task, settings in ROWS.items()},
}
HEAD, END = "#begin document (a); part 000\n", "#end document\n"


def sample(name: str) -> str:
    """The text of a sample file."""
    return (HERE / "samples" / name).read_text(encoding="utf-8")


def sample_examples(name: str) -> list[dict[str, Any]]:
    """The examples of a sample file."""
    return [json.loads(line) for line in (HERE / "examples" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def conllu(number: str, form: str = "_", upos: str = "_") -> str:
    """A line of CoNLL-U."""
    return "\t".join([number, form, "_", upos, *["_"] * 6]) + "\n"


def _zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", content)
    return stream.getvalue()


PACKERS: list[tuple[str, Callable[[bytes], bytes]]]
PACKERS = [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress), ("zip", _zipped)]


def build(settings: Settings) -> DatasetReader:
    return DatasetReaderConfig.model_validate_json(json.dumps(settings)).build()


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_for(settings: Settings, folder: Path, content: str | bytes) -> Path:
    """Writes a file for this reader: a table without tabs is CSV."""
    is_csv = settings["type"] == "delimited" and "\t" not in str(content)
    return write(folder / ("data.csv" if is_csv else "data.txt"), content)


def read(source: str | Path, settings: Settings) -> list[dict[str, Any]]:
    return build(settings).read(source).to_list()


def read_text(folder: Path, content: str | bytes, settings: Settings) -> list[dict[str, Any]]:
    return read(write_for(settings, folder, content), settings)


def read_rows(folder: Path, rows: Sequence[Any], **settings: Any) -> list[dict[str, Any]]:
    """The examples of JSON lines, with an empty line after each."""
    text = "\n\n".join(json.dumps(row) for row in rows)
    return read_text(folder, text, {**LINES, **settings})


def open_below(source: str | Path) -> list[str]:
    """The files of a source that this process has open, where the system tells."""
    opened = [os.path.realpath(link) for link in Path("/proc/self/fd").glob("*")]
    return [path for path in opened if path.startswith(os.path.realpath(source)) and path != os.devnull]


def problem(source: str | Path, settings: Settings) -> str:
    """What is wrong with a source; the message begins with its name."""
    with pytest.raises(ElmoTasksError) as caught:
        read(source, settings)
    assert str(caught.value).startswith(str(source))
    assert not open_below(source), "the error is kept, and with it an open file"
    return str(caught.value).removeprefix(str(source))


def check_columns(folder: Path, settings: Settings, text: str, columns: dict[str, list[Any]]) -> None:
    """Reads a text and compares these columns of its examples; lists of strings are joined by spaces."""
    examples = read_text(folder, text, settings)
    for name, expected in columns.items():
        values = [example[name] for example in examples]
        assert [" ".join(value) if isinstance(value, list) else value for value in values] == expected, name


def tokens(examples: list[dict[str, Any]]) -> list[list[str]]:
    """The sentences of examples."""
    return [sentence for example in examples for sentence in example.get("sentences", [example.get("tokens")])]


def write_hub(folder: Path, splits: Sequence[Any] | datasets.Dataset | dict[str, datasets.Dataset]) -> str:
    """A data set in a folder that `load_dataset` reads, of rows or of splits; the source's name of it."""
    folder.mkdir()
    if isinstance(splits, Sequence):
        (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in splits))
        return f"hub:{folder}"
    for split, rows in (splits if isinstance(splits, dict) else {"train": splits}).items():
        rows.to_parquet(folder / f"{split}.parquet")
    return f"hub:{folder}"
