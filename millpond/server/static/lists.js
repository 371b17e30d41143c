// Lists that are fetched a page at a time, with search and order; elements are kept, so that nothing jumps.
import { pageOf } from "./api.js";
import { element, text } from "./words.js";

const SIZE = 50;
const FEW = 8;
const TYPED_MS = 200;

export class PagedList {
  // holder gets the list and its tools; make and fill draw an item, key tells it from others.
  constructor(holder, { path, parameters = () => ({}), key, make, fill, name, sorts = [], empty = "There is none.", size = SIZE }) {
    Object.assign(this, { path, parameters, key, make, fill, empty, size, items: [], total: 0, offset: 0 });
    this.find = element("input", { type: "search", placeholder: `Find in ${name}`, "aria-label": `Find in ${name}` });
    this.sort = element("select", { "aria-label": `Order of ${name}` }, ...sorts.map(([value, label]) => element("option", { value }, label)));
    this.list = element("ul", { "aria-label": name });
    this.before = element("button", { "aria-label": `Page before, of ${name}` }, "‹");
    this.after = element("button", { "aria-label": `Next page, of ${name}` }, "›");
    this.where = element("span", { role: "status" });
    this.tools = element("div", { class: "list-tools" }, this.find, sorts.length ? this.sort : null);
    this.pager = element("div", { class: "pager" }, this.before, this.where, this.after);
    this.note = element("p", { class: "note" });
    holder.replaceChildren(this.tools, this.list, this.note, this.pager);
    this.find.addEventListener("input", () => { clearTimeout(this.typed); this.typed = setTimeout(() => this.turn(0), TYPED_MS); });
    this.sort.addEventListener("change", () => this.turn(0));
    this.before.addEventListener("click", () => this.turn(this.offset - this.size));
    this.after.addEventListener("click", () => this.turn(this.offset + this.size));
  }

  turn(offset) {
    this.offset = Math.max(0, offset);
    this.list.scrollTop = 0;
    return this.refresh();
  }

  // Shows another list from its beginning.
  of(path) {
    this.path = path;
    this.find.value = "";
    return this.turn(0);
  }

  async refresh() {
    const asked = this.asked = {};
    const [sort, way] = this.sort.value.split(" ");
    const wanted = { ...this.parameters(), limit: this.size, offset: this.offset, find: this.find.value.trim(), sort, descending: way === "down" };
    const { items, total } = await pageOf(this.path, wanted);
    if (asked !== this.asked) return;
    if (!items.length && total && this.offset) { await this.turn(Math.floor((total - 1) / this.size) * this.size); return; }
    Object.assign(this, { items, total });
    this.draw();
  }

  draw() {
    const isSearched = this.find.value !== "" || document.activeElement === this.find;
    this.tools.hidden = this.total < FEW && !isSearched;
    this.pager.hidden = this.total <= this.size;
    this.before.disabled = this.offset === 0;
    this.after.disabled = this.offset + this.size >= this.total;
    text(this.where, `${this.offset + 1}–${this.offset + this.items.length} of ${this.total.toLocaleString("en")}`);
    this.note.hidden = this.items.length > 0;
    text(this.note, isSearched && this.find.value ? `Nothing has “${this.find.value}” in it.` : this.empty);
    sync(this.list, this.items, this.key, this.make, this.fill);
  }
}

// Keeps the elements of a list, so that nothing jumps and the focus stays.
export function sync(list, items, key, make, fill) {
  const have = new Map([...list.children].map((li) => [li.firstChild.dataset.key, li]));
  items.forEach((item, at) => {
    let li = have.get(key(item));
    if (!li) {
      const inner = make(item);
      inner.dataset.key = key(item);
      li = element("li", {}, inner);
    }
    have.delete(key(item));
    fill(li.firstChild, item);
    if (list.children[at] !== li) list.insertBefore(li, list.children[at] ?? null);
  });
  for (const li of have.values()) li.remove();
}

// An item of a list that can be chosen: a dot, a name, a number and a line below.
export function chooser(chosen) {
  const button = element("button", { class: "item" }, element("span", { class: "dot" }), element("span", { class: "name" }), element("span", { class: "count" }), element("span", { class: "sub" }));
  button.addEventListener("click", () => chosen(button.dataset.key));
  return button;
}

export function fillChooser(button, { dot, name, number, sub, title, isChosen }) {
  const [mark, label, count, below] = button.children;
  mark.className = `dot ${dot}`;
  text(label, name);
  text(count, number);
  text(below, sub);
  button.title = title;
  button.setAttribute("aria-current", Boolean(isChosen));
}
