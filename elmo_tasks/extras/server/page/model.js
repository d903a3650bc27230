// What is known of a run: a line with its score, data and biLM, and all the rest to be opened.
import { element } from "./shared.js";

/** The run in a line: its score, and a link to its model card if it has one. */
export function modelLine(run) {
  const card = `api/runs/${encodeURIComponent(run.name)}/card`;
  const parts = [
    element("b", {}, run.name),
    run.facts.score ?? scoreOf(run),
    run.has_card && element("a", { href: card }, "model card"),
  ].filter(Boolean);
  return element("p.model", {}, parts.flatMap((part, place) => (place ? [" · ", part] : [part])));
}

function scoreOf(run) {
  const value = run.scores?.[run.metric];
  if (value === undefined || value === null) return null;
  const data = dataOf(run, run.scored_on);
  return `${run.metric} ${value.toFixed(2)} on the ${run.scored_on} data${data ? ` (${data})` : ""}`;
}

/** The names of the files or data sets that a run was trained or scored on. */
function dataOf(run, split) {
  const data = run.config[`${split}_data_path`];
  return (split === "train" && run.facts.data.length ? run.facts.data : [data ?? []].flat()).join(", ");
}

/** Everything else, such as all scores and the config. */
export function aboutRun(run) {
  const scores = Object.entries(run.scores ?? {}).filter(([name]) => !name.includes("/"));
  const items = [
    ["Model", run.config.model.type],
    ["Trained on", dataOf(run, "train")],
    ["ELMo", run.bilm_size ?? "none"],
    ["Licence", run.facts.licence],
    [`Scores (${run.scored_on})`, scores.map(([name, value]) => `${name} ${value?.toFixed(2) ?? "–"}`).join(", ")],
    ["Labels", run.labels?.join(", ")],
    ["Predicates found by", run.predicates],
    ["biLM", run.bilm?.slice(0, 12)],
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
    element("pre", { tabindex: 0, role: "region", "aria-label": "Config" }, JSON.stringify(run.config, null, 2)),
  );
}
