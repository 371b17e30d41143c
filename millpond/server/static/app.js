// The page: tabs, lists, the chosen query or input, and what is looked at every second.
import { call, get } from "./api.js";
import { Comparison } from "./comparison.js";
import { Editor } from "./editor.js";
import { Charts } from "./history.js";
import { InputView } from "./inputs.js";
import { PagedList, chooser, fillChooser } from "./lists.js";
import { PlanView } from "./plan.js";
import { recolour } from "./plots.js";
import { LiveResults } from "./results.js";
import { $, clock, coloured, count, element, exact, seconds, text, whole } from "./words.js";

const SILENT_MS = 5000;
const MOST_FAULTS = 50;
const state = { word: Date.now(), started: null, waiting: new Map(), chosen: null, choice: null, query: null, live: null, tab: "queries", plan: null, charts: null, comparison: null, keywords: new Set() };

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

function toCard(id) { if (innerWidth <= 860) $(id).scrollIntoView({ behavior: "smooth" }); }

const queries = new PagedList($("query-list"), {
  path: "/api/queries", name: "queries", key: (query) => query.name, empty: "None is registered yet.",
  sorts: [["registered", "as registered"], ["name", "by name"], ["results down", "most results first"], ["state down", "inactive and failed first"], ["weight down", "heaviest first"]],
  make: () => chooser(async (name) => { if (name !== state.chosen) await choose(name); toCard("query-card"); }),
  fill: (button, query) => {
    const waits = state.waiting.get(query.name);
    const dot = waits ? "waits" : { active: "good", failed: "bad" }[query.state] ?? "";
    const sub = waits ? `waits for ${waits.input}` : query.state === "active" ? query.output : query.state;
    fillChooser(button, { dot, name: query.name, number: count(query.results), sub, title: query.text, isChosen: query.name === state.chosen });
  },
});

const inputs = new PagedList($("input-list"), {
  path: "/api/inputs", name: "streams and relations", key: (input) => input.name, empty: "None is declared yet.",
  sorts: [["declared", "as declared"], ["name", "by name"], ["rate down", "busiest first"]],
  make: () => chooser(async (name) => { await lookAtInput(inputs.items.find((each) => each.name === name)); toCard("input-card"); }),
  fill: (button, input) => {
    const columns = input.columns.map((column) => `${column.name} ${column.type}`).join(", ");
    const sub = `${input.columns.map((column) => column.name).join(", ")}${input.held_back ? " · held back" : ""}`;
    fillChooser(button, { dot: input.held_back ? "held" : "good", name: input.name, number: input.rate > 0.05 ? `${count(input.rate)}/s` : "", sub, title: columns, isChosen: input.name === inputView.chosen?.name });
  },
});

const inputView = new InputView((name) => choose(name));

async function lookAtInput(input) {
  const shown = inputView.show(input);
  await choose(null);
  inputs.draw();
  await shown;
}

function waitingWords(waiting) {
  if (!waiting.length) return "";
  const [first] = waiting;
  const who = waiting.length === 1 ? `Query ${first.query} waits` : `${waiting.length} queries wait, ${first.query}`;
  return `${who} for ${first.input} since ${seconds(first.since_seconds)}. `;
}

// -- the chosen query ---------------------------------------------------------------------

async function choose(name) {
  const choice = state.choice = {};
  state.chosen = name;
  state.live?.close();
  state.live = null;
  $("query-card").hidden = !name;
  $("query-card").inert = true; // until its own query is drawn: nobody turns a knob of another
  if (name && inputView.chosen) { await inputView.show(null); inputs.draw(); }
  queries.draw();
  if (!name) return;
  const query = await get(`/api/queries/${encodeURIComponent(name)}`).catch(() => null); // the next look asks again
  if (query && state.choice === choice) show(query);
}

// Draws the chosen query, and follows its results from the first answer on, whichever that is.
function show(query) {
  if (!state.live) {
    $("query-text").replaceChildren(...coloured(query.text, state.keywords));
    state.live = new LiveResults(query);
  }
  drawQuery(query);
}

