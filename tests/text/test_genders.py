from __future__ import annotations

import pytest

from elmo_tasks.text.genders import ANY, FEMALE, MALE, SEVERAL, THING, is_pronoun, possible_kinds


@pytest.mark.parametrize(
    ("mention", "kinds"),
    [
        ("he", MALE),
        ("Her", FEMALE),
        ("it", THING),
        ("them", SEVERAL),
        ("I", MALE | FEMALE),
        ("you", MALE | FEMALE | SEVERAL),
        ("the old man who knew her", MALE),
        ("the king of Spain", MALE),
        ("an actress", FEMALE),
        ("the doctor", MALE | FEMALE),
        ("the doctors", SEVERAL),
        ("policewomen", SEVERAL),
        ("Mary", FEMALE),
        ("MARY", FEMALE),
        ("Mary 's", FEMALE),
        ("Mary 's brother", MALE),
        ("'s", ANY),
        ("Peter Smith", MALE),
        ("Mr. Mary", MALE),
        ("Miss King", FEMALE),
        ("Mary Baker", FEMALE),
        ("His Mother", FEMALE),
        ("the French King", MALE),
        ("The King", MALE),
        ("King Charles", MALE),
        ("Mrs. Peter", FEMALE),
        ("the Dr. Smith", MALE | FEMALE),
        ("Tom and Susan", SEVERAL),
        ("two cups", SEVERAL),
        ("two", ANY),
        ("and", ANY),
        ("mary", ANY),
        ("a cup", ANY),
        ("The", ANY),
        ("Paris", ANY),
        ("Mary Street", ANY),
        ("Smith", ANY),
        ("MARY STREET", ANY),
        ("that", ANY),
        ("a company of men", ANY),
    ],
)
def test_what_a_mention_can_refer_to(mention: str, kinds: int) -> None:
    assert possible_kinds(mention.split()) == kinds


def test_pronouns_are_single_words() -> None:
    assert is_pronoun(["Himself"])
    assert not is_pronoun(["Mary"])
    assert not is_pronoun(["her", "cup"])
