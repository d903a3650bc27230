"""Small heads of every kind, each with four examples to learn. A new head joins by one entry in `HEADS`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from elmo_tasks import hooks
from elmo_tasks.tasks.reading import unanswered


@dataclasses.dataclass(frozen=True)
class Head:
    """One head with data to learn.

    `examples` are four of different lengths and labels; `gold` are the keys that they share with predictions, `labels`
    those of what else the task takes its labels from.
    """

    model: Mapping[str, Any]  # without the embedder
    examples: Sequence[dict[str, Any]]
    gold: tuple[str, ...]
    best_metric: str
    labels: tuple[str, ...] = ()
    learning_rate: float = 0.02
    tolerance: float = 1e-5  # of numbers that are learned by heart
    without: tuple[str, ...] = ()  # probabilities of the config that this model has no use for
    embedder: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {
            "words": {"size": 8, "unknown_probability": 0.1},
            "characters": {"embedding_size": 4, "filters": 6, "width": 3, "dropout": 0.1},
            "elmo": {"mixes": ("input", "output"), "dropout": 0.1},
        }
    )


def crf_tagger() -> Head:
    tagged = [
        (["Tavo", "Melin", "left", "Brusk", "."], ["B-PER", "L-PER", "O", "U-LOC", "O"]),
        (["Quiet"], ["O"]),
        (["The", "Old", "Tarn", "Mill", "hired", "Orla"], ["O", "B-ORG", "I-ORG", "L-ORG", "O", "U-PER"]),
        (["Kerrin", "Brusk"], ["U-PER", "U-LOC"]),
    ]
    return Head(
        model={
            "type": "crf_tagger",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (10, 6), "dropout": 0.1},
            "dropout": 0.1,
        },
        examples=[{"tokens": tokens, "tags": tags} for tokens, tags in tagged],
        gold=("tags",),
        best_metric="f1",
    )


def fine_grained_tagger() -> Head:
    """The encoder, the layers and the characters of AllenNLP's fine-grained recognizer."""
    head = crf_tagger()
    encoder = {
        "type": "stacked_highway_bilstm",
        "hidden_size": 6,
        "num_layers": 2,
        "dropout": 0.1,
        "highway_bias": True,
    }
    feedforward = {"hidden_sizes": (8,), "activation": "tanh", "dropout": 0.1}
    characters = {"type": "lstm", "embedding_size": 4, "hidden_size": 6, "bidirectional": True, "dropout": 0.1}
    return dataclasses.replace(
        head,
        model={**head.model, "encoder": encoder, "feedforward": feedforward},
        embedder={**head.embedder, "characters": characters},
    )


def simple_tagger() -> Head:
    encoder = {"type": "stacked_bigru", "hidden_sizes": (8,), "dropout": 0.1, "bidirectional": True}
    head = crf_tagger()
    characters = {**head.embedder["characters"], "padding": "right", "token_min_padding_length": 4}
    return dataclasses.replace(
        head,
        model={"type": "simple_tagger", "encoder": encoder, "dropout": 0.1, "tag_scheme": "BIOUL"},
        embedder={**head.embedder, "characters": characters},
    )


def bcn() -> Head:
    return Head(
        model={
            "type": "bcn",
            "embedding_dropout": 0.1,
            "pre_encoder": {"hidden_sizes": (10,), "dropout": 0.1},
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
            "integrator": {"type": "stacked_bilstm", "hidden_sizes": (6,)},
            "integrator_dropout": 0.1,
            "output": {"hidden_sizes": (12, 8), "dropout": 0.1},
        },
        examples=[
            {"tokens": ["The", "tarn", "was", "hardly", "cold", "."], "label": "positive"},
            {"tokens": ["Cold"], "label": "negative"},
            {"tokens": ["A", "mill"], "label": "neutral"},
            {"tokens": ["Orla", "never", "liked", "it"], "label": "very negative"},
        ],
        gold=("label",),
        best_metric="accuracy",
        learning_rate=0.01,
    )


def text_classifier(**settings: Any) -> Head:
    layers = {"type": "text_classifier", "embedding_dropout": 0.1, "dropout": 0.1}
    return dataclasses.replace(bcn(), model={**layers, **settings})


def label_sets() -> Head:
    sets = [["cold", "water"], ["cold"], [], ["liking", "water"]]
    head = text_classifier(task="multi_label", encoder={"type": "stacked_bilstm", "hidden_sizes": (8,)})
    examples = [{"tokens": each["tokens"], "labels": labels} for each, labels in zip(head.examples, sets, strict=True)]
    return dataclasses.replace(head, examples=examples, gold=("labels",), best_metric="micro_f1")


