// Semantic roles: for each predicate, the sentence with the roles of its words.
import { counted, element, frame, key, mark, marked, only, unseen } from "./shared.js";

export const about = "Finds who did what to whom, for each predicate.";
export const fields = [{ name: "text", label: "Text", rows: 2 }];

/** The frames that are shown: those with a role, not those of “was” and the like. */
const shownOf = ({ frames }) => frames.filter(({ roles }) => roles.length);

export function summary(results) {
  const frames = results.flatMap(shownOf);
  return `${counted(frames.length, "predicate")} in ${counted(results.length, "sentence")}`;
}

/** The keys of a predicate and of a role; sentences are told apart by their place. */
const frameKey = (place, { predicate }) => `${place} ${predicate}`;
const roleKey = (place, found, { role, start, end }) => `${frameKey(place, found)} ${role} ${start} ${end}`;

export const keys = (results) =>
  results.flatMap((result, place) =>
    shownOf(result).flatMap((found) => [frameKey(place, found), ...found.roles.map((role) => roleKey(place, found, role))]),
  );

/** Whether the frames, `predicate: role text, role text`, are the expected ones. */
export function isRight(results, expected) {
  const frames = results.flatMap(shownOf);
  const found = frames.map(
    ({ predicate_text: predicate, roles }) => `${predicate}: ${roles.map(({ role, text }) => `${role} ${text}`).join(", ")}`,
  );
  return String(found) === String(expected);
}
export const between = " · ";

export function draw(results, run, differs) {
  const sentences = results.map((result, place) => {
    const rows = shownOf(result).map((found) => {
      const wrap = ({ role }, nodes) =>
        role
          ? mark(role.role, role.probability, run, nodes, differs(roleKey(place, found, role)))
          : element("mark.verb", {}, nodes, unseen(" (predicate)"));
      const isFramed = differs(frameKey(place, found));
      const name = element(`span${frame(isFramed)}`, {}, found.predicate_text, only(isFramed));
      const text = element("p.text", {}, marked(result.text, spansOf(found, result), wrap));
      return [element("dt", {}, name), element("dd", {}, text)];
    });
    const nothing = [element("p.text", {}, result.text), element("p.faint", {}, "No roles found.")];
    return element("section.sentence", {}, rows.length ? element("dl.frames", {}, rows) : nothing);
  });
  const labels = results.flatMap(({ frames }) => frames.flatMap(({ roles }) => roles.map(({ role }) => role)));
  return labels.length ? [sentences, key(run, labels)] : sentences;
}

/** The places of the roles and of the predicate, which is not among them, in characters of the sentence. */
function spansOf({ roles, tags }, { offsets, start_char: before }) {
  const spans = roles.map((role) => ({ role, start: role.start_char - before, end: role.end_char - before }));
  tags.forEach((tag, place) => {
    if (tag === "B-V") spans.push({ role: null, start: offsets[place][0] - before, end: offsets[place][1] - before });
    else if (tag === "I-V") spans.at(-1).end = offsets[place][1] - before;
  });
  return spans;
}
