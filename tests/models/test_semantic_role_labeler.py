import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabeler
from elmo_tasks.modules import alternating_lstm  # noqa: F401 - its encoder is named below
from elmo_tasks.tasks.semantic_roles import SemanticRoles, SemanticRolesBatch
from elmo_tasks.text.vocabulary import Vocabulary
from tests.models.small import make_head, texts_of_lengths

LABELS = ("O", "B-V", "I-V", "B-ARG0", "I-ARG0", "B-ARG1", "I-ARG1")


def make_labeler(labels: tuple[str, ...] = LABELS, **settings: Any) -> tuple[SemanticRoleLabeler, Vocabulary]:
    encoder = {"type": "alternating_lstm", "hidden_size": 8, "num_layers": 2}
    return make_head({"type": "srl", "encoder": encoder, "predicate_size": 5, **settings}, {"tags": labels})


def make_batch(vocabulary: Vocabulary, *lengths: int, predicate: int = 0) -> SemanticRolesBatch:
    examples = [{"tokens": text, "predicate": min(predicate, len(text) - 1)} for text in texts_of_lengths(*lengths)]
    return SemanticRoles().collate(examples, vocabulary)


def test_where_the_best_tags_are_not_valid_the_probabilities_are_those_of_the_prediction() -> None:
    labeler, vocabulary = make_labeler()
    batch = make_batch(vocabulary, 2)
    logits = torch.zeros(1, 2, len(LABELS))
    for token, tag, score in ((0, "I-ARG0", 3.0), (0, "B-ARG1", 2.0), (1, "I-ARG1", 3.0), (1, "I-ARG0", 3.5)):
        logits[0, token, LABELS.index(tag)] = score
    (prediction,) = labeler.decode(dataclasses.replace(labeler(batch), logits=logits), batch)
    assert prediction["tags"] == ["B-ARG1", "I-ARG1"]
    likely = logits[0].softmax(1)
    expected = [likely[token, LABELS.index(tag)].item() for token, tag in enumerate(prediction["tags"])]
    assert prediction["probabilities"] == pytest.approx(expected)
    assert all(probability < likely[token].max() for token, probability in enumerate(expected))


def test_a_role_is_there_once_and_the_whole_sequence_is_the_best_of_these() -> None:
    """Compared with all valid sequences of four tokens."""
    labels = ("O", "B-V", "B-ARG0", "I-ARG0", "B-ARGM-TMP")
    labeler, vocabulary = make_labeler(labels, unique_roles=True)
    several, _ = make_labeler(labels)
    batch = make_batch(vocabulary, 4)
    torch.manual_seed(5)
    changed = 0
    for _ in range(30):
        logits = torch.randn(1, 4, len(labels))
        logits[:, :, 2] += 1
        output = dataclasses.replace(labeler(batch), logits=logits)
        likely = logits[0].log_softmax(dim=1)

        def score(tags: Sequence[str], likely: torch.Tensor = likely) -> float:
            return sum(float(likely[token, labels.index(tag)]) for token, tag in enumerate(tags))

        def is_valid(tags: Sequence[str]) -> bool:
            pairs = zip(["O", *tags], tags, strict=False)
            return all(tag != "I-ARG0" or before in ("B-ARG0", "I-ARG0") for before, tag in pairs)

        valid = [tags for tags in itertools.product(labels, repeat=4) if is_valid(tags)]
        best: Sequence[str] = max((tags for tags in valid if tags.count("B-ARG0") < 2), key=score)
        assert labeler.decode(output, batch)[0]["tags"] == list(best)
        free: Sequence[str] = max(valid, key=score)
        assert several.decode(output, batch)[0]["tags"] == list(free)
        changed += best != free
    assert changed > 5


