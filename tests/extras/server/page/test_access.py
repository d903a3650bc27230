"""The page for everyone: by keyboard, on a phone, in the dark, by a link, and when something is wrong."""

import json
import re
import xml.etree.ElementTree
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.extras.server.page.visits import (
    ALL_TABS,
    EXAMPLES,
    TASKS,
    Served,
    Visit,
    downloaded,
    expect,
    first_example,
    found,
    open_tab,
)

axe_core = pytest.importorskip("axe_core_python.sync_playwright", reason="no axe: pip install axe-core-python")


def test_the_keyboard_alone_reaches_everything(visit: Visit) -> None:
    page = visit.page
    for tab in TASKS:
        open_tab(page, "ELMo")
        page.get_by_role("tab", name="ELMo").focus()
        for _ in range(ALL_TABS.index(tab)):
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
        assert reached == set(reachable), tab


def test_enter_submits_and_shift_enter_begins_a_line(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "Names")
    panel.get_by_label("Text").fill("")
    visit.page.keyboard.type("Orla left.")
    visit.page.keyboard.press("Shift+Enter")
    visit.page.keyboard.type("Tavo <b>stayed</b>.")
    visit.page.keyboard.press("Enter")
    found(panel)
    expected = served.of("Names").predictor("Orla left.\nTavo <b>stayed</b>.")
    results = json.loads(downloaded(panel, "JSON"))["results"]
    assert [result["tokens"] for result in results] == [result["tokens"] for result in expected]
    expect(panel.locator(".picture b", has_text="stayed")).to_have_count(0)


def test_a_link_holds_run_and_input(visit: Visit, served: Served) -> None:
    page = visit.page
    panel = open_tab(page, "Names")
    panel.get_by_label("Run").select_option("again_ner_conll03")
    panel.get_by_label("Text").fill("A & b = 100 %#?")
    panel.get_by_role("button", name="Run").click()
    summary = found(panel).locator(".summary").inner_text()
    link = page.url
    open_tab(page, "Questions")
    page.goto("about:blank")
    page.goto(link)
    panel = page.get_by_role("tabpanel", name="Names")
    expect(found(panel).locator(".summary")).to_have_text(summary)
    expect(panel.get_by_label("Run")).to_have_value("again_ner_conll03")
    expect(panel.get_by_label("Text")).to_have_value("A & b = 100 %#?")
    panel.get_by_label("Text").fill("Another.")
    panel.get_by_label("Text").press("Enter")
    expect(page).to_have_url(re.compile("Another"))
    page.go_back()
    expect(panel.get_by_label("Text")).to_have_value("A & b = 100 %#?")
    page.goto(f"{served.address}#{urlencode({'run': 'nerr', 'text': 'x'}, quote_via=quote)}")
    expect(page.get_by_role("alert").filter(visible=True)).to_have_text("This server has no run named nerr.")


def test_a_blank_field_is_named_in_the_same_words_everywhere(visit: Visit) -> None:
    fields = {"Names": "Text", "Coreference": "Text", "Inference": "Hypothesis", "ELMo": "Another sense"}
    for tab, field in fields.items():
        panel = open_tab(visit.page, tab)
        found(panel)
        address = visit.page.url
        blank = panel.get_by_label(field, exact=True)
        blank.fill("  ")
        blank.press("Enter")
        alert = panel.locator(".result").get_by_role("alert")
        expect(alert).to_have_text(f"“{field}” is blank. Enter something, or choose an example.")
        expect(blank).to_be_focused()
        expect(blank).to_have_attribute("aria-invalid", "true")
        expect(panel.locator(".found")).to_be_hidden()
        assert visit.page.url == address
        first_example(panel)
        expect(alert).to_be_empty()
        expect(blank).to_have_attribute("aria-invalid", "false")


@pytest.mark.parametrize(("tab", "field"), [("Sentiment", "Text"), ("ELMo", "Sentence")])
def test_the_server_refuses_in_the_words_of_the_page(tab: str, field: str, visit: Visit) -> None:
    visit.expected_status = (422,)
    panel = open_tab(visit.page, tab)
    found(panel)
    address = visit.page.url
    problem = {"error": "'text' is '?'; expected a text with at least one token"}
    asked = re.compile("/predict|/embed")
    visit.page.route(asked, lambda route: route.fulfill(status=422, json=problem))
    panel.get_by_label(field, exact=True).fill("?")
    panel.get_by_label(field, exact=True).press("Enter")
    alert = panel.locator(".result").get_by_role("alert")
    expect(alert).to_have_text(f"“{field}” is '?'; expected a text with at least one token")
    visit.page.unroute(asked)
    panel.get_by_label(field, exact=True).fill("a " * 2001)
    panel.get_by_label(field, exact=True).press("Enter")
    expect(alert).to_have_text("2,001 tokens; expected at most 2,000 in a request. Send less text at once")
    assert visit.page.url == address
    open_tab(visit.page, "Names")
    open_tab(visit.page, tab)  # the text that was refused is not in the address of its tab either
    assert visit.page.url.startswith(address)


