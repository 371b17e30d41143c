// The results of one query, live: a relation as it is now, a stream with its latest elements.
// Only what is shown is fetched: a small relation is followed, of a large one a page is asked for
// again and again, and of a stream what is new of its last elements.
import { download, get, lines, query as asked } from "./api.js";
import { Plot, colour } from "./plots.js";
import { RowTable } from "./rows.js";
import { $, cell, count, isTimestamp, moment, ordered, pointed, text } from "./words.js";

const LATEST = 100;
const SHOWN = 200;
const SERIES = 6;
const SECONDS = 120;
const LOOK_MS = 1000;
const TYPED_MS = 250;
const BOUNDS = /_(certain_)?(low|high)$/;

export class LiveResults {
  constructor(query) {
    this.query = query;
    this.isRelation = query.output === "relation";
    this.path = `/api/queries/${encodeURIComponent(query.name)}`;
    this.total = query.results;
    this.samples = { times: [], values: new Map() };
    this.columns = query.columns.map((column) => column.name);
    this.numeric = query.columns.map((column) => ["INT", "BIGINT", "DOUBLE"].includes(column.type));
    this.chooseMeasure();
    this.plot = new Plot($("result-chart"), { series: [{ label: "rows" }], value: count, said: pointed });
    this.table = new RowTable($("result-table"), () => this.anew(false));
    this.table.head(query.columns, this.isRelation ? null : "time");
    this.offset = 0;
    text($("result-title"), this.isRelation ? "Present content" : "Latest elements");
    text($("result-chart-title"), this.measure ? `${this.measure} over time` : "Over time");
    this.tools();
    this.forget();
    this.look();
    this.drawer = setInterval(() => this.draw(), 250);
    this.sampler = setInterval(() => this.sample(), 1000);
  }

  // -- search, pages, files ---------------------------------------------------------------------

  tools() {
    const on = (id, kind, action) => { $(id).addEventListener(kind, action, { signal: this.gone.signal }); };
    this.gone = new AbortController();
    $("result-find").value = "";
    on("result-find", "input", () => { clearTimeout(this.typed); this.typed = setTimeout(() => this.anew(), TYPED_MS); });
    on("result-before", "click", () => this.turn(-SHOWN));
    on("result-after", "click", () => this.turn(SHOWN));
    for (const form of ["csv", "parquet", "arrow"]) on(`result-${form}`, "click", () => this.save(form));
  }

  turn(by) {
    this.offset = Math.max(0, this.offset + by);
    this.anew(false);
  }

  async save(form) {
    const wanted = { format: form, ...this.order(), find: this.find() };
    try {
      await download(`${this.path}/export?${asked(wanted)}`, `${this.query.name}.${form}`);
    } catch (error) { this.say(error.message); }
  }

  find() { return $("result-find").value.trim(); }

  order() { const { column = "", down = false } = this.table.sorted ?? {}; return { sort: column, descending: down }; }

  // -- what is fetched ----------------------------------------------------------------------------

  forget() {
    this.last = null;
    this.rows = new Map();
    this.latest = [];
    this.missed = 0;
    this.id = 0;
    this.isDirty = true;
  }

  // Something else is wanted, or the server was started anew and what it said is of another life.
  anew(begins = true) {
    if (begins) this.offset = 0;
    this.forget();
    this.unfollow();
    this.again(0);
  }

  again(after = LOOK_MS) {
    clearTimeout(this.waiting);
    if (!this.isClosed) this.waiting = setTimeout(() => this.look(), after);
  }

  // One look counts, the last one: what an earlier one is answered meanwhile is of no use.
  async look() {
    const began = performance.now(), look = this.last = {};
    try {
      if (document.hidden) { this.again(); return; }
      if (this.isRelation) await this.lookAtContent(look);
      else await this.lookAtLatest(look);
      if (look === this.last && !this.stop) this.again(Math.max(LOOK_MS, 5 * (performance.now() - began)));
    } catch (error) {
      if (look !== this.last) return;
      if (error.status === 409) this.say(error.message);
      this.again(2 * LOOK_MS); // of a query that is gone too: who has chosen it closes this
    }
  }

  async lookAtLatest(look) {
    const find = this.find();
    const { id, rows } = await get(`${this.path}/latest?${asked({ limit: LATEST, after: this.id, find })}`);
    if (look !== this.last || find !== this.find()) return;
    if (Number(id) === this.id) return;
    this.id = Number(id);
    this.latest = [...this.latest, ...rows].slice(-LATEST);
    this.isDirty = true;
  }

  async lookAtContent(look) {
    const find = this.find(), isOrdered = this.table.sorted !== null;
    const { id, total, found, rows } = await get(`${this.path}/present?${asked({ limit: SHOWN, offset: this.offset, find, ...this.order() })}`);
    if (look !== this.last || find !== this.find()) return;
    this.rows = new Map(rows.map((held) => [JSON.stringify(held.row), held]));
    this.contentRows = total;
    this.found = found;
    this.isInOrder = isOrdered;
    this.isDirty = true;
    if (!find && total <= SHOWN) this.follow(id);
  }

