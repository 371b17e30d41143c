// Charts with uPlot, in the colours of the page; they keep their size when the window changes.
const COLOURS = ["#2a8fb3", "#e2762d", "#3f9d63", "#a35bb5", "#c9a227", "#c8504a"];
const plots = new Set();

export const colour = (index) => COLOURS[index % COLOURS.length];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Plot {
  constructor(holder, { series, value, scatter = false, x = null, marks = () => [], named = () => [], labels = true }) {
    Object.assign(this, { holder, series, value, scatter, x, marks, named, labels });
    this.data = [[], ...series.map(() => [])];
    plots.add(this);
    new ResizeObserver(() => this.fit()).observe(holder);
    this.build();
  }

  size() {
    const legend = this.labels ? 34 : 0;
    return { width: Math.max(200, this.holder.clientWidth), height: Math.max(120, this.holder.clientHeight - legend) };
  }

  build() {
    this.plot?.destroy();
    const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "11px system-ui, sans-serif" };
    const values = (_, ticks) => ticks.map((tick) => (tick === null ? "" : this.value(tick)));
    const options = {
      ...this.size(), padding: [10, 12, 0, 0], cursor: { drag: { x: false, y: false } },
      legend: { show: this.labels, live: false },
      scales: { x: { time: this.x === null, ...(this.scatter ? { range: (_, low, high) => [0, (high || 1) * 1.1] } : {}) }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [{ ...axis, ...(this.x ? { values: (_, ticks) => ticks.map(this.x) } : {}), space: 70 }, { ...axis, size: 66, values }],
      series: [
        { label: this.x === null ? "time" : "x", value: (_, v) => (v === null || v === undefined ? "–" : this.x ? this.x(v) : new Date(v * 1000).toLocaleTimeString()) },
        ...this.series.map((each, index) => ({
          label: each.label, stroke: each.stroke ?? colour(index), width: each.width ?? 1.8, dash: each.dash, fill: each.fill,
          points: each.points ?? { show: false }, paths: each.paths, spanGaps: true, value: (_, v) => (v === null || v === undefined ? "–" : this.value(v)),
        })),
      ],
      hooks: { draw: [(plot) => this.drawMarks(plot), (plot) => this.drawNames(plot)] },
    };
    this.plot = new uPlot(options, this.data, this.holder);
  }

  drawMarks(plot) {
    const context = plot.ctx;
    for (const [number, mark] of this.marks().entries()) {
      const x = plot.valToPos(mark.time, "x", true);
      if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
      context.save();
      context.strokeStyle = css("--warn");
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(x, plot.bbox.top);
      context.lineTo(x, plot.bbox.top + plot.bbox.height);
      context.stroke();
      context.fillStyle = css("--warn");
      context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      const isLeft = x > plot.bbox.left + 0.75 * plot.bbox.width;
      context.textAlign = isLeft ? "right" : "left";
      context.fillText(mark.what, x + (isLeft ? -4 : 4) * devicePixelRatio, plot.bbox.top + (12 + 13 * (number % 3)) * devicePixelRatio);
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
      const x = isLeft ? left - gap - width : right + gap;
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
    if (this.holder.clientWidth) this.plot.setSize(this.size());
  }

  change(series) {
    const before = this.series.map((each) => each.label).join("\n");
    if (series.map((each) => each.label).join("\n") === before) return;
    this.series = series;
    this.data = [[], ...series.map(() => [])];
    this.build();
  }

  close() {
    this.plot.destroy();
    plots.delete(this);
  }
}

export function recolour() {
  for (const plot of plots) plot.build();
}
