// The template editor: previews and checks the draft while the user types. The server renders the form; this
// script adds immediate feedback, and a warning before changes are lost.
import { put } from "./live.js";
import { notify } from "./quiet.js";

const form = () => document.getElementById("editor-form");
const touched = new Set();
let isDirty = false;
let edition = 0;
let waiting = 0;
let isLeaving = false;
let actions = Promise.resolve();

document.addEventListener("input", (event) => {
  if (!form()?.contains(event.target)) return;
  isDirty = true;
  edition += 1;
  touched.add(event.target.id);
  count(event.target);
  if (event.target.id === "f-languageCode") nameLanguage(event);
  clearTimeout(waiting);
  waiting = setTimeout(preview, 300);
});

document.addEventListener("change", (event) => {
  if (event.target.id === "f-languageCode") nameLanguage(event);
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

/** Reset controls to the form that the server rendered last, and update the counters. */
function syncForm() {
  for (const box of document.querySelectorAll("#editor-form select")) {
    const chosen = box.querySelector("option[selected]");
    if (chosen && !box.name.endsWith("new-button-kind")) box.value = chosen.value;
  }
  for (const box of document.querySelectorAll("#editor-form input[type=checkbox]")) box.checked = box.hasAttribute("checked");
  for (const box of document.querySelectorAll("#editor-form input[type=file]")) box.value = ""; // already uploaded
  for (const part of document.querySelectorAll(".needs-module")) part.hidden = false;
  document.querySelectorAll("#editor-form [data-counts]").forEach((counter) => count(document.getElementById(counter.dataset.counts)));
}

/** Run a button's action on the server, one after the other, each on the result of the previous one. */
function act(action) {
  clearTimeout(waiting);
  actions = actions.then(() => (isLeaving ? null : run(action))).catch(reportError);
}

/** The server stores no form state: if the user typed meanwhile, send the request again with the new values. */
async function run(action) {
  const area = form();
  area.setAttribute("aria-busy", "true");
  try {
    for (let tries = 0; tries < 5; tries += 1) {
      const sent = edition;
      const fields = new FormData(area);
      fields.append("do", action);
      const data = await post(fields);
      if (data === null) return;
      if (data.to) {
        isDirty = false;
        isLeaving = true;
        return location.assign(data.to);
      }
      if (sent !== edition && action !== "submit") continue;
      edition += 1;
      isDirty = true;
      put(data.pieces);
      syncForm();
      return moveFocus(action);
    }
  } finally {
    form().removeAttribute("aria-busy");
  }
}

async function post(body) {
  const headers = { "X-Waypost-Quiet": "1", "X-Waypost-Csrf": document.body.dataset.csrf };
  try {
    const response = await fetch(form().getAttribute("action"), { method: "POST", headers, body });
    const data = await response.json();
    if (response.ok) return data;
    notify(data.message, data.hint ?? "", "bad");
  } catch {
    notify("The service is not responding.", "Check that it is running, then try again.", "bad");
  }
  return null;
}

/** Preview and check the draft; a response to outdated input is discarded. */
async function preview() {
  const sent = edition;
  const typed = [...new FormData(form())].filter(([, value]) => typeof value === "string");
  const data = await post(new URLSearchParams([...typed, ["do", "preview"]]));
  if (data === null || sent !== edition) return;
  put(data.pieces);
  showNotes(data.notes);
}

function showNotes(notes) {
  for (const line of document.querySelectorAll("#editor-form .note[data-for]")) {
    const control = document.getElementById(line.dataset.for);
    const isUntouched = control && "value" in control && !control.value && !touched.has(control.id);
    const shown = isUntouched ? [] : notes[line.dataset.for] ?? [];
    line.replaceChildren(...shown.map(({ says, by }) => {
      const span = document.createElement("span");
      span.className = `by-${by}`;
      span.textContent = `${says} `;
      return span;
    }));
    if (shown.length) control?.setAttribute("aria-invalid", "true");
    else control?.removeAttribute("aria-invalid");
  }
}

/** Focus the element that an action has added or moved. */
function moveFocus(action) {
  const [verb, ...rest] = action.split("-");
  if (["submit", "check", "refresh"].includes(verb)) {
    const first = document.querySelector("#lint [data-finding]");
    if (verb === "submit" && first) notify("The template was not submitted.", "Fix the marked fields. The findings explain how.", "bad");
    if (verb !== "refresh" && first) return show(first.dataset.finding);
    return document.querySelector(verb === "check" ? "#lint" : "#editor-said")?.scrollIntoView({ block: "center" });
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
  const used = [...area.value.matchAll(/\{\{(\d+)\}\}/g)].map((match) => Number(match[1]));
  area.focus();
  area.setRangeText(`{{${Math.max(0, ...used) + 1}}}`, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Show the name of the language whose code was typed, and replace a typed name by its code once it is complete. */
function nameLanguage(event) {
  const field = event.target, shown = document.querySelector("[data-language-name]");
  const options = [...document.querySelectorAll("#languages option")];
  const typed = field.value.trim().toLowerCase();
  const found = options.find((one) => one.value.toLowerCase() === typed || one.label.toLowerCase() === typed);
  shown.textContent = found ? found.label : "Type a language or its code.";
  if (found && event.type === "change") field.value = found.value;
}

syncForm();
