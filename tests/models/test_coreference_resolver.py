from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
import torch

from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.models.coreference_resolver import (
    CoreferenceOutput,
    CoreferenceResolver,
    CoreferenceResolverConfig,
    GroupedSentenceEncoder,
    consistent_links,
    linked_clusters,
    padded_sentences,
)
from elmo_tasks.models.embedder import Embedder, EmbedderConfig
from elmo_tasks.modules.encoders import StackedBiLstmConfig
from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.tasks.coreference import Coreference, CoreferenceBatch
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary
from tests.modules.helpers import LargestTensor

WORDS = ("tarn", "vale", "moro", "orla", "fen")
VOCABULARY = Vocabulary(
    words=(*SPECIAL, *WORDS), num_trained_words=7, characters=SPECIAL, labels={"genres": ("story", "talk")}
)
NONE = float("-inf")


def make_resolver(**settings: Any) -> CoreferenceResolver:
    torch.manual_seed(4)
    config = CoreferenceResolverConfig.model_validate(
        {
            "embedder": {"words": {"size": 4}},
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (3,)},
            "hidden_sizes": (5, 4),
            "feature_size": 2,
            "max_span_width": 3,
            "max_antecedents": 5,
            **settings,
        }
    )
    return config.build(VOCABULARY, config.embedder.build(VOCABULARY)).eval()


def make_document(*lengths: int, clusters: list[list[list[int]]] | None = None, **fields: Any) -> dict[str, Any]:
    numbers = itertools.count()
    sentences = [[WORDS[next(numbers) % 5] for _ in range(length)] for length in lengths]
    return {"sentences": sentences, "clusters": [] if clusters is None else clusters, **fields}


def collate(*documents: dict[str, Any]) -> CoreferenceBatch:
    return Coreference().collate(list(documents), VOCABULARY)


def output_of(spans: list[tuple[int, int]], documents: list[int], scores: list[list[float]]) -> CoreferenceOutput:
    starts, ends = torch.tensor(spans).unbind(1)
    columns = len(scores[0]) - 1
    numbers = torch.arange(len(spans)).unsqueeze(1) - torch.arange(columns, 0, -1)
    return CoreferenceOutput(starts, ends, torch.tensor(documents), numbers.clamp(min=-1), torch.tensor(scores))


@pytest.mark.parametrize(
    ("tokens", "settings", "kept"),
    [
        (9, {"spans_per_word": 0.3}, 6),  # and not 2, as of 0.3 spans for each word
        (20, {"spans_per_word": 0.3}, 6),
        (24, {"spans_per_word": 0.3}, 7),
        (9, {"spans_per_word": 0.3, "min_spans": 4}, 4),
        (9, {"spans_per_word": 0.3, "as_allennlp": True}, 2),
        (9, {"spans_per_word": 0.3, "as_allennlp": True, "min_spans": 3}, 3),
    ],
)
def test_short_documents_keep_a_least_number_of_spans(tokens: int, settings: dict[str, Any], kept: int) -> None:
    resolver = make_resolver(**settings)
    for each in (resolver, resolver.train()):
        assert each(collate(make_document(tokens), make_document(40))).documents.tolist().count(0) == kept


def test_loss_is_the_negative_log_likelihood_of_all_gold_antecedents() -> None:
    # Document 0: clusters {1, 3, 4} and {0, 2} of its spans; document 1: one span whose partner was not kept.
    batch = collate(
        make_document(6, clusters=[[[1, 1], [3, 4], [5, 5]], [[0, 0], [2, 2]]]),
        make_document(3, clusters=[[[0, 0], [2, 2]]]),
    )
    spans = [(0, 0), (1, 1), (2, 2), (3, 4), (5, 5), (7, 8), (8, 8)]
    scores = torch.randn(7, 4)
    scores[:, 3] = 0
    for span, antecedent in itertools.product(range(7), range(-3, 7)):
        column = antecedent - span + 3
        if 0 <= column < 3 and (antecedent < 0 or (span >= 5) != (antecedent >= 5)):
            scores[span, column] = NONE
    output = output_of(spans, [0] * 5 + [1] * 2, scores.tolist())
    gold = [[3], [3], [3 - 2], [3 - 2], [3 - 3, 3 - 1], [3], [3]]  # columns
    expected = 0.0
    for row, columns in zip(scores.tolist(), gold, strict=True):
        weights = [math.exp(score) for score in row]
        expected -= math.log(sum(weights[column] for column in columns) / sum(weights))
    assert make_resolver().loss(output, batch).item() == pytest.approx(expected / 2, rel=1e-5)


