// The running plan, drawn in layers: load, queues with what waits, units and threads, synopses.
// Folded, what does the same is one box, however many queries there are.
import { get, lines, query } from "./api.js";
import { controlTable } from "./control.js";
import { PagedList, chooser, fillChooser } from "./lists.js";
import { Minimap } from "./minimap.js";
import { Plot } from "./plots.js";
import { $, bytes, cell, count, element, exact, inUnit, seconds, text } from "./words.js";

cytoscape.use(cytoscapeDagre);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const MOST_TUPLES = 60;
const LEAST = 0.74;
const READABLE = 0.85;
const LARGEST = 1.15;
const MARGIN = 24;
const TYPED_MS = 250;
const SYNOPSIS = "synopsis ";

export class PlanView {
  constructor() {
    this.structure = "";
    this.chosen = null;
    this.opened = new Set();
    this.nodes = new Map();
    this.asking = 0;
    this.graph = cytoscape({ container: $("plan"), minZoom: 0.05, maxZoom: 2.5, autoungrabify: true, style: this.style() });
    this.minimap = new Minimap($("plan-map"), this.graph);
    this.graph.on("tap", "node", (event) => this.tapped(event.target));
    this.graph.on("tap", "edge", (event) => this.choose("queue", event.target.data("queue"), event.target.data("many")));
    $("plan-fit").addEventListener("click", () => this.graph.fit(undefined, MARGIN));
    for (const [id, factor] of [["plan-in", 1.4], ["plan-out", 1 / 1.4]]) $(id).addEventListener("click", () => this.zoom(factor));
    $("plan-mode").addEventListener("change", () => this.anew());
    $("plan-query").addEventListener("change", () => this.anew());
    $("plan-query").addEventListener("input", () => this.suggest());
    $("plan-fold").addEventListener("click", () => { this.opened.clear(); this.anew(); });
    $("plan-find").addEventListener("input", () => { clearTimeout(this.typed); this.typed = setTimeout(() => this.search(), TYPED_MS); });
    $("plan-find").addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(); });
    $("plan-entity").addEventListener("change", (event) => {
      const [kind, name] = event.target.value.split("\t");
      if (name) this.choose(kind, name);
    });
    $("watch").addEventListener("click", () => this.watch());
    this.queries = new PagedList($("box-queries"), {
      path: "/api/plan/queries", parameters: () => this.wish(), name: "its queries", key: (name) => name, size: 20,
      make: () => chooser((name) => this.choose("query", name)), fill: (button, name) => fillChooser(button, { dot: "good", name, number: "", sub: "query", title: name }),
    });
    new ResizeObserver(() => this.graph.resize()).observe($("plan"));
  }

  style() {
    const ink = "#17242c";
    return [
      { selector: "node", style: { label: "data(label)", "font-size": 11.5, color: css("--ink"), "text-wrap": "wrap", "text-max-width": 164, "text-valign": "center", shape: "round-rectangle", width: 178, height: 66, "background-color": css("--node"), "border-width": 1, "border-color": css("--quiet"), "line-height": 1.25 } },
      { selector: 'node[kind = "input"]', style: { shape: "round-tag", "background-color": css("--tint"), "border-color": css("--accent") } },
      { selector: 'node[kind = "operator"], node[kind = "shape"], node[kind = "view"]', style: { "background-color": "data(colour)", color: ink } },
      { selector: 'node[kind = "shape"]', style: { "border-style": "double", "border-width": 5 } },
      { selector: 'node[kind = "view"]', style: { shape: "cut-rectangle", "border-width": 2 } },
      { selector: 'node[place = "spark"]', style: { "border-color": "#e2762d", "border-width": 3 } },
      { selector: 'node[kind = "synopsis"]', style: { shape: "barrel", width: 56, height: 22, "font-size": 11, "background-color": css("--card"), "border-color": css("--quiet"), "text-max-width": 60, "z-index": 10 } },
      { selector: "node:parent", style: { label: "data(label)", "text-valign": "top", "text-halign": "right", "text-margin-x": -58, "font-size": 11, color: css("--quiet"), "background-opacity": 0.06, "background-color": css("--accent"), "border-style": "dashed", "border-width": 1.5, "border-color": css("--accent"), padding: 12 } },
      { selector: "node.thread", style: { "border-style": "solid", "border-color": css("--thread"), "background-color": css("--thread") } },
      { selector: "edge", style: { width: "data(width)", "line-color": css("--quiet"), "target-arrow-color": css("--quiet"), "target-arrow-shape": "triangle", "curve-style": "bezier", label: "data(label)", "font-size": 11, color: css("--quiet"), "text-background-color": css("--code"), "text-background-opacity": 0.9, "text-background-padding": 2, "text-wrap": "wrap" } },
      { selector: "edge[!present]", style: { "line-style": "dotted" } },
      { selector: "edge[behind]", style: { "line-color": css("--bad"), "target-arrow-color": css("--bad"), color: css("--bad") } },
      { selector: ".dim", style: { opacity: 0.25 } },
      { selector: ".found", style: { "border-color": css("--accent"), "border-width": 4, "border-style": "solid" } },
      { selector: ":selected", style: { "border-color": css("--accent"), "border-width": 4, "line-color": css("--accent"), "target-arrow-color": css("--accent") } },
    ];
  }

  recolour() { this.graph.style(this.style()); this.refresh(); }

  zoom(factor) {
    this.graph.zoom({ level: this.graph.zoom() * factor, renderedPosition: { x: this.graph.width() / 2, y: this.graph.height() / 2 } });
  }

  // What is asked of the plan: folded or not, which boxes are open.
  wish() { return $("plan-mode").value === "shapes" ? { fold: true, open: [...this.opened] } : {}; }

  query() { return $("plan-mode").value === "query" ? $("plan-query").value.trim() : ""; }

  wanted() { return { ...this.wish(), query: this.query(), find: $("plan-find").value.trim() }; }

  anew() {
    $("plan-query-label").hidden = $("plan-mode").value !== "query";
    if ($("plan-mode").value === "query" && !$("plan-query").value) this.suggest(true);
    this.structure = "";
    this.asking = 0;
    $("progress-box").hidden = true;
    return this.refresh();
  }

  async suggest(chooses = false) {
    const found = await get(`/api/queries?${query({ limit: 20, find: chooses ? "" : $("plan-query").value.trim() })}`);
    $("plan-queries").replaceChildren(...found.map((each) => element("option", { value: each.name })));
    const isTyping = document.activeElement === $("plan-query"); // what is typed is not added to a suggestion
    if (chooses && found.length && !$("plan-query").value && !isTyping) { $("plan-query").value = found[0].name; this.anew(); }
  }

  // One look; a plan that takes the server long is asked for less often.
  async refresh() {
    if (performance.now() < this.asking) return;
    const began = performance.now(), wanted = this.wanted(), isWanted = () => query(wanted) === query(this.wanted());
    let plan;
    try { plan = await get(`/api/plan?${query(wanted)}`); } catch (error) {
      if (!isWanted()) return;
      if (error.status !== 404) throw error;
      text($("plan-note"), error.message);
      return;
    }
    if (!isWanted()) return; // something else was asked for meanwhile
    this.asking = performance.now() + 4 * (performance.now() - began);
    $("plan-empty").hidden = plan.nodes.length > 0;
    this.nodes = new Map(plan.nodes.map((node) => [node.id, node]));
    this.draw(plan);
    this.mark(plan.found, wanted.find !== "");
    this.say(plan, wanted.find);
    this.listViews(plan.views);
    $("plan-fold").hidden = !this.opened.size;
    if (this.chosen) await this.table();
    await this.progress();
  }

  draw(plan) {
    const elements = this.elements(plan);
    const structure = JSON.stringify(elements.map(({ data }) => [data.id, data.parent, data.source, data.target]));
    if (structure === this.structure) {
      this.graph.batch(() => { for (const { data } of elements) this.graph.getElementById(data.id).data(data); });
      return;
    }
    const isNew = this.structure === "";
    this.structure = structure;
    this.graph.elements().remove();
    this.graph.add(elements);
    const synopses = this.graph.nodes('[kind = "synopsis"]');
    this.graph.elements().not(synopses).layout({ name: "dagre", rankDir: this.direction(plan), nodeSep: 26, rankSep: 70, edgeSep: 20, animate: false, fit: false }).run();
    synopses.forEach((node) => {
      const { x, y } = this.graph.getElementById(node.id().slice(SYNOPSIS.length)).position();
      node.position({ x: x + 62, y: y + 36 });
    });
    if (isNew) this.frame();
    this.list(plan);
  }

  // From left to right or from the top down, whichever shows the plan larger.
  direction(plan) {
    const layers = new Map();
    for (const node of plan.nodes) layers.set(node.id, 0);
    for (let changed = true, round = 0; changed && round < layers.size; round += 1) {
      changed = false;
      for (const { from, to } of plan.edges) if (layers.get(to) <= layers.get(from)) { layers.set(to, layers.get(from) + 1); changed = true; }
    }
    const sizes = [...Map.groupBy(layers.values(), (layer) => layer).values()].map((each) => each.length);
    const deep = sizes.length, wide = Math.max(1, ...sizes);
    const zoom = (width, height) => Math.min(this.graph.width() / width, this.graph.height() / height);
    return zoom(250 * deep, 98 * wide) >= zoom(215 * wide, 136 * deep) ? "LR" : "TB";
  }

  // As much as can be read: all of it, or where it is large what is around the first input.
  frame() {
    this.graph.fit(undefined, MARGIN);
    const zoom = this.graph.zoom();
    if (zoom > LARGEST) { this.graph.zoom(LARGEST); this.graph.center(); }
    if (zoom >= LEAST) return;
    this.graph.zoom(READABLE);
    const whole = this.graph.elements().boundingBox(), first = this.graph.nodes('[kind = "input"]').first();
    const { x, y } = first.nonempty() ? first.position() : { x: whole.x1, y: whole.y1 };
    this.graph.pan({ x: around(x, this.graph.width(), whole.x1, whole.x2), y: around(y, this.graph.height(), whole.y1, whole.y2) });
  }

  say(plan, find) {
    const parts = [];
    if (find) parts.push(plan.found.length ? `${plan.found.length.toLocaleString("en")} of the boxes have to do with “${find}”; Enter goes to the next one.` : `Nothing in the plan has to do with “${find}”.`);
    if (plan.shown < plan.boxes) parts.push(`${plan.shown} of ${plan.boxes.toLocaleString("en")} boxes are drawn: look for something, or fold.`);
    else if (plan.boxes < plan.operators && !this.query()) parts.push(`${plan.operators.toLocaleString("en")} operators in ${plan.boxes.toLocaleString("en")} boxes.`);
    text($("plan-note"), parts.join(" "));
  }

  // -- looking for something ------------------------------------------------------------------

  async search() {
    this.asking = 0;
    this.at = -1;
    await this.refresh();
    if ($("plan-find").value.trim()) this.next();
  }

  mark(found, isSearched) {
    this.found = found;
    const ids = new Set(found);
    this.graph.batch(() => this.graph.nodes("[kind]").forEach((node) => {
      node.toggleClass("found", ids.has(node.id()));
      node.toggleClass("dim", isSearched && !ids.has(node.id()));
    }));
  }

  next() {
    if (!this.found?.length) return;
    this.at = ((this.at ?? -1) + 1) % this.found.length;
    const node = this.graph.getElementById(this.found[this.at]);
    if (node.empty()) return;
    if (this.graph.zoom() < READABLE) this.graph.zoom(READABLE);
    this.graph.center(node);
  }

  // -- views ------------------------------------------------------------------------------------

  listViews(views) {
    $("plan-views").hidden = !views.length;
    const key = JSON.stringify(views);
    if ($("plan-views").dataset.key === key) return;
    $("plan-views").dataset.key = key;
    $("plan-views").replaceChildren(element("span", {}, "Views:"), ...views.map((view) => element("button", {
      "aria-pressed": String(view.folded), title: view.folded ? `${view.operators} operators as one box; click to see them` : "click to have it as one box",
      onclick: () => this.toggle(`view:${view.name}`),
    }, view.name)));
  }

  toggle(box) {
    if (this.opened.has(box)) this.opened.delete(box);
    else this.opened.add(box);
    if (this.chosen?.name === box) this.forget();
    return this.anew();
  }

  // -- what is drawn --------------------------------------------------------------------------

  elements(plan) {
    const operators = plan.nodes.filter((node) => node.kind === "operator");
    const units = [...Map.groupBy(operators, (node) => node.unit)].filter(([, nodes]) => nodes.length > 1);
    const isUnit = new Set(units.map(([name]) => name));
    const threaded = plan.threads > 1;
    const made = [];
    if (threaded) for (const thread of new Set(operators.map((node) => node.thread))) made.push({ data: { id: `thread ${thread}`, label: `thread ${thread}`, entity: ["thread", `thread${thread}`] }, classes: "thread" });
    for (const [name, nodes] of units) made.push({ data: { id: `unit ${name}`, label: `unit of ${nodes.length}`, entity: ["unit", name], parent: threaded ? `thread ${nodes[0].thread}` : undefined } });
    for (const node of plan.nodes) {
      const parent = node.kind === "operator" ? (isUnit.has(node.unit) ? `unit ${node.unit}` : threaded ? `thread ${node.thread}` : undefined) : undefined;
      made.push({ data: { id: node.id, kind: node.kind, place: node.place, parent, label: breakable(nodeLabel(node)), colour: node.kind === "input" ? undefined : loadColour(node.load ?? 0) } });
      if (node.kind === "operator" && node.synopsis_bytes !== null) made.push({ data: { id: `${SYNOPSIS}${node.id}`, kind: "synopsis", entity: ["synopsis", node.id], parent, label: bytes(node.synopsis_bytes) } });
    }
    for (const edge of plan.edges) {
      made.push({ data: { id: `${edge.from}→${edge.to}`, source: edge.from, target: edge.to, queue: edge.queue, many: edge.queues, present: edge.present || undefined, behind: edge.behind_seconds > 1 || undefined, label: edgeLabel(edge), width: Math.min(9, 1.4 + Math.log10(1 + (edge.backlog_rows ?? 0))) } });
    }
    return made;
  }

  list(plan) {
    const options = [["", "choose …"], ["engine\tengine", "engine"], ["scheduler\tscheduler", "scheduler"]];
    for (const node of plan.nodes) {
      if (node.kind === "input" && node.of) options.push([`${node.of}\t${node.name}`, node.label]);
      if (node.kind === "operator") {
        options.push([`operator\t${node.id}`, `${node.id} ${node.label.slice(0, 40)}`]);
        if (node.synopsis_bytes !== null) options.push([`synopsis\t${node.id}`, `synopsis of ${node.id}`]);
      }
      if (node.kind === "shape" || node.kind === "view") options.push([`${node.kind}\t${node.id}`, boxName(node)]);
    }
    const operators = plan.nodes.filter((node) => node.kind === "operator");
    for (const unit of new Set(operators.map((node) => node.unit))) options.push([`unit\t${unit}`, `unit of ${unit}`]);
    for (const thread of new Set(operators.map((node) => node.thread))) options.push([`thread\tthread${thread}`, `thread ${thread}`]);
    for (const name of plan.partitions) options.push([`partition\t${name}`, `partition ${name}`]);
    for (const name of new Set(plan.edges.map((edge) => edge.queue))) options.push([`queue\t${name}`, this.labelOf(name) === name ? `queue behind ${name}` : `queue of ${this.labelOf(name)}`]);
    const before = $("plan-entity").value;
    $("plan-entity").replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
    $("plan-entity").value = before;
  }

  labelOf(queue) { return this.nodes.get(queue)?.kind === "input" ? this.nodes.get(queue).label : queue; }

  // -- what was chosen --------------------------------------------------------------------------

  tapped(target) {
    const node = this.nodes.get(target.id());
    if (target.data("entity")) this.choose(...target.data("entity"));
    else if (!node) return;
    else if (node.kind === "input") this.choose(...(node.of ? [node.of, node.name] : ["queue", node.id]));
    else this.choose(node.kind, node.id);
  }

  forget() {
    this.stopWatch();
    this.chosen = null;
    for (const id of ["control-rows", "control-near", "watch-table"]) $(id).replaceChildren();
    $("box-part").hidden = $("watch-box").hidden = true;
    text($("control-title"), "Control table");
    text($("control-meaning"), "Click anything to see what is measured of it, and to turn its knobs.");
  }

  async choose(kind, name, many = 1) {
    this.stopWatch();
    this.chosen = { kind, name, many };
    $("watch-box").hidden = kind !== "queue";
    for (const id of ["control-rows", "watch-table"]) $(id).replaceChildren();
    text($("watch-note"), "");
    $("box-part").hidden = true;
    this.near();
    await this.table();
    if (["operator", "shape", "view"].includes(kind)) await this.showQueries(name);
  }

  async showQueries(box) {
    const asked = this.chosen;
    try { await this.queries.of(`/api/plan/queries?${query({ box })}`); } catch { return; }
    if (this.chosen === asked) $("box-part").hidden = false;
  }

  async table() {
    const chosen = this.chosen;
    try {
      if (chosen.kind === "shape" || chosen.kind === "view") this.boxTable(chosen);
      else {
        await controlTable($("control-rows"), chosen.kind, chosen.name);
        if (this.chosen !== chosen) return;
        const label = this.labelOf(chosen.name);
        text($("control-title"), `${chosen.kind} ${chosen.name === chosen.kind ? "" : label === chosen.name ? chosen.name : `of ${label}`}`.trim());
        text($("control-meaning"), chosen.many > 1 ? `The first of ${chosen.many.toLocaleString("en")} queues that are drawn as one.` : "");
      }
    } catch (error) {
      if (this.chosen === chosen) { this.forget(); text($("control-meaning"), error.message); }
    }
  }

  boxTable({ name }) {
    const node = this.nodes.get(name);
    if (!node) { this.forget(); return; }
    text($("control-title"), boxName(node));
    text($("control-meaning"), node.kind === "view" ? "The operators of a view, which nothing else uses." : "Operators that differ in constants only.");
    const facts = [["operators", count(node.members)], ["queries", count(node.query_count)], ["load", `${Math.round(100 * node.load)}%`], ["rows in", inUnit(node.rows_in_per_second, "rows/s")], ["rows out", inUnit(node.rows_out_per_second, "rows/s")], ["synopses", bytes(node.synopsis_bytes)]];
    $("control-rows").replaceChildren(...facts.map(([label, value]) => element("div", { class: "fact" }, element("span", {}, label), element("b", {}, value))));
  }

  // What belongs to what was chosen, a click away.
  near() {
    const { kind, name } = this.chosen, node = this.nodes.get(name), to = [];
    if (kind === "operator" && node) {
      to.push(["its queue", "queue", name], ["its unit", "unit", node.unit], ["its thread", "thread", `thread${node.thread}`]);
      if (node.partition) to.push(["its partition", "partition", node.partition]);
      if (node.synopsis_bytes !== null) to.push(["its synopsis", "synopsis", name]);
    }
    if (kind === "stream" || kind === "relation") {
      const queue = [...this.nodes.values()].find((each) => each.of === kind && each.name === name);
      if (queue) to.push(["its queue", "queue", queue.id]);
    }
    if (kind === "synopsis" || kind === "unit") to.push(["the operator", "operator", name]);
    if (kind === "queue" && node?.of) to.push([`the ${node.of}`, node.of, node.name]);
    if (kind === "queue" && node?.kind === "operator") to.push(["the operator", "operator", name]);
    const buttons = to.map(([label, ...entity]) => element("button", { onclick: () => this.choose(...entity) }, label));
    if (kind === "shape" || kind === "view") buttons.push(element("button", { onclick: () => this.toggle(name) }, "Unfold"), element("button", { onclick: () => this.choose("operator", node.first) }, "the first operator"));
    $("control-near").replaceChildren(...buttons);
  }

  // The progress chart of the one query shown, as soon as its operators are measured.
  async progress() {
    const name = this.query();
    let chart;
    if (name) try { [chart] = (await get(`/api/queries/${encodeURIComponent(name)}/chart`)).charts; } catch { /* none yet */ }
    if (name !== this.query()) return;
    const { points = [], envelope = [] } = chart ?? {};
    const xs = [...new Set([...points, ...envelope].map(([x]) => x))].sort((a, b) => a - b);
    $("progress-box").hidden = xs.length < 2; // a point alone is no course
    if (xs.length < 2) return;
    const course = (of) => xs.map((x) => of.findLast(([at]) => at === x)?.[1] ?? null);
    this.chart ??= new Plot($("progress"), { series: [{ label: "measured", points: { show: true, size: 7 } }, { label: "lower envelope", dash: [6, 4] }], value: bytes, x: seconds, xLabel: "work" });
    this.chart.show([xs, course(points), course(envelope)]);
  }

  watch() {
    if (this.stopWatch()) return;
    const table = $("watch-table");
    const kind = (value) => (typeof value === "number" ? "number" : "");
    let passed = 0;
    text($("watch"), "Stop watching");
    this.watching = lines("GET", `/api/queues/${encodeURIComponent(this.chosen.name)}/tuples?seconds=120`, undefined, (line) => {
      passed += line.passed;
      text($("watch-note"), passed ? `${count(passed)} tuples have passed` : "None has passed yet");
      if (!line.tuples.length) return;
      const names = Object.keys(line.tuples[0].row);
      if (!table.tHead) table.append(element("thead", {}, element("tr", {}, element("th", {}, "±"), ...names.map((name) => element("th", { class: kind(line.tuples[0].row[name]) }, name)))), element("tbody"));
      const body = table.tBodies[0];
      for (const tuple of line.tuples.slice(-20)) body.prepend(element("tr", { class: tuple.weight < 0 ? "minus" : "" }, element("td", {}, tuple.weight > 0 ? `+${tuple.weight}` : String(tuple.weight)), ...names.map((name) => element("td", { class: kind(tuple.row[name]), title: exact(tuple.row[name]) }, cell(tuple.row[name])))));
      while (body.rows.length > MOST_TUPLES) body.lastChild.remove();
    }, () => this.stopWatch());
  }

  stopWatch() {
    text($("watch"), "Watch the tuples that pass");
    if (!this.watching) return false;
    this.watching();
    this.watching = null;
    return true;
  }
}

