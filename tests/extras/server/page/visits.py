"""What the tests of the page do as a person would: open a tab, run an example, look at the result."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.extras.server.app import PAGE
from elmo_tasks.extras.server.bilm_vectors import ServedBiLM
from elmo_tasks.extras.server.served_runs import ServedRun

NO_RUN = "#run=none"  # a page without it begins with an example of ELMo, which takes longest
NOTE = "Trained for a moment, on made-up sentences."
EXAMPLES = json.loads((PAGE / "examples.json").read_text(encoding="utf-8"))

# The configs of the runs, by the titles of their tabs.
TABS = {
    "Names": "ner_conll03",
    "Roles": "cpu/srl_ewt",
    "Coreference": "cpu/coref_ontogum",
    "Questions": "cpu/squad",
    "Inference": "cpu/snli",
    "Sentiment": "cpu/sst5",
}
TASKS = {
    "ELMo": "elmo",
    "Names": "names",
    "Roles": "semantic_roles",
    "Coreference": "coreference",
    "Questions": "reading",
    "Inference": "text_pairs",
    "Sentiment": "sentiment",
}
ALL_TABS = ["ELMo", *TABS]


_TEXT = "Orla sold her boat. It sank."
_MENTIONS = ((0, 0, 4, 0, 0, 0.125), (1, 10, 18, 2, 3, 0.5), (0, 10, 13, 2, 2, 0.5), (1, 20, 22, 5, 5, 0.5))
# A result of coreference, of our making.
TWO_CHAINS: dict[str, Any] = {
    "text": _TEXT,
    "tokens": ["Orla", "sold", "her", "boat", ".", "It", "sank", "."],
    "clusters": [[[0, 0], [2, 2]], [[2, 3], [5, 5]]],
    "mentions": [
        {
            "cluster": cluster,
            "start_char": begin,
            "end_char": stop,
            "start": first,
            "end": last,
            "text": _TEXT[begin:stop],
            "probability": share,
        }
        for cluster, begin, stop, first, last, share in _MENTIONS
    ],
}


@dataclasses.dataclass(frozen=True)
class Served:
    """A running server, and what it serves."""

    address: str
    folder: Path  # of the runs
    runs: dict[str, ServedRun]
    bilm: ServedBiLM

    def of(self, tab: str) -> ServedRun:
        return self.runs[Path(TABS[tab]).name]


@dataclasses.dataclass
class Visit:
    """A page, and what it asked for and complained of."""

    page: Any
    requests: list[str] = dataclasses.field(default_factory=list)
    complaints: list[str] = dataclasses.field(default_factory=list)
    expected_status: tuple[int, ...] = ()  # Chromium complains of answers that are errors


def expect(actual: Any) -> Any:
    """Playwright's, which waits for a while."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    sync_api.expect.set_options(timeout=30_000)
    return sync_api.expect(actual)


def first_input(tab: str) -> dict[str, Any]:
    """The first example of a tab, without what is said about it."""
    return {key: value for key, value in EXAMPLES[TASKS[tab]][0].items() if key not in ("about", "expected")}


def open_tab(page: Any, title: str) -> Any:
    page.get_by_role("tab", name=title, exact=True).click()
    return page.get_by_role("tabpanel", name=title, exact=True)


def found(panel: Any) -> Any:
    """The result of a panel, once it is there."""
    expect(panel.locator(".result")).to_have_attribute("aria-busy", "false")
    shown = panel.locator(".found")
    expect(shown).to_be_visible()
    return shown


def downloaded(panel: Any, button: str) -> str:
    with panel.page.expect_download() as download:
        panel.locator(".result").get_by_role("button", name=button, exact=True).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def first_example(panel: Any) -> Any:
    panel.locator(".example").first.click()
    return found(panel)


def share(value: float) -> str:
    """A share as the page writes it."""
    return "<0.1 %" if 0 <= value < 0.0005 else f"{100 * value:.1f} %"


def words_of(texts: list[str]) -> list[str]:
    """Texts with single spaces between their words."""
    return [" ".join(text.split()) for text in texts]


def answer_with(page: Any, result: dict[str, Any], run: str = "*") -> None:
    """Has the page get a result of our making, since runs that were trained for an epoch seldom find anything."""
    page.route(f"**/runs/{run}/predict?details=true", lambda route: route.fulfill(json={"results": [result]}))


def percents(text: str) -> set[str]:
    """The numbers of a page that are shares."""
    return set(re.findall(r"\d+\.\d %", text))


def page_percents(shown: Any) -> set[str]:
    """The shares that a result shows, also those that are seen when the mouse is over them."""
    titles = shown.locator("[title]").evaluate_all("all => all.map((each) => each.title).join(' ')")
    return percents(f"{shown.inner_text()} {titles}")
