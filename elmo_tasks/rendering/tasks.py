"""What is drawn for the results of each task: one function per task, from a predictor's result to the parts to draw."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elmo_tasks import tasks
from elmo_tasks.rendering.drawing import (
    PUNCTUATION,
    Bars,
    Drawing,
    HeatMap,
    Mark,
    MarkedText,
    Rows,
    ShadedText,
    SignedText,
)
from elmo_tasks.text.tag_schemes import OUTSIDE, spans_of_tags
from elmo_tasks.text.vocabulary import natural_order

NO_ANSWER = "(no answer)"

Result = Mapping[str, Any]
Description = Callable[[Result], Drawing]


def describe(task: tasks.Task, result: Result) -> Drawing:
    """What to draw for a result of a task's predictor.

    A task without a description, its own or that of a base class, gets its keys and values. What `explain` has added
    comes last.
    """
    plain = {key: value for key, value in result.items() if key != "saliency"}
    return [*(DESCRIPTIONS.find(task) or _items)(plain), *_saliency(result)]


def register_description(task: type[tasks.Task], description: Description) -> None:
    """Makes `describe` use a function for the results of a task and its subclasses."""
    DESCRIPTIONS[task.name] = description


def _tagging(result: Result) -> Drawing:
    text, offsets = located(result)
    if "spans" in result:
        spans = [(span["label"], span["start"], span["end"], span["probability"]) for span in result["spans"]]
    else:
        tagged = zip(result["tags"], result["probabilities"], strict=True)
        unmarked = {OUTSIDE, *PUNCTUATION}
        spans = [(tag, index, index, share) for index, (tag, share) in enumerate(tagged) if tag not in unmarked]
    return [MarkedText(text, _marks(offsets, spans))]


def _semantic_roles(result: Result) -> Drawing:
    """The sentence for each frame with a role: not for those of "was" and the like, which seldom have one."""
    text, offsets = located(result)
    frames: Drawing = []
    for frame in filter(lambda each: each["roles"], result["frames"]):
        sure = {role["start"]: role["probability"] for role in frame["roles"]}
        spans = [(label, start, end, sure.get(start)) for label, start, end in spans_of_tags(frame["tags"])]
        frames.append(MarkedText(text, _marks(offsets, spans)))
    return frames or [MarkedText(text)]


def _coreference(result: Result) -> Drawing:
    """The document with its mentions, and its chains. People count these from 1."""
    text, offsets = located(result)
    mentions = result["mentions"]
    spans = [(str(each["cluster"] + 1), each["start"], each["end"], each["probability"]) for each in mentions]
    drawing: Drawing = [MarkedText(text, _marks(offsets, spans))]
    for number in range(len(result["clusters"])):
        chain = " → ".join(" ".join(each["text"].split()) for each in mentions if each["cluster"] == number)
        drawing.append(MarkedText(chain, [Mark(0, len(chain), str(number + 1))]))
    return drawing


def _reading(result: Result) -> Drawing:
    has_answer = bool(result["answer"])
    marks = [Mark(result["start_char"], result["end_char"], "answer", result["probability"])] if has_answer else []
    bars = [(each["answer"], each["probability"]) for each in result["best"]]
    if "no_answer_probability" in result:  # next to the best span, and before it if it is what the model chose
        bars.insert(int(has_answer), (NO_ANSWER, result["no_answer_probability"]))
    return [
        MarkedText(result["question"], title="question"),
        MarkedText(result["passage"], marks, title="passage"),
        Bars(bars, title="answers"),
    ]


def _classification(result: Result) -> Drawing:
    text, offsets = located(result)
    if "attention" in result:
        return [ShadedText(text, offsets, result["attention"], title="attention"), *_predicted(result)]
    return [MarkedText(text), *_predicted(result)]


def _text_pairs(result: Result) -> Drawing:
    premise, hypothesis = result["premise_tokens"], result["hypothesis_tokens"]
    drawing: Drawing = [
        MarkedText(result.get("premise", " ".join(premise)), title="premise"),
        MarkedText(result.get("hypothesis", " ".join(hypothesis)), title="hypothesis"),
        *_predicted(result),
    ]
    if "premise_attention" not in result:
        return drawing
    return [
        *drawing,
        HeatMap(premise, hypothesis, result["premise_attention"], title="each row: a token of the premise attends to"),
        HeatMap(
            hypothesis, premise, result["hypothesis_attention"], title="each row: a token of the hypothesis attends to"
        ),
    ]


def _saliency(result: Result) -> Drawing:
    """The texts that the parts of a prediction depend on, each with what it explains."""
    drawing: Drawing = []
    for item in result.get("saliency", ()):
        explained = " ".join([item["of"] or NO_ANSWER, *([item["text"]] if "text" in item else [])])  # PER Mary Collins
        for key, value in item.items():
            if isinstance(value, list):
                drawing.append(SignedText(value, title=explained + ("" if key == "tokens" else f" ← {key}")))
    return drawing


def _items(result: Result) -> Drawing:
    values = (
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in result.items()
    )
    return [Rows(list(values))]


def _predicted(result: Result) -> Drawing:
    """What a head predicts for a whole text or pair: a label, a set of labels or a number."""
    if "score" in result:
        return [Rows([("score", f"{result['score']:.6g}")])]
    chosen, shares = result.get("labels", [result["label"]] if result.get("label") else []), result["probabilities"]
    order = natural_order(shares) or sorted(shares, key=lambda label: (label not in chosen, -shares[label]))
    bars = Bars([(label, shares[label]) for label in order], chosen=tuple(map(order.index, chosen)))
    is_shown = "labels" in result or not chosen
    return [Rows([("labels", ", ".join(chosen) or "none of these")]), bars] if is_shown else [bars]


def _marks(offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[str, int, int, float | None]]) -> list[Mark]:
    """Marks of labels with their first and last token, the end inclusive, and their probability."""
    return [Mark(offsets[start][0], offsets[end][1], label, share) for label, start, end, share in spans]


def located(result: Result) -> tuple[str, list[tuple[int, int]]]:
    """The text of a result and the offsets of its tokens in it, in characters, ends exclusive.

    Tokens without a text are joined by spaces, and sentences by line ends.
    """
    sentences = result.get("sentences") or [result["tokens"]]
    if "offsets" in result:
        known = itertools.chain(*result["offsets"]) if "sentences" in result else result["offsets"]
        before = result.get("start_char", 0)  # the text of a sentence is a part of the input's
        return result["text"], [(start - before, end - before) for start, end in known]
    text, offsets = "", []
    for tokens in sentences:
        for number, token in enumerate(tokens):
            text += " " * bool(number)
            offsets.append((len(text), len(text) + len(token)))
            text += token
        text += "\n"
    return text.removesuffix("\n"), offsets


DESCRIPTIONS = tasks.TaskRegistry[Description](
    {
        tasks.Classification.name: _classification,
        tasks.Coreference.name: _coreference,
        tasks.MultiLabel.name: _classification,
        tasks.PairRegression.name: _text_pairs,
        tasks.Reading.name: _reading,
        tasks.Regression.name: _classification,
        tasks.SemanticRoles.name: _semantic_roles,
        tasks.Tagging.name: _tagging,
        tasks.TextPairs.name: _text_pairs,
    }
)
