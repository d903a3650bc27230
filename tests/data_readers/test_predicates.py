from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest

from elmo_tasks.data_readers.predicates import PredicatesConfig, PredicatesReader
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.data_readers.srl import SrlConll2005Reader, SrlConll2012Config
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Tagging

CONLL_2012 = """\
#begin document (nw/fen_0001); part 002
d 2 0 Rain  NN  * rain - 2 - * -

d 2 0 Mira  NNP * -    -  - - * (ARG0*)       *        -
d 2 1 gave  VBD * give 01 - - * (V*           *        -
d 2 2 up    RP  * -    -  - - * *)            *        -
d 2 3 diving NN * dive 02 - - * (ARG1*)       (V*)     -

#end document
#begin document (nw/fen_0002); part 000
d 0 0 Let   VB  * let  01 - - * (V*)      *    -
d 0 1 go    VB  * go   02 - - * (C-V*)    (V*) -

#end document
"""
EXAMPLES = [
    {"tokens": ["Rain"], "tags": ["O"], "document": 0, "sentence": 0, "file": 0, "line": 2},
    {
        "tokens": ["Mira", "gave", "up", "diving"],
        "tags": ["O", "B-V", "O", "B-V"],
        "document": 0,
        "sentence": 1,
        "file": 0,
        "line": 4,
    },
    {"tokens": ["Let", "go"], "tags": ["B-V", "B-V"], "document": 1, "sentence": 0, "file": 0, "line": 11},
]


def build(source: dict[str, Any] | None = None) -> PredicatesReader:
    config = DatasetReaderConfig.model_validate({"type": "predicates", "source": source or {"type": "srl_conll2012"}})
    assert isinstance(config, PredicatesConfig)
    return config.build()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_predicates_are_spans_of_one_token(tmp_path: Path) -> None:
    assert build().read(write(tmp_path / "a.conll", CONLL_2012)).to_list() == EXAMPLES
    assert build().task == Tagging("IOB2", single_tokens=True)


def test_folders_are_read_as_the_source_reads_them(tmp_path: Path) -> None:
    first, second = CONLL_2012.split("#begin document (nw/fen_0002)")
    write(tmp_path / "data" / "b" / "x.gold_conll", f"#begin document (nw/fen_0002){second}")
    write(tmp_path / "data" / "a" / "x.gold_conll", first)
    reader = build()
    moved = {"file": 1, "line": 2}
    assert reader.read(tmp_path / "data").to_list() == [*EXAMPLES[:2], {**EXAMPLES[2], **moved}]
    write(tmp_path / "data" / "b" / "x.gold_conll", first.replace("Rain", "Snow"))
    assert [example["tokens"][0] for example in reader.read(tmp_path / "data")] == ["Rain", "Mira", "Snow", "Mira"]


def test_props_of_conll_2005(tmp_path: Path) -> None:
    path = write(tmp_path / "props.txt", "Mira - (A0*)\nsank sink (V*)\n\nRain -\n\nSnow -\n")
    assert build({"type": "srl_conll2005"}).read(path).to_list() == [
        {"tokens": ["Mira", "sank"], "tags": ["O", "B-V"], "document": 0, "sentence": 0, "file": 0, "line": 1},
        {"tokens": ["Rain"], "tags": ["O"], "document": 0, "sentence": 1, "file": 0, "line": 4},
        {"tokens": ["Snow"], "tags": ["O"], "document": 0, "sentence": 2, "file": 0, "line": 6},
    ]


def test_another_version_of_the_source_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = [build({"type": kind}) for kind in ("srl_conll2005", "srl_conll2012")]
    before = [reader.cache_key() for reader in readers]
    monkeypatch.setattr(SrlConll2005Reader, "version", 99)
    assert [reader.cache_key() != key for reader, key in zip(readers, before, strict=True)] == [True, False]


def test_errors_are_the_source_s(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll", CONLL_2012.replace("#end document\n", "", 1))
    with pytest.raises(DataError, match=r"a\.conll:9: a document begins inside the one of line 1"):
        build().read(path)
    with pytest.raises(pydantic.ValidationError, match="unknown type"):
        build({"type": "conllu"})


def test_the_real_data_has_the_predicates_of_its_examples(data_folder: Path) -> None:
    path = data_folder / "srl_ewt" / "ewt.dev.gold_conll"
    sentences = build().read(path)
    roles = SrlConll2012Config().build().read(path)
    assert len(sentences) == 1968
    found = sum(tags.count("B-V") for tags in sentences["tags"])
    places = set(zip(roles["sentence"], roles["predicate"], strict=True))
    assert found == len(places) > 4900