function boxName(node) { return node.kind === "view" || node.puts_out ? node.label : `${node.members.toLocaleString("en")} × ${node.label}`; }

const short = (label) => (label.length > 46 ? `${label.slice(0, 45)}…` : label);

function nodeLabel(node) {
  if (node.kind === "input") return `${node.label}\n${count(node.rate ?? 0)} rows/s`;
  const busy = `${Math.round(100 * (node.load ?? 0))}% busy`;
  if (node.kind === "operator") return `${node.id} ${short(node.label)}\n${busy}`;
  const served = `${count(node.query_count)} ${node.query_count === 1 ? "query" : "queries"}`;
  return `${short(boxName(node))}\n${node.puts_out ? "" : `${served} · `}${busy}`;
}

// How far a drawing from low to high is moved in a frame: all of it to its middle, or a place there.
function around(place, size, low, high) {
  const [first, last] = [MARGIN - READABLE * low, size - MARGIN - READABLE * high];
  return last >= first ? (first + last) / 2 : Math.min(first, Math.max(last, size / 2 - READABLE * place));
}

// Lines end between words, and within one that is longer than a box is wide.
function breakable(label) {
  return label.replace(/\S{24,}/g, (word) => word.replace(/.{22}/g, "$&\u200b"));
}

function edgeLabel(edge) {
  const parts = [];
  if (edge.backlog_rows) parts.push(`${count(edge.backlog_rows)} wait`);
  if (edge.behind_seconds > 0.5) parts.push(`${seconds(edge.behind_seconds)} behind`);
  if (edge.rate > 0.05) parts.push(`${count(edge.rate)}/s`);
  return parts.join("\n");
}

function loadColour(load) {
  return `hsl(${Math.round(140 - 135 * Math.min(1, load))}, 55%, ${load > 0.02 ? 76 : 88}%)`;
}