def test_a_mention_of_several_gold_clusters_is_in_the_last() -> None:
    batch = collate(make_document(3, clusters=[[[0, 0], [1, 1]], [[1, 1], [2, 2]]]))
    spans = [(0, 0), (1, 1), (2, 2)]
    sure = [[NONE, NONE, 0.0], [NONE, -30.0, 0.0], [-30.0, 30.0, 0.0]]
    loss = make_resolver().loss(output_of(spans, [0, 0, 0], sure), batch)
    assert loss.item() == pytest.approx(0, abs=1e-6)


def test_without_gold_clusters_there_is_no_antecedent_to_choose() -> None:
    output = output_of([(0, 0), (1, 1)], [0, 0], [[NONE, 0.0], [1.0, 0.0]])
    loss = make_resolver().loss(output, collate(make_document(2)))
    assert loss.item() == pytest.approx(math.log(1 + math.e), rel=1e-5)


def test_the_score_of_a_prediction_is_the_log_probability_of_its_link() -> None:
    batch = collate(make_document(2, 2), make_document(3))
    spans = [(0, 0), (1, 1), (3, 3), (4, 4), (5, 6)]
    scores = [[NONE, NONE, 0.0], [NONE, 1.0, 0.0], [2.0, 3.0, 0.0], [NONE, NONE, 0.0], [NONE, 1.5, 0.0]]
    links = [{"link": ((3, 3), (0, 0))}, {"link": ((1, 2), (0, 0))}]
    found = make_resolver().prediction_scores(output_of(spans, [0, 0, 0, 1, 1], scores), batch, links)
    expected = [2 - math.log(math.exp(2) + math.exp(3) + 1), 1.5 - math.log(math.exp(1.5) + 1)]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("temperature", [1, 2.5])
def test_decode_joins_the_best_links_of_each_document(temperature: float) -> None:
    batch = collate(make_document(4, 2), make_document(3))
    spans = [(0, 0), (1, 2), (2, 2), (4, 5), (5, 5), (6, 6), (7, 8), (8, 8)]
    scores: list[list[float]] = [
        [NONE, NONE, 0],
        [NONE, -1, 0],
        [3, 1, 0],  # to span 0
        [2, -1, 0],  # to span 1
        [1, -2, 0],  # to span 2, so to 0
        [NONE, NONE, 0],
        [NONE, 0.5, 0],  # to span 5
        [1, 3, 0],  # to span 6, and span 5 is in its cluster
    ]
    resolver = make_resolver()
    resolver.temperature = temperature
    predictions = resolver.decode(output_of(spans, [0] * 5 + [1] * 3, scores), batch)
    assert [prediction["clusters"] for prediction in predictions] == [
        [[[0, 0], [2, 2], [5, 5]], [[1, 2], [4, 5]]],
        [[[0, 0], [1, 2], [2, 2]]],
    ]
    assert predictions[0]["mentions"] == [[0, 0], [1, 2], [2, 2], [4, 5], [5, 5]]
    assert predictions[0]["antecedents"] == [None, None, 0, 1, 2]
    three, one = (math.exp(score / temperature) for score in (3, 1))
    expected = [1, 1 / (1 + 1 / one), three / (three + one + 1)]
    assert predictions[0]["probabilities"][:3] == pytest.approx(expected)
    assert predictions[1]["antecedents"] == [None, 0, 1]
    assert predictions[1]["probabilities"][2] == pytest.approx((three + one) / (three + one + 1))


