// The place of a result in a panel: its summary, picture and downloads, or what the server says is wrong.
import { announce, element, save } from "./shared.js";
import { toSvg } from "./svg.js";

const EDITED = "This result is for the text before your change. Press Run to update it.";

export class ResultView {
  #request = null;
  #answer = null;
  #note = "";
  #name;

  /** `name()` is the beginning of the names of downloaded files. */
  constructor(name) {
    this.#name = name;
    this.summary = element("h3.summary");
    this.note = element("p.caption");
    this.error = element("p.error", { role: "alert" });
    this.time = element("p.caption");
    this.picture = element("div.picture");
    this.more = element("div.more");
    this.copy = element("button", { type: "button", onclick: () => this.#copyLink() }, "Copy link");
    const downloads = element(
      "div.downloads",
      {},
      element("button", { type: "button", onclick: () => this.#saveJson() }, "JSON"),
      element("button", { type: "button", onclick: () => this.#saveSvg() }, "SVG"),
      this.copy,
    );
    this.found = element(
      "div.found",
      { hidden: true },
      this.summary,
      this.note,
      this.picture,
      element("div.row", {}, this.time, downloads),
      this.more,
    );
    this.element = element("section.result", { "aria-label": "Result" }, this.error, this.found);
  }

  /**
   * Shows what `compute` finds: `{answer, summary, note, time, picture, more}`, and returns whether there is something.
   * What an earlier call still waits for is dropped.
   */
  async show(compute) {
    this.#request?.abort();
    const request = (this.#request = new AbortController());
    this.element.ariaBusy = "true";
    announce("");
    try {
      const { answer, summary, note = "", time = "", picture, more = [] } = await compute(request.signal);
      if (request.signal.aborted) return false;
      this.#answer = answer;
      this.error.textContent = "";
      this.summary.textContent = summary;
      this.note.textContent = note;
      this.#note = note;
      this.time.textContent = time;
      this.setEdited(false);
      this.picture.replaceChildren(...[picture].flat(Infinity).filter(Boolean));
      this.more.replaceChildren(...[more].flat(Infinity).filter(Boolean));
      this.found.hidden = false;
      if (this.element.checkVisibility()) announce(summary); // not of a tab that was left
    } catch (error) {
      if (request.signal.aborted) return false;
      this.found.hidden = true;
      this.error.textContent = error.message;
    }
    this.element.ariaBusy = "false";
    return !this.found.hidden;
  }

  /** Dims the result while something else is in the form. */
  setEdited(isEdited) {
    this.element.classList.toggle("edited", isEdited);
    this.note.textContent = isEdited ? EDITED : this.#note;
  }

  #saveJson() {
    save(`${this.#name()}.json`, "application/json", `${JSON.stringify(this.#answer, null, 2)}\n`);
  }

  #saveSvg() {
    save(`${this.#name()}.svg`, "image/svg+xml", toSvg(this.picture));
  }

  async #copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.copy.textContent = "Copied";
      announce("Link copied.");
    } catch {
      announce("Your browser does not allow copying. Copy the address of this page instead.");
      this.copy.textContent = "See address";
    }
    setTimeout(() => (this.copy.textContent = "Copy link"), 2000);
  }
}

/** A form whose text fields are submitted by Enter. `edited` is called after each change. `buttons` are next to Run. */
export function inputForm(controls, submit, edited, ...buttons) {
  const run = element("button.run", { type: "submit" }, "Run");
  const form = element("form", { novalidate: true, oninput: edited }, controls, element("div.buttons", {}, run, buttons));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.target.tagName !== "TEXTAREA") return;
    event.preventDefault();
    submit();
  });
  return form;
}

/** Buttons that fill a form with examples. `about` of an example says what it shows, and is seen instead of its text. */
export function exampleList(examples, fill) {
  const chips = examples.map(({ about, expected, ...fields }) => {
    const text = fields.question ?? Object.values(fields).join(" · ");
    const button = element("button.example", { type: "button", title: text, onclick: () => fill(fields) }, about ?? text);
    return element("li", {}, button);
  });
  return element("section.examples", { "aria-label": "Examples", hidden: !chips.length }, element("ul", {}, chips));
}
