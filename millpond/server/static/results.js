// The results of one query, live: a relation as it is now, a stream with its latest elements.
// Only what is shown is fetched: a small relation is followed, of a large one the first rows are
// asked for again and again, and of a stream what is new of its last elements.
import { get, lines } from "./api.js";
import { Plot, colour } from "./plots.js";
import { cell, count, element, exact, isTimestamp, moment, ordered } from "./words.js";

const LATEST = 100;
const SHOWN = 200;
const SERIES = 6;
const SECONDS = 120;
const LOOK_MS = 1000;

export class LiveResults {
  constructor(query, table, note, holder, titles) {
    Object.assign(this, { query, table, note, titles });
    this.isRelation = query.output === "relation";
    this.path = `/api/queries/${encodeURIComponent(query.name)}`;
    this.total = query.results;
    this.samples = { times: [], values: new Map() };
    this.columns = query.columns.map((column) => column.name);
    this.numeric = query.columns.map((column) => ["INT", "BIGINT", "DOUBLE"].includes(column.type));
    this.plot = new Plot(holder, { series: [{ label: "rows" }], value: count });
    this.forget();
    this.head();
    this.look();
    this.drawer = setInterval(() => this.draw(), 250);
    this.sampler = setInterval(() => this.sample(), 1000);
  }

  forget() {
    this.rows = new Map();
    this.latest = [];
    this.missed = 0;
    this.id = 0;
    this.isDirty = true;
  }

  // The server was started anew: what it said before is of another life.
  anew() {
    this.forget();
    this.unfollow();
    this.again(0);
  }

  again(after = LOOK_MS) {
    clearTimeout(this.waiting);
    if (!this.isClosed) this.waiting = setTimeout(() => this.look(), after);
  }

  async look() {
    const began = performance.now();
    try {
      if (document.hidden) { this.again(); return; }
      if (this.isRelation) await this.lookAtContent();
      else await this.lookAtLatest();
      if (!this.stop) this.again(Math.max(LOOK_MS, 5 * (performance.now() - began)));
    } catch (error) {
      if (error.status === 409) this.say(error.message);
      if (error.status !== 404) this.again(2 * LOOK_MS);
    }
  }

  async lookAtLatest() {
    const { id, rows } = await get(`${this.path}/latest?limit=${LATEST}&after=${this.id}`);
    if (this.isClosed) return;
    if (Number(id) === this.id) return;
    this.id = Number(id);
    this.latest = [...this.latest, ...rows].slice(-LATEST);
    this.isDirty = true;
  }

  async lookAtContent() {
    const { id, total, rows } = await get(`${this.path}/present?limit=${SHOWN}`);
    if (this.isClosed) return;
    this.rows = new Map(rows.map((held) => [JSON.stringify(held.row), held]));
    this.contentRows = total;
    this.isDirty = true;
    if (total <= SHOWN) this.follow(id);
  }

  follow(id) {
    const ended = (error) => {
      this.stop = null;
      if (error?.status !== 404) this.again(error ? 2 * LOOK_MS : LOOK_MS);
    };
    this.stop = lines("GET", `${this.path}/results?format=ndjson&from=id:${id}`, undefined, (line) => this.take(line), ended);
  }

  unfollow() {
    this.stop?.();
    this.stop = null;
  }

