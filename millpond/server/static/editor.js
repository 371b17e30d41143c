// Writing a query: colours, completion, marks where it is wrong, explanation, preview, registration.
import { call, lines } from "./api.js";
import { $, cell, element, exact } from "./words.js";

const CHECK_AFTER = 350;
const MOST_ROWS = 50;

export class Editor {
  constructor(registered) {
    this.registered = registered;
    this.marks = [];
    this.edited = null;
    this.declared = {};
    this.words = { keywords: [], functions: [], connectors: [], strategies: [], settings: [], names: {} };
    this.area = CodeMirror.fromTextArea($("editor"), {
      lineNumbers: true, lineWrapping: true, placeholder: $("editor").placeholder,
      extraKeys: { "Ctrl-Space": () => this.complete(), "Ctrl-Enter": () => this.submit(), Tab: false, "Shift-Tab": false },
    });
    this.area.getInputField().setAttribute("aria-label", "Query in CQL");
    this.area.on("change", () => { clearTimeout(this.waiting); this.waiting = setTimeout(() => this.check(), CHECK_AFTER); });
    $("register").addEventListener("click", () => this.submit());
    $("preview").addEventListener("click", () => this.preview());
    $("ask").addEventListener("click", () => this.ask());
    $("explain").addEventListener("click", () => this.explain());
    $("close-editor").addEventListener("click", () => this.close());
  }

  // The words there are; those of what was declared a moment ago are among them.
  set vocabulary(vocabulary) {
    if (vocabulary === this.words) return;
    this.words = vocabulary;
    const keywords = Object.fromEntries(vocabulary.keywords.map((word) => [word.toLowerCase(), true]));
    this.area.setOption("mode", { name: "sql", keywords, builtin: {}, atoms: {}, operatorChars: /^[*+\-%<>!=&|]/, dateSQL: {}, support: {} });
  }

  open(text = "") {
    if (this.edited !== null) { this.area.setValue(""); $("new-name").value = ""; }
    this.show(null);
    if (text) this.area.setValue(text);
    this.begin();
  }

  // The text of a query that is there, to be altered or replaced.
  edit(query) {
    this.show(query.name);
    this.area.setValue(query.text);
    $("new-name").value = query.name;
    this.begin();
  }

  show(edited) {
    this.edited = edited;
    $("editor-title").textContent = edited === null ? "New query" : `Edit query ${edited}`;
    $("new-name").disabled = edited !== null;
    $("register").textContent = edited === null ? "Register" : "Show the difference";
    $("editor-output").hidden = true;
  }

  begin() {
    $("editor-card").hidden = false;
    $("empty-card").hidden = true;
    this.area.refresh();
    this.area.focus();
    $("editor-card").scrollIntoView({ block: "nearest" });
  }

  close() {
    this.stopPreview();
    if (this.edited !== null) { this.area.setValue(""); $("new-name").value = ""; this.show(null); }
    $("editor-card").hidden = true;
    $("editor-output").hidden = true;
    this.registered(null);
  }

  text() { return this.area.getValue().trim().replace(/;\s*$/, ""); }

  say(text, isWrong = false) {
    $("check").textContent = text;
    $("check").classList.toggle("error", isWrong);
  }

  mark(line, column, message, how = "wrong") {
    this.unmark();
    const at = Math.max(0, (line ?? 1) - 1);
    const from = Math.max(0, (column ?? 1) - 1);
    const word = /^\w+|^./.exec(this.area.getLine(at)?.slice(from) ?? "")?.[0] ?? " ";
    this.marks.push(this.area.markText({ line: at, ch: from }, { line: at, ch: from + word.length }, { className: how, attributes: { title: message } }));
    this.wrongLine = this.area.addLineClass(at, "background", `${how}-line`);
    this.say(`line ${at + 1}, column ${from + 1}: ${message}`, how === "wrong");
  }

  unmark() {
    this.marks.splice(0).forEach((mark) => mark.clear());
    for (const how of ["wrong", "doubtful"]) if (this.wrongLine) this.area.removeLineClass(this.wrongLine, "background", `${how}-line`);
    this.wrongLine = null;
  }

