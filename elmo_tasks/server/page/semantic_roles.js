// Semantic roles: the tokens of a sentence, and under them a row for each predicate.
import { color, counted, element, kindsOfTags, percent, unseen } from "./shared.js";

export const about = "Finds who did what to whom: a row for each predicate.";
export const fields = [{ name: "text", label: "Text", rows: 3 }];

export function summary(results) {
  const frames = results.flatMap((result) => result.frames);
  return `${counted(frames.length, "predicate")} in ${counted(results.length, "sentence")}`;
}

export function draw(results, run) {
  const kinds = [...new Set(kindsOfTags(run).map(roleOf))];
  return results.map((result) => {
    const heads = result.tokens.map((token) => element("th", { scope: "col" }, token));
    const rows = result.frames.map((frame) => row(frame, result.tokens, kinds));
    const empty = element("p.faint", {}, "No predicate was found.");
    const table = element(
      "table.frames",
      {},
      element("thead", {}, element("tr", {}, element("td", {}), heads)),
      element("tbody", {}, rows),
    );
    return element(
      "section.sentence",
      {},
      element("div.scroll", { tabindex: 0, role: "region", "aria-label": `Roles in: ${result.text}` }, table),
      rows.length ? null : empty,
    );
  });
}

/** A predicate's row: its roles span the columns of their tokens. */
function row(frame, tokens, kinds) {
  const spans = [...frame.roles, ...predicateSpans(frame)].sort((one, other) => one.start - other.start);
  const cells = [];
  let at = 0;
  for (const span of spans) {
    for (; at < span.start; at++) cells.push(element("td", {}));
    const words = unseen(`: ${tokens.slice(span.start, span.end + 1).join(" ")}`);
    const inside =
      span.role === "V"
        ? element("span.role.verb", {}, "V", words)
        : element(
            "span.role",
            color(kinds.indexOf(roleOf(span.role))),
            element("b", {}, span.role),
            words,
            " ",
            element("span.sure", {}, percent(span.probability)),
          );
    cells.push(element("td", { colspan: span.end - span.start + 1 }, inside));
    at = span.end + 1;
  }
  for (; at < tokens.length; at++) cells.push(element("td", {}));
  return element("tr", {}, element("th", { scope: "row" }, frame.predicate_text), cells);
}

/** The tokens of the predicate, which are not among the roles. */
function predicateSpans(frame) {
  return frame.tags.flatMap((tag, place) => {
    if (tag !== "B-V") return [];
    let end = place;
    while (frame.tags[end + 1] === "I-V") end++;
    return [{ role: "V", start: place, end }];
  });
}

/** ARG1 for C-ARG1, which continues it, and for R-ARG1, which refers to it. */
const roleOf = (label) => label.replace(/^[CR]-/, "");
