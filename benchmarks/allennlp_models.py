"""Compares imported models with AllenNLP's own: its code and ours read the same archives and the same random inputs.

    python -m benchmarks.allennlp_models CHECKOUT ARCHIVE ... [--inputs 200]

AllenNLP runs unmodified, from a checkout of 0.9 or 2.10 (with `allennlp_models`), on one input at a time, each text
from a fresh biLM state. The table says of how many inputs the predictions are identical, and how far the scores differ.
AllenNLP's search for the best roles of a sentence loses digits. Where its tags have a lower score than ours, they are
counted as missed.

With `--write FOLDER`, ARCHIVE is one of AllenNLP's training configs (Jsonnet): its own classes write an archive with
random weights to the folder, which is then compared. The sizes are the config's, but ELMo is a small one with as many
features as the published one.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import json
import random
import re
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.allennlp_packages import import_allennlp, is_old, old_bert_tokenizer
from benchmarks.common import make_parser, markdown_table, write_results
from benchmarks.tiny_transformers import CAPITALS, SIZES, WORDS, make_transformer
from elmo_tasks.config.jsonnet import evaluate
from elmo_tasks.elmo import BiLMOptions
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.extras.allennlp.importing import import_allennlp as import_archive
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import Run, load_run, run_predictor
from elmo_tasks.tasks.reading import passage_tokens
from tests.random_bilm import random_bilm

Example = dict[str, Any]  # of our task
Output = Mapping[str, Any]  # of AllenNLP's model for an input: arrays and labels


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a kind of model is compared. A new kind is an entry in `KINDS`."""

    modules: tuple[str, str]  # with AllenNLP's model: of 0.9 and of 2.10
    labels: tuple[str, ...]  # of archives with random weights
    example: Callable[[Words], Example]
    fields: Callable[[AllenNlp, Example], dict[str, Any]]  # of AllenNLP's instance
    compare: Callable[[Run, Example, Output], tuple[bool, float]]  # identical predictions, difference of scores
    readers: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # with those that make instances for transformers


class Words:
    """Random words: mostly those that a model knows, in any case, and some that it does not."""

    def __init__(self, known: Sequence[str], seed: int = 0) -> None:
        self.random = random.Random(seed)
        self._known = [word for word in known if word and not word.startswith("@@") and word.split() == [word]]

    def word(self) -> str:
        if self.random.random() < 0.2 or not self._known:
            letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-'.éß語"
            return "".join(self.random.choices(letters, k=self.random.randint(1, 15)))
        word = self.random.choice(self._known)
        return self.random.choice((word, word, word.capitalize(), word.upper()))

    def sentence(self, most: int = 30) -> list[str]:
        return [self.word() for _ in range(self.random.randint(1, most))]


