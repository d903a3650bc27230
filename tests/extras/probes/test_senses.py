"""The probe of word senses: its files, and its rule and scores against brute force on made-up text."""

import collections
import dataclasses
import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from elmo_tasks import cli
from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.probes.senses import (
    Instance,
    SenseData,
    SenseSentence,
    Word,
    f1_of_senses,
    nearest_sense,
    probe_senses,
    read_inventory,
    read_sense_data,
    read_sense_sentences,
)
from elmo_tasks.modules.word_vectors import WordVectorFile

INVENTORY = """\
bank%1:14:00:: 08420278 1 20
bank%1:17:01:: 09213565 2 25
bank%1:21:00:: 13368318 3 0
flat%3:00:00:: 00862225 2 1
flat%5:00:00:even:00 00910101 1 4
kiln%1:06:00:: 03617095 1 0
"""
# Each sentence has one word with senses, in brackets. `river bank` is one instance of two tokens.
TRAINING = [
    ("they rowed to the [river bank|bank|NOUN] at noon", "bank%1:17:01::"),
    ("mud covered the [bank|bank|NOUN]", "bank%1:17:01::"),
    ("the [banks|bank|NOUN] lent money", "bank%1:14:00::"),
    ("a [bank|bank|NOUN] keeps money & gold", "bank%1:14:00:: bank%1:21:00::"),
    ("the [flat|flat|ADJ] roof leaked", "flat%3:00:00::"),
    ("nobody [saw|see|VERB] it", "see%2:39:00::"),
]
EVALUATION = [
    ("money from the [bank|bank|NOUN]", "one.d0.s0.t0", "bank%1:14:00:: bank%1:21:00::"),
    ("reeds on the [bank|bank|NOUN]", "one.d0.s1.t0", "bank%1:17:01::"),
    ("a [flat|flat|ADJ] stone", "semeval2007.d0.s0.t0", "flat%5:00:00:even:00"),
    ("the [kiln|kiln|NOUN] burned", "semeval2007.d0.s1.t0", "kiln%1:06:00::"),
]


