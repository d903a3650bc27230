// The page: a tab for ELMo itself, and one for each task of the runs. The address after # says what is shown.
import { ask, element, noRun } from "./shared.js";
import { ElmoPanel } from "./elmo.js";
import { TaskPanel } from "./task.js";
import * as classification from "./classification.js";
import * as coreference from "./coreference.js";
import * as other from "./other.js";
import * as reading from "./reading.js";
import * as semanticRoles from "./semantic_roles.js";
import * as tagging from "./tagging.js";
import * as textPairs from "./text_pairs.js";

// The tabs by their keys: what a picture's `tabOf` says of a run, or else its task.
const TABS = [
  ["names", "Names", { ...tagging, about: "Finds names of people, places, organizations and other things." }],
  ["parts_of_speech", "Parts of speech", { ...tagging, about: "Labels each word as a noun, verb and so on." }],
  ["semantic_roles", "Roles", semanticRoles],
  ["coreference", "Coreference", coreference],
  ["reading", "Questions", reading],
  ["text_pairs", "Inference", textPairs],
  ["sentiment", "Sentiment", { ...classification, about: "Rates how positive or negative a text is." }],
  ["classification", "Classification", classification],
  ["tagging", "Tags", tagging],
  ["multi_label", "Labels", { ...classification, about: "Assigns any number of labels to a text." }],
  ["regression", "Regression", { ...classification, about: "Predicts a number for a text, such as a rating." }],
  ["pair_regression", "Pairs", { ...textPairs, about: "Predicts a number for two texts, such as their similarity." }],
];

const SAME_EXAMPLES = { tagging: "names", classification: "sentiment" };

const panels = document.getElementById("panels");
const tablist = document.getElementById("tabs");
const tabs = []; // {button, panel, view, runs}

async function start() {
  const [{ runs, note }, examples] = await Promise.all([ask("api/runs"), ask("examples.json")]);
  if (note) {
    const shown = document.getElementById("note");
    shown.textContent = note;
    shown.hidden = false;
  }
  const known = TABS.map(([key]) => key);
  const keys = runs.map((run) => ({ tagging, classification })[run.task]?.tabOf(run) ?? run.task);
  // A run that finds only predicates has no tab next to the runs that need them.
  const areNeeded = runs.some((run) => run.predicates);
  const twins = runs.map((run) => run.without_elmo);
  const isHidden = (run) =>
    twins.includes(run.name) || (areNeeded && run.task === "tagging" && tagging.findsPredicates(run));
  addTab("ELMo", new ElmoPanel(runs, examples.elmo, go), []);
  const unknown = [...new Set(keys)].filter((key) => !known.includes(key));
  for (const [key, title, picture] of [...TABS, ...unknown.map((task) => [task, task, other])]) {
    const own = runs.filter((run, place) => keys[place] === key && !isHidden(run));
    const shown = own[0]?.examples ?? examples[SAME_EXAMPLES[key] ?? key] ?? [];
    if (own.length) addTab(title, new TaskPanel(picture, title, own, shown, go), own);
  }
  addEventListener("hashchange", route);
  route();
}

function addTab(title, view, runs) {
  const id = title.replace(/\W/g, "-").toLowerCase();
  const button = element(
    "button",
    {
      type: "button",
      role: "tab",
      id: `tab-${id}`,
      "aria-controls": `panel-${id}`,
      "aria-selected": false,
      tabindex: -1,
    },
    title,
  );
  const panel = element(
    "div",
    { role: "tabpanel", id: `panel-${id}`, "aria-labelledby": button.id, hidden: true },
    view.element,
  );
  const tab = { button, panel, view, runs };
  button.addEventListener("click", () => select(tab));
  tabs.push(tab);
  tablist.append(button);
  panels.append(panel);
}

/** Shows what a permalink stands for in a view. Once there is a result, the link is the page's address. */
async function go(view, link) {
  const hash = `#${new URLSearchParams(link)}`;
  const isShown = (await view.open(link)) && view.element.checkVisibility(); // its tab may have been left
  if (isShown && hash !== location.hash) history.pushState(null, "", hash);
}

/** Shows what the address stands for. */
function route() {
  const link = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const tab = link.tab === "elmo" ? tabs[0] : tabs.find(({ runs }) => runs.some((run) => run.name === link.run));
  if (!tab && !link.run) return select(tabs[0]);
  show(tab ?? tabs[0]);
  if (tab) tab.view.open(link);
  else tabs[0].view.view.show(() => Promise.reject(new Error(noRun(link.run))));
}

/** Shows a tab whose form the user left as it is. The first time, its first example runs. */
function select(tab) {
  show(tab);
  history.replaceState(null, "", `#${new URLSearchParams(tab.view.link)}`);
  if (!tab.view.isOpen) tab.view.open(tab.view.link);
}

function show(tab) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.button.setAttribute("aria-selected", chosen);
    each.button.tabIndex = chosen ? 0 : -1;
    each.panel.hidden = !chosen;
  }
  tab.button.scrollIntoView({ block: "nearest", inline: "nearest" });
  document.title = `${tab.button.textContent} · elmo-tasks`;
}

tablist.addEventListener("keydown", (event) => {
  const at = tabs.findIndex(({ button }) => button === event.target);
  const places = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 };
  if (at < 0 || !(event.key in places)) return;
  event.preventDefault();
  const tab = tabs.at(places[event.key] % tabs.length);
  select(tab);
  tab.button.focus();
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address after # is the permalink
  panels.focus();
});

/** What `use` does with the browser's storage; nothing where the browser blocks it. */
function stored(use) {
  try {
    return use(localStorage);
  } catch {
    return null;
  }
}

/** Light or dark: as the system has it, until the user decides. */
function startTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => (button.textContent = isDark() ? "Light" : "Dark");
  const kept = stored((storage) => storage.getItem("theme"));
  if (kept) root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    stored((storage) => storage.setItem("theme", root.dataset.theme));
    label();
  });
  system.addEventListener("change", label);
  label();
  button.hidden = false;
}

startTheme();
start().catch((error) => panels.append(element("p.error", { role: "alert" }, error.message)));
