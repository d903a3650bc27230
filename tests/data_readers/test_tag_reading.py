"""Tags of a source: the scheme is found from the first span that shows it, and kept to."""

from __future__ import annotations

import pytest

from elmo_tasks.data_readers.tag_reading import TagReader
from elmo_tasks.errors import DataError


@pytest.mark.parametrize("inside", ["I", "M"])
def test_a_longer_span_decides_between_bioes_and_bmes(inside: str) -> None:
    reader = TagReader("IOB2", "auto")
    assert reader.convert(["O", "S-X", "B-X", "E-X"], "x:", 1) == ["O", "B-X", "B-X", "I-X"]
    with pytest.raises(DataError, match=r"x:6: 'B-X' at the end of a sentence is not valid in BIOES"):
        reader.convert(["O", "S-X", "B-X"], "x:", 4)  # in both
    assert reader.convert(["B-X", f"{inside}-X", "E-X"], "x:", 8) == ["B-X", "I-X", "I-X"]
    with pytest.raises(DataError, match=r"is not a tag of (BIOES|BMES); .* \(the scheme of the first span; set input"):
        reader.convert(["B-X", f"{'M' if inside == 'I' else 'I'}-X", "E-X"], "x:", 12)


def test_the_scheme_can_be_given() -> None:
    with pytest.raises(DataError, match=r"x:2: 'S-X' is not a tag of IOB2; wanted O or one of B-LABEL, I-LABEL$"):
        TagReader("BIOUL", "IOB2").convert(["O", "S-X"], "x:", 1)


def test_tags_that_are_not_spans() -> None:
    assert TagReader(None, "auto").convert(["NN", "-"], "x:", 1) == ["NN", "-"]
