"""Tables come back from `predict` as they were, with the results at their end; other inputs become tables."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import openpyxl.chart
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl.styles import Font

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.tables import table_files
from elmo_tasks.extras.tables.table_rows import result_table
from elmo_tasks.files.json_files import read_json
from tests.data_readers.readers import Settings, build, write

TEXTS = ["It rained, day 1.", "#N/A was all.", "It_x000D_ was so.", "=1+1 is two."]
BIG = 1582218195625938945


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Runs that have hardly learned anything."""
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "texts.csv", "Message,Category\nIt rains now.,a\nIt was so.,b\n")
    write(folder / "tokens.csv", "Word,Tag\nMira,B-PER\nleft,O\n")
    readers: dict[str, Settings] = {
        "texts": {"task": "classification", "columns": {"text": "Message", "label": "Category"}},
        "tokens": {"task": "tagging", "columns": {"tokens": "Word", "tags": "Tag"}, "tag_scheme": "BIOUL"},
    }
    models: dict[str, Settings] = {
        "texts": {"type": "text_classifier"},
        "tokens": {"type": "crf_tagger", "encoder": {"type": "stacked_bilstm", "hidden_sizes": [4]}},
    }
    for name, reader in readers.items():
        config = {
            "dataset_reader": {"type": "delimited", **reader},
            "train_data_path": str(folder / f"{name}.csv"),
            "validation_data_path": str(folder / f"{name}.csv"),
            "model": {**models[name], "embedder": {"words": {"size": 8}}},
            "data_loader": {"batch_size": 2},
            "trainer": {"num_epochs": 1, "trackers": [], "validation_metric": "-loss", "optimizer": {"type": "adam"}},
        }
        elmo_tasks.train(config, folder / name)
    return {name: str(folder / name) for name in readers}


def predict(run: str, source: Path, target: Path, *options: str) -> int:
    return cli.main(["predict", run, str(source), "--output", str(target), *options])


