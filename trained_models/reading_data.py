"""Writes the data of the model `reading`: `python trained_models/reading_data.py DIR`.

Reads SQuAD 1.1 and a half of SQuAD 2.0's development set in $ELMO_TASKS_DATA, and writes four files in the format of
SQuAD 2.0:

- `train.json`: SQuAD 1.1's training set; every fourth of its questions once more, moved to another passage of its
  article; and three times the questions of twelve articles of SQuAD 2.0.
- `validation.json`: SQuAD 1.1's development set without the articles of SQuAD 2.0, with moved questions as well.
- `exchanged.json`: every eighth passage of SQuAD 1.1's training set with all of its questions in `train.json`, and up
  to three more of each passage, in which one name or year is exchanged for another of the same passage.
- `test.json`: the four other articles of SQuAD 2.0.

A question with an exchanged name has no answer: "Who founded Oslo?" in a passage that says who founded Bergen, and only
mentions Oslo. The model `ner` finds the names, so that a place is exchanged for a place.

A moved question has no answer. Its new passage is the one that is most similar to it (by the words, TF-IDF) of those
without its answer's text. Source: Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading
Comprehension", section 4.1.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer

from elmo_tasks.config.data_folder import data_folder
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.text import open_binary
from elmo_tasks.runs.load import load_predictor

EVERY, COPIES = 4, 3
PASSAGES, EXCHANGED = 8, 3
_YEAR = re.compile(r"\b(?:1[0-9]|20)[0-9]{2}\b")
# Every fourth title in the alphabet's order.
TEST_TITLES = ("Force", "Immune_system", "Packet_switching", "Yuan_dynasty")

Article = dict[str, Any]


def with_moved_questions(articles: Sequence[Article]) -> list[Article]:
    """The articles, with every fourth question once more in another passage, if one lacks its answer's text."""
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    words.fit(paragraph["context"] for article in articles for paragraph in article["paragraphs"])
    return [_with_moved_questions(article, words) for article in articles]


def _with_moved_questions(article: Article, words: TfidfVectorizer) -> Article:
    passages = [paragraph["context"] for paragraph in article["paragraphs"]]
    lower, moved = [passage.lower() for passage in passages], [list(p["qas"]) for p in article["paragraphs"]]
    asked = [(home, question) for home, p in enumerate(article["paragraphs"]) for question in p["qas"]][::EVERY]
    similar = words.transform([question["question"] for _, question in asked]) @ words.transform(passages).T
    for (home, question), row in zip(asked, similar.toarray(), strict=True):
        answers = [answer["text"].lower() for answer in question["answers"]]
        free = [at for at in range(len(passages)) if at != home and not any(text in lower[at] for text in answers)]
        if free:
            chosen = max(free, key=row.__getitem__)
            none = {"id": f"{question['id']}-moved", "question": question["question"]}
            moved[chosen].append({**none, "answers": [], "is_impossible": True})
    return {**article, "paragraphs": [{"context": t, "qas": q} for t, q in zip(passages, moved, strict=True)]}


def with_exchanged_names(articles: Sequence[Article], every: int = PASSAGES, most: int = EXCHANGED) -> list[Article]:
    """Every so-many-th passage of the articles, with up to `most` more questions that name something else of it."""
    passages = [paragraph for article in articles for paragraph in article["paragraphs"]][::every]
    names = load_predictor("ner")
    rng = random.Random(1)
    paragraphs = []
    for passage, sentences in zip(passages, names.each([each["context"] for each in passages]), strict=True):
        found = {span["text"]: span["label"] for sentence in sentences for span in sentence["spans"]}
        found |= dict.fromkeys(_YEAR.findall(passage["context"]), "year")
        exchanged = []
        for question in rng.sample(passage["qas"], len(passage["qas"])):
            text = question["question"]
            changes = [
                re.sub(rf"\b{re.escape(name)}\b", other.replace("\\", "\\\\"), text)
                for name, kind in found.items()
                if re.search(rf"\b{re.escape(name)}\b", text)
                for other, its_kind in found.items()
                if kind == its_kind
                and other not in text
                and name not in other
                and other not in name
                and all(other not in answer["text"] for answer in question["answers"])
            ]
            if changes and question["answers"]:
                none = {"id": f"{question['id']}-exchanged", "question": rng.choice(changes)}
                exchanged.append({**none, "answers": [], "is_impossible": True})
        paragraphs.append({"context": passage["context"], "qas": [*passage["qas"], *exchanged[:most]]})
    return [{"title": "Exchanged", "paragraphs": paragraphs}]


def copied(articles: Sequence[Article], number: int) -> list[Article]:
    """The articles, with ids that say which copy it is."""

    def copy(paragraph: Article) -> Article:
        questions = [{**question, "id": f"{question['id']}-{number}"} for question in paragraph["qas"]]
        return {**paragraph, "qas": questions}

    return [{**article, "paragraphs": list(map(copy, article["paragraphs"]))} for article in articles]


def read_articles(path: Path) -> list[Article]:
    with open_binary(path) as stream:
        articles: list[Article] = json.load(stream)["data"]
    return articles


def write_articles(path: Path, articles: Sequence[Article]) -> None:
    with atomic_write(path) as stream:
        stream.write(json.dumps({"version": "v2.0", "data": articles}).encode())
    questions = [question for article in articles for p in article["paragraphs"] for question in p["qas"]]
    without = sum(not question["answers"] for question in questions)
    print(f"{path.name}: {len(articles)} articles, {len(questions):,} questions, {without:,} without an answer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    data = data_folder()
    second = read_articles(data / "squad2/dev-v2.0-half.json.xz")
    titles = {article["title"] for article in second}
    others = [each for each in read_articles(data / "squad/dev-v1.1.json") if each["title"] not in titles]
    learned = [article for article in second if article["title"] not in TEST_TITLES]
    train = with_moved_questions(read_articles(data / "squad/train-v1.1.json.xz"))
    write_articles(folder / "exchanged.json", with_exchanged_names(train))
    for number in range(COPIES):
        train += copied(learned, number)
    write_articles(folder / "train.json", train)
    write_articles(folder / "validation.json", with_moved_questions(others))
    write_articles(folder / "test.json", [article for article in second if article["title"] in TEST_TITLES])


if __name__ == "__main__":
    main()
