"""Targets that users write themselves: data, text, word vectors, configs and the inputs of predictors."""

import functools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.torture.mutations import ODD_NUMBERS, ODD_TEXTS, Target
from tests.torture.workshop import NER, TEXT, VECTORS

_SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    "1\tA man sleeps\tNobody sleeps\t3.5\tCONTRADICTION\n2\tA dog runs\tAn animal runs\t4.5\tENTAILMENT\n"
)
_MULTINLI = "gold_label\tsentence1\tsentence2\nneutral\tRain fell.\tIt was cold.\n-\tA b.\tC d.\n"

# Inputs for each head of `tests/models/heads.py`, as lines of JSON or text.
_PREDICTED: dict[str, list[dict[str, Any]]] = {
    "crf_tagger, BIOUL": [{"text": "Orla left. Tavo too!"}, {"tokens": ["Orla", "left"], "id": 1}],
    "bcn, relu": [{"text": "A bright film."}, {"tokens": ["Bright"], "label": "x"}],
    "esim": [{"premise": "A man sleeps.", "hypothesis": "No"}, {"premise_tokens": ["A"], "hypothesis_tokens": ["B"]}],
    "decomposable_attention, end token": [{"premise": "A man sleeps.", "hypothesis": "No"}],
    "bidaf": [{"passage": "Tavo left Brusk on a Friday.", "question": "Who?"}, {"context": "A b", "question": "c"}],
    "srl, biLSTM": [{"tokens": ["Orla", "gave", "it"], "predicates": [1]}, {"tokens": ["No"], "predicates": []}],
    "coref": [
        {"text": "Orla saw her mill. She left."},
        {"sentences": [["I", "saw"], ["it"]], "speakers": ["a", ["b"]], "genre": "talk"},
    ],
}


def targets(shop: Path) -> list[Target]:
    return [*_data(), *_texts(), *_configs(shop), *_predictor_inputs()]


def _data() -> Iterator[Target]:
    """The sample files of all readers."""
    from tests.data_readers.readers import NER as CONLL2003
    from tests.data_readers.readers import PACKERS, SAMPLES, SNLI, SST, sample

    forms = {"json": "json", "jsonl": "jsonl"}
    for name, settings in {**SAMPLES, "sst.txt": {**SST, "subtrees": True}}.items():
        form = forms.get(name.rpartition(".")[2], "text")
        yield _reader(name, form, [sample(name).encode()], settings, file=name)
    yield _reader("snli columns", "text", [_SICK.encode(), _MULTINLI.encode()], SNLI)
    for suffix, pack in PACKERS:
        yield _reader(f"compressed {suffix}", "binary", [pack(NER.encode())], CONLL2003, file=f"data.{suffix}")


def _reader(kind: str, form: str, seeds: list[bytes], settings: dict[str, Any], *, file: str = "data.txt") -> Target:
    """Reads a file and makes a vocabulary and a batch of what it holds."""

    def run(path: Path) -> None:
        from elmo_tasks.errors import DataError
        from elmo_tasks.text.vocabulary import Counts, VocabularyConfig
        from tests.data_readers.readers import build

        reader = build(settings)
        try:
            data = reader.read(path)
        except DataError as error:
            if str(error).startswith(str(path)):
                raise
            raise AssertionError(f"the error does not name the file: {error}") from None
        vocabulary = VocabularyConfig().build(Counts.of(reader.task, data), [])
        reader.task.collate(list(data)[:4], vocabulary)

    return Target(f"data: {kind}", file, form, seeds, run)


def _texts() -> Iterator[Target]:
    def corpus(tokenized: bool) -> Callable[[Path], object]:
        def run(path: Path) -> None:
            from elmo_tasks.extras.pretraining.prepare import TextCorpus

            TextCorpus(paths=(str(path),), tokenized=tokenized).build(workers=1)

        return run

    def vectors(path: Path) -> None:
        from elmo_tasks.modules.word_vectors import WordVectorFile

        file = WordVectorFile(path)
        assert file.rows(["orla", "no such word"]).shape == (2, file.dimension)

    from tests.data_readers.readers import PACKERS

    text = TEXT.encode()
    yield Target("text: tokenized", "text.txt", "text", [text], corpus(True), 2)
    yield Target("text: raw", "text.txt", "text", [text, TEXT.replace(" .", ".").encode()], corpus(False), 2)
    for suffix, pack in PACKERS:
        yield Target(f"text: {suffix}", f"text.{suffix}", "binary", [pack(text)], corpus(True), 0.5)
    seeds = [VECTORS.encode(), f"10 4\n{VECTORS}".encode()]
    yield Target("word vectors", "vectors.txt", "text", seeds, vectors, 2)


