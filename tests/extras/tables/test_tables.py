"""Tables as people have them: encodings, separators, quotes, decimal commas, spreadsheets, and columns of any names."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ElmoTasksError
from tests.data_readers.readers import ODD_FILES, TEXTS, Settings, build, problem, read, write, write_hub

SCORES: Settings = {**TEXTS, "task": "regression"}
TEXTS_AND_LABELS = [
    (f'Das Essen war gut; müde „Gäste“, {number} Sterne\nund "mehr"', "süß" if number % 3 else "öde, schlecht")
    for number in range(12)
]
ROWS = [(str(number), f"2024-01-0{number % 9 + 1}", *row) for number, row in enumerate(TEXTS_AND_LABELS, start=100)]
HEADER = ("Nr", "Datum", "Kommentar", "Urteil")
FRAME = pandas.DataFrame(ROWS, columns=HEADER)


def as_text(delimiter: str, encoding: str, before: str = "", **options: Any) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter, **options).writerows([HEADER, *ROWS])
        path.write_bytes((before + stream.getvalue()).encode(encoding))

    return save


# How people save a table, and what the log says of it.
KINDS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "excel.csv": (as_text(";", "cp1252"), "Windows-1252, separated by semicolons"),
    "sep.csv": (as_text(";", "cp1252", "sep=;\r\n"), "Windows-1252, separated by semicolons"),
    "unicode.txt": (as_text("\t", "utf-16"), "UTF-16, separated by tabs"),
    "big_end.txt": (as_text("\t", "utf-16-be"), "UTF-16BE, separated by tabs"),
    "marked.csv": (as_text(",", "utf-8-sig"), "UTF-8, separated by commas"),
    "bars.dat": (as_text("|", "utf-8", lineterminator="\n"), "UTF-8, separated by bars"),
    "all_quoted.csv": (as_text(",", "utf-8", quoting=csv.QUOTE_ALL), "UTF-8, separated by commas"),
    "book.xlsx": (lambda path: FRAME.to_excel(path, index=False), ""),
    "book.ods": (lambda path: FRAME.to_excel(path, index=False, engine="odf"), ""),
    "table.parquet": (lambda path: FRAME.astype({"Nr": int}).to_parquet(path), ""),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_table_is_read_without_settings(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    save, says = KINDS[name]
    save(tmp_path / name)
    examples = read(tmp_path / name, TEXTS | {"tokenizer": "whitespace"})
    assert [(example["tokens"], example["label"]) for example in examples] == [
        (text.split(), label) for text, label in TEXTS_AND_LABELS
    ]
    found = f"{says}, text from 'Kommentar', label from 'Urteil'".removeprefix(", ")
    assert f"{tmp_path / name}: {found}" in caplog.messages
    caplog.clear()
    read(tmp_path / name, TEXTS | {"columns": {"label": "Urteil"}})  # one of them is found
    assert f"{tmp_path / name}: {found}" in caplog.messages
    named = TEXTS | {"columns": {"text": "Kommentar", "label": "Nr"}}
    assert [example["label"] for example in read(tmp_path / name, named)] == [row[0] for row in ROWS]


def test_odd_files(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    first, second = read(ODD_FILES / "excel_cp1252.csv", TEXTS)
    assert (first["tokens"], first["label"]) == (["Sehr", "gut", ";", "wirklich", "schön"], "gut")
    assert (second["tokens"][1], second["label"]) == ("\u2013", "schlecht")
    assert [example["score"] for example in read(ODD_FILES / "decimal_comma.csv", SCORES)] == [4.5, 1.0]
    assert f"{ODD_FILES / 'decimal_comma.csv'}: UTF-8, separated by semicolons, decimal commas" in caplog.messages
    expected = ":2: a NUL byte, which is not text; export the table again, or delete the line"
    assert problem(ODD_FILES / "null_character.csv", TEXTS) == expected
    assert [example["label"] for example in read(ODD_FILES / "null_character.csv", TEXTS | {"on_error": "skip"})] == [
        "neg"
    ]


POLISH = "tekst;ocena\n" + "".join(f"Bardzo źle, żółta {n} zupa;{'świetnie' if n % 2 else 'źle'}\n" for n in range(6))
UMLAUTS = "text;label\nEin Frühstück für Männer;süß\nEin anderes;bitter\n"
TWO = "no column 'text' and no column 'label'; the columns are 'a' (such as 'Gut'), 'b' (such as 'x')"
ENCODINGS = (
    ": is not UTF-8; it can be cp1252 ('{}') or cp1250 ('{}') or cp1251 ('{}') or cp1254 ('{}') or mac_roman ('{}'). "
    "Choose one: --set dataset_reader.encoding=cp1252, or another"
)
POLISH_PROBLEM = ENCODINGS.format("Ÿle,", "źle,", "џle,", "Ÿle,", "üle,")
UMLAUT_PROBLEM = ENCODINGS.format("FrŸhstŸck", "Frźhstźck", "Frџhstџck", "FrŸhstŸck", "Frühstück")
TURKISH = "text,label\nYemekler güzeldi,iyi\nŞikayet ettim,kötü\n"
ICELANDIC = "text,label\nÞetta er mjög gott og þjónustan líka,gott\nÉg fékk kalda súpu,vont\n"
TURKISH_PROBLEM = ENCODINGS.format("Þikayet", "Ţikayet", "Юikayet", "Şikayet", "ﬁikayet")
ICELANDIC_PROBLEM = ENCODINGS.format("Þetta", "Ţetta", "Юetta", "Şetta", "ﬁetta")
NUMBER = ":1: '1,500' can be 1.500 (,) or 1500 (.). Set --set dataset_reader.decimal=, or ."
# A table, its settings, the whole error, and the settings that it names, with which the table is read
REFUSED: list[tuple[bytes, Settings, str, Settings, list[Any]]] = [
    (POLISH.encode("cp1250"), TEXTS,
     POLISH_PROBLEM, {"encoding": "cp1250"}, ["źle", "świetnie"] * 3),
    (UMLAUTS.encode("mac_roman"), TEXTS,
     UMLAUT_PROBLEM, {"encoding": "mac_roman"}, ["süß", "bitter"]),
    (TURKISH.encode("cp1254"), TEXTS,
     TURKISH_PROBLEM, {"encoding": "cp1254"}, ["iyi", "kötü"]),
    (ICELANDIC.encode("cp1252"), TEXTS,
     ICELANDIC_PROBLEM, {"encoding": "cp1252"}, ["gott", "vont"]),
    ("Gut, nett;gut\nSchlecht, so;übel\n".encode(), {**TEXTS, "header": False, "columns": {"text": 0, "label": 1}},
     ": can be separated by commas ('Gut', ' nett;gut') or semicolons ('Gut, nett', 'gut'). "
     "Set --set 'dataset_reader.delimiter=,' or --set 'dataset_reader.delimiter=;'", {"delimiter": ";"},
     ["gut", "übel"]),
    (b"text;score\nOne;1,500\nTwo;2,250\n", SCORES,
     NUMBER, {"decimal": ","}, [1.5, 2.25]),
    (b"text;score\nOne;1,500\nTwo;2,250\n", SCORES,
     NUMBER, {"decimal": "."}, [1500, 2250]),
    (b"text;score\nOne;2.155\nTwo;19,47\n", SCORES,
     ":1: '19,47' has a decimal comma and '2.155' perhaps a decimal point. Set --set dataset_reader.decimal=, or .",
     {"decimal": ","}, [2155, 19.47]),
    (b"Text,Label,LABEL\nSo it is,x,1\nNot so,y,2\nOh no,x,1\n", TEXTS,
     ":1: no column 'label'; the columns are 'Text', 'Label' (such as 'x'), 'LABEL' (such as '1'); 'Label' or 'LABEL' "
     "can be the label. Choose them, for example: --set dataset_reader.columns.label=Label",
     {"columns": {"label": "Label"}}, ["x", "y", "x"]),
    (b"a,b\nGut,x\nOh,y\n", TEXTS,
     f":1: {TWO}; 'a' or 'b' can be the label. Choose them, for example: --set dataset_reader.columns.text=a --set "
     "dataset_reader.columns.label=b",
     {"columns": {"text": "a", "label": "b"}}, ["x", "y"]),
    (b'{"text": "Gut", "label": "x"}\n{"text": "Oh, so, it, is", "label": "y"}\n', TEXTS,
     ":1: this is JSON, not a table; set --set dataset_reader.type=jsonl, or dataset_reader.type=spans for an export "
     "of an annotation tool", {"type": "jsonl"}, ["x", "y"]),
    (b"text,my id,star\nOne,1,2\nTwo,2,3\n", TEXTS,
     ":1: no column 'label'; the columns are 'text', 'my id' (such as '1'), 'star' (such as '2'); 'my id' or "
     "'star' can be the label. Choose them, for example: --set 'dataset_reader.columns.label=my id'",
     {"columns": {"label": "my id"}}, ["1", "2"]),
    (b"So it is,x\nNot at all,y\nIt was so,x\n", TEXTS,
     ":1: 'x' is the name of a column here and a label in other rows; if this is not a header row: "
     "--set dataset_reader.header=false --set dataset_reader.columns.text=0 --set dataset_reader.columns.label=1",
     {"header": False, "columns": {"text": 0, "label": 1}}, ["x", "y", "x"]),
    (b"x,It rains,All day\ny,It snows,On top\nx,It pours,We wait\n", TEXTS,
     ":1: no column 'text' and no column 'label'; the columns are 'x' (such as 'y'), 'It rains' (such as 'It snows'), "
     "'All day' (such as 'On top'); 'It rains' or 'All day' can be the text. "
     "Choose them, for example, if this is not a header row: "
     "--set dataset_reader.header=false --set dataset_reader.columns.text=1 --set dataset_reader.columns.label=0",
     {"header": False, "columns": {"text": 1, "label": 0}}, ["x", "y", "x"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "settings", "expected", "remedy", "values"), REFUSED, ids=lambda value: "")
def test_two_readings_are_an_error_that_names_both_and_the_setting(
    content: bytes, settings: Settings, expected: str, remedy: Settings, values: list[Any], tmp_path: Path
) -> None:
    path = write(tmp_path / "data.csv", content)
    assert problem(path, settings) == expected
    field = "score" if settings is SCORES else "label"
    assert [example[field] for example in read(path, settings | remedy)] == values


TITLES = {
    "full.csv": "Survey 2026,,\nby Anna,,\ntext,label,day\nGood,x,1\nBad,y,2\nOh,x,3\n",
    "short.csv": "Survey, May 2026\n\ntext;label;day\nGood;x;1\nBad;y;2\nOh;x;3\n",
    "other_names.csv": "Survey of May\nby Anna\nWhat it was;Kind;Day\nIt rains.;x;1\nIt was so.;y;2\nNo, no.;x;3\n",
}


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("needs_labels", [True, False])
def test_a_title_above_the_header_row_is_pointed_out(name: str, needs_labels: bool, tmp_path: Path) -> None:
    path = write(tmp_path / name, TITLES[name])

    def labels(settings: Settings) -> list[str]:
        reader = build(TEXTS | settings)
        examples = reader.read(path) if needs_labels else reader.unlabelled(str(path))
        return [example["tokens"][0] for example in examples]

    with pytest.raises(ElmoTasksError, match=r":1: 'Survey.* is above .*: --set dataset_reader\.skip_rows=2"):
        labels({})
    assert len(labels({"skip_rows": 2})) == 3
    if name != "other_names.csv":
        with pytest.raises(ElmoTasksError, match=r"dataset_reader\.skip_rows=2"):
            labels({"columns": {"text": "text", "label": "day"}})


def test_a_header_row_below_a_title_of_a_sheet(tmp_path: Path) -> None:
    path = ODD_FILES / "title_rows.xlsx"
    assert problem(path, TEXTS) == (
        ":1: 'Survey of May' is above what seems to be the header row, 'No', 'text', 'label'. Skip what is above: "
        "--set dataset_reader.skip_rows=2"
    )
    found = read(path, TEXTS | {"skip_rows": 2})
    assert [(example["line"], example["label"]) for example in found] == [
        (n, ("good", "bad")[n % 2]) for n in range(4, 12)
    ]
    with_index = write(tmp_path / "index.csv", b",a,b\n0,Good,x\n1,Bad,y\n")  # as pandas writes it
    assert "skip" not in problem(with_index, TEXTS)


WITHOUT_TITLE = "Review,Rating\nIt was good.,a\nIt was bad.,b\nIt rained.,a\nIt was so.,b\n"


@pytest.mark.parametrize("name", ["new.csv", "new.xlsx"])
def test_rows_that_are_left_out_of_a_table_without_a_title_are_named(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "new.csv", WITHOUT_TITLE)
    if name == "new.xlsx":
        pandas.read_csv(path).to_excel(path := tmp_path / name, index=False)
    named = {"columns": {"text": "Review", "label": "Rating"}}
    names = {"trained_columns": named["columns"]}
    for settings in (named, names):
        for skip in (1, 2):
            expected = "names of the columns are in row 1, 'Review', 'Rating', which skip_rows leaves out. Set --set "
            assert f"{expected}dataset_reader.skip_rows=0" in problem(path, TEXTS | settings | {"skip_rows": skip})
        with pytest.raises(ElmoTasksError, match=r"names of the columns are in row 1, .*skip_rows=0"):
            list(build(TEXTS | settings | {"skip_rows": 5}).unlabelled(str(path)))
    assert not caplog.messages
    for header, skip, first in ((True, 2, 4), (False, 2, 3), (False, 5, 0)):
        caplog.clear()
        settings = TEXTS | {"header": header, "columns": {"text": 0, "label": 1}, "skip_rows": skip}
        found = build(settings).unlabelled(str(path))
        assert [example["line"] for example in found] == ([*range(first, 6)] if first else [])
        expected = f"{path}: skip_rows leaves out row 1, 'Review', 'Rating'; if this is not a title, set --set "
        assert caplog.messages == [f"{expected}dataset_reader.skip_rows=0"]
    caplog.clear()
    titled = write(tmp_path / "titled.csv", "Review,of May,\n,,\nReview,Rating,Day\nIt was good.,a,1\n")
    assert read(titled, TEXTS | named | {"skip_rows": 2})[0]["label"] == "a"
    assert not caplog.messages


def test_sheets_and_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    with pandas.ExcelWriter(path) as writer:
        for name in ("Januar", "Februar"):
            FRAME.assign(Urteil=name).to_excel(writer, sheet_name=name, index=False)
    expected = ": the sheets with cells are 'Januar', 'Februar'. Set --set 'dataset_reader.sheet=Januar', or another"
    assert problem(path, TEXTS) == problem(path, TEXTS | {"sheet": "March"}) == expected
    named = TEXTS | {"columns": {"label": "Urteil"}}
    assert {example["label"] for example in read(path, named | {"sheet": "Februar"})} == {"Februar"}
    for name in ("a.xlsx", "a.xls", "a.ods", "a.parquet"):
        assert ": is damaged, or not .xlsx, .ods or .parquet (" in problem(
            write(tmp_path / name, path.read_bytes()[:99]), TEXTS
        )


@pytest.mark.parametrize("name", ["book.xlsx", "book.ods", "table.parquet"])
def test_rows_of_sheets_are_numbered_as_the_program_shows_them(name: str, tmp_path: Path) -> None:
    def save(frame: pandas.DataFrame) -> Path:
        write_sheet = frame.to_parquet if name.endswith("parquet") else frame.to_excel
        write_sheet(str(tmp_path / name), index=False)
        return tmp_path / name

    named = TEXTS | {"columns": {"text": "Kommentar", "label": "Urteil"}}
    for count in (1, 2, len(FRAME)):  # the header row is 1
        assert [each["line"] for each in read(save(FRAME[:count]), named)] == [*range(2, count + 2)]
    assert problem(save(FRAME[:0]), named) == ": has no example"
    for row in (0, 2, len(FRAME) - 1):
        broken = FRAME.copy()
        broken.loc[row, "Urteil"] = ""
        assert problem(save(broken), named).startswith(f":{row + 2}: 'Urteil' is ''; expected")
    if name.endswith("xlsx"):
        FRAME.to_excel(tmp_path / name, index=False, header=False)
        unnamed = TEXTS | {"header": False, "columns": {"text": 2, "label": -1}}
        assert [each["line"] for each in read(tmp_path / name, unnamed)] == [*range(1, len(FRAME) + 1)]


def test_without_the_packages_for_spreadsheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.to_excel(tmp_path / "book.xlsx", index=False)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ElmoTasksError, match=r"Install what reads it: pip install 'elmo-tasks\[tables\]'"):
        read(tmp_path / "book.xlsx", TEXTS)


def test_lists_of_a_parquet_file_are_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.parquet"
    pandas.DataFrame({"tokens": [["New York", "sleeps"]], "tags": [["B-LOC", "O"]]}).to_parquet(path)
    settings = {**TEXTS, "task": "tagging", "token_per_line": False}
    (example,) = read(path, settings)
    assert (example["tokens"], example["tags"]) == (["New York", "sleeps"], ["B-LOC", "O"])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["4,5", "1,0", "-3"], [4.5, 1.0, -3.0]),
        (["1.234,5", "7,25"], [1234.5, 7.25]),
        (["1,234.5", "7.25"], [1234.5, 7.25]),
        (["0.125", "0.250"], [0.125, 0.25]),
        (["1,5", "0,25"], [1.5, 0.25]),
        (["4,5", "k.A.", "2,25"], [4.5, 2.25]),  # one that is not a number does not change how the others are written
    ],
)
def test_numbers(cells: list[str], numbers: list[float], tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", "text;score\n" + "".join(f"One;{cell}\n" for cell in cells))
    on_error = "fail" if len(cells) == len(numbers) else "skip"
    assert [example["score"] for example in read(path, SCORES | {"on_error": on_error})] == numbers


def test_commas_and_points_in_one_column_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", "text;score\nOne;4,5\nTwo;4.5\n")
    assert problem(path, SCORES).startswith(":1: '4,5' has a decimal comma and '4.5' perhaps a decimal point")


def test_comments_say_nothing_about_the_format(tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", "# saved, on Monday\ntext;label\nOne, two;x\n# more\nThree;y\n")
    assert [example["label"] for example in read(path, TEXTS | {"comment": "#"})] == ["x", "y"]


def test_errors_of_formulas_are_empty_cells_and_dates_are_no_texts(tmp_path: Path) -> None:
    rows = [
        (pandas.Timestamp(2024, 1, number), f"It rained, day {number}.", "ab"[number % 2]) for number in (1, 2, 3, 4)
    ]
    rows += [(pandas.Timestamp(2024, 1, 5), "#REF!", "a"), (None, "A day.", "#N/A"), (None, "Not a day.", "nan")]
    pandas.DataFrame(rows, columns=["When", "What", "Kind"]).to_excel(tmp_path / "days.xlsx", index=False)
    examples = read(tmp_path / "days.xlsx", TEXTS | {"on_error": "skip"})
    assert [example["label"] for example in examples] == ["b", "a", "b", "a", "nan"]


def test_a_run_reads_other_tables_by_the_columns_that_it_learned_from(tmp_path: Path) -> None:
    path = write(
        tmp_path / "train.csv", "No,Report,Kind\n" + "".join(f"{n},Day {n}.,{'ab'[n % 2]}\n" for n in range(9))
    )
    config = DatasetReaderConfig.model_validate(TEXTS).trained_on(path)
    for table in (
        "No,Remark,Report\n1,by the night,He fell.\n2,by the day,He slept.\n",
        "report\nHe fell.\nHe slept.\n",
    ):
        found = config.build().unlabelled(str(write(tmp_path / "new.csv", table)))
        assert [example["tokens"][1] for example in found] == ["fell", "slept"]
    other = config.build().unlabelled(str(write(tmp_path / "other.csv", "Nr,Note\n1,He fell.\n2,He slept.\n")))
    assert [example["tokens"][1] for example in other] == ["fell", "slept"]


def test_a_damaged_line_within_a_sentence_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "tokens.tsv", "Mary\tB-PER\nle\0ft\tO\n.\tO\n\nBo\tB-PER\n")
    settings = {"type": "delimited", "task": "tagging", "header": False, "columns": {"tokens": 0, "tags": 1}}
    assert problem(path, settings) == ":2: a NUL byte, which is not text; export the table again, or delete the line"
    assert [example["tokens"] for example in read(path, settings | {"on_error": "skip"})] == [["Bo"]]


def test_a_table_of_tokens_without_empty_lines_is_one_sentence_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    columns = {"tokens": "Token", "tags": "Tag"}
    settings = {"type": "delimited", "task": "tagging", "columns": columns}
    for count in (150, 151):
        rows = "".join(f"{number // 9}\tword\tO\n" for number in range(count))
        path = write(tmp_path / f"{count}.tsv", f"Satz\tToken\tTag\n{rows}")
        assert len(read(path, settings)) == 1
        assert ("a sentence of 151 lines, without an empty line" in caplog.text) == (count == 151)
    caplog.clear()
    assert len(read(path, settings | {"columns": columns | {"sentence": "Satz"}})) == 17
    assert not caplog.records
    assert len(read(ODD_FILES / "gmb_like.csv", settings | {"columns": columns | {"tokens": "Word"}})) == 1
    assert "gmb_like.csv: a sentence of 19 lines, without an empty line; if a column has" in caplog.text


def test_blanks_before_quotes_and_header_rows_between_others(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.csv", 'id, text, label\n1, "So, it is.", "a"\n2, "He said ""no"".", b\n'), TEXTS)
    assert [(example["tokens"][:3], example["label"]) for example in found] == [
        (["So", ",", "it"], "a"), (["He", "said", '"'], "b")]  # fmt: skip
    path = write(tmp_path / "b.csv", "text,label\nGood.,1\n\ntext,label\nBad.,0\n")
    assert problem(path, TEXTS) == ":4: the header row again, as in files that were joined; delete it"
    assert [example["line"] for example in read(path, TEXTS | {"on_error": "skip"})] == [2, 5]


def test_a_spreadsheet_with_the_name_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", (ODD_FILES / "bool_labels.xlsx").read_bytes())
    assert problem(path, TEXTS) == ": is a spreadsheet or an archive; name it as one, such as .xlsx"


def test_a_single_column_has_commas_in_its_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "new.csv", "Text\nWarm, funny and short.\nNo; not at all, no.\nCold.\n")
    assert [example["tokens"][0] for example in build(TEXTS).unlabelled(str(path))] == ["Warm", "No", "Cold"]


@pytest.mark.parametrize("line", ['Er sagte ""ja"" dazu', "so\twar es"])
def test_quotes_between_tabs(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "data.txt", f'text\tlabel\n"{line}"\tx\n  \nGut "so"\ty\n')
    first, second = read(path, TEXTS | {"tokenizer": "whitespace"})
    assert first["tokens"] == line.replace('""', '"').split()
    assert second["tokens"] == ["Gut", '"so"']


def test_a_table_in_another_encoding_than_the_one_of_the_run_is_refused(tmp_path: Path) -> None:
    settings = TEXTS | {"encoding": "cp1252"}
    path = write(tmp_path / "data.csv", "text,label\nSüß.,x\nOh.,y\n")
    assert problem(path, settings) == ": is UTF-8, not cp1252; set --set dataset_reader.encoding=null"
    for content in (path.read_text(encoding="utf-8").encode("cp1252"), b"text,label\nS.,x\nOh.,y\n"):
        assert len(read(write(path, content), settings)) == 2


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (0, "One"),
        (2, "Three"),
        (-3, "One"),
        (-1, "Three"),
        (3, "3 column(s); expected at least 4"),
        (-4, "3 column(s)"),
    ],
)
def test_a_column_is_counted_from_either_side(column: int, found: str, tmp_path: Path) -> None:
    path = write(tmp_path / "data.csv", "One,x,Three\nFour,y,Six\n")
    settings = TEXTS | {"header": False, "delimiter": ",", "columns": {"text": column, "label": 1}}
    if " " in found:
        assert found in problem(path, settings)
    else:
        assert read(path, settings)[0]["tokens"] == [found]
        blank = write(tmp_path / "blank.csv", ",x,\n")
        assert problem(blank, settings).startswith(f":1: column {column} is ''; expected a text")


def test_a_row_of_a_hub_data_set_is_a_sentence(tmp_path: Path) -> None:
    source = write_hub(tmp_path / "hub", [{"tokens": ["Mary"], "tags": ["O"], "n": 1}])
    settings = TEXTS | {"task": "tagging", "columns": {"tokens": "tokens", "tags": "tags", "sentence": "n"}}
    assert problem(source, settings) == ": 'columns' names one of the sentence; a row of a hub data set is a sentence"


def test_a_spreadsheet_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.to_excel(tmp_path / "a.xlsx", index=False)
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "1e-9")
    assert problem(tmp_path / "a.xlsx", TEXTS) == ": unpacks to far more than a spreadsheet"


def test_an_encoding_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="not an encoding; expected a name such as 'cp1252' or 'utf-8'"):
        DatasetReaderConfig.model_validate(TEXTS | {"encoding": "windows"})
