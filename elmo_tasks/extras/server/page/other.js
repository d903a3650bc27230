// A task without a picture of its own: JSON in, JSON out.
import { counted, element } from "./shared.js";

export const about = "Takes a JSON object, as elmo-tasks predict does, and shows the results as JSON.";
export const fields = [{ name: "json", label: "JSON object", rows: 4 }];

export function input({ json }) {
  try {
    return JSON.parse(json);
  } catch {
    throw new Error("The input is not valid JSON; expected an object.");
  }
}

export const keys = (results) => results.map((result) => JSON.stringify(result));
export const summary = (results) => counted(results.length, "result");
export const draw = (results) =>
  results.map((result) => element("pre", { tabindex: 0 }, JSON.stringify(result, null, 2)));
