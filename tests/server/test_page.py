"""The page in a browser: every tab is used as a person would, with the mouse and with the keyboard alone."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import threading
import xml.etree.ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import uvicorn

import elmo_tasks
from elmo_tasks.rendering.drawing import PALETTE
from elmo_tasks.server.app import PAGE, create_app
from elmo_tasks.server.bilm_vectors import ServedBiLM, bilms_of_runs
from elmo_tasks.server.served_runs import ServedRun, load_runs
from elmo_tasks.server.serving import bind
from tests.server.conftest import train_all

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
axe_core = pytest.importorskip("axe_core_python.sync_playwright", reason="no axe: pip install axe-core-python")
Page, Locator, expect = sync_api.Page, sync_api.Locator, sync_api.expect
expect.set_options(timeout=30_000)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
    # Playwright's own event loop is closed after that of a test
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

NOTE = "Trained for a moment, on made-up sentences."
EXAMPLES = json.loads((PAGE / "examples.json").read_text(encoding="utf-8"))

# The configs of the runs, by the titles of their tabs.
TABS = {
    "Tagging": "ner_conll03",
    "Roles": "cpu/srl_ewt",
    "Coreference": "cpu/coref_ontogum",
    "Reading": "cpu/squad",
    "Inference": "cpu/snli",
    "Classification": "cpu/sst5",
}
TASKS = {
    "Tagging": "tagging",
    "Roles": "semantic_roles",
    "Coreference": "coreference",
    "Reading": "reading",
    "Inference": "text_pairs",
    "Classification": "classification",
    "ELMo": "elmo",
}


@dataclasses.dataclass(frozen=True)
class Served:
    """A running server, and what it serves."""

    address: str
    runs: dict[str, ServedRun]
    bilm: ServedBiLM

    def of(self, tab: str) -> ServedRun:
        return self.runs[Path(TABS[tab]).name]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a run for each task, each trained for an epoch on few sentences."""
    folder = tmp_path_factory.mktemp("page")
    configs = {Path(config).name: config for config in (*TABS.values(), "predicates_ewt")}
    runs = load_runs(train_all(folder, configs), batch_tokens=256)
    bilms = bilms_of_runs(runs)
    bilms[""].warm_up()
    server = uvicorn.Server(uvicorn.Config(create_app(runs, bilms, note=NOTE), log_config=None))
    with bind("127.0.0.1", 0) as bound:
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        yield Served("http://127.0.0.1:{1}/".format(*bound.getsockname()), runs, bilms[""])
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]) as browser,
    ):
        yield browser


@dataclasses.dataclass
class Visit:
    """A page, and what it asked for and complained of."""

    page: Any
    requests: list[str] = dataclasses.field(default_factory=list)
    complaints: list[str] = dataclasses.field(default_factory=list)
    expected_status: tuple[int, ...] = ()  # Chromium complains of answers that are errors


