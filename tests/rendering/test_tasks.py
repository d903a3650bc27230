import dataclasses
import json
import re
from typing import Any

import pytest

from elmo_tasks.extras.server.served_runs import legend
from elmo_tasks.files.installed_models import model_named
from elmo_tasks.rendering import describe, register_description, tasks
from elmo_tasks.rendering.drawing import (
    PALETTE,
    Bars,
    Colors,
    Drawing,
    HeatMap,
    Mark,
    MarkedText,
    Rows,
    ShadedText,
    SignedText,
    nested_pieces,
    percent,
)
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, TaskRegistry, TextPairs


def marked(part: object) -> list[tuple[str, str]]:
    """The marked pieces of a text with their labels."""
    assert isinstance(part, MarkedText)
    return [(part.text[mark.start : mark.end], mark.label) for mark in part.marks]


def test_spans_of_a_sentence_within_a_longer_text() -> None:
    sentence = {"text": "Ann  left.", "start_char": 8, "tokens": ["Ann", "left", "."]}
    offsets = [[8, 11], [13, 17], [17, 18]]
    span = {"label": "PER", "start": 0, "end": 1, "probability": 0.75}
    drawing = describe(Tagging("BIOUL"), {**sentence, "offsets": offsets, "spans": [span]})
    assert drawing == [MarkedText("Ann  left.", [Mark(0, 9, "PER", 0.75)])]


def test_tags_that_are_not_spans() -> None:
    result = {"tokens": ["Ann", "left", "."], "tags": ["NNP", "VBD", "."], "probabilities": [0.9, 0.8, 0.9]}
    (part,) = describe(Tagging(), result)
    assert marked(part) == [("Ann", "NNP"), ("left", "VBD")]
    with pytest.raises(ValueError, match="argument 2 is"):
        describe(Tagging(), {**result, "probabilities": [0.9]})


def test_every_frame_with_a_role_is_a_line() -> None:
    role = {"start": 0, "end": 0, "probability": 0.5}
    frames: list[dict[str, Any]] = [
        {"tags": ["B-ARG0", "B-V", "O", "O"], "roles": [role]},
        {"tags": ["B-ARG0", "O", "O", "B-V"], "roles": [role]},
        {"tags": ["O", "O", "B-V", "O"], "roles": []},
    ]
    tokens = ["Orla", "came", "was", "running"]
    drawing = describe(SemanticRoles(), {"tokens": tokens, "frames": frames})
    assert [marked(part) for part in drawing] == [
        [("Orla", "ARG0"), ("came", "V")],
        [("Orla", "ARG0"), ("running", "V")],
    ]
    nothing = [MarkedText("Orla came was running")]
    assert describe(SemanticRoles(), {"tokens": tokens, "frames": frames[2:]}) == nothing
    assert describe(SemanticRoles(), {"tokens": ["Rain", "."], "frames": []}) == [MarkedText("Rain .")]


def mention(cluster: int, start: int, end: int, text: str) -> dict[str, Any]:
    return {"cluster": cluster, "start": start, "end": end, "text": text, "probability": 0.5}


def test_chains_are_marked_in_the_document_and_listed() -> None:
    sentences = [["Orla", "sold", "her", "boat"], ["It", "sank"]]
    mentions = [
        mention(0, 0, 0, "Orla"),
        mention(0, 2, 2, "her"),
        mention(1, 2, 3, "her\nboat"),
        mention(1, 4, 4, "It"),
    ]
    drawing = describe(Coreference(), {"sentences": sentences, "mentions": mentions, "clusters": [[], []]})
    assert isinstance(drawing[0], MarkedText)
    assert drawing[0].text == "Orla sold her boat\nIt sank"
    assert marked(drawing[0]) == [("Orla", "1"), ("her", "1"), ("her boat", "2"), ("It", "2")]  # people count from 1
    assert [marked(part) for part in drawing[1:]] == [[("Orla → her", "1")], [("her boat → It", "2")]]

    raw = {"text": "Orla ... her", "sentences": [["Orla"], ["her"]], "offsets": [[[0, 4]], [[9, 12]]]}
    drawing = describe(Coreference(), {**raw, "mentions": [mention(0, 1, 1, "her")], "clusters": [[]]})
    assert marked(drawing[0]) == [("her", "1")]


def test_the_answer_is_marked_in_its_passage() -> None:
    best = [{"answer": "Bay", "probability": 0.75}, {"answer": "the Bay", "probability": 0.25}]
    result = {"question": "Where?", "passage": "In the Bay.", "start_char": 7, "end_char": 10, **best[0], "best": best}
    question, passage, answers = describe(Reading(), result)
    assert marked(question) == []
    assert marked(passage) == [("Bay", "answer")]
    assert [question.title, passage.title] == ["question", "passage"]  # type: ignore[union-attr]
    assert answers == Bars([("Bay", 0.75), ("the Bay", 0.25)], title="answers")


