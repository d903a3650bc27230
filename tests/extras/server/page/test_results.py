"""The results of each task in a browser: they are those of `predict`, in a picture that can be used."""

import copy
import json
import re
from typing import Any

import pytest

from elmo_tasks.extras.html.html import Sections
from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.served_runs import legend
from elmo_tasks.rendering.drawing import PALETTE
from elmo_tasks.rendering.tasks import describe
from elmo_tasks.tasks import SemanticRoles, Tagging, Task
from tests import browser
from tests.extras.server.page.visits import (
    ALL_TABS,
    EXAMPLES,
    NOTE,
    TABS,
    TASKS,
    TWO_CHAINS,
    Served,
    Visit,
    answer_with,
    downloaded,
    expect,
    first_example,
    first_input,
    found,
    open_tab,
    page_percents,
    percents,
    share,
)


def html_percents(task: Task, result: dict[str, Any]) -> set[str]:
    """The shares that `predict --html` shows of a result."""
    return percents(Sections().section(describe(task, result)))


def test_there_is_a_tab_for_each_task_and_the_note_is_shown(visit: Visit) -> None:
    expect(visit.page.get_by_role("tab")).to_have_text(ALL_TABS)
    expect(visit.page.get_by_role("note")).to_have_text(NOTE)


def test_the_first_example_runs_by_itself_and_the_examples_stand_above_the_form(visit: Visit, served: Served) -> None:
    visit.page.goto(served.address)
    for tab in TASKS:
        panel = visit.page.get_by_role("tabpanel") if tab == "ELMo" else open_tab(visit.page, tab)
        form, examples = panel.locator("form").bounding_box(), panel.locator(".examples").bounding_box()
        assert examples["y"] + examples["height"] < form["y"], tab
        found(panel)
        written = panel.locator("textarea").evaluate_all("all => all.map((each) => each.value)")
        assert written == list(first_input(tab).values())
        expect(panel.locator(".example")).to_have_count(8)
        expect(panel.locator(".found .row .caption")).to_have_text(re.compile(r"Answered in \d+ ms"))


@pytest.mark.parametrize("tab", ["Sentiment", "Questions"])
def test_the_page_of_an_own_run_begins_with_its_own_texts(tab: str, context: Any, served: Served) -> None:
    """And without any with an empty field: a sample text of another kind would say nothing of the run."""
    run = copy.copy(served.of(tab))
    given = {key: value.upper() for key, value in first_input(tab).items()}
    for examples in ([given, given], []):
        run.about = {**run.about, "examples": examples}
        with browser.served(create_app({run.name: run}, {})) as address, context.new_page() as page:
            page.goto(address)
            panel = open_tab(page, tab)
            expect(panel.locator(".example")).to_have_count(len(examples))
            expect(panel.locator("textarea")).to_have_count(len(given))
            written = panel.locator("textarea").evaluate_all("all => all.map((each) => each.value)")
            assert written == (list(given.values()) if examples else [""] * len(given))
            if examples:
                found(panel)


def test_the_page_says_what_the_model_is(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "Names")
    line = panel.locator(".model").first
    run = served.of("Names")
    score = f"F1 {run.about['scores']['f1']:.2f} (validation data, eng.testa)"
    expect(line).to_have_text(f"ner_conll03 · {score} · model card")
    facts = panel.locator(".about dd")
    expect(facts.first).to_be_hidden()
    panel.get_by_text("About the model ner_conll03").click()
    assert {"eng.train", run.about["bilm_size"]} <= set(facts.all_inner_texts())
    assert not re.search(r"_f1|loss|crf_tagger", panel.inner_text())
    visit.expected_status = (404,)  # the browser asks for an icon of the text
    with visit.page.expect_navigation():
        line.get_by_role("link", name="model card").click()
    assert visit.page.locator("body").inner_text() == run.card  # as text: its tags have no effect
    visit.page.go_back()


