from __future__ import annotations

from elmo_tasks.rendering import describe_versions
from elmo_tasks.rendering.drawing import Rows
from elmo_tasks.tasks import Coreference


def test_chains_that_all_versions_have_are_left_out() -> None:
    sentences = [["Ann", "saw", "Bo", "."], ["She", "left", "him", "."]]
    ann, bo = [[0, 0], [4, 4]], [[2, 2], [6, 6]]
    example = {"sentences": sentences, "clusters": [ann, bo]}
    drawing = describe_versions(Coreference(), example, {"one": {"clusters": [[*bo[:1], [4, 4]], ann]}})
    assert drawing == [Rows([("gold", "Bo [2] → him [6]"), ("one", "Bo [2] → She [4]")])]


def test_chains_are_in_the_order_of_the_text() -> None:
    """Those of a version come from a set, whose order is that of their hashes."""
    tokens = [f"word{place}" for place in range(60)]
    clusters = [[[start, start], [start + 30, start + 30]] for start in range(30)]
    example = {"sentences": [tokens], "clusters": clusters}
    (rows,) = describe_versions(Coreference(), example, {"one": {"clusters": []}})
    assert isinstance(rows, Rows)
    assert [chain.split()[0] for _, chain in rows.items] == tokens[:30]
