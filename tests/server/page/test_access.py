"""The page for everyone: by keyboard, on a phone, in the dark, by a link, and when something is wrong."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.server.page.visits import TASKS, Served, Visit, downloaded, expect, first_example, found, open_tab

axe_core = pytest.importorskip("axe_core_python.sync_playwright", reason="no axe: pip install axe-core-python")


@pytest.mark.parametrize("tab", TASKS)
def test_the_keyboard_alone_reaches_everything(tab: str, visit: Visit) -> None:
    page = visit.page
    open_tab(page, "Tagging")
    page.get_by_role("tab", name="Tagging").focus()
    for _ in range(list(TASKS).index(tab)):
        page.keyboard.press("ArrowRight")
    panel = page.get_by_role("tabpanel", name=tab, exact=True)
    expect(panel).to_be_visible()
    page.keyboard.press("Tab")  # to the first control of the panel
    while page.evaluate("!document.activeElement.matches('.example')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    found(panel)
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    reachable = page.evaluate(
        """() => [...document.querySelectorAll("a, button, select, textarea, summary, input, [tabindex]")]
            .filter((each) => each.checkVisibility() && each.tabIndex >= 0)
            .filter((each) => each.type !== "radio" || each.checked)
            .map((each, number) => (each.dataset.reachable = number))"""
    )
    page.locator(".skip").focus()
    reached = set()
    for _ in range(len(reachable) + 3):
        outlined = page.evaluate(
            """() => [document.activeElement.dataset.reachable, getComputedStyle(
                document.activeElement.type === "radio" ? document.activeElement.nextElementSibling
                : document.activeElement).outlineStyle]"""
        )
        if outlined[0] is not None:
            reached.add(int(outlined[0]))
            assert outlined[1] != "none", "the focus cannot be seen"
        page.keyboard.press("Tab")
    assert reached == set(reachable)


def test_enter_submits_and_shift_enter_begins_a_line(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "Tagging")
    panel.get_by_label("Text").fill("")
    visit.page.keyboard.type("Orla left.")
    visit.page.keyboard.press("Shift+Enter")
    visit.page.keyboard.type("Tavo <b>stayed</b>.")
    visit.page.keyboard.press("Enter")
    found(panel)
    expected = served.of("Tagging").predictor("Orla left.\nTavo <b>stayed</b>.")
    results = json.loads(downloaded(panel, "JSON"))["results"]
    assert [result["tokens"] for result in results] == [result["tokens"] for result in expected]
    expect(panel.locator(".picture b", has_text="stayed")).to_have_count(0)


def test_a_link_holds_run_and_input(visit: Visit, served: Served) -> None:
    page = visit.page
    panel = open_tab(page, "Tagging")
    panel.get_by_label("Run").select_option("predicates_ewt")
    panel.get_by_label("Text").fill("A & b = 100 %#?")
    panel.get_by_role("button", name="Run").click()
    summary = found(panel).locator(".summary").inner_text()
    link = page.url
    open_tab(page, "Reading")
    page.goto("about:blank")
    page.goto(link)
    panel = page.get_by_role("tabpanel", name="Tagging")
    expect(found(panel).locator(".summary")).to_have_text(summary)
    expect(panel.get_by_label("Run")).to_have_value("predicates_ewt")
    expect(panel.get_by_label("Text")).to_have_value("A & b = 100 %#?")
    panel.get_by_label("Text").fill("Another.")
    panel.get_by_label("Text").press("Enter")
    expect(page).to_have_url(re.compile("Another"))
    page.go_back()
    expect(panel.get_by_label("Text")).to_have_value("A & b = 100 %#?")
    page.goto(f"{served.address}#{urlencode({'run': 'nerr', 'text': 'x'}, quote_via=quote)}")
    expect(page.get_by_role("alert").filter(visible=True)).to_have_text("There is no run nerr here.")


def test_errors_are_the_sentences_of_the_server(visit: Visit) -> None:
    visit.expected_status = (422,)
    panel = open_tab(visit.page, "Inference")
    found(panel)
    panel.get_by_label("Premise", exact=True).fill("")
    panel.get_by_label("Premise", exact=True).press("Enter")
    alert = panel.get_by_role("alert")
    expect(alert).to_have_text("'premise' is ''; expected a string that is not blank")
    expect(panel.locator(".found")).to_be_hidden()
    first_example(panel)
    expect(alert).to_be_empty()


def test_a_server_that_is_gone_is_told(visit: Visit) -> None:
    visit.page.route("**/predict?details=true", lambda route: route.abort())
    panel = open_tab(visit.page, "Classification")
    panel.locator(".example").first.click()
    expect(panel.get_by_role("alert")).to_have_text("The server does not answer. Is it still running?")
    visit.page.goto("about:blank")  # no other request fails from here on
    assert all(text.startswith("Failed to load resource") for text in visit.complaints)
    visit.complaints.clear()


def test_a_tab_that_was_left_says_nothing(visit: Visit) -> None:
    waiting: list[Any] = []
    visit.page.route("**/runs/ner_conll03/predict?details=true", lambda route: waiting.append(route))
    open_tab(visit.page, "Tagging")
    left = visit.page.get_by_role("tabpanel", name="Tagging", exact=True, include_hidden=True)
    left.locator(".example").first.click()
    expect(left.locator(".result")).to_have_attribute("aria-busy", "true")
    shown = first_example(open_tab(visit.page, "Classification"))
    waiting[-1].continue_()  # the page has dropped the ones before
    expect(left.locator(".result")).to_have_attribute("aria-busy", "false")
    expect(left.locator(".summary")).not_to_be_empty()
    expect(visit.page.get_by_role("status")).to_have_text(shown.locator(".summary").inner_text())


def test_an_answer_that_is_cut_off_is_told(visit: Visit) -> None:
    visit.page.route("**/predict?details=true", lambda route: route.fulfill(body='{"results": ['))
    panel = open_tab(visit.page, "Classification")
    panel.locator(".example").first.click()
    expect(panel.get_by_role("alert")).to_have_text("The answer of the server was cut off, or is not JSON.")


@pytest.mark.parametrize("tab", TASKS)
@pytest.mark.parametrize(
    "visit",
    [
        {"viewport": {"width": 1000, "height": 900}},
        {"viewport": {"width": 360, "height": 780}, "color_scheme": "dark", "has_touch": True},
    ],
    ids=["desktop", "dark-phone"],
    indirect=True,
)
def test_axe_finds_no_fault(tab: str, visit: Visit) -> None:
    panel = open_tab(visit.page, tab)
    first_example(panel)
    if tab != "ELMo":
        other = panel.get_by_label("Side by side with")
        other.select_option(index=1)
        expect(panel.locator(".side")).to_have_count(2)
    for details in panel.locator("summary").all():
        details.click()
    violations = axe_core.Axe().run(visit.page)["violations"]
    assert [(each["id"], each["impact"], [node["html"] for node in each["nodes"]]) for each in violations] == []
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the screen"


@pytest.mark.parametrize("tab", TASKS)
def test_pictures_are_downloaded_as_svg(tab: str, visit: Visit) -> None:
    panel = open_tab(visit.page, tab)
    shown = first_example(panel)
    svg = xml.etree.ElementTree.fromstring(downloaded(panel, "SVG"))
    words = {each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert set(shown.locator(".picture").inner_text().split()) - words <= {"\u00a0"}
    width, height = (float(svg.attrib[key]) for key in ("width", "height"))
    assert width > 0
    assert height > 0
    assert {each.tag.split("}")[1] for each in svg.iter()} == {"svg", "g", "rect", "text"}


def test_dark_mode_is_chosen_and_kept(visit: Visit) -> None:
    page = visit.page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    expect(page.get_by_role("button", name="Light")).to_be_visible()
    assert page.evaluate(background) == dark


def test_the_page_works_where_the_browser_blocks_site_data(visit: Visit) -> None:
    blocked = "get: () => { throw new DOMException('blocked', 'SecurityError'); }"
    visit.page.add_init_script(f"Object.defineProperty(window, 'localStorage', {{ {blocked} }})")
    visit.page.reload()
    found(open_tab(visit.page, "Tagging"))
    visit.page.get_by_role("button", name="Dark").click()
    expect(visit.page.get_by_role("button", name="Light")).to_be_visible()
