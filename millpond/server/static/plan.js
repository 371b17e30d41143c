// The running plan, drawn in layers: load, queues with what waits, units and threads, synopses.
import { get, lines } from "./api.js";
import { controlTable } from "./control.js";
import { Plot } from "./plots.js";
import { $, bytes, cell, count, element, exact, seconds } from "./words.js";

cytoscape.use(cytoscapeDagre);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const MOST_TUPLES = 60;

export class PlanView {
  constructor() {
    this.structure = "";
    this.chosen = null;
    this.graph = cytoscape({ container: $("plan"), minZoom: 0.15, maxZoom: 2.5, style: this.style() });
    this.graph.on("tap", "node[kind]", (event) => this.choose(event.target.data("kind") === "input" ? "queue" : "operator", event.target.id()));
    this.graph.on("tap", "edge", (event) => this.choose("queue", event.target.data("queue")));
    $("plan-fit").addEventListener("click", () => this.graph.fit(undefined, 24));
    $("plan-query").addEventListener("change", () => { this.structure = ""; this.refresh(); this.progress(); });
    $("plan-entity").addEventListener("change", (event) => {
      const [kind, name] = event.target.value.split("\t");
      if (name) this.choose(kind, name);
    });
    $("watch").addEventListener("click", () => this.watch());
    new ResizeObserver(() => this.graph.resize()).observe($("plan"));
  }

  style() {
    return [
      { selector: "node", style: { label: "data(label)", "font-size": 11, color: css("--ink"), "text-wrap": "wrap", "text-max-width": 150, "text-valign": "center", shape: "round-rectangle", width: 168, height: 54, "background-color": css("--node"), "border-width": 1, "border-color": css("--quiet"), "line-height": 1.25 } },
      { selector: 'node[kind = "input"]', style: { shape: "round-tag", "background-color": css("--tint"), "border-color": css("--accent") } },
      { selector: 'node[kind = "operator"]', style: { "background-color": "data(colour)", color: "#17242c" } },
      { selector: 'node[place = "spark"]', style: { "border-color": "#e2762d", "border-width": 3 } },
      { selector: "node:parent", style: { label: "data(label)", "text-valign": "top", "font-size": 10, color: css("--quiet"), "background-opacity": 0.06, "background-color": css("--accent"), "border-style": "dashed", "border-width": 1.5, "border-color": css("--accent"), padding: 12 } },
      { selector: "node.thread", style: { "border-style": "solid", "border-color": css("--thread"), "background-color": css("--thread") } },
      { selector: "edge", style: { width: "data(width)", "line-color": css("--quiet"), "target-arrow-color": css("--quiet"), "target-arrow-shape": "triangle", "curve-style": "bezier", label: "data(label)", "font-size": 10, color: css("--quiet"), "text-background-color": css("--code"), "text-background-opacity": 0.9, "text-background-padding": 2, "text-wrap": "wrap" } },
      { selector: "edge[!present]", style: { "line-style": "dotted" } },
      { selector: "edge[behind]", style: { "line-color": css("--bad"), "target-arrow-color": css("--bad"), color: css("--bad") } },
      { selector: ":selected", style: { "border-color": css("--accent"), "border-width": 4, "line-color": css("--accent"), "target-arrow-color": css("--accent") } },
    ];
  }

  recolour() { this.graph.style(this.style()); this.refresh(); }

  async refresh() {
    const query = $("plan-query").value;
    const plan = await get(`/api/plan${query ? `?query=${encodeURIComponent(query)}` : ""}`);
    $("plan-empty").hidden = plan.nodes.length > 0;
    this.labels = new Map([...plan.nodes.filter((node) => node.kind === "input").map((node) => [node.id, node.label])]);
    const elements = this.elements(plan);
    const structure = JSON.stringify(elements.map(({ data }) => [data.id, data.parent, data.source, data.target]));
    if (structure !== this.structure) {
      this.structure = structure;
      this.graph.elements().remove();
      this.graph.add(elements);
      this.graph.layout({ name: "dagre", rankDir: "TB", nodeSep: 34, rankSep: 74, edgeSep: 20, animate: false }).run();
      this.graph.fit(undefined, 24);
      if (this.graph.zoom() > 1.15) { this.graph.zoom(1.15); this.graph.center(); }
      this.list(plan);
    } else {
      for (const { data } of elements) this.graph.getElementById(data.id).data(data);
    }
    if (this.chosen) await this.table();
  }

