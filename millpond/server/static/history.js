// Charts over time, with marks where something was changed.
import { get } from "./api.js";
import { MEANING, Plot } from "./plots.js";
import { $, bytes, clock, count, dated, element, seconds, text, whole } from "./words.js";

const POINTS = 400;
const EVERY_MS = 5000;
const PLANE_SECONDS = 120;

// What waits, and the budget: a line, or words where a line would flatten all others.
function backlogSeries(budget) {
  return [{ label: "waiting", fill: "#2a8fb322", stroke: MEANING.waiting }, { label: "with windows", stroke: MEANING.windows }, { label: budget, dash: [6, 4], stroke: MEANING.budget }];
}

export class Charts {
  constructor() {
    this.samples = [];
    this.marks = [];
    const marks = () => this.marks;
    this.backlog = new Plot($("chart-backlog"), { series: backlogSeries("budget"), value: bytes, marks });
    this.latency = new Plot($("chart-latency"), { series: ["mean", "p50", "p95", "p99"].map((label) => ({ label, stroke: MEANING[label], dash: label === "mean" ? [3, 3] : undefined })), value: seconds, marks });
    this.rates = new Plot($("chart-rates"), { series: [{ label: "in", stroke: MEANING.in }, { label: "out", stroke: MEANING.out }], value: count, marks });
    this.steps = new Plot($("chart-steps"), { series: [{ label: "driver", stroke: MEANING.driver }, { label: "Spark", stroke: MEANING.spark }], value: count, marks });
    this.predicted = [];
    const named = () => this.predicted.map((each) => ({ x: each.mean_bytes, y: each.mean_latency_seconds, name: each.strategy }));
    this.plane = new Plot($("chart-plane"), { scatter: true, x: bytes, value: seconds, labels: false, named, series: [
      { label: "before", stroke: MEANING.before, paths: () => null, points: { show: true, size: 5, stroke: MEANING.before, fill: MEANING.before } },
      { label: "now", stroke: MEANING.now, paths: () => null, points: { show: true, size: 13, fill: MEANING.now, stroke: MEANING.before } },
      { label: "predicted", stroke: MEANING.predicted, paths: () => null, points: { show: true, size: 8, fill: "transparent", stroke: MEANING.predicted, width: 2 } },
    ] });
    $("plane-predict").addEventListener("click", () => this.predict());
    $("chart-span").addEventListener("change", () => { this.samples = []; this.asking = 0; this.refresh(); });
  }

  // How many seconds are shown; 0: all since the start.
  span() { return Number($("chart-span").value); }

  async predict() {
    const button = $("plane-predict"), note = $("plane-note");
    button.disabled = true;
    note.textContent = "Predicting …";
    note.classList.remove("error");
    try {
      const { time, strategies, refused } = await get("/api/plane");
      this.predicted = strategies.sort((a, b) => a.mean_latency_seconds - b.mean_latency_seconds);
      const reasons = new Set(refused.map((each) => each.reason));
      const those = (reason) => refused.filter((each) => each.reason === reason).map((each) => each.strategy).join(", ");
      const left = [...reasons].map((reason) => ` Without ${those(reason)}: ${reason}.`).join("");
      note.textContent = `Rings: predicted by the simulator from what was measured until ${clock(time)} UTC.${left}`;
      this.listPredicted();
      this.drawPlane();
    } catch (error) {
      note.textContent = error.message;
      note.classList.add("error");
    } finally {
      button.disabled = false;
    }
  }

  listPredicted() {
    const row = (each) => element("tr", {}, element("td", {}, each.strategy), element("td", { class: "number" }, bytes(each.mean_bytes)), element("td", { class: "number" }, seconds(each.mean_latency_seconds)));
    const head = element("tr", {}, element("th", { scope: "col" }, "strategy"), ...["waits", "latency"].map((word) => element("th", { scope: "col", class: "number" }, word)));
    $("plane-table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...this.predicted.map(row)));
    $("plane-box").hidden = !this.predicted.length;
  }

  forget() {
    this.asking = 0;
    this.samples = [];
    this.marks = [];
    this.predicted = [];
  }

  // The last minutes are fetched as they come; further back a picture of them, now and then.
  async refresh() {
    const span = this.span();
    if (span > 0 && span <= 300) await this.follow(span);
    else if (performance.now() >= (this.asking ?? 0)) {
      const { samples, marks, started } = await get(`/api/history?since=${span ? Date.now() / 1000 - span : 0}&points=${POINTS}`);
      if (span !== this.span()) return;
      this.asking = performance.now() + EVERY_MS;
      Object.assign(this, { samples, marks });
      text($("chart-note"), span ? "" : `Since ${whole(new Date(started * 1000).toISOString())}; each point stands for the time up to the next one, with the peaks of backlog and of the slowest results.`);
    }
    this.draw();
  }

  async follow(span) {
    const since = this.samples.at(-1)?.time ?? Date.now() / 1000 - span;
    const { samples, marks } = await get(`/api/history?since=${since}`);
    if (span !== this.span()) return;
    const last = this.samples.at(-1)?.time ?? 0;
    this.samples = [...this.samples, ...samples.filter((sample) => sample.time > last)].slice(-span);
    if (marks.length) this.marks = [...this.marks, ...marks.filter((m) => !this.marks.some((k) => k.time === m.time))].slice(-100);
    text($("chart-note"), "");
  }

  draw() {
    const samples = this.samples;
    const of = (name) => samples.map((sample) => sample[name]);
    const times = of("time");
    const top = Math.max(...of("memory_bytes"), 1);
    const budget = of("budget_bytes").map((b) => (b > 20 * top ? null : b));
    const isFar = budget.length > 0 && budget.at(-1) === null;
    this.backlog.change(backlogSeries(isFar ? `budget ${bytes(samples.at(-1).budget_bytes)}, far above` : "budget"));
    this.backlog.show([times, of("backlog_bytes"), of("memory_bytes"), budget]);
    this.latency.show([times, ...["mean", "p50", "p95", "p99"].map((part) => of(`latency_${part}_seconds`))]);
    this.rates.show([times, of("arrived_per_second"), of("rows_out_per_second")]);
    const perSecond = (name) => samples.map((s, at) => (at ? Math.max(0, s[name] - samples[at - 1][name]) / Math.max(0.2, s.time - samples[at - 1].time) : null));
    this.steps.show([times, perSecond("driver_steps"), perSecond("executor_steps")]);
    this.drawPlane();
    const items = this.marks.slice(-30).reverse().map((mark) => element("li", {}, element("time", {}, `${dated(mark.time)} UTC`), mark.what));
    $("marks").replaceChildren(...(items.length ? items : [element("li", {}, "Nothing was changed yet.")]));
  }

  drawPlane() {
    const since = (this.samples.at(-1)?.time ?? 0) - PLANE_SECONDS;
    const known = this.samples.filter((sample) => sample.time > since && sample.latency_mean_seconds !== null);
    const last = known.at(-1);
    const points = [
      ...known.map((s) => ({ x: s.mean_backlog_bytes, before: s.latency_mean_seconds, now: s === last ? s.latency_mean_seconds : null })),
      ...this.predicted.map((each) => ({ x: each.mean_bytes, predicted: each.mean_latency_seconds })),
    ].sort((a, b) => a.x - b.x);
    this.plane.show([points.map((p) => p.x), ...["before", "now", "predicted"].map((name) => points.map((p) => p[name] ?? null))]);
  }
}