  take(line) {
    if ("gap" in line) {
      this.missed += line.gap;
      this.unfollow();
      this.again(0);
    } else if ("row" in line) {
      this.change(line);
      this.contentRows = this.rows.size;
      this.isDirty = true;
      if (this.rows.size > 2 * SHOWN) { this.unfollow(); this.again(0); }
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
    this.timeHead = element("th");
    const first = this.isRelation ? [] : [this.timeHead];
    this.body = element("tbody");
    this.table.replaceChildren(element("thead", {}, element("tr", {}, ...first, ...heads)), this.body);
    this.titles.results.textContent = this.isRelation ? "Present content" : "Latest elements";
  }

  held() {
    const held = [...this.rows.values()].filter(({ weight }) => weight > 0);
    return held.sort((a, b) => compare(this.columns, this.numeric, a.row, b.row));
  }

  // What is shown: for each row the texts, and the exact values for whoever points at them.
  content() {
    if (!this.isRelation) {
      return this.latest.slice().reverse().map(({ ts, row }) => [[moment(ts), String(ts ?? "the beginning")], ...this.columns.map((name) => [cell(row[name]), exact(row[name])])]);
    }
    return this.held().slice(0, SHOWN).map(({ row, weight }) => {
      const pairs = this.columns.map((name) => [cell(row[name]), exact(row[name])]);
      const [last, whole] = pairs.at(-1);
      return weight > 1 ? [...pairs.slice(0, -1), [`${last} ×${weight}`, `${whole}, ${weight} times`]] : pairs;
    });
  }

  say(words) { if (this.note.textContent !== words) this.note.textContent = words; }

  draw() {
    if (!this.isDirty || document.hidden) return;
    this.isDirty = false;
    const rows = this.content();
    while (this.body.rows.length > rows.length) this.body.lastChild.remove();
    rows.forEach((pairs, at) => this.fill(this.body.rows[at] ?? this.body.insertRow(), pairs));
    this.timeHead.textContent = isTimestamp(this.latest.at(-1)?.ts ?? this.query.complete_until) ? "time (UTC)" : "time";
    this.say(this.words());
  }

  words() {
    const gap = this.missed ? `; ${count(this.missed)} changes were let go before they were read, so it was asked for anew` : "";
    const total = this.isRelation ? this.contentRows ?? 0 : this.total;
    if (!total) return "Nothing yet: results show as tuples come.";
    if (this.isRelation) return `${count(total)} row${total === 1 ? "" : "s"}${total > SHOWN ? `, the first ${SHOWN} shown` : ""}${gap}`;
    return `${count(total)} put out, the last ${Math.min(this.latest.length, LATEST)} shown`;
  }

  fill(line, pairs) {
    const offset = this.isRelation ? 0 : 1;
    pairs.forEach(([text, whole], at) => {
      const place = line.cells[at] ?? line.insertCell();
      if (place.title !== whole) place.title = whole;
      if (place.textContent === text) return;
      const isNew = place.textContent === "" || !this.isRelation;
      place.textContent = text;
      place.className = this.numeric[at - offset] ? "number" : "";
      if (!isNew) { void place.offsetWidth; place.classList.add("changed"); }
    });
  }

  // How many results there are by now, as the server counts them.
  counted(total) {
    if (total !== this.total) this.isDirty = true;
    this.total = total;
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
    this.lastTotal = this.total;
  }

  measures() {
    if (!this.isRelation) return new Map([["elements a second", Math.max(0, this.total - (this.lastTotal ?? this.total))]]);
    const number = this.numeric.indexOf(true);
    const measure = this.columns[number];
    if (number < 0 || (this.contentRows ?? 0) > 50) return new Map([["rows", this.contentRows ?? 0]]);
    const labels = this.columns.filter((_, at) => !this.numeric[at]);
    this.titles.chart.textContent = `${measure} over time`;
    return new Map(this.held().slice(0, SERIES).map(({ row }) => [labels.map((name) => cell(row[name])).join(" ") || measure, row[measure] === null ? null : Number(row[measure])]));
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.waiting);
    this.unfollow();
    clearInterval(this.drawer);
    clearInterval(this.sampler);
    this.plot.close();
  }
}

function compare(columns, numeric, a, b) {
  for (const [at, name] of columns.entries()) {
    const [left, right] = [a[name], b[name]].map((value) => (numeric[at] ? ordered(value) : value));
    if (left === right) continue;
    if (left === null) return 1;
    if (right === null) return -1;
    if (left !== right && !(left == right)) return left < right ? -1 : 1;
  }
  return 0;
}
