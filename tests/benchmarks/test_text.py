"""The text that `benchmarks.text` puts together: cleaning, duplicates, test data, and the files of git repositories."""

import hashlib
import json
import lzma
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.text.__main__ import GRAM, EvaluationText, main, usual_test_files
from benchmarks.text.reading import clean, documents, num_tokens, words_of
from benchmarks.text.sources import LIST, Source, files, read_sources
from elmo_tasks.errors import DataError, ElmoTasksError

LAMP = "The keeper of the lighthouse lit the lamp every evening before the ships came in."
STORM = "On the night of the great storm he was late, and nobody could say where he had been."
GOAT = "A goat that belonged to the miller ate the map, so the rest of us walked home in the dark."
BOOK = f"""The Project Gutenberg EBook of The Lamp, by Nobody

*** START OF THIS PROJECT GUTENBERG EBOOK THE LAMP ***

Produced by two friends of the author who had the time and all of the patience for it.

CHAPTER I

The keeper of the _lighthouse_ lit the lamp
every evening before the ships came in.[1]

    oil     3     12     of the
    wick    4     15     of the

{STORM}

*** END OF THIS PROJECT GUTENBERG EBOOK THE LAMP ***

You may copy it and give it away under the terms of the licence that is at the end of this.
"""


def _source(**changes: Any) -> Source:
    facts: dict[str, Any] = {"name": "lamp", "kind": "books", "repository": "nobody/lamp", "commit": None}
    facts |= {"paths": ("books/*.txt",), "format": "gutenberg", "licence": "CC0", "licence_said": "here", **changes}
    return Source(**facts)


def _paragraphs(content: str, **changes: Any) -> list[list[str]]:
    found = documents(_source(**changes), content.encode())
    return [[cleaned[0] for each in document if (cleaned := clean(each))] for document in found]


def test_a_book_without_its_header_footer_table_and_marks() -> None:
    assert _paragraphs(BOOK) == [[LAMP, STORM]]


@pytest.mark.parametrize(("old", "new"), [("*** START OF", "Beginning of"), ("The Project", "A COPYRIGHTED Project")])
def test_books_without_marks_or_with_a_copyright_are_left_out(old: str, new: str) -> None:
    assert _paragraphs(BOOK.replace(old, new)) == [[]]


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        (f"{LAMP}\n{STORM}\n", {"format": "lines"}),
        (json.dumps({"talk": [{"said": LAMP, "by": "x"}, {"said": STORM}]}), {"format": "json", "field": "talk.said"}),
        (json.dumps([{"a": {"text": LAMP}, "b": {"text": STORM}}]), {"format": "json", "field": "*.text"}),
        (f'name,text\nx,"{LAMP}\n\n{STORM}"\n', {"format": "csv", "field": "text"}),
        (f"name\ttext\nx\t\"{LAMP}\n\n{STORM}\"\n", {"format": "tsv", "field": "text"}),
        (f'<x xmlns="u"><p>{LAMP[:30]}<b>{LAMP[30:]}</b></p><p>{STORM}</p></x>', {"format": "xml", "field": "p"}),
    ],
)  # fmt: skip
def test_formats(content: str, changes: dict[str, str]) -> None:
    assert _paragraphs(content, **changes) == [[LAMP, STORM]]


def test_blank_lines_separate_documents() -> None:
    assert _paragraphs(f"{LAMP}\n{STORM}\n\n\n{GOAT}\n", format="documents") == [[LAMP, STORM], [GOAT]]


@pytest.mark.parametrize(
    "text",
    [
        "Der Wärter des Leuchtturms zündete jeden Abend die Lampe an, bevor die Schiffe einliefen.",
        "12 15 18 21 24 and 27 30 33 36 of 39 42 45 48 the 51 54 57 60",
        "The sum of the \\alpha that we have in the text is what they said it would be to us.",
        "The lamp is lit | the ship is in | the goat is out | and that is all there is to say.",
        "OF THE LAMP",
        "* * * * *",
        "",
    ],
)
def test_what_is_not_english_prose_is_left_out(text: str) -> None:
    assert clean(text) is None


def test_clean_text_is_one_line_without_tags_entities_and_number() -> None:
    assert clean("12. The keeper&#39;s <i>lamp</i>\n was lit\tby him.") == (
        "The keeper's lamp was lit by him.",
        [b"the", b"keeper", b"s", b"lamp", b"was", b"lit", b"by", b"him"],
    )


def test_tokens_are_words_and_punctuation_marks() -> None:
    text = "Lit, he said: 3 lamps for him."
    assert num_tokens(text, words_of(text)) == 7 + 3