def workbook(path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Mails"
    sheet.append(["No", "Received", "Message", "Category", "Price", "Twice"])
    for number, text in enumerate(TEXTS, start=1):
        sheet.append([number, datetime.datetime(2024, 3, number), text, True, 4.5, f"=E{number + 1}*2"])
        sheet.cell(number + 1, 2).number_format = "DD.MM.YYYY"
        sheet.cell(number + 1, 3).data_type = "s"
        sheet.cell(number + 1, 5).number_format = '#,##0.00 "EUR"'
    sheet["A1"].font = sheet["F1"].font = Font(bold=True)
    sheet.column_dimensions["C"].width = 50
    book.save(path)
    return path


def cells(path: Path) -> list[list[tuple[Any, ...]]]:
    sheet = openpyxl.load_workbook(path)["Mails"]
    return [
        [(each.value, each.data_type, each.number_format, each.font.b) for each in row] for row in sheet.iter_rows()
    ]


def test_a_workbook_comes_back_with_two_more_columns(runs: dict[str, str], tmp_path: Path) -> None:
    source, target = workbook(tmp_path / "mails.xlsx"), tmp_path / "out.xlsx"
    assert predict(runs["texts"], source, target) == 0
    before, after = cells(source), cells(target)
    assert [row[:6] for row in after] == before
    assert [cell[0] for cell in after[0][6:]] == ["label", "probability"]
    assert after[0][6][3]  # bold, as the header row is
    assert all(row[6][0] in ("a", "b") and 0.5 <= row[7][0] <= 1 for row in after[1:])
    assert openpyxl.load_workbook(target)["Mails"].column_dimensions["C"].width == 50


def test_a_training_from_a_run_looks_for_its_columns_first(runs: dict[str, str], tmp_path: Path, caplog: Any) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    table = "Message,Category\nIt rains now.,a\nIt was so.,b\nIt rains.,a\nIt was hot.,b\n"
    source, target = write(tmp_path / "in.csv", table), tmp_path / "out.csv"
    assert predict(runs["texts"], source, target) == 0
    config = read_json(Path(runs["texts"], "config.json"), dict[str, Any], "a config")
    config |= {"dataset_reader": {"type": "delimited", "task": "classification"}, "train_data_path": str(target)}
    config |= {"validation_data_path": None, "trainer": config["trainer"] | {"validation_metric": "+accuracy"}}
    caplog.clear()
    for folds in (1, 2):  # which start anew, as the run has seen some of the rows
        elmo_tasks.train(config, tmp_path / str(folds), folds=folds, from_run=runs["texts"])
    assert f"{target}: UTF-8, separated by commas, text from 'Message', label from 'Category'" in caplog.messages
    configs = [read_json(path, dict[str, Any], "a config") for path in tmp_path.glob("**/config.json")]
    found = {"text": "Message", "label": "Category"}
    assert [each["dataset_reader"]["trained_columns"] for each in configs] == [found] * 4
    elmo_tasks.train(config, tmp_path / "1", folds=1, resume=True)  # finds the same columns


CSV = (
    'sep=;\r\nNr;Message;Note;Note\r\n007;"It rained; all day.\nSo it was.";x;"y"\r\n# left out\r\n8;Good.;;\r\n'
    "9;Kühl.\r\n"
)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-16"])
def test_lines_of_text_come_back(encoding: str, runs: dict[str, str], tmp_path: Path, capsys: Any) -> None:
    source, target = write(tmp_path / "in.csv", CSV.encode(encoding)), tmp_path / "out.csv"
    options = ["--on-error", "skip", "--set", "dataset_reader.comment=#"]
    assert predict(runs["texts"], source, target, *options) == 0
    assert "out.csv: UTF-8 with a mark, separated by semicolons" in capsys.readouterr().err
    written = target.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf")
    lines, given = written.decode("utf-8-sig").split("\r\n"), CSV.split("\r\n")
    assert lines[1] == f"{given[1]};label;probability"
    assert all(line.startswith(before) for line, before in zip(lines, given, strict=True))
    assert [lines[number] for number in (0, 3, 5, 6)] == ["sep=;", "# left out", "9;Kühl.;;;;", ""]
    assert lines[2].removeprefix(given[2]).split(";")[1] in ("a", "b")


@pytest.mark.parametrize(
    ("cells", "delimiter", "settings", "mark"),
    [
        (["2,5", "1.200,75", "x"], ";", {}, ","),
        (["2,5", "3"], "\t", {}, ","),
        (["2,5", "3.5"], ";", {}, "."),  # which may be either
        (["1,500", "3"], ";", {}, "."),
        (['"2,5"', "3"], ",", {}, "."),
        (["1,500", "3.5"], ";", {"decimal": ","}, ","),
        (["2,5", "3"], ";", {"decimal": "."}, "."),
    ],
)
def test_results_have_the_decimal_mark_of_the_table(
    cells: list[str], delimiter: str, settings: Settings, mark: str, tmp_path: Path
) -> None:
    rows = "".join(f"It rained.{delimiter}{cell}\n" for cell in cells)
    source = write(tmp_path / "in.txt", f"text{delimiter}price\n{rows}")
    reader = build({"type": "delimited", "task": "regression", **settings})
    scores = [2.538673, 1.3e-05, -4.0][: len(cells)]
    for name in (".csv", ".tsv"):
        target = tmp_path / f"out{name}"
        with result_table(str(target), reader, str(source)) as add:
            for line, score in enumerate(scores, start=2):
                add({"line": line, "score": score})
        lines = target.read_text("utf-8-sig").splitlines()
        assert f"2{mark}538673" in lines[1]
        assert f"1{mark}3e-05" in lines[2]
        again = build({"type": "delimited", "task": "regression"})
        assert [example["score"] for example in again.read(target)] == scores
    with result_table(str(tmp_path / "out.xlsx"), reader, str(source)) as add:
        add({"line": 2, "score": 2.5})
    assert openpyxl.load_workbook(tmp_path / "out.xlsx").active["C2"].value == 2.5


def test_a_parquet_file_keeps_its_types(runs: dict[str, str], tmp_path: Path) -> None:
    columns = {
        "id": pa.array([BIG, None], pa.int64()),
        "Message": pa.array(["It rained.", "It was so."]),
        "when": pa.array([datetime.date(2024, 3, 1), None]),
        "more": pa.array([[1, 2], []], pa.list_(pa.int8())),
    }
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    assert predict(runs["texts"], tmp_path / "in.parquet", tmp_path / "out.parquet") == 0
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.select([*columns]).equals(pa.table(columns))
    assert found.column_names == [*columns, "label", "probability"]
    assert predict(runs["texts"], tmp_path / "in.parquet", tmp_path / "out.xlsx") == 0
    (_, first, second) = openpyxl.load_workbook(tmp_path / "out.xlsx").active.values
    assert (first[0], first[2], second[0]) == (str(BIG), "2024-03-01", None)


def test_a_table_of_tokens_gets_a_tag_in_each_row(runs: dict[str, str], tmp_path: Path) -> None:
    content = "Word\tno\tTag\nMira\t1\tB-PER\nleft\t2\tO\n\n\nOslo\t3\tO\n"
    source, target = write(tmp_path / "in.tsv", content), tmp_path / "out.tsv"
    assert predict(runs["tokens"], source, target) == 0
    lines = target.read_text().splitlines()
    assert lines[0] == "Word\tno\tTag\ttag\tprobability"
    assert [line.rsplit("\t", 2)[0] for line in lines] == content.splitlines()
    found = [line.split("\t")[3:] for line in lines[1:]]
    assert [len(cells) for cells in found] == [2, 2, 0, 0, 2]
    assert all(tag in ("O", "U-PER") and 0 < float(share) <= 1 for tag, share in filter(None, found))


def results(*found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from ({"tokens": ["x"], "label": "a", "probabilities": {"a": 0.9}, **each} for each in found)


def as_table(path: Path, *found: dict[str, Any]) -> list[dict[str, Any]]:
    with result_table(str(path)) as add:
        for each in results(*found):
            add(each)
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".xlsx":
        names, *rows = openpyxl.load_workbook(path).active.values
        return [dict(zip(map(str, names), row, strict=True)) for row in rows]
    return pandas.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")


@pytest.mark.parametrize("text", ["#N/A", "=1+1", "a\r\nb", "_x000D_", "bell \x07", "'x", " "])
def test_texts_stay_texts_in_excel(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    as_table(path, {"id": text}, {"id": "Oh"})
    assert openpyxl.load_workbook(path).active["B2"].data_type == "s"
    settings = {"type": "delimited", "task": "classification", "columns": {"text": "label", "label": "label"}}
    first = next(iter(build(settings).unlabelled(str(path))))
    assert first["others"]["id"] == text


@pytest.mark.parametrize(
    ("ending", "given", "expected"),
    [
        (".xlsx", [10**15 - 1, 1 - 10**15, 0.5], [10**15 - 1, 1 - 10**15, 0.5]),
        (".xlsx", [10**15, -(10**15), True], ["1000000000000000", "-1000000000000000", True]),
        (".parquet", [2**63 - 1, None], [2**63 - 1, None]),
        (".parquet", [2**63, 1], ["9223372036854775808", "1"]),
        (".parquet", [2**53 - 1, 0.5], [2.0**53 - 1, 0.5]),
        (".parquet", [2**53, 0.5, None], ["9007199254740992", "0.5", None]),
        (".parquet", [1, True], ["1", "true"]),
        (".parquet", ["a", None], ["a", None]),
    ],
)
def test_numbers_keep_their_digits(ending: str, given: list[Any], expected: list[Any], tmp_path: Path) -> None:
    found = [row["id"] for row in as_table(tmp_path / f"t{ending}", *({"id": each} for each in given))]
    assert [(type(each), each) for each in found] == [(type(each), each) for each in expected]


def test_more_rows_than_excel_takes_are_in_further_sheets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table_files, "_MOST_ROWS", 2)
    path = tmp_path / "t.xlsx"
    as_table(path, *({"id": number} for number in range(4)))
    sheets = {sheet.title: [row[2] for row in sheet.values] for sheet in openpyxl.load_workbook(path)}
    assert sheets == {"results": ["id", 0], "results 2": [1, 2], "results 3": [3]}
    assert caplog.messages == [
        f"{path}: the rows from 3 on are in the sheet 'results 2'",
        f"{path}: the rows from 5 on are in the sheet 'results 3'",
    ]


def test_what_excel_does_not_take_is_known_before_or_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = as_table(tmp_path / "t.xlsx", *({"tokens": ["x" * count]} for count in (32_767, 32_768, 40_000)))
    assert [len(row["text"]) for row in rows] == [32_767] * 3
    assert (
        "has only the first 32,767 characters of 2 text(s), as Excel takes no more, the first in row 3" in caplog.text
    )
    source = write(tmp_path / "in.csv", f"text,label\n{'x' * 32_767},b\n{'x' * 32_768},a\n")
    reader = build({"type": "delimited", "task": "classification"})
    table, expected = (
        result_table(str(tmp_path / "u.xlsx"), reader, str(source)),
        r"in\.csv:3: a cell has more than 32,767",
    )
    with pytest.raises(ElmoTasksError, match=expected), table:
        pytest.fail("the work has begun")


def test_charts_that_are_lost_are_named(runs: dict[str, str], tmp_path: Path, capsys: Any) -> None:
    book = openpyxl.load_workbook(workbook(tmp_path / "plain.xlsx"))
    chart = openpyxl.chart.BarChart()
    chart.add_data(openpyxl.chart.Reference(book["Mails"], min_col=5, min_row=1, max_row=4))
    book["Mails"].add_chart(chart, "J2")
    book.save(tmp_path / "chart.xlsx")
    for name, count in {"plain": 0, "chart": 1}.items():
        assert predict(runs["texts"], tmp_path / f"{name}.xlsx", tmp_path / f"{name}_out.xlsx") == 0
        assert capsys.readouterr().err.count("charts and pictures") == count


def test_a_row_of_several_spans_keeps_its_cells(runs: dict[str, str], tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.csv", "id,Word,label\n007,Mira left Oslo,x\n8,Oh,y\n"), tmp_path / "out.csv"
    assert predict(runs["tokens"], source, target, "--set", "dataset_reader.token_per_line=false") == 0
    rows = pandas.read_csv(target, dtype=str, keep_default_na=False).to_dict("records")
    assert {(row["id"], row["Word"], row["label"]) for row in rows} == {
        ("007", "Mira left Oslo", "x"),
        ("8", "Oh", "y"),
    }