class AllenNlp:
    """AllenNLP's code, from a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.is_old = is_old(checkout)
        modules = ["modules.seq2seq_encoders", "modules.seq2vec_encoders", "modules.token_embedders"]
        for name in (*modules, "modules.text_field_embedders", "modules.matrix_attention", "data.token_indexers"):
            import_allennlp(checkout, f"allennlp.{name}")
        self.data = import_allennlp(checkout, "allennlp.data")
        self.fields = import_allennlp(checkout, "allennlp.data.fields")
        self.params: Any = import_allennlp(checkout, "allennlp.common").Params
        self.model: Any = import_allennlp(checkout, "allennlp.models.model").Model
        span_utils = import_allennlp(checkout, "allennlp.data.dataset_readers.dataset_utils.span_utils")
        self.spans = span_utils.enumerate_spans
        if self.is_old:
            self.token = import_allennlp(checkout, "allennlp.data.tokenizers").Token
        else:
            self.token = self.data.Token
            # The lock of the folder with the vocabulary.
            import_allennlp(checkout, "allennlp.data.vocabulary").FileLock = lambda *_, **__: contextlib.nullcontext()

    def import_kind(self, kind: Kind) -> None:
        """Registers the model of a kind, and its reader."""
        import_allennlp(self.checkout, kind.modules[not self.is_old])
        for name in kind.readers[not self.is_old]:
            reader = import_allennlp(self.checkout, name)
            if hasattr(reader, "BertTokenizer"):
                reader.BertTokenizer = old_bert_tokenizer()

    def load(self, folder: Path, config: dict[str, Any]) -> nn.Module:
        """The model of an unpacked archive."""
        weights = str(folder / "weights.th")
        return self.model.load(self.params({**config, "vocabulary": {}}), str(folder), weights).eval()

    def indexers(self, config: Mapping[str, Any]) -> dict[str, Any]:
        reader = config["dataset_reader"]
        named = next((value for key, value in reader.items() if key.endswith("token_indexers")), None)
        given = copy.deepcopy(named or {"tokens": {"type": "single_id"}})
        return {key: self.data.TokenIndexer.from_params(self.params(value)) for key, value in given.items()}

    def text(self, tokens: Sequence[str]) -> Any:
        return self.fields.TextField([self.token(token) for token in tokens], self.current_indexers)

    def reader(self, config: Mapping[str, Any]) -> Any:
        """The reader of an archive."""
        module = import_allennlp(self.checkout, "allennlp.data.dataset_readers.dataset_reader")
        return module.DatasetReader.from_params(self.params(copy.deepcopy(config["dataset_reader"])))

    current_reader: Any = None  # of the archive that is being compared, if its kind has one
    current_indexers: dict[str, Any] = {}  # noqa: RUF012 - of the archive that is being compared
    current_end: Sequence[str] = ()  # tokens at the end of the texts of a pair
    current_width: int = 1  # of the longest span


def tagged(words: Words) -> Example:
    return {"tokens": words.sentence()}


def predicate(words: Words) -> Example:
    tokens = words.sentence()
    return {"tokens": tokens, "predicate": words.random.randrange(len(tokens))}


def tagged_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    return {
        "tokens": allennlp.text(example["tokens"]),
        "metadata": allennlp.fields.MetadataField({"words": example["tokens"]}),
    }


def predicate_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    tokens, place = example["tokens"], example["predicate"]
    text = allennlp.text(tokens)
    flags = [int(position == place) for position in range(len(tokens))]
    metadata = {"words": tokens, "verb": tokens[place], "verb_index": place}
    return {
        "tokens": text,
        "verb_indicator": allennlp.fields.SequenceLabelField(flags, text),
        "metadata": allennlp.fields.MetadataField(metadata),
    }


def marked_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    flags = [int(position == example["predicate"]) for position in range(len(example["tokens"]))]
    tokens = [allennlp.token(token) for token in example["tokens"]]
    return dict(allennlp.current_reader.text_to_instance(tokens, flags).fields)


@torch.no_grad()
def compare_pieces(run: Run, example: Example, theirs: Output) -> tuple[bool, float]:
    """Tags and AllenNLP's JSON, and the scores of all tags of all word pieces."""
    batch = run.model.task.collate([example], run.vocabulary)
    output = run.model(batch)
    (prediction,) = run.model.decode(output, batch)
    words, tags, place = list(theirs["words"]), list(theirs["tags"]), example["predicate"]
    expected = {"verb": theirs["verb"], "description": theirs["describe"](words, tags), "tags": tags}
    predictor = AllenNlpPredictor(run_predictor(run))
    (result,) = predictor.predict([{"tokens": words, "predicates": [place]}])
    same = prediction["tags"] == tags and result == {"words": words, "verbs": [expected]}
    columns = [theirs["labels"].index(label) for label in run.vocabulary.labels["tags"]]
    return same, difference(output.logits[0], theirs["logits"][:, columns])


@torch.no_grad()
def compare_tags(run: Run, example: Example, theirs: Output) -> tuple[bool, float]:
    """Tags, and the scores of all tags that both sides have."""
    batch = run.model.task.collate([example], run.vocabulary)
    output = run.model(batch)
    (prediction,) = run.model.decode(output, batch)
    scores = output.logits[0] if "class_probabilities" not in theirs else output.logits[0].softmax(1)
    wanted = theirs.get("class_probabilities", theirs["logits"])
    columns = [theirs["labels"].index(label) for label in run.vocabulary.labels["tags"]]
    return prediction["tags"] == list(theirs["tags"]), difference(scores, wanted[:, columns])


