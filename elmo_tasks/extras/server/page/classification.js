// Classification, sets of labels and regression: what is predicted, and the attention that the model pays to each token.
import { element, percent, predicted, predictedBars, predictedKeys } from "./shared.js";

export const about = "Assigns a label to a text, such as its sentiment.";
export const fields = [{ name: "text", label: "Text", rows: 2 }];

export const summary = ([result], run) => predicted(result, run);
export const keys = predictedKeys;
/** Of sentiments, only their polarity counts. */
export const isRight = ([{ label }], [expected]) => label.replace("very ", "") === expected;
export const draw = (results, run, differs) => [predictedBars(results, run, differs), attention(results[0])];

/** The key of a run's tab, by its labels. */
export const tabOf = (run) =>
  run.labels?.some((label) => /^(positive|negative)$/i.test(label)) ? "sentiment" : run.task;

/** The tokens and the attention to each, if the model has any. */
function attention(result) {
  if (!result.attention) return [];
  const most = Math.max(...result.attention);
  const tokens = result.tokens.map((token, place) =>
    element(
      "span.token",
      { "--share": result.attention[place] / most },
      element("span.word", {}, token),
      " ",
      element("span.sure", {}, percent(result.attention[place])),
      " ",
    ),
  );
  return [
    element("p.caption", {}, "Attention: how much each token contributes to the model’s summary of the text"),
    element("p.tokens", {}, tokens),
  ];
}