  async check() {
    const text = this.area.getValue();
    if (!text.trim()) { this.unmark(); this.say("Ctrl-Space completes, Ctrl-Enter registers."); return false; }
    const mine = this.checks = (this.checks ?? 0) + 1; // an answer that comes behind a later one says nothing
    try {
      const { ok, problems, warnings, statements } = await call("POST", "/api/check", { text });
      if (text !== this.area.getValue() || mine !== this.checks) return false;
      this.declared = Object.fromEntries(statements.filter((each) => each.name && each.columns.length).map((each) => [each.name, each.columns]));
      if (this.edited === null) $("register").textContent = statements.length && !statements.some((each) => each.does === "create") ? "Run" : "Register";
      if (!ok) { this.mark(problems[0].line, problems[0].column, problems[0].message); return false; }
      this.unmark();
      const one = statements.length === 1 ? "one statement" : `${statements.length} statements`;
      this.say(`No errors: ${one}.`);
      if (warnings.length) this.mark(warnings[0].line, warnings[0].column, `warning: ${warnings[0].message}`, "doubtful");
      return statements;
    } catch (error) { if (mine === this.checks) this.say(error.message, true); return false; }
  }

  complete() {
    this.area.showHint({ completeSingle: false, hint: (area) => this.hints(area) });
  }

  hints(area) {
    const cursor = area.getCursor();
    const before = area.getLine(cursor.line).slice(0, cursor.ch);
    const word = /[\w]*$/.exec(before)[0];
    const { keywords, functions, connectors, strategies, settings } = this.words;
    const names = { ...this.words.names, ...this.declared };
    const isUpper = word === word.toUpperCase();
    const all = [...Object.keys(names), ...new Set(Object.values(names).flat()), ...keywords.map((k) => (isUpper ? k : k.toLowerCase())), ...functions, ...connectors, ...strategies, ...settings];
    const list = [...new Set(all)].filter((each) => each.toLowerCase().startsWith(word.toLowerCase())).slice(0, 60);
    return { list, from: { line: cursor.line, ch: cursor.ch - word.length }, to: cursor };
  }

  output(...children) {
    $("editor-output").hidden = false;
    $("editor-output").replaceChildren(...children);
  }

  wrong(error) {
    if (error.line) this.mark(error.line, error.column, error.message);
    else this.say(error.message, true);
  }

  async explain() {
    try {
      const { plans } = await call("POST", "/api/explain", { text: this.area.getValue() });
      const shown = plans.flatMap(({ query, plan }) => [element("h3", {}, query), element("pre", { class: "code" }, plan)]);
      this.output(...(shown.length ? shown : [element("p", {}, "There is no query in it.")]));
    } catch (error) { this.wrong(error); }
  }

  async ask() {
    try {
      const { at, columns, rows } = await call("POST", "/api/ask", { text: this.text() });
      this.output(element("h3", {}, `As of ${at ?? "the beginning"}`), tableOf(columns.map(({ name }) => name), rows));
    } catch (error) { this.wrong(error); }
  }

  preview() {
    this.stopPreview();
    const table = element("table", { id: "preview-table" });
    const note = element("p", { class: "note" }, "Waiting for tuples …");
    const title = element("h3", {}, "Preview, for ten seconds");
    this.output(title, table, note);
    let shown = null;
    this.stopPreview = lines("POST", "/api/preview", { text: this.text(), seconds: 10 }, (line) => {
      if (line.columns) {
        shown = line.stream ? new LatestPreview(table, line.columns) : new ContentPreview(table, line.columns);
        title.textContent = `Preview, for ten seconds: ${line.stream ? "latest elements" : "present content"}`;
      } else if (line.row) {
        shown.take(line);
        note.textContent = `${shown.words()} so far`;
      } else if (line.error) note.textContent = line.error;
      else if (line.bound) note.textContent = `More ${line.bound} than a preview may have; it is over`;
    }, (error) => {
      if (error) this.wrong(error);
      else if (note.textContent.endsWith("so far")) note.textContent = `${shown.words()}; the preview is over`;
      else if (note.textContent.startsWith("Waiting")) note.textContent = "No result in ten seconds; the preview is over";
    });
  }

  stopPreview() {}

  submit() { return this.edited === null ? this.register() : this.compare(); }