def compare_roles(run: Run, example: Example, theirs: Output) -> tuple[bool, float]:
    """As `compare_tags`; also notes where AllenNLP's search has missed the best tags."""
    same, distance = compare_tags(run, example, theirs)
    if not same:
        batch = run.model.task.collate([example], run.vocabulary)
        with torch.no_grad():
            (prediction,) = run.model.decode(run.model(batch), batch)

        def score(tags: Sequence[str]) -> float:
            places = [theirs["labels"].index(tag) for tag in tags]
            return float(theirs["class_probabilities"][range(len(tags)), places].sum(dtype=np.float64))

        if score(prediction["tags"]) > score(theirs["tags"]):
            theirs["missed"].append(example)
    return same, distance


def pair(words: Words) -> Example:
    return {"premise": words.sentence(), "hypothesis": words.sentence(15)}


def text_or_pair(words: Words) -> Example:
    return {**tagged(words), **pair(words)}


def text_or_pair_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    reader = allennlp.current_reader
    if reader is None:
        return classified_fields(allennlp, example)
    if "Stanford" in type(reader).__name__:
        instance = reader.text_to_instance(example["tokens"])
    else:
        before = (0, None) if "Rte" in type(reader).__name__ else ()
        instance = reader.text_to_instance(*before, " ".join(example["premise"]), " ".join(example["hypothesis"]))
    reader.apply_token_indexers(instance)
    return dict(instance.fields)


def pair_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    return {side: allennlp.text([*example[side], *allennlp.current_end]) for side in ("premise", "hypothesis")}


def classified_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    return {"tokens": allennlp.text(example["tokens"])}


@torch.no_grad()
def compare_labels(run: Run, example: Example, theirs: Output) -> tuple[bool, float]:
    """Labels, by their places, and the scores or the probabilities of all labels."""
    output = run.model(run.model.task.collate([example], run.vocabulary))
    if "logits" in theirs:
        return int(output.logits.argmax()) == theirs["logits"].argmax(), difference(output.logits[0], theirs["logits"])
    wanted = theirs["class_probabilities" if "class_probabilities" in theirs else "label_probs"]
    return int(output.logits.argmax()) == wanted.argmax(), difference(output.logits[0].softmax(0), wanted)


def asked(words: Words) -> Example:
    passage = words.sentence(120)
    ends = list(itertools.accumulate(len(word) + 1 for word in passage))
    return {
        "passage": " ".join(passage),
        "token_starts": [end - 1 - len(word) for end, word in zip(ends, passage, strict=True)],
        "token_ends": [end - 1 for end in ends],
        "question": "",
        "question_tokens": words.sentence(15),
    }


def asked_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    question = allennlp.text(example["question_tokens"])
    return {"question": question, "passage": allennlp.text(passage_tokens(example))}


@torch.no_grad()
def compare_answers(run: Run, example: Example, theirs: Output) -> tuple[bool, float]:
    """Best spans, and the probabilities of all tokens as the first and as the last one."""
    batch = run.model.task.collate([example], run.vocabulary)
    output = run.model(batch)
    (prediction,) = run.model.decode(output, batch)
    scores = ("span_start_probs", output.start_logits), ("span_end_probs", output.end_logits)
    distance = max(difference(logits[0].softmax(0), theirs[name]) for name, logits in scores)
    return [prediction["start"], prediction["end"]] == theirs["best_span"].tolist(), distance


def document(words: Words) -> Example:
    """A document with random clusters, so that there is a loss."""
    sentences = [words.sentence(25) for _ in range(words.random.randint(1, 6))]
    sentences[0] += ["it"] * 5  # AllenNLP fails if it keeps no span
    places = range(sum(map(len, sentences)))
    clusters = [sorted([place, place] for place in words.random.sample(places, 2)) for _ in range(3)]
    return {"sentences": sentences, "clusters": sorted(clusters)}


