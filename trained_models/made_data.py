"""Writes made-up training data for three of the trained models: `python trained_models/made_data.py DIR`.

Each file adds to a public data set what that has too little of. Grammars make the texts, which are plain and a little
dull on purpose: what counts is that two texts differ in one thing, and with it in what is right.

- `pairs.jsonl`, for inference, in SNLI's format: who does what, negations, possibilities, conditions, quantities, kinds.
- `sentences.txt`, for sentiment, as flat trees of the Stanford Sentiment Treebank: negations that turn an opinion,
  facts without one, goods and services.
- `stories.conll`, for coreference, in CoNLL-2012's format: several persons and things in a few sentences.

The sentences in `own_texts` are left out, so that these can measure the models.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from nltk.tokenize import TreebankWordTokenizer

from elmo_tasks.files.atomic import atomic_write

OWN_TEXTS = Path(__file__).resolve().parent / "own_texts"
ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
Pair = tuple[str, str, str]  # premise, hypothesis, label

PEOPLE = """man woman boy girl teacher doctor nurse farmer singer dancer player coach waiter chef policeman soldier
student professor driver pilot sailor painter writer actor actress judge lawyer clown baker butcher gardener mother
father uncle aunt grandmother grandfather neighbor manager worker plumber tourist child runner skier cyclist""".split()
ANIMALS = "dog cat horse cow goat sheep bird lion tiger bear monkey fox wolf elephant rabbit duck pig".split()
# Base form, past, participle, -ing form.
TRANSITIVE = [
    line.split()
    for line in """chase chased chased chasing
kick kicked kicked kicking
see saw seen seeing
follow followed followed following
hug hugged hugged hugging
push pushed pushed pushing
pull pulled pulled pulling
help helped helped helping
watch watched watched watching
hit hit hit hitting
carry carried carried carrying
teach taught taught teaching
kiss kissed kissed kissing
greet greeted greeted greeting
call called called calling
visit visited visited visiting
hear heard heard hearing
touch touched touched touching
catch caught caught catching
attack attacked attacked attacking
photograph photographed photographed photographing
scare scared scared scaring
feed fed fed feeding
lead led led leading
find found found finding
thank thanked thanked thanking
invite invited invited inviting
warn warned warned warning
praise praised praised praising
blame blamed blamed blaming""".splitlines()
]
# -ing form, past, base form.
ACTIONS = [
    tuple(part.strip() for part in line.split("|"))
    for line in """sleeping|slept|sleep
eating lunch|ate lunch|eat lunch
reading a book|read a book|read a book
singing a song|sang a song|sing a song
playing the guitar|played the guitar|play the guitar
riding a bicycle|rode a bicycle|ride a bicycle
running in the park|ran in the park|run in the park
swimming in the sea|swam in the sea|swim in the sea
cooking dinner|cooked dinner|cook dinner
dancing on the stage|danced on the stage|dance on the stage
washing the car|washed the car|wash the car
drinking coffee|drank coffee|drink coffee
waiting for the bus|waited for the bus|wait for the bus
painting a fence|painted a fence|paint a fence
climbing a ladder|climbed a ladder|climb a ladder
talking on the phone|talked on the phone|talk on the phone
walking along the beach|walked along the beach|walk along the beach
buying bread|bought bread|buy bread
writing a letter|wrote a letter|write a letter
laughing|laughed|laugh
crying|cried|cry
fishing|fished|fish
smoking|smoked|smoke
jumping into the water|jumped into the water|jump into the water
throwing a ball|threw a ball|throw a ball
sitting on a bench|sat on a bench|sit on a bench
winning the race|won the race|win the race
selling flowers|sold flowers|sell flowers
opening the window|opened the window|open the window
closing the gate|closed the gate|close the gate""".splitlines()
]
# A kind, and the wider kind.
KINDS = [
    line.split("/")
    for line in """dog/animal
cat/animal
horse/animal
cow/animal
beagle/dog
terrier/dog
puppy/dog
kitten/cat
parrot/bird
eagle/bird
rose/flower
tulip/flower
oak/tree
violin/musical instrument
guitar/musical instrument
piano/musical instrument
hammer/tool
apple/fruit
banana/fruit
carrot/vegetable
sedan/car
truck/vehicle
bus/vehicle
sailboat/boat
sofa/piece of furniture
table/piece of furniture
rifle/weapon
novel/book
sandal/shoe
jacket/piece of clothing
coat/piece of clothing
burger/sandwich
beer/drink
woman/person
man/person
boy/child
girl/child
teacher/person
nurse/person
surgeon/doctor
guitarist/musician
drummer/musician
goalkeeper/player""".splitlines()
]
OPPOSITES = [
    line.split("/")
    for line in """open/closed
