// ELMo itself: a word in three sentences, layer by layer; what the biLM expects; nearest tokens; the runs' mixes.
import { expectedIn, scoresOf } from "./expected.js";
import { ask, bars, checkFilled, element, heatMap, isWide, noRun, save } from "./shared.js";
import { exampleList, inputForm, ResultView } from "./result.js";
import { sharedWord } from "./shared_word.js";
import { toSvg } from "./svg.js";

const NEIGHBORS = 3;

const nameOfLayer = (layer) => (layer === 0 ? "Layer 0, letters only" : `Layer ${layer}`);
const threeDigits = (value) => value.toFixed(3);

export class ElmoPanel {
  isOpen = false;
  #runs;
  #go;

  constructor(runs, examples, go) {
    this.#runs = runs;
    this.#go = go;
    const withBilm = runs.filter(
      (run, place) => run.bilm && runs.findIndex((each) => each.bilm === run.bilm) === place,
    );
    this.run = element(
      "select",
      { id: "run-of-elmo" },
      withBilm.map((run) => element("option", { value: run.name }, `used by ${run.name}`)),
    );
    const choice = element(
      "div.choice",
      { hidden: withBilm.length < 2 },
      element("label", { for: this.run.id }, "biLM"),
      this.run,
    );
    const submit = () => this.#go(this, this.#written);
    this.sides = [
      new Side("one", "Sentence", submit),
      new Side("same", "The same sense", submit),
      new Side("other", "Another sense", submit),
    ];
    const fields = this.sides.map((side) => side.element);
    this.view = new ResultView(() => "elmo");
    this.element = element(
      "div",
      {},
      element("h2", {}, "A word in its sentence"),
      element("p.lead", {}, "ELMo gives a word another vector in each sentence, so it can tell its senses apart."),
      exampleList(examples, (example) => this.#go(this, this.#full(example))),
      inputForm([choice, element("div.thirds", {}, fields)], submit, () =>
        this.view.setEdited(!this.sides.every((side) => side.isChosen)),
      ),
      this.view.element,
      picture(),
      mixes(runs),
    );
    for (const side of this.sides) side.input.value = examples[0][side.name];
    this.link = this.#written;
  }

  /** The permalink of what is in the form. */
  get #written() {
    const texts = this.sides.map((side) => [side.name, side.text]);
    const chosen = this.sides.every((side) => side.isChosen) ? this.sides : [];
    return this.#full(Object.fromEntries([...texts, ...chosen.map((side) => [`${side.name}_at`, side.index])]));
  }

  /** Shows what a permalink stands for, and returns whether there is a result. It is the `link` from then on. */
  async open(link) {
    const named = this.#runs.find((run) => run.name === link.run);
    if (link.run && !named?.bilm) {
      const problem = named ? `The run ${link.run} has no frozen biLM.` : noRun(link.run);
      return this.view.show(() => Promise.reject(new Error(problem)));
    }
    this.isOpen = true;
    if (named) this.run.value = this.#runs.find((run) => run.bilm === named.bilm).name; // the first that has this biLM
    const [one, same, other] = this.sides;
    for (const side of this.sides) if (side.name in link) side.input.value = link[side.name];
    const isShown = await this.view.show(async (signal) => {
      const begin = performance.now();
      checkFilled(this.sides.map((side) => side.input));
      for (const side of this.sides) await side.read(this.run.value, signal);
      const [at, otherAt] = sharedWord(one.tokens, other.tokens);
      one.choose(Number(link.one_at ?? at));
      other.choose(Number(link.other_at ?? otherAt));
      same.choose(Number(link.same_at ?? sharedWord([one.token], same.tokens)[1]));
      const sentences = this.sides.map((side) => ({ tokens: side.tokens, index: side.index }));
      const run = this.run.value || null;
      const compare = async (place) =>
        (await ask("api/similarity", { one: sentences[0], other: sentences[place], run }, signal)).layers;
      const similarity = { same: await compare(1), other: await compare(2) };
      const layers = similarity.same.map(({ layer }) => layer);
      const neighborsIn = async (sentence, layer) =>
        (await ask("api/neighbors", { ...sentence, run, layer, k: NEIGHBORS }, signal)).neighbors;
      const neighbors = await Promise.all(
        [0, 2].map((place) => Promise.all(layers.map((layer) => neighborsIn(sentences[place], layer)))),
      );
      const scores = await scoresOf(sentences, run, signal);
      const pairs = layers.map((layer) => [similarity.same[layer].cosine, similarity.other[layer].cosine]);
      const [alike, apart] = pairs.at(-1).map((value) => value.toFixed(2));
      return {
        answer: { sentences, similarity, neighbors, scores: scores.sentences ?? null },
        summary: `“${one.token}”: similarity ${alike} in the same sense, ${apart} in another`,
        time: `Answered in ${Math.round(performance.now() - begin)} ms`,
        picture: [
          element(
            "p.caption",
            {},
            "How similar the word’s vectors are, from 0 to 1 (cosine). Layer 0 sees only the letters of the word, " +
              "the layers above it also the sentence.",
          ),
          element(
            "div.thirds",
            {},
            pairs.map(([same, other], layer) => {
              const items = [["same sense", same], ["other sense", other]];
              return bars(nameOfLayer(layer), items, { text: threeDigits });
            }),
          ),
          element("p.caption", {}, "Which words the biLM expects in its place. Click another word to compare that."),
          scores.problem ? element("p.faint", {}, scores.problem) : null,
          element(
            "div.thirds",
            {},
            this.sides.map((side, place) => element("div", {}, side.choice, expectedIn(scores, place, side.index))),
          ),
          [0, 2].map((place, number) => nearest(sentences[place], neighbors[number])),
        ],
      };
    });
    if (isShown) this.link = this.#written;
    return isShown;
  }

