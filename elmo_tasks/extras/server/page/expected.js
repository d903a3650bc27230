// Which words a biLM expects in place of one of a sentence.
import { ask, bars } from "./shared.js";

const SUBSTITUTES = 5;
const MORE = 5; // of which some may be punctuation

/** The scores of sentences `{tokens}`, or the sentence in which the server says why there are none. */
export async function scoresOf(sentences, run, signal) {
  try {
    const body = { substitutes: SUBSTITUTES + MORE, run };
    const asked = sentences.map(({ tokens }) => ask("api/score", { ...body, tokens }, signal));
    return { sentences: (await Promise.all(asked)).map((score) => score.tokens) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { problem: error.message };
  }
}

/** The words that are expected at a place of a sentence; nothing without scores. */
export function expectedIn({ sentences }, sentence, index) {
  if (!sentences) return [];
  const { token, substitutes } = sentences[sentence][index];
  const words = Object.entries(substitutes)
    .filter(([word]) => /\p{L}/u.test(word))
    .sort((one, other) => other[1] - one[1])
    .slice(0, SUBSTITUTES);
  return bars(`Expected in place of “${token}”`, words, { best: words.findIndex(([word]) => word === token) });
}
