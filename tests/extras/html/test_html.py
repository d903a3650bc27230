import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.extras.html.html import END, Sections, page_start
from elmo_tasks.rendering.drawing import (
    Bars,
    Drawing,
    Figure,
    HeatMap,
    Mark,
    MarkedText,
    Rows,
    ShadedText,
    SignedText,
)

EVIL = """<script>alert("x")</script> & '"><img src=//x>"""
EVERY_PART: Drawing = [
    MarkedText(EVIL, [Mark(0, len(EVIL), EVIL, 0.5)], title=EVIL),
    ShadedText(EVIL, [(0, 8), (9, 20)], [0.5, 0.5], title=EVIL),
    Bars([(EVIL, 0.5), (EVIL, 0.25)], title=EVIL),
    HeatMap([EVIL], [EVIL], [[0.5]], title=EVIL),
    Rows([(EVIL, EVIL)]),
]


class Elements(HTMLParser):
    """Collects the elements of a page and its text, and checks that they are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(*drawings: Drawing) -> str:
    sections = Sections()
    return page_start(EVIL) + "".join(map(sections.section, drawings)) + END


def test_everything_is_escaped() -> None:
    elements = Elements(page(EVERY_PART))
    assert not {"script", "img"} & {tag for tag, _ in elements.seen}
    assert {key for _, attributes in elements.seen for key in attributes} <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "style", "title")
    }
    # The page's title twice; of marked text a title, the text and a label; then titles, texts, names.
    assert elements.text.count(EVIL) == 2 + 3 + 2 + 3 + 3 + 2


def test_the_page_needs_nothing_else() -> None:
    text = page_start("plain") + Sections().section([MarkedText("plain")]) + END
    assert not re.search(r"https?:|//|url\(|@import|<link|<script|src=", text)
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text


def test_marks_nest_and_keep_their_colors() -> None:
    sections = Sections()
    nested = sections.section([MarkedText("her boat", [Mark(0, 3, "2"), Mark(0, 8, "1", 0.875)])])
    assert '<mark class="c0" title="87.5 %"><mark class="c1">her<b>2</b></mark> boat<b>1</b></mark>' in nested
    assert '<mark class="c1">a<b>2</b></mark>' in sections.section([MarkedText("a", [Mark(0, 1, "2")])])
    assert 'title="&lt;0.1 %"' in sections.section([MarkedText("a", [Mark(0, 1, "X", 0.0001)])])


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (MarkedText("here", title="place"), "<h2>place</h2>"),
        (Bars([("yes", 0.75), ("no", 0.25)]), '<b>yes</b><i style="width:75.0%"></i><span>75.0 %</span>'),
        (Bars([("yes", 0.75), ("no", 0.25)]), '<span>no</span><i style="width:25.0%"></i><span>25.0 %</span>'),
        (HeatMap(["r"], ["c"], [[0.25]]), "--share:0.25"),
        (ShadedText("a", [(0, 1)], [0.2]), "--share:1.00"),
    ],
)
def test_titles_and_shares_are_written(part: Figure, written: str) -> None:
    section = Sections().section([part])
    assert written in section
    assert ("<h2>" in section) == ("<h2>" in written)


def test_shaded_text_is_whole_with_its_weights_as_tips() -> None:
    written = Sections().section([ShadedText("«a», b!", [(1, 2), (5, 6)], [0.2, 0.1])])
    assert re.sub("<[^>]*>", "", written).strip() == "«a», b!"
    assert re.findall(r'--share:([.\d]+)" title="([^"]*)">(.*?)</span>', written) == [
        ("1.00", "20.0 %", "a"),
        ("0.50", "10.0 %", "b"),
    ]
    (written,) = re.findall(r"<p>(.*)</p>", Sections().section([ShadedText(" a", [(1, 2)], [1.0])]))
    assert written.startswith(" <span")


@pytest.mark.parametrize(
    "part",
    [
        ShadedText("not bad", [(0, 3), (4, 7)], [0.9]),
        HeatMap(["a", "b"], ["c"], [[1.0]]),
        HeatMap(["a"], ["b", "c"], [[1.0]]),
    ],
)
def test_tokens_without_a_weight_are_refused(part: Figure) -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        Sections().section([part])


def test_a_phone_shows_that_a_wide_heat_map_goes_on(tmp_path: Path, browser: Any) -> None:
    words = [f"word{number}" for number in range(40)]
    wide = HeatMap(words[:3], words, [[0.5] * 40] * 3)
    (tmp_path / "page.html").write_text(page_start("title") + Sections().section([wide]) + END, encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 700})
    page.goto(f"file://{tmp_path}/page.html")
    assert page.evaluate("document.documentElement.scrollWidth") == 390  # the page itself does not scroll
    box = page.locator(".scroll").bounding_box()
    strip = {"x": box["x"] + box["width"] - 6, "y": box["y"], "width": 6, "height": box["height"]}
    begin = page.screenshot(clip=strip)
    page.evaluate("document.querySelector('.scroll').style.background = 'none'")
    assert page.screenshot(clip=strip) != begin  # the shadow is what makes the difference


def test_tokens_for_and_against_have_their_own_classes() -> None:
    written = Sections().section([SignedText([("<a>", -0.2), ("b", 0.1)], title="x ← y")])
    assert "<h2>x ← y</h2>" in written
    assert re.findall(r'class="(\w+) shaded" style="--share:([.\d]+)" title="([^"]*)">(.*?)</span>', written) == [
        ("cold", "1.00", "-20.0 %", "&lt;a&gt;"),
        ("heat", "0.50", "10.0 %", "b"),
    ]
