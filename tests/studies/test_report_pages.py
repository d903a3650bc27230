"""The pages of reports: what they have, in which order, and that nothing in them is taken for HTML."""

from __future__ import annotations

from pathlib import Path

from elmo_tasks import __version__
from elmo_tasks.rendering.drawing import MarkedText
from elmo_tasks.studies.report_pages import Table, picture, write_pages


def test_a_report_has_its_parts_in_order(tmp_path: Path) -> None:
    table = Table("Scores", ("arm", "f1 | em", "n"), [["a|b", "1.00", "<2>"], ["c", "", "3"]]).markdown()
    assert table == "| arm | f1 \\| em | n |\n| --- | ---: | ---: |\n| a\\|b | 1.00 | <2> |\n| c |  | 3 |"
    plot = tmp_path / "plots" / "p.svg"
    plot.parent.mkdir()
    plot.write_text('<?xml version="1.0"?>\n<svg width="1"><g id="svg "/></svg>\n')
    parts = ["What <it> is.", "", table, picture("A <plot>", plot)]
    files = write_pages(tmp_path, "A & B", parts, "run <it>", {"<e>": [[MarkedText("Mira left")]]})
    assert files == [tmp_path / "report.md", tmp_path / "report.html"]
    text, html = (path.read_text(encoding="utf-8") for path in files)
    assert text.split("\n\n") == [
        "# A & B", "What <it> is.", table, "![A <plot>](plots/p.svg)",
        "## Commands", "```\nrun <it>\n```", f"Written by elmo-tasks {__version__}.\n",
    ]  # fmt: skip
    expected = (
        "<title>A &amp; B</title>", "<h1>A &amp; B</h1>", "<p>What &lt;it&gt; is.</p>", "<table>", ">f1 | em</th>",
        '<td style="text-align:right">&lt;2&gt;</td>',
        '<svg role="img" aria-label="A &lt;plot&gt;" width="1"><g id="svg "/></svg>',
        "<details><summary>&lt;e&gt;</summary>", "Mira left", "</details>",
        "<h2>Commands</h2>", "run &lt;it&gt;", f"<p>Written by elmo-tasks {__version__}.</p>", "</html>",
    )  # fmt: skip
    offsets = [html.find(part) for part in expected]
    assert -1 not in offsets
    assert offsets == sorted(offsets)
    assert not any(tag in html for tag in ("<img", "<?xml", "<it>"))
