from __future__ import annotations

from elmo_tasks.text.nesting import nested_pieces


def bracketed(text: str, *spans: tuple[int, int]) -> str:
    marks = {"open": "({}:", "close": ":{})"}
    return "".join(
        piece.text if piece.kind == "text" else marks[piece.kind].format(piece.span)
        for piece in nested_pieces(text, spans)
    )


def test_spans_nest_and_touch() -> None:
    assert bracketed("her boat sank") == "her boat sank"
    assert bracketed("her boat sank", (0, 3), (0, 8), (9, 13)) == "(1:(0:her:0) boat:1) (2:sank:2)"
    assert bracketed("abc", (0, 1), (1, 2), (1, 3)) == "(0:a:0)(2:(1:b:1)c:2)"
    assert bracketed("abc", (0, 3), (1, 3), (2, 3)) == "(0:a(1:b(2:c:2):1):0)"


def test_of_spans_that_cross_the_first_is_drawn() -> None:
    assert bracketed("a bb ccc dd", (0, 4), (2, 8)) == "(0:a bb:0) ccc dd"
    assert bracketed("abcdef", (1, 5), (0, 2), (1, 2), (3, 6), (2, 6)) == "(1:a(2:b:2):1)(4:c(3:def:3):4)"


def test_equal_spans_open_and_close_in_opposite_orders() -> None:
    assert bracketed("ab", (0, 2), (0, 2)) == "(0:(1:ab:1):0)"