def test_several_roles_are_there_once_each_in_sentences_of_any_length() -> None:
    labels = (
        "B-ARG0",
        "B-V",
        "O",
        "B-ARG5",
        "B-ARGM-TMP",
        "B-ARG1-DSP",
    )  # the number of the first one is also that of padding
    labeler, vocabulary = make_labeler(labels, unique_roles=True)
    batch, single = make_batch(vocabulary, 6, 3), make_batch(vocabulary, 3)
    word = make_batch(vocabulary, 1)
    assert len(labeler.decode(labeler(word), word)[0]["tags"]) == 1
    torch.manual_seed(6)
    repeated = dict.fromkeys(labels[4:], 0)  # roles that may be there twice
    for _ in range(20):
        logits = torch.randn(2, 6, len(labels))
        logits[:, :, [0, 3, 4, 5]] += 2
        predictions = labeler.decode(dataclasses.replace(labeler(batch), logits=logits), batch)
        for prediction in predictions:
            assert prediction["tags"].count("B-ARG0") <= 1
            assert prediction["tags"].count("B-ARG5") <= 1
            for label in repeated:
                repeated[label] += prediction["tags"].count(label) > 1
        shorter = dataclasses.replace(labeler(single), logits=logits[1:, :3])
        assert labeler.decode(shorter, single)[0]["tags"] == predictions[1]["tags"]
    assert min(repeated.values()) > 5


def test_the_flags_first_values_are_small() -> None:
    flag = make_labeler(predicate_size=400)[0].predicate.weight.detach()
    bound = (6 / 402) ** 0.5  # Glorot's uniform distribution
    assert 0.9 * bound < flag.abs().max() <= bound
    assert flag.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_the_flag_is_only_at_the_predicate() -> None:
    labeler, vocabulary = make_labeler()
    seen: list[torch.Tensor] = []
    labeler.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    labeler(make_batch(vocabulary, 4, 2, predicate=1))
    flags = seen[0][:, :, 6:]  # (B, T, P), behind the words
    for row in range(2):
        for token in range(4):
            assert torch.equal(flags[row, token], labeler.predicate.weight[int(token == 1)])


def test_loss_is_the_summed_cross_entropy_of_a_sentence() -> None:
    labeler, vocabulary = make_labeler()
    batch = make_batch(vocabulary, 3, 1)
    output = labeler(batch)
    gold = [[3, 4, 1], [1]]
    tags = torch.tensor([[3, 4, 1], [1, 0, 0]])
    likelihoods = output.logits.detach().log_softmax(2)
    expected = -sum(likelihoods[row, token, tag] for row, each in enumerate(gold) for token, tag in enumerate(each)) / 2
    assert labeler.loss(output, dataclasses.replace(batch, tags=tags)).item() == pytest.approx(float(expected))
    with pytest.raises(ValueError, match="no gold tags"):
        labeler.loss(output, batch)


def test_refuses_tags_that_are_not_roles() -> None:
    with pytest.raises(ElmoTasksError, match="'NOUN' is not a tag of IOB2; the model 'srl' needs"):
        make_labeler(("NOUN", "VERB"))


def test_decodes_by_the_sum_of_probabilities_on_request() -> None:
    labeler, vocabulary = make_labeler(decoded_scores="probabilities")
    batch = make_batch(vocabulary, 2)
    probabilities = torch.full((2, len(LABELS)), 1e-6)
    for token, tag, value in ((0, "O", 0.9), (0, "B-ARG0", 0.09), (1, "I-ARG0", 0.6), (1, "I-ARG1", 0.38)):
        probabilities[token, LABELS.index(tag)] = value
    output = dataclasses.replace(labeler(batch), logits=probabilities.log().unsqueeze(0))
    (by_sum,) = labeler.decode(output, batch)
    (by_product,) = make_labeler()[0].decode(output, batch)
    assert by_sum["tags"][0] == "O"  # 0.9 against 0.69
    assert by_sum["probabilities"][0] == pytest.approx(0.9, abs=0.02)
    assert by_product["tags"] == ["B-ARG0", "I-ARG0"]  # 0.054 against less than 1e-5
