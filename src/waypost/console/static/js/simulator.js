// The simulator's pages: running clocks, and fields that select the option they belong to.
import { now } from "./times.js";

const machine = { nowMs: 0, atMs: 0 };

function readMachine() {
  const shown = document.querySelector("[data-clock='machine']");
  const nowMs = Number(shown?.dataset.clockMs);
  if (shown && nowMs !== machine.nowMs) Object.assign(machine, { nowMs, atMs: performance.now() });
}

function text(atMs) {
  return `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function show() {
  readMachine();
  for (const face of document.querySelectorAll("[data-clock]")) {
    const atMs = face.dataset.clock === "machine" ? machine.nowMs + (performance.now() - machine.atMs) : now();
    const shown = text(atMs);
    if (face.textContent !== shown) face.textContent = shown;
  }
}

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

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
