// What the pictures and forms share: elements, requests, colours, marked text, bars and heat maps.

/** An element: `element("p.note", {hidden: true}, "text", child)`. Attributes other than ARIA’s are left out if they are null or false. */
export function element(kind, attributes = {}, ...children) {
  const [name, ...classes] = kind.split(".");
  const made = document.createElement(name);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) made.style.setProperty(key, value);
    else if (key.startsWith("aria-")) made.setAttribute(key, value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null));
  return made;
}

const ALMOST_NONE = 0.05; // a share whose number is faint
const LEAST = 0.0005; // a share that is not written as 0.0 %
const POLARITY = /positive|negative/;
const [SURE, LIKELY] = [0.9, 0.5]; // below these shares, marks are striped, and only outlined

/** Text for screen readers only. */
export const unseen = (text) => element("span.unseen", {}, text);

/** A share in percent. One that only rounding makes nothing or all is written as a bound. */
export function percent(share) {
  if (share >= 0 && share < LEAST) return "<0.1 %";
  return share > 1 - LEAST ? ">99.9 %" : `${(100 * share).toFixed(1)} %`;
}

export const counted = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

export const noRun = (name) => `This server has no run named ${name}.`;

let answering = null;

/** Answers all requests by `answer(address, body)`, where there is no server. */
export const answerWith = (answer) => (answering = answer);

/**
 * The server's answer to a request. Throws an `Error` with the sentence in which the server says what is wrong.
 * `names` are those of the fields on the page, by their keys in the request.
 */
export async function ask(address, body, signal, names = {}) {
  if (answering) return answering(address, body);
  let response;
  const request = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  };
  try {
    response = await fetch(address, body === undefined ? { signal } : request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server is not responding. Is it still running?");
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    if (response.ok) throw new Error("The answer was cut off or is not JSON.");
    return {};
  });
  if (response.ok) return answer;
  let problem = answer.error ?? `The server answered with status ${response.status}.`;
  for (const [key, name] of Object.entries(names)) problem = problem.replaceAll(`'${key}'`, `“${name}”`);
  throw new Error(problem);
}

/** Goes to the first field that is blank, if there is one, and throws an `Error` that names it. */
export function checkFilled(inputs) {
  const blank = inputs.find((input) => !input.value.trim());
  for (const input of inputs) input.ariaInvalid = String(input === blank);
  blank?.focus();
  if (blank) throw new Error(`“${nameOf(blank)}” is blank. Enter something, or choose an example.`);
}

/** What the page calls a field. */
export const nameOf = (input) => input.labels[0].textContent;

/** The colour of the palette with a number, for `element`. */
export const color = (number) => ({ "--color": `var(--color-${Math.max(0, number) % paletteSize()})` });

const paletteSize = () => Number(getComputedStyle(document.documentElement).getPropertyValue("--colors"));

/** Says something to users of screen readers. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

/** The kinds of a run's labels, each once: `B-PER` and `I-PER` are one. */
export const kindsOfLabels = (run) => Object.keys(run.legend);

/**
 * The nodes of a text in which spans are wrapped. They may nest; of two that cross, only the first is wrapped.
 * `start` and `end` of a span are in characters of Python, the end exclusive.
 */
export function marked(text, spans, wrap) {
  const characters = Array.from(text);
  const sorted = [...spans].sort((one, other) => one.start - other.start || other.end - one.end);
  let next = 0;
  const nodes = (start, end) => {
    const found = [];
    let at = start;
    while (next < sorted.length && sorted[next].start < end) {
      const span = sorted[next++];
      if (span.end > end) continue; // it crosses the one around
      found.push(characters.slice(at, span.start).join(""), wrap(span, nodes(span.start, span.end)));
      at = span.end;
    }
    return [...found, characters.slice(at, end).join("")];
  };
  return nodes(0, characters.length);
}

/** Whether what is right was found. */
export const tick = (isRight) =>
  element(`span.tick${isRight ? ".right" : ""}`, { role: "img", "aria-label": isRight ? "right" : "wrong" }, isRight ? "✓" : "✗");

/** Whether the screen is wider than that of a phone. */
export const isWide = () => matchMedia("(min-width: 40rem)").matches;

/**
 * What is predicted for a whole text or pair, in a line: a label, a set of labels or a number. Where no label has half
 * of the probability, two: if labels have an order, neighbours in it.
 */
export function predicted(result, run) {
  if ("score" in result) return `Score: ${Number(result.score.toPrecision(6))}`;
  if ("labels" in result) return `Labels: ${result.labels.join(", ") || "none"}`;
  const { label, probabilities: shares } = result;
  if (shares[label] >= LIKELY) return `${label}, ${percent(shares[label])}`;
  const at = run.labels.indexOf(label);
  const rivals = run.is_ordered ? [run.labels[at - 1], run.labels[at + 1]] : run.labels;
  const [second] = rivals.filter((each) => each in shares && each !== label).sort((a, b) => shares[b] - shares[a]);
  const pair = run.labels.filter((each) => each === label || each === second);
  return `${pair.join(" or ")}, together ${percent(shares[label] + shares[second])}`;
}

/** What two runs may predict differently for a whole text or pair. */
export const predictedKeys = ([result]) => [String(result.label ?? result.labels ?? result.score.toPrecision(6))];

