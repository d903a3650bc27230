"""Folders of parts: shards, resuming, settings, kills; the same files however the work is shared."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError, IncompleteError
from elmo_tasks.extras.engines.parts import PartsFolder, find_units
from tests.stopping import start_warm


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"Line {number} of the first text. It rained.\n" for number in range(40)))
    (folder / "b.jsonl").write_text('{"id": "x", "tokens": ["Orla", "left"]}\n{"text": ""}\n{"text": "She sang."}\n')
    return folder


@pytest.fixture
def arguments(texts: Path, sample_folder: Path) -> list[str]:
    return ["embed", str(texts), "--bilm", str(sample_folder / "bilm"), "--part-tokens", "30", "--quiet"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_shards_make_the_files_of_one_process(arguments: list[str], tmp_path: Path) -> None:
    one, several = tmp_path / "one", tmp_path / "several"
    assert cli.main([*arguments, "--output", f"{one}/"]) == 0
    assert len(contents(one)) > 7
    for number in range(1, 4):
        assert cli.main([*arguments, "--output", f"{several}/", "--check"]) == 1
        assert cli.main([*arguments, "--output", f"{several}/", "--shard", f"{number}/3"]) == 0
    assert cli.main([*arguments, "--output", f"{several}/", "--check"]) == 0
    assert contents(several) == contents(one)


def test_files_without_rows_have_parts_without_rows(arguments: list[str], texts: Path, tmp_path: Path) -> None:
    (texts / "a0.txt").write_text("\n\n")
    output = tmp_path / "out"
    assert cli.main([*arguments, "--output", f"{output}/"]) == 0
    assert cli.main([*arguments, "--output", f"{output}/", "--check"]) == 0
    found = pyarrow.dataset.dataset(output, format="parquet").to_table()
    assert {"a.txt", "b.jsonl"} == set(found["source"].to_pylist())
    (empty,) = (pq.read_table(path) for path in output.glob("a0.txt-*"))
    assert (len(empty), empty.schema) == (0, found.schema)


def test_the_first_ten_missing_parts_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Orla left.\n" * 13)
    units = list(find_units([tmp_path / "a.txt"], tokens=1))
    folder = PartsFolder(tmp_path / "out", {"layers": "top"})
    assert folder.process(units[1:2], lambda table: table) == 0
    for given, missing, more in ((units, [1, *range(3, 12)], "\n  and 2 more"), (units[:11], [1, *range(3, 12)], "")):
        lines = "".join(f"\n  a.txt, from line {line}" for line in missing)
        with pytest.raises(IncompleteError) as error:
            folder.check_complete(given)
        assert str(error.value) == f"{folder.path}: {10 + 2 * bool(more)} parts missing:{lines}{more}"
    with pytest.raises(IncompleteError, match=r"out: 1 part missing:\n  a\.txt, from line 3$"):
        folder.check_complete(units[1:3])
    folder.check_complete(units[1:2])


def test_settings_that_are_missing_are_other_settings(tmp_path: Path) -> None:
    (tmp_path / "_manifest.json").write_text('{"layers": "top"}')
    for settings, problem in (
        ({"layers": "top", "pool": "max"}, "pool = None; got 'max'"),
        ({}, "layers = 'top'; got None"),
    ):
        with pytest.raises(ElmoTasksError, match=f"its parts were made with {problem}. Use the same settings, or"):
            PartsFolder(tmp_path, settings).check_settings()
    PartsFolder(tmp_path, {"layers": "top"}).check_settings()
    (tmp_path / "_manifest.json").rename(tmp_path / "a.parquet")
    with pytest.raises(ElmoTasksError, match=r"has a\.parquet, but no _manifest\.json; choose another folder"):
        PartsFolder(tmp_path, {"layers": "top"}).check_settings()


def test_settings_that_change_meanwhile(tmp_path: Path) -> None:
    """Another process may begin at the same moment, with others."""
    (tmp_path / "a.txt").write_text("Orla left.\n")
    folder = PartsFolder(tmp_path / "out", {"layers": "top"})

    def function(table: pa.Table) -> pa.Table:
        folder.path.mkdir()
        (folder.path / "_manifest.json").write_text('{"layers": "mix"}')
        return table

    with pytest.raises(ElmoTasksError, match="its parts were made with layers = 'mix'; got 'top'"):
        folder.process(list(find_units([tmp_path / "a.txt"])), function)
    assert not list(folder.path.glob("*.parquet"))


def test_settings_that_turn_out_to_be_wrong_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Orla left.\n")

    def function(table: pa.Table) -> pa.Table:
        raise ElmoTasksError("layers: got '7'")

    with pytest.raises(ElmoTasksError, match="got '7'"):
        PartsFolder(tmp_path / "out", {"layers": "7"}).process(list(find_units([tmp_path / "a.txt"])), function)
    assert not (tmp_path / "out").exists()


def test_parts_are_compressed_and_only_numbers_of_vectors_have_no_dictionary(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Orla left.\n\nTavo sang.\n")
    folder = PartsFolder(tmp_path / "out", {})
    vectors = pa.array([[0.5, 1.0], [2.0]], pa.list_(pa.float32()))
    results = pa.table({"id": ["a", "a"], "vectors": vectors, "error": [None, "none"]})
    assert folder.process(list(find_units([tmp_path / "a.txt"])), lambda table: results) == 1
    (part,) = folder.path.glob("*.parquet")
    assert pq.read_table(part).equals(results)
    group = pq.read_metadata(part).row_group(0)
    for column, is_plain in ((group.column(0), True), (group.column(1), False)):
        assert column.compression == "ZSTD"
        assert ("RLE_DICTIONARY" in column.encodings, column.is_stats_set) == (is_plain, is_plain)


def test_a_part_has_all_tables_of_its_unit(tmp_path: Path) -> None:
    texts = [f"{number}{' line' * 20_000}"[:100_000] for number in range(9)]  # of 400,000 bytes in a table
    (tmp_path / "a.txt").write_text("\n".join(texts))
    folder, lengths = PartsFolder(tmp_path / "out", {}), []

    def function(table: pa.Table) -> pa.Table:
        lengths.append(len(table))
        return table

    folder.process(list(find_units([tmp_path / "a.txt"])), function)
    assert lengths == [4, 4, 1]
    (part,) = folder.path.glob("*.parquet")
    assert pq.read_table(part)["text"].to_pylist() == texts


def test_results_below_the_input_are_not_read(arguments: list[str], texts: Path) -> None:
    for _ in range(2):
        assert cli.main([*arguments, "--output", f"{texts / 'vectors'}/"]) == 0
        names = {name.partition("-")[0] for name in contents(texts / "vectors")}
        assert names == {"a.txt", "b.jsonl"}
    assert cli.main(["embed", str(texts / "vectors"), "--output", f"{texts / 'vectors'}/"]) == 2


def test_an_error_keeps_the_parts_before_it(
    arguments: list[str], texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(texts / "b.jsonl", "a") as stream:
        stream.write('{"txt": "wrong"}\n')
    output = tmp_path / "out"
    assert cli.main([*arguments, "--output", f"{output}/"]) == 2
    assert "b.jsonl:4: the keys are ['txt']; expected either 'text' or 'tokens'" in capsys.readouterr().err
    assert contents(output)
    assert not list(output.glob("b.jsonl*"))
    record = [each for each in arguments if each != "--quiet"]
    assert cli.main([*record, "--output", f"{output}/", "--on-error", "record"]) == 0
    assert f"WARNING {output}: 2 lines have no results; the column `error` says why\n" in capsys.readouterr().err
    table = pq.read_table(next(output.glob("b.jsonl*")))
    assert [error and error.partition(":")[2][:9] for error in table["error"].to_pylist()] == [
        None, "2: a blan", None, "4: the ke",
    ]  # fmt: skip


def test_parts_of_files_that_have_changed_or_are_gone_do_not_stay_by_chance(
    arguments: list[str], texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else each of their lines would be there twice, or without a file that has it."""
    output = tmp_path / "out"
    command = [*arguments, "--output", f"{output}/"]
    assert cli.main(command) == 0
    (texts / "c.txt").write_text("It snowed.\n")
    assert cli.main(command) == 0  # more files are only added
    assert cli.main([*command, "--check"]) == 0
    before = contents(output)
    (texts / "b.jsonl").write_text('{"text": "She danced."}\n')
    (texts / "c.txt").unlink()
    for shard in ("1/2", "2/2"):
        capsys.readouterr()
        assert cli.main([*command, "--shard", shard]) == 1
        problem = f"{output}: 2 parts are of other files, or of files as they were; --remove-others removes them; or "
        shown = capsys.readouterr().err
        assert shown.startswith(f"error: {problem}")
        assert re.findall(r"(\w\.\w+)-000000000001-\w+\.parquet", shown) == ["b.jsonl", "c.txt"]
        assert contents(output) == before
    assert cli.main([*command, "--remove-others"]) == 0
    assert "2 parts are of other files, or of files as they were; removed: b.jsonl-0" in capsys.readouterr().err
    assert cli.main([*command, "--check"]) == 0
    found = pyarrow.dataset.dataset(output, format="parquet").to_table(columns=["source", "tokens"]).to_pylist()
    assert [row["tokens"] for row in found if row["source"] != "a.txt"] == [["She", "danced", "."]]
    (output / next(iter(contents(output)))).rename(output / "other.parquet")
    assert cli.main([*command, "--check"]) == 1
    assert "1 part missing" in capsys.readouterr().err


