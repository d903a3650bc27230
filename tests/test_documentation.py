"""What the documentation shows works: commands and Python are run, and pages show what they print."""

import json
import math
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pandas
import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.config.packaged import find_config
from elmo_tasks.elmo import PUBLISHED_OPTIONS, TINY_OPTIONS, batch_to_ids
from elmo_tasks.extras.samples import write_sample_data
from elmo_tasks.runs.evaluate import evaluate
from tests import pages
from tests.random_bilm import random_bilm

REPOSITORY = Path(__file__).parent.parent
README = REPOSITORY / "README.md"
FILES = [README, *sorted((REPOSITORY / "docs").rglob("*.md"))]
BILM_CARDS = [REPOSITORY / "elmo_tasks" / "elmo" / "default_bilm" / "README.md"]
PREDICTING = REPOSITORY / "docs" / "predicting.md"
LARGE_TEXTS = REPOSITORY / "docs" / "large_texts.md"
TOUR = REPOSITORY / "docs" / "tour.md"
WORDS_IN_CONTEXT = REPOSITORY / "docs" / "words_in_context.md"
PSYCHOLINGUISTICS = REPOSITORY / "docs" / "psycholinguistics.md"
SPECIAL_DOMAIN = REPOSITORY / "docs" / "special_domain.md"
ANALYSIS = REPOSITORY / "docs" / "analysis.md"
CLAIMS = REPOSITORY / "docs" / "claims.md"
PROBES = REPOSITORY / "docs" / "probes.md"
OTHER_PACKAGES = REPOSITORY / "docs" / "scikit_learn_and_spacy.md"
TUTORIALS = sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))
OWN_CONFIGS = {
    f"{name}.jsonnet"
    for name in ("topics", "reviews", "recipes", "small", "without", "domain", "german", "ner", "names")
}  # shown in full, or written by a command


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of code in a language, "" being those without one."""
    return [block.content for block in pages.blocks(path) if block.language == language]


# Pages that are run as a whole. The others have no outputs; what they have of Python is run, too.
# These begin in an empty folder.
SIMPLE = [
    README,
    *TUTORIALS,
    PREDICTING,
    LARGE_TEXTS,
    WORDS_IN_CONTEXT,
    CLAIMS,
    OTHER_PACKAGES,
    SPECIAL_DOMAIN,
    ANALYSIS,
    PROBES,
]
TABLE_TO_MODEL = REPOSITORY / "docs" / "table_to_model.md"
RUN = {TOUR, REPOSITORY / "docs" / "own_data.md", TABLE_TO_MODEL, PSYCHOLINGUISTICS, *SIMPLE}
PYTHON = [path for path in FILES if blocks(path, "python") and path not in RUN]


def commands(path: Path) -> Iterator[list[str]]:
    """The arguments of every `elmo-tasks` in the code of a file, in blocks and within lines."""
    inline = re.findall(r"`(elmo-tasks [a-z-]+ [^`]+)`", path.read_text(encoding="utf-8"))
    for text in [*blocks(path, ""), *(" ".join(each.split()) for each in inline)]:
        for line in re.sub(r"<\([^)]*\)", "FILE", text).replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if "elmo-tasks" in words:
                yield words[words.index("elmo-tasks") + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_python_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a file one after the other, in a folder with sample data for the quickstart and a biLM in DIR."""
    monkeypatch.chdir(tmp_path)
    write_sample_data("runs/quickstart-data", "ner", sentences=(40, 10, 10))
    random_bilm(TINY_OPTIONS).save("DIR/options.json", "DIR/weights.hdf5")
    names: dict[str, object] = {}
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), names)


