// The panel of a task: a form, examples, the picture of a result, and what is known of the run.
import { ask, element } from "./shared.js";
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

  /** The permalink of what is in the form. */
  get link() {
    const written = this.inputs.map((input) => [input.name, input.value]);
    return { run: this.select.value, ...Object.fromEntries(written.filter(([, value]) => value)) };
  }

  /** Shows what a permalink stands for. */
  async open(link) {
    this.select.value = link.run;
    this.#describe();
    this.#write(link);
    if (!this.inputs.some((input) => input.name in link)) return;
    const run = this.#runs.find((each) => each.name === link.run);
    const fields = this.link;
    delete fields.run;
    await this.view.show(async (signal) => {
      const input = this.#picture.input ? this.#picture.input(fields) : fields;
      const answer = await ask(`api/runs/${encodeURIComponent(run.name)}/predict?details=true`, input, signal);
      const { results } = answer;
      if (!results.length) return { answer, summary: "The text is blank.", picture: [] };
      const { summary, draw, more } = this.#picture;
      return { answer, summary: summary(results, run), picture: draw(results, run), more: more?.(results) };
    });
  }

  #submit() {
    // A missing field is sent as an empty one, so that the server says what it wanted.
    this.#go({ ...Object.fromEntries(this.inputs.map((input) => [input.name, input.value])), run: this.select.value });
  }

  #write(fields) {
    for (const input of this.inputs) if (input.name in fields) input.value = fields[input.name];
  }

  #describe() {
    const run = this.#runs.find((each) => each.name === this.select.value);
    const scores = Object.entries(run.scores ?? {}).filter(([name]) => !name.includes("/"));
    const items = [
      ["Run", run.name],
      [`Scores (${run.scored_on})`, scores.map(([name, value]) => `${name} ${value.toFixed(2)}`).join(", ")],
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
