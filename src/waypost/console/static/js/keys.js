// Keyboard shortcuts: `/` for search, arrows in lists, G and a letter for a page, Ctrl K for the command palette.
import { openPalette } from "./palette.js";

const pages = { o: "Overview", p: "Phones", t: "Templates", m: "Messages", c: "Callbacks", s: "Simulator" };
let prefixMs = -Infinity;

export function bindKeys() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return leave(event);
    if (event.key === "/") return search(event);
    if (event.key === "?") return document.getElementById("keys")?.showModal();
    // Compare the times of the key presses, not of their handling on a busy page.
    if (event.timeStamp - prefixMs < 1200 && pages[event.key]) return go(pages[event.key]);
    prefixMs = event.key === "g" ? event.timeStamp : -Infinity;
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

function move(event, step) {
  const list = event.target.closest("[data-list]") ?? document.querySelector("main [data-list]");
  if (!list) return;
  const items = [...list.querySelectorAll("a[href], button, [tabindex='0']")].filter((item) => item.checkVisibility());
  const at = items.indexOf(document.activeElement);
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