def test_links_join_as_in_brute_force() -> None:
    generator = random.Random(3)
    for _ in range(100):
        antecedents = [generator.choice([None, *range(span)]) for span in range(12)]
        sets = [{span} for span in range(12)]
        for span, antecedent in enumerate(antecedents):
            if antecedent is not None:
                joined = next(each for each in sets if span in each) | next(each for each in sets if antecedent in each)
                sets = [each for each in sets if not each & joined] + [joined]
        assert linked_clusters(antecedents) == sorted(sorted(each) for each in sets if len(each) > 1)


def test_spans_of_a_chain_can_all_be_of_one_kind() -> None:
    """The king, Mary, he, her: by the scores only, each is linked to the one before."""
    document = {"sentences": [["The", "king", "met", "Mary"], ["He", "saw", "her", "."]], "clusters": []}
    batch = collate(document)
    scores = [[NONE, NONE, NONE, 0.0], [NONE, NONE, 2.0, 0.0], [NONE, 1.0, 2.0, 0.0], [1.0, 2.0, 3.0, 0.0]]
    output = output_of([(0, 1), (3, 3), (4, 4), (6, 6)], [0] * 4, scores)
    (together,) = make_resolver().decode(output, batch)
    assert together["clusters"] == [[[0, 1], [3, 3], [4, 4], [6, 6]]]
    (apart,) = make_resolver(consistent_chains=True).decode(output, batch)
    assert apart["clusters"] == [[[0, 1], [4, 4]], [[3, 3], [6, 6]]]
    assert apart["antecedents"] == [None, None, 0, 1]
    likely = torch.tensor(scores).softmax(dim=1)
    expected = [likely[0, 3], likely[1, 3], likely[2, 1], likely[3, 1]]
    assert apart["probabilities"] == pytest.approx([float(each) for each in expected])


def test_consistent_links_as_in_brute_force() -> None:
    """Each span in turn takes the best antecedent whose whole chain shares a kind with it, if that beats none."""
    generator = torch.Generator().manual_seed(3)
    changed = 0
    for _ in range(60):
        scores = torch.cat([torch.randn(8, 4, generator=generator), torch.zeros(8, 1)], dim=1)
        kinds = torch.randint(1, 16, (8,), generator=generator)
        antecedents = torch.arange(8).unsqueeze(1) - torch.arange(4, 0, -1)
        scores[:, :4][antecedents < 0] = NONE
        links = consistent_links(antecedents, scores, kinds)
        chains: list[set[int]] = []
        for span in range(8):
            best, best_score = None, 0.0
            for column, antecedent in enumerate(antecedents[span].tolist()):
                chain = next((each for each in chains if antecedent in each), set())
                shared = int(kinds[span])
                for member in chain:
                    shared &= int(kinds[member])
                if antecedent >= 0 and shared and float(scores[span, column]) > best_score:
                    best, best_score = antecedent, float(scores[span, column])
            assert links[span] == best
            if best is None:
                chains.append({span})
            else:
                next(each for each in chains if best in each).add(span)
        changed += links != consistent_links(antecedents, scores, torch.full((8,), 15))
    assert changed > 20


@pytest.mark.parametrize(("bonus", "linked"), [(0.0, []), (0.9, []), (1.1, [[[0, 0], [1, 1]]])])
def test_pronouns_are_linked_more_readily(bonus: float, linked: list[Any]) -> None:
    batch = collate({"sentences": [["tarn", "it", "vale"]], "clusters": []})
    output = output_of([(0, 0), (1, 1), (2, 2)], [0] * 3, [[NONE, NONE, 0.0], [NONE, -1.0, 0.0], [-1.0, -1.0, 0.0]])
    (prediction,) = make_resolver(pronoun_bonus=bonus).decode(output, batch)
    assert prediction["clusters"] == linked


