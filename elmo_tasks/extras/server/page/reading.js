// Reading: the answer in its passage, and the best five. Each of them can be shown in the passage.
import { bars, color, element, frame, marked, only, percent, sureness } from "./shared.js";

export const about = "Answers a question with words from a passage.";
export const fields = [
  { name: "passage", label: "Passage", rows: 4 },
  { name: "question", label: "Question", rows: 1 },
];

const noAnswer = "(no answer)";
const ALWAYS = "This model always gives an answer, even if the passage does not contain one.";

export const summary = ([result]) => `Answer: ${result.answer || noAnswer}, ${percent(result.probability)}`;

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
    passage.replaceChildren(...marked(result.passage, [span], wrap));
    buttons.forEach((button, number) => button.setAttribute("aria-pressed", result.best[number] === answer));
  };
  const items = result.best.map((answer, number) => [buttons[number], answer.probability]);
  if (result.answer) show(result.best[0]);
  else passage.append(result.passage);
  const canRefuse = "no_answer_probability" in result;
  if (canRefuse) items.splice(result.answer ? 1 : 0, 0, [noAnswer, result.no_answer_probability]);
  return [
    element("p.question", {}, result.question),
    passage,
    canRefuse ? [] : element("p.caption", {}, ALWAYS),
    bars("Best answers. Click one to see it in the passage.", items),
  ];
}
