"""Two runs side by side: what only one of them finds is framed."""

import copy
import json
from typing import Any

import pytest

from tests.extras.server.page.visits import (
    TWO_CHAINS,
    Served,
    Visit,
    answer_with,
    downloaded,
    expect,
    first_input,
    found,
    open_tab,
    words_of,
)


def side_by_side(visit: Visit, tab: str, results: tuple[dict[str, Any], dict[str, Any]] | None = None) -> Any:
    """The panel of a tab, with its first run beside the same run by another name, which may find something else."""
    panel = open_tab(visit.page, tab)
    first = panel.get_by_label("Run", exact=True).input_value()
    second = f"again_{first}"
    for run, result in zip((first, second), results or (), strict=False):
        answer_with(visit.page, result, run)
    panel.get_by_label("Compare with").select_option(second)
    expect(panel.locator(".summary")).to_contain_text(f"{first} and {second}: ")
    return panel


def framed(panel: Any) -> list[list[str]]:
    """What is framed on each side."""
    return [words_of(side.locator(".differs").all_text_contents()) for side in panel.locator(".side").all()]


@pytest.mark.parametrize("tab", ["Names", "Questions"])
def test_the_same_model_finds_the_same(tab: str, visit: Visit, served: Served) -> None:
    panel = side_by_side(visit, tab)
    expect(panel.locator(".summary")).to_contain_text("the same result")
    assert framed(panel) == [[], []]
    answers = json.loads(downloaded(panel, "JSON"))
    first, second = answers
    assert second == f"again_{first}"
    assert answers[first] == answers[second]
    expected = served.of(tab).predictor(first_input(tab))
    assert [
        {key: result[key] for key in plain} for result, plain in zip(answers[first]["results"], expected, strict=True)
    ] == expected
    expect(panel.locator(".side .model b")).to_have_text([first, second])
    expect(panel.get_by_text("Explain: which tokens count")).to_have_count(2)
    panel.get_by_label("Compare with").select_option("")
    expect(panel.locator(".side")).to_have_count(0)


def test_a_link_holds_both_runs(visit: Visit) -> None:
    panel = side_by_side(visit, "Sentiment")
    summary, link = panel.locator(".summary").inner_text(), visit.page.url
    visit.page.goto("about:blank")
    visit.page.goto(link)
    expect(found(panel).locator(".summary")).to_have_text(summary)
    expect(panel.get_by_label("Compare with")).to_have_value("again_sst5")


def test_only_runs_with_labels_in_common_are_compared(visit: Visit) -> None:
    panel = open_tab(visit.page, "Names")
    other = panel.get_by_label("Compare with")
    expect(other.locator("option")).to_have_text(["no other run", "again_ner_conll03"])


def test_one_click_compares_a_model_with_its_twin_without_elmo(visit: Visit, served: Served) -> None:
    runs = [run.about for run in served.runs.values()]
    twins = [{**run, "without_elmo": "again_sst5"} if run["name"] == "sst5" else run for run in runs]
    visit.page.route("**/api/runs", lambda route: route.fulfill(json={"runs": twins, "note": None}))
    visit.page.reload()
    answer_with(visit.page, {"label": "positive", "probabilities": {"positive": 1.0}, "tokens": []}, "sst5")
    answer_with(visit.page, {"label": "negative", "probabilities": {"negative": 1.0}, "tokens": []}, "again_sst5")
    panel = open_tab(visit.page, "Sentiment")
    found(panel)
    for control in ("Run", "Compare with"):  # the twin is not one of the runs
        expect(panel.get_by_label(control, exact=True)).to_be_hidden()
    button = panel.get_by_role("button", name="With and without ELMo")
    button.click()
    expect(panel.locator(".summary")).to_have_text("With and without ELMo: 2 differences")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(panel.locator(".side h4")).to_have_text(["With ELMo", "Without ELMo"])
    expect(panel.locator(".side .tick")).to_have_text(["✓", "✗"])  # the example is positive
    link = visit.page.url
    button.click()
    expect(panel.locator(".side")).to_have_count(0)
    visit.page.goto("about:blank")
    visit.page.goto(link)
    expect(panel.locator(".side")).to_have_count(2)
    expect(open_tab(visit.page, "Names").get_by_role("button", name="With and without ELMo")).to_be_hidden()


TEXT = "They can turn wheels"
OFFSETS = {"They": (0, 4), "can": (5, 8), "turn": (9, 13), "wheels": (14, 20)}


def spans(**labels: str) -> dict[str, Any]:
    found = [
        {"label": label, "start_char": OFFSETS[word][0], "end_char": OFFSETS[word][1], "probability": 0.5}
        for word, label in labels.items()
    ]
    return {"text": TEXT, "start_char": 0, "tokens": [], "spans": found}


def roles(**predicates: dict[str, str]) -> dict[str, Any]:
    """A result with the roles of words, by predicate."""
    tokens = list(OFFSETS)

    def role(word: str, name: str) -> dict[str, Any]:
        at, (first, last) = tokens.index(word), OFFSETS[word]
        place = {"start": at, "end": at, "start_char": first, "end_char": last}
        return {"role": name, **place, "text": word, "probability": 0.5}

    frames = [
        {"predicate": tokens.index(word), "predicate_text": word, "roles": [role(*each) for each in own.items()]}
        | {"tags": ["B-V" if token == word else "O" for token in tokens]}
        for word, own in predicates.items()
    ]
    return {"text": TEXT, "start_char": 0, "offsets": [*OFFSETS.values()], "tokens": tokens, "frames": frames}


def answers(word: str) -> dict[str, Any]:
    first, last = OFFSETS[word]
    best = {"answer": word, "start_char": first, "end_char": last, "probability": 0.5}
    return {"passage": TEXT, "question": "Who?", **best, "best": [best]}


def labelled(label: str, good: float) -> dict[str, Any]:
    return {"label": label, "probabilities": {"good": good, "bad": 1 - good}, "tokens": []}


OTHER_CHAINS = copy.deepcopy(TWO_CHAINS)
OTHER_CHAINS["mentions"][3]["cluster"] = 0  # “It” is Orla, and no longer her boat


def test_what_only_one_run_finds_is_framed(visit: Visit) -> None:
    for tab, one, other, only in (
        ("Names", spans(They="PER", wheels="LOC"), spans(They="PER", wheels="ORG"),
         [["wheels LOC 50.0 %"], ["wheels ORG 50.0 %"]]),
        ("Roles", roles(turn={"They": "ARG0", "wheels": "ARG1"}), roles(can={"They": "ARG0"}, turn={"They": "ARG0"}),
         [["wheels ARG1 50.0 %"], ["can", "They ARG0 50.0 %"]]),
        ("Coreference", TWO_CHAINS, OTHER_CHAINS, [["2It"], ["1It"]]),
        ("Questions", answers("They"), answers("wheels"), [["They"], ["wheels"]]),
        ("Sentiment", labelled("good", 0.75), labelled("bad", 0.25), [["good"], ["bad"]]),
        ("Inference", labelled("good", 0.75), labelled("bad", 0.25), [["good"], ["bad"]]),
    ):  # fmt: skip
        panel = side_by_side(visit, tab, (one, other))
        expect(panel.locator(".summary")).to_contain_text(f"{sum(map(len, only))} differences")
        assert [[text.removesuffix(" (only in this run)") for text in side] for side in framed(panel)] == only
        are_said = all(text.endswith(" (only in this run)") for side in framed(panel) for text in side)
        assert are_said or tab == "Roles"
