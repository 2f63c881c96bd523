// Relative times, and the zone of the page, by the service's clock, which users can move under `waypost dev`.
export const timeZone = document.documentElement.dataset.zone;
const loadedAtMs = performance.now();
const clock = { nowMs: Date.now(), rate: 1, atMs: performance.now() };
const formatter = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });
const dayFormatter = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" }); // "yesterday", but not "next yr."
const steps = [["second", 1000, 60], ["minute", 60_000, 60], ["hour", 3_600_000, 24], ["day", 86_400_000, 30],
  ["month", 2_592_000_000, 12.17], ["year", 31_536_000_000, Infinity]];

export function now() {
  return clock.nowMs + (performance.now() - clock.atMs) * clock.rate;
}

export function readClock() {
  const shown = document.getElementById("shell-clock");
  if (!shown) return;
  const { aheadMs, nowMs, rate } = shown.dataset;
  const read = `${aheadMs} ${nowMs} ${rate}`;
  if (read === clock.read) return;
  const machineMs = Number(document.body.dataset.machineMs) + performance.now() - loadedAtMs;
  const shownMs = aheadMs === undefined ? Number(nowMs) : machineMs + Number(aheadMs);
  Object.assign(clock, { nowMs: shownMs, rate: Number(rate), atMs: performance.now(), read });
}

export function relative(atMs) {
  const awayMs = atMs - now();
  if (Math.abs(awayMs) < 1500) return "now";
  for (const [unit, ms, most] of steps) {
    const count = Math.abs(awayMs) / ms;
    if (count < most) return (unit === "day" ? dayFormatter : formatter).format(Math.sign(awayMs) * Math.floor(count), unit);
  }
  return "";
}

export function showTimes(within = document) {
  for (const time of within.querySelectorAll("time[data-at-ms]")) {
    const text = relative(Number(time.dataset.atMs));
    if (time.textContent !== text) time.textContent = text;
  }
}

export function keepTimes() {
  readClock();
  showTimes();
  setInterval(showTimes, 5000);
}
