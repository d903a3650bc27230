"""The command that scores the words of a text with a language model."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import csv
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from elmo_tasks.commands import numbers, options
from elmo_tasks.commands.console import binary_output, json_lines, page
from elmo_tasks.commands.stopping import Results, uninterrupted
from elmo_tasks.files.overwriting import HTML, JSON_LINES, TABLE, check_ending, check_output

if TYPE_CHECKING:
    from elmo_tasks.extras.pretraining.scores import SentenceScores
    from elmo_tasks.rendering.drawing import Drawing

Show = Callable[["SentenceScores"], object]

_COLUMNS = (
    "sentence", "position", "token", "known", "forward", "forward_bits", "forward_rank", "backward", "backward_bits",
    "backward_rank", "both", "both_bits", "substitutes",
)  # fmt: skip


def add_score(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="a UTF-8 text file, compressed or not, or - for standard input")
    options.add_bilm_arguments(parser)
    options.add_number(
        parser, "--substitutes", 0, "also give this many likely words for each token", kind=numbers.not_negative
    )
    parser.add_argument("--output", metavar="FILE", help="write the scores to this file, instead of showing them")
    parser.add_argument("--html", metavar="FILE", help="write a page with the surprising words in colour")
    options.add_force(parser)
    options.add_flag(parser, "--json", "one JSON object for each sentence, instead of a row for each token (TSV)")


def run_score(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.pretraining.language_model import LanguageModel
    from elmo_tasks.extras.pretraining.scores import score_sentences
    from elmo_tasks.files.text import standard_input
    from elmo_tasks.progress import counted_items
    from elmo_tasks.text.prose import raw_lines
    from elmo_tasks.text.tokenizer_config import parse_tokenizer

    advice = "--json writes JSON lines" if not arguments.json else "Without --json, it is a table"
    check_ending(arguments.output, JSON_LINES if arguments.json else TABLE, advice)
    check_ending(arguments.html, HTML)
    for path in (arguments.output, arguments.html):
        check_output(path, force=arguments.force, stream=True)
    device = options.chosen_device(arguments)
    name = options.chosen_tokenizer(arguments)
    model = LanguageModel.load(arguments.bilm).to(device)
    tokenizer = parse_tokenizer(name) if name else model.tokenizer
    source = standard_input() if arguments.text == "-" else arguments.text
    lines = raw_lines(source, tokenized=arguments.tokenized)
    sentences = (tokens for _, line in lines for tokens in tokenizer.strings(line) if tokens)
    results = Results((arguments.output, arguments.html))
    is_shown = bool(results.files) or not sys.stdout.isatty()
    with contextlib.ExitStack() as stack:
        show = stack.enter_context(_shown(arguments, results))
        counted = stack.enter_context(contextlib.closing(counted_items(sentences, "sentences", visible=is_shown)))
        results.show(score_sentences(model, counted, arguments.substitutes), show)
        with uninterrupted():
            stack.close()
    results.report("sentence")


@contextlib.contextmanager
def _shown(arguments: argparse.Namespace, results: Results) -> Iterator[Show]:
    """Yields a function that shows the scores of a sentence in each of the ways that the arguments ask for.

    Arguments:
        results: those that have been shown; a page says at its end if there are more.
    """
    from elmo_tasks.files.text import STANDARD_INPUT
    from elmo_tasks.rendering.terminal import Terminal

    with contextlib.ExitStack() as stack:
        shows: list[Show] = []
        if arguments.html:
            title = STANDARD_INPUT if arguments.text == "-" else arguments.text
            add_section = stack.enter_context(page(arguments.html, title, results))
            shows.append(lambda scores: add_section(_drawing(scores)))
        if arguments.json:
            write = stack.enter_context(json_lines(arguments.output))
            shows.append(lambda scores: write(scores.record()))
        elif arguments.output or not (shows or sys.stdout.isatty()):
            shows.append(stack.enter_context(_table(arguments.output)))
        if not shows:
            terminal = Terminal()
            shows.append(lambda scores: terminal.show(_drawing(scores)))
        yield lambda scores: [show(scores) for show in shows]


@contextlib.contextmanager
def _table(path: str | None) -> Iterator[Show]:
    """Yields a function that writes the rows of a sentence, after the names of the columns."""
    numbers = itertools.count(1)
    with binary_output(path) as stream:
        writer = csv.writer(codecs.getwriter("utf-8")(stream), delimiter="\t", lineterminator="\n")

        def show(scores: SentenceScores) -> None:
            number, nothing = next(numbers), [""] * 3
            if number == 1:
                writer.writerow(_COLUMNS)
            writer.writerow([number, 0, "<S>", "", *nothing, *_nats_and_bits(scores.begin), "", *nothing])
            for position, each in enumerate(scores.tokens, start=1):
                forward = [*_nats_and_bits(each.forward), each.forward_rank]
                backward = [*_nats_and_bits(each.backward), each.backward_rank]
                words = " ".join(f"{word}:{probability:.4f}" for word, probability in each.substitutes)
                known = [number, position, each.token, int(each.is_known)]
                writer.writerow([*known, *forward, *backward, *_nats_and_bits(each.both), words])
            end = len(scores.tokens) + 1
            writer.writerow([number, end, "</S>", "", *_nats_and_bits(scores.end), "", *nothing, *nothing])

        yield show


def _nats_and_bits(surprisal: float) -> tuple[str, str]:
    return f"{surprisal:.6f}", f"{surprisal / math.log(2):.6f}"


def _drawing(scores: SentenceScores) -> Drawing:
    """The sentence with its surprising words dark, and the words that are expected instead."""
    from elmo_tasks.rendering.drawing import Rows, ShadedText

    words = [each.token for each in scores.tokens]
    starts = [sum(len(word) + 1 for word in words[:index]) for index in range(len(words))]
    offsets = [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
    bits = math.log(2)
    both = [each.both / bits for each in scores.tokens]
    tips = [f"{each:.1f} bits" for each in both]
    text = ShadedText(" ".join(words), offsets, both, "surprisal by both directions", tips)
    rows = []
    for each in scores.tokens:
        expected = " ".join(f"{word} {100 * probability:.0f}%" for word, probability in each.substitutes)
        name = each.token if each.is_known else f"{each.token} (unknown)"
        rows.append((name, f"{each.forward / bits:5.1f} {each.backward / bits:5.1f} bits  {expected}".rstrip()))
    rows.append(("forward and backward", f"{scores.forward / bits:.1f} {scores.backward / bits:.1f} bits"))
    return [text, Rows(rows)]
