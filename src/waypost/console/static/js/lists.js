// A list: new rows are added at the top unless the user is reading there; older ones load on demand.
import { put } from "./live.js";
import "./selection.js";

const MAX_ROWS = 400; // unless older ones were loaded
const rows = document.getElementById("rows");
const fresh = document.getElementById("fresh");
const notice = document.getElementById("new");
let hasOlder = false;
let missed = false;

bindFilter();
rows?.addEventListener("click", openRow);
if (rows) bindOlder();
if (rows && fresh) {
  document.addEventListener("waypost:put", () => insertNew(!isBeingRead()));
  window.addEventListener("scroll", () => insertNew(!isBeingRead()), { passive: true });
  rows.addEventListener("pointerleave", () => insertNew(!isBeingRead()));
  notice.addEventListener("click", () => {
    if (missed) return location.reload();
    window.scrollTo({ top: 0 });
    insertNew(true);
  });
}

// Times and other parts with a tooltip lie over the link of their row: a click on them opens it too.
function openRow(event) {
  if (event.target.closest("[title]") && !event.target.closest("a, button, label")) event.target.closest("[role='row']").querySelector("a.opens")?.click();
}

function isBeingRead() {
  return window.scrollY > 40 || rows.matches(":hover") || rows.contains(document.activeElement) || !getSelection().isCollapsed;
}

// Move new messages to the top of the list, or show their number.
function insertNew(mayMove) {
  for (const row of [...fresh.children]) {
    if (document.querySelector(`#rows > #${CSS.escape(row.id)}`)) row.remove();
  }
  const waiting = fresh.children.length;
  missed ||= waiting >= Number(fresh.dataset.atMost);
  if (waiting && mayMove && !missed) {
    rows.prepend(...fresh.children);
    document.getElementById("none").hidden = true;
    if (!hasOlder) while (rows.children.length > MAX_ROWS) rows.lastElementChild.remove();
    updateOlderLink();
  }
  const left = fresh.children.length;
  notice.hidden = !left;
  if (left) notice.firstElementChild.textContent = missed ? "Many new rows. Reload" : `${left} new`;
}

// Let the next page begin after the last shown row, unless the search ended early.
function updateOlderLink() {
  const older = document.querySelector("#older[data-older='page']"), last = rows.lastElementChild;
  if (!older || !last) return;
  const address = new URL(older.href);
  address.searchParams.set("before", last.dataset.place);
  older.href = address;
}

function bindOlder() {
  document.addEventListener("click", (event) => {
    const older = event.target.closest("#older");
    if (!older || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    loadOlder(older);
  });
  const seen = new IntersectionObserver((entries) => {
    const older = document.getElementById("older");
    // A search in steps continues only on a click, because each step has the full cost.
    if (entries.some((entry) => entry.isIntersecting) && older?.dataset.older === "page" && window.scrollY > 200) loadOlder(older);
  }, { rootMargin: "400px" });
  seen.observe(document.getElementById("foot"));
}

async function loadOlder(older) {
  if (older.ariaBusy === "true") return;
  older.ariaBusy = "true";
  const hadFocus = document.activeElement === older;
  try {
    const response = await fetch(older.href.replace("?", "/more?"));
    if (!response.ok) return location.assign(older.href);
    hasOlder = true;
    const { pieces } = await response.json();
    put(pieces);
    if (pieces.length > 1) document.getElementById("none").hidden = true;
    const first = pieces.length > 1 && document.querySelector(`#${CSS.escape(pieces[0].id)} a`);
    if (hadFocus) (first || document.getElementById("older"))?.focus({ preventScroll: true });
  } catch {
    location.assign(older.href);
  } finally {
    older.ariaBusy = "false";
  }
}

function bindFilter() {
  const form = document.getElementById("filter");
  if (!form) return;
  form.addEventListener("change", (event) => {
    if (event.target.matches("[type='datetime-local']")) form.elements.time.value = "custom";
    if (form.querySelector(".filter-fold").checkVisibility()) return; // on a narrow screen several are chosen first
    if (event.target.matches("select:not([name='time'])") || (event.target.name === "time" && event.target.value !== "custom")) form.requestSubmit();
    if (event.target.name === "time" && event.target.value === "custom") {
      form.querySelector("details").open = true;
      form.elements.from.focus();
    }
  });
  form.addEventListener("submit", () => {
    // Empty fields are left out of the URL, and the zone of no time.
    const hasTime = ["from", "until", "to"].some((name) => form.elements[name]?.value);
    for (const field of form.elements) if (field.name && (!field.value || (field.name === "zone" && !hasTime))) field.disabled = true;
    setTimeout(() => { for (const field of form.elements) field.disabled = false; });
  });
}
