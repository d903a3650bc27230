// The page without a server: downloads the model once, keeps it in the browser, and answers the page's requests.
import { answerWith, element } from "./shared.js";
import { Model } from "./runtime.js";

const ONLY_SERVER = "Only elmo-tasks serve shows these.";
const panels = document.getElementById("panels");

/** The bytes of files, `{name: size}`, from the browser's cache or, with a bar, from the address of the page. */
async function filesOf(sizes, id) {
  const cache = await globalThis.caches?.open(`elmo-tasks ${id}`).catch(() => null); // without https, there is none
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  const bar = element("progress", { max: total, value: 0, "aria-label": "Model", style: "width: 100%" });
  const line = element("p.caption", { role: "status" });
  panels.replaceChildren(line, bar);
  let done = 0;
  const read = async (name) => {
    const kept = await cache?.match(name);
    const response = kept ?? (await fetch(name));
    if (!response.ok) throw new Error(`${name}: status ${response.status}. Reload the page.`);
    const [parts, reader] = [[], response.body.getReader()];
    for (let chunk; !(chunk = await reader.read()).done; ) {
      parts.push(chunk.value);
      bar.value = done += chunk.value.length;
      line.textContent = `Loading the model: ${(done / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
    }
    const blob = new Blob(parts);
    if (blob.size !== sizes[name]) throw new Error(`${name}: the download was cut off. Reload the page.`);
    if (!kept) await cache?.put(name, new Response(blob)).catch(() => null); // no room: it is downloaded again
    return blob.arrayBuffer();
  };
  const found = [];
  for (const name of Object.keys(sizes)) found.push(await read(name));
  for (const name of (await globalThis.caches?.keys().catch(() => [])) ?? [])
    if (name.startsWith("elmo-tasks ") && name !== `elmo-tasks ${id}`) await caches.delete(name); // of older models
  line.textContent = "Starting…";
  return found;
}

function cosine(one, other) {
  const product = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
  return product(one, other) / Math.sqrt(product(one, one) * product(other, other));
}

async function start() {
  const page = await (await fetch("page.json")).json();
  const [about, words, sentences] = await filesOf(page.files, page.id);
  const model = await Model.load(JSON.parse(new TextDecoder().decode(about)), words, sentences);
  panels.replaceChildren();
  const tokensOf = ({ tokens, text }) => tokens ?? model.sentences(text).flatMap((each) => each.tokens);
  const refuse = () => Promise.reject(new Error(ONLY_SERVER));
  const answers = {
    "api/runs": () => ({ runs: page.runs, note: page.note }),
    "api/embed": (body) => ({ tokens: tokensOf(body) }),
    "api/similarity": async ({ one, other }) => {
      const [first, second] = (await model.run([one, other].map(tokensOf), ["layers"])).map((each) => each.layers);
      return { layers: first.map((layer, number) => ({ layer: number, cosine: cosine(layer[one.index], second[number][other.index]) })) };
    },
    "api/neighbors": () => ({ neighbors: [] }),
    "api/score": refuse,
  };
  answerWith(async (address, body) => {
    const path = address.split("?")[0];
    if (path.endsWith("/predict")) return { results: await model.predict(body.text) };
    return answers[path] ? answers[path](body) : (await fetch(address)).json();
  });
  globalThis.elmoTasks = model; // for the console, and for pages of your own
  await import("./page.js");
}

start().catch((error) => panels.replaceChildren(element("p.error", { role: "alert" }, error.message)));
