"""The sets of `small_data`: the examples of their training and test files, and how predictions are scored."""

from __future__ import annotations

import itertools
import json
import random
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seqeval.metrics import f1_score
from sklearn.metrics import f1_score as macro_f1

from benchmarks.common import real_data
from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.data_readers.sst import SstConfig
from elmo_tasks.extras.other_tasks.conll import PredicatesConfig
from elmo_tasks.extras.other_tasks.conllu import ConlluConfig
from elmo_tasks.files.text import open_binary, read_lines

Example = dict[str, Any]
Examples = Sequence[Example]

MOST_TESTED = 1000
TAGS = {"predicates": "spans", "ner_conll03": "spans", "pos_ewt": "plain", "penn_ewt": "plain"}
# Scored by the macro F1: a model that hardly ever gives a rare label can have a high accuracy.
UNEVEN = {"sst_uneven": "uneven"}
CHOICE = ("genre", "questions", "predicates")


def read_genres(path: Path) -> Iterator[Example]:
    """The sentences of OntoGUM, labelled with the kinds of text that they are from."""
    tokens: list[str] = []
    for _, line in read_lines(path):
        if line.startswith("#begin"):
            genre = line.split("_")[1]
        elif line.strip() and not line.startswith("#"):
            tokens.append(line.split()[3])
        elif tokens:
            yield {"tokens": tokens, "label": genre}
            tokens = []


def read_web(path: Path) -> Iterator[Example]:
    """The sentences of EWT, labelled with the kind of web text in their ids."""
    for _, line in read_lines(path):
        if line.startswith("# sent_id"):
            tokens, label = [], line.split()[3].partition("-")[0]
        elif line[:1].isdigit() and line.split("\t")[0].isdigit():
            tokens.append(line.split("\t")[1])
        elif not line.strip():
            yield {"tokens": tokens, "label": label}


def read_uneven(path: Path) -> Iterator[Example]:
    """Sentences of SST: 80 % are positive, 15 % neutral and 5 % negative, all of them of at most these shares."""
    kinds: dict[str, list[Example]] = {"positive": [], "neutral": [], "negative": []}
    for example in SstConfig().build().read(path):
        kind = example["label"].removeprefix("very ")
        kinds[kind].append({**example, "label": kind})
    whole = len(kinds["positive"]) / 80
    shares = {"positive": 80, "neutral": 15, "negative": 5}
    drawn = [each for kind, share in shares.items() for each in kinds[kind][: int(share * whole)]]
    yield from random.Random(0).sample(drawn, len(drawn))


def read_questions(path: Path) -> Iterator[Example]:
    """A question of SQuAD with the sentence that has its answer, or with another of the passage, in turn.

    Source: Wang et al. (2019), "GLUE", section 3.3 (QNLI).
    """
    with open_binary(path) as stream:
        articles = json.load(stream)["data"]
    passages = itertools.chain.from_iterable(article["paragraphs"] for article in articles)
    for passage in passages:
        found = re.finditer(r"\S.*?(?:[.?!](?=\s)|$)", passage["context"], re.DOTALL)
        sentences = [(each.start(), each.group().split()) for each in found]
        for number, question in enumerate(passage["qas"]):
            place = question["answers"][0]["answer_start"]
            answer = max(at for at, (start, _) in enumerate(sentences) if start <= place)
            others = [at for at in range(len(sentences)) if at != answer]
            if others:
                chosen = answer if number % 2 else others[number % len(others)]
                pair = {"premise": question["question"].split(), "hypothesis": sentences[chosen][1]}
                yield {**pair, "label": "answer" if chosen == answer else "other"}


def read_set(name: str, all_tested: bool = False) -> tuple[list[Example], list[Example]]:
    """The examples of the training file and of the test file, at most `MOST_TESTED` of these unless `all_tested`."""
    data = real_data()
    gum, ewt, roles = data / "coref_ontogum", data / "pos_ud_ewt", data / "srl_ewt"
    names, trees, pairs, squad = data / "ner_conll2003", data / "sst5", data / "snli", data / "squad"
    source = {"type": "srl_conll2012"}
    readers = {
        "predicates": PredicatesConfig.model_validate({"source": source}),
        "sst5": SstConfig(),
        "snli": SnliConfig(),
        "ner_conll03": Conll2003Config(),
        "pos_ewt": ConlluConfig(),
        "penn_ewt": ConlluConfig(tag_column="xpos"),
    }
    files = {
        "genre": (gum / "ontogum.train.v4_gold_conll.xz", gum / "ontogum.dev.v4_gold_conll"),
        "questions": (squad / "train-v1.1.json.xz", squad / "dev-v1.1.json"),
        "predicates": (roles / "ewt.train.gold_conll.xz", roles / "ewt.dev.gold_conll"),
        **dict.fromkeys(("sst5", "sst_uneven"), (trees / "train.txt", trees / "test.txt")),
        "snli": (pairs / "snli_1.0_train_subset.jsonl", pairs / "snli_1.0_test.jsonl"),
        "ner_conll03": (names / "eng.train", names / "eng.testb"),
        **dict.fromkeys(
            ("pos_ewt", "penn_ewt", "web"), (ewt / "en_ewt-ud-train.conllu.xz", ewt / "en_ewt-ud-test.conllu")
        ),
    }
    own = {"genre": read_genres, "questions": read_questions, "web": read_web, "sst_uneven": read_uneven}
    read = own.get(name) or readers[name].build().read
    train, test = (list(map(dict, read(path))) for path in files[name])
    return train, test if all_tested else random.Random(0).sample(test, min(len(test), MOST_TESTED))


def gold(example: Example) -> Any:
    """The label of a text, or the tags of its tokens, those of spans as BIO."""
    if "tags" not in example:
        return example["label"]
    return [{"U-": "B-", "L-": "I-"}.get(tag[:2], tag[:2]) + tag[2:] for tag in example["tags"]]


def score(predictions: Sequence[Any], examples: Examples, kind: str | None) -> float:
    """F1 of spans, macro F1 of uneven labels, or accuracy of tags or other labels, in percent."""
    if kind == "spans":
        return 100 * float(f1_score(list(map(gold, examples)), list(predictions)))
    if kind == "uneven":
        return 100 * float(macro_f1(list(map(gold, examples)), list(predictions), average="macro", zero_division=0))
    pairs = list(zip(predictions, map(gold, examples), strict=True))
    if kind == "plain":
        pairs = [pair for found, expected in pairs for pair in zip(found, expected, strict=True)]
    return 100 * statistics.fmean(found == expected for found, expected in pairs)
