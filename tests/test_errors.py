"""What messages say."""

import errno
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError, UnknownLabelError, WriteError, counted, did_you_mean, one_line, some_of


def test_the_message_of_another_library_becomes_one_line_of_bounded_length() -> None:
    assert one_line(ValueError("two\n  lines\tand a tab ")) == "two lines and a tab"
    assert one_line(KeyError()) == "KeyError"
    assert one_line(ValueError("a" * 200)) == "a" * 200
    assert one_line(ValueError("a" * 201)) == "a" * 197 + "..."
    assert one_line(ValueError("abcdefgh"), limit=7) == "abcd..."


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 documents"),
        (1, "1 document"),
        (1234, "1,234 documents"),
        (999_999, "999,999 documents"),
        (1_000_000, "1.0 million documents"),
        (1_250_000, "1.2 million documents"),
    ],
)
def test_a_number_with_what_it_counts(number: int, shown: str) -> None:
    assert counted(number, "document") == shown
    assert counted(number, "mouse", "mice") == shown.replace("documents", "mice").replace("document", "mouse")


def test_a_place_has_a_line_if_one_is_known() -> None:
    assert str(DataError("a.txt", "odd", 0)) == "a.txt:0: odd"
    assert str(DataError("a.txt", "odd")) == "a.txt: odd"


def test_a_value_as_long_as_its_file_is_cut_and_what_was_wanted_stays() -> None:
    whole = "a" * 2000
    assert str(DataError("a.txt", whole, 1)) == f"a.txt:1: {whole}"
    text = str(DataError("a.txt", f"'{'b' * 200_000}' is not a tag; expected O", 1))
    assert text.startswith("a.txt:1: 'bbb")
    assert text.endswith("bbb' is not a tag; expected O")
    assert len(text) == len("a.txt:1:  [...] ") + 2000


def test_only_a_full_disk_gets_advice_and_only_a_known_size_is_named() -> None:
    full, denied = OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EACCES, "Permission denied")
    advice = ". Free some space there or choose another place, then try again"
    expected = {
        WriteError("f", full, 1234): f"No space left on device; expected at least 1,234 bytes{advice}",
        WriteError("f", full): f"No space left on device{advice}",
        WriteError("f", denied, 0): "Permission denied",
        WriteError("f", "the reason"): "the reason",
        WriteError("f", OSError("without a number")): "without a number",
    }
    for error, text in expected.items():
        assert str(error) == f"f: cannot be written: {text}"


def test_an_error_in_a_temporary_folder_names_the_place_that_was_meant() -> None:
    temporary, target = Path("a/.tmp"), Path("a/made")
    assert str(WriteError("a/.tmp/b/c", "odd").moved(temporary, target)) == "a/made/b/c: cannot be written: odd"
    assert str(WriteError("a/b", "odd", 5).moved(temporary, target)) == (
        "a/b: cannot be written: odd; expected at least 5 bytes"
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("dropuot", " Did you mean 'dropout'?"), ("zzz", ""), (None, ""), (["dropout"], "")]
)
def test_the_most_similar_name_is_suggested(name: object, hint: str) -> None:
    assert did_you_mean(name, ["drop", "dropout", "dropouts_everywhere"]) == hint


def test_an_unknown_label_names_all_that_are_known() -> None:
    error = UnknownLabelError("tags", "B-PRE", ["O", "B-PER"])
    assert str(error) == ("the label 'B-PRE' is not among the tags of the run: O, B-PER. Did you mean 'B-PER'?")
    assert (error.namespace, error.label) == ("tags", "B-PRE")


def test_a_long_list_is_shortened_and_says_by_how_much() -> None:
    assert some_of([]) == ""
    assert some_of(["a", "b", "c"]) == "a, b, c"
    assert some_of(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert some_of(["a", "b"], most=1) == "a and 1 more"