def test_a_full_disk_keeps_the_parts_before_it(
    arguments: list[str],
    texts: Path,
    tmp_path: Path,
    room: Callable[[int], AbstractContextManager[None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open(texts / "a.txt", "a") as stream:
        stream.write("One long line. " * 60 + "\n")
    one, full = tmp_path / "one", tmp_path / "full"
    assert cli.main([*arguments, "--output", f"{one}/"]) == 0
    whole = contents(one)
    largest = max(sorted(whole), key=lambda name: len(whole[name]))
    with room(len(whole[largest]) - 1):
        assert cli.main([*arguments, "--output", f"{full}/"]) == 2
    message = (
        rf"error: {full}/{largest}: cannot be written: .*; expected at least [\d,]+ bytes\. Free some space there.*\n"
    )
    *_, shown = capsys.readouterr().err.splitlines(keepends=True)  # before it, a warning of an input without text
    assert re.fullmatch(message, shown)
    before = {name: content for name, content in whole.items() if name < largest}
    assert before
    assert contents(full) == before
    assert {path.name for path in full.iterdir()} == {"_manifest.json", *before}
    assert cli.main([*arguments, "--output", f"{full}/"]) == 0
    assert contents(full) == whole


@pytest.mark.slow
def test_a_killed_process_leaves_no_part_torn(arguments: list[str], tmp_path: Path) -> None:
    one, killed = tmp_path / "one", tmp_path / "killed"
    assert cli.main([*arguments, "--output", f"{one}/"]) == 0
    with start_warm("-m", "elmo_tasks", *arguments, "--output", f"{killed}/") as process:
        while not contents(killed):
            assert process.poll() is None, "the process ended before it could be killed"
            time.sleep(0.001)
        process.terminate()
    made = contents(killed)
    assert made.items() <= contents(one).items()
    for path in killed.glob(".elmo-tasks.*"):  # it is removed after a day
        os.utime(path, (0, 0))
    assert cli.main([*arguments, "--output", f"{killed}/"]) == 0
    assert contents(killed) == contents(one)
    assert not list(killed.glob(".elmo-tasks.*"))


ONE_FILE = "embed texts/a.txt --output a.hdf5"
FOR_PARTS = ("--shard 1/2", "--part-tokens 9", "--on-error record", "--remove-others")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("embed texts --output a.hdf5", "texts is a folder: expected an output folder"),
        ("embed texts --output out/ --no-index", "--no-index: only for one output file"),
        ("embed texts --output out/ --shard 4/3", "'4/3'; expected I/N"),
        ("embed texts --output out/ --layers 9", "layers: got '9'"),
        *(
            (f"{ONE_FILE} {given}", f"{given.removesuffix(' 1/2').removesuffix(' 9')}: expected an output folder")
            for given in FOR_PARTS
        ),
        ("predict run texts/a.txt --output a.jsonl --shard 1/2", "--shard: expected an output folder"),
        (f"{ONE_FILE} --number-type float16", "--number-type: expected an output folder, with a slash at its end"),
    ],
)
@pytest.mark.usefixtures("texts")
def test_options_that_do_not_fit(
    command: str, problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):
        assert cli.main(command.split()) == 2
    assert problem in capsys.readouterr().err
    assert not list(tmp_path.glob("a.*"))


def test_predictions_with_the_tokens_that_count(texts: Path, tmp_path: Path) -> None:
    command = ["predict", "ner", str(texts), "--explain", "--quiet"]
    assert cli.main([*command, "--output", f"{tmp_path / 'out'}/"]) == 0
    assert cli.main([*command, "--output", f"{tmp_path / 'out'}/", "--check"]) == 0
    assert cli.main([*command[:-2], "--output", f"{tmp_path / 'out'}/"]) == 2  # other settings
    rows = pyarrow.dataset.dataset(tmp_path / "out").to_table().to_pylist()
    (row,) = (row for row in rows if row["tokens"] == ["Orla", "left"])
    (expected,) = elmo_tasks.load("ner")([{"tokens": ["Orla", "left"]}], explain=True)
    ((item,), (other,)) = json.loads(row["saliency"]), expected["saliency"]
    assert (item["of"], item["score"]) == ("PER", pytest.approx(other["score"], abs=1e-3))
    assert item["tokens"] == [[token, pytest.approx(share, abs=1e-3)] for token, share in other["tokens"]]


def test_the_bar_counts_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "a.txt").write_text("Orla left.\nTavo sang.\nIt rained.\n")
    units, folder = list(find_units([tmp_path / "a.txt"], tokens=1)), PartsFolder(tmp_path / "out", {})
    folder.process(units[:1], lambda table: table)
    capsys.readouterr()
    folder.process(units, lambda table: table)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if "parts" in line]
    assert " 1/3 " in lines[0]
    assert " 3/3 " in lines[-1]
    assert lines[-1].endswith("a.txt, from line 3")
