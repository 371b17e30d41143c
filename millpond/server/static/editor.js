// Writing a query: colours, completion, marks where it is wrong, explanation, preview, registration.
import { call, lines } from "./api.js";
import { $, cell, element } from "./words.js";

const CHECK_AFTER = 350;
const MOST_ROWS = 50;

export class Editor {
  constructor(vocabulary, registered) {
    this.vocabulary = vocabulary;
    this.registered = registered;
    this.marks = [];
    const words = Object.fromEntries(vocabulary.keywords.map((word) => [word.toLowerCase(), true]));
    CodeMirror.defineMIME("text/x-cql", { name: "sql", keywords: words, builtin: {}, atoms: {}, operatorChars: /^[*+\-%<>!=&|]/, dateSQL: {}, support: {} });
    this.area = CodeMirror.fromTextArea($("editor"), {
      mode: "text/x-cql", lineNumbers: true, lineWrapping: true, placeholder: $("editor").placeholder,
      extraKeys: { "Ctrl-Space": () => this.complete(), "Ctrl-Enter": () => this.register(), Tab: false, "Shift-Tab": false },
    });
    this.area.getInputField().setAttribute("aria-label", "Query in CQL");
    this.area.on("change", () => { clearTimeout(this.waiting); this.waiting = setTimeout(() => this.check(), CHECK_AFTER); });
    $("register").addEventListener("click", () => this.register());
    $("preview").addEventListener("click", () => this.preview());
    $("ask").addEventListener("click", () => this.ask());
    $("explain").addEventListener("click", () => this.explain());
    $("close-editor").addEventListener("click", () => this.close());
  }

  open(text = "") {
    $("editor-card").hidden = false;
    $("empty-card").hidden = true;
    this.area.refresh();
    if (text) this.area.setValue(text);
    this.area.focus();
    $("editor-card").scrollIntoView({ block: "nearest" });
  }

  close() {
    this.stopPreview();
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
    try {
      const { ok, problems, warnings, statements } = await call("POST", "/api/check", { text });
      if (text !== this.area.getValue()) return false;
      if (!ok) { this.mark(problems[0].line, problems[0].column, problems[0].message); return false; }
      this.unmark();
      const one = statements.length === 1 ? "one statement" : `${statements.length} statements`;
      this.say(`No errors: ${one}.`);
      if (warnings.length) this.mark(warnings[0].line, warnings[0].column, `warning: ${warnings[0].message}`, "doubtful");
      return statements;
    } catch (error) { this.say(error.message, true); return false; }
  }

  complete() {
    this.area.showHint({ completeSingle: false, hint: (area) => this.hints(area) });
  }

  hints(area) {
    const cursor = area.getCursor();
    const before = area.getLine(cursor.line).slice(0, cursor.ch);
    const word = /[\w]*$/.exec(before)[0];
    const { names, keywords, functions, connectors, strategies } = this.vocabulary;
    const isUpper = word === word.toUpperCase();
    const all = [...Object.keys(names), ...new Set(Object.values(names).flat()), ...keywords.map((k) => (isUpper ? k : k.toLowerCase())), ...functions, ...connectors, ...strategies];
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
    const body = element("tbody");
    const head = element("thead");
    const note = element("p", { class: "note" }, "Waiting for tuples …");
    this.output(element("h3", {}, "Preview, for ten seconds"), element("table", { id: "preview-table" }, head, body), note);
    let columns = [];
    let seen = 0;
    this.stopPreview = lines("POST", "/api/preview", { text: this.text(), seconds: 10 }, (line) => {
      if (line.columns) {
        columns = line.columns;
        head.replaceChildren(element("tr", {}, element("th", {}, "±"), ...columns.map((name) => element("th", {}, name))));
      } else if (line.row) {
        seen += 1;
        body.prepend(element("tr", { class: line.weight < 0 ? "minus" : "" }, element("td", {}, line.weight > 0 ? `+${line.weight}` : String(line.weight)), ...columns.map((name) => element("td", {}, cell(line.row[name])))));
        while (body.rows.length > MOST_ROWS) body.lastChild.remove();
        note.textContent = `${seen} results so far`;
      } else if (line.error) note.textContent = line.error;
    }, (error) => {
      if (error) this.wrong(error);
      else note.textContent = seen ? `${seen} results; the preview is over` : "No result in ten seconds; the preview is over";
    });
  }

  stopPreview() {}

  async register() {
    const statements = await this.check();
    if (!statements) return;
    const only = statements.length === 1 ? statements[0] : null;
    const name = $("new-name").value.trim();
    try {
      if (only && only.kind === "query" && /^\s*(SELECT|WITH|RELATION|STREAM|ISTREAM|DSTREAM|RSTREAM|\()/i.test(this.text()) && name) {
        await call("POST", "/api/queries", { name, text: this.text() });
        this.done(name);
      } else {
        await call("POST", "/api/execute", { text: this.area.getValue() });
        this.done(statements.findLast((each) => each.kind === "query")?.name ?? null);
      }
    } catch (error) { this.wrong(error); }
  }

  done(name) {
    this.stopPreview();
    this.area.setValue("");
    $("new-name").value = "";
    $("editor-output").hidden = true;
    $("editor-card").hidden = true;
    this.registered(name);
  }
}

export function tableOf(names, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...names.map((name) => element("th", {}, name)))),
    element("tbody", {}, ...rows.slice(0, 500).map((row) => element("tr", {}, ...names.map((name) => element("td", {}, cell(row[name])))))));
}
