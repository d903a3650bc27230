"""The commands that train biLMs and measure their perplexity."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_json, print_table
from elmo_tasks.progress import is_main_process


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
    options.add_bilm_arguments(parser)
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
