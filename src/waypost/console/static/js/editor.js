// The editor of templates: what is typed is drawn and checked while it is being typed. The server shapes the
// form; here are only what hands cannot wait for, and the questions before something is lost.
import { put } from "./live.js";
import { notify } from "./quiet.js";

const form = () => document.getElementById("editor-form");
const touched = new Set();
let isDirty = false;
let edition = 0;
let waiting = 0;
let isLeaving = false;
let deeds = Promise.resolve();

document.addEventListener("input", (event) => {
  if (!form()?.contains(event.target)) return;
  isDirty = true;
  edition += 1;
  touched.add(event.target.id);
  count(event.target);
  clearTimeout(waiting);
  waiting = setTimeout(look, 300);
});

document.addEventListener("change", (event) => {
  if (event.target.matches("#editor-form [data-refreshes], #editor-form [data-uploads]")) act("refresh");
});

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-wrap], [data-variable], [data-finding]");
  if (target?.dataset.wrap) wrap(document.getElementById(target.dataset.into), target.dataset.wrap);
  if (target?.dataset.variable) insert(document.getElementById(target.dataset.variable));
  if (target?.dataset.finding) {
    event.preventDefault();
    show(target.dataset.finding);
  }
});

document.addEventListener("submit", (event) => {
  if (event.target !== form()) return;
  event.preventDefault();
  act(event.submitter?.value ?? "refresh");
});

window.addEventListener("pageshow", () => { isLeaving = false; });

window.addEventListener("beforeunload", (event) => {
  if (isDirty) event.preventDefault();
});

/** The form as the server last wrote it: chosen values and counters too, which stay with their element. */
function settle() {
  for (const box of document.querySelectorAll("#editor-form select")) {
    const chosen = box.querySelector("option[selected]");
    if (chosen && !box.name.endsWith("new-button-kind")) box.value = chosen.value;
  }
  for (const box of document.querySelectorAll("#editor-form input[type=checkbox]")) box.checked = box.hasAttribute("checked");
  for (const box of document.querySelectorAll("#editor-form input[type=file]")) box.value = ""; // it has been taken
  for (const part of document.querySelectorAll(".needs-module")) part.hidden = false;
  document.querySelectorAll("#editor-form [data-counts]").forEach((one) => count(document.getElementById(one.dataset.counts)));
  nameLanguages();
}

/** Have the server do what a button says. One after the other: each is done to what the one before has made. */
function act(deed) {
  clearTimeout(waiting);
  deeds = deeds.then(() => (isLeaving ? null : done(deed))).catch(reportError);
}

/** The server keeps nothing of a form: where something was typed meanwhile, it is asked again with that. */
async function done(deed) {
  const area = form();
  area.setAttribute("aria-busy", "true");
  try {
    for (let tries = 0; tries < 5; tries += 1) {
      const asked = edition;
      const fields = new FormData(area);
      fields.append("do", deed);
      const told = await ask(fields);
      if (told === null) return;
      if (told.to) {
        isDirty = false;
        isLeaving = true;
        return location.assign(told.to);
      }
      if (asked !== edition && deed !== "submit") continue;
      edition += 1;
      isDirty = true;
      put(told.pieces);
      settle();
      return follow(deed);
    }
  } finally {
    form().removeAttribute("aria-busy");
  }
}

async function ask(body) {
  const headers = { "X-Waypost-Quiet": "1", "X-Waypost-Csrf": document.body.dataset.csrf };
  try {
    const answer = await fetch(form().getAttribute("action"), { method: "POST", headers, body });
    const told = await answer.json();
    if (answer.ok) return told;
    notify(told.message, told.remedy ?? "", "bad");
  } catch {
    notify("The service did not answer.", "Look whether it runs, and try again.", "bad");
  }
  return null;
}

/** Have it drawn and checked; an answer that something newer was typed meanwhile is thrown away. */
async function look() {
  const asked = edition;
  const typed = [...new FormData(form())].filter(([, value]) => typeof value === "string");
  const told = await ask(new URLSearchParams([...typed, ["do", "preview"]]));
  if (told === null || asked !== edition) return;
  put(told.pieces);
  note(told.notes);
}

function note(notes) {
  for (const line of document.querySelectorAll("#editor-form .note[data-for]")) {
    const control = document.getElementById(line.dataset.for);
    const isUntouched = control && "value" in control && !control.value && !touched.has(control.id);
    const told = isUntouched ? [] : notes[line.dataset.for] ?? [];
    line.replaceChildren(...told.map(({ says, by }) => {
      const one = document.createElement("span");
      one.className = `by-${by}`;
      one.textContent = `${says} `;
      return one;
    }));
    if (told.length) control?.setAttribute("aria-invalid", "true");
    else control?.removeAttribute("aria-invalid");
  }
}

/** Lead the keyboard to what a button of the editor has made or moved. */
function follow(deed) {
  const [verb, ...rest] = deed.split("-");
  if (["submit", "check", "refresh"].includes(verb)) {
    const said = document.querySelector("#editor-said");
    if (said || verb !== "submit") return said?.scrollIntoView({ block: "center" });
    notify("It was not submitted.", "Correct what is marked: the findings say how.", "bad");
    const first = document.querySelector("#lint [data-finding]");
    return first && show(first.dataset.finding);
  }
  const at = Number(rest.at(-1));
  const name = rest.join("-");
  if (verb === "add") {
    const rows = document.querySelectorAll(name === "card" ? "[id^=card-].a-card" : `fieldset[id^='${name}-']`);
    return rows[rows.length - 1]?.querySelector("input:not([type=hidden]), select, textarea")?.focus();
  }
  const to = verb === "up" ? at - 1 : verb === "down" ? at + 1 : Math.max(0, at - 1);
  const row = rest.slice(0, -1).concat(to).join("-");
  const button = document.querySelector(`button[value="${verb}-${row}"]:not([disabled])`);
  (button ?? document.getElementById(row) ?? document.querySelector(`button[value="add-${rest.slice(0, -1).join("-")}"]`))?.focus();
}

function show(id) {
  const control = document.getElementById(id) ?? document.getElementById(id.replace(/-[^-]+$/, ""));
  if (!control) return;
  control.closest("details")?.setAttribute("open", "");
  control.scrollIntoView({ block: "center" });
  control.focus({ preventScroll: true });
}

function count(control) {
  const shown = control && document.querySelector(`[data-counts="${CSS.escape(control.id)}"]`);
  if (!shown) return;
  const length = [...control.value].length;
  shown.textContent = `${length}/${shown.dataset.most}`;
  shown.classList.toggle("is-over", length > Number(shown.dataset.most));
}

function wrap(area, mark) {
  const { selectionStart: start, selectionEnd: end, value } = area;
  area.focus();
  area.setRangeText(`${mark}${value.slice(start, end)}${mark}`, start, end, "end");
  area.setSelectionRange(start + mark.length, end + mark.length);
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function insert(area) {
  const used = [...area.value.matchAll(/\{\{(\d+)\}\}/g)].map((found) => Number(found[1]));
  area.focus();
  area.setRangeText(`{{${Math.max(0, ...used) + 1}}}`, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function nameLanguages() {
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
  for (const option of document.querySelectorAll("#languages option")) {
    try {
      option.label ||= names.of(option.value.replace("_", "-")) ?? "";
    } catch {
      // a code of the operator's own
    }
  }
}

settle();
