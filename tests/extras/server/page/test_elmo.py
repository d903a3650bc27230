"""The tab of ELMo itself."""

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest

import elmo_tasks
from elmo_tasks.extras.server.bilm_vectors import bilms_of_runs
from tests.extras.server.page.visits import EXAMPLES, Served, Visit, expect, first_example, found, open_tab

SIDES = ("one", "same", "other")


def test_elmo_is_compared_layer_by_layer(visit: Visit, served: Served) -> None:
    panel = open_tab(visit.page, "ELMo")
    shown = first_example(panel)
    example = EXAMPLES["elmo"][0]
    own, same, other = (served.bilm.tokens({"text": example[side]}).index("second") for side in SIDES)

    def similarities(at: int) -> list[list[float]]:
        """Of the word with that of the same sense, and of another one, in each layer."""
        found = []
        for side, place in (("same", same), ("other", other)):
            sides = [({"text": example["one"]}, at), ({"text": example[side]}, place)]
            (answer,) = served.bilm.answer([served.bilm.compare(sides)])
            found.append([layer["cosine"] for layer in json.loads(answer)["layers"]])
        return found

    def written(alike: list[float], apart: list[float]) -> list[str]:
        return [f"{value:.3f}" for pair in zip(alike, apart, strict=True) for value in pair]

    numbers = shown.locator(".thirds").first.locator(".number")
    alike, apart = similarities(own)
    expect(numbers).to_have_text(written(alike, apart))
    told = f"“second”: similarity {alike[-1]:.2f} in the same sense, {apart[-1]:.2f} in another"
    expect(shown.locator(".summary")).to_have_text(told)
    expect(shown.locator(".nearest li")).to_have_count(2 * 3 * served.bilm.num_layers)
    words = panel.get_by_role("radiogroup", name="Word in “Sentence”").get_by_role("radio")
    words.nth(own).press("ArrowLeft")
    expect(numbers).to_have_text(written(*similarities(own - 1)))
    panel.get_by_text("Which layers the runs learned to use").click()
    mixes = panel.get_by_role("grid").get_by_role("row").filter(has_text=re.compile("^ner_conll03,"))
    (mix,) = served.of("Names").about["mixes"]
    expect(mixes.get_by_role("gridcell")).to_have_text([re.sub("^0", "", f"{weight:.3f}") for weight in mix["weights"]])


def test_in_every_example_the_layers_above_the_letters_tell_the_senses_apart() -> None:
    bilm = bilms_of_runs({})[""]
    for example in EXAMPLES["elmo"]:
        word = example["about"]
        tokens = {side: bilm.tokens({"text": example[side]}) for side in SIDES}
        places = {side: ({"tokens": each}, each.index(word)) for side, each in tokens.items()}
        compared = [bilm.compare([places["one"], places[side]]) for side in ("same", "other")]
        alike, apart = (json.loads(each)["layers"] for each in bilm.answer(compared))
        for same, other in zip(alike[1:], apart[1:], strict=True):
            assert same["cosine"] - other["cosine"] > 0.3, (word, same["layer"])
        assert alike[0]["cosine"] == pytest.approx(apart[0]["cosine"])


def test_the_word_that_the_sentences_share_is_chosen(visit: Visit) -> None:
    panel = open_tab(visit.page, "ELMo")
    found(panel)
    for one, same, other, chosen in (
        ("The dog had been there.", "A dog barked.", "They had a small DOG.", ("dog", "dog", "DOG")),
        ("He counted on them.", "We counted birds.", "Count on me.", ("counted", "counted", "Count")),  # alike
        ("Nobody left.", "Nothing.", "It rained all day.", ("Nobody", "Nothing", "It")),  # none
        ("He came with us.", "They left us.", "She saw us.", ("us", "us", "us")),  # a common one
    ):
        panel.get_by_label("Sentence", exact=True).fill(one)
        panel.get_by_label("The same sense", exact=True).fill(same)
        panel.get_by_label("Another sense", exact=True).fill(other)
        panel.get_by_label("Another sense", exact=True).press("Enter")
        expect(panel.locator(".summary")).to_have_text(re.compile(f"^“{chosen[0]}”: similarity"))
        expect(panel.locator(".tokens-choice :checked + span")).to_have_text(list(chosen))


def test_weights_have_the_colour_of_their_difference_from_the_mean(visit: Visit) -> None:
    about = {"name": "x", "task": "tagging", "config": {"model": {"type": "x"}}, "has_card": False, "bilm": "1"}
    about |= {"facts": {"data": [], "score": None}, "legend": {}}
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
    link = {"tab": "elmo", "run": "again_ner_conll03", "one": "Orla left.", "same": "Orla.", "other": "Orla stayed."}
    visit.page.goto(f"{served.address}#{urlencode(link)}")
    panel = visit.page.get_by_role("tabpanel", name="ELMo", exact=True)
    expect(panel.locator(".summary")).to_have_text(re.compile("^“Orla”: similarity"))
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
    scores = elmo_tasks.load_language_model().score("\n".join(example[side] for side in SIDES), 10)
    for place, score in enumerate(scores):
        chosen = next(each for each in score.tokens if each.token == "second")
        words = [(word, chance) for word, chance in chosen.substitutes if word.isalpha()][:5]
        bars = shown.get_by_role("table", name="Expected in place of “second”").nth(place)
        expect(bars.get_by_role("rowheader")).to_have_text([word for word, _ in words])
        expect(bars.locator(".number")).to_have_text([f"{100 * chance:.1f} %" for _, chance in words])


def test_punctuation_is_not_shown_as_an_expected_word(visit: Visit) -> None:
    def score(route: Any) -> None:
        tokens = route.request.post_data_json["tokens"]
        scored = [{"token": each, "substitutes": {",": 0.9, "don't": 0.04, "``": 0.03, "the": 0.02}} for each in tokens]
        route.fulfill(json={"tokens": scored})

    visit.page.route("**/api/score", score)
    shown = first_example(open_tab(visit.page, "ELMo"))
    bars = shown.get_by_role("table", name="Expected in place of “second”").first
    expect(bars.get_by_role("rowheader")).to_have_text(["don't", "the"])


def test_elmo_says_that_a_bilm_has_no_softmax(visit: Visit) -> None:
    visit.expected_status = (422,)
    problem = "this biLM has no softmax, so it cannot predict words"
    visit.page.route("**/api/score", lambda route: route.fulfill(status=422, json={"error": problem}))
    shown = first_example(open_tab(visit.page, "ELMo"))
    expect(shown.get_by_text(problem)).to_be_visible()
    expect(shown.locator(".nearest")).to_have_count(2)
