// Results of one run, or of two side by side: what only one of them has is framed.
import { counted, element, kindsOfLabels } from "./shared.js";
import { modelLine } from "./model.js";

/** Whether two runs can be compared: a tagger of names and one of parts of speech cannot. */
export const comparable = (one, other) =>
  one !== other && (!one.labels || kindsOfLabels(other).some((kind) => kindsOfLabels(one).includes(kind)));

/**
 * What `ResultView` shows. Arguments: the module with the task's picture, and for each run `{run, answer, milliseconds,
 * explained}`.
 */
export function shown(picture, found) {
  const [first] = found;
  if (found.length === 1) {
    const { results } = first.answer;
    if (!results.length) return { answer: first.answer, summary: "The text is blank.", picture: [] };
    const { run } = first;
    return {
      answer: first.answer,
      summary: picture.summary(results, run),
      time: time(first),
      picture: picture.draw(results, run, () => false),
      more: [picture.more?.(results) ?? [], first.explained],
    };
  }
  const keys = found.map(({ answer: { results } }) => new Set(results.length ? picture.keys(results) : []));
  const differs = found.map((_, place) => (key) => !keys[1 - place].has(key));
  const differences = keys.reduce((sum, own, place) => sum + [...own].filter(differs[place]).length, 0);
  const names = found.map(({ run }) => run.name);
  return {
    answer: Object.fromEntries(found.map(({ run, answer }) => [run.name, answer])),
    summary: `${names.join(" and ")}: ${differences ? counted(differences, "difference") : "the same result"}`,
    note: differences ? "A dashed frame marks what only one of the two runs found." : "",
    picture: element(
      "div.sides",
      {},
      found.map((each, place) => side(picture, each, differs[place])),
    ),
    more: found.map(({ run, answer, explained }) =>
      ofRun(run, element("section", {}, element("h4", {}, run.name), picture.more?.(answer.results) ?? [], explained)),
    ),
  };
}

function side(picture, found, differs) {
  const { run, answer } = found;
  const { results } = answer;
  const shown = element(
    "section.side",
    { "aria-label": run.name },
    modelLine(run),
    results.length ? element("h4", {}, picture.summary(results, run)) : null,
    element("p.caption", {}, time(found)),
    results.length ? picture.draw(results, run, differs) : [],
  );
  return ofRun(run, shown);
}

/** Adds the name of the run to those of the regions in its part of the page, so that no two have the same. */
function ofRun(run, part) {
  for (const region of part.querySelectorAll("[role=region]")) region.ariaLabel += `, ${run.name}`;
  return part;
}

const time = ({ milliseconds }) => `Answered in ${Math.round(milliseconds)} ms`;
