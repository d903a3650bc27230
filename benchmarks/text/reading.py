"""From files to clean paragraphs.

Formats:

- `gutenberg`: a book of Project Gutenberg; what stands before and after its marks is left out.
- `lines`: each line is a paragraph, and a file is a document.
- `documents`: each line is a paragraph, and blank lines separate documents.
- `json`: a document, or a list of them; `field` is the path of keys to its paragraphs, `*` any key.
- `csv`, `tsv`: each row is a document, whose text is in the column `field`.
- `xml`: each element `field` is a paragraph; a file is a document.
"""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import re
import string
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

from benchmarks.text.sources import Source

_START = re.compile(r"^\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG.*$|^\*END\*? ?THE SMALL PRINT.*$", re.I | re.M)
_END = re.compile(r"^(?:\*{3} ?)?END OF (?:THE|THIS )?\s*PROJECT GUTENBERG.*$", re.I | re.M)
_EDGE = 40000  # characters that contain what stands before and after a book
_COPYRIGHTED = re.compile(r"COPYRIGHTED Project Gutenberg")  # some books have other licences
_CREDITS = re.compile(
    r"(?:This (?:e-?text|e-?book|file) was )?(?:Produced|Prepared|Transcribed|Scanned) by|E-?text prep", re.I
)
_BLANK = re.compile(r"\n[ \t\r\f\v]*\n")
_GAPS = re.compile(r"\S {3,}\S")  # between the columns of a table
_NOTES = re.compile(r"\[(?:Illustration|Footnote|Sidenote|Transcriber)[^\]]*\]|\[\d+\]|<[^<>]{1,200}>", re.I)
_NUMBER = re.compile(r"\d{1,4}\. (?=[A-Z])")  # of a paragraph
_MARKUP = re.compile(r"\\[a-zA-Z]|\$(?![\d\s])[^$]*\$|[\^_]\{|\{\{|\}\}|\[\[|https?:|www\.|={3}|\||" + "\ufffd")
_MARKUP_CHARACTERS = ("\\", "$", "{", "}", "[[", "://", "www.", "===", "|", "\ufffd")  # one is in each match of _MARKUP
_WORD_BYTES = bytes(ord(chr(byte).lower()) if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_LETTERS = string.ascii_letters.encode() + b" "
_COMMON = frozenset(  # words
    (
        b"a all an and any are as at be been but by can could do for from had has have he her him his i if in is it "
        b"its me more my no not of on one or our out said she so some than that the their them then there these "
        b"they this to up us was we were what when which who will with would you your"
    ).split()
)
_SHORT = 10  # words; fewer say little about the language
_MIN_COMMON = 0.2  # of the first words
_FIRST = 50
_MAX_OTHER = 0.2  # of the characters: neither English letters nor spaces
_SENTENCE_ENDS = tuple(".?!;:,'\")—-\N{RIGHT DOUBLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}")


def documents(source: Source, content: bytes) -> Iterator[Iterable[str]]:
    """The documents of a file, as paragraphs that are not clean yet.

    Raises:
        ValueError: the file is damaged.
    """
    text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if source.format == "gutenberg":
        yield _book(text)
    elif source.format == "lines":
        yield text.split("\n")
    elif source.format == "documents":
        groups = itertools.groupby(text.split("\n"), key=lambda line: bool(line.strip()))
        yield from (lines for is_text, lines in groups if is_text)
    elif source.format == "json":
        loaded = json.loads(text)
        for document in loaded if isinstance(loaded, list) else [loaded]:
            yield _values(document, source.field.split("."))
    elif source.format == "xml":
        elements = ElementTree.fromstring(content).iter()
        yield ["".join(each.itertext()) for each in elements if each.tag.rpartition("}")[2] == source.field]
    else:
        csv.field_size_limit(1 << 26)
        rows = csv.DictReader(io.StringIO(text), delimiter="\t" if source.format == "tsv" else ",")
        yield from (_BLANK.split(row[source.field] or "") for row in rows)


def _book(text: str) -> list[str]:
    starts = list(_START.finditer(text, 0, _EDGE))  # old books have two kinds of marks
    if not starts or _COPYRIGHTED.search(text, 0, _EDGE):
        return []
    start = starts[-1].end()
    end = _END.search(text, max(start, len(text) - _EDGE))
    blocks = _BLANK.split(text[start : end.start() if end else len(text)])
    return [block.replace("_", "") for block in blocks if not _is_table(block) and not _CREDITS.match(block.strip())]


def _is_table(block: str) -> bool:
    return "   " in block and 2 * len(_GAPS.findall(block)) > block.count("\n") + 1


def _values(item: Any, keys: list[str]) -> Iterator[str]:
    if isinstance(item, list):
        for each in item:
            yield from _values(each, keys)
    elif isinstance(item, dict) and keys:
        for key in item if keys[0] == "*" else [keys[0]]:
            if key in item:
                yield from _values(item[key], keys[1:])
    elif isinstance(item, str) and not keys:
        yield item


def words_of(text: str) -> list[bytes]:
    """The lowercase words and numbers of a text, without punctuation; letters outside ASCII separate words."""
    return text.encode("ascii", "replace").translate(_WORD_BYTES).split()


def clean(text: str) -> tuple[str, list[bytes]] | None:
    """A paragraph on one line without tags and notes, and its `words_of`; None if it is not English prose.

    Left out are paragraphs with other markup, few letters or few common English words, and short ones that do not end
    like a sentence.
    """
    if "[" in text or "<" in text:
        text = _NOTES.sub("", text)
    text = " ".join((html.unescape(text) if "&" in text else text).split())
    if number := _NUMBER.match(text):
        text = text[number.end() :]
    ascii_text = text.encode("ascii", "replace")
    if not text or len(ascii_text.translate(None, _LETTERS)) > _MAX_OTHER * len(text):
        return None
    if any(each in text for each in _MARKUP_CHARACTERS) and _MARKUP.search(text):
        return None
    words = words_of(text)
    if len(words) < _SHORT:
        return (text, words) if text.endswith(_SENTENCE_ENDS) and len(words) > 1 else None
    first = words[:_FIRST]
    return (text, words) if sum(map(_COMMON.__contains__, first)) >= _MIN_COMMON * len(first) else None


def num_tokens(text: str, words: list[bytes]) -> int:
    """The number of words and punctuation marks of a clean paragraph."""
    return len(words) + len(text.encode("ascii", "replace").translate(None, _LETTERS + string.digits.encode()))