def document_fields(allennlp: AllenNlp, example: Example) -> dict[str, Any]:
    text, fields = allennlp.text(list(itertools.chain(*example["sentences"]))), allennlp.fields
    starts = itertools.accumulate(map(len, example["sentences"]), initial=0)
    spans = [
        span
        for start, sentence in zip(starts, example["sentences"], strict=False)
        for span in allennlp.spans(sentence, offset=start, max_span_width=allennlp.current_width)
    ]
    numbers = {tuple(span): number for number, cluster in enumerate(example["clusters"]) for span in cluster}
    field = fields.ListField([fields.SpanField(*span, text) for span in spans])
    clusters = [list(map(tuple, cluster)) for cluster in example["clusters"]]
    return {
        "text": text,
        "spans": field,
        "span_labels": fields.SequenceLabelField([numbers.get(tuple(span), -1) for span in spans], field),
        "metadata": fields.MetadataField({"original_text": text.tokens, "clusters": clusters}),
    }


@torch.no_grad()
def compare_clusters(run: Run, example: Example, theirs: Output) -> tuple[bool, float]:
    """Kept spans and clusters, and the loss by kept span, which depends on all scores."""
    batch = run.model.task.collate([example], run.vocabulary)
    output = run.model(batch)
    (prediction,) = run.model.decode(output, batch)
    spans = torch.stack([output.starts, output.ends], dim=1).tolist()
    ours, wanted = ({frozenset(map(tuple, cluster)) for cluster in each["clusters"]} for each in (prediction, theirs))
    loss = run.model.loss(output, batch)
    return ours == wanted and spans == theirs["top_spans"].tolist(), difference(loss, theirs["loss"]) / len(spans)


def difference(ours: torch.Tensor, theirs: Any) -> float:
    return float(np.abs(ours.double().numpy() - np.asarray(theirs, dtype=np.float64)).max())


def tags(*labels: str, letters: str = "BILU") -> tuple[str, ...]:
    return ("O", *(f"{letter}-{label}" for label in labels for letter in letters))


