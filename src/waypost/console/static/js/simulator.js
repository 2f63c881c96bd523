// The simulator's pages: running clocks, and fields that select the option they belong to.
import { now, timeZone } from "./times.js";

const machine = { nowMs: 0, atMs: 0 };

function readMachine() {
  const shown = document.querySelector("[data-clock='machine']");
  const nowMs = Number(shown?.dataset.clockMs);
  if (shown && nowMs !== machine.nowMs) Object.assign(machine, { nowMs, atMs: performance.now() });
}

const second = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", timeZone });
const offset = new Intl.DateTimeFormat("en", { timeZoneName: "longOffset", timeZone });

/** As the server writes it: 2026-11-22 14:05:00 UTC+05:30. */
function text(atMs) {
  const { value } = offset.formatToParts(atMs).find((part) => part.type === "timeZoneName");
  return `${second.format(atMs)} ${value.replace("GMT", "UTC").replace("+00:00", "")}`;
}

function show() {
  readMachine();
  for (const face of document.querySelectorAll("[data-clock]")) {
    const atMs = face.dataset.clock === "machine" ? machine.nowMs + (performance.now() - machine.atMs) : now();
    const time = face.querySelector("time"), shown = text(atMs);
    if (time.textContent !== shown) time.textContent = shown;
  }
}

if (document.querySelector("[data-clock]")) {
  document.addEventListener("waypost:put", show);
  show();
  setInterval(show, 250);
}

// Typing into a field selects the option next to it.
document.addEventListener("input", (event) => {
  const choice = document.getElementById(event.target.dataset?.chooses ?? "");
  if (choice) choice.checked = true;
});
