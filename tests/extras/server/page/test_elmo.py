"""The tab of ELMo itself."""

import json
import math
import re
from urllib.parse import urlencode

import elmo_tasks
from tests.extras.server.page.visits import EXAMPLES, Served, Visit, expect, first_example, found, open_tab


def test_elmo_is_compared_layer_by_layer(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "ELMo")
    shown = first_example(panel)
    example = EXAMPLES["elmo"][0]
    own, other = (served.bilm.tokens({"text": example[side]}).index("bank") for side in ("one", "other"))

    def similarities(at: int) -> list[str]:
        sides = [({"text": example["one"]}, at), ({"text": example["other"]}, other)]
        (answer,) = served.bilm.answer([served.bilm.compare(sides)])
        return [f"{layer['cosine']:.3f}" for layer in json.loads(answer)["layers"]]

    numbers = shown.locator(".bars").first.locator(".number")
    expect(numbers).to_have_text(similarities(own))
    expect(shown.locator(".nearest li")).to_have_count(2 * 3 * served.bilm.num_layers)
    words = panel.get_by_role("radiogroup", name="Word in the first sentence").get_by_role("radio")
    words.nth(own).press("ArrowLeft")
    expect(numbers).to_have_text(similarities(own - 1))
    panel.get_by_text("Which layers the runs learned to use").click()
    mixes = panel.get_by_role("grid").get_by_role("row").filter(has_text=re.compile("^ner_conll03,"))
    (mix,) = served.of("Names").about["mixes"]
    expect(mixes.get_by_role("gridcell")).to_have_text([re.sub("^0", "", f"{weight:.3f}") for weight in mix["weights"]])


def test_the_word_that_two_sentences_share_is_chosen(visit: Visit) -> None:
    panel = open_tab(visit.page, "ELMo")
    found(panel)
    for one, other, chosen in (
        ("The dog had been there.", "They had a small DOG.", ("dog", "DOG")),
        ("He counted on them.", "Count on me.", ("counted", "Count")),  # alike
        ("Nobody left.", "It rained all day.", ("Nobody", "It")),  # none
        ("He came with us.", "She saw us.", ("us", "us")),  # a common one
    ):
        panel.get_by_label("First sentence", exact=True).fill(one)
        panel.get_by_label("Second sentence", exact=True).fill(other)
        panel.get_by_label("Second sentence", exact=True).press("Enter")
        expect(panel.locator(".summary")).to_have_text(re.compile(f"^{chosen[0]} and {chosen[1]}: similarity"))
        expect(panel.locator(".tokens-choice :checked + span")).to_have_text(list(chosen))


def test_weights_have_the_colour_of_their_difference_from_the_mean(visit: Visit) -> None:
    about = {"name": "x", "task": "tagging", "config": {"model": {"type": "x"}}, "has_card": False, "bilm": "1"}
    about |= {"facts": {"data": []}, "legend": {}}
    mixes = [
        {"name": name, "layers": list(range(len(weights))), "weights": weights, "gamma": 1}
        for name, weights in (("learned", [0.8, 0.2]), ("even", [0.5, 0.5]), ("three", [0.5, 0.25, 0.25]))
    ]
    runs = {"runs": [{**about, "mixes": mixes}], "note": None}
    visit.expected_status = (404,)  # the server does not know this run
    visit.page.route("**/api/runs", lambda route: route.fulfill(json=runs))
    visit.page.reload()
    panel = open_tab(visit.page, "ELMo")
    panel.get_by_text("Which layers the runs learned to use").click()
    cells = panel.locator(".mixes tbody td")
    expect(cells).to_have_text([".800", ".200", "", ".500", ".500", "", ".500", ".250", ".250"])
    style = "all => all.map((each) => [each.className, Number(each.style.getPropertyValue('--share')).toFixed(2)])"
    low, three = ["low", "0.00"], [["", "0.50"], ["against", "0.25"], ["against", "0.25"]]
    assert cells.evaluate_all(style) == [["", "0.60"], ["against", "0.60"], low, low, low, low, *three]
    colors = cells.evaluate_all("all => all.map((each) => getComputedStyle(each).backgroundColor)")
    assert len(set(colors)) == 5
    expect(visit.page.locator(".mixes figcaption")).to_contain_text("above the mean of their row (0.500 or 0.333)")


def test_a_link_names_a_run_that_shares_its_bilm_or_one_that_is_gone(visit: Visit, served: Served) -> None:
    link = {"tab": "elmo", "run": "again_ner_conll03", "one": "Orla left.", "other": "Orla stayed."}
    visit.page.goto(f"{served.address}#{urlencode(link)}")
    panel = visit.page.get_by_role("tabpanel", name="ELMo", exact=True)
    expect(panel.locator(".summary")).to_have_text(re.compile("^Orla and Orla: similarity"))
    visit.page.goto(f"{served.address}#{urlencode({**link, 'run': 'gone'})}")
    expect(panel.locator(".result").get_by_role("alert")).to_have_text("This server has no run named gone.")
    expect(panel.locator(".found")).to_be_hidden()


def test_a_picture_of_elmo_is_one_click_away(visit: Visit) -> None:
    panel = open_tab(visit.page, "ELMo")
    picture = panel.locator(".how img")
    expect(picture).to_be_hidden()
    panel.get_by_text("How ELMo works", exact=True).click()
    expect(picture).to_be_visible()
    assert picture.evaluate("each => each.decode().then(() => each.naturalWidth)") > 0


def test_elmo_shows_which_words_the_bilm_expects(visit: Visit) -> None:
    panel = open_tab(visit.page, "ELMo")
    shown = first_example(panel)
    example = EXAMPLES["elmo"][0]
    one, other = elmo_tasks.load_language_model().score("\n".join([example["one"], example["other"]]), 5)
    tokens = [*one.tokens, *other.tokens]
    expect(shown.locator(".expected .word")).to_have_text([each.token for each in tokens])
    expect(shown.locator(".expected .sure")).to_have_text([f"{each.both / math.log(2):.1f}" for each in tokens])
    chosen = next(each for each in one.tokens if each.token == "bank")
    bars = shown.get_by_role("table", name=f"Expected in place of “{chosen.token}”").first
    expect(bars.get_by_role("rowheader")).to_have_text([word for word, _ in chosen.substitutes])
    expect(bars.locator(".number")).to_have_text([f"{100 * chance:.1f} %" for _, chance in chosen.substitutes])


def test_elmo_says_that_a_bilm_has_no_softmax(visit: Visit) -> None:
    visit.expected_status = (422,)
    problem = "this biLM has no softmax, so it cannot predict words"
    visit.page.route("**/api/score", lambda route: route.fulfill(status=422, json={"error": problem}))
    shown = first_example(open_tab(visit.page, "ELMo"))
    expect(shown.locator(".expected p")).to_have_text(problem)
    expect(shown.locator(".nearest")).to_have_count(2)