def _configs(shop: Path) -> Iterator[Target]:
    def load(kind: str, overrides: Callable[[Path], list[str]] = lambda path: []) -> Callable[[Path], object]:
        def run(path: Path) -> None:
            from elmo_tasks.config import describe, load_config
            from elmo_tasks.extras.pretraining.pretraining_config import PretrainingConfig
            from elmo_tasks.runs.experiment_config import ExperimentConfig

            chosen: Any = {"tagger": ExperimentConfig, "pretraining": PretrainingConfig}[kind]
            target = shop / f"{kind}.json" if path.suffix == ".txt" else path
            describe(load_config(target, chosen, overrides(path), {"DATA": "data"}))

        return run

    tagger = (shop / "tagger.json").read_bytes()
    jsonnet = (
        b"local lr = 0.01;\nlocal base = {\n"
        + tagger[1:-1]
        + b",\n};\nbase + { trainer+: { optimizer+: { lr: lr * 2 } } }\n"
    )
    pretraining = (shop / "pretraining.json").read_bytes()
    keys = "\n".join(f"{key}={value}" for key, value in _flat(json.loads(tagger)))
    yield Target("config: jsonnet", "config.jsonnet", "text", [jsonnet], load("tagger"))
    yield Target("config: json", "config.json", "json", [tagger], load("tagger"))
    yield Target("config: pretraining", "config.json", "json", [pretraining], load("pretraining"))

    def lines(path: Path) -> list[str]:
        return path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")

    def write(path: Path, target: Target, draw: random.Random) -> None:
        given = draw.sample(keys.split("\n"), draw.randint(1, 4))
        odd = [f"{line.partition('=')[0]}={draw.choice((*ODD_NUMBERS, *ODD_TEXTS))}" for line in given]
        path.write_bytes(
            target.changed(draw) if draw.random() < 0.3 else "\n".join(odd).encode("utf-8", "surrogatepass")
        )

    yield Target("config: --set", "overrides.txt", "text", [keys.encode()], load("tagger", lines), 1, write)


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key path, JSON) for each value in a JSON value."""
    if key:
        yield key, json.dumps(value)
    if isinstance(value, (dict, list)):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(each, f"{key}.{name}".lstrip("."))


def _predictor_inputs() -> Iterator[Target]:
    for head, examples in _PREDICTED.items():
        lines, name, run = "\n".join(map(json.dumps, examples)).encode(), head.partition(",")[0], _predict(head)
        texts = [lines] + [b"Orla left. \xc3\x89douard, too?\n\nNo"] * ("text" in examples[0])
        yield Target(f"predict: {name}", "input.jsonl", "jsonl", [lines], run, 1.5)
        yield Target(f"predict: {name} text", "input.txt", "text", texts, run, 0.5)


def _predict(head: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        from elmo_tasks.predictors.inputs import input_name, read_inputs

        for result in _predictor(head).predict(read_inputs(path), source=input_name(path)):
            (json.dumps(result, ensure_ascii=False) + "\n").encode()

    return run


@functools.cache
def _predictor(name: str) -> Any:
    """The predictor of an untrained model without ELMo."""
    import torch

    from elmo_tasks.models import ModelConfig
    from elmo_tasks.predictors import build_predictor
    from elmo_tasks.text.vocabulary import Counts, VocabularyConfig
    from tests.models.heads import HEADS

    torch.manual_seed(5)
    head = HEADS[name]
    embedder = {"words": {"size": 4}, "characters": {"embedding_size": 3, "filters": 4}}
    config = ModelConfig.model_validate({**head.model, "embedder": embedder})
    vocabulary = VocabularyConfig().build(Counts.of(config.task, head.examples), [])
    return build_predictor(config.build(vocabulary, config.embedder.build(vocabulary)), vocabulary, batch_tokens=64)
