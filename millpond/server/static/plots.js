// Charts with uPlot, in the colours of the page; they keep their size when the window changes.
import { bytes, clock, count, dated, element } from "./words.js";

// A colour means one thing on the whole page: red is trouble or a limit, green is well, amber is
// held back, orange is Spark. Lines have others: those of what is measured their own, rows of a
// result one each.
const ROWS = ["#2a8fb3", "#8a5bb5", "#8a6f45", "#c8528f", "#4c6ad0", "#4f8a8a"];
export const MEANING = {
  waiting: "#2a8fb3", windows: "#8a5bb5", budget: "#c8504a", in: "#4c6ad0", out: "#c8528f",
  mean: "#8a6f45", p50: "#8cc3d8", p95: "#3aa0c4", p99: "#1d6f8e", driver: "#4f8a8a", spark: "#e2762d",
  before: "#8cc3d8", now: "#1d6f8e", predicted: "#8a5bb5", FIFO: "#6b7680", Chain: "#2a8fb3",
};
const POWERS = Array.from({ length: 50 }, (_, at) => 2 ** at);
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
const plots = new Set();

export const colour = (index) => ROWS[index % ROWS.length];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Plot {
  // value writes what stands at an axis, said what is told of a point.
  constructor(holder, { series, value, said = value, scatter = false, x = null, xLabel = "", marks = () => [], named = () => [], labels = true }) {
    Object.assign(this, { holder, series, value, said, scatter, x, xLabel, marks, named, labels, bands: [] });
    this.data = [[], ...series.map(() => [])];
    plots.add(this);
    new ResizeObserver(() => this.fit()).observe(holder);
    this.build();
  }

  // The drawing has what the legend leaves of the holder, however many lines that takes.
  size() {
    const legend = this.labels ? this.plot?.root.querySelector(".u-legend")?.offsetHeight || 34 : 0;
    return { width: Math.max(200, this.holder.clientWidth), height: Math.max(80, this.holder.clientHeight - legend) };
  }

  build() {
    this.plot?.destroy();
    const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "11px system-ui, sans-serif" };
    const values = (_, ticks, __, ___, step) => ticks.map((tick) => (tick === null ? "" : this.value === count && step < 100 ? tick.toFixed(decimals(step)) : this.value(tick)));
    const steps = (value) => (value === null ? { incrs: TIMES } : value === bytes ? { incrs: POWERS } : {});
    const options = {
      ...this.size(), padding: [10, 28, 0, 0], cursor: { drag: { x: false, y: false } },
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
      legend: { show: this.labels, live: false },
      scales: { x: { time: this.x === null, ...(this.scatter ? { range: (_, low, high) => [0, (high || 1) * 1.1] } : {}) }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [{ ...axis, size: (_, said) => (said?.some((each) => each.includes("\n")) ? 48 : 34), values: (_, ticks) => (this.x ? ticks.map(this.x) : times(ticks)), space: 70, ...steps(this.x) }, { ...axis, size: 66, values, ...steps(this.value) }],
      series: [
        { label: this.x === null ? "time (UTC)" : this.xLabel },
        ...this.series.map((each, index) => ({
          label: each.label, stroke: each.stroke ?? colour(index), width: each.width ?? 1.8, dash: each.dash, fill: each.fill,
          points: each.points ?? { show: false }, paths: each.paths, spanGaps: true, class: each.isBound ? "bound" : undefined,
        })),
      ],
      bands: this.bands.map(([above, below, fill]) => ({ series: [above, below], fill })),
      hooks: { draw: [(plot) => this.drawMarks(plot), (plot) => this.drawNames(plot)], setCursor: [(plot) => this.point(plot)] },
    };
    this.plot = new uPlot(options, this.data, this.holder);
    this.tip = element("div", { class: "tip", hidden: true });
    this.plot.over.append(this.tip);
    this.fit();
    requestAnimationFrame(() => this.fit()); // once the legend has its lines
  }

  // The values where the pointer is, beside it.
  point(plot) {
    const { left, top, idx } = plot.cursor;
    const lines = left < 0 ? [] : this.scatter ? this.nearest(plot, left, top) : idx === null || idx === undefined ? [] : this.valuesAt(idx);
    this.tip.hidden = !lines.length;
    if (!lines.length) return;
    this.tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
    const isRight = left > plot.over.clientWidth / 2;
    Object.assign(this.tip.style, { left: isRight ? "" : `${left + 12}px`, right: isRight ? `${plot.over.clientWidth - left + 12}px` : "", top: "4px" });
  }

  valuesAt(idx) {
    const shown = this.series.map((each, at) => [each.label, this.data[at + 1]?.[idx]]).filter(([, value]) => value !== null && value !== undefined);
    const x = this.data[0][idx];
    return shown.length ? [this.x ? this.x(x) : `${dated(x)} UTC`, ...shown.map(([label, value]) => `${label}: ${this.said(value)}`)] : [];
  }

  // The point of a scatter plot that is next to the pointer, if one is near.
  nearest(plot, left, top) {
    let best = null;
    this.series.forEach((each, number) => this.data[0].forEach((x, at) => {
      const y = this.data[number + 1][at];
      if (y === null || y === undefined) return;
      const far = Math.hypot(plot.valToPos(x, "x") - left, plot.valToPos(y, "y") - top);
      if (far < 24 && (best === null || far < best.far)) best = { far, x, y, label: each.label };
    }));
    if (!best) return [];
    const name = this.named().find((each) => each.x === best.x && each.y === best.y)?.name ?? best.label;
    return [name, `${this.x(best.x)} wait`, `${this.value(best.y)} latency`];
  }

  drawMarks(plot) {
    const context = plot.ctx;
    for (const [number, mark] of this.marks().entries()) {
      const x = plot.valToPos(mark.time, "x", true);
      if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
      context.save();
      context.strokeStyle = css("--quiet");
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(x, plot.bbox.top);
      context.lineTo(x, plot.bbox.top + plot.bbox.height);
      context.stroke();
      context.fillStyle = css("--quiet");
      context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      const width = context.measureText(mark.what).width;
      const isLeft = x + width + 4 * devicePixelRatio > plot.bbox.left + plot.bbox.width;
      const begin = isLeft ? Math.max(plot.bbox.left, x - width - 4 * devicePixelRatio) : x + 4 * devicePixelRatio;
      context.textAlign = "left";
      context.fillText(mark.what, begin, plot.bbox.top + (12 + 13 * (number % 3)) * devicePixelRatio);
      context.restore();
    }
  }

  drawNames(plot) {
    const context = plot.ctx, far = 16 * devicePixelRatio, groups = [];
    for (const { x, y, name } of this.named()) {
      const at = { left: plot.valToPos(x, "x", true), top: plot.valToPos(y, "y", true), names: [name] };
      const near = groups.find((group) => Math.abs(group.top - at.top) < far && Math.abs(group.left - at.left) < 6 * far);
      if (near) Object.assign(near, { right: Math.max(near.right, at.left), names: [...near.names, name] });
      else groups.push({ ...at, right: at.left });
    }
    context.save();
    context.fillStyle = css("--quiet");
    context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const taken = [];
    for (const { left, right, top, names } of groups) {
      const text = names.length > 1 ? `${names[0]} + ${names.length - 1}` : names[0];
      const width = context.measureText(text).width, gap = 8 * devicePixelRatio, high = 12 * devicePixelRatio;
      const isLeft = right + gap + width > plot.bbox.left + plot.bbox.width;
      const x = Math.max(plot.bbox.left, isLeft ? left - gap - width : right + gap);
      const isFree = (y) => taken.every((other) => Math.abs(other.y - y) >= high || other.x + other.width < x || x + width < other.x);
      const y = [0, -high, high, -2 * high].map((off) => Math.max(plot.bbox.top, top + off)).find(isFree);
      if (y === undefined) continue;
      taken.push({ x, y, width });
      context.fillText(text, x, y);
    }
    context.restore();
  }

  show(data) {
    this.data = data;
    this.plot.setData(data);
  }

  fit() {
    if (!this.holder.clientWidth || !plots.has(this)) return;
    this.plot.setSize(this.size());
    if (this.size().height !== this.plot.height) this.plot.setSize(this.size());
  }

  // Other lines; bands are filled between two of them.
  change(series, bands = []) {
    const before = this.series.map((each) => each.label).join("\n");
    if (series.map((each) => each.label).join("\n") === before) return;
    Object.assign(this, { series, bands });
    this.data = [[], ...series.map(() => [])];
    this.build();
  }

  close() {
    this.plot.destroy();
    plots.delete(this);
  }
}

// How many digits after the point tell the ticks of an axis apart: of 0.25 two, of 1e-7 seven.
function decimals(step) {
  const [digits, power = "0"] = String(step).split("e");
  return Math.max(0, (digits.split(".")[1] ?? "").length - Number(power));
}

// The times at an axis; with the day, in a line of its own, where there is more than one.
function times(ticks) {
  const days = ticks.map((tick) => new Date(tick * 1000).toISOString().slice(5, 10));
  return ticks.map((tick, at) => (days[0] === days.at(-1) || days[at] === days[at - 1] ? clock(tick) : `${clock(tick)}\n${days[at]}`));
}

export function recolour() {
  for (const plot of plots) plot.build();
}
