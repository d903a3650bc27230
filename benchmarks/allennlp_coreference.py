"""Compares an imported coarse-to-fine resolver of higher order with AllenNLP's own: results, speed and memory.

    python -m benchmarks.allennlp_coreference CHECKOUT [--inputs 200]
    python -m benchmarks.allennlp_coreference CHECKOUT --speed large --words 500 2000 10000

AllenNLP 2.10 runs unmodified, from a checkout with `allennlp_models`, of its config of SpanBERT. Both sides read the
same archives with random weights and the same random documents.

The first command takes tiny transformers, cased and uncased, with windows and without, with each choice of candidates
and orders 1 to 3. The table says of how many documents the kept spans, candidates, clusters and all keys of the JSON
are equal, and how far the scores of all pairs differ.

The second takes transformers of the published size and one thread. For each length the sides take turns, each time in
a process of its own, which says its seconds, its processor's seconds and its peak of memory; before that, it reads a
document of 100 words. Documents have 1.25 word pieces to a word. A side that would need more memory than there is says
`no memory`.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.allennlp_models import KINDS, AllenNlp, Words
from benchmarks.allennlp_packages import import_allennlp
from benchmarks.common import make_parser, markdown_table, write_results
from benchmarks.tiny_transformers import BASE, CAPITALS, SIZES, WORDS, make_bert
from elmo_tasks.config.jsonnet import evaluate
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.extras.allennlp.importing import import_allennlp as import_archive
from elmo_tasks.runs.load import load_run, run_predictor

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
TRANSFORMERS = {"tiny": SIZES, "base": BASE, "large": LARGE}
CONFIG = Path("training_config") / "coref" / "coref_spanbert_large.jsonnet"
HIDDEN = {"tiny": 40}  # units of the scorers where they are not the published ones

Sentences = list[list[str]]


@dataclasses.dataclass(frozen=True)
class Result:
    """A comparison of one model."""

    model: str
    inputs: int
    equal: int  # documents with the same JSON, key by key
    same_clusters: int
    clusters: int  # of all documents
    largest_difference: float  # of the score of a pair


def make_config(checkout: Path, transformer: Path, size: str, max_length: int | None, **settings: Any) -> Any:
    """AllenNLP's config of SpanBERT with another transformer."""
    text = (checkout / CONFIG).read_text()
    changes = {
        '"SpanBERT/spanbert-large-cased"': json.dumps(str(transformer)),
        "max_length = 512": f"max_length = {json.dumps(max_length)}",
        "transformer_dim = 1024": f"transformer_dim = {TRANSFORMERS[size]['hidden_size']}",
        '"hidden_dims": 1500': f'"hidden_dims": {HIDDEN.get(size, 1500)}',
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jsonnet") as file:
        file.write(text)
        file.flush()
        config: Any = evaluate(file.name, dict.fromkeys([f"COREF_{part}_DATA_PATH" for part in _PARTS], "data"))
    config["model"] |= settings
    return config


_PARTS = ("TRAIN", "DEV", "TEST")


def write_archive(allennlp: AllenNlp, config: Any, folder: Path, scale: float, shift: float = 0) -> Path:
    """An archive with random weights, by AllenNLP's own classes; the last layers' are multiplied by the scale."""
    allennlp.import_kind(KINDS["coref"])
    torch.manual_seed(5)
    model = allennlp.model.from_params(
        vocab=allennlp.data.Vocabulary(), params=allennlp.params(copy.deepcopy(config["model"]))
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() < 2 and "transformer" not in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
            if "_antecedent_scorer" in name and parameter.dim() < 2:
                parameter.sub_(shift)
            if "_antecedent_scorer" in name and parameter.dim() > 1:
                parameter.mul_(scale)
            if "_coarse2fine" in name:
                parameter.mul_(0.3)
    (folder / "vocabulary").mkdir(parents=True)
    allennlp.data.Vocabulary().save_to_files(str(folder / "vocabulary"))
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(model.state_dict(), folder / "weights.th")
    return folder


class Theirs:
    """AllenNLP's side: its model, its instances and its JSON, without spaCy."""

    def __init__(self, allennlp: AllenNlp, archive: Path) -> None:
        config = json.loads((archive / "config.json").read_text())
        allennlp.import_kind(KINDS["coref"])
        model: Any = allennlp.load(archive, config)
        reader = import_allennlp(allennlp.checkout, "allennlp_models.coref.dataset_readers.conll").ConllCorefReader
        given = config["validation_dataset_reader"]
        self.reader = reader(given["max_span_width"], allennlp.indexers({"dataset_reader": given}))
        self.sanitize = import_allennlp(allennlp.checkout, "allennlp.common.util").sanitize
        self.scores: Any = None
        compute = model._compute_coreference_scores

        def noting(*arguments: Any) -> Any:
            self.scores = compute(*arguments)
            return self.scores

        model._compute_coreference_scores = noting
        self.model = model

    def __call__(self, sentences: Sentences) -> dict[str, Any]:
        instance = self.reader.text_to_instance(sentences)
        return dict(self.sanitize(self.model.forward_on_instance(instance)))

    def pairs(self, result: dict[str, Any]) -> dict[tuple[int, int], float]:
        """The scores of the last document's pairs."""
        return {
            (span, other): score
            for span, (others, scores) in enumerate(
                zip(result["antecedent_indices"], self.scores[0, :, 1:].tolist(), strict=True)
            )
            for other, score in zip(others, scores, strict=True)
            if score > -1e30
        }


class Ours:
    """This project's side: the imported run."""

    def __init__(self, archive: Path, transformer: Path, folder: Path) -> None:
        import_archive(archive, folder, transformer=str(transformer))
        self.run = load_run(folder)
        self.predictor = AllenNlpPredictor(run_predictor(self.run))

    def __call__(self, sentences: Sentences) -> dict[str, Any]:
        (result,) = self.predictor([{"sentences": sentences}])
        return result

    @torch.inference_mode()
    def pairs(self, sentences: Sentences) -> dict[tuple[int, int], float]:
        """The scores of a document's pairs."""
        model: Any = self.run.model
        output = model(model.task.collate([{"sentences": sentences}], self.run.vocabulary))
        rows = zip(output.antecedents.tolist(), output.antecedent_scores.tolist(), strict=True)
        return {
            (span, other): score
            for span, (others, scores) in enumerate(rows)
            for other, score in zip(others, scores, strict=False)
            if score > -1e30
        }


def compare(allennlp: AllenNlp, cased: bool, window: int | None, inputs: int, **settings: Any) -> Result:
    """Compares one model on random documents."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sizes = {**SIZES, "max_position_embeddings": 4096 if window is None else 512}
        transformer = make_bert(folder / f"tiny-bert-{'cased' if cased else 'uncased'}", cased=cased, **sizes)
        config = make_config(allennlp.checkout, transformer, "tiny", window, max_antecedents=12, **settings)
        archive = write_archive(
            allennlp, config, folder / "archive", scale=6, shift=4 if settings["coarse_to_fine"] else 2
        )
        theirs, ours = Theirs(allennlp, archive), Ours(archive, transformer, folder / "run")
        words = Words([*WORDS, *CAPITALS], seed=len(settings) + inputs)
        equal = same = clusters = 0
        largest = 0.0
        for _ in range(inputs):
            sentences = [words.sentence(25) for _ in range(words.random.randint(1, 6))]
            sentences[0] += ["it"] * 5  # AllenNLP fails if it keeps no span
            wanted, found = theirs(sentences), ours(sentences)
            equal += wanted == found
            same += wanted["clusters"] == found["clusters"]
            clusters += len(wanted["clusters"])
            expected, scores = theirs.pairs(wanted), ours.pairs(sentences)
            keys = expected.keys() | scores.keys()
            largest = max(largest, *(abs(expected.get(key, 1e9) - scores.get(key, 1e9)) for key in keys))
    name = f"{'cased' if cased else 'uncased'}, window {window}"
    return Result(", ".join([name, *(f"{k} {v}" for k, v in settings.items())]), inputs, equal, same, clusters, largest)


def long_document(num_words: int, seed: int = 1) -> Sentences:
    """A document of sentences of 20 words, a quarter of which have two word pieces."""
    generator = random.Random(seed)
    known = [word for word in WORDS if len(word) > 1]
    ends = ("ing", "ed", "er", "est")

    def word() -> str:
        return generator.choice(known) + (generator.choice(ends) if generator.random() < 0.25 else "")

    words = [word() for _ in range(num_words)]
    return [words[start : start + 20] for start in range(0, num_words, 20)]


def measure_one(checkout: Path, folder: Path, side: str, num_words: int, documents: int) -> None:
    """Prints, in a process of its own, what one side needs for documents of one length."""
    torch.set_num_threads(1)
    read: Any
    if side == "theirs":
        read = Theirs(AllenNlp(checkout), folder / "archive")
    else:
        read = AllenNlpPredictor(run_predictor(load_run(folder / "run")))
    before = _peak()
    wall, processor, peaks = [], [], []
    for number in range(documents + 1):
        sentences = long_document(num_words if number else 100, seed=number)
        begin = time.perf_counter(), time.process_time()
        result = read(sentences) if side == "theirs" else read([{"sentences": sentences}])[0]
        if number:
            wall.append(time.perf_counter() - begin[0])
            processor.append(time.process_time() - begin[1])
            peaks.append(_peak())
    values = {"seconds": min(wall), "processor": min(processor), "loaded": before, "peak": peaks[-1], "peaks": peaks}
    print(json.dumps({**values, "clusters": len(result["clusters"])}))


def _peak() -> float:
    """The peak of this process' memory, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def speed(checkout: Path, size: str, lengths: Sequence[int], documents: int, folder: Path, sides: Sequence[str]) -> Any:
    """Measures both sides in turn."""
    allennlp = AllenNlp(checkout)
    transformer = make_bert(folder / "bert-cased", cased=True, **TRANSFORMERS[size])
    archive = write_archive(allennlp, make_config(checkout, transformer, size, 512), folder / "archive", scale=1)
    import_archive(archive, folder / "run", transformer=str(transformer))
    rows, values = [], []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for num_words in lengths:
        for side in sides:
            code = "from benchmarks.allennlp_coreference import measure_one; from pathlib import Path; "
            code += f"measure_one(Path({str(checkout)!r}), Path({str(folder)!r}), {side!r}, {num_words}, {documents})"
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
            if done.returncode:
                rows.append([num_words, side, "no memory" if done.returncode < 0 else "failed", "", "", ""])
                print(done.stderr[-2000:], file=sys.stderr)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            values.append({"words": num_words, "side": side, **found})
            rows.append(
                [num_words, side, f"{num_words / found['seconds']:.1f}", f"{num_words / found['processor']:.1f}",
                 f"{found['loaded']:.2f}", f"{found['peak']:.2f}"]
            )  # fmt: skip
            print(json.dumps(values[-1]), file=sys.stderr, flush=True)
    header = ("words", "side", "words/s", "words/s of the processor", "GB when loaded", "peak GB")
    print(markdown_table(header, rows))
    return values


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="the folder of AllenNLP's packages")
    parser.add_argument("--inputs", type=int, default=200, metavar="N", help="documents for each model (default: 200)")
    parser.add_argument("--speed", choices=TRANSFORMERS, help="measure speed and memory with transformers of this size")
    parser.add_argument("--words", type=int, nargs="+", default=[500, 2000, 10000], help="lengths of documents")
    parser.add_argument("--documents", type=int, default=1, help="of each length; the fastest counts (default: 1)")
    parser.add_argument("--sides", nargs="+", default=["theirs", "ours"], choices=["theirs", "ours"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.speed:
        with tempfile.TemporaryDirectory() as scratch:
            sides = arguments.sides
            values = speed(
                arguments.checkout, arguments.speed, arguments.words, arguments.documents, Path(scratch), sides
            )
        write_results(arguments.json, results=values)
        return
    allennlp = AllenNlp(arguments.checkout)
    results = []
    for cased in (True, False):
        for window in (None, 24):
            for coarse in (False, True):
                for order in (1, 2, 3):
                    settings = {"coarse_to_fine": coarse, "inference_order": order}
                    results.append(compare(allennlp, cased, window, arguments.inputs, **settings))
                    print(results[-1], file=sys.stderr, flush=True)
    header = ("model", "documents", "equal JSON", "equal clusters", "clusters", "largest difference of a score")
    rows = [[*dataclasses.astuple(each)[:-1], f"{each.largest_difference:.1e}"] for each in results]
    print(markdown_table(header, rows))
    write_results(arguments.json, results=[dataclasses.asdict(each) for each in results])


if __name__ == "__main__":
    main()
