"""The pages of reports: what they have, in which order, and that nothing in them is taken for markup."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from elmo_tasks import __version__
from elmo_tasks.rendering.drawing import Drawing, MarkedText
from elmo_tasks.studies.report_pages import Details, Picture, Report, Table

TABLE = Table("Scores", ("arm", "f1 | em", "n"), [["a|b", "1.00", "<2>"], ["c", "", "3"]])
MARKDOWN = "| arm | f1 \\| em | n |\n| --- | ---: | ---: |\n| a\\|b | 1.00 | <2> |\n| c |  | 3 |"
EXAMPLE: Drawing = [MarkedText("Mary left")]


class About(NamedTuple):
    title: str
    text: str


def test_a_table_has_a_head_and_rows() -> None:
    assert TABLE.markdown() == MARKDOWN
    html = TABLE.html()
    assert re.findall(r"<th>(.*?)</th>", html) == ["arm", "f1 | em", "n"]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    assert rows == [[], ["a|b", "1.00", "&lt;2&gt;"], ["c", "", "3"]]


def test_details_have_tables_and_only_the_page_has_examples() -> None:
    details = Details("<arm>", [TABLE, Table("more", ("a",), [["b"]])], [EXAMPLE])
    more = "more\n\n| a |\n| --- |\n| b |"
    assert details.markdown() == f"### <arm>\n\nScores\n\n{MARKDOWN}\n\n{more}"
    html = details.html()
    assert html.startswith("<details><summary>&lt;arm&gt;</summary>")
    assert re.findall("<h3>(.*?)</h3>", html) == ["Scores", "more", "the worst examples"]
    assert html.index("the worst examples") < html.index("Mary left") < html.index("</details>")
    assert "the worst examples" not in Details("a", [TABLE]).html()
    assert Details("a", [], [EXAMPLE]).markdown() == ""


def test_a_report_has_its_parts_in_order(tmp_path: Path) -> None:
    picture = Picture("A <plot>", "It shows & tells.", tmp_path / "plots" / "p.svg")
    picture.path.parent.mkdir()
    picture.path.write_text('<?xml version="1.0"?>\n<svg width="1"><g id="svg "/></svg>\n')
    tables = [TABLE, Table("", ("x",), [["y"]])]
    report = Report(
        About("A & B", "What <it> is."), tables, "Some <notes>.", [picture], "run <it>", [Details("e", [TABLE])]
    )
    assert report.write(tmp_path) == [tmp_path / "report.md", tmp_path / "report.html"]
    parts = (tmp_path / "report.md").read_text(encoding="utf-8").split("\n\n")
    assert [part for part in parts if not part.startswith("Counted as")] == [
        "# A & B", "What <it> is.", "## Scores", MARKDOWN, "| x |\n| --- |\n| y |", "Some <notes>.",
        "## A <plot>", "![A <plot>](plots/p.svg)", "It shows & tells.", "## Errors", "### e", "Scores", MARKDOWN,
        "## Commands", "```\nrun <it>\n```", f"Written by elmo-tasks {__version__}.\n",
    ]  # fmt: skip
    assert parts[10].startswith("Counted as the task's scorer counts.")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    expected = (
        "<title>A &amp; B</title>", "<p>What &lt;it&gt; is.</p>", "<section>", "<h2>Scores</h2>", "<td>y</td>",
        "Some &lt;notes&gt;.", "</section>", "<h2>A &lt;plot&gt;</h2>", "<p>It shows &amp; tells.</p>",
        '<figure><svg role="img" aria-label="A &lt;plot&gt;" width="1"><g id="svg "/></svg>',
        "<h2>Errors</h2>", "Counted as", "<summary>e</summary>", "<h2>Commands</h2>", "<pre>run &lt;it&gt;</pre>",
        f"<footer>Written by elmo-tasks {__version__}.",
    )  # fmt: skip
    offsets = [html.find(text) for text in expected]
    assert -1 not in offsets
    assert offsets == sorted(offsets)
    assert "<h2></h2>" not in html  # of the table without a title
    assert html.count("<section>") == html.count("</section>") == 4
    assert "<?xml" not in html


def test_what_a_report_lacks_has_no_place_in_it(tmp_path: Path) -> None:
    Report(About("A", ""), [], "Notes.", [], "run").write(tmp_path)
    text, html = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.md", "report.html"))
    assert text == f"# A\n\nNotes.\n\n## Commands\n\n```\nrun\n```\n\nWritten by elmo-tasks {__version__}.\n"
    assert "Errors" not in html
    assert "<p></p>" not in html