@pytest.fixture
def visit(browser: Any, served: Served, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh visit. In the end it must not have asked other servers, nor have complained."""
    with browser.new_context(**getattr(request, "param", {"viewport": {"width": 1000, "height": 900}})) as context:
        visit = Visit(context.new_page())
        context.on("request", lambda asked: visit.requests.append(asked.url))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("console", lambda message: visit.complaints.append(message.text))
        visit.page.goto(served.address)
        visit.page.get_by_role("tab").first.wait_for()
        yield visit
    assert all(url.startswith((served.address, f"blob:{served.address}")) for url in visit.requests)
    allowed = [f"the server responded with a status of {status}" for status in visit.expected_status]
    assert [text for text in visit.complaints if not any(each in text for each in allowed)] == []


def open_tab(page: Page, title: str) -> Locator:
    page.get_by_role("tab", name=title, exact=True).click()
    return page.get_by_role("tabpanel", name=title, exact=True)


def found(panel: Locator) -> Locator:
    """The result of a panel, once it is there."""
    expect(panel.locator(".result")).to_have_attribute("aria-busy", "false")
    shown = panel.locator(".found")
    expect(shown).to_be_visible()
    return shown


def downloaded(panel: Locator, button: str) -> str:
    with panel.page.expect_download() as download:
        panel.locator(".result").get_by_role("button", name=button, exact=True).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def first_example(panel: Locator) -> Locator:
    panel.locator(".example").first.click()
    return found(panel)


def answer_with(page: Page, result: dict[str, Any]) -> None:
    """Has the page get a result of our making, since runs that were trained for an epoch seldom find anything."""
    page.route("**/predict?details=true", lambda route: route.fulfill(json={"results": [result]}))


def test_there_is_a_tab_for_each_task_and_the_note_is_shown(visit: Visit) -> None:
    expect(visit.page.get_by_role("tab")).to_have_text(list(TASKS))
    expect(visit.page.get_by_role("note")).to_have_text(NOTE)


@pytest.mark.parametrize("tab", TABS)
def test_results_are_those_of_predict(tab: str, visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, tab)
    shown = first_example(panel)
    example, predictor = EXAMPLES[TASKS[tab]][0], served.of(tab).predictor
    expected = predictor(example)
    results = json.loads(downloaded(panel, "JSON"))["results"]
    assert [{key: result[key] for key in plain} for result, plain in zip(results, expected, strict=True)] == expected
    expect(visit.page.get_by_role("status")).to_have_text(shown.locator(".summary").inner_text())
    words = re.findall(r"\w+", " ".join(value for value in example.values() if isinstance(value, str)))
    assert set(words) <= set(re.findall(r"\w+", shown.locator(".picture").inner_text()))
    for result in expected:
        for label, share in result.get("probabilities", {}).items() if tab in ("Inference", "Classification") else ():
            row = shown.get_by_role("row").filter(has=visit.page.get_by_role("rowheader", name=label, exact=True))
            expect(row.locator(".number")).to_have_text(f"{100 * share:.1f} %")


def test_a_tagged_token_shows_its_probabilities(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "Tagging")
    first_example(panel).get_by_text("Each token").click()
    result = served.of("Tagging").predictor(EXAMPLES["tagging"][0])[0]
    row = panel.get_by_role("row").nth(1)
    expect(row.get_by_role("rowheader")).to_have_text(result["tokens"][0])
    expect(row.get_by_role("cell").nth(1)).to_have_text(f"{100 * result['probabilities'][0]:.1f} %")


def test_spans_have_the_colours_of_their_labels(visit: Visit) -> None:
    text = "Ångström 😀 met Orla."
    spans = [
        {"label": "LOC", "start": 0, "end": 1, "start_char": 0, "end_char": 10, "text": text[:10], "probability": 0.5},
        {"label": "ORG", "start": 3, "end": 3, "start_char": 15, "end_char": 19, "text": "Orla", "probability": 0.75},
    ]
    answer_with(visit.page, {"text": text, "start_char": 0, "tokens": text.split(), "spans": spans})
    shown = first_example(open_tab(visit.page, "Tagging"))
    expect(shown.locator("mark")).to_have_text(["Ångström 😀 LOC 50.0 %", "Orla ORG 75.0 %"])
    colors = shown.locator("mark").evaluate_all("marks => marks.map((each) => getComputedStyle(each).backgroundColor)")
    assert colors == [f"rgb({', '.join(str(int(PALETTE[n][at : at + 2], 16)) for at in (1, 3, 5))})" for n in (0, 2)]


def test_roles_stand_under_their_tokens(visit: Visit) -> None:
    tokens = ["They", "can", "turn", "the", "wheel"]
    role = {"role": "ARG1", "start": 3, "end": 4, "text": "the wheel", "probability": 0.5}
    tags = ["O", "O", "B-V", "B-ARG1", "I-ARG1"]
    frame = {"predicate": 2, "predicate_text": "turn", "tags": tags, "roles": [role]}
    answer_with(visit.page, {"text": " ".join(tokens), "tokens": tokens, "frames": [frame]})
    shown = first_example(open_tab(visit.page, "Roles"))
    expect(shown.locator(".summary")).to_have_text("1 predicate in 1 sentence")
    cell = shown.locator(".role", has_text="ARG1").bounding_box()
    first, last = (shown.get_by_role("columnheader", name=name, exact=True).bounding_box() for name in tokens[3:])
    assert cell
    assert first
    assert last
    assert first["x"] <= cell["x"] < cell["x"] + cell["width"] <= last["x"] + last["width"]


def test_a_click_or_a_key_on_a_mention_lights_its_chain(visit: Visit) -> None:
    text = "Orla sold her boat. It sank."
    mentions = [
        {"cluster": cluster, "start_char": start, "end_char": end, "text": text[start:end], "probability": 0.5}
        for cluster, start, end in ((0, 0, 4), (1, 10, 18), (0, 10, 13), (1, 20, 22))
    ]
    answer_with(visit.page, {"text": text, "clusters": [[[0, 0], [2, 2]], [[2, 3], [5, 5]]], "mentions": mentions})
    shown = first_example(open_tab(visit.page, "Coreference"))
    expect(shown.locator("mark mark")).to_have_text("1her")
    lit = shown.locator("mark.lit")
    shown.locator("mark", has_text="It").click()
    expect(lit).to_have_text(["21her boat", "2It"])
    key = shown.get_by_role("button", name="chain 1: her", exact=True)
    key.press("Enter")
    expect(lit).to_have_text(["1Orla", "1her"])
    expect(key).to_have_attribute("aria-pressed", "true")
    shown.get_by_role("button", name="Light chain 1").press("Space")
    expect(lit).to_have_count(0)


def test_each_answer_can_be_seen_in_the_passage(visit: Visit, served: Served) -> None:
    shown = first_example(open_tab(visit.page, "Reading"))
    best = served.of("Reading").predictor(EXAMPLES["reading"][0])[0]["best"]
    buttons = shown.get_by_role("row").get_by_role("button")
    expect(buttons).to_have_text([each["answer"] for each in best])
    for button, each in zip(buttons.all(), best, strict=True):
        button.click()
        expect(shown.locator("mark")).to_have_text(each["answer"])
        expect(button).to_have_attribute("aria-pressed", "true")


def test_alignments_are_tables_in_which_arrow_keys_move(visit: Visit, served: Served) -> None:
    shown = first_example(open_tab(visit.page, "Inference"))
    result = served.of("Inference").predictor(EXAMPLES["text_pairs"][0])[0]
    for number, side in enumerate(("premise", "hypothesis")):
        grid = shown.get_by_role("grid").nth(number)
        cells = [text.strip() for text in grid.locator("tbody td").all_inner_texts()]
        values = [value for row in result[f"{side}_attention"] for value in row]
        assert list(map(float, cells)) == pytest.approx(values, abs=0.0051)
    grid = shown.get_by_role("grid").first
    grid.locator("tbody td").first.focus()
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("ArrowRight")
    row, column = result["premise_tokens"][1], result["hypothesis_tokens"][1]
    value = result["premise_attention"][1][1]
    expect(shown.locator(".readout").first).to_have_text(f"{row} → {column}: {value:.3f}")


def test_attention_is_shown_for_each_token(visit: Visit, served: Served) -> None:
    shown = first_example(open_tab(visit.page, "Classification"))
    result = served.of("Classification").predictor(EXAMPLES["classification"][0])[0]
    expect(shown.locator(".token .word")).to_have_text(result["tokens"])
    expect(shown.locator(".token .sure")).to_have_text([f"{100 * share:.1f} %" for share in result["attention"]])


@pytest.mark.parametrize("tab", ["Classification", "Inference"])
def test_a_result_is_explained_token_by_token(tab: str, visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, tab)
    first_example(panel).get_by_text("Explain: which tokens count").click()
    predictor, example = served.of(tab).predictor, EXAMPLES[TASKS[tab]][0]
    for name, method in (("Gradient times input", "gradient"), ("Integrated gradients", "integrated")):
        panel.get_by_role("button", name=name).click()
        (item,) = predictor(example, explain=method)[0]["saliency"]
        tokens = [each for value in item.values() if isinstance(value, list) for each in value]
        shown = panel.locator(".explained .token")
        expect(shown.locator(".word")).to_have_text([token for token, _ in tokens])
        expect(shown.locator(".sure")).to_have_text([f"{100 * share:.1f} %" for _, share in tokens])
        expect(panel.locator(".explained .against")).to_have_count(sum(share < 0 for _, share in tokens))


def test_what_cannot_be_explained_is_said(visit: Visit) -> None:
    visit.expected_status = (422,)
    answer = {"status": 422, "json": {"error": "too much to explain"}}
    visit.page.route("**/predict?explain=gradient", lambda route: route.fulfill(**answer))
    shown = first_example(open_tab(visit.page, "Tagging"))
    shown.get_by_text("Explain: which tokens count").click()
    shown.get_by_role("button", name="Gradient times input").click()
    expect(shown.get_by_role("alert")).to_have_text("too much to explain")


def test_elmo_is_compared_layer_by_layer(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "ELMo")
    shown = first_example(panel)
    example = EXAMPLES["elmo"][0]

    def similarities(at: int) -> list[str]:
        sides = [({"text": example["one"]}, at), ({"text": example["other"]}, example["other_at"])]
        (answer,) = served.bilm.answer([served.bilm.compare(sides)])
        return [f"{layer['cosine']:.3f}" for layer in json.loads(answer)["layers"]]

    numbers = shown.locator(".bars").first.locator(".number")
    expect(numbers).to_have_text(similarities(example["at"]))
    expect(shown.locator(".nearest li")).to_have_count(2 * 5 * served.bilm.num_layers)
    words = panel.get_by_role("radiogroup", name="Word in the first sentence").get_by_role("radio")
    words.nth(example["at"]).press("ArrowLeft")
    expect(numbers).to_have_text(similarities(example["at"] - 1))
    mixes = panel.get_by_role("grid").get_by_role("row").filter(has_text="ner_conll03")
    (mix,) = served.of("Tagging").about["mixes"]
    expect(mixes.get_by_role("gridcell")).to_have_text([re.sub("^0", "", f"{weight:.3f}") for weight in mix["weights"]])


def test_elmo_shows_which_words_the_bilm_expects(visit: Visit) -> None:
    panel = open_tab(visit.page, "ELMo")
    shown = first_example(panel)
    example = EXAMPLES["elmo"][0]
    one, other = elmo_tasks.load_language_model().score("\n".join([example["one"], example["other"]]), 5)
    tokens = [*one.tokens, *other.tokens]
    expect(shown.locator(".expected .word")).to_have_text([each.token for each in tokens])
    expect(shown.locator(".expected .sure")).to_have_text([f"{each.both / math.log(2):.1f}" for each in tokens])
    chosen = one.tokens[example["at"]]
    bars = shown.get_by_role("table", name=f"Expected in place of “{chosen.token}”").first
    expect(bars.get_by_role("rowheader")).to_have_text([word for word, _ in chosen.substitutes])
    expect(bars.locator(".number")).to_have_text([f"{100 * chance:.1f} %" for _, chance in chosen.substitutes])
    shown.get_by_text("Each word", exact=True).click()
    row = shown.get_by_role("row").filter(has=visit.page.get_by_role("rowheader", name="waters", exact=True))
    bits = [f"{nats / math.log(2):.1f}" for nats in (one.tokens[1].forward, one.tokens[1].backward, one.tokens[1].both)]
    expect(row.locator(".number")).to_have_text(bits)


def test_elmo_says_that_a_bilm_has_no_softmax(visit: Visit) -> None:
    visit.expected_status = (422,)
    problem = "this biLM has no softmax, so it does not say which words it expects"
    visit.page.route("**/api/score", lambda route: route.fulfill(status=422, json={"error": problem}))
    shown = first_example(open_tab(visit.page, "ELMo"))
    expect(shown.locator(".expected p")).to_have_text(problem)
    expect(shown.locator(".nearest")).to_have_count(2)


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
    panel.get_by_label("Text").focus()
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
    first_example(panel)
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
    assert visit.complaints.pop().startswith("Failed to load resource")


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
