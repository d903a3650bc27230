"""Sentences with abbreviations, initials, quotes, brackets and several marks. `|` stands where one ends."""

from __future__ import annotations

import pytest

from elmo_tasks.text.english_sentences import sentence_starts

CASES = """
"I know Mr. Smith."
(See Dr. Jones.)
"It is 5 p.m. now."
"He served in the U.S. Army."
“We met Mrs. Dale.”
[Ask Prof. Lin.]
'This is St. Helena.'
("Call Sgt. Pell!")
Did you see Mr. Smith?
Stop Mr. Smith!
"Is that Mr. Smith?" asked Ann.
I know Mr. Smith!!!
Was it Gen. Ito?! |Nobody knew.
"The U.S. Senate sat." |It rained.
(The U.S. Senate sat.) |It rained.
She met Dr. Roe. |"I know Dr. Roe." |He nodded.
"We left at 5 a.m. on Monday," she said.
The firm (Knee Inc. of Ohio) failed.
He asked Mr. Li, "Who is Mr. Wu?"
It was sold to Toe Corp. of Utah.
She lives on Elm St. in Troy.
The talk by Dr. J. K. Moe was long. |We slept.
"Wow!" said Ann.
"Wow!" |"No!" |"Why?"
“Why?” he asked. |She laughed.
"Why?" Ann asked. |Nobody spoke.
"Stop!" I cried. |The horse stood.
"Stop!" |The horse stood.
"Go home." |The dog went.
He said "Stop!" and ran.
He said "Wow." and left.
The word "help!" means a lot.
It was late (very late!) and dark.
It was late (or was it?) when we came.
It was late. |(Very late!) |We slept.
He wrote (in 1990.) |Then he died.
The band (Yes!) played.
"...and then he left..." |She wept.
“I thought that…” |“No.”
Wait... and see.
Wait… and see.
Wait... |They are here.
He left at 5 p.m. |"Why?"
He left at 5 p.m. |"Why did he go?" she asked.
He left at 5 p.m. |"Ann will stay." |Nobody spoke.
He left at 5 p.m. |The rest stayed.
He left at 5 p.m. |(He was ill.)
He left at 5 p.m. on Friday.
He left at 5 p.m. Friday.
She works at Acme Inc. |"The firm is big."
She works at Acme Inc. |It is big.
The U.S. "Safe Roads Act" is old.
Dr. "Bones" Roe left.
Mr. The Edge sang.
Ann vs. The Club was dull.
We sell pens, ink, etc. |They sell paper.
We sell things (pens, ink, etc.) in town.
We sell things (pens, ink, etc.). |They do not.
Some birds, e.g. The Owl, are wise.
See figs. 3 and 4. |Then go on.
Room No. 5 is free. |He said no. |They left.
It is on p. 7. |We read it.
The mill burned down.|[citation needed] It was rebuilt.
He went to Oslo.|:33 She stayed.
It boils at 100 °C. |Nonetheless, it froze.
"It is on p. 7." |We read it.
She was born on Jan. 5, 1990. |He was not.
It costs $5. |That is cheap.
It weighs 5.5 lbs. |That is a lot.
It rose by 3.5 percent.
He lived to be 90. |She did not.
There are two reasons: 1. the rain and 2. the wind.
J. R. Hill wrote it. |We read it.
"I read J. R. Hill." |So did we.
Ask W.H.S. Kern about it.
The W.H.O. report is here.
He lived c. 1818 in Rome.
She took plan B. |It failed.
Vitamin C. |That is all.
He moved to the U.K. |There he died.
He moved to the U.K. in May.
He moved to Washington, D.C. |He likes it.
The Ph.D. thesis was long.
She has a Ph.D. |She is proud.
Thanks!! |See you.
What is it called!?
What!? |No way.
Thanks !! |See you.
Thanks ! !! |See you.
Is it you ? |Yes .
" Is it you ? " |Yes .
He left . " |She stayed . "
He left.|[3] Then he came back.
He left.|(Then he came back.)
He left.|"Then he came back."
We like node.js and www.example.org a lot.
The file is a.txt. |Open it.
Read this. |https://www.example.org/a
"Read this." |https://www.example.org/a
Yes. |no. |maybe.
Is it? |yes.
First line.\\n|Second line.
"The cat sat," said Mr. Poe. |"It was fat."
The Rev. Al Moss spoke. |Then we sang.
He said: "I am Lt. Dan." |I said: "I am not."
It was the so-called "Mt. Doom." |Nobody went.
Mr. and Mrs. Roe came.
The Dept. of Labor (D.O.L.) agreed.
Is it 5 p.m.? |Yes.
It's 5 p.m.! |Go.
{See Fig. 2.} |Then go on.
**Shapes.** |A file has some.
"He (Mr. Roe) left." |"Why?"
""".strip().split("\n")


@pytest.mark.parametrize("case", [case.replace("\\n", "\n") for case in CASES])
def test_a_sentence_ends_where_a_reader_ends_it(case: str) -> None:
    text, borders = case.replace("|", ""), [at for at, character in enumerate(case) if character == "|"]
    assert list(sentence_starts(text)) == [at - number for number, at in enumerate(borders)]
