// The page: tabs, lists, the chosen query, and what is looked at every second.
import { call, get, list } from "./api.js";
import { Editor } from "./editor.js";
import { Charts } from "./history.js";
import { PlanView } from "./plan.js";
import { recolour } from "./plots.js";
import { LiveResults } from "./results.js";
import { $, clock, coloured, count, element, exact, seconds, whole } from "./words.js";

const SILENT_MS = 5000;
const state = { word: Date.now(), started: null, waiting: new Map(), queries: [], chosen: null, live: null, tab: "queries", plan: null, charts: null, keywords: new Set() };

// -- tabs ---------------------------------------------------------------------------------

const TABS = ["queries", "plan", "charts", "faults"];

function open(tab, focus = false) {
  state.tab = tab;
  for (const name of TABS) {
    $(`view-${name}`).hidden = name !== tab;
    $(`tab-${name}`).setAttribute("aria-selected", name === tab);
    $(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
  }
  if (focus) $(`tab-${tab}`).focus();
  history.replaceState(null, "", `#${tab}`);
  if (tab === "plan") state.plan ??= new PlanView();
  if (tab === "charts") state.charts ??= new Charts();
  look();
}

for (const name of TABS) {
  $(`tab-${name}`).addEventListener("click", () => open(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) open(TABS[(TABS.indexOf(name) + step + TABS.length) % TABS.length], true);
  });
}

// -- the lists ----------------------------------------------------------------------------

function drawList() {
  const wanted = $("filter").value.toLowerCase();
  $("filter-label").hidden = state.queries.length < 8;
  const shown = state.queries.filter((query) => query.name.toLowerCase().includes(wanted)).slice(0, 200);
  sync($("query-list"), shown, (query) => query.name, () => {
    const button = element("button", { class: "item" }, element("span", { class: "dot" }), element("span", { class: "name" }), element("span", { class: "count" }), element("span", { class: "sub" }));
    button.addEventListener("click", async () => {
      await choose(button.dataset.key);
      if (innerWidth <= 860) $("query-card").scrollIntoView({ behavior: "smooth" });
    });
    return button;
  }, (button, query) => {
    const [dot, name, number, sub] = button.children;
    const waits = state.waiting.get(query.name);
    dot.className = `dot ${waits ? "waits" : { active: "good", failed: "bad" }[query.state] ?? ""}`;
    text(name, query.name);
    text(number, count(query.results));
    text(sub, waits ? `waits for ${waits.input}` : query.state === "active" ? query.output : query.state);
    button.setAttribute("aria-current", query.name === state.chosen);
    button.title = query.text;
  });
}

function drawInputs(inputs) {
  sync($("input-list"), inputs, (input) => input.name, () => element("div", { class: "item" }, element("span", { class: "dot" }), element("span", { class: "name" }), element("span", { class: "count" }), element("span", { class: "sub" })), (item, input) => {
    const [dot, name, number, sub] = item.children;
    dot.className = `dot ${input.held_back ? "held" : "good"}`;
    text(name, input.name);
    text(number, input.rate > 0.05 ? `${count(input.rate)}/s` : "");
    text(sub, input.columns.map((column) => column.name).join(", ") + (input.held_back ? " · held back" : ""));
    item.title = input.columns.map((column) => `${column.name} ${column.type}`).join(", ");
  });
}

// Keeps the elements of a list, so that nothing jumps and the focus stays.
function sync(list, items, key, make, fill) {
  const have = new Map([...list.children].map((li) => [li.firstChild.dataset.key, li]));
  items.forEach((item, at) => {
    let li = have.get(key(item));
    if (!li) {
      const inner = make(item);
      inner.dataset.key = key(item);
      li = element("li", {}, inner);
    }
    have.delete(key(item));
    fill(li.firstChild, item);
    if (list.children[at] !== li) list.insertBefore(li, list.children[at] ?? null);
  });
  for (const li of have.values()) li.remove();
}

function text(place, value) { if (place.textContent !== value) place.textContent = value; }

function waitingWords(waiting) {
  if (!waiting.length) return "";
  const [first] = waiting;
  const who = waiting.length === 1 ? `Query ${first.query} waits` : `${waiting.length} queries wait, ${first.query}`;
  return `${who} for ${first.input} since ${seconds(first.since_seconds)}. `;
}

// -- the chosen query ---------------------------------------------------------------------

async function choose(name) {
  state.chosen = name;
  state.live?.close();
  state.live = null;
  $("query-card").hidden = !name;
  drawList();
  if (!name) return;
  const query = await get(`/api/queries/${encodeURIComponent(name)}`);
  if (state.chosen !== name) return;
  $("query-text").replaceChildren(...coloured(query.text, state.keywords));
  $("result-chart-title").textContent = "Over time";
  state.live = new LiveResults(query, $("result-table"), $("result-note"), $("result-chart"), { results: $("result-title"), chart: $("result-chart-title") });
  drawQuery(query);
}