function drawQuery(query) {
  state.query = query;
  $("query-card").inert = false;
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
  state.live?.counted(query);
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
$("query-edit").addEventListener("click", () => { if (state.query) editor.edit(state.query); });
$("input-drop").addEventListener("click", async () => {
  const { kind, name } = inputView.chosen;
  if (confirm(`Drop ${kind} ${name}?`)) await attempt(async () => { await inputView.drop(); await look(); });
});
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
    unlearn();
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
// The editor is there before the server's first answer: who clicks early gets it.
const editor = new Editor(registered);
$("new-query").addEventListener("click", () => editor.open());
$("empty-new").addEventListener("click", () => editor.open(document.querySelector("#empty-card pre").textContent));

// -- failures and late tuples ---------------------------------------------------------------

async function drawFaults(streams) {
  const failures = await get("/api/failures"), said = JSON.stringify(failures);
  if ($("fault-list").dataset.said !== said) drawFailures(failures); // who presses a button keeps it
  $("fault-list").dataset.said = said;
  await drawLate(streams);
}

function drawFailures(failures) {
  const more = failures.splice(MOST_FAULTS);
  $("fault-list").replaceChildren(...(failures.length ? [...failures.map((failure) => element("div", { class: "fault" },
    element("h3", {}, `${failure.query}: ${failure.operator}`), element("p", { class: "error" }, failure.error),
    element("p", { class: "note" }, `Since ${whole(new Date(failure.at_seconds * 1000).toISOString())}${failure.until_time ? `, in the step up to ${whole(failure.until_time)}` : ""}.`),
    failure.rows.length ? element("pre", { class: "code" }, failure.rows.join("\n")) : null,
    element("p", { class: "note" }, `What to do: ${failure.way_out}.`),
    element("div", { class: "buttons" }, element("button", { onclick: () => restart(failure.query) }, "Restart"), element("button", { onclick: () => restart(failure.query, true) }, "Leave such rows out, and restart")))), more.length ? element("p", { class: "note" }, `And ${more.length.toLocaleString("en")} more: order the queries by state to see them.`) : ""]
    : [element("p", { class: "note" }, "All queries are well.")]));
}

async function drawLate(streams) {
  const late = await Promise.all(streams.filter((stream) => stream.late > 0).map(async (stream) => {
    const { columns, rows } = await get(`/api/streams/${encodeURIComponent(stream.name)}/late`);
    const names = columns.map((column) => column.name);
    const lines = rows.slice(-20).reverse().map((row) => element("tr", {}, ...names.map((name) => element("td", {}, exact(row[name])))));
    return element("div", {}, element("h3", {}, `${stream.name}: ${count(stream.late)} came too late`), element("div", { class: "scroll short" }, element("table", {}, element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {}, name)))), element("tbody", {}, ...lines))));
  }));
  $("late-list").replaceChildren(...(late.length ? late : [element("p", { class: "note" }, "No tuple came too late.")]));
}

// -- every second ---------------------------------------------------------------------------

let vocabulary = null; // what the server has last said, unless it may have changed since
let looking = null;

// One look at a time; whoever asks meanwhile gets one that begins later.
async function look() {
  if (looking) await looking;
  looking ??= lookNow().finally(() => { looking = null; });
  return looking;
}

async function lookNow() {
  try {
    const status = await get("/api/status");
    heard(status);
    await learn();
    state.keywords = new Set(vocabulary.keywords);
    editor.vocabulary = vocabulary;
    options($("strategy"), vocabulary.strategies, status.strategy);
    options($("mode"), vocabulary.modes, status.mode);
    $("burst").hidden = $("compare").hidden = !status.demo;
    if (status.demo) state.comparison ??= new Comparison(attempt);
    $("fault-count").hidden = !status.failures;
    text($("fault-count"), String(status.failures));
    state.waiting = new Map(status.waiting.map((each) => [each.query, each]));
    const failed = status.failures ? `${status.failures === 1 ? "One query has" : `${status.failures} queries have`} failed. ` : "";
    say(status.trouble ? `Trouble: ${status.trouble}` : `${failed}${waitingWords(status.waiting)}Bottleneck: ${status.bottleneck}`, status.trouble || status.failures ? "bad" : "good");
    $("empty-card").hidden = status.queries > 0 || !$("editor-card").hidden || Boolean(inputView.chosen);
    await lookInto();
  } catch (error) {
    if (error.status === undefined) silent();
    else if (error.status !== 404) say(error.message, "bad"); // what is gone meanwhile is not there at the next look
  }
}

// Asks for the words there are, again if something was declared while the answer came.
async function learn() {
  while (vocabulary === null) {
    const asked = state.learning = {};
    const words = await get("/api/vocabulary");
    if (asked === state.learning) vocabulary = words;
  }
}

function unlearn() { vocabulary = state.learning = null; }

async function lookInto() {
  if (state.tab === "queries") await lookAtQueries();
  else if (state.tab === "plan") await state.plan.refresh();
  else if (state.tab === "charts") await state.charts.refresh();
  else await drawFaults(await get("/api/streams"));
}

async function lookAtQueries() {
  await Promise.all([queries.refresh(), inputs.refresh()]);
  if (inputView.chosen) {
    try { await inputView.refresh(); } catch (error) {
      if (error.status !== 404) throw error;
      await inputView.show(null); // it was dropped
    }
  }
  if (!state.chosen && !inputView.chosen && queries.items.length && $("editor-card").hidden) await choose(queries.items[0].name);
  if (!state.chosen) return;
  const { choice, chosen } = state;
  try {
    const query = await get(`/api/queries/${encodeURIComponent(chosen)}`);
    if (state.choice === choice) show(query);
  } catch (error) {
    if (error.status !== 404) throw error;
    if (state.choice === choice) await choose(null); // it was dropped
  }
}

async function registered(name) {
  unlearn();
  await look();
  if (!name) return;
  await choose(name);
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