def test_the_facts_of_an_installed_model_are_shown(visit: Visit, served: Served) -> None:
    score = {"metric": "conll_f1", "split": "test", "seeds": 3, "elmo": 91.5, "baseline": 90, "p": 0.012}
    facts = {"data": ["A corpus", "another"], "licence": "for research only", "score": score, "caution": "Be careful."}
    runs = [{**served.of("Names").about, "facts": facts}]
    visit.page.route("**/api/runs", lambda route: route.fulfill(json={"runs": runs, "note": None}))
    visit.page.reload()
    panel = open_tab(visit.page, "Names")
    line = "ner_conll03 · CoNLL F1 91.50, without ELMo 90.00 (test data, mean of 3 seeds) · model card"
    expect(panel.locator(".model").first).to_have_text(line)
    expect(panel.locator(".lead")).to_have_text(
        "Finds names of people, places, organizations and other things. Be careful."
    )
    panel.get_by_text("About the model ner_conll03").click()
    assert {"A corpus, another", "for research only"} <= set(panel.locator(".about dd").all_inner_texts())


def test_results_are_those_of_predict(visit: Visit, served: Served) -> None:
    for tab in TABS:
        panel = open_tab(visit.page, tab)
        shown = first_example(panel)
        example, predictor = first_input(tab), served.of(tab).predictor
        expected = predictor(example)
        results = json.loads(downloaded(panel, "JSON"))["results"]
        same_keys = [{key: result[key] for key in plain} for result, plain in zip(results, expected, strict=True)]
        assert same_keys == expected
        expect(visit.page.get_by_role("status")).to_have_text(shown.locator(".summary").inner_text())
        texts = [value for key, value in example.items() if key not in ("passage", "question")]  # of these, the answer
        words = re.findall(r"\w+", " ".join([*texts, *(result.get("answer", "") for result in expected)]))
        assert set(words) <= set(re.findall(r"\w+", shown.locator(".picture").inner_text())), tab
        for result in expected:
            for label, chance in result.get("probabilities", {}).items() if tab in ("Inference", "Sentiment") else ():
                header = visit.page.get_by_role("rowheader", name=label, exact=True)
                row = shown.get_by_role("row").filter(has=header)
                expect(row.locator(".number")).to_have_text(share(chance))


def test_a_tagged_token_shows_its_probabilities(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "Names")
    first_example(panel).get_by_text("Each token").click()
    result = served.of("Names").predictor(first_input("Names"))[0]
    row = panel.get_by_role("row").nth(1)
    expect(row.get_by_role("rowheader")).to_have_text(result["tokens"][0])
    expect(row.get_by_role("cell").nth(1)).to_have_text(f"{100 * result['probabilities'][0]:.1f} %")


def test_spans_have_the_colours_of_their_labels(visit: Visit) -> None:
    text = "Ångström 😀 met Orla."
    spans = [
        {"label": "LOC", "start": 0, "end": 1, "start_char": 0, "end_char": 10, "text": text[:10], "probability": 0.5},
        {"label": "ORG", "start": 3, "end": 3, "start_char": 15, "end_char": 19, "text": "Orla", "probability": 0.75},
    ]
    result = {"text": text, "start_char": 0, "tokens": text.split(), "spans": spans}
    answer_with(visit.page, result)
    shown = first_example(open_tab(visit.page, "Names"))
    assert page_percents(shown) == html_percents(Tagging(), result) == {"50.0 %", "75.0 %"}
    expect(shown.locator("mark")).to_have_text(["Ångström 😀 LOC 50.0 %", "Orla ORG 75.0 %"])
    expect(shown.locator("mark").first).to_have_attribute("title", "LOC, place, 50.0 %")
    expect(shown.locator(".key")).to_have_text("LOCplaceORGorganization")
    colors = shown.locator("mark").evaluate_all("marks => marks.map((each) => getComputedStyle(each).backgroundColor)")
    assert colors == [f"rgb({', '.join(str(int(PALETTE[n][at : at + 2], 16)) for at in (1, 3, 5))})" for n in (0, 2)]


