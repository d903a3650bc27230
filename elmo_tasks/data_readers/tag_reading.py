"""Tags as a source has them: span tags are checked and converted to another scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK
from elmo_tasks.text.tag_schemes import TagScheme, convert_tags, detect_scheme, find_fault, is_tag

InputScheme = Literal["auto", "IOB1", "IOB2", "BIOUL", "BIOES", "BMES"]


def clean(label: str) -> str:
    """A label or a tag without the white space around it and without byte order marks."""
    return (label if label.isascii() else label.replace(BYTE_ORDER_MARK, "")).strip()


class TagReader:
    """Reads the tags of one source, sentence by sentence.

    Arguments:
        scheme: the scheme of the results; None if tags are not spans, then they are returned as they are.
        input_scheme: the scheme of the source; 'auto' finds it from the first span that shows it.
    """

    def __init__(self, scheme: TagScheme | None, input_scheme: InputScheme) -> None:
        self._scheme = scheme
        self._input: TagScheme | None = None if input_scheme == "auto" else input_scheme
        hint = " (the scheme of the first span; set input_scheme if it is another)"
        self._hint = "" if self._input else hint

    def convert(self, tags: Sequence[str], location: str, first: int) -> list[str]:
        """The tags of a sentence in the scheme of the results.

        Arguments:
            location, first: errors name a tag by `location` and its number, counted from `first`, such as its line.

        Raises:
            DataError: something is not a tag, or not allowed where it is.
        """
        if "" in tags:
            raise DataError(f"{location}{first + tags.index('')}", "the tag is empty; expected one for each token")
        if self._scheme is None:
            return list(tags)
        scheme = self._input
        if scheme is None:
            for number, tag in enumerate(tags, first):
                if not any(is_tag(tag, known) for known in get_args(TagScheme)):
                    raise DataError(f"{location}{number}", f"{tag!r} is not a tag; expected O or a tag such as B-LOC")
            detected = detect_scheme(tags)
            scheme = detected or "BIOES"  # without a longer span it has the same tags as BMES
        if fault := find_fault(tags, scheme):
            raise DataError(f"{location}{first + fault[0]}", fault[1] + self._hint)
        self._input = self._input or detected
        return convert_tags(tags, self._scheme)
