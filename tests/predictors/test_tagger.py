import itertools
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.extras.raw_text.tokenizers import UnicodeTokenizer
from elmo_tasks.predictors import predictor as predictors
from elmo_tasks.predictors.inputs import LiveLines, read_inputs
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks import Tagging


def test_raw_text_in_another_language(predictor: TaggerPredictor) -> None:
    predictor.tokenizer = UnicodeTokenizer()
    text = "\u6211\u662fMary\u3002\u4f60\u5462"
    first, second = predictor.predict([{"text": text}])
    assert first["tokens"] == ["\u6211", "\u662f", "Mary", "\u3002"]
    assert [text[start:end] for start, end in first["offsets"] + second["offsets"]] == [
        *first["tokens"],
        "\u4f60",
        "\u5462",
    ]
    assert first["spans"][0]["text"] == "Mary"


def test_tokens(predictor: TaggerPredictor) -> None:
    (result,) = predictor.predict([{"tokens": ["Bo", "Moe", "left"], "source": {"page": 3}}])
    assert result == {
        "source": {"page": 3},
        "tokens": ["Bo", "Moe", "left"],
        "tags": ["B-NAME", "L-NAME", "O"],
        "probabilities": [0.333333, 0.25, 0.2],
        "spans": [{"label": "NAME", "start": 0, "end": 1, "text": "Bo Moe", "probability": 0.25}],
    }


def test_tags_that_are_no_spans_give_none(predictor: TaggerPredictor) -> None:
    predictor.task = Tagging()
    (result,) = predictor.predict([{"tokens": ["Bo", "left"]}])
    assert list(result) == ["tokens", "tags", "probabilities"]


def test_results_come_in_the_order_of_the_inputs_in_bounded_batches(predictor: TaggerPredictor) -> None:
    lengths = [3, 1, 20, 5, 2, 2, 11, 4] * 20
    inputs = [{"tokens": [f"t{number}"] * length, "id": number} for number, length in enumerate(lengths)]
    results = list(predictor.predict(inputs))
    assert [result["id"] for result in results] == list(range(len(lengths)))
    assert [result["tokens"] for result in results] == [fields["tokens"] for fields in inputs]
    shapes: list[tuple[int, int]] = predictor.model.shapes  # type: ignore[assignment]
    assert all(size * longest <= 12 or size == 1 for size, longest in shapes)
    assert len(shapes) < len(lengths) / 2


def test_endless_inputs_are_streamed(predictor: TaggerPredictor) -> None:
    read = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal read
        for read in itertools.count(1):
            yield {"text": f"we met Ann {read} times."}

    results = list(itertools.islice(predictor.predict(endless()), 100))
    assert results[-1]["text"] == "we met Ann 100 times."
    assert read < 200


def test_results_come_before_a_wait_for_the_next_input(predictor: TaggerPredictor) -> None:
    read, write = os.pipe()
    lines = LiveLines(read)
    late = threading.Timer(10, os.close, [write])  # so that the test fails instead of waiting forever
    late.start()
    results = predictor.predict(read_inputs(lines), waiting=lines.waiting)
    for name in ("Ann", "Bo"):
        os.write(write, f"{name} left.\n{name} came.\n\n".encode())
        assert [next(results)["tokens"][0] for _ in range(2)] == [name, name]
    late.cancel()
    os.close(write)
    assert list(results) == []
    os.close(read)
    shapes = predictor.model.shapes
    assert shapes == [(2, 3), (2, 3)]


def test_one_text_of_many_sentences_is_read_in_bounded_batches(predictor: TaggerPredictor) -> None:
    results = list(predictor.predict([{"text": "Ann left. " * 500}]))
    assert len(results) == 500
    shapes: list[tuple[int, int]] = predictor.model.shapes  # type: ignore[assignment]
    assert max(size for size, _ in shapes) <= 4


def test_what_is_none_is_passed_over_but_counted(predictor: TaggerPredictor) -> None:
    inputs = [None, {"tokens": ["Bo"]}, None, {"tokens": ["Moe"]}]
    assert [result["tokens"] for result in predictor.predict(inputs)] == [["Bo"], ["Moe"]]
    with pytest.raises(DataError, match=r"^some\.txt:5: "):
        list(predictor.predict([*inputs, {"text": 3}], source="some.txt"))


def test_results_before_a_bad_input_are_given(predictor: TaggerPredictor) -> None:
    def bad_source() -> Iterator[dict[str, Any]]:
        yield {"tokens": ["Bo"]}
        yield {"tokens": ["Moe"]}
        raise DataError("some.txt", "cut short", 3)

    listed: list[Any] = [{"tokens": ["Bo"]}, {"tokens": ["Moe"]}, {"tokens": []}]
    for inputs in (listed, bad_source()):
        results = predictor.predict(inputs, source="some.txt")
        assert [next(results)["tokens"], next(results)["tokens"]] == [["Bo"], ["Moe"]]
        with pytest.raises(DataError, match=r"^some\.txt:3: "):
            next(results)


def test_keys_that_the_result_has_too_are_kept(predictor: TaggerPredictor) -> None:
    (result,) = predictor.predict([{"tokens": ["Bo"], "tags": ["O"], "input_tags": 1, "start_char": 7, "input_id": 2}])
    assert result["tags"] == ["U-NAME"]
    assert {key: result[key] for key in ("input_input_tags", "start_char", "input_id")} == {
        "input_input_tags": ["O"],
        "start_char": 7,
        "input_id": 2,
    }
    assert result["input_tags"] == 1


def test_memory_is_released_after_many_tokens(predictor: TaggerPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    monkeypatch.setattr(predictors, "release_memory", lambda: released.append(0))
    monkeypatch.setattr(predictors, "_TOKENS_BETWEEN", 192)
    monkeypatch.setattr(predictors, "_tokens_since_release", 0)
    for number in range(1, 65):
        list(predictor.predict([{"tokens": ["a", "b", "c"]}]))
        assert len(released) == number // 64


def test_the_keys_of_allennlp(predictor: TaggerPredictor) -> None:
    inputs: list[Any] = [{"sentence": "Ann Lee left. Bo stayed.", "id": 7}, "Bo", {"tokens": ["Bo"]}]
    whole, text, tokens = AllenNlpPredictor(predictor)(inputs)
    assert whole == {
        "id": 7,
        "words": ["Ann", "Lee", "left", ".", "Bo", "stayed", "."],
        "tags": ["B-NAME", "L-NAME", "O", "O", "U-NAME", "O", "O"],
        "mask": [True] * 7,
    }
    assert text == tokens == {"words": ["Bo"], "tags": ["U-NAME"], "mask": [True]}
    for fields, problem in (
        ({"sentence": " "}, "'sentence' is ' '"),
        ({"sentence": 3}, "'sentence' is 3"),
        ({"words": ["Bo"]}, "expected either 'sentence' or 'text' or 'tokens'"),
    ):
        with pytest.raises(DataError, match=problem):
            AllenNlpPredictor(predictor)([fields])