def test_training_reads_a_random_window_of_a_long_document() -> None:
    """All spans are kept, so that those of the output show what is read."""
    resolver = make_resolver(max_training_sentences=2, spans_per_word=9.0)
    whole = make_resolver(max_training_sentences=None, spans_per_word=9.0)
    clusters = [[[0, 0], [1, 1]], [[2, 2], [6, 6]]]
    batch = collate(make_document(2, 1, 3, 1, clusters=clusters), make_document(4, 1))

    def read(model: CoreferenceResolver) -> tuple[int, ...]:
        output = model(batch)
        assert model.loss(output, batch).isfinite()
        tokens = {*output.starts.tolist(), *output.ends.tolist()}
        assert tokens >= {7, 8, 9, 10, 11}  # the second document
        return tuple(sorted(token for token in tokens if token < 7))

    assert read(resolver) == read(whole.train()) == (0, 1, 2, 3, 4, 5, 6)
    resolver.train()
    torch.manual_seed(1)
    found = [read(resolver) for _ in range(30)]
    assert set(found) == {(0, 1, 2), (2, 3, 4, 5), (3, 4, 5, 6)}
    torch.manual_seed(1)
    assert [read(resolver) for _ in range(30)] == found


def test_in_a_window_the_speakers_are_those_of_the_document() -> None:
    resolver = make_resolver(max_training_sentences=1, spans_per_word=9.0, dropout=0.0, lexical_dropout=0.0)
    with torch.no_grad():
        resolver.antecedents.embeddings["speaker"].mul_(50)
    last = {"sentences": [["orla", "fen"]], "clusters": [], "speakers": [["a", "b"]]}
    whole = {**last, "sentences": [["tarn", "vale"], *last["sentences"]], "speakers": [["a", "a"], *last["speakers"]]}
    expected = resolver(collate(last))
    resolver.train()
    outputs = [resolver(collate(whole)) for _ in range(20)]
    windows = [output for output in outputs if output.starts[0] == 2]
    assert 0 < len(windows) < 20
    for output in windows:
        torch.testing.assert_close(output.antecedent_scores, expected.antecedent_scores)


@pytest.mark.parametrize(("as_allennlp", "lengths"), [(False, [3, 2]), (True, [5])])
def test_allennlps_resolver_embeds_whole_documents(as_allennlp: bool, lengths: list[int]) -> None:
    texts = list(make_resolver(as_allennlp=as_allennlp).embedded_texts(make_document(3, 2)))
    assert list(map(len, texts)) == lengths
    assert [token for text in texts for token in text] == list(WORDS)


def test_genres_are_hidden_only_in_training() -> None:
    batch = collate(*[make_document(2, genre=genre) for genre in ["story", "talk", None] * 40])
    resolver = make_resolver(unknown_genre_probability=0.5)
    assert resolver._genres(batch).tolist() == [1, 2, 0] * 40
    hidden = resolver.train()._genres(batch)
    changed = hidden != batch.genres
    assert not hidden[changed].any()
    assert 20 < changed.sum() < 60


def test_memory_grows_no_faster_than_the_document() -> None:
    resolver = make_resolver()
    largest = []
    for sentences in (100, 400):
        batch = collate(make_document(*[5] * sentences))
        with torch.no_grad(), LargestTensor() as record:
            resolver.decode(resolver(batch), batch)
        largest.append(record.size)
    assert largest[1] < 5 * largest[0]
    assert largest[1] < (5 * 400) ** 2 / 10


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("most", [4, 100])
def test_allennlps_json_says_which_links_make_the_clusters(coarse: bool, most: int) -> None:
    resolver = make_resolver(coarse_to_fine=coarse, inference_order=2, max_antecedents=most, as_allennlp=True)
    predictor = AllenNlpPredictor(CoreferencePredictor(resolver, VOCABULARY))
    for shift in torch.linspace(-1, 1, 9):
        with torch.no_grad():
            resolver.antecedents.scorer.output.bias.fill_(shift)
        for result in predictor([make_document(9, 8, 7), make_document(3, 4)]):
            spans, choices = result["top_spans"], result["predicted_antecedents"]
            indices = result["antecedent_indices"]
            assert {len(row) for row in indices} == {min(most, len(spans))}
            clusters: list[list[list[int]]] = []  # in the order of their first links
            for row, (choice, of_span) in enumerate(zip(choices, indices, strict=True)):
                if coarse:
                    assert of_span == sorted(set(of_span))
                    assert len([other for other in of_span if other < row]) == min(most, row)
                else:
                    assert of_span == [max(0, row - 1 - column) for column in range(len(of_span))]
                if choice >= 0:
                    other = spans[of_span[choice]]
                    cluster = next((each for each in clusters if other in each), None)
                    if cluster is None:
                        clusters.append(cluster := [other])
                    cluster.append(spans[row])
            assert result["clusters"] == clusters


