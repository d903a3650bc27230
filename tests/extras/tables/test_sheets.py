"""Cells of spreadsheets are the text that the program shows, or an error or a warning says what they are."""

import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pandas
import pytest

from elmo_tasks.extras.tables.sheets import read_sheet, shown
from tests.data_readers.readers import ODD_FILES, TEXTS, Settings, build, problem, read, write

MOMENT = datetime.datetime(2024, 3, 2, 14, 5, 6)
# Values, their formats, and what LibreOffice 7.4 shows of them; None where it depends on the country or is rare.
SHOWN: list[tuple[Any, str, str | None]] = [
    (0.1, "0.00", "0.10"),
    (0.1 + 0.2, "General", "0.3"),
    (1234567890123, "General", "1234567890123"),
    (0.256, "0.0 %", "25.6 %"),
    (0.125, "0.00", "0.13"),
    (-3.5, "0.0", "-3.5"),
    (7, "000", "007"),
    (2.5, "0", "3"),
    (1234567, "#,##0", "1,234,567"),
    (3, '0" apples"', "3 apples"),
    (1234.5, "#,##0.00\\ [$€-407]", "1,234.50 €"),
    (1234.5, "[$$-409]#,##0.00", "$1,234.50"),
    (4.5, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\)', "$4.50"),
    (-4.5, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\)', None),
    (3.5, "0.00E+00", None),
    (True, "General", "TRUE"),
    (MOMENT, "DD.MM.YYYY", "02.03.2024"),
    (MOMENT, "m/d/yy", "3/2/24"),
    (MOMENT, "yyyy\\-mm\\-dd hh:mm:ss", "2024-03-02 14:05:06"),
    (MOMENT, "[$-409]dd/mm/yyyy;@", "02/03/2024"),
    (MOMENT, "d.m.yyyy h:mm", "2.3.2024 14:05"),
    (MOMENT, "mm-dd-yy", None),  # the short date of the country
    (MOMENT, "d. mmmm yyyy", None),
    (MOMENT, 'd "de" m', None),
    (MOMENT.time(), "h:mm:ss", "14:05:06"),
    (MOMENT.time(), "d h", None),
    (datetime.timedelta(hours=30), "[h]:mm", None),
]


@pytest.mark.parametrize(("value", "format", "expected"), SHOWN)
def test_numbers_and_dates_are_read_as_they_are_shown(value: Any, format: str, expected: str | None) -> None:
    assert shown(value, format) == expected


def test_a_workbook_of_libreoffice() -> None:
    """Its cells are what the program itself shows: dates, currency, percent, truth values, formulas, merged cells."""
    path = ODD_FILES / "libreoffice.xlsx"
    texts = {**TEXTS, "columns": {"text": "Message", "label": "Label"}}
    assert problem(path, texts) == (
        ": the sheets with cells are 'Mails', 'Notes'. Set --set 'dataset_reader.sheet=Mails', or another"
    )
    texts["sheet"] = "Mails"
    assert [example["label"] for example in read(path, texts)] == ["good", "bad"] * 4  # of formulas
    note, rows = read_sheet(path, "Mails")
    assert note == "sheet 'Mails', not 'Notes'"
    first = "1|01.03.2024|The soup was warm and good.|1,234.50 €|12.5%|FALSE|2|good|north"
    assert [*map(str, rows[1])] == first.split("|")
    scores = {**texts, "task": "regression", "columns": {"text": "Message", "score": "Share"}}
    assert [example["score"] for example in read(path, scores)][:2] == [0.125, 0.135]  # not as they are shown
    merged = texts | {"columns": {"text": "Message", "label": "Group"}}
    expected = (
        ":3: 'Group': the cell I3 is part of the merged cells I2:I3, of which only the first has a value; fill them"
    )
    assert problem(path, merged) == expected


def test_formulas_without_a_value_are_named(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"text": ["It was so.", '="It " & "was."'], "label": ["a", "b"]})
    frame.to_excel(tmp_path / "new.xlsx", index=False)
    expected = ":3: 'text': the cell A3 has a formula that was never calculated; open the file in Excel or LibreOffice"
    assert problem(tmp_path / "new.xlsx", TEXTS).startswith(expected)