@pytest.fixture
def check_page(shared_trainings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that runs a page in an empty folder, and compares what it shows with what is printed."""

    def check(page: Path) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ELMO_TASKS_DATA", pages.OTHER_DATA)
        wrong = [each for each in pages.run(page, tmp_path, shared_trainings) if not each.is_right()]
        texts = [f"shown:\n{each.block.content}\nprinted:\n{each.printed}\nlog:\n{each.log}" for each in wrong]
        assert not wrong, f"python -m tests.pages {page} mends it, or better sentences\n" + "\n".join(texts)

    return check


@pytest.mark.slow
@pytest.mark.parametrize("path", SIMPLE, ids=lambda path: path.stem)
def test_pages_show_what_their_commands_print(path: Path, check_page: Callable[..., None]) -> None:
    check_page(path)


@pytest.mark.slow
def test_psycholinguists_and_seqvec(tmp_path: Path, check_page: Callable[..., None]) -> None:
    """The biLM in DIR has the form of SeqVec's, with fewer units."""
    options = PUBLISHED_OPTIONS["original"]
    lstm = options.lstm.model_copy(update={"dim": 32, "projection_dim": 16})
    char_cnn = options.char_cnn.model_copy(update={"filters": ((1, 8), (2, 8), (3, 16))})
    bilm = random_bilm(options.model_copy(update={"lstm": lstm, "char_cnn": char_cnn}))
    (tmp_path / "DIR").mkdir()
    bilm.save(tmp_path / "DIR" / "options.json", tmp_path / "DIR" / "weights.hdf5")
    assert '"n_characters": 262' in (tmp_path / "DIR" / "options.json").read_text(encoding="utf-8")
    check_page(PSYCHOLINGUISTICS)
    with numpy.load(tmp_path / "proteins.npz") as found:
        assert list(found) == ["sp|P1", "sp|P2"]
        for name, residues in (("sp|P1", "SEQWENCE"), ("sp|P2", "PROTEIN")):
            layers = bilm(batch_to_ids([list(residues)])).layers[0, :, 1:-1]  # without the borders
            assert found[name] == pytest.approx(layers.sum(0).numpy(), abs=1e-4)


@pytest.mark.slow
def test_the_tour(tmp_path: Path, check_page: Callable[..., None]) -> None:
    check_page(TOUR)
    best = {
        name: json.loads((tmp_path / "runs" / name / "metrics.json").read_text())["best"]["validation"]["f1"]
        for name in ("recipes", "without")
    }
    shown = re.search(r"The F1 on `dev.csv` is (\d+) with ELMo and (\d+) without", TOUR.read_text(encoding="utf-8"))
    assert shown
    assert best["recipes"] == pytest.approx(float(shown[1]), abs=8)
    assert best["without"] == pytest.approx(float(shown[2]), abs=16)  # of 8 spans, one is 12
    assert best["recipes"] > best["without"]
    assert (tmp_path / "recipes.svg").is_file()


@pytest.mark.slow
def test_small_data_is_learned_by_the_commands_of_the_guide(tmp_path: Path, check_page: Callable[..., None]) -> None:
    """60 reviews, 40 pairs and 80 sentences, with 15, 12 and 16 to choose the best epoch."""
    shutil.copytree(REPOSITORY / "tests" / "small_data", tmp_path, dirs_exist_ok=True)
    check_page(REPOSITORY / "docs" / "own_data.md")
    for name, data in {"table": "train.csv", "pairs": "pairs.csv", "names": "names.tsv"}.items():
        scores = evaluate(tmp_path / "runs" / name, tmp_path / data)
        assert scores["f1" if name == "names" else "accuracy"] >= 90


@pytest.mark.slow
def test_from_a_table_to_a_model(tmp_path: Path, check_page: Callable[..., None]) -> None:
    """60 answers below a title, as in `title_rows.xlsx`; and 15 more, with and without labels."""
    answers = pandas.read_csv(REPOSITORY / "tests" / "small_data" / "survey.csv")
    for name, rows in {"survey": answers[:60], "corrected": answers, "new": answers[60:].drop(columns="Topic")}.items():
        with pandas.ExcelWriter(tmp_path / f"{name}.xlsx") as writer:
            rows.to_excel(writer, startrow=2, index=False)
            writer.sheets["Sheet1"]["A1"] = "Survey of May"
    check_page(TABLE_TO_MODEL)

    for name in ("doubtful", "predicted"):
        sheet = pandas.read_excel(tmp_path / f"{name}.xlsx", header=2)
        assert list(sheet["No"]) == list(range(61, 76))
        assert set(sheet["label"].dropna()) <= set(answers["Topic"])
    doubtful = pandas.read_excel(tmp_path / "doubtful.xlsx", header=2).sort_values("probability")
    assert list(doubtful["rank_of_doubt"][:5]) == [1, 2, 3, 4, 5]
    first = json.loads((tmp_path / "runs" / "survey" / "cross_validation.json").read_text())
    assert evaluate(tmp_path / "runs" / "survey", tmp_path / "survey.xlsx") == pytest.approx(first["scores"])


def test_the_table_of_surprisals_is_what_the_bilm_says() -> None:
    """Rows of pairs of a sentence and the surprisal of its word in bold."""
    pairs = re.findall(r"\| ([^|\s][^|]*\*\*[^|]*) \| (\d+\.\d) ", PSYCHOLINGUISTICS.read_text(encoding="utf-8"))
    assert len(pairs) == 10
    read_by_eye = (
        (REPOSITORY / "tests" / "extras" / "pretraining" / "read_by_eye.txt").read_text(encoding="utf-8").splitlines()
    )
    assert {marked.replace("**", "") for marked, _ in pairs} <= set(read_by_eye)
    bilm = elmo_tasks.load_language_model("default")
    for marked, shown in pairs:
        before, word, _ = marked.split("**")
        (sentence,) = bilm.score(marked.replace("**", ""))
        place = len(elmo_tasks.tokenize(before)[0]) if before else 0
        token = sentence.tokens[place]
        assert (token.token, token.forward / math.log(2)) == (word, pytest.approx(float(shown), abs=0.1)), marked


def test_every_output_is_compared() -> None:
    """A page with outputs is one of those that are run."""
    for path in {*FILES, *BILM_CARDS} - RUN:
        assert not any(block.is_output for block in pages.blocks(path)), f"{path}: add it to the pages that are run"


@pytest.mark.parametrize(
    ("shown", "printed", "is_right", "is_right_if_trained"),
    [
        ("[Boeing ORG] closed a mill.", "[Boeing ORG] closed a mill.", True, True),
        ("[Boeing ORG] closed a mill.", "[Boeing PER] closed a mill.", False, False),
        ("The [play] │ 0.886 │", "The   [play]   │ 0.885 │", True, True),
        ("The [play] │ 0.926 │", "The   [play]   │ 0.886 │", False, True),
        ("The [play] │ 0.926 │", "The   [play]   │ 0.751 │", False, False),
        ("are 78% were 11%", "are 77% were 11%", True, True),
        ("are 78% were 11%", "are 73% were 16%", False, True),
        ("positive ███ 48.4 %", "positive ██ 48.5 %", True, True),
        ("positive ███ 48.4 %", "positive ██ 48.9 %", False, True),
        ("1,400 sentences", "1,401 sentences", False, True),
        ("…\nf1 81.52\n…", "test\nf1 81.51\nloss 1.0", True, True),
        ("…\nf1 81.52\n…", "test\nf1 84.30\nloss 1.0", False, True),
        ("…\nf1 81.52\n…", "test\nf1 70.00\nloss 1.0", False, False),
        ("loss 1.63", "loss 2.03", False, False),
        ("f1 81.52", "f1 81.52\nloss 1.0", False, False),
        ("read in 3 s", "read in 12 s", True, True),
    ],
)
def test_what_is_shown_is_compared(shown: str, printed: str, is_right: bool, is_right_if_trained: bool) -> None:
    block = pages.Block("text", f"{shown}\n", (0, 0), None, True)
    found = [pages.Shown(block, f"{printed}\n", "", is_trained).is_right() for is_trained in (False, True)]
    assert found == [is_right, is_right_if_trained]


@pytest.mark.parametrize("path", [*FILES, REPOSITORY / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_commands_exist_and_configs_are_found(path: Path) -> None:
    for words in commands(path):
        if not any(word in words for word in ("…", "--help")):
            parsed = cli.make_parser(words).parse_args(words)
            config = getattr(parsed, "config", None) or "FILE"
            # What lies below runs/ is made by an earlier command.
            if config not in {"FILE", "NAME", *OWN_CONFIGS} and not config.startswith("runs/"):
                find_config(config)


MARK = re.compile(r"measured\s+with\s+the\s+biLM\s+of\s+(\d+)\s+million\s+tokens", re.IGNORECASE)
# Where numbers are those of a biLM before the one in the package.
EARLIER = {("log.md", "What was measured earlier", 109)}


def sections(path: Path) -> Iterator[tuple[str, str]]:
    """The titles of a page and of its sections, and their texts."""
    parts = re.split(r"^##? (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def test_what_takes_hours_says_with_which_bilm_it_was_measured() -> None:
    """With a new biLM in the package, what is not measured again must be added to `EARLIER`."""
    (current,) = re.findall(r"\*\*(\d+) million tokens\*\*", BILM_CARDS[0].read_text(encoding="utf-8"))
    marks = {
        (path.name, title, int(tokens))
        for path in FILES
        for title, text in sections(path)
        for tokens in MARK.findall(text)
    }
    assert {mark for mark in marks if mark[2] != int(current)} == EARLIER


def test_the_weights_of_the_layers_are_those_of_the_trained_models() -> None:
    names = {"inference": "inference", "named entities": "ner", "sentiment": "sentiment", "coreference": "coreference",
             "reading": "reading", "semantic roles": "roles"}  # fmt: skip
    text = dict(sections(REPOSITORY / "docs" / "paper_tables.md"))["The weights of the layers (figure 2)"]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == list(names)
    for task, strength, *shown in rows[1:]:
        run = REPOSITORY / "trained_models" / "elmo_tasks_models" / names[task]
        mixes = json.loads((run / "metrics.json").read_text())["best"]["elmo"]
        given = [mixes.get(place, {"weights": [], "gamma": None}) for place in ("input", "output")]
        cells = [(", ".join(f"{weight:.2f}" for weight in mix["weights"]), mix["gamma"]) for mix in given]
        assert shown == [each for mix, gamma in cells for each in (mix, "" if gamma is None else f"{gamma:.2f}")]
        regularizers = json.loads((run / "config.json").read_text())["trainer"]["regularizers"]
        assert strength == f"{sum(each['l2'] for each in regularizers):g}"


@pytest.mark.parametrize("name", ["log.md", "paper_tables.md", "probes.md", "results.md"])
def test_every_table_of_results_is_marked(name: str) -> None:
    """In its section, or for the page as a whole."""
    (_, start), *rest = sections(REPOSITORY / "docs" / name)
    for title, text in rest:
        has_scores = re.search(r"^\|.*\d\.\d", text, re.MULTILINE)
        assert not has_scores or MARK.search(start + text), f"{name}: {title}"
