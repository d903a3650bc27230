"""The sample data for sentiment: its format, its balance, that no word by itself decides it."""

from __future__ import annotations

import collections

from elmo_tasks.data_readers.sst import SENTIMENTS, SstConfig, parse_tree
from elmo_tasks.sample_data import sst5
from tests.sample_data.every import Examples, file, read


def phrases() -> Examples:
    reader = SstConfig(subtrees=True, min_length=4).build()
    return reader.read(file("sst5")).to_list()


def test_sentiments() -> None:
    for split in range(3):
        counts = collections.Counter(example["label"] for example in read("sst5", split))
        assert set(counts) == set(SENTIMENTS[5].values())
        assert min(counts.values()) > counts.total() / 20


def test_trees_are_binary_and_escaped() -> None:
    text = file("sst5").read_text()
    assert "-LRB-" in text
    assert any("(" in example["tokens"] for example in read("sst5"))
    for line in text.splitlines():
        tokens, nodes = parse_tree(line)
        assert len(nodes) == 2 * len(tokens) - 1
        assert tokens[0][0].isupper()
        assert {phrase.sentiment for phrase in nodes if phrase.length == 1} == {2}


def test_phrases_to_learn_from() -> None:
    assert len(phrases()) > 2 * 1000


def test_no_word_tells_the_sentiment_of_a_phrase() -> None:
    labels = collections.defaultdict(set)
    for example in phrases():
        for token in example["tokens"]:
            labels[token].add(example["label"])
    adjectives = {word for good, bad in sst5._QUALITIES.values() for word in good + bad}
    assert all(len(labels[word]) == 5 for word in adjectives)


def test_many_sentences_hold_both_good_and_bad_and_either_can_decide() -> None:
    mixed: collections.Counter[bool] = collections.Counter()
    for line in file("sst5").read_text().splitlines():
        _, (root, *nodes) = parse_tree(line)
        if {0, 1} & {phrase.sentiment for phrase in nodes} and {3, 4} & {phrase.sentiment for phrase in nodes}:
            mixed[root.sentiment > 2] += 1
    assert min(mixed[True], mixed[False]) > 70


def test_the_main_clause_or_what_follows_but_decides() -> None:
    forms: collections.Counter[str] = collections.Counter()
    for line in file("sst5").read_text().splitlines():
        tokens, nodes = parse_tree(line)
        if "," not in tokens:
            continue
        comma = tokens.index(",")
        form = tokens[comma + 1] if tokens[comma + 1] in ("but", "although") else tokens[0]
        forms[form] += 1
        begin = comma + 1 if form == "Although" else comma + 2
        (first,) = (phrase.sentiment for phrase in nodes if (phrase.start, phrase.length) == (0, comma))
        second = max((phrase for phrase in nodes if phrase.start == begin), key=lambda phrase: phrase.length)
        assert nodes[0].sentiment == (first if form == "although" else second.sentiment)
    assert set(forms) == {"but", "although", "Although"}
