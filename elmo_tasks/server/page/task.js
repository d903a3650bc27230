// The panel of a task: a form, examples, the picture of a result, and what is known of the run.
import { ask, element } from "./shared.js";
import { explanation } from "./explanation.js";
import { inputForm, ResultView } from "./result.js";

export class TaskPanel {
  #picture;
  #runs;
  #go;

  /**
   * Arguments: the module with the task's picture, its runs, examples, and `go`, which opens a permalink:
   * `go({run: ..., <fields>})`.
   */
  constructor(picture, title, runs, examples, go) {
    this.#picture = picture;
    this.#runs = runs;
    this.#go = go;
    this.view = new ResultView(() => this.select.value);
    this.select = element(
      "select",
      { id: `run-of-${title}` },
      runs.map((run) => element("option", { value: run.name }, run.name)),
    );
    this.select.addEventListener("change", () => this.#describe());
    this.inputs = picture.fields.map(({ name, rows }) =>
      element("textarea", { name, rows, id: `${title}-${name}`, spellcheck: "false", required: true }),
    );
    const labels = picture.fields.map(({ label }, number) =>
      element("div.field", {}, element("label", { for: this.inputs[number].id }, label), this.inputs[number]),
    );
    const choice = element(
      "div.choice",
      { hidden: runs.length === 1 },
      element("label", { for: this.select.id }, "Run"),
      this.select,
    );
    const fill = (example) => {
      this.#write(example);
      this.#submit();
    };
    this.about = element("div.about");
    this.element = element(
      "div",
      {},
      element("h2", {}, title),
      element("p.lead", {}, picture.about),
      inputForm([choice, labels], examples, { submit: () => this.#submit(), fill }),
      this.view.element,
      this.about,
    );
    this.#describe();
  }

  /** The permalink of the run and, if anything is written, of what is in the form. */
  get link() {
    const isEmpty = this.inputs.every((input) => !input.value);
    return { run: this.select.value, ...(isEmpty ? {} : this.#fields) };
  }

  /** Shows what a permalink stands for. */
  async open(link) {
    this.select.value = link.run;
    this.#describe();
    if (!this.inputs.some((input) => input.name in link)) return;
    this.#write(link);
    const run = this.#runs.find((each) => each.name === link.run);
    const fields = this.#fields;
    await this.view.show(async (signal) => {
      const input = this.#picture.input ? this.#picture.input(fields) : fields;
      const address = `api/runs/${encodeURIComponent(run.name)}/predict`;
      const answer = await ask(`${address}?details=true`, input, signal);
      const { results } = answer;
      if (!results.length) return { answer, summary: "The text is blank.", picture: [] };
      const { summary, draw, more } = this.#picture;
      const explained = explanation((method) => ask(`${address}?explain=${method}`, input));
      const added = [more?.(results) ?? [], explained];
      return { answer, summary: summary(results, run), picture: draw(results, run), more: added };
    });
  }

  get #fields() {
    return Object.fromEntries(this.inputs.map((input) => [input.name, input.value]));
  }

  #write(fields) {
    for (const input of this.inputs) input.value = fields[input.name] ?? "";
  }

  #submit() {
    this.#go({ run: this.select.value, ...this.#fields });
  }

  #describe() {
    const run = this.#runs.find((each) => each.name === this.select.value);
    const scores = Object.entries(run.scores ?? {}).filter(([name]) => !name.includes("/"));
    const items = [
      ["Run", run.name],
      [`Scores (${run.scored_on})`, scores.map(([name, value]) => `${name} ${value?.toFixed(2) ?? "–"}`).join(", ")],
      ["Labels", run.labels?.join(", ")],
      ["Predicates found by", run.predicates],
      ["biLM", run.bilm?.slice(0, 12)],
    ].filter(([, value]) => value);
    this.about.replaceChildren(
      element(
        "details",
        {},
        element("summary", {}, `About the run ${run.name}`),
        element(
          "dl",
          {},
          items.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
        ),
        element("pre", { tabindex: 0, role: "region", "aria-label": "Config" }, JSON.stringify(run.config, null, 2)),
      ),
    );
  }
}
