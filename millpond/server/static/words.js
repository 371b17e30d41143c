// How numbers, times and texts are shown; all text enters the page as text.
export const $ = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function count(number) {
  if (number === null || number === undefined) return "–";
  if (Math.abs(number) >= 1e6) return `${(number / 1e6).toFixed(1)} M`;
  if (Math.abs(number) >= 1e4) return `${(number / 1e3).toFixed(1)} k`;
  return Number.isInteger(number) ? String(number) : number.toFixed(number < 10 ? 2 : 1);
}

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  for (const [unit, size] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]]) {
    if (number >= size) return `${(number / size).toFixed(number / size < 10 ? 1 : 0)} ${unit}`;
  }
  return `${Math.round(number)} B`;
}

export function seconds(number) {
  if (number === null || number === undefined) return "–";
  if (number >= 1) return `${number.toFixed(number < 10 ? 2 : 0)} s`;
  if (number >= 1e-3) return `${(number * 1e3).toFixed(number < 1e-2 ? 1 : 0)} ms`;
  return number === 0 ? "0 s" : `${(number * 1e6).toFixed(0)} µs`;
}

export function inUnit(value, unit) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value === null || value === "" ? "–" : String(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "s") return seconds(value);
  return unit ? `${count(value)} ${unit}` : count(value);
}

export function cell(value) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number" && !Number.isInteger(value)) return value.toFixed(Math.abs(value) < 10 ? 3 : 1);
  return String(value);
}

export function clock(time) {
  return new Date(time * 1000).toLocaleTimeString();
}

const PIECE = /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^']|'')*')|\b(\d+(?:\.\d+)?)\b|\b([A-Za-z_]\w*)\b/g;

// CQL with its words coloured, as elements.
export function coloured(text, keywords) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(PIECE)) {
    parts.push(text.slice(at, match.index));
    const kind = match[1] ? "co" : match[2] ? "st" : match[3] ? "nu" : keywords.has(match[4].toUpperCase()) ? "kw" : "";
    parts.push(kind ? element("span", { class: kind }, match[0]) : match[0]);
    at = match.index + match[0].length;
  }
  return [...parts, text.slice(at)];
}