/** The probabilities of the labels: in their own order if they have one, else the highest first. */
export function predictedBars([result], run, differs) {
  const shares = result.probabilities ?? {};
  const byShare = Object.keys(shares).sort((one, other) => shares[other] - shares[one]);
  const place = (label) => (run.is_ordered ? run.labels.indexOf(label) : 0);
  const labels = [...byShare].sort((one, other) => place(one) - place(other));
  const framed = differs(...predictedKeys([result]));
  const chosen = [result.label ?? result.labels].flat();
  const name = (label) =>
    framed && chosen.includes(label) ? element("span.differs", {}, label, only(true)) : label;
  const items = labels.map((label) => [name(label), shares[label], POLARITY.exec(label)?.[0] ?? ""]);
  return byShare.length ? bars("Probabilities", items, { best: labels.indexOf(byShare[0]) }) : [];
}

/** A class and a word for what only one of two runs has: `element(`mark${frame(differs)}`, {}, text, only(differs))`. */
export const frame = (differs) => (differs ? ".differs" : "");
export const only = (differs) => (differs ? unseen(" (only in this run)") : null);

/** A class for what a model is not sure of. */
export const sureness = (share) => (share >= SURE ? "" : share >= LIKELY ? ".likely" : ".doubtful");

/** A labelled span, whose label stays with its last word; framed if it `differs` from what another run finds. */
export function mark(label, probability, run, nodes, differs) {
  const { color: number, meaning } = run.legend[label] ?? { color: 0 };
  const sure = probability < SURE ? [" ", element("span.sure", {}, percent(probability))] : null;
  return element(
    `mark${sureness(probability)}${frame(differs)}`,
    { ...color(number), title: [label, meaning, percent(probability)].filter(Boolean).join(", ") },
    nodes,
    element("span.label", {}, "\u00a0", element("b", {}, label), sure),
    only(differs),
  );
}

/** How marks look that a model is not sure of; hidden where there are none. */
export const howSure = () =>
  element("p.caption.how-sure", {}, "The model is less than 90 % sure of striped marks, and less than 50 % sure of dotted ones.");

/** What the labels of a result mean, as far as it is known, those of one colour next to each other. */
export function key(run, labels) {
  const { legend } = run;
  const known = kindsOfLabels(run)
    .filter((label) => labels.includes(label) && legend[label].meaning && legend[label].color !== null)
    .sort((one, other) => legend[one].color - legend[other].color);
  const items = known.map((label) =>
    element("div", {}, element("dt", color(legend[label].color), label), element("dd", {}, legend[label].meaning)),
  );
  const details = element("details", { open: isWide() }, element("summary", {}, "Labels"), element("dl.key", {}, items));
  return [items.length ? details : [], howSure()];
}

/** Names with a share each, as a table with bars. Items are `[name, share, class]`; the name can be an element. */
export function bars(caption, items, { text = percent, best = 0 } = {}) {
  const rows = items.map(([name, share, kind = ""], number) =>
    element(
      number === best ? "tr.best" : "tr",
      { "data-kind": kind },
      element("th", { scope: "row" }, name),
      element("td.track", { "aria-hidden": true }, element("span.bar", { "--share": Math.max(0, Math.min(1, share)) })),
      element("td.number", {}, text(share)),
    ),
  );
  return element("table.bars", {}, element("caption", {}, caption), element("tbody", {}, rows));
}

/**
 * A table of numbers as a heat map. Arrow keys move from cell to cell; a line below says what the cell is.
 * Arguments: the caption, names of rows and columns, rows of numbers; `how` says how to read it, `say` makes the line,
 * `shade(value, down)` the share of colour, which is another one below 0.
 */
export function heatMap(
  caption,
  rows,
  columns,
  values,
  { how, say, shade = (value) => value, digits = 2, corner = "" },
) {
  const readout = element("p.readout", { "aria-hidden": true }, "\u00a0");
  const cells = values.map((row, down) =>
    row.map((value, across) => {
      const shown = !value || value < 10 ** -digits / 2 ? "" : value.toFixed(digits).replace(/^0\./, ".");
      const label = value === null ? "" : say(down, across, value);
      const show = () => (readout.textContent = label || "\u00a0");
      const share = value === null ? 0 : shade(value, down);
      return element(
        `td${share < 0 ? ".against" : ""}${Math.abs(share) < ALMOST_NONE ? ".low" : ""}`,
        { tabindex: -1, "--share": Math.min(1, Math.abs(share)), onfocus: show, onmouseenter: show },
        shown,
      );
    }),
  );
  cells[0][0].tabIndex = 0;
  const grid = element(
    "table.heat",
    { role: "grid", "aria-readonly": true, "aria-label": caption },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        corner ? element("th", { scope: "col" }, corner) : element("td", {}),
        columns.map((name) => element("th", { scope: "col" }, element("span", {}, name))),
      ),
    ),
    element(
      "tbody",
      {},
      cells.map((row, down) => element("tr", {}, element("th", { scope: "row" }, rows[down]), row)),
    ),
  );
  grid.addEventListener("keydown", (event) => moveInGrid(event, cells));
  grid.addEventListener("focusin", (event) => {
    for (const cell of cells.flat()) cell.tabIndex = cell === event.target ? 0 : -1;
  });
  const captions = element("figcaption", {}, caption, element("br"), how);
  return element("figure", {}, captions, element("div.scroll", {}, grid), readout);
}

function moveInGrid(event, cells) {
  const down = cells.findIndex((row) => row.includes(event.target));
  const across = cells[down]?.indexOf(event.target);
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const [by, to] = steps[event.key] ?? [0, 0];
  const target = { Home: cells[down]?.[0], End: cells[down]?.at(-1) }[event.key] ?? cells[down + by]?.[across + to];
  if (down < 0 || !target || target === event.target) return;
  event.preventDefault();
  target.focus();
}

/** Lets the user save a text as a file. */
export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
