// Keyboard shortcuts: `/` for search, arrows in lists, X to select, G and a letter for a page, Ctrl K for the palette.
import { openPalette } from "./palette.js";

const pages = { o: "Overview", p: "Phones", t: "Templates", m: "Messages", c: "Callbacks", s: "Simulator" };
const ROW = ":is(li, [role='row'])";
let prefixMs = -Infinity;

export function bindKeys() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input:not([type='checkbox']), textarea, select, [contenteditable]")) return leave(event);
    if (event.key === "/") return search(event);
    if (event.key === "?") return document.getElementById("keys")?.showModal();
    // Compare the times of the key presses, not of their handling on a busy page.
    if (event.timeStamp - prefixMs < 1200 && pages[event.key]) return go(pages[event.key]);
    prefixMs = event.key === "g" ? event.timeStamp : -Infinity;
    if (event.key === "x") return pick(event);
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step) move(event, step);
  });
}

function leave(event) {
  if (event.key === "Escape") event.target.blur();
}

function search(event) {
  const field = document.querySelector("[data-search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

function go(label) {
  document.querySelector(`[data-command="${label}"]`)?.click();
}

// Toggle the checkbox of the row that has the focus.
function pick(event) {
  const box = event.target.closest(`[data-list] > ${ROW}`)?.querySelector("input[type='checkbox']");
  if (!box) return;
  event.preventDefault();
  box.click();
}

// From row to row: the focus goes to the first link or button of each; Tab reaches the others.
function move(event, step) {
  const list = event.target.closest("[data-list]") ?? document.querySelector("main [data-list]");
  if (!list) return;
  const rows = [...list.querySelectorAll(`:scope > ${ROW}`)].filter((row) => row.checkVisibility());
  const items = rows.map((row) => row.querySelector("a[href], button, [tabindex='0']") ?? row.querySelector("input"));
  const at = rows.indexOf(event.target.closest(`[data-list] > ${ROW}`));
  const places = step > 0 ? items.slice(at + 1) : items.slice(0, at < 0 ? items.length : at).reverse();
  const next = places.find((item) => item?.checkVisibility());
  if (!next) return;
  event.preventDefault();
  next.focus();
}