def numbers_of_texts() -> Head:
    head = text_classifier(task="regression", output={"hidden_sizes": (8,), "activation": "tanh"})
    examples = [
        {"tokens": each["tokens"], "score": score}
        for each, score in zip(head.examples, (7.5, -2.0, 3.25, 0.0), strict=True)
    ]
    gold, tolerance = ("score",), 1.0
    return dataclasses.replace(
        head, examples=examples, gold=gold, best_metric="pearson", tolerance=tolerance, learning_rate=0.03
    )


def linear_classifier(head: Head, **settings: Any) -> Head:
    """With little penalty, so that it learns four examples by heart."""
    model = {"type": "linear_classifier", "strengths": (1e3,), **settings}
    return dataclasses.replace(head, model=model, embedder={"elmo": {"mixes": ("input", "output"), "dropout": 0.1}})


def esim() -> Head:
    def pair(premise: str, hypothesis: str, label: str) -> dict[str, Any]:
        return {"premise": premise.split(), "hypothesis": hypothesis.split(), "label": label}

    return Head(
        model={
            "type": "esim",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
            "alignment_dropout": 0.1,
            "projection": {"hidden_sizes": (10,)},
            "composition": {"type": "stacked_bilstm", "hidden_sizes": (6,), "dropout": 0.1},
            "dropout": 0.1,
            "output": {"hidden_sizes": (8,), "activation": "tanh", "dropout": 0.1},
        },
        examples=[
            pair("A miller sleeps beside the tarn .", "Nobody is awake", "neutral"),
            pair("Two children run .", "They run", "entailment"),
            pair("Rain", "It is dry .", "contradiction"),
            pair("The old mill burns", "Smoke", "entailment"),
        ],
        gold=("label",),
        best_metric="accuracy",
        learning_rate=0.01,
    )


def decomposable_attention() -> Head:
    return dataclasses.replace(
        esim(),
        model={
            "type": "decomposable_attention",
            "end_token": "@@NULL@@",
            "attend": {"hidden_sizes": (8, 8), "dropout": 0.1},
            "compare": {"hidden_sizes": (10,), "dropout": 0.1},
            "output": {"hidden_sizes": (8,), "dropout": 0.1},
        },
    )


def asked() -> list[dict[str, Any]]:
    """Questions whose answers have the key of `Head.gold` and, for the task, of `Head.labels`."""
    texts = [
        ("Who left Brusk?", "Tavo Melin left Brusk on a Friday.", "Tavo Melin"),
        ("When?", "It closed in 1820.", "1820"),
        ("What did Orla buy there?", "Orla sold a mill, then bought two boats in the north of Kerrin.", "two boats"),
        ("Where is Kerrin?", "Kerrin, a town, is near Brusk.", "near Brusk"),
    ]
    examples = []
    for question, passage, answer in texts:
        example = unanswered(question, passage)
        start = passage.index(answer)
        span = [example["token_starts"].index(start), example["token_ends"].index(start + len(answer))]
        examples.append({**example, "answers": [answer], "answer_spans": [span], "answer": answer})
    return examples


def bidaf_self_attention() -> Head:
    encoder = {"type": "stacked_bigru", "hidden_sizes": (6,), "dropout": 0.1}
    return Head(
        model={
            "type": "bidaf_self_attention",
            "encoder": encoder,
            "self_attention_encoder": encoder,
            "start_encoder": encoder,
            "end_encoder": encoder,
            "matched_size": 10,
            "dropout": 0.1,
        },
        examples=asked(),
        gold=("answer",),
        labels=("answers", "answer_spans"),
        best_metric="f1",
    )


def with_no_answer(head: Head) -> Head:
    """Two of the questions have no answer."""
    nothing = {"answers": [], "answer_spans": [], "answer": ""}
    examples = [{**each, **(nothing if number % 2 else {})} for number, each in enumerate(head.examples)]
    return dataclasses.replace(head, model={**head.model, "no_answer": True}, examples=examples)


def bidaf() -> Head:
    encoder = {"type": "stacked_bilstm", "hidden_sizes": (6,)}
    return Head(
        model={
            "type": "bidaf",
            "encoder": encoder,
            "modeling_encoder": {"type": "stacked_bilstm", "hidden_sizes": (8, 6), "dropout": 0.1},
            "end_encoder": encoder,
            "dropout": 0.1,
        },
        examples=asked(),
        gold=("answer",),
        labels=("answers", "answer_spans"),
        best_metric="f1",
    )


