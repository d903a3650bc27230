// Coreference: mentions as nested boxes. A click, or the key on a mention's number, lights its chain.
import { color, counted, element, frame, howSure, marked, only, percent, sureness } from "./shared.js";

export const about = "Finds words that refer to the same person or thing.";
export const fields = [{ name: "text", label: "Text", rows: 3 }];

/** Whether the chains, `mention → mention`, are the expected ones. */
export function isRight(results, expected) {
  const chains = results.flatMap(({ clusters, mentions }) =>
    clusters.map((_, chain) => mentions.filter(({ cluster }) => cluster === chain).map(({ text }) => text).join(" → ")),
  );
  return String(chains) === String(expected);
}
export const between = " · ";

export function summary(results) {
  const [mentions, chains] = ["mentions", "clusters"].map((key) => results.flatMap((result) => result[key]).length);
  return chains ? `${counted(mentions, "mention")} in ${counted(chains, "chain")}` : "No chains found";
}

/** The key of a mention: the one before it in its chain is a part of it. */
function keyOf(mention, result) {
  const chain = result.mentions.filter(({ cluster }) => cluster === mention.cluster);
  const before = chain[chain.indexOf(mention) - 1];
  return [before?.start_char, before?.end_char, mention.start_char, mention.end_char].join(" ");
}

export const keys = (results) =>
  results.flatMap((result) => result.mentions.map((mention) => keyOf(mention, result)));

export function draw(results, _, differs) {
  return results.map((result) => drawDocument(result, differs));
}

function drawDocument(result, differs) {
  const picture = element("section.chains");
  const buttons = [];
  const light = (chain) => {
    const lit = picture.dataset.lit === String(chain) ? "" : String(chain);
    picture.dataset.lit = lit;
    picture.classList.toggle("lights", lit !== "");
    for (const each of picture.querySelectorAll("[data-chain]"))
      each.classList.toggle("lit", each.dataset.chain === lit);
    for (const each of buttons) each.setAttribute("aria-pressed", each.closest("[data-chain]").dataset.chain === lit);
  };
  const button = (chain, text, label) => {
    const made = element("button", { type: "button", "aria-pressed": false, "aria-label": label }, text);
    buttons.push(made);
    return made;
  };
  const wrap = (mention, [start, ...nodes]) => {
    const [word] = start.match(/^\S*/); // stays with the number
    const chain = mention.cluster + 1;
    const number = button(mention.cluster, String(chain), `chain ${chain}: ${mention.text}`);
    const { isFirst, probability } = mention; // that of the first one is not about a link
    return element(
      `mark.mention${isFirst ? "" : sureness(probability)}${frame(mention.differs)}`,
      { "data-chain": mention.cluster, ...color(mention.cluster), title: isFirst ? null : percent(probability) },
      element("span.label", {}, number, word),
      start.slice(word.length),
      nodes,
      only(mention.differs),
    );
  };
  const mentions = result.mentions.map((each) => ({
    ...each,
    start: each.start_char,
    end: each.end_char,
    differs: differs(keyOf(each, result)),
    isFirst: each === result.mentions.find(({ cluster }) => cluster === each.cluster),
  }));
  const chains = result.clusters.map((_, chain) => {
    const parts = mentions.filter((each) => each.cluster === chain);
    const items = parts.map((each) =>
      element(
        "li",
        {},
        each.isFirst ? null : element("span.arrow", { "aria-hidden": true }, "→"),
        `${each.text} `,
        each.isFirst ? null : element("span.sure", {}, percent(each.probability)),
      ),
    );
    return element(
      "div.chain",
      { "data-chain": chain, ...color(chain) },
      button(chain, `Chain ${chain + 1}`, `Highlight chain ${chain + 1}`),
      element("ol", {}, items),
    );
  });
  const text = element("p.text", {}, marked(result.text, mentions, wrap));
  const resolved = element("p.text", { hidden: true }, result.resolved ?? "");
  const change = ({ target }) => {
    resolved.hidden = !target.checked;
    text.hidden = target.checked;
  };
  const replace = element("input", { type: "checkbox", onchange: change });
  picture.append(
    text,
    resolved,
    result.resolved && chains.length ? element("label.switch", {}, replace, " Replace mentions by names") : "",
    ...chains,
    howSure(),
  );
  picture.addEventListener("click", (event) => {
    const target = event.target.closest("[data-chain]");
    if (target) light(Number(target.dataset.chain));
  });
  return picture;
}
