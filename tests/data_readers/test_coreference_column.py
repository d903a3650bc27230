"""The coreference column: every kind of cell, every error with its line, and the way there and back."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers.conll2012 import parse_coreference_column
from elmo_tasks.errors import DataError


def written_column(clusters: Sequence[Sequence[Sequence[int]]], num_tokens: int) -> list[str]:
    """The cells of a document: in each ends, inner mentions first, then beginnings, outer ones first, then singles."""
    mentions = [(start, end, number) for number, cluster in enumerate(clusters) for start, end in cluster]
    cells: list[list[str]] = [[] for _ in range(num_tokens)]
    longer = [mention for mention in mentions if mention[0] < mention[1]]
    for _, end, number in sorted(longer, reverse=True):
        cells[end].append(f"{number})")
    for start, _, number in sorted(longer, key=lambda mention: mention[1], reverse=True):
        cells[start].append(f"({number}")
    for start, end, number in mentions:
        if start == end:
            cells[start].append(f"({number})")
    return ["|".join(cell) or "-" for cell in cells]


def parse(cells: str, first_line: int = 1) -> list[list[list[int]]]:
    return parse_coreference_column(enumerate(cells.split(), first_line), "doc.conll")


@pytest.mark.parametrize(
    ("cells", "clusters"),
    [
        ("", []),
        ("- - -", []),
        ("(0) - (0)", [[[0, 0], [2, 2]]]),
        ("(12|(3) - 12) (3)", [[[0, 0], [3, 3]], [[0, 2]]]),
        ("(1 (2 1) 2)", [[[0, 2]], [[1, 3]]]),  # crossing, of different clusters
        ("(4 (4) 4)", [[[0, 2], [1, 1]]]),  # nested, of the same cluster
        ("(4|(4 - 4) 4)", [[[0, 2], [0, 3]]]),  # nested, with the same beginning
        ("(4 (4 4)|4)", [[[0, 2], [1, 2]]]),  # nested, with the same end
        ("(4|(4) 4)|(4)", [[[0, 0], [0, 1], [1, 1]]]),
        ("(1 1)|(2 2)", [[[0, 1]], [[1, 2]]]),
        ("(7 2)|(2|7)", [[[0, 1]], [[1, 1]]]),  # brackets are read singles first, then beginnings, then ends
        ("(5)|(6)", [[[0, 0]], [[0, 0]]]),  # one mention in two clusters stays in both
        ("(007) (7)", [[[0, 0]], [[1, 1]]]),
    ],
)
def test_cells_are_read_as_by_the_reference_scorer(cells: str, clusters: list[list[list[int]]]) -> None:
    assert parse(cells) == clusters


@pytest.mark.parametrize(
    ("cells", "line", "problem"),
    [
        ("- (3 - (4)", 12, "a mention of cluster 3 begins here but does not end in its document"),
        ("(2 (3|(2 2)", 11, "a mention of cluster 2 begins here but does not end in its document"),
        ("(3) - 3)", 13, "a mention of cluster 3 ends here but does not begin: '3)'"),
        ("(3 3)|3)", 12, "a mention of cluster 3 ends here but does not begin: '3)|3)'"),
        ("- 5", 12, "'5' is not a coreference cell; expected '-', or '(N', 'N)' or '(N)' joined by '|'"),
        ("(5))", 11, "'(5))' is not a coreference cell"),
        ("(5(", 11, "'(5(' is not a coreference cell"),
        ("(5)||(6)", 11, "'(5)||(6)' is not a coreference cell"),
        ("(5)|", 11, "'(5)|' is not a coreference cell"),
        ("(5)|-", 11, "'(5)|-' is not a coreference cell"),
        ("(a)", 11, "'(a)' is not a coreference cell"),
        ("(٣)", 11, "'(٣)' is not a coreference cell"),
        ("_", 11, "'_' is not a coreference cell"),
    ],
)
def test_errors_name_file_and_line(cells: str, line: int, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse(cells, first_line=11)
    assert str(caught.value).startswith(f"doc.conll:{line}: {problem}")


def test_cells_of_other_publishers() -> None:
    """LitBank leaves a cell empty; the test files of the reference scorer have no bars."""
    cells = enumerate(["", "(5(6)", "", "(1(2", "1)2)", "5)"])
    assert parse_coreference_column(cells, Path("doc.conll")) == [[[1, 1]], [[1, 5]], [[3, 4]], [[3, 4]]]


def cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (start, end), (other_start, other_end) = sorted((one, other))
    return start < other_start <= end < other_end


@settings(deadline=None)
@given(drawn=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)), max_size=25))
def test_there_and_back(drawn: list[tuple[int, int, int]]) -> None:
    """With nested mentions of the same cluster, crossing ones of different clusters, and repeated ones."""
    clusters: dict[int, list[tuple[int, int]]] = {}
    for one, other, number in drawn:
        mention = (min(one, other), max(one, other))
        if not any(cross(mention, before) for before in clusters.get(number, ())):
            clusters.setdefault(number, []).append(mention)
    cells = written_column(list(clusters.values()), 10)
    assert len(cells) == 10
    again = parse_coreference_column(enumerate(cells, 1), "doc.conll")
    assert sorted(again) == sorted(sorted(map(list, mentions)) for mentions in clusters.values())
    assert sorted(parse_coreference_column(enumerate(written_column(again, 10)), "")) == sorted(again)


def test_the_clusters_of_the_scorer_s_cases(data_folder: Path) -> None:
    """The same documents as columns and as clusters, gold and predicted."""
    folder = data_folder / "scorer_cases"
    cases = [json.loads(line) for line in (folder / "coref_cases.jsonl").read_text().splitlines()]
    for name, field in (("coref_key.conll", "gold"), ("coref_response.conll", "predicted")):
        documents: list[list[tuple[int, str]]] = []
        for number, line in enumerate((folder / name).read_text().splitlines(), 1):
            if line.startswith("#begin"):
                documents.append([])
            elif line and not line.startswith("#"):
                documents[-1].append((number, line.split("\t")[-1]))
        assert len(documents) == len(cases)
        for cells, case in zip(documents, cases, strict=True):
            clusters = parse_coreference_column(cells, folder / name)
            assert sorted(clusters) == sorted(sorted(cluster) for cluster in case[field])
            written = written_column(clusters, case["num_tokens"])
            assert sorted(parse_coreference_column(enumerate(written), "")) == sorted(clusters)
