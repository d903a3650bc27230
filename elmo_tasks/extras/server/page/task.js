// The panel of a task: a form, the picture of a result, examples, and what is known of the run.
import { ask, checkFilled, element, nameOf, tick } from "./shared.js";
import { comparable, shown } from "./comparison.js";
import { explanation } from "./explanation.js";
import { aboutRun, modelLine } from "./model.js";
import { exampleList, inputForm, ResultView } from "./result.js";

const idOf = (title) => title.replace(/\W/g, "-").toLowerCase();
const option = (run) => element("option", { value: run.name }, run.name);

export class TaskPanel {
  isOpen = false;
  #picture;
  #runs;
  #examples;
  #described = null;
  #go;

  /**
   * Arguments: the module with the task's picture, its runs, its examples, and `go`, which opens a permalink:
   * `go(this, {run: ..., <fields>})`.
   */
  constructor(picture, title, runs, examples, go) {
    this.#picture = picture;
    this.#runs = runs;
    this.#examples = examples;
    this.#go = go;
    this.view = new ResultView(() => this.select.value);
    const submit = () => this.#go(this, this.#written);
    this.select = element("select", { id: `run-of-${idOf(title)}`, onchange: submit }, runs.map(option));
    this.other = element("select", { id: `other-run-of-${idOf(title)}`, onchange: submit });
    this.inputs = picture.fields.map(({ name, rows }) =>
      element("textarea", { name, rows, id: `${idOf(title)}-${name}`, spellcheck: "false", required: true }),
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
    this.otherChoice = element("div.choice", {}, element("label", { for: this.other.id }, "Compare with"), this.other);
    const toggle = () => {
      this.other.value = this.#isWithTwin ? "" : this.#named(this.select.value).without_elmo;
      submit();
    };
    this.twin = element("button", { type: "button", onclick: toggle }, "With and without ELMo");
    this.lead = element("p.lead");
    this.chips = exampleList(examples, (example) => {
      this.#write(example);
      submit();
    });
    this.model = element("div");
    this.about = element("div.about");
    this.element = element(
      "div",
      {},
      element("h2", {}, title),
      this.lead,
      this.chips,
      inputForm(
        [element("div.choices", {}, choice, this.otherChoice), labels],
        submit,
        () => this.view.setEdited(this.inputs.some((input) => input.value !== (this.link[input.name] ?? ""))),
        this.twin,
      ),
      this.view.element,
      this.model,
      this.about,
    );
    this.#describe();
    this.#write(examples[0] ?? {});
    this.link = examples.length ? this.#written : { run: this.select.value };
  }

  /** Shows what a permalink stands for, and returns whether there is a result. It is the `link` from then on. */
  async open(link) {
    this.isOpen = true;
    this.select.value = link.run;
    this.#describe();
    this.other.value = link.with ?? "";
    if (this.other.selectedIndex < 0) this.other.value = ""; // that run is not here, or of another kind
    this.model.hidden = this.other.value !== "" && !this.#isWithTwin; // each side has its own
    this.twin.setAttribute("aria-pressed", this.#isWithTwin);
    if (this.inputs.some((input) => input.name in link)) this.#write(link);
    else if (this.inputs.every((input) => !input.value)) return false;
    const fields = this.#fields;
    const names = [this.select.value, this.other.value].filter(Boolean);
    const written = this.#written;
    const place = this.#examples.findIndex((each) => this.inputs.every(({ name }) => each[name] === fields[name]));
    const { expected } = this.#examples[place] ?? {};
    const isShown = await this.view.show(async (signal) => {
      checkFilled(this.inputs);
      const found = []; // one after the other, so that each has its own time
      for (const name of names) found.push(await this.#answer(this.#named(name), fields, signal));
      if (expected && found[0].answer.results.length) this.#tick(place, found[0].answer.results, expected);
      return shown(this.#picture, found, expected);
    });
    if (isShown) this.link = written;
    return isShown;
  }

  async #answer(run, fields, signal) {
    const input = this.#picture.input ? this.#picture.input(fields) : fields;
    const address = `api/runs/${encodeURIComponent(run.name)}/predict`;
    const begin = performance.now();
    const labels = Object.fromEntries(this.inputs.map((field) => [field.name, nameOf(field)]));
    const answer = await ask(`${address}?details=true`, input, signal, labels);
    const milliseconds = performance.now() - begin;
    const explained = run.is_local ? [] : explanation(() => ask(`${address}?explain=true`, input));
    return { run, answer, milliseconds, explained };
  }

  get #fields() {
    return Object.fromEntries(this.inputs.map((input) => [input.name, input.value]));
  }

  /** The permalink of what is in the form. */
  get #written() {
    const other = this.other.value ? { with: this.other.value } : {};
    return { run: this.select.value, ...other, ...this.#fields };
  }

  /** Whether a model is compared with its twin without ELMo. */
  get #isWithTwin() {
    return this.other.value !== "" && this.other.value === this.#named(this.select.value).without_elmo;
  }

  /** A run, or the twin of one, which has the same labels. Of a run and its twin, both have a title. */
  #named(name) {
    const run = this.#runs.find((each) => each.name === name);
    if (run) return this.other.value && this.other.value === run.without_elmo ? { ...run, title: "With ELMo" } : run;
    return { ...this.#runs.find((each) => each.without_elmo === name), name, title: "Without ELMo" };
  }

  /** Shows at an example whether the model found what is right. */
  #tick(place, results, expected) {
    const chip = this.chips.querySelectorAll(".example")[place];
    chip.querySelector(".tick")?.remove();
    chip.append(tick(this.#picture.isRight(results, expected)));
  }

  #write(fields) {
    for (const input of this.inputs) input.value = fields[input.name] ?? "";
  }

  /** Shows what belongs to the chosen run. */
  #describe() {
    const run = this.#runs.find((each) => each.name === this.select.value);
    if (run === this.#described) return; // the example with the focus stays where it is
    this.#described = run;
    const others = this.#runs.filter((each) => comparable(run, each));
    const twin = run.without_elmo ? element("option", { value: run.without_elmo, hidden: true }, "without ELMo") : [];
    this.other.replaceChildren(...[element("option", { value: "" }, "no other run"), twin, others.map(option)].flat());
    this.twin.hidden = !run.without_elmo;
    this.lead.textContent = [this.#picture.about, run.facts.caution].filter(Boolean).join(" ");
    this.otherChoice.hidden = !others.length;
    this.model.replaceChildren(modelLine(run));
    this.about.replaceChildren(aboutRun(run));
  }
}