def test_typed_tokens_are_read_as_they_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    settings = {**TEXTS, "task": "tagging"}
    first, second = read(ODD_FILES / "tokens_typed.xlsx", settings)
    assert first["tokens"] == ["On", "12.03.2024", "Mira", "paid", "0.10", "TRUE", "NA"]
    assert second["tokens"] == ["At", "14:30:00", "she", "left", "1234567890123", "1E-07"]
    assert not caplog.records


def test_dates_of_the_country_are_named_in_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["tokens", "tags", "no"], ["On", "O", MOMENT], [MOMENT, "B-DATE", MOMENT]):
        sheet.append(row)
    sheet["A3"].number_format = sheet["C3"].number_format = "mm-dd-yy"
    book.save(tmp_path / "t.xlsx")
    (example,) = read(tmp_path / "t.xlsx", {**TEXTS, "task": "tagging"})
    assert example["tokens"] == ["On", "2024-03-02 14:05:06"]
    note = (
        "t.xlsx:3: 1 date(s) or number(s) may not be read as they are shown, the first as '2024-03-02 14:05:06'; make"
    )
    assert note in caplog.text


def test_hidden_rows_are_named_in_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["text", "label"], ["So it is.", "a"], ["Not so.", "b"], ["Oh no.", "a"]):
        sheet.append(row)
    sheet.row_dimensions[9].hidden = True
    book.save(tmp_path / "t.xlsx")
    assert len(read(tmp_path / "t.xlsx", TEXTS)) == 3
    assert not caplog.records
    sheet.row_dimensions[3].hidden = True
    book.save(tmp_path / "t.xlsx")
    assert len(read(tmp_path / "t.xlsx", TEXTS)) == 3
    assert "t.xlsx:3: 1 hidden row(s) are read, such as those of a filter" in caplog.text


def test_excels_escapes_are_no_text() -> None:
    found = read(ODD_FILES / "x000d.xlsx", TEXTS)
    assert found[0]["tokens"] == ["The", "soup", "was", "warm", "and", "good", "."]


LABELS: dict[str, Any] = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "t.parquet": lambda frame, path: frame.to_parquet(path),
    "t.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "t.xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "t.ods": lambda frame, path: frame.to_excel(str(path), index=False),
    "excel.csv": lambda frame, path: frame.replace({True: "TRUE", False: "FALSE"}).to_csv(path, index=False),
}


@pytest.mark.parametrize("name", LABELS)
def test_truth_values_are_the_same_labels_in_all_formats(name: str, tmp_path: Path) -> None:
    frame = pandas.read_excel(ODD_FILES / "bool_labels.xlsx")
    LABELS[name](frame, tmp_path / name)
    settings: Settings = {**TEXTS, "type": "jsonl"} if name.endswith("jsonl") else TEXTS
    assert [example["label"] for example in read(tmp_path / name, settings)] == ["true", "false"] * 4


GUESSED = "n/a", "", "4,5 von 5"


@pytest.mark.parametrize("odd", GUESSED)
def test_a_score_that_is_missing_does_not_make_another_column_the_score(odd: str, tmp_path: Path) -> None:
    content = (ODD_FILES / "score_guess.csv").read_text().replace("day 7.;\n", f"day 7.;{odd}\n")
    path, settings = write(tmp_path / "data.csv", content), {**TEXTS, "task": "regression"}
    advice = "dataset_reader.on_error=skip leaves such rows out"
    assert problem(path, settings) == f":9: 'Rating' is {odd!r}; expected a number, such as 3.5. {advice}"
    scores = [example["score"] for example in read(path, settings | {"on_error": "skip"})]
    assert scores[:4] == [1.5, 3.5, 5.5, 2.5]
    assert len(scores) == 19