def test_a_word_has_its_tag_below_it_in_the_colour_of_its_class(visit: Visit, served: Served) -> None:
    tagged = [("Dogs", "NNS", 0.99), ("and", "CC", 0.99), ("Rex", "NNP", 0.6), ("ran", "VBD", 0.3), (",", ",", 0.99)]
    tokens, tags, shares = zip(*tagged, strict=True)
    offsets = [[0, 4], [5, 8], [9, 12], [13, 16], [16, 17]]
    result = {"text": "Dogs and Rex ran,", "start_char": 0, "tokens": tokens, "tags": tags, "offsets": offsets}
    run = {**served.of("Names").about, "labels": [*tags, "NN"], "legend": legend([*tags, "NN"])}
    roles = {**served.of("Roles").about, "predicates": run["name"]}  # which finds them by the tags of verbs
    visit.page.route("**/api/runs", lambda route: route.fulfill(json={"runs": [run, roles], "note": None}))
    visit.page.reload()
    answer_with(visit.page, {**result, "probabilities": shares})
    shown = first_example(open_tab(visit.page, "Parts of speech"))
    expect(shown.locator(".summary")).to_have_text("4 tagged words in 1 sentence")
    marks = shown.locator("mark")
    expect(marks).to_have_count(4)  # punctuation is not marked
    for mark, token, tag in zip(marks.all(), tokens, tags, strict=False):
        label, box = mark.locator("b").bounding_box(), mark.bounding_box()
        assert mark.locator("b").inner_text() == tag
        assert label["y"] > box["y"] + box["height"] / 2
        assert mark.inner_text().startswith(token)
        assert not re.search(r"\d", mark.inner_text())  # the probability is in the title
    noun, _, name, verb = marks.evaluate_all("all => all.map((each) => each.style.getPropertyValue('--color'))")
    assert len({noun, name, verb}) == 3
    expect(marks.nth(2)).to_have_attribute("title", "NNP, name, singular, 60.0 %")
    images = marks.evaluate_all("all => all.map((each) => getComputedStyle(each).backgroundImage)")
    colors = marks.evaluate_all("all => all.map((each) => getComputedStyle(each).backgroundColor)")
    assert [image.startswith("repeating-linear-gradient") for image in images] == [False, False, True, False]
    assert [color == "rgba(0, 0, 0, 0)" for color in colors] == [False, False, False, True]


@pytest.mark.parametrize("context", [{"viewport": {"width": 390, "height": 844}}], ids=["phone"], indirect=True)
def test_the_roles_of_a_long_sentence_need_no_sideways_scrolling(visit: Visit) -> None:
    tokens = ["They", "can", "turn", "the", "very", "big", "old", "wheel", *["again"] * 24]
    starts = [sum(map(len, tokens[:place])) + place for place in range(len(tokens))]
    offsets = [[start, start + len(token)] for start, token in zip(starts, tokens, strict=True)]
    role = {"role": "ARG1", "start": 3, "end": 7, "start_char": 14, "end_char": 36, "text": "x", "probability": 0.003}
    tags = ["O", "O", "B-V", "B-ARG1", *["I-ARG1"] * 4, *["O"] * 24]
    frame = {"predicate": 2, "predicate_text": "turn", "tags": tags, "roles": [role]}
    other = {"predicate": 1, "predicate_text": "can", "tags": ["O", "B-V", *["O"] * 30], "roles": []}
    result = {"text": " ".join(tokens), "start_char": 0, "offsets": offsets, "tokens": tokens, "frames": [other, frame]}
    answer_with(visit.page, result)
    shown = first_example(open_tab(visit.page, "Roles"))
    assert page_percents(shown) == html_percents(SemanticRoles(), result) == {"0.3 %"}
    expect(shown.locator(".summary")).to_have_text("1 predicate in 1 sentence")
    expect(shown.locator("mark")).to_have_text(["turn (predicate)", "the very big old wheel ARG1 0.3 %"])
    expect(shown.locator(".key")).to_be_hidden()
    shown.get_by_text("Labels", exact=True).click()
    expect(shown.locator(".key")).to_have_text("ARG1patient: whom or what it happens to")
    assert shown.locator("mark").nth(1).evaluate("each => getComputedStyle(each).backgroundColor") == "rgba(0, 0, 0, 0)"
    scrolled = "all => all.filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth).length"
    assert shown.locator(".picture, .picture section, .picture dl, .picture p").evaluate_all(scrolled) == 0