@pytest.mark.parametrize("answer", ["Bay", ""])
def test_no_answer_is_next_to_the_best_span(answer: str) -> None:
    best = [{"answer": "Bay", "probability": 0.5}, {"answer": "the Bay", "probability": 0.1}]
    result = {"question": "Where?", "passage": "In the Bay.", "start_char": 7, "end_char": 10, **best[0], "best": best}
    result |= {"answer": answer, "no_answer_probability": 0.4}
    _, passage, answers = describe(Reading(), result)
    bars = [("Bay", 0.5), ("(no answer)", 0.4)] if answer else [("(no answer)", 0.4), ("Bay", 0.5)]
    assert marked(passage) == ([("Bay", "answer")] if answer else [])
    assert answers == Bars([*bars, ("the Bay", 0.1)], title="answers")


def test_the_label_of_a_text_comes_first() -> None:
    result = {"tokens": ["not", "bad"], "attention": [0.75, 0.25], "label": "good"}
    drawing = describe(Classification(), {**result, "probabilities": {"bad": 0.4, "fair": 0.2, "good": 0.4}})
    text, bars = drawing
    assert isinstance(text, ShadedText)
    assert text.title == "attention"
    assert (text.text, text.offsets, text.shares()) == ("not bad", [(0, 3), (4, 7)], [1, pytest.approx(1 / 3)])
    assert bars == Bars([("good", 0.4), ("bad", 0.4), ("fair", 0.2)])


def test_a_pair_has_both_alignments() -> None:
    result = {"premise_tokens": ["a"], "hypothesis_tokens": ["b", "c"], "label": "x", "probabilities": {"x": 1.0}}
    alignments = {"premise_attention": [[0.5, 0.5]], "hypothesis_attention": [[1.0], [1.0]]}
    raw = [part.text for part in describe(TextPairs(), result | alignments | {"premise": "a."})[:2]]  # type: ignore[union-attr]
    assert raw == ["a.", "b c"]
    drawing = describe(TextPairs(), result | alignments)
    heat_maps = [part for part in drawing if isinstance(part, HeatMap)]
    assert [part.title for part in drawing] == [  # type: ignore[union-attr]
        *("premise", "hypothesis", ""),
        *(f"each row: a token of the {one} attends to" for one in ("premise", "hypothesis")),
    ]
    assert [(part.rows, part.columns, part.values) for part in heat_maps] == [
        (["a"], ["b", "c"], [[0.5, 0.5]]),
        (["b", "c"], ["a"], [[1.0], [1.0]]),
    ]


@dataclasses.dataclass(frozen=True)
class OwnTask(Classification):
    pass


def test_own_tasks_have_their_description_or_that_of_their_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "DESCRIPTIONS", TaskRegistry(tasks.DESCRIPTIONS))
    result = {"tokens": ["a"], "attention": [1.0], "label": "x", "probabilities": {"x": 1.0}}
    assert describe(OwnTask(), result) == describe(Classification(), result)
    own: Drawing = [MarkedText("own")]
    register_description(OwnTask, lambda result: own)
    assert describe(OwnTask(), result) == own
    del tasks.DESCRIPTIONS[OwnTask.name], tasks.DESCRIPTIONS[Classification.name]
    assert describe(OwnTask(), {"text": "zwölf", "n": ["ö", 1]}) == [Rows([("text", "zwölf"), ("n", '["ö", 1]')])]


def test_what_explains_a_result_comes_last() -> None:
    saliency = [
        {"of": "yes", "score": -0.1, "premise": [["a", 0.5]], "hypothesis": [["b", -0.5]]},
        {"of": "", "score": -0.1, "tokens": [["a", 1.0]]},
        {"of": "PER", "text": "Ann", "score": -0.1, "tokens": [["Ann", 1.0]]},
    ]
    result = {"premise_tokens": ["a"], "hypothesis_tokens": ["b"], "label": "yes", "probabilities": {"yes": 1.0}}
    *plain, premise, hypothesis, whole, span = describe(TextPairs(), {**result, "saliency": saliency})
    assert plain == describe(TextPairs(), result)
    assert premise == SignedText([["a", 0.5]], title="yes ← premise")  # type: ignore[list-item]
    assert hypothesis == SignedText([["b", -0.5]], title="yes ← hypothesis")  # type: ignore[list-item]
    assert whole == SignedText([["a", 1.0]], title="(no answer)")  # type: ignore[list-item]
    assert isinstance(span, SignedText)
    assert span.title == "PER Ann"