# As published models, whose search is the same in all versions, these have 62 tags or more.
ROLES = (*(f"ARG{number}" for number in range(6)), *(f"ARGM-{kind}" for kind in ("ADV", "LOC", "MNR", "TMP")))
KINDS = {
    "simple_tagger": Kind(
        ("allennlp.models.simple_tagger", "allennlp.models.simple_tagger"),
        tags("PER", "LOC"),
        tagged,
        tagged_fields,
        compare_tags,
    ),
    "crf_tagger": Kind(
        ("allennlp.models.crf_tagger", "allennlp_models.tagging.models.crf_tagger"),
        tags("PER", "LOC", "ORG", "MISC"),
        tagged,
        tagged_fields,
        compare_tags,
    ),
    "srl": Kind(
        ("allennlp.models.semantic_role_labeler", "allennlp_models.structured_prediction.models.srl"),
        tags("V", "ARG0", "ARG1", "R-ARG1", "ARGM-TMP", letters="BI"),
        predicate,
        predicate_fields,
        compare_roles,
    ),
    "srl_bert": Kind(
        ("allennlp.models.srl_bert", "allennlp_models.structured_prediction.models.srl_bert"),
        tags("V", *(f"{prefix}{role}" for prefix in ("", "R-", "C-") for role in ROLES), letters="BI"),
        predicate,
        marked_fields,
        compare_pieces,
        (
            ("allennlp.data.dataset_readers.semantic_role_labeling",),
            ("allennlp_models.structured_prediction.dataset_readers.srl",),
        ),
    ),
    "basic_classifier": Kind(
        ("allennlp.models.basic_classifier", "allennlp.models.basic_classifier"),
        ("1", "0"),
        text_or_pair,
        text_or_pair_fields,
        compare_labels,
        (
            (),
            (
                "allennlp_models.classification.dataset_readers.stanford_sentiment_tree_bank",
                "allennlp_models.pair_classification.dataset_readers.snli",
                "allennlp_models.pair_classification.dataset_readers.transformer_superglue_rte",
            ),
        ),
    ),
    "esim": Kind(
        ("allennlp.models.esim", "allennlp_models.pair_classification.models.esim"),
        ("entailment", "contradiction", "neutral"),
        pair,
        pair_fields,
        compare_labels,
    ),
    "decomposable_attention": Kind(
        (
            "allennlp.models.decomposable_attention",
            "allennlp_models.pair_classification.models.decomposable_attention",
        ),
        ("entailment", "contradiction", "neutral"),
        pair,
        pair_fields,
        compare_labels,
    ),
    "bcn": Kind(
        (
            "allennlp.models.biattentive_classification_network",
            "allennlp_models.classification.models.biattentive_classification_network",
        ),
        ("3", "1", "2", "4", "0"),
        tagged,
        classified_fields,
        compare_labels,
    ),
    "bidaf": Kind(
        ("allennlp.models.reading_comprehension.bidaf", "allennlp_models.rc.models.bidaf"),
        (),
        asked,
        asked_fields,
        compare_answers,
    ),
    "coref": Kind(
        ("allennlp.models.coreference_resolution.coref", "allennlp_models.coref.models.coref"),
        (),
        document,
        document_fields,
        compare_clusters,
    ),
}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result for an archive."""

    archive: str
    kind: str
    inputs: int
    identical: int
    largest_difference: float
    missed: int  # by AllenNLP's search for the best tags
    import_seconds: float


def compare(allennlp: AllenNlp, archive: Path, inputs: int, scratch: Path) -> Comparison:
    """Imports an archive, and compares the run with AllenNLP's model."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder := scratch / "archive", filter="data")
    config = json.loads((folder / "config.json").read_text())
    kind = KINDS[config["model"]["type"]]
    allennlp.import_kind(kind)
    start = time.perf_counter()
    import_archive(archive, scratch / "run", transformer=transformer_of(config))
    seconds = time.perf_counter() - start
    run = load_run(scratch / "run")
    # AllenNLP wants the biLM's files before it reads the archive's weights over them.
    bilm = RunFolder(scratch / "run").bilm.copies
    model: Any = allennlp.load(folder, local(config, bilm / "options.json", bilm / "weights.hdf5"))
    allennlp.current_reader = None
    if any(kind.readers) and transformer_of(config):
        allennlp.current_reader = allennlp.reader(config)
    else:
        allennlp.current_indexers = allennlp.indexers(config)
    allennlp.current_end = config["dataset_reader"].get("tokenizer", {}).get("end_tokens", ())
    allennlp.current_width = config["dataset_reader"].get("max_span_width", 1)
    names = {
        model.vocab.get_token_from_index(row, "labels"): row for row in range(model.vocab.get_vocab_size("labels"))
    }
    words = Words([*run.vocabulary.words[2:], *((*WORDS, *CAPITALS) if transformer_of(config) else ())])
    for module in model.modules():
        if hasattr(module, "reset_states"):
            module.register_forward_pre_hook(lambda module, _: module.reset_states())
    missed: list[object] = []
    identical, largest = 0, 0.0
    for _ in range(inputs):
        example = kind.example(words)
        (theirs,) = model.forward_on_instances([allennlp.data.Instance(kind.fields(allennlp, example))])
        known = {"labels": list(names), "missed": missed, "describe": described}
        same, distance = kind.compare(run, example, {**theirs, **known})
        identical += same
        largest = max(largest, distance)
    return Comparison(str(archive), config["model"]["type"], inputs, identical, largest, len(missed), seconds)


def described(words: Sequence[str], tags: Sequence[str]) -> str:
    """The description of a predicate's roles, as AllenNLP's predictor writes it."""
    written, chunk = [], []
    for word, tag in [*zip(words, tags, strict=True), ("", "end")]:
        if tag.startswith("I-"):
            chunk.append(word)
            continue
        if chunk:
            written.append(f"[{' '.join(chunk)}]")
        chunk = [f"{tag[2:]}: {word}"] if tag.startswith("B-") else []
        written += [word] if tag == "O" else []
    return " ".join(written)


def transformer_of(config: Any) -> str | None:
    """The folder of the transformer that a config names."""
    if isinstance(config, dict):
        for key in ("bert_model", "model_name"):
            if isinstance(config.get(key), str):
                return str(config[key])
    parts = config.values() if isinstance(config, dict) else config if isinstance(config, list) else ()
    return next(filter(None, map(transformer_of, parts)), None)


def local(config: Any, options: Path, weights: Path) -> Any:
    """A config with the biLM's files in place of those that it names, and without other files."""
    if isinstance(config, list):
        return [local(value, options, weights) for value in config]
    if not isinstance(config, dict):
        return config
    values = {key: local(value, options, weights) for key, value in config.items() if key != "pretrained_file"}
    if values.get("type") == "elmo_token_embedder" or "options_file" in values:
        values |= {"options_file": str(options), "weight_file": str(weights)}
    return values