  // What editing comes to, before anything is changed.
  async compare(replace = false, reason = "") {
    const path = `/api/queries/${encodeURIComponent(this.edited)}`, body = { text: this.text(), replace };
    try {
      const { how, meaning, statements, difference } = await call("POST", `${path}/difference`, body);
      const kind = { "-": "gone", "+": "new" };
      const shown = difference.map((line) => element("span", { class: kind[line[0]] ?? "" }, `${line}\n`));
      const does = { altered: "Alter it", replaced: "Replace it" }[how];
      this.output(...[
        reason ? element("p", { class: "error" }, reason) : null,
        element("p", {}, meaning),
        shown.length ? element("pre", { id: "difference", class: "code" }, ...shown) : null,
        statements.length ? element("details", {}, element("summary", {}, "What is executed"), element("pre", { class: "code" }, statements.join(";\n"))) : null,
        does ? element("div", { class: "buttons" }, element("button", { id: "apply", class: "primary", onclick: () => this.apply(how, body) }, does)) : null,
      ].filter((each) => each !== null));
    } catch (error) { this.wrong(error); }
  }

  async apply(how, body) {
    const name = this.edited;
    try {
      await call("PUT", `/api/queries/${encodeURIComponent(name)}`, { ...body, replace: how === "replaced" });
      this.done(name);
    } catch (error) {
      if (how === "altered") await this.compare(true, error.message);
      else this.wrong(error);
    }
  }

  async register() {
    clearTimeout(this.waiting); // what it says is not said over by a look at the text that was due
    const statements = await this.check();
    if (!statements) return;
    const only = statements.length === 1 ? statements[0] : null;
    const name = $("new-name").value.trim();
    try {
      if (only && only.kind === "query" && /^\s*(SELECT|WITH|RELATION|STREAM|ISTREAM|DSTREAM|RSTREAM|\()/i.test(this.text()) && name) {
        await call("POST", "/api/queries", { name, text: this.text() });
        this.done(name);
      } else {
        const { answers } = await call("POST", "/api/execute", { text: this.area.getValue() });
        if (answers.length) this.answered(answers);
        else this.done(statements.findLast((each) => each.does === "create" && each.kind === "query")?.name ?? null);
      }
    } catch (error) { this.wrong(error); }
  }

  // What SHOW and EXPLAIN say; the text stays, to be asked again.
  answered(answers) {
    this.stopPreview();
    this.output(...answers.flatMap((answer) => (answer.table
      ? [answer.table.rows.length ? tableOf(answer.table.columns.map(({ name }) => name), answer.table.rows) : element("p", { class: "note" }, "There is none.")]
      : [element("h3", {}, `${answer.query}, ${answer.stage} plan`), element("pre", { class: "code" }, answer.plan)])));
    this.registered(null);
  }

  done(name) {
    this.stopPreview();
    this.show(null);
    this.area.setValue("");
    $("new-name").value = "";
    $("editor-output").hidden = true;
    $("editor-card").hidden = true;
    this.registered(name);
  }
}

// A preview of a stream: what came last, first.
class LatestPreview {
  constructor(table, columns) {
    Object.assign(this, { table, columns, seen: 0, rows: [] });
  }

  take(line) {
    this.seen += 1;
    this.rows = [line.row, ...this.rows].slice(0, MOST_ROWS);
    this.table.replaceChildren(...tableOf(this.columns, this.rows).childNodes);
  }

  words() { return `${this.seen} results`; }
}

// A preview of a relation: its content, as it would be shown once it is registered.
class ContentPreview {
  constructor(table, columns) {
    Object.assign(this, { table, columns, rows: new Map() });
  }

  take({ row, weight }) {
    const key = JSON.stringify(row);
    const now = (this.rows.get(key)?.weight ?? 0) + weight;
    if (now) this.rows.set(key, { row, weight: now });
    else this.rows.delete(key);
    const there = [...this.rows.values()].filter((held) => held.weight > 0).slice(0, MOST_ROWS).map((held) => held.row);
    this.table.replaceChildren(...tableOf(this.columns, there).childNodes);
  }

  words() { return this.rows.size === 1 ? "1 row" : `${this.rows.size} rows`; }
}

export function tableOf(names, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {}, name)))),
    element("tbody", {}, ...rows.slice(0, 500).map((row) => element("tr", {}, ...names.map((name) => element("td", { title: exact(row[name]) }, cell(row[name])))))));
}