function drawQuery(query) {
  text($("query-name"), query.name);
  text($("query-state"), query.state);
  $("query-state").className = `state ${query.state}`;
  $("query-error").hidden = !query.error;
  text($("query-error"), query.error);
  $("query-waits").hidden = !query.waits;
  text($("query-waits"), query.waits && `It ${query.waits.replace(/\d+-\d\d-\d\dT[\d:.]+$/, whole)}.`);
  $("query-restart").hidden = query.state !== "failed";
  if (document.activeElement !== $("query-weight")) $("query-weight").value = query.weight;
  $("query-active").checked = query.active;
  state.live?.counted(query.results);
  const figures = [["results", count(query.results)], ["latency p50", seconds(query.latency_p50_seconds)], ["latency p95", seconds(query.latency_p95_seconds)], ["complete until", whole(query.complete_until)]];
  if (query.left_out) figures.push(["left out", count(query.left_out)]);
  $("query-figures").replaceChildren(...figures.map(([label, value]) => element("div", {}, element("b", {}, value), element("span", {}, label))));
}

// Turns a knob of the chosen query; what is refused is said, and the knob shows what is so.
async function turn(knob, value) {
  await attempt(() => call("PUT", `/api/entities/query/${encodeURIComponent(state.chosen)}/${knob}`, { value }));
  document.activeElement?.blur();
  await look();
}

async function restart(name, skips = false) {
  const path = `/api/queries/${encodeURIComponent(name)}`;
  await attempt(async () => {
    if (skips) await call("PATCH", path, { on_error: "skip" });
    await call("POST", `${path}/restart`);
  });
  await look();
}

$("query-weight").addEventListener("change", (event) => turn("weight", event.target.value));
$("query-active").addEventListener("change", (event) => turn("active", event.target.checked));
$("query-restart").addEventListener("click", () => restart(state.chosen));
$("query-drop").addEventListener("click", async () => {
  const name = state.chosen;
  if (!confirm(`Drop query ${name}?`)) return;
  await attempt(async () => {
    await call("DELETE", `/api/queries/${encodeURIComponent(name)}`);
    await choose(null);
    await look();
  });
});

// -- above everything ---------------------------------------------------------------------

function say(words, kind = "good") {
  text($("words"), words);
  $("dot").className = `dot ${kind}`;
}

// Does something, or says why it was refused until that is read.
async function attempt(action) {
  try {
    await action();
    $("said-bar").hidden = true;
  } catch (error) {
    text($("said"), error.message);
    $("said-bar").hidden = false;
  }
}

$("said-close").addEventListener("click", () => { $("said-bar").hidden = true; });

// The server has answered: nothing tells any more that it had not.
function heard(status) {
  state.word = Date.now();
  document.body.classList.remove("silent");
  if (state.started !== null && state.started !== status.started_seconds) {
    vocabulary = null;
    state.live?.anew();
    state.charts?.forget();
  }
  state.started = status.started_seconds;
}

function silent(reason = "") {
  document.body.classList.add("silent");
  say(`No word from the server since ${clock(state.word / 1000)} UTC${reason}; what is shown is of that time`, "");
}

setInterval(() => { if (!document.hidden && Date.now() - state.word > SILENT_MS) silent(); }, 1000);
document.addEventListener("visibilitychange", () => { state.word = Date.now(); });

function options(select, values, chosen) {
  const known = values.includes(chosen) ? values : [...values, chosen];
  if (select.options.length !== known.length) select.replaceChildren(...known.map((value) => element("option", {}, value)));
  if (document.activeElement !== select) select.value = chosen;
}

for (const knob of ["strategy", "mode"]) {
  $(knob).addEventListener("change", async (event) => {
    await attempt(() => call("PUT", `/api/entities/scheduler/scheduler/${knob}`, { value: event.target.value }));
    event.target.blur();
    look();
  });
}

$("burst").addEventListener("click", () => attempt(() => call("POST", "/api/demo/burst")));
$("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  recolour();
  state.plan?.recolour();
});
$("filter").addEventListener("input", drawList);
// The editor is there before the server's first answer: who clicks early gets it.
const editor = new Editor(registered);
$("new-query").addEventListener("click", () => editor.open());
$("empty-new").addEventListener("click", () => editor.open(document.querySelector("#empty-card pre").textContent));

// -- failures and late tuples ---------------------------------------------------------------

