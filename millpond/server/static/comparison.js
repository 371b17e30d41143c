// The same burst under two strategies, drawn as both work on it: what the demo has beside its traffic.
import { call, get } from "./api.js";
import { MEANING, Plot } from "./plots.js";
import { $, bytes, text } from "./words.js";

const EVERY_SECONDS = 0.1;
const LOOK_MS = 500;

export class Comparison {
  // attempt(action) does something, or says why it was refused.
  constructor(attempt) {
    this.plot = null;
    $("compare").addEventListener("click", () => attempt(async () => {
      await call("POST", "/api/demo/comparison");
      $("compare-card").hidden = false;
      text($("compare-note"), "They begin …");
      await this.follow();
    }));
    this.follow(); // one that somebody else has begun
  }

  // Looks until both are through, or nobody answers: that is said on top.
  async follow() {
    clearTimeout(this.waiting);
    try {
      const told = await get("/api/demo/comparison");
      this.show(told);
      if (told.is_running) this.waiting = setTimeout(() => this.follow(), LOOK_MS);
    } catch { $("compare").disabled = false; }
  }

  show({ courses, is_running: isRunning, seconds }) {
    $("compare").disabled = isRunning;
    if (!courses.some((course) => course.seconds.length)) return;
    $("compare-card").hidden = false;
    this.plot ??= new Plot($("chart-compare"), { series: courses.map(({ strategy }) => ({ label: strategy, stroke: MEANING[strategy] })), value: bytes, x: (each) => `${Number(each.toFixed(1))} s`, xLabel: "seconds" });
    const times = Array.from({ length: Math.round(seconds / EVERY_SECONDS) + 1 }, (_, at) => at * EVERY_SECONDS);
    this.plot.show([times, ...courses.map((course) => sampled(course, times))]);
    text($("compare-note"), words(courses, isRunning));
  }
}

// What waited at each time, as far as it is known.
function sampled({ seconds, bytes: waiting }, times) {
  let at = -1;
  return times.map((time) => {
    while (at + 1 < seconds.length && seconds[at + 1] <= time + EVERY_SECONDS / 2) at += 1;
    return at < 0 || time > seconds.at(-1) + EVERY_SECONDS ? null : waiting[at];
  });
}

function words(courses, isRunning) {
  const peaks = courses.map((course) => Math.max(0, ...course.bytes));
  if (isRunning) return courses.map(({ strategy, bytes: waiting }) => `${strategy}: ${bytes(waiting.at(-1) ?? 0)} wait`).join(", ");
  const [first, second] = courses.map(({ strategy }) => strategy);
  if (!peaks[1]) return "One of them has not worked; the log of the demo says why.";
  return `Under ${first} ${(peaks[0] / peaks[1]).toFixed(1)} times as much waited at the worst as under ${second}.`;
}
