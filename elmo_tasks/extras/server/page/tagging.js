// Tags: coloured spans, or the tag of each token below it, and the most probable tags of each token.
import { counted, element, key, kindsOfLabels, mark, marked, percent } from "./shared.js";

export const about = "Marks the spans that the run was trained to find.";
export const fields = [{ name: "text", label: "Text", rows: 2 }];

/** What a run finds, by its labels: the key of its tab. */
export function tabOf(run) {
  const kinds = kindsOfLabels(run);
  if (kinds.includes("NOUN") || kinds.includes("NN")) return "parts_of_speech";
  return kinds.includes("PER") || kinds.includes("PERSON") ? "names" : "tagging";
}

/** Whether a run finds the predicates of semantic roles, and nothing else. */
export function findsPredicates(run) {
  const kinds = kindsOfLabels(run);
  return kinds.length === 1 && kinds[0] === "V";
}

const FOUND = { names: "name", parts_of_speech: "tagged word", tagging: "span" };

const keyOf = (span, result) => `${span.label} ${result.start_char + span.start} ${result.start_char + span.end}`;

/** What two runs may find differently. */
export const keys = (results) => results.flatMap((result) => spansOf(result).map((span) => keyOf(span, result)));

/** Whether the names are the expected ones, or of tagged words, those that are expected: `word TAG`. */
export function isRight(results, expected) {
  const spans = results.flatMap((result) =>
    spansOf(result).map(({ start, end, label }) => [Array.from(result.text).slice(start, end).join(""), label]),
  );
  const words = expected.map((each) => each.slice(0, each.lastIndexOf(" ")));
  const counts = ([text]) => results[0].spans || words.includes(text);
  return String(spans.filter(counts).map((span) => span.join(" "))) === String(expected);
}

export function summary(results, run) {
  const spans = results.flatMap(spansOf).filter(({ label }) => run.legend[label]?.color !== null);
  return `${counted(spans.length, FOUND[tabOf(run)])} in ${counted(results.length, "sentence")}`;
}

export function draw(results, run, differs) {
  const sentences = results.map((result) => {
    const wrap = (span, nodes) => {
      const isFramed = differs(keyOf(span, result));
      const { color, meaning } = run.legend[span.label] ?? {};
      if (color === null && !isFramed) return element("span", { title: `${span.label}, ${meaning}` }, nodes); // a comma
      return mark(span.label, span.probability, run, nodes, isFramed);
    };
    const text = element(result.spans ? "p.text" : "p.text.tagged", {}, marked(result.text, spansOf(result), wrap));
    return element("section.sentence", {}, text);
  });
  const labels = results.flatMap(spansOf).map(({ label }) => label);
  return labels.length ? [sentences, key(run, labels)] : sentences;
}

export function more(results) {
  if (!results.some((result) => result.tag_probabilities)) return null;
  const rows = results.flatMap((result) =>
    result.tokens.map((token, place) => {
      const others = Object.entries(result.tag_probabilities[place]);
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, token),
        element("td", {}, result.tags[place]),
        element("td.number", {}, percent(result.probabilities[place])),
        element(
          "td.faint",
          {},
          others
            .filter(([tag]) => tag !== result.tags[place])
            .map(([tag, share]) => `${tag} ${percent(share)}`)
            .join(", "),
        ),
      );
    }),
  );
  const heads = ["Token", "Tag", "Probability", "Other tags"].map((name) => element("th", { scope: "col" }, name));
  return element(
    "details",
    {},
    element("summary", {}, "Each token"),
    element(
      "div.scroll",
      { tabindex: 0, role: "region", "aria-label": "Tags of each token" },
      element("table.plain", {}, element("thead", {}, element("tr", {}, heads)), element("tbody", {}, rows)),
    ),
  );
}

/** The spans of a sentence, in characters of the sentence. Without spans, each token with a tag is one. */
function spansOf(result) {
  const before = result.start_char;
  const spans =
    result.spans?.map((span) => [span.label, span.start_char, span.end_char, span.probability]) ??
    result.tags
      .map((tag, place) => [tag, ...result.offsets[place], result.probabilities[place]])
      .filter(([tag]) => tag !== "O");
  return spans.map(([label, start, end, probability]) => ({
    label,
    probability,
    start: start - before,
    end: end - before,
  }));
}
