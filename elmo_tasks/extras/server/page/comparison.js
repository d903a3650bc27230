// Results of one run, or of two side by side: what only one of them has is framed.
import { counted, element, kindsOfLabels, tick } from "./shared.js";
import { modelLine } from "./model.js";

/** Whether two runs can be compared: a tagger of names and one of parts of speech cannot. */
export const comparable = (one, other) =>
  one !== other && (!one.labels || kindsOfLabels(other).some((kind) => kindsOfLabels(one).includes(kind)));

/**
 * What `ResultView` shows. Arguments: the module with the task's picture, for each run `{run, answer, milliseconds,
 * explained}`, and what is right, if that is known. A run without a model line of its own has a `title`.
 */
export function shown(picture, found, expected) {
  const [first] = found;
  if (found.length === 1) {
    const { results } = first.answer;
    if (!results.length) return { answer: first.answer, summary: "The text is blank.", picture: [] };
    const { run } = first;
    return {
      answer: first.answer,
      summary: picture.summary(results, run),
      time: time(first),
      picture: [verdict(picture, results, expected), picture.draw(results, run, () => false)],
      more: [picture.more?.(results) ?? [], first.explained],
    };
  }
  const keys = found.map(({ answer: { results } }) => new Set(results.length ? picture.keys(results) : []));
  const differs = found.map((_, place) => (key) => !keys[1 - place].has(key));
  const differences = keys.reduce((sum, own, place) => sum + [...own].filter(differs[place]).length, 0);
  const names = first.run.title ? "With and without ELMo" : found.map(({ run }) => run.name).join(" and ");
  return {
    answer: Object.fromEntries(found.map(({ run, answer }) => [run.name, answer])),
    summary: `${names}: ${differences ? counted(differences, "difference") : "the same result"}`,
    note: differences ? "A dashed frame marks what only one of the two found." : "",
    picture: element(
      "div.sides",
      {},
      found.map((each, place) => side(picture, each, differs[place], expected)),
    ),
    more: found.map(({ run, answer, explained }) =>
      ofRun(run, element("section", {}, element("h4", {}, nameOf(run)), picture.more?.(answer.results) ?? [], explained)),
    ),
  };
}

/** What is right of an example, and whether that was found. */
export function verdict(picture, results, expected) {
  if (!expected) return null;
  const isRight = picture.isRight(results, expected);
  return element("p.verdict", {}, tick(isRight), ` Expected: ${expected.join(picture.between ?? ", ")}`);
}

const nameOf = (run) => run.title ?? run.name;

function side(picture, found, differs, expected) {
  const { run, answer } = found;
  const { results } = answer;
  const shown = element(
    "section.side",
    { "aria-label": nameOf(run) },
    run.title ? element("h4", {}, run.title) : modelLine(run),
    results.length ? element("p.answer", {}, picture.summary(results, run)) : null,
    results.length ? verdict(picture, results, expected) ?? [] : [],
    results.length ? picture.draw(results, run, differs) : [],
    element("p.caption", {}, time(found)),
  );
  return ofRun(run, shown);
}

/** Adds the name of the run to those of the regions in its part of the page, so that no two have the same. */
function ofRun(run, part) {
  for (const region of part.querySelectorAll("[role=region]")) region.ariaLabel += `, ${nameOf(run)}`;
  return part;
}

const time = ({ milliseconds }) => `Answered in ${Math.round(milliseconds)} ms`;