def test_sentiments_keep_their_order(visit: Visit) -> None:
    labels = ["very negative", "negative", "neutral", "positive", "very positive"]
    shares = dict(zip(labels, (0.00001, 0.0002, 0.3, 0.1, 0.5997), strict=True))
    answer_with(visit.page, {"label": "very positive", "probabilities": dict(reversed(shares.items())), "tokens": []})
    shown = first_example(open_tab(visit.page, "Sentiment"))
    expect(shown.get_by_role("rowheader")).to_have_text(labels)
    expect(shown.locator(".number")).to_have_text(["<0.1 %", "<0.1 %", "30.0 %", "10.0 %", "60.0 %"])
    expect(shown.locator(".best")).to_contain_text("very positive")


def test_where_no_label_is_likely_two_are_named(visit: Visit) -> None:
    labels = ["very negative", "negative", "neutral", "positive", "very positive"]
    run = {"name": "sst5", "labels": labels, "is_ordered": True}
    visit.page.route("**/api/runs", lambda route: _with_labels(route, run))
    visit.page.reload()
    panel = open_tab(visit.page, "Sentiment")
    for shares, told in (
        ((0.05, 0.2, 0.25, 0.3, 0.2), "neutral or positive, together 55.0 %"),
        ((0.1, 0.45, 0.15, 0.2, 0.1), "negative or neutral, together 60.0 %"),
        ((0.4, 0.1, 0.2, 0.2, 0.1), "very negative or negative, together 50.0 %"),
        ((0.0, 0.0, 0.0, 0.5, 0.5), "positive, 50.0 %"),
    ):
        given = dict(zip(labels, shares, strict=True))
        answer_with(visit.page, {"label": labels[shares.index(max(shares))], "probabilities": given, "tokens": []})
        shown = first_example(panel)
        expect(shown.locator(".summary")).to_have_text(told)
        colors = shown.locator(".bar").evaluate_all("all => all.map((each) => getComputedStyle(each).backgroundColor)")
        assert colors[0] == colors[1] != colors[2] != colors[3] == colors[4] != colors[0]


def _with_labels(route: Any, changed: dict[str, Any]) -> None:
    """Answers with the runs of the server, one of which has other labels."""
    answer = route.fetch().json()
    runs = [{**run, **(changed if run["name"] == changed["name"] else {})} for run in answer["runs"]]
    route.fulfill(json={**answer, "runs": runs})


def test_an_example_has_a_tick_or_a_cross(visit: Visit) -> None:
    panel = open_tab(visit.page, "Inference")
    for label, mark in (("entailment", "✓"), ("neutral", "✗")):
        visit.page.unroute("**/runs/*/predict?details=true")
        answer_with(visit.page, {"label": label, "probabilities": {label: 1.0}})
        shown = first_example(panel)
        expect(shown.locator(".verdict")).to_have_text(f"{mark} Expected: entailment")
        expect(panel.locator(".example .tick")).to_have_text(mark)
    panel.get_by_label("Premise").fill("A dog.")
    panel.get_by_label("Premise").press("Enter")
    expect(shown.locator(".verdict")).to_have_count(0)


def test_names_are_right_if_all_are(visit: Visit) -> None:
    text, expected = EXAMPLES["names"][0]["text"], EXAMPLES["names"][0]["expected"]
    spans = []
    for each in expected:
        name, _, label = each.rpartition(" ")
        start = text.index(name)
        spans.append({"label": label, "start_char": start, "end_char": start + len(name), "probability": 1})
    panel = open_tab(visit.page, "Names")
    for found_spans, mark in ((spans, "✓"), (spans[:-1], "✗")):
        answer_with(visit.page, {"text": text, "start_char": 0, "tokens": text.split(), "spans": found_spans})
        told = f"{mark} Expected: Maria Lopez PER, Spanish MISC, United Nations ORG, Geneva LOC"
        expect(first_example(panel).locator(".verdict")).to_have_text(told)