  elements(plan) {
    const members = Map.groupBy(plan.nodes.filter((node) => node.kind === "operator"), (node) => node.unit);
    const units = [...members].filter(([, nodes]) => nodes.length > 1);
    const isUnit = new Set(units.map(([name]) => name));
    const threaded = plan.threads > 1;
    const made = [];
    if (threaded) for (const thread of new Set(plan.nodes.filter((n) => n.kind === "operator").map((n) => n.thread))) made.push({ data: { id: `thread ${thread}`, label: `thread ${thread}` }, classes: "thread" });
    for (const [name, nodes] of units) made.push({ data: { id: `unit ${name}`, label: `unit of ${nodes.length}`, parent: threaded ? `thread ${nodes[0].thread}` : undefined } });
    for (const node of plan.nodes) {
      const parent = node.kind === "operator" ? (isUnit.has(node.unit) ? `unit ${node.unit}` : threaded ? `thread ${node.thread}` : undefined) : undefined;
      made.push({ data: { id: node.id, kind: node.kind, place: node.place, parent, label: nodeLabel(node), colour: loadColour(node.load ?? 0) } });
    }
    for (const edge of plan.edges) {
      made.push({ data: { id: `${edge.from}→${edge.to}`, source: edge.from, target: edge.to, queue: edge.queue, present: edge.present || undefined, behind: edge.behind_seconds > 1 || undefined, label: edgeLabel(edge), width: Math.min(9, 1.4 + Math.log10(1 + (edge.backlog_rows ?? 0))) } });
    }
    return made;
  }

  list(plan) {
    const options = [element("option", { value: "" }, "choose …"), ...["engine", "scheduler"].map((kind) => element("option", { value: `${kind}\t${kind}` }, kind))];
    for (const node of plan.nodes) {
      if (node.kind === "operator") {
        options.push(element("option", { value: `operator\t${node.id}` }, `${node.id} ${node.label.slice(0, 30)}`));
        if (node.synopsis_bytes !== null) options.push(element("option", { value: `synopsis\t${node.id}` }, `synopsis of ${node.id}`));
      }
    }
    for (const queue of new Set(plan.edges.map((edge) => edge.queue))) options.push(element("option", { value: `queue\t${queue}` }, this.labels.has(queue) ? `queue of ${this.labels.get(queue)}` : `queue behind ${queue}`));
    const before = $("plan-entity").value;
    $("plan-entity").replaceChildren(...options);
    $("plan-entity").value = before;
  }

  async choose(kind, name) {
    this.stopWatch();
    this.chosen = { kind, name };
    $("watch-box").hidden = kind !== "queue";
    $("watch-table").replaceChildren();
    $("watch-note").textContent = "";
    $("control-rows").replaceChildren();
    await this.table();
    this.progress();
  }

  async table() {
    const chosen = this.chosen;
    try {
      await controlTable($("control-rows"), $("control-title"), $("control-meaning"), chosen.kind, chosen.name, this.labels?.get(chosen.name));
    } catch (error) {
      if (this.chosen === chosen) { this.chosen = null; $("control-meaning").textContent = error.message; $("control-rows").replaceChildren(); }
    }
  }

  async progress() {
    const query = $("plan-query").value;
    $("progress-box").hidden = !query;
    if (!query) return;
    try {
      const { charts } = await get(`/api/queries/${encodeURIComponent(query)}/chart`);
      const chart = charts[0];
      if (!chart) throw new Error();
      const xs = [...new Set([...chart.points, ...chart.envelope].map(([x]) => x))].sort((a, b) => a - b);
      const course = (points) => xs.map((x) => points.findLast(([at]) => at === x)?.[1] ?? null);
      this.chart?.close();
      this.chart = new Plot($("progress"), { series: [{ label: "measured", points: { show: true, size: 7 } }, { label: "lower envelope", dash: [6, 4] }], value: bytes, x: seconds, xLabel: "work" });
      this.chart.show([xs, course(chart.points), course(chart.envelope)]);
    } catch { $("progress-box").hidden = true; }
  }

  watch() {
    if (this.stopWatch()) return;
    const table = $("watch-table");
    let passed = 0;
    $("watch").textContent = "Stop watching";
    this.watching = lines("GET", `/api/queues/${encodeURIComponent(this.chosen.name)}/tuples?seconds=120`, undefined, (line) => {
      passed += line.passed;
      $("watch-note").textContent = passed ? `${count(passed)} tuples have passed` : "None has passed yet";
      if (!line.tuples.length) return;
      const names = Object.keys(line.tuples[0].row);
      if (!table.tHead) table.append(element("thead", {}, element("tr", {}, element("th", {}, "±"), ...names.map((name) => element("th", {}, name)))), element("tbody"));
      const body = table.tBodies[0];
      for (const tuple of line.tuples.slice(-20)) body.prepend(element("tr", { class: tuple.weight < 0 ? "minus" : "" }, element("td", {}, tuple.weight > 0 ? `+${tuple.weight}` : String(tuple.weight)), ...names.map((name) => element("td", { title: exact(tuple.row[name]) }, cell(tuple.row[name])))));
      while (body.rows.length > MOST_TUPLES) body.lastChild.remove();
    }, () => this.stopWatch());
  }

  stopWatch() {
    $("watch").textContent = "Watch the tuples that pass";
    if (!this.watching) return false;
    this.watching();
    this.watching = null;
    return true;
  }
}

function nodeLabel(node) {
  if (node.kind === "input") return `${node.label}\n${count(node.rate ?? 0)} rows/s`;
  const does = node.label.length > 44 ? `${node.label.slice(0, 43)}…` : node.label;
  const state = node.synopsis_bytes ? ` · ${bytes(node.synopsis_bytes)}` : "";
  return `${node.id} ${does}\n${Math.round(100 * (node.load ?? 0))}% busy${state}`;
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
