// Inference and regression of pairs: what is predicted, and which words of the premise the hypothesis attends to.
import { element, heatMap, predicted, predictedBars, predictedKeys } from "./shared.js";

export const about = "Decides whether a premise entails a hypothesis, contradicts it, or does neither.";
export const fields = [
  { name: "premise", label: "Premise", rows: 1 },
  { name: "hypothesis", label: "Hypothesis", rows: 1 },
];

export const summary = ([result], run) => predicted(result, run);
export const keys = predictedKeys;
export const isRight = ([{ label }], [expected]) => label === expected;

export function draw(results, run, differs) {
  const [{ premise_tokens: premise, hypothesis_tokens: hypothesis, hypothesis_attention: attention }] = results;
  const shares = predictedBars(results, run, differs);
  if (!attention) return shares; // the model does not align the texts
  const columns = premise.map((_, down) => attention.map((row) => row[down]));
  return [
    shares,
    heatMap("Which words of the premise each word of the hypothesis attends to", premise, hypothesis, columns, {
      how: "Each column is a word of the hypothesis; its numbers sum to 1.",
      say: (down, across, value) => `${hypothesis[across]} → ${premise[down]}: ${value.toFixed(3)}`,
    }),
  ];
}
