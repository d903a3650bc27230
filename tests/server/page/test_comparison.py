"""Two runs side by side: what only one of them finds is framed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.server.page.visits import (
    TASKS,
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


@pytest.mark.parametrize("tab", [tab for tab in TASKS if tab != "ELMo"])
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
    expect(open_tab(visit.page, "Predicates").get_by_label("Compare with")).to_be_hidden()


def test_spans(visit: Visit) -> None:
    def result(*spans: tuple[str, int, int]) -> dict[str, Any]:
        text = "Orla left Oslo."
        found = [
            {"label": label, "start_char": first + 5, "end_char": last + 5, "probability": 0.5}
            for label, first, last in spans
        ]
        return {"text": text, "start_char": 5, "tokens": [], "spans": found}

    panel = side_by_side(
        visit, "Names", (result(("PER", 0, 4), ("LOC", 10, 14)), result(("PER", 0, 4), ("ORG", 10, 14)))
    )
    expect(panel.locator(".summary")).to_contain_text("2 differences")
    assert framed(panel) == [["Oslo LOC 50.0 % (only in this run)"], ["Oslo ORG 50.0 % (only in this run)"]]


def test_roles_and_predicates(visit: Visit) -> None:
    tokens, offsets = ["They", "can", "turn", "wheels"], [[0, 4], [5, 8], [9, 13], [14, 20]]

    def frame(predicate: int, *roles: tuple[str, int]) -> dict[str, Any]:
        tags = ["B-V" if place == predicate else "O" for place in range(len(tokens))]
        found = [
            {"role": role, "start": at, "end": at, "start_char": offsets[at][0], "end_char": offsets[at][1]}
            | {"text": tokens[at], "probability": 0.5}
            for role, at in roles
        ]
        return {"predicate": predicate, "predicate_text": tokens[predicate], "tags": tags, "roles": found}

    one, other = (
        {"text": " ".join(tokens), "start_char": 0, "offsets": offsets, "tokens": tokens, "frames": frames}
        for frames in ([frame(2, ("ARG0", 0), ("ARG1", 3))], [frame(1), frame(2, ("ARG0", 0))])
    )
    panel = side_by_side(visit, "Roles", (one, other))
    expect(panel.locator(".summary")).to_contain_text("2 differences")
    first, second = framed(panel)
    assert ["ARG1" in text for text in first] == [True]
    assert [text.split()[0] for text in second] == ["can"]


def test_links_of_chains(visit: Visit) -> None:
    other = copy.deepcopy(TWO_CHAINS)
    other["mentions"][3]["cluster"] = 0  # “It” is Orla, and no longer her boat
    panel = side_by_side(visit, "Coreference", (TWO_CHAINS, other))
    expect(panel.locator(".summary")).to_contain_text("2 differences")
    assert framed(panel) == [["2It (only in this run)"], ["1It (only in this run)"]]


def test_answers(visit: Visit) -> None:
    def result(answer: str) -> dict[str, Any]:
        passage = "Orla left Oslo."
        start = passage.index(answer)
        best = {"answer": answer, "start_char": start, "end_char": start + len(answer), "probability": 0.5}
        return {"passage": passage, "question": "Who?", **best, "best": [best]}

    panel = side_by_side(visit, "Questions", (result("Orla"), result("Oslo")))
    expect(panel.locator(".summary")).to_contain_text("2 differences")
    assert framed(panel) == [["Orla (only in this run)"], ["Oslo (only in this run)"]]


@pytest.mark.parametrize("tab", ["Sentiment", "Inference"])
def test_labels(tab: str, visit: Visit) -> None:
    one, other = (
        {"label": label, "probabilities": {"good": good, "bad": 1 - good}, "tokens": []}
        for label, good in (("good", 0.75), ("bad", 0.25))
    )
    panel = side_by_side(visit, tab, (one, other))
    expect(panel.locator(".summary")).to_contain_text("2 differences")
    assert framed(panel) == [["good (only in this run)"], ["bad (only in this run)"]]
