"""Tags as a source has them: span tags are checked and converted to the scheme that is wanted."""

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
        wanted: the scheme of the tags that come out; None if tags are not spans, then they come out as they are.
        given: the scheme of the source; 'auto' finds it from the first span that shows it.
    """

    def __init__(self, wanted: TagScheme | None, given: InputScheme) -> None:
        self._wanted = wanted
        self._scheme: TagScheme | None = None if given == "auto" else given
        self._hint = " (the scheme of the first span; set input_scheme if it is another)" if given == "auto" else ""

    def convert(self, tags: Sequence[str], place: str, first: int) -> list[str]:
        """The tags of a sentence in the wanted scheme.

        Arguments:
            place, first: errors name a tag by `place` and its number, counted from `first`: the line of a file, say.

        Raises:
            DataError: something is not a tag, or not allowed in its place.
        """
        if "" in tags:
            raise DataError(f"{place}{first + tags.index('')}", "the tag is empty; expected one for each token")
        if self._wanted is None:
            return list(tags)
        scheme = self._scheme
        if scheme is None:
            for number, tag in enumerate(tags, first):
                if not any(is_tag(tag, known) for known in get_args(TagScheme)):
                    raise DataError(f"{place}{number}", f"{tag!r} is not a tag; wanted O or a tag such as B-LOC")
            detected = detect_scheme(tags)
            scheme = detected or "BIOES"  # without a longer span it has the same tags as BMES
        if fault := find_fault(tags, scheme):
            raise DataError(f"{place}{first + fault[0]}", fault[1] + self._hint)
        self._scheme = self._scheme or detected
        return convert_tags(tags, self._wanted)
