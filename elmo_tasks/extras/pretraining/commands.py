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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks import hooks
from elmo_tasks.commands import options
from elmo_tasks.commands.console import binary_output, json_lines, print_json, print_table
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.raw_text import add_bilm_arguments
from elmo_tasks.files.paths import JSON_LINES, TABLE, check_ending, check_output, plain_name
from elmo_tasks.files.signals import Results, uninterrupted
from elmo_tasks.progress import is_main_process

if TYPE_CHECKING:
    from elmo_tasks.extras.pretraining.language_model import LanguageModel
    from elmo_tasks.extras.pretraining.scores import SentenceScores
    from elmo_tasks.rendering.drawing import Drawing

Show = Callable[["SentenceScores"], object]

_COLUMNS = (
    "sentence", "position", "token", "known", "forward_bits", "forward_rank", "backward_bits", "backward_rank",
    "both_bits", "forward_entropy_bits", "backward_entropy_bits", "substitutes",
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
    from elmo_tasks.extras.pretraining.pretrain import pretrain

    results = pretrain(
        arguments.config,
        arguments.run_folder or options.default_run_folder(arguments.config),
        overrides=arguments.set,
        variables=dict(arguments.ext_var),
        start_from=arguments.start_from,
        resume=arguments.resume,
        force=arguments.force,
        dry_run=arguments.dry_run,
        announce=_print_plan,
    )
    if results and is_main_process():
        columns = {"before": results["before"], "after": results["held_out"]}
        _print_perplexities({name: each for name, each in columns.items() if each})
        print(f"perplexity of a unigram model: {results['held_out_unigram']:.1f}")


def _print_plan(plan: Mapping[str, str]) -> None:
    if is_main_process():
        print_table("pretraining", ("", "value"), plan.items())


def add_perplexity(parser: argparse.ArgumentParser) -> None:
    about = "text files, folders or glob patterns, compressed or not"
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
    about = "a UTF-8 text file, compressed or not; - for standard input; or a table, such as .csv, .xlsx or .parquet"
    parser.add_argument("text", metavar="TEXT", help=about)
    add_bilm_arguments(parser)
    options.add_number(
        parser, "--substitutes", 0, "also give this many likely words for each token", kind=options.not_negative
    )
    parser.add_argument("--output", metavar="FILE", help="write the scores to this file, instead of showing them")
    options.add_force(parser)
    options.add_flag(parser, "--json", "one JSON object for each sentence, instead of a row for each token (TSV)")
    about = "read a sentence after those before it, on its line or in its cell, instead of by itself"
    options.add_flag(parser, "--context", about)
    about = "of words in a table, do not count tokens without letters and digits, as in 'horse,'"
    options.add_flag(parser, "--no-punctuation", about)
    options.add_set(parser, "reader of a table, such as dataset_reader.columns.text=NAME")


def run_score(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo.bilm_files import bilm_folder
    from elmo_tasks.extras.pretraining.language_model import LanguageModel
    from elmo_tasks.extras.pretraining.scores import score_texts
    from elmo_tasks.extras.raw_text import bilm_tokenizer, raw_lines
    from elmo_tasks.extras.tables.sheets import SHEETS
    from elmo_tasks.files.text import standard_input
    from elmo_tasks.progress import counted_items

    name = plain_name(Path(arguments.text)).lower()
    is_table = not arguments.tokenized and name.endswith((".csv", ".tsv", *SHEETS))
    others = ("json", "substitutes") if is_table else ("no_punctuation", "set")
    if given := [name.replace("_", "-") for name in others if getattr(arguments, name)]:
        raise ElmoTasksError(f"--{given[0]}: not for {'a table' if is_table else 'text'}")
    advice = "--json writes JSON lines" if not arguments.json else "Without --json, it is a table"
    endings = hooks.names("result_file") if is_table else JSON_LINES if arguments.json else TABLE
    check_ending(arguments.output, endings, "" if is_table else advice)
    check_output(arguments.output, force=arguments.force, stream=True)
    model = LanguageModel.load(arguments.bilm).to(options.chosen_device(arguments))
    model.tokenizer = bilm_tokenizer(arguments, bilm_folder(arguments.bilm))
    if is_table:
        _score_table(arguments, model)
        return
    source = standard_input() if arguments.text == "-" else arguments.text
    lines = raw_lines(source, tokenized=arguments.tokenized)
    split = ([tokens for tokens in model.tokenizer.strings(line) if tokens] for _, line in lines)
    texts = (text for each in split for text in ([each] if arguments.context else [[one] for one in each]) if text)
    results = Results((arguments.output,))
    is_shown = bool(results.files) or not sys.stdout.isatty()
    with contextlib.ExitStack() as stack:
        show = stack.enter_context(_shown(arguments))
        counted = stack.enter_context(contextlib.closing(counted_items(texts, "texts", visible=is_shown)))
        results.show(score_texts(model, counted, arguments.substitutes), show)
        with uninterrupted():
            stack.close()
    results.report("sentence")


def _score_table(arguments: argparse.Namespace, model: LanguageModel) -> None:
    """Writes a row for each word of a table's texts."""
    from elmo_tasks.config import parse_part
    from elmo_tasks.config.jsonnet import apply_overrides
    from elmo_tasks.data_readers import DatasetReaderConfig
    from elmo_tasks.data_readers.sources import Parsing
    from elmo_tasks.extras.tables.table_files import check_written, write_table
    from elmo_tasks.files.json_files import json_text

    check_written(arguments.output)
    values: dict[str, Any] = {"dataset_reader": {"type": "delimited", "task": "classification"}}
    if problems := apply_overrides(values, arguments.set)[1] or [*values][1:]:
        raise ElmoTasksError(f"--set: {problems[0]}; expected dataset_reader.KEY=VALUE")
    settings = json_text(values["dataset_reader"])
    reader: Any = parse_part(DatasetReaderConfig, settings, "reader of a table", settings).build()
    parsing = Parsing(needs_labels=False)
    rows = [record.columns for record in reader.records(*reader.files(Path(arguments.text)), parsing)]
    text = parsing.found["layout"].columns["text"]
    scored = model.score_words(rows, text, context=arguments.context, punctuation=not arguments.no_punctuation)
    names = [*dict.fromkeys(itertools.chain.from_iterable(scored))]
    with binary_output(arguments.output) as stream:
        cells = [[row.get(name) for name in names] for row in scored]
        write_table(arguments.output or "words.tsv", stream, [*map(str, names)], cells)


@contextlib.contextmanager
def _shown(arguments: argparse.Namespace) -> Iterator[Show]:
    """Yields a function that shows the scores of a sentence in the way that the arguments ask for."""
    from elmo_tasks.rendering.terminal import Terminal

    if arguments.json:
        with json_lines(arguments.output) as write:
            yield lambda scores: write(scores.record())
    elif arguments.output or not sys.stdout.isatty():
        with _table(arguments.output) as show:
            yield show
    else:
        terminal = Terminal()
        yield lambda scores: terminal.show(_drawing(scores))


@contextlib.contextmanager
def _table(path: str | None) -> Iterator[Show]:
    """Yields a function that writes the rows of a sentence, after the names of the columns."""
    numbers = itertools.count(1)
    with binary_output(path) as stream:
        text = codecs.getwriter("utf-8")(stream)
        writer = csv.DictWriter(text, _COLUMNS, delimiter="\t", lineterminator="\n", restval="")

        def show(scores: SentenceScores) -> None:
            rows: list[dict[str, Any]] = [{"token": "<S>", "backward_bits": _bits(scores.begin)}]
            for each in scores.tokens:
                words = " ".join(f"{word}:{probability:.4f}" for word, probability in each.substitutes)
                row = {"token": each.token, "known": int(each.is_known), "substitutes": words}
                row |= {name: getattr(each, name) for name in ("forward_rank", "backward_rank")}
                names = ("forward", "backward", "both", "forward_entropy", "backward_entropy")
                rows.append(row | {f"{name}_bits": _bits(getattr(each, name)) for name in names})
            number = next(numbers)
            if number == 1:
                writer.writeheader()
            rows.append({"token": "</S>", "forward_bits": _bits(scores.end)})
            writer.writerows({"sentence": number, "position": at, **row} for at, row in enumerate(rows))

        yield show


def _bits(nats: float) -> str:
    return f"{nats / math.log(2):.6f}"


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
