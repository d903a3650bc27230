"""Sentences with abbreviations, initials, quotes, brackets and several marks. `|` stands where one ends."""

import pytest

from elmo_tasks.text.english_sentences import sentence_starts

CASES = """
"I know Mr. Smith."
"It is 5 p.m. now."
"He served in the U.S. Army."
Did you see Mr. Smith?
I know Mr. Smith!!!
Was it Gen. Ito?! |Nobody knew.
"The U.S. Senate sat." |It rained.
She met Dr. Roe. |"I know Dr. Roe." |He nodded.
"We left at 5 a.m. on Monday," she said.
He asked Mr. Li, "Who is Mr. Wu?"
The talk by Dr. J. K. Moe was long. |We slept.
"Wow!" said Ann.
"Wow!" |"No!" |"Why?"
"Why?" Ann asked. |Nobody spoke.
"Stop!" I cried. |The horse stood.
"Go home." |The dog went.
He said "Stop!" and ran.
He said "Wow." and left.
It was late (very late!) and dark.
It was late. |(Very late!) |We slept.
"...and then he left..." |She wept.
“I thought that…” |“No.”
Wait... and see.
Wait... |They are here.
He left at 5 p.m. |"Why?"
He left at 5 p.m. |The rest stayed.
He left at 5 p.m. |(He was ill.)
He left at 5 p.m. on Friday.
He left at 5 p.m. Friday.
She works at Acme Inc. |"The firm is big."
The U.S. "Safe Roads Act" is old.
Dr. "Bones" Roe left.
Ann vs. The Club was dull.
We sell pens, ink, etc. |They sell paper.
We sell things (pens, ink, etc.). |They do not.
Some birds, e.g. The Owl, are wise.
See figs. 3 and 4. |Then go on.
Room No. 5 is free. |He said no. |They left.
It is on p. 7. |We read it.
The mill burned down.|[citation needed] It was rebuilt.
He went to Oslo.|:33 She stayed.
It boils at 100 °C. |Nonetheless, it froze.
It weighs 5.5 lbs. |That is a lot.
He lived to be 90. |She did not.
There are two reasons: 1. the rain and 2. the wind.
J. R. Hill wrote it. |We read it.
Ask W.H.S. Kern about it.
He lived c. 1818 in Rome.
He moved to the U.K. |There he died.
She has a Ph.D. |She is proud.
Thanks!! |See you.
What is it called!?
Thanks ! !! |See you.
Is it you ? |Yes .
He left . " |She stayed . "
He left.|[3] Then he came back.
He left.|(Then he came back.)
He left.|"Then he came back."
We like node.js and www.example.org a lot.
The file is a.txt. |Open it.
Read this. |https://www.example.org/a
"Read this." |https://www.example.org/a
Yes. |no. |maybe.
First line.\\n|Second line.
He said: "I am Lt. Dan." |I said: "I am not."
It was the so-called "Mt. Doom." |Nobody went.
The Dept. of Labor (D.O.L.) agreed.
Is it 5 p.m.? |Yes.
It's 5 p.m.! |Go.
**Shapes.** |A file has some.
""".strip().split("\n")


@pytest.mark.parametrize("case", [case.replace("\\n", "\n") for case in CASES])
def test_a_sentence_ends_where_a_reader_ends_it(case: str) -> None:
    text, borders = case.replace("|", ""), [at for at, character in enumerate(case) if character == "|"]
    assert list(sentence_starts(text)) == [at - number for number, at in enumerate(borders)]