def test_test_data_is_found_wherever_it_begins() -> None:
    words = [f"w{number}".encode() for number in range(GRAM)]
    data = EvaluationText()
    data.add(b" ".join(words).decode())
    around = [f"v{number}".encode() for number in range(40)]
    for start in range(30):
        assert data.shares([*around[:start], *words, *around[start:]])
        assert not data.shares([*around[:start], *words[1:], *around[start:]])


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with one clone, whose newest commit has another text than the first."""
    clone = tmp_path / "mirror" / "nobody+lamp"
    (clone / "books").mkdir(parents=True)
    (clone / "books" / "a lamp.txt").write_text(BOOK, encoding="utf-8")
    (clone / "books" / "goat.txt.xz").write_bytes(lzma.compress(f"{GOAT}\n{STORM}\n".encode()))
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "1"]):
        _git(clone, *arguments)
    (clone / "books" / "a lamp.txt").write_text("gone", encoding="utf-8")
    _git(clone, "commit", "-qam", "2")
    return clone.parent


def _git(clone: Path, *arguments: str) -> str:
    command = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _run(tmp_path: Path, mirror: Path, *arguments: str) -> list[dict[str, Any]]:
    commit = _git(mirror / "nobody+lamp", "rev-parse", "HEAD~1")
    sources = [
        _source(commit=commit),
        _source(name="goat", commit=commit, paths=("books/*.xz",), format="lines"),
    ]
    listed = tmp_path / "sources.json"
    listed.write_text(json.dumps([source.model_dump() for source in sources]), encoding="utf-8")
    main([str(tmp_path / "out"), "--list", str(listed), "--mirror", str(mirror), *arguments])
    results: list[dict[str, Any]] = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    return results


def test_a_paragraph_of_two_sources_is_kept_once(
    tmp_path: Path, mirror: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lamp, goat = _run(tmp_path, mirror, "--exclude")
    text = (tmp_path / "out" / "lamp.txt").read_bytes()
    assert text.decode() == f"{LAMP}\n{STORM}\n\n"
    assert (tmp_path / "out" / "goat.txt").read_text(encoding="utf-8") == f"{GOAT}\n\n"
    assert lamp["sha256"] == hashlib.sha256(text).hexdigest()
    assert (lamp["documents"], lamp["paragraphs"], lamp["duplicates"], lamp["tokens"]) == (1, 2, 0, 36)
    assert (goat["documents"], goat["paragraphs"], goat["duplicates"]) == (1, 1, 1)
    table = capsys.readouterr().out
    assert "| source | licence |" in table
    assert f"| lamp | CC0 | 0.0 | 1 | 2 | 0 | 0 | 36 | {lamp['sha256']} |" in table


def test_a_paragraph_that_test_data_shares_is_left_out(tmp_path: Path, mirror: Path) -> None:
    test = tmp_path / "test.txt"
    test.write_text(f"They wrote: {STORM.upper().replace(',', ' ;')}\n", encoding="utf-8")
    lamp, goat = _run(tmp_path, mirror, "--exclude", str(test))
    assert (tmp_path / "out" / "lamp.txt").read_text(encoding="utf-8") == f"{LAMP}\n\n"
    assert (lamp["dropped_for_test_data"], goat["dropped_for_test_data"]) == (1, 1)


def test_test_data_is_read_with_the_readers_of_its_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tmp_path / "ner_conll2003" / "eng.testa"
    names.parent.mkdir()
    words = STORM.replace(",", " ,").replace(".", " .").split()
    names.write_text("".join(f"{word} X I-NP O\n" for word in words) + "\n", encoding="utf-8")
    monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path))
    assert usual_test_files() == [names]
    assert EvaluationText.read([names]).shares(clean(STORM)[1])  # type: ignore[index]


def test_errors_name_the_source_and_the_file(tmp_path: Path, mirror: Path) -> None:
    with pytest.raises(SystemExit, match="has no source ship; expected some of lamp, goat"):
        _run(tmp_path, mirror, "--exclude", "--sources", "ship")
    with pytest.raises(DataError, match="has no file poems"):
        list(files(_source(paths=("poems/*",)), mirror))


def test_the_list_of_sources_is_complete() -> None:
    sources = read_sources(LIST)
    assert len({source.kind for source in sources}) >= 5
    assert len({source.name for source in sources}) == len(sources)
    for source in sources:
        assert source.licence_said
        assert (source.repository is None) == (source.commit is None)
        assert not any(word in f"{source.licence} " for word in ("-NC", " NC", "-ND", " ND"))
    with pytest.raises(ElmoTasksError, match="expected a list of sources"):
        read_sources(LIST.with_name("missing.json"))
