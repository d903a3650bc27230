// Reading: the answer in its sentence, and the best five. Each of them can be shown in its sentence.
import { bars, color, element, frame, marked, only, percent, sureness } from "./shared.js";

export const about = "Answers a question with words from a passage.";
export const fields = [
  { name: "passage", label: "Passage", rows: 4 },
  { name: "question", label: "Question", rows: 1 },
];

const noAnswer = "(no answer)";
const ALWAYS = "This model always gives an answer, even if the passage does not contain one.";

export const summary = ([result]) =>
  result.answer
    ? `Answer: ${result.answer}, ${percent(result.probability)}`
    : `No answer in this passage, ${percent(result.probability)}`;

export const isRight = ([{ answer }], expected) => expected.includes(answer || NONE);
export const between = " or ";
const NONE = "no answer in this passage";

const keyOf = (answer) => `${answer.answer} ${answer.start_char}`;
export const keys = ([result]) => [keyOf(result)];

export function draw([result], _, differs) {
  const passage = element("p.text");
  const buttons = result.best.map((answer) =>
    element("button.link", { type: "button", "aria-pressed": false, onclick: () => show(answer) }, answer.answer),
  );
  const show = (answer) => {
    const span = { start: answer.start_char, end: answer.end_char };
    const framed = keyOf(answer) === keyOf(result) && differs(keyOf(answer));
    const wrap = (_, nodes) => element(`mark${sureness(answer.probability)}${frame(framed)}`, color(0), nodes, only(framed));
    passage.replaceChildren(...sentenceOf(result.passage, span, wrap));
    buttons.forEach((button, number) => button.setAttribute("aria-pressed", result.best[number] === answer));
  };
  const items = result.best.map((answer, number) => [buttons[number], answer.probability]);
  if (result.answer) show(result.best[0]);
  const canRefuse = "no_answer_probability" in result;
  if (canRefuse) items.push([noAnswer, result.no_answer_probability]);
  items.sort((one, other) => other[1] - one[1]);
  const best = items.findIndex(([name]) => name === (result.answer ? buttons[0] : noAnswer));
  return [
    passage,
    canRefuse ? [] : element("p.caption", {}, ALWAYS),
    bars("Best answers. Click one to see its place.", items, { best }),
  ];
}

/** The nodes of the sentence around a span, which is wrapped. */
function sentenceOf(passage, { start, end }, wrap) {
  const characters = Array.from(passage);
  const isEnd = (place) => ".!?".includes(characters[place]) && !characters[place + 1]?.trim();
  let [first, last] = [start, end - 1];
  while (first && !isEnd(first - 1)) first--;
  while (last < characters.length - 1 && !isEnd(last)) last++;
  const sentence = characters.slice(first, last + 1).join("");
  const nodes = marked(sentence, [{ start: start - first, end: end - first }], wrap);
  return [first ? "… " : "", ...nodes, last < characters.length - 1 ? " …" : ""];
}
