// How much each token counts for a result: asked for only when it is opened, since it takes longer than the result.
import { announce, element, percent } from "./shared.js";

const METHODS = [
  ["integrated", "Integrated gradients"],
  ["gradient", "Gradient times input"],
];

/** Arguments: `load(method, signal)`, which gives the answer with the results. */
export function explanation(load) {
  const found = element("div.explained", { "aria-live": "polite" });
  let request = null;
  const show = async (method) => {
    request?.abort();
    const { signal } = (request = new AbortController());
    buttons.forEach((button, number) => button.setAttribute("aria-pressed", METHODS[number][0] === method));
    found.replaceChildren(element("p.faint", {}, "Computing…"));
    try {
      const { results } = await load(method, signal);
      if (signal.aborted) return;
      const items = results.flatMap((result) => result.saliency);
      const nothing = element("p", {}, "There is nothing to explain.");
      found.replaceChildren(...(items.length ? items.flatMap(drawn) : [nothing]));
    } catch (error) {
      if (signal.aborted) return;
      found.replaceChildren(element("p.error", { role: "alert" }, error.message));
      announce(error.message);
    }
  };
  const buttons = METHODS.map(([method, name]) =>
    element("button", { type: "button", "aria-pressed": false, onclick: () => show(method) }, name),
  );
  return element(
    "details",
    {},
    element("summary", {}, "Explain: which tokens count"),
    element("p", {}, "Orange tokens support the prediction; blue ones count against it."),
    element("div.downloads", {}, buttons),
    found,
  );
}

/** A caption, and below it the tokens of each text that the model reads, with their shares. */
function drawn({ of, text = "", ...texts }) {
  const lists = Object.entries(texts).filter(([, value]) => Array.isArray(value));
  const most = Math.max(...lists.flatMap(([, tokens]) => tokens.map(([, share]) => Math.abs(share))));
  return lists.flatMap(([name, tokens]) => [
    element("p.caption", {}, `${of || "(no answer)"} ${text}${lists.length > 1 ? ` ← ${name}` : ""}`),
    element(
      "p.tokens",
      {},
      tokens.map(([token, share]) =>
        element(
          share < 0 ? "span.token.against" : "span.token",
          { "--share": most ? Math.abs(share) / most : 0 },
          element("span.word", {}, token),
          " ",
          element("span.sure", {}, percent(share)),
          " ",
        ),
      ),
    ),
  ]);
}
