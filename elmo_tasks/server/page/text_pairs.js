// Inference: the probabilities of the classes, and the soft alignments of both sentences.
import { bars, element, heatMap, percent } from "./shared.js";

export const about = "Tells whether a premise entails a hypothesis, contradicts it, or does neither.";
export const fields = [
  { name: "premise", label: "Premise", rows: 1 },
  { name: "hypothesis", label: "Hypothesis", rows: 1 },
];

export const summary = ([result]) => `${result.label}, ${percent(result.probabilities[result.label])}`;

export function draw([result]) {
  const premise = result.premise_tokens;
  const hypothesis = result.hypothesis_tokens;
  const map = (side, rows, columns, values) =>
    heatMap(`Where the ${side} looks`, rows, columns, values, {
      say: (down, across, value) => `${rows[down]} → ${columns[across]}: ${value.toFixed(3)}`,
    });
  return [
    bars(
      "Probabilities",
      Object.entries(result.probabilities).sort((one, other) => other[1] - one[1]),
    ),
    element(
      "div.pair",
      {},
      map("premise", premise, hypothesis, result.premise_attention),
      map("hypothesis", hypothesis, premise, result.hypothesis_attention),
    ),
  ];
}