TAGGERS = ("ner", "pos", "predicates", "roles")


def kinds_of(model: str) -> set[str]:
    """The labels of a trained model, without `B-` and the like."""
    pytest.importorskip("elmo_tasks_models", reason="the trained models are not installed")
    installed = model_named(model)
    assert installed
    vocabulary = installed.folder / "vocabulary.json"
    tags = json.loads(vocabulary.read_text(encoding="utf-8"))["labels"]["tags"]
    return {re.sub("^[BILU]-", "", tag) for tag in tags} - {"O"}


@pytest.mark.parametrize("model", TAGGERS)
def test_each_label_of_the_trained_models_is_explained(model: str) -> None:
    found = legend(sorted(kinds_of(model)))
    assert [label for label, each in found.items() if not each["meaning"]] == []


def test_labels_of_one_class_have_one_colour_and_punctuation_has_none() -> None:
    found = {
        label: each["color"] for label, each in legend(["NN", "NNS", "NNP", "NNPS", "IN", "VBD", ",", "``"]).items()
    }
    assert found["NN"] == found["NNS"]
    assert found["NNP"] == found["NNPS"]
    assert len({found["NN"], found["NNP"], found["IN"], found["VBD"]}) == 4
    assert (found[","], found["``"]) == (None, None)


def test_roles_that_continue_or_refer_are_explained_and_coloured_by_what_they_belong_to() -> None:
    found = legend(["ARG1", "C-ARG1", "R-ARG1"])
    assert {each["color"] for each in found.values()} == {1}
    assert found["C-ARG1"]["meaning"] == "continues: patient: whom or what it happens to"
    assert found["R-ARG1"]["meaning"] == "refers to: patient: whom or what it happens to"


def test_labels_of_another_set_are_not_explained() -> None:
    assert [each["meaning"] for each in legend(["LOC", "GENE", "DRUG"]).values()] == [None] * 3
    assert legend([]) == {}


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "<0.1 %"), (0.00049, "<0.1 %"), (0.0005, "0.1 %"), (0.9994, "99.9 %"), (0.9995, ">99.9 %"), (-0.2, "-20.0 %")],
)
def test_a_share_that_only_rounding_makes_nothing_or_all_is_a_bound(share: float, shown: str) -> None:
    assert percent(share) == shown


def test_labels_have_a_colour_of_their_own_or_the_next_one_and_keep_it() -> None:
    colors, count = Colors(), len(PALETTE)
    assert [colors[str(number)] for number in (3, 1, count, count + 1)] == [2, 0, count - 1, 0]  # chains
    colors = Colors()
    labels = [f"label {number}" for number in range(count + 2)]
    assert [colors[label] for label in labels + labels[:3]] == [*range(count), 0, 1, 0, 1, 2]


def test_weights_are_shares_of_the_largest() -> None:
    assert ShadedText("a b", [(0, 1), (2, 3)], [0.1, 0.4]).shares() == [0.25, 1]
    assert ShadedText("a b", [(0, 1), (2, 3)], [0.0, 0.0]).shares() == [0, 0]
    assert ShadedText("", [], []).shares() == []


def bracketed(text: str, *spans: tuple[int, int]) -> str:
    marks = {"open": "({}:", "close": ":{})"}
    return "".join(
        piece.text if piece.kind == "text" else marks[piece.kind].format(piece.span)
        for piece in nested_pieces(text, spans)
    )


def test_spans_nest_and_touch() -> None:
    assert bracketed("her boat sank") == "her boat sank"
    assert bracketed("her boat sank", (0, 3), (0, 8), (9, 13)) == "(1:(0:her:0) boat:1) (2:sank:2)"
    assert bracketed("abc", (0, 1), (1, 2), (1, 3)) == "(0:a:0)(2:(1:b:1)c:2)"
    assert bracketed("abc", (0, 3), (1, 3), (2, 3)) == "(0:a(1:b(2:c:2):1):0)"


def test_of_spans_that_cross_the_first_is_drawn() -> None:
    assert bracketed("a bb ccc dd", (0, 4), (2, 8)) == "(0:a bb:0) ccc dd"
    assert bracketed("abcdef", (1, 5), (0, 2), (1, 2), (3, 6), (2, 6)) == "(1:a(2:b:2):1)(4:c(3:def:3):4)"


def test_equal_spans_open_and_close_in_opposite_orders() -> None:
    assert bracketed("ab", (0, 2), (0, 2)) == "(0:(1:ab:1):0)"
