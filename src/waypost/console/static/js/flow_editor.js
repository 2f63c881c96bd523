// The editor of a Flow: checks the text while it is typed, marks its lines, saves and publishes it, and plays it on the
// phone beside it as soon as it has no errors: on the screen that was shown, if it is still there.
import { put } from "./live.js";
import { step } from "./player.js";
import { notify, send } from "./quiet.js";

const CHECK_AFTER_MS = 300;
const form = document.getElementById("flow-form");
const text = document.getElementById("flow-text");
const gutter = document.getElementById("flow-lines");
const place = document.getElementById("flow-place");
let marks = { errors: new Set(numbers(text.dataset.errors)), warnings: new Set(numbers(text.dataset.warnings)) };
let lineCount = 1;
let saved = text.value;
let playable = marks.errors.size ? "" : text.value; // the last text without errors
let edition = 0;
let waiting = 0;
let isChecking = false;

text.addEventListener("input", () => {
  edition += 1;
  measure();
  clearTimeout(waiting);
  waiting = setTimeout(check, CHECK_AFTER_MS);
});
text.addEventListener("scroll", draw);
document.addEventListener("selectionchange", showPlace);
new ResizeObserver(draw).observe(text);

document.addEventListener("click", (event) => {
  const found = event.target.closest("[data-line]");
  if (found) {
    event.preventDefault();
    go(found.dataset);
  }
  const act = event.target.closest("[data-flow-act]");
  if (act) change(act);
  if (event.target.closest("[data-flow-restart]")) play();
  if (event.target.closest("[data-flow-format]")) format();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  const save = document.querySelector('[data-flow-act="save"]');
  if (!save) return;
  event.preventDefault();
  if (!save.disabled) change(save);
});

window.addEventListener("beforeunload", (event) => {
  if (text.value !== saved) event.preventDefault();
});

document.getElementById("flow-action")?.addEventListener("change", () => play());

measure();
showPlace();
if (playable) play();

function preview() {
  return document.getElementById("flow-preview");
}

/** Open the last text without errors in the preview, on a screen if the text has it. */
function play(screen = "") {
  const player = preview();
  if (!player || !playable) return;
  const action = document.getElementById("flow-action").value;
  const opening = { step: "open", flow_action: action, flow_token: document.getElementById("flow-token").value };
  const isThere = action === "navigate" && playable.includes(`"${screen}"`);
  step(player, isThere ? { ...opening, screen } : opening, [new File([playable], "flow.json", { type: "application/json" })]);
}

function numbers(list) {
  return list ? list.split(" ").map(Number) : [];
}

function body() {
  const fields = new FormData();
  fields.append("file", new Blob([text.value], { type: "application/json" }), "flow.json");
  return fields;
}

/** Check the text, one request at a time; the answer to an older text is followed by one to the newest. */
async function check() {
  if (isChecking) return;
  isChecking = true;
  const sent = edition, checked = text.value;
  try {
    const headers = { "X-Waypost-Quiet": "1", "X-Waypost-Csrf": document.body.dataset.csrf };
    const response = await fetch(form.dataset.check, { method: "POST", headers, body: body() });
    const data = await response.json();
    if (response.status === 429) waiting = setTimeout(check, 1000);
    else if (!response.ok) notify(data.message, data.hint ?? "", "bad");
    else show({ ...data, text: checked });
  } catch {
    notify("The text could not be checked.", "Check that the service is running, then type on.", "bad");
  } finally {
    isChecking = false;
  }
  if (sent !== edition) check();
}

function show(data) {
  put(data.pieces);
  if (!data.errors) return;
  marks = { errors: new Set(data.errors), warnings: new Set(data.warnings) };
  draw();
  if (data.errors.length) return;
  playable = data.text;
  play(preview()?.dataset.screenId);
}

async function change(button) {
  const sent = text.value;
  button.disabled = true;
  const response = await send(`${form.dataset.flow}/${button.dataset.flowAct}`, body(), form);
  button.disabled = false;
  const rejection = document.querySelector("#flow-said .notice");
  if (!response?.ok) return;
  if (rejection) rejection.scrollIntoView({ block: "nearest" });
  else saved = sent;
}

/** Give each member a line of its own. Only spaces change, so a text with errors or double members can be formatted, too. */
function format() {
  const isMark = (token) => /^[{}[\],:]$/.test(token);
  let depth = 0, formatted = "", before = "";
  for (const [token] of text.value.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    const closes = token === "}" || token === "]", opens = before === "{" || before === "[";
    if (closes) depth = Math.max(0, depth - 1);
    if (before === ":" || (before && !isMark(before) && !isMark(token))) formatted += " ";
    else if (before && ((closes && !opens) || before === "," || (opens && !closes))) formatted += `\n${"  ".repeat(depth)}`;
    if (token === "{" || token === "[") depth += 1;
    formatted += before = token;
  }
  if (formatted === text.value.trim()) return;
  text.value = `${formatted}\n`;
  text.dispatchEvent(new Event("input"));
}

function measure() {
  lineCount = 1;
  for (let at = text.value.indexOf("\n"); at >= 0; at = text.value.indexOf("\n", at + 1)) lineCount += 1;
  draw();
}

/** Show the numbers of the lines in sight only: a text may have a hundred thousand. */
function draw() {
  const row = parseFloat(getComputedStyle(text).lineHeight);
  const first = Math.floor(text.scrollTop / row);
  const last = Math.min(lineCount, first + Math.ceil(text.clientHeight / row) + 1);
  gutter.style.minWidth = `${String(lineCount).length + 2}ch`;
  gutter.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, at) => {
    const line = first + at + 1;
    const number = document.createElement("span");
    number.textContent = String(line);
    number.style.top = `${(line - 1) * row - text.scrollTop}px`;
    if (marks.errors.has(line)) number.className = "is-error";
    else if (marks.warnings.has(line)) number.className = "is-warning";
    return number;
  }));
}

function showPlace() {
  if (document.activeElement !== text) return;
  const before = text.value.slice(0, text.selectionStart);
  const line = before.split("\n").length;
  const shown = `Line ${line}, column ${before.length - before.lastIndexOf("\n")}`;
  if (place.textContent !== shown) place.textContent = shown;
}

/** Select what a diagnostic is about, and bring its line into sight. */
function go(found) {
  const start = offset(Number(found.line), Number(found.column));
  const end = Math.max(start, offset(Number(found.lineEnd), Number(found.columnEnd) + 1));
  text.focus();
  text.setSelectionRange(start, end);
  const row = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, (Number(found.line) - 1) * row - text.clientHeight / 3);
  text.scrollLeft = 0;
}

/** The server counts characters, as Python does; a text of the browser has two units for some of them. */
function offset(line, column) {
  let at = 0;
  for (let passed = 1; passed < line; passed += 1) {
    const next = text.value.indexOf("\n", at);
    if (next < 0) return text.value.length;
    at = next + 1;
  }
  const end = text.value.indexOf("\n", at);
  const whole = text.value.slice(at, end < 0 ? undefined : end);
  return at + [...whole].slice(0, column - 1).join("").length;
}
