// How much each token counts for a result: asked for only when it is opened, since it takes longer than the result.
import { announce, element, percent } from "./shared.js";

/** Arguments: `load()`, which gives the answer with the results. */
export function explanation(load) {
  const found = element("div.explained", { "aria-live": "polite" });
  let isAsked = false;
  const show = async () => {
    if (isAsked) return;
    isAsked = true;
    found.replaceChildren(element("p.faint", {}, "Computing…"));
    try {
      const { results } = await load();
      const items = results.flatMap((result) => result.saliency);
      const nothing = element("p", {}, "There is nothing to explain.");
      found.replaceChildren(...(items.length ? items.flatMap(drawn) : [nothing]));
    } catch (error) {
      isAsked = false; // opened again, it is asked for again
      found.replaceChildren(element("p.error", { role: "alert" }, error.message));
      announce(error.message);
    }
  };
  return element(
    "details",
    { ontoggle: show },
    element("summary", {}, "Explain: which tokens count"),
    element("p", {}, "Orange tokens support the prediction; blue ones count against it."),
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