@pytest.mark.parametrize(
    "column",
    [
        [str(number) for number in range(7, 27)],  # running
        [str(number * 37 % 20) for number in range(20)],  # in another order
        [str(2 * number * number) for number in range(20)],  # a part of the rows
        [str(158221819562593 + 7919 * number) for number in range(20)],
        [f"{number % 28 + 1:02}.{number % 12 + 1:02}.2024" for number in range(20)],
        [f"2024-{number % 12 + 1:02}-01T10:00" for number in range(20)],
    ],
)
def test_what_only_names_rows_is_never_a_score_or_a_label(column: list[str], tmp_path: Path) -> None:
    rows = "".join(f"It was so on day {number}.;{cell}\n" for number, cell in enumerate(column))
    path = write(tmp_path / "data.csv", f"Review;X\n{rows}")
    for task in ("regression", "classification"):
        assert "no column" in problem(path, {**TEXTS, "task": task})


# Eight cells of a column with an unknown name, and whether they are taken for what the table lacks.
CELLS: list[tuple[str, list[str], bool]] = [
    ("text", ["so 1", "so 2", "so 3", *"abcde"], True),  # more than a quarter have several words
    ("text", ["so 1", "so 2", *"abcdef"], False),
    ("text", [f"so {number % 5}" for number in range(8)], True),  # more than half of them are different
    ("text", [f"so {number % 4}" for number in range(8)], False),
    ("score", ["1.5", "2.5", "1.5", "3.5", "4.5", *"xyz"], True),  # more than half are numbers
    ("score", ["1.5", "2.5", "1.5", "3.5", *"wxyz"], False),
    ("score", ["3", "0", "16", "1", "2", "4", "5", "6"], True),  # no running numbers
    ("score", ["3", "0", "15", "1", "2", "4", "5", "6"], False),
    ("label", [*"aabcdeff"], True),  # come again
    ("label", [*"aabcdefg"], False),
    ("label", [*"aaaaaaaa"], False),
    ("label", ["1.2.24"] * 2 + ["2.2.24"] * 2 + [*"xyxy"], True),  # not more than half are dates
    ("label", ["1.2.24"] * 3 + ["2.2.24"] * 2 + [*"xyx"], False),
]


@pytest.mark.parametrize(("what", "cells", "is_found"), CELLS)
def test_a_column_is_known_by_its_cells(what: str, cells: list[str], is_found: bool, tmp_path: Path) -> None:
    others = [f"It was so {number}." if what != "text" else "ab"[number % 2] for number in range(8)]
    rows = zip(["label" if what == "text" else "text", *others], ["X", *cells], strict=True)
    path = write(tmp_path / "data.csv", "".join(f"{other};{cell}\n" for other, cell in rows))
    settings = {**TEXTS, "task": "regression" if what == "score" else "classification", "on_error": "skip"}
    settings["delimiter"] = ";"
    if is_found:
        assert read(path, settings)
    else:
        assert f"no column {what!r}; the columns are " in problem(path, settings)


def test_more_labels_are_possible_too() -> None:
    found = problem(ODD_FILES / "label_guess.csv", TEXTS)
    assert "'Topic' (such as 'food'), 'Annotator' (such as 'AB')" in found


def test_columns_of_true_and_false_are_pointed_out(tmp_path: Path) -> None:
    rows = "".join(f"It was so on day {number}.,{number % 2},{number % 3 // 2}\n" for number in range(9))
    path = write(tmp_path / "data.csv", f"text,rude,loud\n{rows}")
    expected = "'rude', 'loud' seem to be true or false, one for each label; expected one column with the names of the"
    assert expected in problem(path, {**TEXTS, "task": "multi_label"})


def test_a_name_that_nobody_uses_may_come_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", "text,note,note,,label\nIt was so.,a,b,c,x\nOh.,d,e,,y\n")
    assert [example["label"] for example in read(path, TEXTS)] == ["x", "y"]
    first, second = build(TEXTS).unlabelled(str(path))
    assert first["others"] == {"note": "a", "note 3": "b", "column 4": "c", "label": "x"}
    assert second["others"] == {"note": "d", "note 3": "e", "label": "y"}
