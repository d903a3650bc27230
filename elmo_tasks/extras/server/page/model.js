// What is known of a run: a line with its score, and the rest to be opened.
import { element } from "./shared.js";

/** The run in a line: its score, and a link to its model card if it has one. */
export function modelLine(run) {
  const card = `api/runs/${encodeURIComponent(run.name)}/card`;
  const parts = [
    element("b", {}, run.name),
    run.facts.score ? scoreOfSeeds(run.facts.score) : scoreOf(run),
    run.has_card && element("a", { href: card }, "model card"),
  ].filter(Boolean);
  return element("p.model", {}, parts.flatMap((part, place) => (place ? [" · ", part] : [part])));
}

/** The name of a metric as people write it. */
const metricName = (name) => name.replaceAll("_", " ").replace(/\bf1\b/, "F1").replace("conll", "CoNLL");

function scoreOfSeeds({ metric, split, seeds, elmo, baseline }) {
  const without = baseline === null ? "" : `, without ELMo ${baseline.toFixed(2)}`;
  const mean = seeds > 1 ? `, mean of ${seeds} seeds` : "";
  return `${metricName(metric)} ${elmo.toFixed(2)}${without} (${split} data${mean})`;
}

function scoreOf(run) {
  const value = run.scores?.[run.metric];
  if (value === undefined || value === null) return null;
  const data = dataOf(run, run.scored_on);
  return `${metricName(run.metric)} ${value.toFixed(2)} (${run.scored_on} data${data ? `, ${data}` : ""})`;
}

/** The names of the files or data sets that a run was trained or scored on. */
function dataOf(run, split) {
  const data = run.config[`${split}_data_path`];
  return (split === "train" && run.facts.data.length ? run.facts.data : [data ?? []].flat()).join(", ");
}

/** Everything else that a user may want to know. */
export function aboutRun(run) {
  const items = [
    ["Trained on", dataOf(run, "train")],
    ["ELMo", run.bilm_size ?? "none"],
    ["Licence", run.facts.licence],
    ["Labels", run.labels?.join(", ")],
    ["Predicates found by", run.predicates],
  ].filter(([, value]) => value);
  return element(
    "details",
    {},
    element("summary", {}, `About the model ${run.name}`),
    element(
      "dl",
      {},
      items.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    ),
  );
}