def semantic_roles() -> Head:
    sentences = [
        (["Orla", "gave", "Tavo", "the", "key"], 1, ["B-ARG0", "B-V", "B-ARG2", "B-ARG1", "I-ARG1"]),
        (["Quiet"], 0, ["B-V"]),
        (["The", "key", "that", "Orla", "gave", "fits"], 4, ["B-ARG1", "I-ARG1", "B-R-ARG1", "B-ARG0", "B-V", "O"]),
        (["The", "key", "fits"], 2, ["B-ARG1", "I-ARG1", "B-V"]),
    ]
    return Head(
        model={
            "type": "srl",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
            "predicate_size": 6,
            "dropout": 0.1,
        },
        examples=[{"tokens": tokens, "predicate": index, "tags": tags} for tokens, index, tags in sentences],
        gold=("tags",),
        best_metric="f1",
    )


def coref(**settings: Any) -> Head:
    def document(genre: str | None, text: str, clusters: list[list[list[int]]], speakers: str = "") -> dict[str, Any]:
        """Sentences are separated by a slash; `speakers` has a letter for each sentence."""
        sentences = [sentence.split() for sentence in text.split(" / ")]
        each = speakers or "-" * len(sentences)
        return {
            "genre": genre,
            "sentences": sentences,
            "speakers": [[speaker] * len(sentence) for speaker, sentence in zip(each, sentences, strict=True)],
            "clusters": clusters,
        }

    return Head(
        model={
            "type": "coref",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (16,)},
            "lexical_dropout": 0.1,
            "dropout": 0.1,
            "hidden_sizes": (20, 20),
            "feature_size": 6,
            "max_span_width": 3,
            "spans_per_word": 4.0,
            "max_antecedents": 60,
            "max_training_sentences": 50,
            **settings,
        },
        examples=[
            document(
                "talk",
                "I met the old miller of Brusk / You did / He greeted me",
                [[[0, 0], [7, 7], [11, 11]], [[2, 4], [9, 9]]],
                speakers="aba",
            ),
            document("story", "Tavo left Orla", []),
            document("story", "Orla saw her mill and Tavo saw it", [[[0, 0], [2, 2]], [[2, 3], [7, 7]]]),
            document(None, "Rain / Tavo and his sons slept", [[[1, 1], [3, 3]]]),
        ],
        gold=("clusters",),
        best_metric="conll_f1",
        learning_rate=0.03,
    )


HEADS = {
    "crf_tagger, BIOUL": crf_tagger(),
    "simple_tagger": simple_tagger(),
    "bcn, relu": bcn(),
    "text_classifier": text_classifier(),
    "text_classifier, all layers": text_classifier(
        encoder={"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
        pooling="attention",
        output={"hidden_sizes": (8,), "dropout": 0.1},
    ),
    "text_classifier, sets of labels": label_sets(),
    "text_classifier, numbers": numbers_of_texts(),
    "text_classifier, pairs": dataclasses.replace(
        esim(), model={**text_classifier(pooling="mean").model, "task": "text_pairs"}
    ),
    "linear_classifier": linear_classifier(bcn()),
    "linear_classifier, pairs": linear_classifier(esim(), task="text_pairs", strengths=(100.0,)),
    "esim": esim(),
    "decomposable_attention, end token": decomposable_attention(),
    "bidaf_self_attention, no answer": with_no_answer(bidaf_self_attention()),
    "bidaf": bidaf(),
    "srl, biLSTM": semantic_roles(),
    "coref": coref(unknown_genre_probability=0.1),
    "coref, as AllenNLP's": dataclasses.replace(
        coref(as_allennlp=True, pair_hidden_sizes=(24, 16), encoder={"type": "stacked_bilstm", "hidden_sizes": (24,)}),
        learning_rate=0.02,
        without=("unknown_genre_probability",),
    ),
    "coref, consistent": coref(consistent_chains=True, pronoun_bonus=1.0),
    "coref, coarse to fine": coref(coarse_to_fine=True, inference_order=2, max_antecedents=8),
}
if "stacked_highway_bilstm" in hooks.names("EncoderConfig"):  # of an extra
    HEADS["crf_tagger, fine-grained"] = fine_grained_tagger()
