"""Sentences per second of semantic roles with BERT, here and in AllenNLP's own code, with weights of its size.

    python -m benchmarks.allennlp_roles CHECKOUT [--sentences 24] [--rounds 3]

Both read the same archive with random weights (BERT base, 130 tags) and the same random sentences, each with several
predicates, on one thread and in turn. AllenNLP gets a sentence at a time, as its predictor does, with all of its
predicates in a batch, and with spaCy left out. Here sentences are given one at a time, and all at once.
"""

from __future__ import annotations

import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.allennlp_models import KINDS, AllenNlp, Words
from benchmarks.allennlp_packages import import_allennlp
from benchmarks.common import make_parser, markdown_table
from benchmarks.tiny_transformers import BASE, WORDS, make_bert
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.extras.allennlp.importing import import_allennlp as import_archive
from elmo_tasks.runs.load import load_run, run_predictor

LABELS = ("O", *(f"{letter}-{name}" for name in ["V", *(f"ARG{number}" for number in range(64))] for letter in "BI"))


def write(allennlp: AllenNlp, folder: Path) -> tuple[Path, dict[str, Any]]:
    """An archive, and its config."""
    bert = str(make_bert(folder / "bert-uncased", cased=False, **BASE))
    loader = {"iterator": {"type": "basic"}} if allennlp.is_old else {"data_loader": {"batch_size": 32}}
    reader = {"type": "srl", "bert_model_name": bert}
    config = {
        "dataset_reader": reader,
        "train_data_path": "",
        "model": {"type": "srl_bert", "bert_model": bert},
    } | loader
    allennlp.import_kind(KINDS["srl_bert"])
    vocabulary = allennlp.data.Vocabulary()
    for label in LABELS:
        vocabulary.add_token_to_namespace(label, "labels")
    model = allennlp.model.from_params(vocab=vocabulary, params=allennlp.params(copy.deepcopy(config["model"])))
    (target := folder / "archive").mkdir()
    vocabulary.save_to_files(str(target / "vocabulary"))
    (target / "config.json").write_text(json.dumps(config))
    torch.save(model.state_dict(), target / "weights.th")
    return target, config


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()  # of one thread, also where other programs take their share of the processor
    run()
    return time.process_time() - start


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="the folder of AllenNLP's packages")
    parser.add_argument("--sentences", type=int, default=24, metavar="N", help="random sentences (default: 24)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds, each with all ways (default: 3)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    allennlp = AllenNlp(arguments.checkout)
    with tempfile.TemporaryDirectory() as scratch:
        archive, config = write(allennlp, Path(scratch))
        model: Any = allennlp.load(archive, copy.deepcopy(config))
        import_archive(archive, Path(scratch, "run"), transformer=config["model"]["bert_model"])
        predictor = AllenNlpPredictor(run_predictor(load_run(Path(scratch, "run"))))
        describe = import_allennlp(arguments.checkout, "allennlp.data.dataset_readers.dataset_reader")
        reader = describe.DatasetReader.from_params(allennlp.params(copy.deepcopy(config["dataset_reader"])))
        words = Words(WORDS)
        inputs: list[dict[str, Any]] = []
        for _ in range(arguments.sentences):
            tokens = words.sentence(45)
            count = min(len(tokens), words.random.randint(1, 5))
            inputs.append({"tokens": tokens, "predicates": sorted(words.random.sample(range(len(tokens)), count))})

        def theirs() -> None:
            for sentence in inputs:
                tokens = [allennlp.token(token) for token in sentence["tokens"]]
                flags = [[int(row == place) for row in range(len(tokens))] for place in sentence["predicates"]]
                model.forward_on_instances([reader.text_to_instance(tokens, each) for each in flags])

        ways: dict[str, Callable[[], object]] = {
            "AllenNLP, sentence by sentence": theirs,
            "here, sentence by sentence": lambda: [list(predictor.predict([sentence])) for sentence in inputs],
            "here, all at once": lambda: list(predictor.predict(inputs)),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(arguments.rounds):
            for name, run in ways.items():
                times[name].append(seconds(run))
    speeds = {name: len(inputs) / statistics.median(each) for name, each in times.items()}
    first = next(iter(speeds.values()))
    rows = [(name, f"{speed:.2f}", f"{speed / first:.2f}") for name, speed in speeds.items()]
    print(markdown_table(("", "sentences per second", "times as fast"), rows))


if __name__ == "__main__":
    main()
