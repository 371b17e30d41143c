// A stream or relation: its columns, how it goes, its last rows or its content, who reads it.
import { call, get, query } from "./api.js";
import { controlTable } from "./control.js";
import { PagedList, chooser, fillChooser } from "./lists.js";
import { RowTable } from "./rows.js";
import { $, bytes, count, element, isTimestamp, moment, text, whole } from "./words.js";

const SHOWN = 100;

export class InputView {
  // open(name) shows a query that reads it.
  constructor(open) {
    this.chosen = null;
    this.readers = new PagedList($("input-readers"), {
      path: "", name: "its readers", key: (reader) => `${reader.kind} ${reader.name}`, size: 20, empty: "Nobody reads it.",
      make: () => chooser((key) => { if (key.startsWith("query ")) open(key.slice(6)); }),
      fill: (button, reader) => { fillChooser(button, { dot: reader.kind === "query" ? "good" : "", name: reader.name, number: "", sub: reader.kind, title: reader.name }); button.disabled = reader.kind !== "query"; },
    });
    this.table = new RowTable($("input-rows"), () => this.rows());
    $("input-find").addEventListener("input", () => { clearTimeout(this.typed); this.typed = setTimeout(() => this.rows(), 200); });
  }

  async show(input) {
    this.chosen = input;
    $("input-find").value = "";
    this.table.sorted = null;
    $("input-card").hidden = !input;
    if (!input) return;
    text($("input-name"), input.name);
    text($("input-kind"), input.kind);
    const role = { time: "its time", key: "in its key" };
    $("input-columns").replaceChildren(
      element("thead", {}, element("tr", {}, ...["column", "type", ""].map((name) => element("th", {}, name)))),
      element("tbody", {}, ...input.columns.map((column) => element("tr", {}, element("td", {}, column.name), element("td", {}, column.type), element("td", {}, role[column.role] ?? "")))));
    this.table.head(input.columns, input.kind === "stream" ? "time" : null, input.kind === "relation");
    $("input-find-label").hidden = input.kind !== "relation";
    text($("input-rows-title"), input.kind === "stream" ? "Last tuples" : "Content");
    await Promise.all([this.refresh(), this.readers.of(`/api/inputs/${encodeURIComponent(input.name)}/readers`)]);
  }

  async refresh() {
    const input = this.chosen;
    if (!input) return;
    const values = await controlTable($("input-control"), input.kind, input.name, "input-knob");
    if (this.chosen !== input) return;
    this.figures(values);
    if (input.kind === "stream" || values.changes !== this.changes) await this.rows();
    this.changes = values.changes;
  }

  figures(values) {
    const shown = [["rows a second", count(values.rate)], ["heartbeat", whole(values.promised)], ["waits in its queue", bytes(values.backlog_bytes)]];
    if (this.chosen.kind === "stream") shown.push(["tuples so far", count(values.arrived)], ["too late", count(values.late)], ["may be late by", values.delay], ["idle after", values.idle_after]);
    else shown.push(["changes so far", count(values.changes)]);
    if (values.violating) shown.push(["broke a constraint", count(values.violating)]);
    if (values.bad_rows) shown.push(["could not be read", count(values.bad_rows)]);
    $("input-figures").replaceChildren(...shown.map(([label, value]) => element("div", {}, element("b", {}, value), element("span", {}, label))));
  }

  async rows() {
    const asked = this.asked = {}, input = this.chosen, path = `/api/${input.kind}s/${encodeURIComponent(input.name)}`;
    if (input.kind === "stream") {
      const { rows } = await get(`${path}/last?limit=50`);
      if (asked !== this.asked || this.chosen !== input) return;
      text(this.table.timeHead, isTimestamp(rows[0]?.ts) ? "time (UTC)" : "time");
      this.table.show(rows.map(({ ts, row }) => ({ time: [moment(ts), String(ts ?? "the beginning")], row })));
      text($("input-note"), rows.length ? `The last ${rows.length} that came, the last one first.` : "None has come yet.");
      return;
    }
    const { column = "", down = false } = this.table.sorted ?? {};
    const { total, found, rows } = await get(`${path}/content?${query({ limit: SHOWN, find: $("input-find").value.trim(), sort: column, descending: down })}`);
    if (asked !== this.asked || this.chosen !== input) return;
    this.table.show(rows);
    const some = found < total ? `${count(found)} of ${count(total)} rows` : `${count(total)} row${total === 1 ? "" : "s"}`;
    text($("input-note"), total ? `${some}${found > SHOWN ? `, the first ${SHOWN} shown` : ""}` : "It is empty.");
  }

  async drop() {
    const { kind, name } = this.chosen;
    await call("DELETE", `/api/${kind}s/${encodeURIComponent(name)}`);
    await this.show(null);
  }
}
