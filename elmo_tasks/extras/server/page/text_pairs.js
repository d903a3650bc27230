// Inference and regression of pairs: what is predicted, and the soft alignments of both sentences.
import { element, heatMap, predicted, predictedBars, predictedKeys } from "./shared.js";

export const about = "Decides whether a premise entails a hypothesis, contradicts it, or does neither.";
export const fields = [
  { name: "premise", label: "Premise", rows: 1 },
  { name: "hypothesis", label: "Hypothesis", rows: 1 },
];

export const summary = ([result]) => predicted(result);
export const keys = predictedKeys;

export function draw(results, run, differs) {
  const [result] = results;
  if (!result.premise_attention) return [predictedBars(results, run, differs)]; // the model does not align the texts
  const premise = result.premise_tokens;
  const hypothesis = result.hypothesis_tokens;
  const map = (side, other, rows, columns, values) =>
    heatMap(`Attention from the ${side} to the ${other}`, rows, columns, values, {
      how: `Each row is a word of the ${side}, each column a word of the ${other}; the numbers in a row sum to 1.`,
      say: (down, across, value) => `${rows[down]} → ${columns[across]}: ${value.toFixed(3)}`,
    });
  return [
    predictedBars(results, run, differs),
    element(
      "div.pair",
      {},
      map("premise", "hypothesis", premise, hypothesis, result.premise_attention),
      map("hypothesis", "premise", hypothesis, premise, result.hypothesis_attention),
    ),
  ];
}