def write_archive(allennlp: AllenNlp, path: Path, folder: Path) -> Path:
    """An archive with random weights, by AllenNLP's own classes, of a training config."""
    torch.manual_seed(1)
    target = folder / path.stem
    (target / "vocabulary").mkdir(parents=True)
    files = folder / "options.json", folder / "weights.hdf5"
    if not files[0].exists():
        random_bilm(SMALL_BILM, seed=2).save(*files)
    variables = dict.fromkeys(re.findall(r"""std\.extVar\(["'](\w+)""", path.read_text(encoding="utf-8")), "data")
    config = local(evaluate(str(path), variables), *files)
    if name := transformer_of(config):
        config = small(config, name, str(make_transformer(folder / f"{path.stem}-files", name)))
    kind = KINDS[config["model"]["type"]]
    allennlp.import_kind(kind)
    vocabulary = allennlp.data.Vocabulary()
    words = Words([], seed=3)
    for word in {words.word().lower() for _ in range(500)} | {"the", "of", "-lrb-", "."}:
        vocabulary.add_token_to_namespace(word, "tokens")
    for character in sorted({character for _ in range(300) for character in words.word()}):
        vocabulary.add_token_to_namespace(character, "token_characters")
    for label in kind.labels:
        vocabulary.add_token_to_namespace(label, "labels")
    model = allennlp.model.from_params(vocab=vocabulary, params=allennlp.params(copy.deepcopy(config["model"])))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and (parameter.dim() < 2 or "crf" in name):  # biases and mixes begin at zero
                parameter.add_(0.1 * torch.randn_like(parameter))
            if "tag_projection_layer" in name:
                parameter.mul_(20)  # so that some tags are more probable than others
    vocabulary.save_to_files(str(target / "vocabulary"))
    (target / "config.json").write_text(json.dumps(config, indent=2))
    torch.save(model.state_dict(), target / "best.th", _use_new_zipfile_serialization=not allennlp.is_old)
    import_allennlp(allennlp.checkout, "allennlp.models.archival").archive_model(str(target), "best.th")
    return target / "model.tar.gz"


def small(config: Any, name: str, folder: str) -> Any:
    """A config with a small transformer in place of the one that it names, and with that one's size."""
    if isinstance(config, list):
        return [small(value, name, folder) for value in config]
    if isinstance(config, dict):
        return {key: small(value, name, folder) for key, value in config.items()}
    return {name: folder, 768: SIZES["hidden_size"], 1024: SIZES["hidden_size"]}.get(config, config)


SMALL_BILM = BiLMOptions.model_validate(
    {
        "lstm": {"dim": 520, "projection_dim": 512, "n_layers": 2, "cell_clip": 3.0, "proj_clip": 3.0,
                 "use_skip_connections": True},
        "char_cnn": {"embedding": {"dim": 4}, "filters": ((1, 8), (3, 16)), "activation": "relu", "n_highway": 2},
    }
)  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="the folder of AllenNLP's packages")
    parser.add_argument("archives", type=Path, nargs="+", metavar="ARCHIVE", help="model.tar.gz of AllenNLP")
    parser.add_argument("--inputs", type=int, default=200, metavar="N", help="random inputs for each (default: 200)")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="the archives are training configs; see above")
    arguments = parser.parse_args()
    allennlp = AllenNlp(arguments.checkout)
    results = []
    for archive in arguments.archives:
        if arguments.write:
            archive = write_archive(allennlp, archive, arguments.write)
        with tempfile.TemporaryDirectory() as scratch:
            results.append(compare(allennlp, archive, arguments.inputs, Path(scratch)))
    header = (
        "archive",
        "kind",
        "inputs",
        "identical predictions",
        "largest difference",
        "missed by AllenNLP",
        "import, s",
    )
    rows = [
        (Path(*Path(each.archive).parts[-3:]), each.kind, each.inputs, each.identical, f"{each.largest_difference:.1e}",
         each.missed, f"{each.import_seconds:.1f}")
        for each in results
    ]  # fmt: skip
    print(markdown_table(header, rows))
    write_results(arguments.json, results=[dataclasses.asdict(each) for each in results])


if __name__ == "__main__":
    main()
