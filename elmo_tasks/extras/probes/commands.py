"""The commands that measure what each layer of a biLM knows, and compare the vectors of words in context."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_json, print_table
from elmo_tasks.config.data_folder import DATA_VARIABLE, data_folder
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.raw_text import add_bilm, add_bilm_arguments, bilm_tokenizer
from elmo_tasks.files.text import standard_input

if TYPE_CHECKING:
    from elmo_tasks.elmo import FastBiLM
    from elmo_tasks.extras.probes.label_probes import LabelProbe
    from elmo_tasks.extras.probes.neighbors import WordSimilarities
    from elmo_tasks.extras.probes.senses import SenseProbe
    from elmo_tasks.modules.word_vectors import WordVectorFile
    from elmo_tasks.text.tokenizers import Tokenizer

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
    options.add_number(parser, "--seed", 0, "the random seed", options.random_seed)
    options.add_result(parser, "also write the results", "the results as JSON instead of tables")
    options.add_include_package(parser)


def run_probe(arguments: argparse.Namespace) -> None:
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
    from elmo_tasks.extras.probes.senses import probe_senses, read_sense_data

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
        title = f"accuracy of linear classifiers: {probe.labels} labels, {probe.training_items:,} items to learn from, "
        rows = [["none: the most frequent label", f"{probe.most_frequent:.2f}", "", ""]]
        for row in probe.rows:
            rows.append([row.vectors, f"{row.accuracy:.2f}", f"{row.control:.2f}", f"{row.selectivity:.2f}"])
        columns = ("vectors", "accuracy", "control task", "selectivity")
        print_table(f"{title}{probe.test_items:,} to test on", columns, rows)
        return
    groups = list(probe.instances)
    cut = groups.index(ALL_SETS) + 1
    for title, groups_shown in (("F1 of word senses", groups[:cut]), ("F1 of word senses, in detail", groups[cut:])):
        counts = ["instances", *(f"{probe.instances[name]:,}" for name in groups_shown)]
        values = [[name, *(f"{found[group]:.1f}" for group in groups_shown)] for name, found in probe.f1.items()]
        print_table(title, ("vectors", *groups_shown), [counts, *values])


def add_neighbors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence")
    parser.add_argument(
        "--word", required=True, metavar="WORD", help="the token of the sentence to find neighbours for"
    )
    parser.add_argument("--pool", required=True, metavar="FILE", help="the text to search, compressed or not")
    add_bilm_arguments(parser)
    options.add_flag(parser, "--same-word", "search only for other occurrences of the word")
    parser.add_argument(
        "--static", metavar="FILE", help="also show the nearest words by these word vectors, such as GloVe's"
    )
    options.add_number(parser, "--count", 5, "the number of neighbours per layer")
    options.add_flag(parser, "--json", "print the neighbours as JSON instead of tables")


def run_neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.probes.neighbors import nearest_tokens, nearest_words
    from elmo_tasks.extras.raw_text import find_token, raw_lines
    from elmo_tasks.modules.word_vectors import WordVectorFile
    from elmo_tasks.progress import counted_items

    bilm, tokenizer = _bilm_and_tokenizer(arguments)
    query = find_token([token.text for token in tokenizer.words(arguments.sentence)], arguments.word)
    file = WordVectorFile(arguments.static) if arguments.static else None
    words = nearest_words(file, query.word, arguments.count) if file else []
    lines = raw_lines(arguments.pool, tokenized=arguments.tokenized)
    sentences = (sentence for _, line in lines for sentence in tokenizer.strings(line))
    with contextlib.closing(counted_items(sentences, "sentences read")) as pool:
        layers = nearest_tokens(bilm, query, pool, count=arguments.count, same_word=arguments.same_word)
    if arguments.json:
        found = [
            [{"sentence": n.token.sentence, "place": n.token.index, "similarity": n.similarity} for n in layer]
            for layer in layers
        ]
        static = [{"word": word, "similarity": similarity} for word, similarity in words]
        print_json({"static": static, "layers": found} if arguments.static else found)
        return
    if arguments.static:
        rows = [[word, f"{similarity:.3f}"] for word, similarity in words]
        print_table(f"{Path(arguments.static).name} (the same in every sentence)", ("word", "cosine"), rows)
    for number, layer in enumerate(layers):
        rows = [[neighbor.token.marked(), f"{neighbor.similarity:.3f}"] for neighbor in layer]
        print_table(f"layer {number}" + (" (tokens without context)" if number == 0 else ""), ("token", "cosine"), rows)


def add_similarity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", metavar="WORD", help="a token of each sentence; case does not matter")
    parser.add_argument(
        "sentences",
        metavar="SENTENCE",
        nargs="+",
        help="sentences with the word, or - to read them from standard input, one per line",
    )
    add_bilm_arguments(parser)
    about = "also compare these word vectors, such as GloVe's, which are the same in every sentence"
    parser.add_argument("--static", metavar="FILE", help=about)
    options.add_flag(parser, "--json", "print the similarities as JSON instead of tables")


def run_similarity(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.probes.neighbors import word_similarities
    from elmo_tasks.extras.raw_text import raw_lines
    from elmo_tasks.modules.word_vectors import WordVectorFile

    bilm, tokenizer = _bilm_and_tokenizer(arguments)
    sentences = arguments.sentences
    if sentences == ["-"]:
        sentences = [line for _, line in raw_lines(standard_input(), tokenized=arguments.tokenized) if line.strip()]
    split = [[token.text for token in tokenizer.words(sentence)] for sentence in sentences]
    static = WordVectorFile(arguments.static) if arguments.static else None
    found = word_similarities(bilm, arguments.word, split, static)
    if static and found.static is None:
        logger.warning("%s: has no vector for %r", static.path, arguments.word)
    if arguments.json:
        occurrences = [{"sentence": each.sentence, "place": each.index} for each in found.occurrences]
        print_json({"occurrences": occurrences, "pairs": _pairs(found)})
        return
    rows = [[f"{number}  {each.marked()}"] for number, each in enumerate(found.occurrences, start=1)]
    print_table("occurrences", ("token",), rows)
    columns = [*(f"layer {number}" for number in range(len(found.layers))), *([static.path.name] if static else [])]
    rows = []
    for each in _pairs(found):
        cosines = [*each["layers"], each["static"]][: len(columns)]
        shown = ("" if cosine is None else f"{cosine:.3f}" for cosine in cosines)
        rows.append([" and ".join(str(index + 1) for index in each["pair"]), *shown])
    print_table("cosine similarity", ("pair", *columns), rows)


def _pairs(found: WordSimilarities) -> list[dict[str, Any]]:
    """The similarities of each two occurrences, whose indices count from 0."""
    return [
        {
            "pair": [one, other],
            "layers": found.layers[:, one, other].tolist(),
            "static": None if found.static is None else found.static[one, other].item(),
        }
        for one, other in itertools.combinations(range(len(found.occurrences)), 2)
    ]


def _bilm_and_tokenizer(arguments: argparse.Namespace) -> tuple[FastBiLM, Tokenizer]:
    from elmo_tasks.elmo.bilm_files import BiLMFiles

    return _bilm(arguments), bilm_tokenizer(arguments, BiLMFiles.in_folder(arguments.bilm).options.parent)