asleep/awake
alive/dead
empty/full
wet/dry
clean/dirty
alone/in company
inside/outside
indoors/outdoors
safe/in danger
on time/late
hungry/full
broken/in working order""".splitlines()
]
THINGS_OF_STATES = ["The door", "The window", "The shop", "The gate", "The museum", "The bottle", "The box", "The bucket"]
COMPARED = "tall/short old/young heavy/light fast/slow strong/weak rich/poor".split()
PLACES = ["in the park", "on the beach", "in the street", "in the kitchen", "in the garden", "at the station"]
COLORS = "red blue green yellow black white orange purple".split()
GARMENTS = "shirt jacket hat coat dress scarf sweater helmet".split()


def a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def plural(noun: str) -> str:
    irregular = {"man": "men", "woman": "women", "child": "children", "policeman": "policemen", "sheep": "sheep"}
    irregular |= {"wolf": "wolves", "person": "people"}
    if noun in irregular:
        return irregular[noun]
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "ss")) else f"{noun}s"


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


class Pairs:
    """Draws pairs of each kind. The labels of each kind are about even, also for each form of the hypothesis."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def two(self) -> tuple[str, str]:
        return tuple(self.random.sample(PEOPLE + ANIMALS, 2))  # type: ignore[return-value]

    def who_does_what(self) -> Iterator[Pair]:
        (x, y), verb = self.two(), self.random.choice(TRANSITIVE)
        base, past, participle, ing = verb
        det = self.random.choice(["the {}", "the {}", "a {}"])
        x, y = (det.format(each) if det[0] == "t" else a(each) for each in (x, y))
        active, passive = self.random.choice(
            [
                (f"{{}} {past} {{}}", f"{{}} was {participle} by {{}}"),
                (f"{{}} is {ing} {{}}", f"{{}} is being {participle} by {{}}"),
                (f"{{}} will {base} {{}}", f"{{}} will be {participle} by {{}}"),
            ]
        )
        end = self.random.choice(["", "", f" {self.random.choice(PLACES)}"])
        forms = {
            True: [active.format(x, y), passive.format(y, x)],
            False: [active.format(y, x), passive.format(x, y)],
        }
        premise = self.random.choice(forms[True])
        for same, label in ((True, ENTAILMENT), (False, CONTRADICTION)):
            for hypothesis in forms[same]:
                if hypothesis != premise:
                    yield sentence(premise + end), sentence(hypothesis), label
        third = self.random.choice([each for each in PEOPLE if each not in (x, y)])
        yield sentence(premise + end), sentence(active.format(x, f"the {third}")), NEUTRAL

    def giving(self) -> Iterator[Pair]:
        x, y = (f"the {each}" for each in self.random.sample(PEOPLE, 2))
        thing = self.random.choice(["a book", "a letter", "a flower", "an apple", "a ring", "some money", "a key"])
        gave, got = self.random.choice([("gave", "got"), ("sent", "received"), ("sold", "bought"), ("lent", "borrowed")])
        right = [f"{x} {gave} {y} {thing}", f"{x} {gave} {thing} to {y}", f"{y} {got} {thing} from {x}"]
        wrong = [f"{y} {gave} {x} {thing}", f"{y} {gave} {thing} to {x}", f"{x} {got} {thing} from {y}"]
        premise, other = self.random.sample(right, 2)
        yield sentence(premise), sentence(other), ENTAILMENT
        yield sentence(premise), sentence(self.random.choice(wrong)), CONTRADICTION

    def comparisons(self) -> Iterator[Pair]:
        (x, y), (more, less) = self.two(), self.random.choice(COMPARED).split("/")
        more, less = (f"{each[:-1]}ier" if each.endswith("y") else f"{each}er" for each in (more, less))
        if self.random.random() < 0.5:
            more, less = less, more
        premise = f"the {x} is {more} than the {y}"
        yield sentence(premise), sentence(f"the {y} is {less} than the {x}"), ENTAILMENT
        yield sentence(premise), sentence(f"the {y} is {more} than the {x}"), CONTRADICTION
        yield sentence(premise), sentence(f"the {x} is {less} than the {y}"), CONTRADICTION
        yield sentence(premise), sentence(f"the {x} is not {less} than the {y}"), ENTAILMENT

    def relative_clauses(self) -> Iterator[Pair]:
        (x, y), verb, action = self.two(), self.random.choice(TRANSITIVE), self.random.choice(ACTIONS)
        premise = f"the {x} that {verb[1]} the {y} is {action[0]}"
        if self.random.random() < 0.5:
            premise = f"the {x} that the {y} {verb[1]} is {action[0]}"
        yield sentence(premise), sentence(f"the {x} is {action[0]}"), ENTAILMENT
        yield sentence(premise), sentence(f"the {y} is {action[0]}"), NEUTRAL
        yield sentence(premise), sentence(f"the {x} is not {action[0]}"), CONTRADICTION

    def negations(self) -> Iterator[Pair]:
        (x, _), (first, second) = self.two(), self.random.sample(ACTIONS, 2)
        who, negated = self.random.choice([f"the {x}", a(x)]), self.random.choice(["is not", "isn't", "is no longer"])
        is_so, is_not = f"{who} is {first[0]}", f"{who} {negated} {first[0]}"
        yield sentence(is_so), sentence(is_not), CONTRADICTION
        yield sentence(is_not), sentence(is_so), CONTRADICTION
        yield sentence(is_not), sentence(f"{who} {self.random.choice(['is not', 'isn’t'])} {first[0]}"), ENTAILMENT
        yield sentence(is_not), sentence(f"{who} is {second[0]}"), NEUTRAL
        yield sentence(is_not), sentence(f"{who} is not {second[0]}"), NEUTRAL
        yield sentence(f"it is not true that {is_so}"), sentence(is_so), CONTRADICTION
        yield sentence(f"{who} did not {first[2]}"), sentence(f"{who} {first[1]}"), CONTRADICTION
        yield sentence(f"{who} {first[1]}"), sentence(f"{who} never {first[1]}"), CONTRADICTION

    def nobody(self) -> Iterator[Pair]:
        kind, action = self.random.choice(PEOPLE), self.random.choice(ACTIONS)[0]
        place = "" if any(word in action for word in (" in ", " on ", " along ")) else self.random.choice(PLACES)
        none = self.random.choice(["nobody is", "no one is", "there is nobody", f"no {kind} is"])
        empty = sentence(f"{none} {action} {place}".strip())
        some = self.random.choice(["somebody", "someone"]) if none.startswith(("nob", "no o", "there")) else a(kind)
        yield empty, sentence(f"{self.random.choice([some, a(kind)])} is {action}"), CONTRADICTION
        yield empty, sentence(f"no {kind} is {action}"), ENTAILMENT
        yield sentence(f"{a(kind)} is {action} {place}".strip()), sentence(f"nobody is {action}"), CONTRADICTION
        yield sentence(f"{a(kind)} is {action} {place}".strip()), sentence(f"somebody is {action}"), ENTAILMENT
        yield sentence(f"no {kind} is {action}"), sentence(f"nobody is {action}"), NEUTRAL

    def states(self) -> Iterator[Pair]:
        one, other = self.random.sample(self.random.choice(OPPOSITES), 2)
        who = f"the {self.random.choice(PEOPLE)}"
        of_things = "open closed empty full wet dry clean dirty".split()
        thing = self.random.choice(THINGS_OF_STATES) if one in of_things else who
        yield sentence(f"{thing} is {one}"), sentence(f"{thing} is {other}"), CONTRADICTION
        yield sentence(f"{thing} is {one}"), sentence(f"{thing} is not {other}"), ENTAILMENT
        yield sentence(f"{thing} is {one}"), sentence(f"{thing} is not {one}"), CONTRADICTION
        yield sentence(f"{thing} is not {one}"), sentence(f"{thing} is {one}"), CONTRADICTION
        if other not in ("full", "in company", "in danger"):
            yield sentence(f"{thing} is not {one}"), sentence(f"{thing} is {other}"), ENTAILMENT

    def possibilities(self) -> Iterator[Pair]:
        who, (ing, past, base) = f"the {self.random.choice(PEOPLE)}", self.random.choice(ACTIONS)
        other = self.random.choice([each for each in PEOPLE if f"the {each}" != who])
        open_ = [
            (f"{who} may be {ing}", f"{who} is {ing}"),
            (f"{who} might be {ing}", f"{who} is {ing}"),
            (f"perhaps {who} is {ing}", f"{who} is {ing}"),
            (f"{who} wants to {base}", f"{who} {past}"),
            (f"{who} hopes to {base}", f"{who} is {ing}"),
            (f"{who} tried to {base}", f"{who} {past}"),
            (f"{who} plans to {base}", f"{who} {past}"),
            (f"the {other} asked {who} to {base}", f"{who} {past}"),
            (f"the {other} says that {who} is {ing}", f"{who} is {ing}"),
            (f"the {other} thinks that {who} is {ing}", f"{who} is {ing}"),
            (f"{who} can {base}", f"{who} is {ing}"),
        ]
        certain = [
            (f"{who} managed to {base}", f"{who} {past}"),
            (f"{who} is surely {ing}", f"{who} is {ing}"),
            (f"the {other} knows that {who} is {ing}", f"{who} is {ing}"),
            (f"the {other} sees that {who} is {ing}", f"{who} is {ing}"),
            (f"{who} remembered to {base}", f"{who} {past}"),
            (f"{who} was able to {base} and did so", f"{who} {past}"),
        ]
        false = [
            (f"{who} forgot to {base}", f"{who} {past}"),
            (f"{who} refused to {base}", f"{who} {past}"),
            (f"{who} failed to {base}", f"{who} {past}"),
            (f"{who} only pretends to be {ing}", f"{who} is {ing}"),
            (f"{who} was too tired to {base}", f"{who} {past}"),
            (f"the {other} kept {who} from {ing}", f"{who} {past}"),
        ]
        for found, label in ((open_, NEUTRAL), (certain, ENTAILMENT), (false, CONTRADICTION)):
            premise, hypothesis = self.random.choice(found)
            yield sentence(premise), sentence(hypothesis), label
        yield sentence(f"{who} forgot to {base}"), sentence(f"{who} did not {base}"), ENTAILMENT
        yield sentence(f"{who} may be {ing}"), sentence(f"{who} is not {ing}"), NEUTRAL
        yield sentence(f"{who} managed to {base}"), sentence(f"{who} did not {base}"), CONTRADICTION

    def conditions(self) -> Iterator[Pair]:
        (x, y), (one, two) = self.random.sample(PEOPLE, 2), self.random.sample(ACTIONS, 2)
        first, second = f"the {x} is {one[0]}", f"the {y} is {two[0]}"
        open_ = [f"if {first}, {second}", f"{second} if {first}", f"unless {first}, {second}", f"{second} unless {first}"]
        open_ += [f"either {first} or {second}", f"{first}, or {second}"]
        certain = [f"because {first}, {second}", f"{second} because {first}", f"although {first}, {second}"]
        certain += [f"{first}, and {second}", f"{first} while {second}", f"{first}, but {second}"]
        for found, label in ((open_, NEUTRAL), (certain, ENTAILMENT)):
            yield sentence(self.random.choice(found)), sentence(self.random.choice([first, second])), label
        negated = self.random.choice([first, second]).replace(" is ", " is not ")
        yield sentence(self.random.choice(open_)), sentence(negated), NEUTRAL
        yield sentence(self.random.choice(certain)), sentence(negated), CONTRADICTION

    def lists(self) -> Iterator[Pair]:
        x, z, w = self.random.sample(PEOPLE, 3)
        one, two = (a(each) for each in self.random.sample([kind for kind, _ in KINDS[10:33]], 2))
        verb = self.random.choice(["bought", "has", "saw", "sold", "found", "is carrying", "wants"])
        either = self.random.choice([one, two])
        yield sentence(f"the {x} {verb} {one} and {two}"), sentence(f"the {x} {verb} {either}"), ENTAILMENT
        yield sentence(f"the {x} {verb} {one} or {two}"), sentence(f"the {x} {verb} {either}"), NEUTRAL
        if verb not in ("is carrying", "wants", "has"):
            yield sentence(f"the {x} {verb} neither {one} nor {two}"), sentence(f"the {x} {verb} {either}"), CONTRADICTION
        action, who = self.random.choice(ACTIONS), self.random.choice([z, w])
        yield sentence(f"the {z} and the {w} {action[1]}"), sentence(f"the {who} {action[1]}"), ENTAILMENT
        yield sentence(f"the {z} or the {w} {action[1]}"), sentence(f"the {who} {action[1]}"), NEUTRAL
        yield sentence(f"neither the {z} nor the {w} {action[1]}"), sentence(f"the {who} {action[1]}"), CONTRADICTION

    def quantities(self) -> Iterator[Pair]:
        kinds, action = plural(self.random.choice(PEOPLE + ANIMALS)), self.random.choice(ACTIONS)[0]
        all_ = self.random.choice([f"all the {kinds}", f"all of the {kinds}", f"all {kinds}"])
        some = self.random.choice([f"some {kinds}", f"some of the {kinds}", f"a few {kinds}"])
        yield sentence(f"{all_} are {action}"), sentence(f"{some} are {action}"), ENTAILMENT
        yield sentence(f"{some} are {action}"), sentence(f"{all_} are {action}"), NEUTRAL
        yield sentence(f"none of the {kinds} are {action}"), sentence(f"{some} are {action}"), CONTRADICTION
        yield sentence(f"{all_} are {action}"), sentence(f"no {kinds} are {action}"), CONTRADICTION
        yield sentence(f"most of the {kinds} are {action}"), sentence(f"{all_} are {action}"), NEUTRAL
        yield sentence(f"most of the {kinds} are {action}"), sentence(f"{some} are {action}"), ENTAILMENT
        yield sentence(f"not all of the {kinds} are {action}"), sentence(f"{all_} are {action}"), CONTRADICTION
        few, many = self.random.sample(["two", "three", "four", "five", "six", "seven"], 2)
        yield sentence(f"{few} {kinds} are {action}"), sentence(f"there are {many} {kinds}"), CONTRADICTION
        yield sentence(f"{few} {kinds} are {action}"), sentence(f"there are no {kinds}"), CONTRADICTION
        yield sentence(f"{few} {kinds} are {action}"), sentence(f"there are {kinds}"), ENTAILMENT

    def kinds(self) -> Iterator[Pair]:
        narrow, wide = self.random.choice(KINDS)
        x, verb = self.random.choice(PEOPLE), self.random.choice(["bought", "saw", "found", "is looking at", "is near"])
        place = self.random.choice(PLACES)
        for form in (f"the {x} {verb} {{}}", f"there is {{}} {place}"):
            yield sentence(form.format(a(narrow))), sentence(form.format(a(wide))), ENTAILMENT
            yield sentence(form.format(a(wide))), sentence(form.format(a(narrow))), NEUTRAL
        others = [each for each, above in KINDS if above == wide and each != narrow] or ["stone"]
        yield sentence(f"this is {a(narrow)}"), sentence(f"this is {a(self.random.choice(others))}"), CONTRADICTION
        yield sentence(f"this is not {a(wide)}"), sentence(f"this is not {a(narrow)}"), ENTAILMENT
        yield sentence(f"this is not {a(narrow)}"), sentence(f"this is not {a(wide)}"), NEUTRAL
        yield sentence(f"this is not {a(wide)}"), sentence(f"this is {a(narrow)}"), CONTRADICTION

    def descriptions(self) -> Iterator[Pair]:
        who, garment, action = self.random.choice(PEOPLE), self.random.choice(GARMENTS), self.random.choice(ACTIONS)[0]
        color, other = self.random.sample(COLORS, 2)
        full = f"{a(who)} in {a(color)} {garment} is {action}"
        yield sentence(full), sentence(f"{a(who)} is {action}"), ENTAILMENT
        yield sentence(f"{a(who)} is {action}"), sentence(full), NEUTRAL
        yield sentence(full), sentence(f"the {who} wears {a(other)} {garment}"), CONTRADICTION
        yield sentence(full), sentence(f"the {who} wears {a(color)} {garment}"), ENTAILMENT


