from __future__ import annotations

import pytest

from elmo_tasks.text.genders import ANY, FEMALE, MALE, SEVERAL, THING, is_pronoun, possible_kinds

KINDS = {
    MALE: ["he", "the old man who knew her", "the king of Spain", "Mary 's brother", "Peter Smith", "Mr. Mary",
           "the French King", "The King", "King Charles"],
    FEMALE: ["Her", "an actress", "Mary", "MARY", "Mary 's", "Miss King", "Mary Baker", "His Mother", "Mrs. Peter"],
    THING: ["it"],
    SEVERAL: ["them", "the doctors", "policewomen", "Tom and Susan", "two cups"],
    MALE | FEMALE: ["I", "the doctor", "the Dr. Smith"],
    MALE | FEMALE | SEVERAL: ["you"],
    ANY: ["two", "and", "mary", "a cup", "The", "Paris", "Mary Street", "Smith", "MARY STREET", "that", "'s",
          "a company of men"],
}  # fmt: skip


@pytest.mark.parametrize("kinds", KINDS)
def test_what_a_mention_can_refer_to(kinds: int) -> None:
    assert {mention: possible_kinds(mention.split()) for mention in KINDS[kinds]} == dict.fromkeys(KINDS[kinds], kinds)


def test_pronouns_are_single_words() -> None:
    assert is_pronoun(["Himself"])
    assert not is_pronoun(["Mary"])
    assert not is_pronoun(["her", "cup"])


def test_no_kind_is_a_part_of_another() -> None:
    assert MALE + FEMALE + THING + SEVERAL == ANY
