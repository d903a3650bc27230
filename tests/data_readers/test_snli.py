"""Sentence pairs: each data set's files, tokenization, hub data sets, every error with its place, counts."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import datasets
import pydantic
import pytest

from elmo_tasks.data_readers.reader import PLACE_FEATURES, DatasetReaderConfig
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.tasks import TextPairs

Pair = tuple[str, str, str]  # label, premise and hypothesis, their tokens joined by blanks

RAW = [
    ("entailment", 'A red-haired man says "Hello".', "He speaks."),
    ("-", "A dog doesn't bark.", "It is (very) quiet."),
    ("contradiction", "A dog doesn't bark.", "It's loud!"),
    ("neutral", "Two boys", "Mr. Fen has two sons."),
]
TOKENIZED = [
    ("entailment", "A red-haired man says `` Hello '' .", "He speaks ."),
    ("-", "A dog does n't bark .", "It is -LRB- very -RRB- quiet ."),
    ("contradiction", "A dog does n't bark .", "It 's loud !"),
    ("neutral", "Two boys", "Mr. Fen has two sons ."),
]
PAIRS: list[Pair] = [
    ("entailment", 'A red-haired man says " Hello " .', "He speaks ."),
    ("contradiction", "A dog does n't bark .", "It 's loud !"),
    ("neutral", "Two boys", "Mr. Fen has two sons ."),
]


def write(folder: Path, text: str, name: str = "pairs.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def jsonl(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def snli_records(pairs: list[Pair]) -> list[dict[str, Any]]:
    return [{"gold_label": label, "sentence1": one, "sentence2": other} for label, one, other in pairs]


def table(names: str, *rows: str) -> str:
    """Rows whose columns are separated by bars, as tab-separated text."""
    return "".join("\t".join(column.strip() for column in row.split("|")) + "\n" for row in (names, *rows))


def read(path: Path, **settings: Any) -> list[Pair]:
    return as_pairs(SnliConfig(**settings).build().read(path))


def as_pairs(examples: Any) -> list[Pair]:
    return [(each["label"], " ".join(each["premise"]), " ".join(each["hypothesis"])) for each in examples]


@pytest.mark.parametrize("pairs", [RAW, TOKENIZED], ids=["raw", "tokenized"])
@pytest.mark.parametrize("form", ["jsonl", "table"])
def test_raw_and_tokenized_files_give_the_same(
    tmp_path: Path, pairs: list[Pair], form: str, caplog: pytest.LogCaptureFixture
) -> None:
    if form == "jsonl":
        text = jsonl(*snli_records(pairs))
    else:
        text = table("gold_label|sentence1|sentence2|pairID", *("|".join([*pair, "7"]) for pair in pairs))
    path = write(tmp_path, text)
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        dataset = SnliConfig().build().read(path)
    assert as_pairs(dataset) == PAIRS
    assert dataset["line"][:] == [1 + place + (form == "table") for place in (0, 2, 3)]
    assert dataset.features == {**TextPairs.features, **PLACE_FEATURES}
    assert f"{path}: 1 pair(s) without a gold label left out" in caplog.text


def test_a_file_that_was_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    path = write(tmp_path, jsonl(*snli_records(RAW)), "pairs.jsonl")
    reader = SnliConfig().build()
    assert reader.files(tmp_path / "pairs.jsonl.xz") == (path,)
    assert as_pairs(reader.read(tmp_path / "pairs.jsonl.xz")) == read(path)


def test_tokenization_that_is_set_is_kept_to(tmp_path: Path) -> None:
    path = write(tmp_path, jsonl(*snli_records([RAW[2]])))
    assert read(path, tokenized=True) == [("contradiction", "A dog doesn't bark.", "It's loud!")]
    path = write(tmp_path, jsonl(*snli_records([("neutral", "See it . Well.", "Fine .")])))
    assert read(path) == read(path, tokenized=False) == [("neutral", "See it . Well .", "Fine .")]


def test_a_file_without_final_marks_counts_as_raw(tmp_path: Path) -> None:
    path = write(tmp_path, jsonl(*snli_records([("neutral", "The dog's bone", "A dog")])))
    assert read(path) == [("neutral", "The dog 's bone", "A dog")]


def test_binary_parses_are_used_where_they_are(tmp_path: Path) -> None:
    records = snli_records([("neutral", "A U.S.-made car.", "A car!"), ("neutral", "It isn't.", "Parade")])
    records[0]["sentence1_binary_parse"] = "( ( A ( ( U.S. -made ) car ) ) . )"
    records[0]["sentence2_binary_parse"] = "( ( -LRB- ( A -RRB- ) ) ( car ! ) )"
    records[1]["sentence1_binary_parse"] = ""
    records[1]["sentence2_binary_parse"] = "Parade"
    path = write(tmp_path, jsonl(*records))
    assert read(path) == [
        ("neutral", "A U.S. -made car .", "( A ) car !"),
        ("neutral", "It is n't .", "Parade"),
    ]
    assert read(path, tokenized=True)[0] == ("neutral", "A U.S.-made car.", "A car!")


def test_multinli(tmp_path: Path) -> None:
    names = (
        "gold_label|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse|sentence2_parse|sentence1|sentence2|"
        "promptID|pairID|genre|label1|label2|label3|label4|label5"
    )
    path = write(
        tmp_path,
        table(
            names,
            "neutral|( ( It ( rained ) ) . )|( Rain . )|(ROOT)|(ROOT)|It rained.|Rain.|1|1n|fiction|neutral",
            "-|( It . )|( He . )|(ROOT)|(ROOT)|It.|He.|2|2e|travel|neutral|entailment|neutral|entailment|",
            "entailment|( So ' \" )|( Yes . )|(ROOT)|(ROOT)|So'\"|Yes.|3|3e|fiction|a|b|c|d|e",
        ),
    )
    assert read(path) == [("neutral", "It rained .", "Rain ."), ("entailment", "So ' \"", "Yes .")]


SICK = table(
    "pair_ID|sentence_A|sentence_B|entailment_label|relatedness_score|SemEval_set",
    "1|A boy is running|A child isn't still|ENTAILMENT|4.5|TRAIN",
    "2|A boy is running|A boy is tall|NEUTRAL|3.1|TRIAL",
    "3|A boy is running|No boy is running|CONTRADICTION|4|TEST",
    "4|A cat sleeps|A cat is asleep|ENTAILMENT|5|TEST",
)


def test_sick(tmp_path: Path) -> None:
    path = write(tmp_path, SICK)
    pairs = [
        ("entailment", "A boy is running", "A child is n't still"),
        ("neutral", "A boy is running", "A boy is tall"),
        ("contradiction", "A boy is running", "No boy is running"),
        ("entailment", "A cat sleeps", "A cat is asleep"),
    ]
    assert read(path) == pairs
    assert read(path, semeval_set="TRAIN") == pairs[:1]
    assert as_pairs(SnliConfig().build().read(f"{path}:TRIAL")) == pairs[1:2]
    assert as_pairs(SnliConfig(semeval_set="TRAIN").build().read(f"{path}:TEST")) == pairs[2:]


def test_sick_of_the_shared_task(tmp_path: Path) -> None:
    names = "pair_ID|sentence_A|sentence_B|relatedness_score|entailment_judgment"
    path = write(tmp_path, table(names, "1|A boy|A child|4.5|ENTAILMENT"))
    assert read(path) == [("entailment", "A boy", "A child")]
    with pytest.raises(DataError, match=r"pairs.txt:2: no 'SemEval_set' among pair_ID, sentence_A"):
        read(path, semeval_set="TRAIN")


def test_a_set_that_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, SICK.replace("TRIAL", "DEV"))
    with pytest.raises(DataError, match=r"pairs.txt:3: SemEval_set 'DEV'; wanted TRAIN, TRIAL, TEST"):
        read(path, semeval_set="TRAIN")
    with pytest.raises(DataError, match=r"pairs.txt:DEV: no such file"):
        SnliConfig().build().read(f"{path}:DEV")
    with pytest.raises(DataError, match=r"nowhere.txt: no such file"):
        SnliConfig().build().read(tmp_path / "nowhere.txt:TRAIN")


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, table("verdict|text|claim", "neutral|It rained.|Rain."))
    assert read(path, columns=("text", "claim", "verdict")) == [("neutral", "It rained .", "Rain .")]
    with pytest.raises(
        DataError, match=r"pairs.txt:1: no column 'label' among verdict, text, claim; wanted those of the"
    ):
        read(path, columns=("text", "claim", "label"))


def test_blank_lines_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    text = "\ufeffgold_label\tsentence1\tsentence2\r\n\r\nneutral\tIt rained.\tRain.\r\n\r\n"
    assert read(write(tmp_path, text)) == [("neutral", "It rained .", "Rain .")]
    text = "\ufeff  " + jsonl(*snli_records(RAW)).replace("\n", "\r\n\r\n")
    assert read(write(tmp_path, text)) == PAIRS
    assert read(write(tmp_path, "\n" + jsonl(*snli_records(RAW)))) == PAIRS


def test_empty_sentences_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs = [("neutral", "It rained.", ""), ("neutral", " ", "Rain."), ("neutral", "It rained.", "Rain.")]
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        assert len(read(write(tmp_path, jsonl(*snli_records(pairs))))) == 1
    assert "2 pair(s) with an empty sentence left out" in caplog.text


GOOD = {"gold_label": "neutral", "sentence1": "It rained.", "sentence2": "Rain."}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{'a': 1}", "Expecting property name enclosed in double quotes at column 2; wanted one JSON object per line"),
        ('{"gold_label": "neu', "Unterminated string starting at at column 16"),
        ("[1, 2]", "a JSON list; wanted an object"),
        (json.dumps({**GOOD, "gold_label": "maybe"}), "gold_label 'maybe'; wanted entailment, neutral, contradiction,"),
        (json.dumps({**GOOD, "gold_label": None}), "'gold_label' is None; wanted a string"),
        (json.dumps({**GOOD, "gold_label": 2}), "'gold_label' is 2; wanted a string"),
        (json.dumps({**GOOD, "sentence2": ["Rain"]}), "'sentence2' is ['Rain']; wanted a string"),
        (json.dumps({"gold_label": "neutral", "sentence1": "It."}), "no 'sentence2' among gold_label, sentence1"),
        (
            json.dumps({**GOOD, "gold_label": "\ud83d"}),
            r"\ud83d at column 17 is half of a surrogate pair",
        ),
        pytest.param(
            f'{{"number": {"1" * 5000}}}',
            "a whole number has too many digits; wanted one JSON object per line",
            id="many digits",
        ),
        pytest.param(
            '{"list": ' + "[" * 100_000,
            "lists or objects are nested too deeply; wanted one JSON object per line",
            id="deep nesting",
        ),
        (
            json.dumps({**GOOD, "sentence1_binary_parse": "( ( It rained ) ."}),
            "the brackets of a binary parse are not balanced: '( ( It rained ) .'",
        ),
        (
            json.dumps({**GOOD, "sentence1_binary_parse": "It ) ( rained"}),
            "the brackets of a binary parse are not balanced",
        ),
    ],
)
def test_errors_in_jsonl_name_file_and_line(tmp_path: Path, line: str, problem: str) -> None:
    path = write(tmp_path, f"{json.dumps(GOOD)}\n\n{line}\n")
    with pytest.raises(DataError) as caught:
        SnliConfig().build().read(path)
    assert str(caught.value).startswith(f"{path}:3: {problem}")


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        (("gold_label|sentence1|sentence2|pairID|label1", "neutral|It.|He."), "2: 3 column(s); wanted 4 to 5 as in"),
        (("gold_label|sentence1|sentence2", "neutral|It.|He.|x"), "2: 4 column(s); wanted 3 as in the header row"),
        (("gold_label|sentence1|sentence2", "neutral|It.|He.", "hidden|It.|He."), "3: gold_label 'hidden'; wanted"),
        (("gold_label|sentence1|sentence1", "neutral|It.|He."), "1: columns that the header row has twice: 'sentence1"),
        (("neutral|It.|He.", "neutral|It.|He."), "1: wanted columns sentence1/sentence2 or sentence_A/sentence_B or"),
        (("sentence1|sentence2|verdict", "It.|He.|neutral"), "1: wanted columns sentence1/sentence2 or"),
        (("", "gold_label|sentence1|sentence2", "neutral|It."), "3: 2 column(s); wanted 3 as in the header row"),
    ],
)
def test_errors_in_tables_name_file_and_line(tmp_path: Path, rows: tuple[str, ...], place: str) -> None:
    path = write(tmp_path, table(*rows))
    with pytest.raises(DataError) as caught:
        SnliConfig().build().read(path)
    assert str(caught.value).startswith(f"{path}:{place}")


def test_an_error_beyond_the_sample(tmp_path: Path) -> None:
    lines = [json.dumps(GOOD)] * 1500
    lines[1200] = "{"
    with pytest.raises(DataError, match=r"pairs.txt:1201: "):
        read(write(tmp_path, "\n".join(lines)))


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes((jsonl(GOOD) + '{"sentence1": "Café"}').encode("latin-1"))
    with pytest.raises(DataError, match=r"latin.txt:2: byte 0xe9 at column 19 is not UTF-8"):
        read(path)


@pytest.mark.parametrize(
    "text", ["", "gold_label\tsentence1\tsentence2\n", jsonl({**GOOD, "gold_label": "-"})], ids=repr
)
def test_a_file_without_examples(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="has no example"):
        SnliConfig().build().read(write(tmp_path, text))


NAMES = ["entailment", "neutral", "contradiction"]


def write_hub(folder: Path, label: Any, labels: list[Any]) -> str:
    """A data set of the hub's form in a folder that `load_dataset` reads; the source's name of it."""
    features = datasets.Features(
        {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string"), "label": label}
    )
    rows = {"premise": ["It rained."] * len(labels), "hypothesis": ["Rain."] * len(labels), "label": labels}
    folder.mkdir()
    datasets.Dataset.from_dict(rows, features=features).to_parquet(folder / "train.parquet")
    return f"hub:{folder}"


@pytest.fixture
def _hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub_cache")


@pytest.mark.usefixtures("_hub_cache")
def test_hub_data_set_with_class_ids(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = write_hub(tmp_path / "hub", datasets.ClassLabel(names=NAMES), [1, -1, 0, 2, None])
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        pairs = as_pairs(SnliConfig().build().read(source))
    assert pairs == [(name, "It rained .", "Rain .") for name in ("neutral", "entailment", "contradiction")]
    assert f"{source}: 2 pair(s) without a gold label left out" in caplog.text


@pytest.mark.usefixtures("_hub_cache")
def test_hub_data_set_with_strings(tmp_path: Path) -> None:
    source = write_hub(tmp_path / "hub", datasets.Value("string"), ["neutral", "-", None])
    assert SnliConfig().build().read(source)["label"][:] == ["neutral"]


@pytest.mark.usefixtures("_hub_cache")
@pytest.mark.parametrize(
    ("label", "labels", "problem"),
    [
        (datasets.ClassLabel(names=["yes", "no"]), [1], ": row 0: label 'no'; wanted entailment, neutral"),
        (datasets.Value("int64"), [1], ": column 'label': .*; wanted labels as strings or as class ids with names"),
        (datasets.Value("string"), ["neutral", "?"], r": row 1: label '\?'; wanted"),
    ],
)
def test_hub_data_set_with_wrong_labels(tmp_path: Path, label: Any, labels: list[Any], problem: str) -> None:
    source = write_hub(tmp_path / "hub", label, labels)
    with pytest.raises(ElmoTasksError, match=f"^{source}{problem}"):
        SnliConfig().build().read(source)


@pytest.mark.usefixtures("_hub_cache")
def test_hub_data_set_without_the_columns(tmp_path: Path) -> None:
    source = write_hub(tmp_path / "hub", datasets.Value("string"), ["neutral"])
    config = SnliConfig(columns=("premise", "hypothesis", "verdict"))
    with pytest.raises(
        ElmoTasksError, match=f"^{source}: no column 'verdict' among premise, hypothesis, label; wanted"
    ):
        config.build().read(source)


def test_config() -> None:
    config = DatasetReaderConfig.model_validate_json(
        '{"type": "snli", "tokenized": true, "columns": ["a", "b", "c"], "semeval_set": "TEST"}'
    )
    assert config == SnliConfig(tokenized=True, columns=("a", "b", "c"), semeval_set="TEST")
    assert DatasetReaderConfig.model_validate_json('{"type": "snli", "tokenized": "auto"}') == SnliConfig()
    for wrong in ({"tokenized": "yes"}, {"columns": ("a", "b")}, {"semeval_set": "DEV"}):
        with pytest.raises(pydantic.ValidationError, match=next(iter(wrong))):
            SnliConfig(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "entailment", "neutral", "contradiction"),
    [
        ("snli_1.0_dev.jsonl", 3_329, 3_235, 3_278),
        ("snli_1.0_test.jsonl", 3_368, 3_219, 3_237),
        ("snli_1.0_train_subset.jsonl", 7_203, 7_098, 7_304),
    ],
)
def test_counts_of_the_real_data(
    data_folder: Path, name: str, entailment: int, neutral: int, contradiction: int
) -> None:
    dataset = SnliConfig().build().read(data_folder / "snli" / name)
    labels = dataset["label"][:]
    counts = {label: labels.count(label) for label in NAMES}
    assert counts == {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    # Tokenized or raw, what comes out has its periods apart, save those of abbreviations.
    last = [tokens[-1] for tokens in dataset["premise"]]
    assert sum(token == "." for token in last) > 0.8 * len(last)
    assert sum(len(token) > 1 and token.endswith(".") for token in last) < 0.001 * len(last)