  #full(link) {
    return { tab: "elmo", ...(this.run.options.length > 1 ? { run: this.run.value } : {}), ...link };
  }
}

/** A sentence and the choice of one of its tokens. */
class Side {
  tokens = [];
  #tokensOf = null;
  #text = null;
  #title;

  constructor(name, title, submit) {
    this.name = name;
    this.#title = title;
    this.input = element("textarea", { id: `elmo-${name}`, rows: 1, spellcheck: "false", required: true });
    this.choice = element("div.tokens-choice", { role: "radiogroup", "aria-label": `Word in “${title}”` });
    this.choice.addEventListener("change", submit);
    this.element = element("div.field", {}, element("label", { for: this.input.id }, title), this.input);
  }

  get text() {
    return this.input.value;
  }

  get index() {
    return Math.max(
      0,
      [...this.choice.querySelectorAll("input")].findIndex((each) => each.checked),
    );
  }

  get token() {
    return this.tokens[this.index];
  }

  /** Whether a word of the sentence as it is written now has been chosen. */
  get isChosen() {
    return this.#text === this.text;
  }

  /** Shows the tokens of the sentence, which the server knows. */
  async read(run, signal) {
    const { text } = this;
    if (this.#tokensOf !== text + run) {
      const { tokens } = await ask("api/embed", { text, layers: [], run: run || null }, signal, { text: this.#title });
      this.tokens = tokens;
      this.#tokensOf = text + run;
      this.#text = text;
      this.choice.replaceChildren(
        ...tokens.map((token) =>
          element(
            "label",
            {},
            element("input", { type: "radio", name: `word-${this.name}` }),
            element("span", {}, token),
          ),
        ),
      );
    }
  }

  choose(index) {
    const radios = [...this.choice.querySelectorAll("input")];
    (radios[index] ?? radios[0]).checked = true;
  }
}

/** How ELMo works, to be opened. */
function picture() {
  const about =
    "A sentence passes through two LSTM layers in each direction, left to right and right to left. " +
    "The model of each task learns how to weight the layers, and reads their mix.";
  return element(
    "details.how",
    {},
    element("summary", {}, "How ELMo works"),
    element("p", {}, about),
    element(
      "div.scroll",
      { tabindex: 0, role: "region", "aria-label": "How ELMo works" },
      element("img", { src: "elmo.svg", alt: about, width: 980, height: 520, loading: "lazy" }),
    ),
  );
}

/** The nearest tokens in each layer, each in its sentence; on a phone, to be opened. */
function nearest({ tokens, index }, layers) {
  if (!layers.some((neighbors) => neighbors.length)) return null;
  const columns = layers.map((neighbors, layer) =>
    element(
      "div",
      {},
      element("h4", {}, nameOfLayer(layer)),
      element(
        "ol",
        {},
        neighbors.map((each) =>
          element(
            "li",
            {},
            each.tokens.map((token, place) => [
              place ? " " : "",
              place === each.index ? element("b", {}, token) : token,
            ]),
            " ",
            element("span.sure", {}, threeDigits(each.cosine)),
          ),
        ),
      ),
    ),
  );
  const sentence = tokens.map((token, place) => [place ? " " : "", place === index ? element("b", {}, token) : token]);
  return element(
    "details.nearest",
    { open: isWide() },
    element("summary", {}, "Nearest to ", sentence),
    element("div.columns", {}, columns),
  );
}

/** The learned weights of the runs' mixes, to be opened. */
function mixes(runs) {
  const rows = runs.flatMap((run) => (run.mixes ?? []).map((mix) => ({ run: run.name, ...mix })));
  if (!rows.length) return null;
  const layers = [...new Set(rows.flatMap((row) => row.layers))].sort((one, other) => one - other);
  const values = rows.map((row) => layers.map((layer) => row.weights[row.layers.indexOf(layer)] ?? null));
  const names = rows.map((row) => `${row.run}, ${row.name}, γ ${threeDigits(row.gamma)}`);
  const caption = "Weights of the layers in each mix, as in Figure 2 of Peters et al. (2018)";
  const means = rows.map((row) => 1 / row.layers.length);
  const different = [...new Set(means)].map(threeDigits).join(" or ");
  const figure = heatMap(caption, names, layers.map(nameOfLayer), values, {
    how:
      "Each row is a mix and each column a layer; the weights in a row sum to 1. " +
      `Orange weights are above the mean of their row (${different}); blue ones are below it.`,
    say: (down, across, value) => `${names[down]}. ${nameOfLayer(layers[across])}: weight ${value.toFixed(4)}`,
    shade: (value, down) => value / means[down] - 1,
    digits: 3,
    corner: "Run, mix and scale γ",
  });
  const download = () => save("mixes.svg", "image/svg+xml", toSvg(figure));
  const button = element("button", { type: "button", "aria-label": "SVG of the weights", onclick: download }, "SVG");
  const summary = element("summary", {}, "Which layers the runs learned to use");
  return element("details.mixes", {}, summary, figure, element("div.downloads", {}, button));
}
