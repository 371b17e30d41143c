// The results of one query, live: a relation as it is now, a stream with its latest elements.
import { lines } from "./api.js";
import { Plot, colour } from "./plots.js";
import { cell, count, element } from "./words.js";

const LATEST = 100;
const SHOWN = 200;
const SERIES = 6;
const SECONDS = 120;

export class LiveResults {
  constructor(query, table, note, holder, titles) {
    Object.assign(this, { query, table, note, titles });
    this.isRelation = query.output === "relation";
    this.rows = new Map();
    this.latest = [];
    this.came = 0;
    this.missed = 0;
    this.isDirty = true;
    this.samples = { times: [], values: new Map() };
    this.columns = query.columns.map((column) => column.name);
    this.numeric = query.columns.map((column) => ["INT", "BIGINT", "DOUBLE"].includes(column.type));
    this.plot = new Plot(holder, { series: [{ label: "rows" }], value: count });
    this.head();
    this.start();
    this.drawer = setInterval(() => this.draw(), 250);
    this.sampler = setInterval(() => this.sample(), 1000);
  }

  start() {
    const from = this.isRelation ? "present" : "oldest";
    this.rows.clear();
    this.stop = lines("GET", `/api/queries/${encodeURIComponent(this.query.name)}/results?format=ndjson&from=${from}`, undefined,
      (line) => this.take(line), (error) => { if (error && error.status !== 404 && !this.isClosed) setTimeout(() => this.isClosed || this.start(), 2000); });
  }

  take(line) {
    if ("gap" in line) {
      this.missed += line.gap;
      if (this.isRelation) { this.stop(); this.start(); }
    } else if ("row" in line) {
      this.came += 1;
      if (this.isRelation) this.change(line);
      else {
        this.latest.push(line);
        if (this.latest.length > LATEST) this.latest.shift();
      }
      this.isDirty = true;
    }
  }

  change({ row, weight }) {
    const key = JSON.stringify(row);
    const held = this.rows.get(key) ?? { row, weight: 0 };
    held.weight += weight;
    if (held.weight === 0) this.rows.delete(key);
    else this.rows.set(key, held);
  }

  head() {
    const heads = this.columns.map((name, at) => element("th", { class: this.numeric[at] ? "number" : "" }, name));
    const first = this.isRelation ? [] : [element("th", {}, "time")];
    this.body = element("tbody");
    this.table.replaceChildren(element("thead", {}, element("tr", {}, ...first, ...heads)), this.body);
    this.titles.results.textContent = this.isRelation ? "Present content" : "Latest elements";
  }

  // What is shown, as lists of texts.
  content() {
    if (!this.isRelation) {
      return this.latest.slice().reverse().map(({ ts, row }) => [shortTime(ts), ...this.columns.map((name) => cell(row[name]))]);
    }
    const held = [...this.rows.values()].filter(({ weight }) => weight > 0);
    held.sort((a, b) => compare(this.columns, a.row, b.row));
    return held.slice(0, SHOWN).map(({ row, weight }) => {
      const texts = this.columns.map((name) => cell(row[name]));
      return weight > 1 ? [...texts.slice(0, -1), `${texts.at(-1)} ×${weight}`] : texts;
    });
  }

  draw() {
    if (!this.isDirty || document.hidden) return;
    this.isDirty = false;
    const rows = this.content();
    while (this.body.rows.length > rows.length) this.body.lastChild.remove();
    rows.forEach((texts, at) => this.fill(this.body.rows[at] ?? this.body.insertRow(), texts));
    const total = this.isRelation ? [...this.rows.values()].filter((held) => held.weight > 0).length : this.came;
    const gap = this.missed ? `; ${count(this.missed)} were gone before they were read` : "";
    this.note.textContent = total
      ? this.isRelation ? `${count(total)} row${total === 1 ? "" : "s"}${total > SHOWN ? `, the first ${SHOWN} shown` : ""}${gap}` : `${count(total)} seen here, the last ${Math.min(total, LATEST)} shown${gap}`
      : "Nothing yet: results show as tuples come.";
  }

  fill(line, texts) {
    const offset = this.isRelation ? 0 : 1;
    texts.forEach((text, at) => {
      const place = line.cells[at] ?? line.insertCell();
      if (place.textContent === text) return;
      const isNew = place.textContent === "" || !this.isRelation;
      place.textContent = text;
      place.title = text;
      place.className = this.numeric[at - offset] ? "number" : "";
      if (!isNew) { void place.offsetWidth; place.classList.add("changed"); }
    });
  }

  // One sample a second: the first number of each row, or how much there is.
  sample() {
    const values = this.measures();
    const { times } = this.samples;
    times.push(Date.now() / 1000);
    for (const name of values.keys()) {
      if (!this.samples.values.has(name) && this.samples.values.size < SERIES) this.samples.values.set(name, times.slice(1).map(() => null));
    }
    for (const [name, course] of this.samples.values) course.push(values.get(name) ?? null);
    if (times.length > SECONDS) {
      times.shift();
      for (const course of this.samples.values.values()) course.shift();
    }
    const names = [...this.samples.values.keys()];
    this.plot.change(names.map((label, at) => ({ label, stroke: colour(at) })));
    this.plot.show([times, ...this.samples.values.values()]);
    this.lastCame = this.came;
  }

  measures() {
    if (!this.isRelation) return new Map([["elements a second", this.came - (this.lastCame ?? this.came)]]);
    const number = this.numeric.indexOf(true);
    const held = [...this.rows.values()].filter(({ weight }) => weight > 0);
    const measure = this.columns[number];
    if (number < 0 || held.length > 50) return new Map([["rows", held.length]]);
    const labels = this.columns.filter((_, at) => !this.numeric[at]);
    this.titles.chart.textContent = `${measure} over time`;
    held.sort((a, b) => compare(this.columns, a.row, b.row));
    return new Map(held.slice(0, SERIES).map(({ row }) => [labels.map((name) => cell(row[name])).join(" ") || measure, row[measure]]));
  }

  close() {
    this.isClosed = true;
    this.stop();
    clearInterval(this.drawer);
    clearInterval(this.sampler);
    this.plot.close();
  }
}

function compare(columns, a, b) {
  for (const name of columns) {
    const [left, right] = [a[name], b[name]];
    if (left === right) continue;
    if (left === null) return 1;
    if (right === null) return -1;
    return left < right ? -1 : 1;
  }
  return 0;
}

function shortTime(ts) {
  if (ts === null) return "beginning";
  return typeof ts === "string" && ts.includes("T") ? ts.split("T")[1].slice(0, 12) : String(ts);
}