def test_a_model_that_always_answers_says_so(visit: Visit) -> None:
    best = {"answer": "Orla", "start_char": 0, "end_char": 4, "probability": 0.99999}
    panel = open_tab(visit.page, "Questions")
    for more, times in (({}, 1), ({"no_answer_probability": 0.2}, 0)):
        answer_with(visit.page, {"passage": "Orla left.", "question": "Who?", **best, "best": [best], **more})
        shown = first_example(panel)
        expect(shown.get_by_text("This model always gives an answer")).to_have_count(times)
        expect(shown.locator(".summary")).to_have_text("Answer: Orla, >99.9 %")


def test_a_click_or_a_key_on_a_mention_lights_its_chain(visit: Visit) -> None:
    answer_with(visit.page, TWO_CHAINS)
    shown = first_example(open_tab(visit.page, "Coreference"))
    assert page_percents(shown) == {"50.0 %"}  # that of the first mention, 12.5 %, is not about a link
    expect(shown.locator("mark mark")).to_have_text("1her")
    lit = shown.locator("mark.lit")
    shown.locator("mark", has_text="It").click()
    expect(lit).to_have_text(["21her boat", "2It"])
    key = shown.get_by_role("button", name="chain 1: her", exact=True)
    key.press("Enter")
    expect(lit).to_have_text(["1Orla", "1her"])
    expect(key).to_have_attribute("aria-pressed", "true")
    shown.get_by_role("button", name="Highlight chain 1").press("Space")
    expect(lit).to_have_count(0)


def test_mentions_are_replaced_by_names_at_will(visit: Visit) -> None:
    resolved = "Orla sold Orla's boat. Her boat sank."
    answer_with(visit.page, {**TWO_CHAINS, "resolved": resolved})
    shown = first_example(open_tab(visit.page, "Coreference"))
    expect(shown.get_by_text(resolved)).to_be_hidden()
    switch = shown.get_by_role("checkbox", name="Replace mentions by names")
    switch.check()
    expect(shown.get_by_text(resolved)).to_be_visible()
    expect(shown.locator("mark").first).to_be_hidden()
    switch.uncheck()
    expect(shown.locator("mark").first).to_be_visible()


def test_no_answer_is_said(visit: Visit) -> None:
    nothing = {"answer": "", "start_char": None, "end_char": None, "probability": 0.75, "no_answer_probability": 0.75}
    best = [{"answer": "Orla", "start_char": 0, "end_char": 4, "probability": 0.25}]
    answer_with(visit.page, {"passage": "Orla left. It rained.", "question": "Why?", **nothing, "best": best})
    shown = first_example(open_tab(visit.page, "Questions"))
    expect(shown.locator(".summary")).to_have_text("No answer in this passage, 75.0 %")
    expect(shown.locator("mark")).to_have_count(0)
    expect(shown.locator(".best")).to_contain_text("(no answer)")
    shown.get_by_role("button", name="Orla", exact=True).click()
    expect(shown.locator("p.text")).to_have_text("Orla left. …")


def test_answers_and_none_are_in_the_order_of_their_probabilities(visit: Visit) -> None:
    best = [
        {"answer": name, "start_char": start, "end_char": start + 4, "probability": share}
        for name, start, share in (("Orla", 0, 0.5), ("Tavo", 9, 0.2))
    ]
    panel = open_tab(visit.page, "Questions")
    for nothing, order in ((0.05, ["Orla", "Tavo", "(no answer)"]), (0.3, ["Orla", "(no answer)", "Tavo"])):
        result = {"passage": "Orla met Tavo.", "question": "Who?", **best[0], "best": best}
        answer_with(visit.page, {**result, "no_answer_probability": nothing})
        shown = first_example(panel)
        expect(shown.get_by_role("rowheader")).to_have_text(order)
        expect(shown.locator(".best")).to_contain_text("Orla")


