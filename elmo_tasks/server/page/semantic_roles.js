// Semantic roles: the tokens of a sentence, and under them a row for each predicate.
import { color, counted, element, frame, kindsOfTags, only, percent, unseen } from "./shared.js";

export const about = "Finds who did what to whom: a row for each predicate.";
export const fields = [{ name: "text", label: "Text", rows: 3 }];

export function summary(results) {
  const frames = results.flatMap((result) => result.frames);
  return `${counted(frames.length, "predicate")} in ${counted(results.length, "sentence")}`;
}

/** The keys of a predicate and of a role; sentences are told apart by their place. */
const frameKey = (place, { predicate }) => `${place} ${predicate}`;
const roleKey = (place, found, { role, start, end }) => `${frameKey(place, found)} ${role} ${start} ${end}`;

export const keys = (results) =>
  results.flatMap(({ frames }, place) =>
    frames.flatMap((found) => [frameKey(place, found), ...found.roles.map((role) => roleKey(place, found, role))]),
  );

export function draw(results, run, differs) {
  const kinds = [...new Set(kindsOfTags(run).map(roleOf))];
  return results.map((result, place) => {
    const own = (found) => ({
      predicate: differs(frameKey(place, found)),
      role: (role) => differs(roleKey(place, found, role)),
    });
    const heads = result.tokens.map((token) => element("th", { scope: "col" }, token));
    const rows = result.frames.map((found) => row(found, result.tokens, kinds, own(found)));
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

/** A predicate's row: its roles span the columns of their tokens. `differs` says what is framed. */
function row(found, tokens, kinds, differs) {
  const spans = [...found.roles, ...predicateSpans(found)].sort((one, other) => one.start - other.start);
  const cells = [];
  let at = 0;
  for (const span of spans) {
    for (; at < span.start; at++) cells.push(element("td", {}));
    const words = unseen(`: ${tokens.slice(span.start, span.end + 1).join(" ")}`);
    const inside =
      span.role === "V"
        ? element("span.role.verb", {}, "V", words)
        : element(
            `span.role${frame(differs.role(span))}`,
            color(kinds.indexOf(roleOf(span.role))),
            element("b", {}, span.role),
            words,
            " ",
            element("span.sure", {}, percent(span.probability)),
            only(differs.role(span)),
          );
    cells.push(element("td", { colspan: span.end - span.start + 1 }, inside));
    at = span.end + 1;
  }
  for (; at < tokens.length; at++) cells.push(element("td", {}));
  const name = element(`span${frame(differs.predicate)}`, {}, found.predicate_text, only(differs.predicate));
  return element("tr", {}, element("th", { scope: "row" }, name), cells);
}

/** The tokens of the predicate, which are not among the roles. */
function predicateSpans({ tags }) {
  return tags.flatMap((tag, place) => {
    if (tag !== "B-V") return [];
    let end = place;
    while (tags[end + 1] === "I-V") end++;
    return [{ role: "V", start: place, end }];
  });
}

/** ARG1 for C-ARG1, which continues it, and for R-ARG1, which refers to it. */
const roleOf = (label) => label.replace(/^[CR]-/, "");
