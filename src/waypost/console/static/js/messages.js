// The list: new messages go in at the top only while nobody is reading there, and older ones come as they are asked for.
import { put } from "./live.js";

const MOST_ROWS = 400; // beside older ones that were asked for
const rows = document.getElementById("rows");
const fresh = document.getElementById("fresh");
const notice = document.getElementById("new");
let hasOlder = false;
let missed = false;

hearFilter();
if (rows) hearOlder();
if (rows && fresh) {
  document.addEventListener("waypost:put", () => arrive(!isBeingRead()));
  window.addEventListener("scroll", () => arrive(!isBeingRead()), { passive: true });
  rows.addEventListener("pointerleave", () => arrive(!isBeingRead()));
  notice.addEventListener("click", () => {
    if (missed) return location.reload();
    window.scrollTo({ top: 0 });
    arrive(true);
  });
}

function isBeingRead() {
  return window.scrollY > 40 || rows.matches(":hover") || rows.contains(document.activeElement) || !getSelection().isCollapsed;
}

// Move what has come to the top of the list, or say how much it is.
function arrive(mayMove) {
  for (const row of [...fresh.children]) {
    if (document.querySelector(`#rows > #${CSS.escape(row.id)}`)) row.remove();
  }
  const waiting = fresh.children.length;
  missed ||= waiting >= Number(fresh.dataset.atMost);
  if (waiting && mayMove && !missed) {
    rows.prepend(...fresh.children);
    document.getElementById("none").hidden = true;
    if (!hasOlder) while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
    leadOn();
  }
  const left = fresh.children.length;
  notice.hidden = !left;
  if (left) notice.firstElementChild.textContent = missed ? "Many new messages: reload" : `${left} new`;
}

// The next page begins after the last row that is shown, where it was not the search that ended.
function leadOn() {
  const older = document.querySelector("#older[data-older='page']"), last = rows.lastElementChild;
  if (!older || !last) return;
  const address = new URL(older.href);
  address.searchParams.set("before", last.dataset.place);
  older.href = address;
}

function hearOlder() {
  document.addEventListener("click", (event) => {
    const older = event.target.closest("#older");
    if (!older || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goOn(older);
  });
  const seen = new IntersectionObserver((entries) => {
    const older = document.getElementById("older");
    // What is searched step by step goes on only when somebody asks for it: each step costs the store as much.
    if (entries.some((one) => one.isIntersecting) && older?.dataset.older === "page" && window.scrollY > 200) goOn(older);
  }, { rootMargin: "400px" });
  seen.observe(document.getElementById("foot"));
}

async function goOn(older) {
  if (older.ariaBusy === "true") return;
  older.ariaBusy = "true";
  const hadFocus = document.activeElement === older;
  try {
    const answer = await fetch(older.href.replace("?", "/more?"));
    if (!answer.ok) return location.assign(older.href);
    hasOlder = true;
    const { pieces } = await answer.json();
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

function hearFilter() {
  const form = document.getElementById("filter");
  if (!form) return;
  form.addEventListener("change", (event) => {
    if (event.target.matches("[type='datetime-local']")) form.elements.time.value = "custom";
    if (event.target.matches("select:not([name='time'])") || (event.target.name === "time" && event.target.value !== "custom")) form.requestSubmit();
    if (event.target.name === "time" && event.target.value === "custom") {
      form.querySelector("details").open = true;
      form.elements.from.focus();
    }
  });
  form.addEventListener("submit", () => {
    // Fields that hold nothing stay out of the address.
    for (const field of form.elements) if (field.name && !field.value) field.disabled = true;
    setTimeout(() => { for (const field of form.elements) field.disabled = false; });
  });
}