def pairs(seed: int = 1, number: int = 6000) -> list[Pair]:
    source = Pairs(seed)
    kinds: list[tuple[Callable[[], Iterator[Pair]], int]] = [
        (source.who_does_what, 4),
        (source.giving, 2),
        (source.comparisons, 1),
        (source.relative_clauses, 1),
        (source.negations, 2),
        (source.nobody, 1),
        (source.states, 1),
        (source.possibilities, 3),
        (source.conditions, 2),
        (source.lists, 1),
        (source.quantities, 1),
        (source.kinds, 1),
        (source.descriptions, 1),
    ]
    own, by_label = own_pairs(), dict[str, dict[Pair, None]]()
    while min(map(len, by_label.values()), default=0) < number // 3:
        for kind, times in kinds:
            for pair in itertools.chain.from_iterable(kind() for _ in range(times)):
                if pair[:2] not in own:
                    by_label.setdefault(pair[2], {})[pair] = None
    kept = [pair for found in by_label.values() for pair in source.random.sample(list(found), number // 3)]
    source.random.shuffle(kept)
    return kept


def own_pairs() -> set[tuple[str, str]]:
    lines = (OWN_TEXTS / "visitors/inference.txt").read_text(encoding="utf-8").splitlines()
    return {tuple(line.split("\t")[1:]) for line in lines}  # type: ignore[misc]


# Sentiment. Words that praise and words that blame, then forms with the sentiment that they have with either.
GOOD = """good great funny clever moving exciting charming beautiful honest fresh convincing warm interesting original
entertaining delicious friendly helpful comfortable reliable""".split()
BAD = """bad boring dull silly slow weak ugly cheap annoying predictable tedious lazy awful flat pretentious rude dirty
noisy useless disappointing""".split()
SUBJECTS = """the film|the movie|the story|the book|the show|the acting|the ending|the music|the hotel|the food|the service
the staff|the room|the phone|the game|the concert|this restaurant|this place|the plot|the script""".replace("\n", "|").split("|")
# A form, what it says with a good word, and with a bad one.
TURNS = [
    ("{s} is {w}", 3, 1),
    ("{s} is not {w}", 1, 3),
    ("{s} is n't {w} at all", 1, 3),
    ("not {w} at all", 1, 3),
    ("{s} is never {w}", 1, 3),
    ("{s} was anything but {w}", 1, 3),
    ("{s} is far from {w}", 1, 3),
    ("nothing about {s} is {w}", 1, 3),
    ("there is nothing {w} about {s}", 1, 3),
    ("i did not find {s} {w}", 1, 3),
    ("nobody could call {s} {w}", 1, 3),
    ("{s} could not be more {w}", 4, 0),
    ("i have never seen anything so {w}", 4, 0),
    ("{s} never gets {w}", 1, 3),
    ("{s} is hardly {w}", 1, 3),
    ("{s} is too {w}", 3, 1),
    ("{s} was less {w} than i expected", 1, 3),
    ("{s} was more {w} than i expected", 3, 1),
    ("{s} could have been more {w}", 1, 3),
    ("{s} is really {w}", 4, 0),
    ("i thought that {s} was {w}", 3, 1),
    ("{s} is {w} , not {x}", 3, 1),
]
# Whole sentences with their sentiment.
SAYINGS = """3 you will not regret it
3 you will not be disappointed by {s}
3 you ca n't go wrong with {s}
3 i have nothing to complain about
3 no complaints about {s}
3 nobody left without a good word about {s}
3 not a single dull minute
4 do not miss {s}
4 i could not stop watching {s}
4 we could not stop laughing about {s}
4 i can not recommend {s} enough
4 {s} could not be better
4 it does not get any better than this
4 i would not change a thing about {s}
3 there is not much that i would change about {s}
3 without a doubt worth your time
3 {s} never disappoints
3 {s} never drags
3 {s} is better than i thought
3 i did not expect to like {s} , but i did
3 i would go there again
3 it works without any problem
3 {s} arrived quickly and works well
3 they solved my problem at once
3 the waiter was friendly and quick
3 i would watch {s} again
1 i would not watch {s} again
1 i would not go there again
1 i would not recommend {s}
0 do not buy this
0 do not waste your time on {s}
0 do not go to this place
1 you will regret it
1 you will be disappointed by {s}
1 {s} never comes alive
1 {s} never convinced me
1 nobody laughed
1 i could not finish {s}
1 i could not wait for {s} to end
1 i can not recommend {s}
1 {s} could be better
1 {s} could have been great
1 {s} should have been much shorter
1 {s} is worse than i thought
1 i expected to like {s} , but i did not
1 it does not work
1 it stopped working after a week
1 {s} arrived late and broken
1 nobody answered my calls
1 we waited for an hour and the soup was cold
1 the waiter was slow and unfriendly
1 {s} lacks any charm
1 {s} has no heart
1 i almost fell asleep during {s}
1 enough is enough
0 i want my money back
0 the worst evening of my life
4 the best evening of my life
4 the best meal that i have ever had
0 the worst meal that i have ever had
2 {s} is neither good nor bad
2 some will like {s} and some will not
2 {s} is about {n} minutes long
2 {s} lasts {n} minutes
2 the book has {n} pages
2 {s} opens at {n} o'clock
2 {s} closes on {d}
2 {s} starts on {d}
2 the film was made in {p} in {y}
2 {s} was first shown in {y}
2 the story takes place in {p}
2 the director was born in {p}
2 the main part is played by an actor from {p}
2 the restaurant has {n} tables
2 the hotel is close to the station
2 the phone comes with a cable
2 the box contains two lamps and a cable
2 the package was sent on {d}
2 the room has a bed and a desk
2 the next part begins where this one ends
2 we went there on {d}
2 i bought it in {y}
2 there is a new menu since {d}
2 the concert took place in {p}
2 the price is {n} dollars
2 breakfast is served until ten
2 the book was translated into {n} languages
2 the film tells of a family from {p}""".splitlines()
CITIES = "Paris London Rome Canada Spain Iceland Mexico Prague Chicago Brazil Norway India".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def sentences(seed: int = 1, number: int = 1500) -> list[tuple[int, str]]:
    rng, found = random.Random(seed), dict[tuple[int, str], None]()
    own = own_sentences()
    while len(found) < number:
        blanks = {"s": rng.choice(SUBJECTS), "n": str(rng.randint(7, 180)), "y": str(rng.randint(1950, 2025))}
        blanks |= {"d": rng.choice(DAYS), "p": rng.choice(CITIES)}
        if rng.random() < 0.5:
            form, good, bad = rng.choice(TURNS)
            is_good = rng.random() < 0.5
            words, others = (GOOD, BAD) if is_good else (BAD, GOOD)
            text = form.format(**blanks, w=rng.choice(words), x=rng.choice(others))
            found[(good if is_good else bad), text] = None
        else:
            facts = [each for each in SAYINGS if each.startswith("2")]
            opinions = [each for each in SAYINGS if not each.startswith("2")]
            sentiment, _, form = rng.choice(facts if rng.random() < 0.5 else opinions).partition(" ")
            found[int(sentiment), form.format(**blanks)] = None
    kept = [each for each in found if plain(each[1]) not in own]
    rng.shuffle(kept)
    return [(value, f"{text[0].upper()}{text[1:]} {rng.choice(['.', '.', '.', '!', ''])}".strip()) for value, text in kept]


def plain(text: str) -> str:
    return re.sub(r"[^a-z]+", "", text.lower())


def own_sentences() -> set[str]:
    visitors = (OWN_TEXTS / "visitors/sentiment.txt").read_text(encoding="utf-8").splitlines()
    files = [OWN_TEXTS / f"sentiment_{name}.txt" for name in ("films", "other", "ewt")]
    trees = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return {plain(line.partition("\t")[2]) for line in visitors} | {plain(re.sub(r"\(\d|\)", "", tree)) for tree in trees}


# Coreference: stories of few sentences. `[A ...]` is a mention of A. {A} and {B} are persons of two genders, {he:A} and
# the like are pronouns of A.
STORIES = """[A {A}] asked [B {B}] whether [A {he:A}] could borrow [B {his:B}] car .
[A {A}] told [B {B}] that [A {he:A}] would call [B {him:B}] on Monday .
[A {A}] told [B {B}] that [B {he:B}] should see a doctor .
[A {A}] likes [B {B}] . [A {He:A}] thinks that [B {he:B}] is clever .
[A {A}] cooks and [B {B}] cleans . [A {He:A}] hates cleaning , and [B {he:B}] hates cooking .
[A {A}] met [B {B}] at the station . [A {He:A}] was tired , but [B {he:B}] was not .
[A {A}] thanked [B {B}] because [B {he:B}] had found [C [A {his:A}] {thing}] .
[A {A}] waited for [B {B}] . When [B {he:B}] came , [A {he:A}] smiled at [B {him:B}] .
[A {A}] saw [B {B}] in the street and greeted [B {him:B}] .
[A {A}] gave [B {B}] [C a {thing}] . [B {He:B}] put [C it] on the table .
[A {A}] bought [C a {thing}] , but [C it] was broken .
[A {A}] lost [C [A {his:A}] {thing}] . [A {He:A}] looked for [C it] everywhere .
[A {A}] sold [C the {thing}] because [C it] was too big for [A {him:A}] .
[A {A}] showed [B {B}] [C [A {his:A}] new {thing}] . [B {He:B}] liked [C it] .
[A {A}] hurt [A {himself:A}] when [A {he:A}] fell . [B {B}] helped [A {him:A}] .
[D [A {A}] and [B {B}]] bought [C a {thing}] . [D They] paid for [C it] together .
[D [A {A}] and [B {B}]] are married . [A {He:A}] works in a bank , and [B {he:B}] is a teacher .
[D The {people}] lost [C [D their] {thing}] . [D They] could not find [C it] .
[A {A}] knows [D the {people}] . [A {He:A}] meets [D them] every week .
[B [A {A}] 's {kin:B}] lives in Rome . [A {He:A}] visits [B {him:B}] every summer .
[B [A {A}] 's {kin:B}] is ill . [B {He:B}] asked [A {him:A}] to come .
[A {A}] said that [A {he:A}] was hungry . [B {B}] made [A {him:A}] a sandwich .
[A {A}] and [B [A {his:A}] {kin:B}] live in Leeds . [B {He:B}] is older than [A {him:A}] .
[C the {group}] said that [C it] would open [E a new {place}] . [E It] will be near the river .
[A {A}] has [C a {pet}] . [A {He:A}] feeds [C it] every morning .
[C The {pet}] ran after the ball until [C it] was tired . [A {A}] called [C it] back .
[A {A}] put [C the {thing}] into the box because [C it] was small .
[A I] lost [C [A my] {thing}] . [A I] must buy another one before [A my] trip .
[D We] called [A {A}] , but [A {he:A}] did not answer [D us] .
[A {A}] wrote to [B {B}] . [B {He:B}] answered [A {him:A}] the next day and sent [A {him:A}] [C a {thing}] . [C It] arrived on Friday .
When [A {A}] came home , [B {B}] was asleep . [A {He:A}] did not wake [B {him:B}] .
[A {A}] helped [B {B}] with [C [B {his:B}] {thing}] , and [B {he:B}] thanked [A {him:A}] .""".splitlines()
NAMED = {
    "m": "Adam Ben Carl Daniel David Erik Felix Frank George Harry Henry Ivan Jack James Joe Kevin Luke Martin Max Mike "
    "Nick Oliver Omar Patrick Robert Sam Simon Steve Thomas Tim Victor William",
    "f": "Alice Amy Barbara Claire Diana Ellen Elena Eva Fiona Helen Irene Jane Jenny Kate Laura Linda Lucy Margaret Maria "
    "Nora Olga Rachel Rita Rosa Sophie Susan Teresa Ursula Vera Wendy Zoe Mary",
}
NOUNS = {
    "m": "man|boy|king|prince|waiter|actor|priest|policeman|father|grandfather|uncle|husband|son|brother|old man|young man",
    "f": "woman|girl|queen|princess|waitress|actress|nun|policewoman|mother|grandmother|aunt|wife|daughter|sister|old woman|"
    "young woman",
}
PROFESSIONS = "doctor teacher lawyer judge farmer singer driver baker writer painter manager neighbor".split()
TITLES = {"m": ["Mr."], "f": ["Mrs.", "Ms.", "Miss"]}
SURNAMES = "Smith Jones Brown Miller Wilson Clark Hill Green King Baker Young Cook Ward Bell Fox Park Lee Stone".split()
FORMS = {"m": "he him his himself".split(), "f": "she her her herself".split()}
KIN = {"m": "brother father uncle son husband grandfather".split(), "f": "sister mother aunt daughter wife".split()}
THINGS = "bag book phone bike camera key ring coat umbrella letter ticket watch guitar boat house car hat lamp".split()
GROUPS = "children|neighbors|students|police|workers|girls|boys|tourists|parents".split("|")
COMPANIES = "company team university bank museum school firm city".split()
PETS = "dog cat horse parrot rabbit hamster".split()
NEW_PLACES = "office shop school park factory library".split()


def stories(seed: int = 1, documents: int = 60, in_each: int = 8) -> Iterator[list[list[tuple[str, list[str], list[str]]]]]:
    """Documents of sentences of tokens: each with the chains that begin and those that end there."""
    rng = random.Random(seed)
    for _ in range(documents):
        document, number = [], 0
        for story in rng.sample(STORIES, in_each):
            names = {name: str(number + at) for at, name in enumerate("ABCDE")}
            number += 5
            text = _told(story, rng)
            document += [_marked(each, names) for each in re.findall(r".+? \.(?: |$)", text)]
        yield document


def _told(story: str, rng: random.Random) -> str:
    gender = dict(zip("AB", rng.sample("mf", 2), strict=True))

    def person(match: re.Match[str]) -> str:
        sex, sort = gender[match[1]], rng.random()
        if sort < 0.5:
            return rng.choice(NAMED[sex].split())
        if sort < 0.6:
            return f"{rng.choice(TITLES[sex])} {rng.choice(SURNAMES)}"
        if sort < 0.7:
            return f"{rng.choice(['the', 'my'])} {rng.choice(PROFESSIONS)}"
        noun = rng.choice(NOUNS[sex].split("|"))
        return f"{rng.choice(['the', 'the', 'my', 'a'])} {noun}"

    def form(match: re.Match[str]) -> str:
        at = ["he", "him", "his", "himself"].index(match[1].lower())
        word = FORMS[gender[match[2]]][at]
        return word.capitalize() if match[1][0].isupper() else word

    text = re.sub(r"\{([AB])\}", person, story)
    text = re.sub(r"\{([Hh]\w+):([AB])\}", form, text)
    text = re.sub(r"\{kin:([AB])\}", lambda match: rng.choice(KIN[gender[match[1]]]), text)
    thing = rng.choice(THINGS)
    blanks = {"thing": thing, "people": rng.choice(GROUPS), "group": rng.choice(COMPANIES), "pet": rng.choice(PETS)}
    text = text.format(**blanks, place=rng.choice(NEW_PLACES))
    text = re.sub(r"\ba (?=[aeiou])", "an ", text)
    return re.sub(r"(^|\. )((?:\[\w )*)([a-z])", lambda match: f"{match[1]}{match[2]}{match[3].upper()}", text)


def _marked(text: str, names: dict[str, str]) -> list[tuple[str, list[str], list[str]]]:
    tokens: list[tuple[str, list[str], list[str]]] = []
    opened: list[str] = []
    begins: list[str] = []
    for part in re.findall(r"\[\w |\]|[^\s\[\]]+", text):
        if part == "]":
            tokens[-1][2].append(opened.pop())
        elif part.startswith("["):
            opened.append(names[part[1]])
            begins.append(names[part[1]])
        else:
            tokens.append((part, begins, []))
            begins = []
    return tokens


def conll(documents: Iterator[list[list[tuple[str, list[str], list[str]]]]]) -> str:
    lines = []
    for number, document in enumerate(documents):
        name = f"fiction/made_{number}"
        counts: dict[str, int] = {}
        for tokens in document:
            for _, begins, _ in tokens:
                for chain in begins:
                    counts[chain] = counts.get(chain, 0) + 1
        lines.append(f"#begin document ({name}); part 000")
        for tokens in document:
            for at, (token, begins, ends) in enumerate(tokens):
                begins, ends = ([each for each in part if counts[each] > 1] for part in (begins, ends))
                lines.append(f"{name} 0 {at} {token} - - - - - - * {_brackets(begins, ends)}")
            lines.append("")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


def _brackets(begins: list[str], ends: list[str]) -> str:
    single = [each for each in begins if each in ends]
    parts = [f"({each}" for each in begins if each not in single]
    parts += [f"({each})" for each in single]
    parts += [f"{each})" for each in ends if each not in single]
    return "|".join(parts) or "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    records = [dict(zip(("sentence1", "sentence2", "gold_label"), pair, strict=True)) for pair in pairs()]
    split = TreebankWordTokenizer().tokenize
    trees = [
        f"({value} {' '.join(f'(2 {token})' for token in split(text))})" for value, text in sentences()
    ]
    files = {
        "pairs.jsonl": "".join(f"{json.dumps(record)}\n" for record in records),
        "sentences.txt": "".join(f"{tree}\n" for tree in trees),
        "stories.conll": conll(stories()),
    }
    for name, text in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(text.encode())
    print(f"{len(records):,} pairs, {len(trees):,} sentences, {files['stories.conll'].count('#begin')} documents")


if __name__ == "__main__":
    main()