def test_the_answer_is_shown_in_its_sentence(visit: Visit) -> None:
    panel = open_tab(visit.page, "Questions")
    for passage, answer, sentence in (
        ("Orla left. Tavo stayed.", "Tavo", "… Tavo stayed."),
        ("Orla left! Tavo 😀 stayed? Nobody knew.", "stayed", "… Tavo 😀 stayed? …"),
        ("It cost 3.50 euros", "3.50", "It cost 3.50 euros"),
        ("A. B left. C.", "A. B", "A. B left. …"),
    ):
        start = passage.index(answer)
        best = {"answer": answer, "start_char": start, "end_char": start + len(answer), "probability": 0.75}
        answer_with(visit.page, {"passage": passage, "question": "Who?", **best, "best": [best]})
        shown = first_example(panel)
        expect(shown.locator("p.text")).to_have_text(sentence)
        expect(shown.locator("mark")).to_have_text(answer)


def test_each_answer_can_be_seen_in_the_passage(visit: Visit, served: Served) -> None:
    shown = first_example(open_tab(visit.page, "Questions"))
    best = served.of("Questions").predictor(first_input("Questions"))[0]["best"]
    buttons = shown.get_by_role("row").get_by_role("button")
    expect(buttons).to_have_text([each["answer"] for each in best])
    for button, each in zip(buttons.all(), best, strict=True):
        button.click()
        expect(shown.locator("mark")).to_have_text(each["answer"])
        expect(button).to_have_attribute("aria-pressed", "true")


def test_alignments_are_tables_in_which_arrow_keys_move(visit: Visit, served: Served) -> None:
    shown = first_example(open_tab(visit.page, "Inference"))
    result = served.of("Inference").predictor(first_input("Inference"))[0]
    grid = shown.get_by_role("grid")
    cells = [text.strip() for text in grid.locator("tbody td").all_inner_texts()]
    values = [value for row in zip(*result["hypothesis_attention"], strict=True) for value in row]
    assert [float(text or 0) for text in cells] == pytest.approx(values, abs=0.0051)
    assert [not text for text in cells] == [value < 0.005 for value in values]
    grid.locator("tbody td").first.focus()
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("ArrowRight")
    row, column = result["premise_tokens"][1], result["hypothesis_tokens"][1]
    value = result["hypothesis_attention"][1][1]
    expect(shown.locator(".readout")).to_have_text(f"{column} → {row}: {value:.3f}")


def test_attention_is_shown_for_each_token(visit: Visit, served: Served) -> None:
    shown = first_example(open_tab(visit.page, "Sentiment"))
    result = served.of("Sentiment").predictor(first_input("Sentiment"))[0]
    expect(shown.locator(".token .word")).to_have_text(result["tokens"])
    expect(shown.locator(".token .sure")).to_have_text(list(map(share, result["attention"])))


def test_a_result_is_explained_token_by_token(visit: Visit, served: Served) -> None:
    for tab in ("Sentiment", "Inference", "Questions"):
        panel = open_tab(visit.page, tab)
        first_example(panel).get_by_text("Explain: which tokens count").click()
        predictor, example = served.of(tab).predictor, first_input(tab)
        items = predictor(example, explain=True)[0]["saliency"]
        tokens = [each for item in items for value in item.values() if isinstance(value, list) for each in value]
        shown = panel.locator(".explained .token")
        expect(shown.locator(".word")).to_have_text([token for token, _ in tokens])
        expect(shown.locator(".sure")).to_have_text([share(value) for _, value in tokens])
        expect(panel.locator(".explained .against")).to_have_count(sum(value < 0 for _, value in tokens))


def test_what_cannot_be_explained_is_said(visit: Visit) -> None:
    visit.expected_status = (422,)
    answer = {"status": 422, "json": {"error": "too much to explain"}}
    visit.page.route("**/predict?explain=true", lambda route: route.fulfill(**answer))
    shown = first_example(open_tab(visit.page, "Names"))
    shown.get_by_text("Explain: which tokens count").click()
    expect(shown.get_by_role("alert")).to_have_text("too much to explain")
