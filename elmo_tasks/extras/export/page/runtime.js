// An exported biLM or tagger in a browser: elmo_tasks_runtime/model.py in JavaScript.
import * as ort from "./ort.mjs";
import { Tokenizer } from "./tokenizer.js";

const BORDERS = new Map([["<S>", 257], ["</S>", 258]]);
const [BEGIN, END, PADDING, UNKNOWN, MOST_LETTERS] = [259, 260, 261, 1, 50];
const [SENTENCES_AT_ONCE, WORDS_AT_ONCE] = [32, 128];

const padded = (ids, width, padding) => ids.map((each) => [...each, ...Array(width - each.length).fill(padding)]);
const longest = (lists) => Math.max(...lists.map((each) => each.length));
const rounded = (value) => Math.round(1e6 * Math.min(1, value)) / 1e6;
const bytes = new TextEncoder();

/** Whole numbers, in lists of one length or in one list. */
function whole(rows) {
  const dims = Array.isArray(rows[0]) ? [rows.length, rows[0].length] : [rows.length];
  return new ort.Tensor("int64", BigInt64Array.from(rows.flat(), BigInt), dims);
}

/** What an output has for a sentence, without the padding: whole numbers, or vectors, perhaps in layers. */
function ofSentence({ data, dims }, place, length) {
  const size = data.length / dims[0];
  const own = data.slice(place * size, (place + 1) * size);
  if (dims.length === 2) return Array.from(own.slice(0, length), Number);
  const [tokens, features] = dims.slice(-2);
  const rows = (first) =>
    Array.from({ length }, (_, at) => own.subarray((first + at) * features, (first + at + 1) * features));
  return dims.length === 3 ? rows(0) : Array.from({ length: dims[1] }, (_, layer) => rows(layer * tokens));
}

export class Model {
  #sessions;
  #tokenizer;
  #rows;
  #letters;
  #vectors = new Map(); // of words that have been read

  /** Makes a model of its files: the object in model.json, and the bytes of words.onnx and sentences.onnx. */
  static async load(about, words, sentences) {
    ort.env.wasm.numThreads = 1; // more need headers that static hosts do not send
    return new Model(about, [await ort.InferenceSession.create(words), await ort.InferenceSession.create(sentences)]);
  }

  constructor(about, sessions) {
    this.about = about;
    this.#sessions = sessions;
    this.#tokenizer = new Tokenizer(about.tokenizer);
    const rows = (names) => new Map((names ?? []).map((name, row) => [name, row]).slice(UNKNOWN + 1));
    [this.#rows, this.#letters] = [rows(about.words), rows(about.letters)];
  }

  /** The sentences of a text as `elmo-tasks predict` describes them, without what a tagger finds. */
  sentences(text) {
    const places = new Int32Array(text.length + 1); // in characters of Python
    for (let at = 1; at <= text.length; at++) places[at] = places[at - 1] + !/[\uDC00-\uDFFF]/.test(text[at - 1]);
    return this.#tokenizer.spans(text).map((spans) => {
      const [start, end] = [spans[0][0], spans.at(-1)[1]];
      const tokens = spans.map((span) => text.slice(...span));
      const offsets = spans.map((span) => span.map((at) => places[at]));
      return { text: text.slice(start, end), start_char: places[start], end_char: places[end], tokens, offsets };
    });
  }

  /** The results of `elmo-tasks predict` for a text, with `tag_probabilities`, for each token those of its likeliest tags. */
  async predict(text) {
    const sentences = this.sentences(text);
    const found = await this.run(sentences.map(({ tokens }) => tokens), ["tags", "probabilities"]);
    return sentences.map((sentence, place) => {
      const { tags, probabilities: shares } = found[place];
      const probabilities = tags.map((tag, at) => rounded(shares[at][tag]));
      const likeliest = shares.map((each) => {
        const order = [...each.keys()].sort((one, other) => each[other] - each[one]).slice(0, 5);
        return Object.fromEntries(order.map((tag) => [this.about.tags[tag], rounded(each[tag])]));
      });
      return { ...sentence, tags: tags.map((tag) => this.about.tags[tag]), probabilities, tag_probabilities: likeliest };
    });
  }

  /** For each list of tokens its outputs: `layers` of vectors, or `tags` and the `probabilities` of all tags. */
  async run(sentences, names) {
    const found = [];
    const order = [...sentences.keys()].sort((one, other) => sentences[one].length - sentences[other].length);
    for (let start = 0; start < order.length; start += SENTENCES_AT_ONCE) {
      const numbers = order.slice(start, start + SENTENCES_AT_ONCE);
      const part = numbers.map((number) => sentences[number]);
      const tokens = [...new Set([...BORDERS.keys(), ...part.flat()])];
      const places = new Map(tokens.map((token, place) => [token, place]));
      const index = part.map((sentence) => [0, ...sentence.map((token) => places.get(token)), 1]);
      const words = await this.#vectorsOf(tokens);
      const lengths = whole(part.map(({ length }) => length));
      const feed = { words, index: whole(padded(index, longest(index), 0)), lengths };
      const outputs = await this.#sessions[1].run(feed, names);
      numbers.forEach((number, place) => {
        found[number] = Object.fromEntries(names.map((name) => [name, ofSentence(outputs[name], place, part[place].length)]));
      });
    }
    return found;
  }

  async #vectorsOf(tokens) {
    const fresh = tokens.filter((token) => !this.#vectors.has(token)).sort((one, other) => one.length - other.length);
    for (let start = 0; start < fresh.length; start += WORDS_AT_ONCE) {
      const part = fresh.slice(start, start + WORDS_AT_ONCE);
      const feed = {};
      for (const name of this.#sessions[0].inputNames) feed[name] = whole(this.#ids[name](part));
      const { data, dims } = (await this.#sessions[0].run(feed)).words;
      part.forEach((token, row) => this.#vectors.set(token, data.slice(row * dims[1], (row + 1) * dims[1])));
    }
    const rows = tokens.map((token) => this.#vectors.get(token));
    const all = new Float32Array(rows.length * rows[0].length);
    rows.forEach((row, place) => all.set(row, place * row.length));
    return new ort.Tensor("float32", all, [rows.length, rows[0].length]);
  }

  #ids = {
    characters: (tokens) => {
      const { characters: width, widest_filter: widest } = this.about;
      const content = (token) => [...bytes.encode(token).slice(0, width - 2)].map((each) => each + 1);
      const ids = tokens.map((token) => [BEGIN, ...(BORDERS.has(token) ? [BORDERS.get(token)] : content(token)), END]);
      return padded(ids, Math.min(width, longest(ids) + widest), PADDING);
    },
    rows: (tokens) =>
      tokens.map((token) => this.#rows.get(this.about.lowercase_words ? token.toLowerCase() : token) ?? UNKNOWN),
    letters: (tokens) => {
      const ids = tokens.map((token) =>
        Array.from(token).slice(0, MOST_LETTERS).map((letter) => this.#letters.get(letter) ?? UNKNOWN),
      );
      return padded(ids, longest(ids), 0);
    },
  };
}
