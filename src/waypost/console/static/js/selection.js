// Rows that are selected by their checkboxes: their number, ranges with Shift, and what the bar offers.
import { notify } from "./quiet.js";

const bar = document.querySelector("[data-picked]");
let last = null;

if (bar) {
  for (const part of bar.querySelectorAll("[data-needs-script]")) part.hidden = false;
  document.addEventListener("change", (event) => event.target.matches("[data-pick]") && count());
  document.addEventListener("click", (event) => {
    const box = event.target.closest("[data-pick]");
    if (!box) return;
    if (event.shiftKey && last && last.isConnected) range(last, box);
    last = box;
  });
  bar.addEventListener("reset", () => setTimeout(count));
  bar.querySelector("[data-picked-all]").addEventListener("click", () => {
    for (const box of boxes()) box.checked = true;
    count();
  });
  bar.querySelector("[data-picked-copy]").addEventListener("click", async () => {
    const ids = picked().map((box) => box.value);
    await navigator.clipboard.writeText(ids.join("\n"));
    notify(ids.length === 1 ? "Copied 1 ID." : `Copied ${ids.length} IDs, one a line.`, "", "good");
  });
  window.addEventListener("pageshow", count);
}

function boxes() {
  return [...document.querySelectorAll("[data-list] [data-pick]")];
}

function picked() {
  return boxes().filter((box) => box.checked);
}

function range(from, to) {
  const all = boxes(), ends = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  for (const box of all.slice(ends[0], ends[1] + 1)) box.checked = to.checked;
  count();
}

function count() {
  const most = Number(bar.dataset.atMost), many = picked().length;
  bar.querySelector("[data-picked-count]").textContent = many > most ? `${many} selected; at most ${most} at once` : `${many} selected`;
  for (const button of bar.querySelectorAll("[data-picked-act]")) button.disabled = many > most;
}
