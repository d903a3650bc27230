"""Units: whole lines, the same ones on every machine, of text and JSON lines, compressed or not."""

import gzip
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.errors import DataError
from elmo_tasks.extras.engines.parts import find_units, read_units


def rows_of(*inputs: str | Path, tokens: int = 1_000_000) -> list[dict[str, Any]]:
    units = list(find_units(inputs, tokens=tokens))
    return [row for _, tables in read_units(units) for table in tables for row in table.to_pylist()]


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.text(alphabet="ab é\u2028", max_size=30), max_size=20), st.integers(1, 9), st.sampled_from(["\n", ""])
)
def test_units_of_any_size_have_the_lines_of_the_file(lines: list[str], tokens: int, end: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes("\n".join(lines).encode() + end.encode())
        found = rows_of(path, tokens=tokens)
    expected = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    assert [(row["line"], row["text"]) for row in found] == expected


def test_units_are_named_by_what_is_in_them(tmp_path: Path) -> None:
    def names(content: str) -> list[str]:
        (tmp_path / "a.txt").write_text(content)
        return [unit.part_name for unit in find_units([tmp_path / "a.txt"], tokens=2)]

    first = names("one two three\nfour five six\n")
    assert len(first) == 2
    assert all(re.fullmatch(r"a\.txt-0{11}[12]-[0-9a-f]{16}\.parquet", name) for name in first)
    assert names("one two three\nfour five six\n") == first
    changed = names("one two three\nfour five 666\n")
    assert (changed[0] == first[0], changed[1] == first[1]) == (True, False)


def test_files_of_folders_and_patterns_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/x.txt", "b/x.txt", "b/.hidden", "b/_SUCCESS", "b/.git/x.txt", "b/deep/_old/x.txt", "b/deep/y.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("Orla left.\n")
    found = [unit.source for unit in find_units([tmp_path / "b", tmp_path / "*" / "x.txt", tmp_path / "a" / "x.txt"])]
    assert found == ["a/x.txt", "b/deep/y.txt", "b/x.txt"]
    assert [unit.source for unit in find_units([tmp_path / "a"])] == ["x.txt"]
    monkeypatch.chdir(tmp_path / "a")
    (tmp_path / "b" / "link.txt").symlink_to("../a/x.txt")
    for same in (tmp_path / "a", "../a/x.txt", "../b/link.txt"):
        assert [unit.source for unit in find_units(["x.txt", same])] == [
            "x.txt" if same != "../b/link.txt" else "a/x.txt"
        ]
    with pytest.raises(DataError, match=r"no\*: no such file"):
        list(find_units([tmp_path / "no*"]))


def test_compressed_text_and_json_lines(tmp_path: Path) -> None:
    content = "".join(f'{{"text": "line {number}"}}\n' for number in range(1, 41))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    units = list(find_units([tmp_path]))
    assert len(units) == 1
    cut = list(find_units([tmp_path], tokens=20))
    assert len(cut) > 5
    later = [row for _, tables in read_units(cut[3::2]) for table in tables for row in table.to_pylist()]
    assert all(row["json"] == f'{{"text": "line {row["line"]}"}}' for row in later)
    assert later[0]["line"] == cut[3].first
    assert rows_of(tmp_path, tokens=20) == rows_of(tmp_path)


def test_tables_have_the_same_columns_even_without_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = {"source": pa.string(), "line": pa.int64()}
    for content, column in ((" \n\n", "text"), ("Orla left.\n", "text"), ('\n \n {"a": 1}\n', "json")):
        (tmp_path / "a.txt").write_text(content)
        ((_, tables),) = read_units(find_units([tmp_path]))
        (table,) = tables
        expected = {**own, column: pa.string(), "error": pa.string()}
        assert dict(zip(table.column_names, table.schema.types, strict=True)) == expected
        assert len(table) == len(content.strip().splitlines())
    assert caplog.messages == [f"{tmp_path / 'a.txt'}: no text in 2 line(s)"]


def test_lines_of_tokens_may_look_like_anything(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,label\n1,Orla left,pos\n2,It rained,neg\n3,A mill,pos\n4,A bus,neg\n")
    assert len(list(find_units([tmp_path], tokenized=True))) == 1
    with pytest.raises(DataError, match=r"contains only files of an output folder; expected the text"):
        list(find_units([tmp_path], output=tmp_path))


def test_units_end_with_the_line_at_which_they_are_full(tmp_path: Path) -> None:
    """A token counts as six bytes."""
    lines = ["123456789 12\n", "1\n", "1234567890 2345678901\n", "1234567890\n", "1\n"]  # of 13, 2, 22, 11 and 2 bytes
    (tmp_path / "a.txt").write_text("".join(lines))
    found = [(unit.start, unit.end, unit.first) for unit in find_units([tmp_path / "a.txt"], tokens=2)]
    assert found == [(0, 13, 1), (13, 37, 2), (37, 50, 4)]
    assert len(list(find_units([tmp_path / "a.txt"], tokens=7))) == 2
    assert len(list(find_units([tmp_path / "a.txt"], tokens=8))) == 1


def test_equal_texts_have_parts_of_their_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("Orla left.\n" * 3)
    units = list(find_units([tmp_path / "one", tmp_path / "two"], tokens=1))
    assert len(units) == 2 * 3
    assert len({unit.part_name for unit in units}) == len({unit.digest for unit in units}) == len(units)


def test_lines_of_no_use_have_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"Orla left.\nT\xe4vo\n\nShe sang.\n" * 3)
    found = rows_of(tmp_path, tokens=2)
    assert [row["line"] for row in found] == [1, 2, 4, 5, 6, 8, 9, 10, 12]
    errors = [row["error"] for row in found if row["error"]]
    assert [error.split("/")[-1] for error in errors] == [
        f"a.txt:{line}: byte 0xe4 at column 2 is not UTF-8; expected UTF-8 text" for line in (2, 6, 10)
    ]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"id,text,label\n1,Orla left,pos\n2,It rained,neg\n3,A mill,pos\n4,A bus,neg\n", "looks like"),
        ("a.parquet", b"PAR1 nothing", "a table; expected .* or JSON lines"),
        ("a.gz", gzip.compress(b"Orla left.\n" * 9, mtime=0)[:-9], "damaged or cut short"),
    ],
)
def test_files_of_another_kind_or_damaged(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}.*{problem}"):
        rows_of(tmp_path / name)


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Orla left.\n")
    units = list(find_units([tmp_path]))
    (tmp_path / "a.txt").write_text("Orla came.\n")
    with pytest.raises(DataError, match="has changed"):
        list(read_units(units))
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"Orla left.\n" * 9))
    units = list(find_units([tmp_path / "b.gz"], tokens=2))
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"Orla left.\n"))
    with pytest.raises(DataError, match="has changed"):
        list(read_units(units[3:]))