  follow(id) {
    const ended = (error) => {
      this.stop = null;
      this.again(error ? 2 * LOOK_MS : LOOK_MS);
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
      this.contentRows = this.found = this.rows.size;
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

  // -- what is shown --------------------------------------------------------------------------------

  held() {
    const held = [...this.rows.values()].filter(({ weight }) => weight > 0);
    return held.sort((a, b) => compare(this.columns, this.numeric, this.table.sorted, a.row, b.row));
  }

  content() {
    if (this.isRelation) return this.held().slice(0, SHOWN);
    const rows = this.latest.slice().reverse().map(({ ts, row }) => ({ time: [moment(ts), String(ts ?? "the beginning")], row }));
    if (this.table.sorted) rows.sort((a, b) => compare(this.columns, this.numeric, this.table.sorted, a.row, b.row));
    return rows;
  }

  say(words) { text($("result-note"), words); }

  draw() {
    if (!this.isDirty || document.hidden) return;
    this.isDirty = false;
    this.table.show(this.content(), this.isRelation);
    if (!this.isRelation) text(this.table.timeHead, isTimestamp(this.latest.at(-1)?.ts ?? this.query.complete_until) ? "time (UTC)" : "time");
    const isPaged = this.isRelation && (this.found ?? 0) > SHOWN;
    $("result-pager").hidden = !isPaged;
    $("result-before").disabled = this.offset === 0;
    $("result-after").disabled = this.offset + SHOWN >= (this.found ?? 0);
    this.say(this.words());
  }

  words() {
    const gap = this.missed ? `; ${count(this.missed)} changes were let go before they were read, so it was asked for anew` : "";
    const total = this.isRelation ? this.contentRows ?? 0 : this.total;
    if (!total) return this.state === "failed" ? "Nothing: it failed, and goes on when it is restarted." : "Nothing yet: results show as tuples come.";
    if (!this.isRelation) return this.find() ? `${this.latest.length} of the last results have “${this.find()}” in them` : `${count(total)} put out, the last ${Math.min(this.latest.length, LATEST)} shown`;
    const some = this.find() ? `${count(this.found)} of ${count(total)} rows` : `${count(total)} row${total === 1 ? "" : "s"}`;
    const part = this.found <= SHOWN ? "" : this.offset ? `, ${this.offset + 1} to ${Math.min(this.found, this.offset + SHOWN)} shown` : `, the first ${SHOWN} shown`;
    return `${some}${part}${gap}`;
  }

  // How many results there are by now, as the server counts them.
  counted({ results, state }) {
    if (results !== this.total || state !== this.state) this.isDirty = true;
    this.total = results;
    this.state = state;
  }

  // -- over time ------------------------------------------------------------------------------------

  // What is drawn: the first number that has bounds, or the first one; keys, or texts, tell rows apart.
  chooseMeasure() {
    const { columns } = this.query, isBounded = (name) => this.columns.includes(`${name}_low`) && this.columns.includes(`${name}_high`);
    const numbers = columns.filter((column, at) => this.numeric[at] && !column.key && !BOUNDS.test(column.name)).map(({ name }) => name);
    this.measure = this.isRelation ? numbers.find(isBounded) ?? numbers[0] ?? null : null;
    this.hasBounds = this.measure !== null && isBounded(this.measure);
    const keys = columns.filter((column) => column.key);
    this.labels = (keys.length ? keys : columns.filter((_, at) => !this.numeric[at])).map(({ name }) => name);
  }

  // One sample a second: a number of each row with its bounds, or how much there is.
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
    this.show();
    this.lastTotal = this.total;
  }

  show() {
    const courses = [...this.samples.values], series = [], data = [], bands = [];
    const side = (course, at) => course.map((each) => each?.[at] ?? null);
    courses.forEach(([label, course], at) => {
      series.push({ label, stroke: colour(at) });
      data.push(side(course, 0));
      if (!this.hasBounds) return;
      bands.push([series.length + 2, series.length + 1, `${colour(at)}33`]); // the first series is the time
      series.push(...["low", "high"].map((which) => ({ label: `${label} ${which}`, stroke: `${colour(at)}88`, width: 0.8, isBound: true })));
      data.push(side(course, 1), side(course, 2));
    });
    this.plot.change(series, bands);
    this.plot.show([this.samples.times, ...data]);
  }

  measures() {
    if (!this.isRelation) return new Map([["elements a second", [Math.max(0, this.total - (this.lastTotal ?? this.total))]]]);
    if (this.measure === null || (this.contentRows ?? 0) > 50) return new Map([["rows", [this.contentRows ?? 0]]]);
    const number = (value) => (value === null || value === undefined ? null : Number(value));
    const sides = this.hasBounds ? ["", "_low", "_high"] : [""];
    return new Map(this.held().slice(0, SERIES).map(({ row }) => [this.labels.map((name) => cell(row[name])).join(" ") || this.measure, sides.map((end) => number(row[this.measure + end]))]));
  }

  close() {
    this.isClosed = true;
    this.last = null;
    this.gone.abort();
    clearTimeout(this.waiting);
    this.unfollow();
    clearInterval(this.drawer);
    clearInterval(this.sampler);
    this.plot.close();
  }
}

// Rows in order of a column that was chosen, or of the first, the second and so on.
function compare(columns, numeric, sorted, a, b) {
  const places = sorted ? [columns.indexOf(sorted.column), ...columns.keys()] : columns.keys();
  const way = sorted?.down ? -1 : 1;
  for (const at of places) {
    const [left, right] = [a[columns[at]], b[columns[at]]].map((value) => (numeric[at] ? ordered(value) : value));
    if (left === right) continue;
    if (left === null) return 1;
    if (right === null) return -1;
    if (!(left == right)) return (left < right ? -1 : 1) * (sorted && columns[at] === sorted.column ? way : 1);
  }
  return 0;
}