SPELLED = Vocabulary(
    words=(*SPECIAL, *WORDS), num_trained_words=7, characters=(*SPECIAL, *sorted(set("".join(WORDS)))), labels={}
)


@pytest.fixture
def grouped() -> tuple[Embedder, GroupedSentenceEncoder]:
    torch.manual_seed(3)
    config = {"words": {"size": 4}, "characters": {"embedding_size": 3, "filters": 5, "width": 2}}
    embedder = EmbedderConfig.model_validate(config).build(SPELLED)
    encoder = StackedBiLstmConfig(hidden_sizes=(3,)).build(embedder.output_size)
    return embedder, GroupedSentenceEncoder(embedder, encoder, 0.5, 0.5).eval()


@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4, 5], [2], [5, 0]])
def test_sentences_are_encoded_as_each_alone(rows: list[int], grouped: tuple[Embedder, GroupedSentenceEncoder]) -> None:
    embedder, encoder = grouped
    lengths = np.array([3, 1, 12, 2, 7, 1], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    tokens = SPELLED.index_tokens([[WORDS[number % 5] for number in range(int(lengths.sum()))]])
    vectors = encoder(embedder, tokens, starts[rows], lengths[rows])
    inputs, encoded = [], []
    for row in rows:
        single = SPELLED.index_tokens([tokens.texts[0][starts[row] : starts[row] + lengths[row]]])
        inputs.append(embedder(single).inputs[0])
        encoded.append(encoder.encoder(inputs[-1].unsqueeze(0), single.mask)[0])
    torch.testing.assert_close(vectors.inputs, torch.cat(inputs))
    torch.testing.assert_close(vectors.encoded, torch.cat(encoded))
    padded = padded_sentences(tokens, starts[rows], lengths[rows])
    assert len(padded.characters) == 1 + len({word for text in padded.texts for word in text})  # and the padding
    assert not padded.words[~padded.mask].any()
    assert not padded.distinct[~padded.mask].any()
    vectors.encoded.sum().backward()
    used = {SPELLED.word_id(word) for text in padded.texts for word in text}
    assert embedder.words is not None
    assert set(embedder.words.trained.grad.any(dim=1).nonzero().flatten().tolist()) == used  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([6, 10, 5, 2], [(2, 10), (1, 5), (1, 2)]),  # 6 is as much as six tenths of 10, 5 is less
        ([241] * 17, [(16, 241), (1, 241)]),  # all of them would be 4097 tokens
        ([5000, 4000], [(1, 5000), (1, 4000)]),
    ],
)
def test_groups_have_like_lengths_and_bounded_sizes(
    lengths: list[int], groups: list[tuple[int, int]], grouped: tuple[Embedder, GroupedSentenceEncoder]
) -> None:
    embedder, encoder = grouped
    shapes: list[tuple[int, ...]] = []
    encoder.encoder.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[1].shape)))
    sizes = np.array(lengths, dtype=np.int64)
    with torch.no_grad():
        encoder(embedder, SPELLED.index_tokens([["fen"] * sum(lengths)]), np.cumsum(sizes) - sizes, sizes)
    assert shapes == groups
