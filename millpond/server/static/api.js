// The HTTP API, with a token where one is needed.
const $ = (id) => document.getElementById(id);
const LONGEST_MS = 40_000;
let asking = null;

export function headers(more = {}) {
  const token = sessionStorage.getItem("token");
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = $("token-dialog");
    const wrong = sessionStorage.getItem("token");
    $("token-said").textContent = wrong ? "The server does not know this token. `millpond token ROLE` makes one, and its line belongs into the server's file of tokens." : "This server answers only who has a token: `millpond token ROLE` makes one.";
    $("token-said").classList.toggle("error", Boolean(wrong));
    $("token").value = "";
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", $("token").value.trim());
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

// JSON whose integers beyond 2^53, which no double holds, are kept as texts of their digits.
const PIECE = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function parse(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text.replace(PIECE, (piece) => (/^-?\d{16,}$/.test(piece) && !Number.isSafeInteger(Number(piece)) ? `"${piece}"` : piece)));
}

// What was answered; of a refusal that is no JSON nothing is known.
async function read(response) {
  const text = await response.text();
  try { return parse(text); } catch (error) {
    if (response.ok) throw error;
    return {};
  }
}

export async function request(method, path, body, more = {}) {
  for (;;) {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(path, {
      method, headers: headers({ ...type, ...more }), body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(LONGEST_MS),
    });
    if (response.status !== 401) return response;
    await askForToken();
  }
}

export class Refusal extends Error {
  constructor(status, body) {
    super(body.error ?? `status ${status}`);
    this.status = status;
    this.line = body.line;
    this.column = body.column;
  }
}

export async function call(method, path, body) {
  const response = await request(method, path, body);
  const data = await read(response);
  if (!response.ok) throw new Refusal(response.status, data);
  return data;
}

export const get = (path) => call("GET", path);

// One page of a list, and how many items the whole of it has.
export async function pageOf(path, parameters = {}) {
  const response = await request("GET", `${path}${path.includes("?") ? "&" : "?"}${query(parameters)}`);
  const items = await read(response);
  if (!response.ok) throw new Refusal(response.status, items);
  return { items, total: Number(response.headers.get("X-Total-Count") ?? items.length) };
}

// Parameters of an address; those that say nothing are left out.
export function query(parameters) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== "" && each !== null && each !== undefined && each !== false) given.append(name, each);
  }
  return given.toString();
}

// Has the browser keep what an address answers as a file.
export async function download(path, name) {
  const response = await request("GET", path);
  if (!response.ok) throw new Refusal(response.status, await read(response));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// Reads JSON lines until the end or until stop(); answers a function that stops.
export function lines(method, path, body, onLine, onEnd = () => {}) {
  const aborter = new AbortController();
  (async () => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(path, {
      method, headers: headers({ ...type, accept: "application/x-ndjson" }),
      body: body === undefined ? undefined : JSON.stringify(body), signal: aborter.signal,
    });
    if (!response.ok) throw new Refusal(response.status, await read(response));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      for (const part of parts) if (part) onLine(parse(part));
    }
    onEnd(null);
  })().catch((error) => { if (error.name !== "AbortError") onEnd(error); });
  return () => aborter.abort();
}