async function drawFaults(streams) {
  const failures = await get("/api/failures");
  $("fault-list").replaceChildren(...(failures.length ? failures.map((failure) => element("div", { class: "fault" },
    element("h3", {}, `${failure.query}: ${failure.operator}`), element("p", { class: "error" }, failure.error),
    element("p", { class: "note" }, `Since ${whole(new Date(failure.at_seconds * 1000).toISOString())}${failure.until_time ? `, in the step up to ${whole(failure.until_time)}` : ""}.`),
    failure.rows.length ? element("pre", { class: "code" }, failure.rows.join("\n")) : null,
    element("p", { class: "note" }, `What to do: ${failure.way_out}.`),
    element("div", { class: "buttons" }, element("button", { onclick: () => restart(failure.query) }, "Restart"), element("button", { onclick: () => restart(failure.query, true) }, "Leave such rows out, and restart"))))
    : [element("p", { class: "note" }, "All queries are well.")]));
  const late = await Promise.all(streams.filter((stream) => stream.late > 0).map(async (stream) => {
    const { columns, rows } = await get(`/api/streams/${encodeURIComponent(stream.name)}/late`);
    const names = columns.map((column) => column.name);
    const lines = rows.slice(-20).reverse().map((row) => element("tr", {}, ...names.map((name) => element("td", {}, exact(row[name])))));
    return element("div", {}, element("h3", {}, `${stream.name}: ${count(stream.late)} came too late`), element("div", { class: "scroll short" }, element("table", {}, element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {}, name)))), element("tbody", {}, ...lines))));
  }));
  $("late-list").replaceChildren(...(late.length ? late : [element("p", { class: "note" }, "No tuple came too late.")]));
}

// -- every second ---------------------------------------------------------------------------

let vocabulary = null;
let looking = null;

// One look at a time; whoever asks meanwhile gets one that begins later.
async function look() {
  if (looking) await looking;
  looking ??= lookNow().finally(() => { looking = null; });
  return looking;
}

async function lookNow() {
  try {
    const [status, queries] = await Promise.all([get("/api/status"), list("/api/queries")]);
    heard(status);
    vocabulary ??= await get("/api/vocabulary");
    state.queries = queries.filter((query) => !query.name.startsWith("preview_"));
    state.keywords = new Set(vocabulary.keywords);
    editor.vocabulary = vocabulary;
    options($("strategy"), vocabulary.strategies, status.strategy);
    options($("mode"), vocabulary.modes, status.mode);
    $("burst").hidden = !status.demo;
    $("fault-count").hidden = !status.failures;
    text($("fault-count"), String(status.failures));
    state.waiting = new Map(status.waiting.map((each) => [each.query, each]));
    const failed = status.failures ? `${status.failures === 1 ? "One query has" : `${status.failures} queries have`} failed. ` : "";
    say(status.trouble ? `Trouble: ${status.trouble}` : `${failed}${waitingWords(status.waiting)}Bottleneck: ${status.bottleneck}`, status.trouble || status.failures ? "bad" : "good");
    drawList();
    $("empty-card").hidden = state.queries.length > 0 || !$("editor-card").hidden;
    if (state.chosen && !state.queries.some((query) => query.name === state.chosen)) await choose(null);
    if (!state.chosen && state.queries.length && state.tab === "queries" && $("editor-card").hidden) await choose(state.queries[0].name);
    await lookInto();
  } catch (error) {
    if (error.status === undefined) silent();
    else if (error.status !== 404) say(error.message, "bad"); // what is gone meanwhile is not there at the next look
  }
}

async function lookInto() {
  if (state.tab === "queries") {
    const [streams, relations] = await Promise.all([get("/api/streams"), get("/api/relations")]);
    drawInputs([...streams, ...relations]);
    if (state.chosen) drawQuery(await get(`/api/queries/${encodeURIComponent(state.chosen)}`));
  } else if (state.tab === "plan") {
    const select = $("plan-query");
    const names = ["", ...state.queries.slice(0, 300).map((query) => query.name)];
    if (names.join("\n") !== [...select.options].map((option) => option.value).join("\n")) {
      const before = select.value;
      select.replaceChildren(...names.map((name) => element("option", { value: name }, name || "all queries")));
      select.value = names.includes(before) ? before : "";
    }
    await state.plan.refresh();
  } else if (state.tab === "charts") await state.charts.refresh();
  else await drawFaults(await get("/api/streams"));
}

async function registered(name) {
  vocabulary = null;
  await look();
  if (name) await choose(name);
}

async function forever() {
  for (;;) {
    if (!document.hidden) await look();
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

const asked = location.hash.slice(1);
if (TABS.includes(asked)) open(asked);
forever();
