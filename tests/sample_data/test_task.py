"""What the sample data of all tasks share: the files of each split."""

from __future__ import annotations

import lzma
from pathlib import Path

from elmo_tasks.sample_data.task import SampleTask, files_of_splits, write_text


def test_only_the_training_file_can_be_compressed() -> None:
    assert files_of_splits("a/{split}.txt{xz}", "b/{conll_2012}.txt") == [
        ["a/train.txt.xz", "b/train.txt"],
        ["a/dev.txt", "b/development.txt"],
        ["a/test.txt", "b/test.txt"],
    ]


def test_a_file_is_compressed_if_its_name_says_so(tmp_path: Path) -> None:
    plain, compressed = (write_text(tmp_path / "new" / name, "é\n") for name in ("a.txt", "a.txt.xz"))
    assert plain.read_bytes() == lzma.decompress(compressed.read_bytes()) == "é\n".encode()


def test_a_split_has_its_own_names_and_as_many_sentences_as_are_asked_for() -> None:
    given = []

    def lines(names: list[str], count: int, generator: object, file: str) -> list[str]:
        given.append((names, count, file))
        return [f"{count} in {file}"] * count

    task = SampleTask(
        files=[["x/one.txt", "y/two.txt"], ["x/dev.txt"]],
        lines=lines,  # type: ignore[arg-type]
        text=lambda names, generator: [[*names]],
        num_texts=3,
        seed_prefix="x ",
        split_seed="{split} {file}",
        num_names=(4, 2),
    )
    assert dict(task.texts(1, (2, 1, 5))) == {
        "x/one.txt": "2 in one.txt\n2 in one.txt\n",
        "y/two.txt": "2 in one.txt\n2 in one.txt\n",
        "x/dev.txt": "1 in dev.txt\n",
    }
    (train, *_), (dev, *_) = given
    assert (len(train), len(dev)) == (4, 2)
    assert not {*train} & {*dev}
    assert list(task.corpus(1)) == [[*train, *dev]] * 3


def test_a_synonym_takes_the_place_of_a_word_in_a_whole_line_of_development_and_test_data() -> None:
    task = SampleTask(
        files=[["train.txt"], ["dev.txt"]],
        lines=lambda names, count, generator, file: ["(2 old) older (3 old)"] * count,
        text=lambda names, generator: [],
        num_texts=0,
        seed_prefix="x ",
        split_seed="{split}",
        synonyms={"old": ("aged", "ancient")},
    )
    texts = dict(task.texts(1, (20, 40, 1)))
    assert set(texts["train.txt"].splitlines()) == {"(2 old) older (3 old)"}
    expected = {f"(2 {word}) older (3 {word})" for word in ("old", "aged", "ancient")}
    assert set(texts["dev.txt"].splitlines()) == expected
