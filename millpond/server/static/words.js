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

export function text(place, value) { if (place.textContent !== value) place.textContent = value ?? ""; }

const LEAST = 0.005;

export function count(number) {
  if (number === null || number === undefined) return "–";
  if (Math.abs(number) >= 1e6) return `${(number / 1e6).toFixed(1)} M`;
  if (Math.abs(number) >= 1e4) return `${(number / 1e3).toFixed(1)} k`;
  if (Math.abs(number) < LEAST) return "0";
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
  if (isTimestamp(value)) return whole(value);
  if (typeof value !== "number") return value === null || value === "" ? "–" : String(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "s") return seconds(value);
  if (!unit && value !== 0 && Math.abs(value) < LEAST) return String(Number(value.toPrecision(2)));
  return unit ? `${count(value)} ${unit}` : count(value);
}

const LONG_NUMBER = 12;

// A value in a table: a number of many digits is rounded to six; exact() has all of them.
export function cell(value) {
  const text = exact(value);
  if (typeof value !== "number" || Number.isInteger(value) || text.length <= LONG_NUMBER) return text;
  return String(Number(value.toPrecision(6)));
}

// A number where the pointer is: what a double no longer holds to the last digit is rounded too.
export function pointed(value) {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toPrecision(6) : cell(value);
}

export const exact = (value) => (value === null || value === undefined ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value));

// A number as it is compared: one that is text has more digits than a double (see api.js).
export const ordered = (value) => (typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : value);

// All times are those of UTC, as the page says on top.
export const clock = (time) => new Date(time * 1000).toISOString().slice(11, 19);

const DAY_SECONDS = 86_400;

// A moment of the past: the time of day, and the day where it is another one than today.
export function dated(time, now = Date.now() / 1000) {
  const day = (at) => Math.floor(at / DAY_SECONDS);
  return day(time) === day(now) ? clock(time) : `${new Date(time * 1000).toISOString().slice(0, 10)} ${clock(time)}`;
}

export const isTimestamp = (time) => typeof time === "string" && /^\d+-\d\d-\d\dT/.test(time);

// The time of an element: of a timestamp the time of day, else the number of ticks.
export function moment(time) {
  if (time === null) return "beginning";
  return isTimestamp(time) ? time.split("T")[1].slice(0, 12) : String(time);
}

// A time that stands alone.
export const whole = (time) => (isTimestamp(time) ? `${time.replace("T", " ").slice(0, 22)} UTC` : time || "–");

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
