// A table of rows that is filled again and again: what has changed flashes, and heads of columns sort.
import { cell, element, exact } from "./words.js";

export class RowTable {
  // sort() is called when another order is wanted.
  constructor(table, sort) {
    Object.assign(this, { table, sort, columns: [], numeric: [], sorted: null });
    this.body = element("tbody");
  }

  // time: the name of a first column for times, if there is one.
  head(columns, time = null, isSortable = true) {
    this.columns = columns.map((column) => column.name);
    this.numeric = columns.map((column) => ["INT", "BIGINT", "DOUBLE"].includes(column.type));
    this.hasTime = time !== null;
    this.timeHead = element("th", {}, time ?? "");
    this.heads = this.columns.map((name, at) => element("th", { class: this.numeric[at] ? "number" : "", scope: "col" }, isSortable ? element("button", { class: "sort", title: `order by ${name}`, onclick: () => this.turn(name) }, name) : name));
    this.body = element("tbody");
    this.table.replaceChildren(element("thead", {}, element("tr", {}, ...(this.hasTime ? [this.timeHead] : []), ...this.heads)), this.body);
    this.mark();
  }

  // The first click orders by a column, the second the other way round, the third as before.
  turn(column) {
    if (this.sorted?.column !== column) this.sorted = { column, down: false };
    else this.sorted = this.sorted.down ? null : { column, down: true };
    this.mark();
    this.sort();
  }

  mark() {
    this.heads.forEach((head, at) => {
      const isIt = this.sorted?.column === this.columns[at];
      head.setAttribute("aria-sort", isIt ? (this.sorted.down ? "descending" : "ascending") : "none");
    });
  }

  // Shows rows as { row, weight, time: [text, exact] }; a time that stands beside a row is its first cell.
  show(rows, flashes = false) {
    while (this.body.rows.length > rows.length) this.body.lastChild.remove();
    rows.forEach((each, at) => this.fill(this.body.rows[at] ?? this.body.insertRow(), this.cells(each), flashes));
  }

  cells({ row, weight = 1, time }) {
    const pairs = this.columns.map((name) => [cell(row[name]), exact(row[name])]);
    if (weight > 1 && pairs.length) {
      const [last, whole] = pairs.pop();
      pairs.push([`${last} ×${weight}`, `${whole}, ${weight} times`]);
    }
    return this.hasTime ? [time, ...pairs] : pairs;
  }

  fill(line, pairs, flashes) {
    const offset = this.hasTime ? 1 : 0;
    pairs.forEach(([text, whole], at) => {
      const place = line.cells[at] ?? line.insertCell();
      if (place.title !== whole) place.title = whole;
      if (place.textContent === text) return;
      const isNew = place.textContent === "" || !flashes;
      place.textContent = text;
      place.className = this.numeric[at - offset] ? "number" : "";
      if (!isNew) { void place.offsetWidth; place.classList.add("changed"); }
    });
  }
}