def xml(sentences: list[tuple[str, str]]) -> str:
    """A data file of sentences and the ids of their instances."""
    lines = ['<?xml version="1.0" encoding="UTF-8" ?>', '<corpus lang="en"><text id="d0">']
    for number, (sentence, name) in enumerate(sentences):
        before, rest = sentence.replace("&", "&amp;").split("[")
        inside, after = rest.split("]")
        text, lemma, part_of_speech = inside.split("|")
        lines += [f'<sentence id="s{number}">', *(f'<wf lemma="{word}" pos="X">{word}</wf>' for word in before.split())]
        lines += [f'<instance id="{name}" lemma="{lemma}" pos="{part_of_speech}">{text}</instance>']
        lines += [*(f'<wf lemma="x" pos="X">{word}</wf>' for word in after.split()), "</sentence>"]
    return "\n".join([*lines, "</text></corpus>\n"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with `wsd` in it."""
    for name in ("wsd/semcor", "wsd/evaluation/ALL", "wsd/wordnet30"):
        (tmp_path / name).mkdir(parents=True)
    training = [(sentence, f"d0.s{number}.t0") for number, (sentence, _) in enumerate(TRAINING)]
    (tmp_path / "wsd/semcor/semcor.data.xml").write_text(xml(training))
    keys = [f"{name} {senses}\n" for (_, name), (_, senses) in zip(training, TRAINING, strict=True)]
    (tmp_path / "wsd/semcor/semcor.gold.key.txt").write_text("".join(keys))
    evaluation = tmp_path / "wsd/evaluation/ALL"
    (evaluation / "ALL.data.xml").write_text(xml([(sentence, name) for sentence, name, _ in EVALUATION]))
    (evaluation / "ALL.gold.key.txt").write_text("".join(f"{name} {senses}\n" for _, name, senses in EVALUATION))
    (tmp_path / "wsd/wordnet30/index.sense").write_text(INVENTORY)
    return tmp_path


def test_the_files_are_read(folder: Path) -> None:
    data = read_sense_data(folder / "wsd")
    assert data.training[0] == SenseSentence(
        ("they", "rowed", "to", "the", "river", "bank", "at", "noon"),
        (Instance("d0.s0.t0", Word("bank", "NOUN"), (4, 5), ("bank%1:17:01::",)),),
    )
    assert data.training[3].tokens[-2:] == ("&", "gold")
    assert data.training[3].instances[0].senses == ("bank%1:14:00::", "bank%1:21:00::")
    assert data.inventory[Word("flat", "ADJ")] == ["flat%5:00:00:even:00", "flat%3:00:00::"]
    assert [len(data.training), len(data.evaluation)] == [6, 4]


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("ALL.data.xml", "</corpus>", "", r"ALL.data.xml:26: not well-formed XML"),
        ("ALL.data.xml", 'lemma="kiln"', "", "an instance of the sentence 's3' lacks its id, lemma, pos or text"),
        ("ALL.data.xml", 'id="semeval2007.d0.s1.t0"', "", "an instance of the sentence 's3' lacks its id"),
        ("ALL.data.xml", "kiln</", "</", "an instance of the sentence 's3' lacks its id"),
        ("ALL.gold.key.txt", "one.d0.s1.t0 ", "one.d0.s9.t0 ", "no senses of the instance 'one.d0.s1.t0'"),
        ("ALL.gold.key.txt", "one.d0.s1.t0 bank%1:17:01::", "one.d0.s1.t0", "ALL.gold.key.txt:2: .*expected an id and"),
    ],
)
def test_files_that_do_not_follow_the_format(folder: Path, file: str, old: str, new: str, problem: str) -> None:
    path = folder / "wsd/evaluation/ALL" / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=problem):
        read_sense_data(folder / "wsd")


@pytest.mark.parametrize(
    "line", ["bank%1:14: 08420278 1", "bank 0842 1 20", "bank%9:14: 0842 1 20", "bank%1:14: 0842 x 2"]
)
def test_an_index_of_senses_that_does_not_follow_the_format(tmp_path: Path, line: str) -> None:
    (tmp_path / "index.sense").write_text(f"{INVENTORY}{line}\n")
    with pytest.raises(DataError, match=r"index.sense:7: .*expected a sense key, an offset"):
        read_inventory(tmp_path / "index.sense")


def test_senses_are_in_the_order_of_their_numbers_with_the_part_of_speech_of_their_type(tmp_path: Path) -> None:
    lines = [f"Well_up%{number}:00:00:: 00000001 {12 - number} 0\n" for number in range(1, 6)]
    lines.append("Well_up%2:01:00:: 00000001 9 0\n")
    (tmp_path / "index.sense").write_text("".join(lines))
    assert read_inventory(tmp_path / "index.sense") == {
        Word("Well_up", "NOUN"): ["Well_up%1:00:00::"],
        Word("Well_up", "VERB"): ["Well_up%2:01:00::", "Well_up%2:00:00::"],
        Word("Well_up", "ADJ"): ["Well_up%5:00:00::", "Well_up%3:00:00::"],
        Word("Well_up", "ADV"): ["Well_up%4:00:00::"],
    }


def test_files_may_be_compressed(folder: Path) -> None:
    expected = read_sense_data(folder / "wsd")
    for path in [path for path in (folder / "wsd").rglob("*") if path.is_file()]:
        packed = path.rename(path.with_name(f"{path.name}.gz"))
        packed.write_bytes(gzip.compress(packed.read_bytes()))
    assert read_sense_data(folder / "wsd") == expected
    packed = folder / "wsd/semcor/semcor.data.xml.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"semcor.data.xml.gz: the archive is damaged or cut short"):
        read_sense_data(folder / "wsd")


def test_lemmas_are_in_lower_case_and_sentences_may_be_empty(tmp_path: Path) -> None:
    words = '<wf/><instance id="i" lemma="Bank" pos="NOUN"> Big  bank </instance>'
    (tmp_path / "data").write_text(f'<corpus><sentence id="a"/><sentence id="b">{words}</sentence></corpus>')
    (tmp_path / "gold").write_text("i bank%1:14:00::\n")
    instance = Instance("i", Word("bank", "NOUN"), (0, 1), ("bank%1:14:00::",))
    assert read_sense_sentences(tmp_path / "data", tmp_path / "gold") == [
        SenseSentence((), ()), SenseSentence(("Big", "bank"), (instance,))
    ]  # fmt: skip


def test_scores_are_those_of_the_official_scorer() -> None:
    gold = {"a": ("x", "y"), "b": ("x",), "c": ("z",), "d": ("x",)}
    assert f1_of_senses(gold, {"a": "y", "b": "z", "c": "z", "d": "z"}) == 50
    some = f1_of_senses(gold, {"a": "x", "c": "y", "other": "x"})  # 1 of 2 answers, 1 of 4 instances
    assert some == pytest.approx(100 / 3)
    assert f1_of_senses(gold, {}) == 0


def test_of_equal_senses_the_first_is_nearest() -> None:
    vector = np.array([[1.0, 2.0]], dtype=np.float32)
    means = np.array([[[2.0, 1.0]], [[1.0, 2.0]], [[3.0, 6.0 + 1e-9]]])
    assert nearest_sense(vector, means).tolist() == [1]
    assert nearest_sense(np.zeros_like(vector), means).tolist() == [0]


def brute_force(bilm: BiLM, data: SenseData) -> dict[str, float]:
    """The F1 of each row on all instances, computed one vector at a time."""

    def vectors(sentence: SenseSentence, instance: Instance) -> torch.Tensor:
        layers = bilm.layers([sentence.tokens]).layers[0]  # (L+1, T, D)
        layers = torch.cat([layers, layers.mean(dim=0, keepdim=True)])
        return layers[:, instance.span[0] : instance.span[1] + 1].mean(dim=1)

    examples = collections.defaultdict(list)
    for sentence in data.training:
        for instance in sentence.instances:
            for sense in instance.senses:
                examples[instance.word, sense].append(vectors(sentence, instance))
    rows = ("layer 0", "layer 1", "layer 2", "mean of layers")
    right: collections.Counter[str] = collections.Counter()
    total = 0
    for sentence in data.evaluation:
        for instance in sentence.instances:
            total += 1
            senses = [sense for sense in data.inventory[instance.word] if (instance.word, sense) in examples]
            for row, name in enumerate(rows):
                answer = data.inventory[instance.word][0]
                if senses:
                    means = [torch.stack(examples[instance.word, sense]).mean(dim=0)[row] for sense in senses]
                    query = vectors(sentence, instance)[row]
                    cosines = [float(functional.cosine_similarity(query, mean, dim=0)) for mean in means]
                    answer = senses[next(s for s, cosine in enumerate(cosines) if cosine > max(cosines) - 1e-6)]
                right[name] += answer in instance.senses
    return {name: 100.0 * right[name] / total for name in rows}


def random_data() -> SenseData:
    """Random sentences in which five words have up to four senses each; some words and senses are not in training."""
    generator = random.Random(5)
    words = [Word(f"w{number}", "NOUN") for number in range(5)]
    inventory = {word: [f"{word.lemma}%1:{n}" for n in range(4)] for word in words}

    def sentence(number: int, used: list[Word], most: int) -> SenseSentence:
        tokens = [generator.choice(["the", "a", "old", "ran", "w", "sea"]) for _ in range(generator.randint(4, 9))]
        word, index = generator.choice(used), generator.randrange(3)
        tokens[index] = word.lemma + generator.choice(["", "s"])
        senses = tuple(generator.sample(inventory[word][:most], generator.choice([1, 1, 2])))
        return SenseSentence(tuple(tokens), (Instance(f"set.{number}", word, (index, index + number % 2), senses),))

    training = [sentence(number, words[:4], 3) for number in range(60)]
    return SenseData(training, [sentence(number, words, 4) for number in range(60)], inventory)


def test_the_probe_is_that_of_brute_force(bilm: BiLM) -> None:
    data = random_data()
    f1 = probe_senses(bilm, data).f1
    expected = brute_force(bilm, data)
    assert len(set(expected.values())) > 2, "the rows must differ for the test to say something"
    assert {row: f1[row]["ALL"] for row in expected} == pytest.approx(expected)


def test_baselines_sets_and_word_vectors(bilm: BiLM, folder: Path) -> None:
    (folder / "vectors.txt").write_text("bank 1 0\nbanks 1 1\nriver 0 1\n")
    vectors = WordVectorFile(folder / "vectors.txt")
    probe = probe_senses(bilm, read_sense_data(folder / "wsd"), vectors=vectors)
    sets = {"one": 2, "semeval2007": 2, "ALL but semeval2007": 2, "ALL": 4}
    parts = {"ADJ": 1, "NOUN": 3}
    assert list(probe.instances.items()) == [*sets.items(), *parts.items()]
    assert list(probe.f1) == [
        *("first sense", "most frequent sense", "layer 0", "layer 1", "layer 2", "mean of layers", "vectors.txt")
    ]
    first = {name: probe.f1["first sense"][name] for name in sets}
    assert first == {"one": 50.0, "semeval2007": 100.0, "ALL but semeval2007": 50.0, "ALL": 75.0}
    # Two senses of "bank" are equally frequent: the first counts. The only sense of "flat" in training is wrong here.
    assert probe.f1["most frequent sense"]["semeval2007"] == 50.0
    # "bank" is most like the third sense, whose only example is the plain word.
    assert probe.f1["vectors.txt"]["one"] == 50.0


def test_the_development_set_can_be_the_only_one(bilm: BiLM, folder: Path, terminal: Callable[[], str]) -> None:
    data = read_sense_data(folder / "wsd")
    only = [each for each in data.evaluation if each.instances and each.instances[0].id.startswith("semeval2007")]
    probe = probe_senses(bilm, dataclasses.replace(data, evaluation=only))
    assert "ALL but semeval2007" not in probe.instances
    assert probe.instances["ALL"] == 2
    assert re.search("computing vectors .* 1/1 .* sentences", terminal())
    with pytest.raises(ElmoTasksError, match="none of the words"):
        probe_senses(bilm, dataclasses.replace(data, training=data.training[-1:]))


def test_of_senses_that_are_equally_frequent_the_first_is_taken(bilm: BiLM) -> None:
    """A word that neither WordNet nor the training data has is not answered."""

    def sentence(sense: str) -> SenseSentence:
        word = Word(sense.partition("%")[0], "NOUN")
        return SenseSentence(("bank",), (Instance(f"set.{sense}", word, (0, 0), (sense,)),))

    senses = {Word("bank", "NOUN"): ["bank%1", "bank%2", "bank%3"]}
    for evaluation, f1 in ((["bank%2"], 100), (["bank%2", "quay%1"], 200 / 3)):
        data = SenseData([sentence("bank%3"), sentence("bank%2")], list(map(sentence, evaluation)), senses)
        assert probe_senses(bilm, data).f1["most frequent sense"]["ALL"] == pytest.approx(f1)


def test_the_command(
    folder: Path, bilm: BiLM, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_TASKS_DATA", str(folder))
    bilm.save(folder / "options.json", folder / "weights.hdf5")
    arguments = ["probe", "wsd", "--bilm", str(folder), "--output", str(folder / "wsd.json")]
    assert cli.main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    assert printed == json.loads((folder / "wsd.json").read_text())
    assert printed["f1"]["first sense"]["ALL"] == 75.0
    assert "the results have no row of word vectors" in captured.err
    assert cli.main(["probe", "wsd", "--bilm", str(folder), "--test", "x"]) == 2
    assert "--test: not for wsd" in capsys.readouterr().err


@pytest.mark.slow
def test_the_first_sense_has_its_published_scores(data_folder: Path) -> None:
    """Raganato et al. 2017, table 2; table 5 of Peters et al. 2018 has 65.9, without SemEval-2007."""
    path = data_folder / "wsd/evaluation/ALL"
    sentences = read_sense_sentences(path / "ALL.data.xml", path / "ALL.gold.key.txt")
    first = {word: senses[0] for word, senses in read_inventory(data_folder / "wsd/wordnet30/index.sense.xz").items()}
    instances = [instance for sentence in sentences for instance in sentence.instances]
    published = {"senseval2": 66.8, "senseval3": 66.2, "semeval2007": 55.2, "semeval2013": 63.0, "semeval2015": 67.8}
    for name, f1 in {**published, "s": 65.2}.items():
        members = [each for each in instances if each.id.startswith(name)]
        found = f1_of_senses(
            {each.id: each.senses for each in members}, {each.id: first[each.word] for each in members}
        )
        assert round(found, 1) == f1
    paper = [each for each in instances if not each.id.startswith("semeval2007")]
    found = f1_of_senses({each.id: each.senses for each in paper}, {each.id: first[each.word] for each in paper})
    assert round(found, 1) == 65.9
