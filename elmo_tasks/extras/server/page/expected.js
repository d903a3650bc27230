// What a biLM expects of each word of a sentence: how surprising it is, and which words are likelier.
import { ask, bars, element, percent } from "./shared.js";

const SUBSTITUTES = 5;

const bits = (nats) => (nats / Math.log(2)).toFixed(1);

/** The scores of sentences `{tokens}`, or the sentence in which the server says why there are none. */
export async function scoresOf(sentences, run, signal) {
  try {
    const asked = sentences.map(({ tokens }) => ask("api/score", { tokens, substitutes: SUBSTITUTES, run }, signal));
    return { sentences: await Promise.all(asked) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { problem: error.message };
  }
}

/** Each sentence with its surprising words dark, and the words that are expected in place of the chosen ones. */
export function expected(scores, chosen) {
  const head = element("h3", {}, "What the biLM expects");
  if (scores.problem) return element("section.expected", {}, head, element("p.faint", {}, scores.problem));
  const caption = "How surprising each word is, in bits, given the words on both sides";
  return element(
    "section.expected",
    {},
    head,
    element("p.caption", {}, caption),
    element(
      "div.sides",
      {},
      scores.sentences.map(({ tokens }, side) => {
        const token = tokens[chosen[side]];
        const words = likeliest(token);
        const best = words.findIndex(([word]) => word === token.token);
        return element("div", {}, surprising(tokens), bars(`Expected in place of “${token.token}”`, words, { best }));
      }),
    ),
  );
}

function surprising(tokens) {
  const most = Math.max(...tokens.map((token) => token.both));
  const words = tokens.map((token) =>
    element(
      "span.token",
      { "--share": token.both / most },
      element("span.word", {}, token.token),
      " ",
      element("span.sure", {}, bits(token.both), token.is_known ? "" : " unknown"),
      " ",
    ),
  );
  return element("p.tokens", {}, words);
}

const likeliest = (token) => Object.entries(token.substitutes).sort((one, other) => other[1] - one[1]);
