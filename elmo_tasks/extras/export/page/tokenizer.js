// Raw text to sentences and tokens, by the rules of an exported model: text/rule_tokenizer.py in JavaScript.

const WORD = "\\p{L}\\p{N}_";
const SPACE = "\\s\\x1c-\\x1f\\x85"; // as in Python
const IS_SPACE = new RegExp(`[${SPACE}]`);
const isUpper = (text) => /^\p{Uppercase}/u.test(text);

/** A pattern of Python. */
function compiled(pattern) {
  const ignoresCase = pattern.startsWith("(?i)");
  const classes = { "\\w": WORD, "\\s": SPACE, "\\d": "\\p{Nd}", "\\D": "\\P{Nd}" };
  const border = `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`;
  let isInside = false; // a class
  const source = pattern.slice(ignoresCase ? 4 : 0).replace(/\[\^\\W(\\d)?_\]|\\.|[[\]]/g, (found, digit) => {
    if (found.startsWith("[^")) return digit ? "\\p{L}" : "[\\p{L}\\p{N}]";
    if (found === "[" || found === "]") isInside = found === "[";
    if (found === "\\b") return border;
    return isInside || !(found in classes) ? (classes[found] ?? found) : `[${classes[found]}]`;
  });
  return new RegExp(source, ignoresCase ? "giu" : "gu");
}

export class Tokenizer {
  #patterns;
  #lists;
  #words;
  #straight;

  constructor({ patterns, lists, words, straight_quotes: straight }) {
    const each = (values, change) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
    this.#patterns = each(patterns, compiled);
    this.#lists = each(lists, (found) => new Set(found));
    this.#words = words.map(([rule, spaced]) => [compiled(rule), spaced.replace("\\g<0>", "$$&").replace(/\\(\d)/g, "$$$1")]);
    this.#straight = straight;
  }

  /** The [start, end] of the tokens of each sentence that has any, in UTF-16. */
  spans(given) {
    const text = given.replace(this.#patterns.unseen, " ");
    const blank = [...text.matchAll(this.#patterns.blank_line)].flatMap((match) => [match.index, match.index + match[0].length]);
    const borders = [0, ...blank, text.length];
    const sentences = [];
    for (let at = 0; at < borders.length; at += 2) {
      const starts = [borders[at], ...this.#starts(text.slice(borders[at], borders[at + 1])).map((each) => borders[at] + each)];
      starts.forEach((start, place) => sentences.push(this.#tokens(text, start, starts[place + 1] ?? borders[at + 1])));
    }
    return sentences.filter((tokens) => tokens.length);
  }

  #finds = (name, text) => text.search(this.#patterns[name]) === 0;

  /** Where the second and every later sentence begins. */
  #starts(given) {
    const text = Array.from(given, (each) => this.#straight[each] ?? each).join("");
    const places = [...text.matchAll(this.#patterns.place)].map((place) => {
      const next = place.index + place[0].length - place[4].length;
      return { text, place, next, opening: next - place[3].length };
    });
    return places.filter((each) => this.#isBorder(each)).map(({ opening }) => opening);
  }

  #isBorder({ text, place, next, opening }) {
    const [, marks, , , follower] = place;
    const closing = (place[2] ?? "").trim();
    const [first, second = ""] = Array.from(text.slice(place.index + marks.length).slice(0, 4));
    if (place[2] === undefined && first !== ":" && !/^\p{Nd}/u.test(second)) {
      if (!(first === "[" ? /^\p{L}/u.test(second) : isUpper(second))) return false;
    }
    const rest = text.slice(opening, opening + 500);
    const goesOn = /^\p{Lowercase}/u.test(follower) && !this.#finds("address", text.slice(next));
    const isSaid = marks !== "." && /["']$/.test(closing) && this.#finds("speaker", rest) && isUpper(rest);
    if (isSaid || (closing && goesOn)) return false;
    if (/[?!]/.test(marks)) return true;
    const starts = isUpper(follower) && this.#lists.starters.has(follower.toLowerCase());
    if (marks !== ".") return starts || closing !== "";
    const word = this.#wordBefore(text, place.index);
    if (this.#lists.never_last.has(word) || (this.#lists.before_numbers.has(word) && /^\p{Nd}/u.test(follower))) return false;
    if (this.#isAbbreviation(word)) return starts || (this.#finds("speech", rest) && isUpper(rest.slice(1)));
    return !(goesOn && /^\p{Nd}{1,2}$/u.test(word));
  }

  #wordBefore(text, mark) {
    return (text.slice(Math.max(0, mark - 40), mark).match(this.#patterns.last_word)?.[0] ?? "").toLowerCase();
  }

  #isAbbreviation(word) {
    const known = this.#lists.abbreviations;
    return known.has(word) || known.has(word.slice(word.lastIndexOf("-") + 1)) || word.match(this.#patterns.initials)?.[0] === word;
  }

  #tokens(text, start, end) {
    const { apostrophe, unsplit, inner_period: innerPeriod } = this.#patterns;
    const apart = (period, at, whole) => (this.#isAbbreviation(this.#wordBefore(whole, at)) ? "." : " .");
    let standIn = text.slice(start, end).replace(apostrophe, "'").replace(unsplit, (found) => "x".repeat(found.length));
    standIn = piecesOf(standIn.replace(innerPeriod, apart)).join(" ");
    for (const [rule, spaced] of this.#words) standIn = standIn.replace(rule, spaced);
    let at = start;
    return piecesOf(standIn).map((piece) => {
      while (IS_SPACE.test(text[at])) at++;
      return [at, (at += piece.length)];
    });
  }
}

const piecesOf = (text) => text.match(new RegExp(`[^${SPACE}]+`, "g")) ?? [];
