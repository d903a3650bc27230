"""What the conversions of taggers share: the scheme of tags, and the columns that they were trained on."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.tags import all_tags, scheme_of, tagged_sentences


@pytest.mark.parametrize(
    ("name", "scheme"), [("BIO", "IOB2"), ("IOB1", "IOB1"), ("BIOUL", "BIOUL"), ("BMES", "BMES"), (None, None)]
)
def test_schemes_have_our_names(name: str | None, scheme: str | None) -> None:
    assert scheme_of(Params({"label_encoding": name}), "label_encoding") == scheme
    assert scheme_of(Params({}), "label_encoding") is None


def test_another_scheme_is_refused() -> None:
    with pytest.raises(MigrationError, match=r"model\.key is 'BILOU'; wanted one of BIO, IOB1, BIOUL, BMES"):
        scheme_of(Params({"key": "BILOU"}, "model"), "key")


def test_labels_that_are_tags() -> None:
    assert all_tags(("O", "B-X", "I-X"), "IOB2")
    assert not all_tags(("O", "B-X", "NN"), "IOB2")


@pytest.mark.parametrize(
    ("reader", "more"),
    [
        ({}, {}),
        ({"tag_label": "ner"}, {}),
        ({"tag_label": "pos"}, {"columns": [0, 1]}),
        ({"tag_label": "chunk"}, {"columns": [0, 2]}),
    ],
)
def test_the_columns_of_conll_2003(reader: dict[str, Any], more: dict[str, Any]) -> None:
    ignored = ("coding_scheme", "feature_labels", "label_namespace", "convert_to_coding_scheme")
    params = Params({"type": "conll2003", **reader, **dict.fromkeys(ignored, "x"), "lazy": True})
    assert tagged_sentences(params, "BIOUL") == ({"type": "conll2003", "tag_scheme": "BIOUL", **more}, [])
    assert params.unread() == ["lazy"]


def test_files_of_another_reader_are_read_as_columns_which_is_said() -> None:
    config, (note,) = tagged_sentences(Params({"type": "universal_dependencies", "tag_label": "pos"}), None)
    assert config == {"type": "conll2003", "tag_scheme": None}
    assert note.startswith("there is no reader 'universal_dependencies' here; data are read as columns")
