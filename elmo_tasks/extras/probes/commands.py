"""The command that measures what each layer of a biLM knows."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from elmo_tasks.commands import numbers, options
from elmo_tasks.commands.console import print_table
from elmo_tasks.config.data_folder import DATA_VARIABLE, data_folder
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.raw_text import add_bilm

if TYPE_CHECKING:
    from elmo_tasks.elmo import FastBiLM
    from elmo_tasks.extras.probes.label_probes import LabelProbe
    from elmo_tasks.extras.probes.senses import SenseProbe
    from elmo_tasks.modules.word_vectors import WordVectorFile

logger = logging.getLogger(__name__)

_SENSES, _PARTS_OF_SPEECH = "wsd", "pos"
_POS_FILES = "pos_ud_ewt/en_ewt-ud-train.conllu.xz", "pos_ud_ewt/en_ewt-ud-test.conllu"
_POS_READER = '{"type": "conllu", "tag_column": "xpos"}'


def add_probe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="wsd|pos|FILE",
        help=f"wsd: word senses; pos: parts of speech, both from ${DATA_VARIABLE}; or a file with labels of tokens, "
        "spans or semantic roles",
    )
    add_bilm(parser)
    parser.add_argument(
        "--reader",
        metavar="NAME",
        help="what reads FILE: the type of a dataset reader, or a JSON object such as "
        '\'{"type": "conllu", "tag_column": "xpos"}\' (default: conllu)',
    )
    parser.add_argument(
        "--test", metavar="FILE", help="the file to test on (default: a random fifth of FILE's sentences)"
    )
    parser.add_argument(
        "--vectors",
        metavar="FILE",
        help=f"word vectors to compare with (default: the GloVe vectors in ${DATA_VARIABLE})",
    )
    options.add_device(parser, "auto")
    options.add_number(parser, "--seed", 0, "the random seed", numbers.random_seed)
    options.add_result(parser, "also write the results", "the results as JSON instead of tables")
    options.add_include_package(parser)


def run_probe(arguments: argparse.Namespace) -> None:
    import dataclasses

    options.check_result(arguments)
    probe = (_probe_senses if arguments.what == _SENSES else _probe_labels)(arguments)
    result = {"probe": arguments.what, "bilm": arguments.bilm, **dataclasses.asdict(probe)}
    options.show_result(arguments, result, lambda: _print(probe))


def _word_vectors(path: str | None) -> WordVectorFile | None:
    from elmo_tasks.extras.samples import VECTORS
    from elmo_tasks.files.paths import stored_file
    from elmo_tasks.modules.word_vectors import WordVectorFile

    default = stored_file(data_folder() / VECTORS)
    if path is None and not default.is_file():
        logger.warning("%s: no such file, so the results have no row of word vectors; --vectors names a file", default)
        return None
    return WordVectorFile(path or default)


def _probe_senses(arguments: argparse.Namespace) -> SenseProbe:
    from elmo_tasks.extras.probes.sense_data import read_sense_data
    from elmo_tasks.extras.probes.senses import probe_senses

    if given := [f"--{name}" for name in ("reader", "test") if getattr(arguments, name)]:
        raise ElmoTasksError(f"{', '.join(given)}: not for {_SENSES}")
    data = read_sense_data(data_folder() / "wsd")
    return probe_senses(_bilm(arguments), data, vectors=_word_vectors(arguments.vectors))


def _probe_labels(arguments: argparse.Namespace) -> LabelProbe:
    from elmo_tasks.config import parse_part
    from elmo_tasks.data_readers import DatasetReaderConfig
    from elmo_tasks.extras.probes.label_probes import labelled_sentences, probe_labels, split_sentences

    train, test, reader_name = arguments.what, arguments.test, "conllu"
    if arguments.what == _PARTS_OF_SPEECH:
        train, test = (data_folder() / file for file in _POS_FILES)
        reader_name = _POS_READER
        if arguments.test:
            raise ElmoTasksError(f"--test: not for {_PARTS_OF_SPEECH}, which has a test file; expected a FILE instead")
    reader = parse_part(DatasetReaderConfig, arguments.reader or reader_name, "reader", _POS_READER).build()
    bilm = _bilm(arguments)
    training = labelled_sentences(reader, train)
    if test:
        tested = labelled_sentences(reader, test)
    else:
        training, tested = split_sentences(training, arguments.seed)
    return probe_labels(bilm, training, tested, vectors=_word_vectors(arguments.vectors), seed=arguments.seed)


def _bilm(arguments: argparse.Namespace) -> FastBiLM:
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.elmo.fast import load_frozen

    return load_frozen(BiLMFiles.in_folder(arguments.bilm), device=options.chosen_device(arguments))


def _print(probe: SenseProbe | LabelProbe) -> None:
    from elmo_tasks.extras.probes.label_probes import LabelProbe
    from elmo_tasks.extras.probes.senses import ALL_SETS

    if isinstance(probe, LabelProbe):
        print_table(
            f"accuracy of linear classifiers: {probe.labels} labels, {probe.training_items:,} items to learn from, "
            f"{probe.test_items:,} to test on",
            ("vectors", "accuracy", "control task", "selectivity"),
            [
                ["none: the most frequent label", f"{probe.most_frequent:.2f}", "", ""],
                *(
                    [row.vectors, *(f"{value:.2f}" for value in (row.accuracy, row.control, row.selectivity))]
                    for row in probe.rows
                ),
            ],
        )
        return
    rows = {"word in training, %": probe.known_words, "best possible F1": probe.known_senses, **probe.f1}
    groups = list(probe.instances)
    cut = groups.index(ALL_SETS) + 1
    for title, columns in (("F1 of word senses", groups[:cut]), ("F1 of word senses, in detail", groups[cut:])):
        counts = ["instances", *(f"{probe.instances[name]:,}" for name in columns)]
        values = [[row, *(f"{found[name]:.1f}" for name in columns)] for row, found in rows.items()]
        print_table(title, ("vectors", *columns), [counts, *values])
