"""The commands that train biLMs, measure their perplexity, and score the words of a text with them."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import csv
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from elmo_tasks import hooks
from elmo_tasks.commands import options
from elmo_tasks.commands.console import binary_output, json_lines, print_json, print_table
from elmo_tasks.extras.raw_text import add_bilm_arguments
from elmo_tasks.files.paths import HTML, JSON_LINES, TABLE, check_ending, check_output
from elmo_tasks.files.signals import Results, uninterrupted
from elmo_tasks.progress import is_main_process

if TYPE_CHECKING:
    from elmo_tasks.extras.pretraining.scores import SentenceScores
    from elmo_tasks.rendering.drawing import Drawing

Show = Callable[["SentenceScores"], object]

_COLUMNS = (
    "sentence", "position", "token", "known", "forward", "forward_bits", "forward_rank", "backward", "backward_bits",
    "backward_rank", "both", "both_bits", "substitutes",
)  # fmt: skip


def add_pretrain(parser: argparse.ArgumentParser) -> None:
    options.add_config_and_folder(parser, "the pretraining", "the biLM")
    options.add_from(
        parser, "BILM", "fine-tune this biLM: the folder with its *options.json and *weights.hdf5, or default"
    )
    options.add_config_arguments(parser)
    options.add_training_arguments(parser)
    dry_run = "prepare the text, print the number of tokens and steps and the estimated time, then stop"
    options.add_flag(parser, "--dry-run", dry_run)


def run_pretrain(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.pretraining.pretrain import dry_run, pretrain

    config, folder = arguments.config, arguments.run_folder or options.default_run_folder(arguments.config)
    given = {"overrides": arguments.set, "variables": dict(arguments.ext_var), "start_from": arguments.start_from}
    if arguments.dry_run:
        _print_plan(dry_run(config, folder, **given))
        return
    results = pretrain(config, folder, **given, resume=arguments.resume, force=arguments.force, announce=_print_plan)
    if is_main_process():
        columns = {"before": results["before"], "after": results["held_out"]}
        _print_perplexities({name: each for name, each in columns.items() if each})
        print(f"perplexity of a unigram model: {results['held_out_unigram']:.1f}")


def _print_plan(plan: Mapping[str, str]) -> None:
    if is_main_process():
        print_table("pretraining", ("", "value"), plan.items())


def add_perplexity(parser: argparse.ArgumentParser) -> None:
    about = "text files or glob patterns, compressed or not"
    parser.add_argument("text", metavar="TEXT", nargs="+", help=about)
    add_bilm_arguments(parser)
    options.add_flag(parser, "--json", "print the results as JSON instead of a table")


def run_perplexity(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.pretraining.pretrain import perplexity_of_text
    from elmo_tasks.text.tokenizer_config import parse_tokenizer

    name = options.chosen_tokenizer(arguments)
    tokenizer, device = parse_tokenizer(name) if name else None, options.chosen_device(arguments)
    result = perplexity_of_text(arguments.bilm, arguments.text, tokenizer, device)
    print_json(result) if arguments.json else _print_perplexities({"value": result})


def _print_perplexities(columns: dict[str, dict[str, float]]) -> None:
    names = {
        "forward": "forward perplexity",
        "backward": "backward perplexity",
        "mean": "mean perplexity",
        "unknown_percent": "unknown words, %",
        "targets": "tokens, including sentence ends",
    }
    rows = [
        [label, *(f"{values[name]:,.{0 if name == 'targets' else 2}f}" for values in columns.values())]
        for name, label in names.items()
    ]
    print_table("full softmax", ("", *columns), rows)


def add_score(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="a UTF-8 text file, compressed or not, or - for standard input")
    add_bilm_arguments(parser)
    options.add_number(
        parser, "--substitutes", 0, "also give this many likely words for each token", kind=options.not_negative
    )
    parser.add_argument("--output", metavar="FILE", help="write the scores to this file, instead of showing them")
    parser.add_argument("--html", metavar="FILE", help="write a page with the surprising words in colour")
    options.add_force(parser)
    options.add_flag(parser, "--json", "one JSON object for each sentence, instead of a row for each token (TSV)")


def run_score(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.pretraining.language_model import LanguageModel
    from elmo_tasks.extras.pretraining.scores import score_sentences
    from elmo_tasks.extras.raw_text import raw_lines
    from elmo_tasks.files.text import standard_input
    from elmo_tasks.progress import counted_items
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
    """Yields a function that shows the scores of a sentence in each of the ways that the arguments ask for."""
    from elmo_tasks.files.text import STANDARD_INPUT
    from elmo_tasks.rendering.terminal import Terminal

    with contextlib.ExitStack() as stack:
        shows: list[Show] = []
        if arguments.html:
            title = STANDARD_INPUT if arguments.text == "-" else arguments.text
            open_page = hooks.required("page", "html", "--html")
            add_section = stack.enter_context(open_page(arguments.html, title, lambda: results.note))
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
