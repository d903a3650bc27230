// Inference and regression of pairs: what is predicted, and the soft alignments of both sentences.
import { element, heatMap, predicted, predictedBars } from "./shared.js";

export const about = "Tells whether a premise entails a hypothesis, contradicts it, or does neither.";
export const fields = [
  { name: "premise", label: "Premise", rows: 1 },
  { name: "hypothesis", label: "Hypothesis", rows: 1 },
];

export const summary = ([result]) => predicted(result);

export function draw([result]) {
  if (!result.premise_attention) return [predictedBars(result)]; // the model does not align the texts
  const premise = result.premise_tokens;
  const hypothesis = result.hypothesis_tokens;
  const map = (side, rows, columns, values) =>
    heatMap(`Where the ${side} looks`, rows, columns, values, {
      say: (down, across, value) => `${rows[down]} → ${columns[across]}: ${value.toFixed(3)}`,
    });
  return [
    predictedBars(result),
    element(
      "div.pair",
      {},
      map("premise", premise, hypothesis, result.premise_attention),
      map("hypothesis", hypothesis, premise, result.hypothesis_attention),
    ),
  ];
}