@pytest.mark.parametrize(("tab", "field"), [("Questions", "Question"), ("ELMo", "Sentence")])
def test_a_result_is_dimmed_while_the_form_says_something_else(tab: str, field: str, visit: Visit) -> None:
    panel = open_tab(visit.page, tab)
    shown, written = found(panel), EXAMPLES[TASKS[tab]][0]
    before = written["question" if tab == "Questions" else "one"]
    picture, opacity = shown.locator(".picture"), "each => Number(getComputedStyle(each).opacity)"
    panel.get_by_label(field, exact=True).fill("Who built the bank?")
    assert picture.evaluate(opacity) < 0.7
    expect(shown.get_by_text("This result is for the text before your change.")).to_be_visible()
    panel.get_by_label(field, exact=True).fill(before)
    assert picture.evaluate(opacity) == 1
    panel.get_by_label(field, exact=True).fill("Who built the bank?")
    panel.get_by_role("button", name="Run").click()
    expect(picture).to_have_css("opacity", "1")


@pytest.mark.parametrize("context", [{"viewport": {"width": 390, "height": 844}}], ids=["phone"], indirect=True)
def test_the_result_begins_on_the_first_screen_of_a_phone(visit: Visit) -> None:
    for tab in TASKS:
        summary = found(open_tab(visit.page, tab)).locator(".summary").bounding_box()
        assert summary["y"] + summary["height"] < 844, tab


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda route: route.abort(), "The server is not responding. Is it still running?"),
        (lambda route: route.fulfill(body='{"results": ['), "The answer was cut off or is not JSON."),
    ],
    ids=["gone", "cut off"],
)
def test_a_server_that_does_not_answer_is_told(answer: Any, said: str, visit: Visit) -> None:
    visit.page.route("**/predict?details=true", answer)
    panel = open_tab(visit.page, "Sentiment")
    panel.locator(".example").first.click()
    expect(panel.get_by_role("alert")).to_have_text(said)
    visit.page.goto("about:blank")  # no other request fails from here on
    assert all(text.startswith("Failed to load resource") for text in visit.complaints)
    visit.complaints.clear()


def test_a_tab_that_was_left_says_nothing(visit: Visit) -> None:
    waiting: list[Any] = []
    visit.page.route("**/runs/ner_conll03/predict?details=true", lambda route: waiting.append(route))
    open_tab(visit.page, "Names")
    left = visit.page.get_by_role("tabpanel", name="Names", exact=True, include_hidden=True)
    left.locator(".example").first.click()
    expect(left.locator(".result")).to_have_attribute("aria-busy", "true")
    shown = first_example(open_tab(visit.page, "Sentiment"))
    waiting[-1].continue_()  # the page has dropped the ones before
    expect(left.locator(".result")).to_have_attribute("aria-busy", "false")
    expect(left.locator(".summary")).not_to_be_empty()
    expect(visit.page.get_by_role("status")).to_have_text(shown.locator(".summary").inner_text())


@pytest.mark.parametrize(
    "context",
    [
        {"viewport": {"width": 1000, "height": 900}},
        {"viewport": {"width": 360, "height": 780}, "color_scheme": "dark", "has_touch": True},
    ],
    ids=["desktop", "dark-phone"],
    indirect=True,
)
def test_axe_finds_no_fault(visit: Visit) -> None:
    for tab in TASKS:
        panel = open_tab(visit.page, tab)
        first_example(panel)
        if tab != "ELMo":
            other = panel.get_by_label("Compare with")
            other.select_option(index=1)
            expect(panel.locator(".side")).to_have_count(2)
        for details in panel.locator("summary").all():
            details.click()
        violations = axe_core.Axe().run(visit.page, options={"resultTypes": ["violations"]})["violations"]
        assert [(each["id"], each["impact"], [node["html"] for node in each["nodes"]]) for each in violations] == [], (
            tab
        )
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            f"{tab}: wider than the screen"
        )


def test_pictures_are_downloaded_as_svg(visit: Visit) -> None:
    for tab in TASKS:
        panel = open_tab(visit.page, tab)
        shown = found(panel)
        svg = xml.etree.ElementTree.fromstring(downloaded(panel, "SVG"))
        words = {each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")}
        assert set(shown.locator(".picture").inner_text().split()) - words <= {"\u00a0"}, tab
        width, height = (float(svg.attrib[key]) for key in ("width", "height"))
        assert width > 0
        assert height > 0
        assert {each.tag.split("}")[1] for each in svg.iter()} == {"svg", "g", "rect", "text"}, tab


def test_dark_mode_is_chosen_and_kept(visit: Visit) -> None:
    page = visit.page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    expect(page.get_by_role("button", name="Light", exact=True)).to_be_visible()
    assert page.evaluate(background) == dark
    page.evaluate("localStorage.clear()")  # the next visit is a first one


def test_the_page_works_where_the_browser_blocks_site_data(visit: Visit) -> None:
    blocked = "get: () => { throw new DOMException('blocked', 'SecurityError'); }"
    visit.page.add_init_script(f"Object.defineProperty(window, 'localStorage', {{ {blocked} }})")
    visit.page.reload()
    found(open_tab(visit.page, "Names"))
    visit.page.get_by_role("button", name="Dark").click()
    expect(visit.page.get_by_role("button", name="Light", exact=True)).to_be_visible()
