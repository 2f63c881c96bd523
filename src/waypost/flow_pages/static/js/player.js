// Plays a Flow: posts what a person does in an element [data-player], one step after the other, and shows the view that
// comes back. Its page may show more, such as a log: the response has an element for each.
import { morph } from "./morph.js";

const FILL_AFTER_MS = 250;
const MAX_LOGGED = 200;
const waiting = new Map(); // by control: the timer after which its text is posted
const queued = new WeakMap(); // by player: how many of its steps have no response yet
let steps = Promise.resolve();

document.addEventListener("input", (event) => {
  const control = event.target.closest("[data-player] [data-fill]");
  if (!control || !isText(control)) return;
  clearTimeout(waiting.get(control));
  waiting.set(control, setTimeout(() => fill(control), FILL_AFTER_MS));
});

document.addEventListener("change", (event) => {
  const control = event.target.closest("[data-player] :is([data-fill], [data-upload])");
  if (control?.dataset.upload) return upload(control);
  if (control && (!isText(control) || waiting.has(control))) fill(control);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-player] [data-step]");
  if (button) press(button);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || !event.target.matches("[data-player] input:not([type=checkbox], [type=radio], [type=file])")) return;
  event.preventDefault();
  const footer = event.target.closest("[data-player]").querySelector("[data-footer]");
  if (footer) press(footer);
});

document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-player] form")) event.preventDefault();
});

document.addEventListener("waypost:step", (event) => step(event.target, event.detail));
document.querySelectorAll("[data-player]").forEach(dress);
document.querySelectorAll("[data-player][data-opens]").forEach((player) => step(player, { step: "open" }));

/** Show the elements of a response of the server. */
export function showPlayer(pieces) {
  for (const piece of pieces) {
    const box = document.createElement("template");
    box.innerHTML = piece.html; // rendered by our own templates, which escape their values
    const old = document.getElementById(piece.id), made = box.content.firstElementChild;
    if (!old || !made) continue;
    const before = old.dataset.screenId, wasIn = old.contains(document.activeElement);
    const shown = morph(old, made);
    if (!shown.matches("[data-player]")) continue;
    dress(shown);
    if (wasIn && (before !== shown.dataset.screenId || !shown.contains(document.activeElement))) shown.querySelector("[data-title]").focus();
  }
}

/** Post a step after those before it; the next view is shown. Return true if it was allowed. */
export function step(player, fields, files = []) {
  queued.set(player, (queued.get(player) ?? 0) + 1);
  steps = steps.then(() => post(player, fields, files));
  return steps;
}

function isText(control) {
  return control.matches("textarea, input:not([type=checkbox], [type=radio], [type=date])");
}

function fill(control) {
  clearTimeout(waiting.get(control));
  waiting.delete(control);
  step(control.closest("[data-player]"), { step: "fill", name: control.dataset.fill, value: JSON.stringify(valueOf(control)) });
}

function valueOf(control) {
  const all = (control.form ?? document).querySelectorAll(`[data-fill="${CSS.escape(control.dataset.fill)}"]`);
  switch (control.dataset.as) {
    case "flag": return control.checked;
    case "list": return [...all].filter((one) => one.checked).map((one) => one.value);
    case "range": return Object.fromEntries([...all].filter((one) => one.value).map((one) => [one.dataset.end, one.value]));
    default: return control.value;
  }
}

function press(button) {
  const player = button.closest("[data-player]");
  for (const control of [...waiting.keys()]) if (player.contains(control)) fill(control);
  const { step: name, target = "", name: input = "", mediaId = "" } = button.dataset;
  const fields = { step: name, target, name: input, media_id: mediaId };
  step(player, fields);
}

async function upload(control) {
  const player = control.closest("[data-player]");
  for (const file of [...control.files]) await step(player, { step: "upload", name: control.dataset.upload }, [file]);
  control.value = "";
}

async function post(player, fields, files) {
  const body = files.length ? new FormData() : new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  for (const file of files) body.append("file", file);
  player.setAttribute("aria-busy", "true");
  try {
    const headers = { "X-Waypost-Quiet": "1", "X-Waypost-Csrf": document.body.dataset.csrf ?? "" };
    const response = await fetch(player.dataset.steps, { method: "POST", body, headers });
    const data = await response.json();
    const isLast = queued.get(player) === 1; // else the next view is newer: this one would undo what was entered since
    if (data.pieces && isLast) showPlayer(data.pieces);
    if (data.log) record(data.log);
    if (!response.ok || data.message) say(player, `${data.message ?? "The step failed."} ${data.hint ?? ""}`);
    if (response.ok) player.dispatchEvent(new CustomEvent("waypost:played", { bubbles: true, detail: data }));
    if (data.rejected) player.querySelector("[aria-invalid=true], [data-invalid] input, .is-wrong input")?.focus();
    return response.ok && !data.rejected;
  } catch {
    say(player, "The service is not responding. Check that it is running, then try again.");
    return false;
  } finally {
    queued.set(player, queued.get(player) - 1);
    if (player.dataset.state !== "busy") player.removeAttribute("aria-busy");
    if (!queued.get(player)) reset(player);
  }
}

/** Add what a step has caused to the log, if the page has one: the newest at the end, so many at most. */
function record(html) {
  const log = document.querySelector("[data-player-log]");
  if (!log) return;
  log.insertAdjacentHTML("beforeend", html); // rendered by our own template, which escapes its values
  while (log.children.length > MAX_LOGGED) log.firstElementChild.remove();
  log.scrollTop = log.scrollHeight;
}

function say(player, text) {
  const bar = player.querySelector("[data-snackbar]");
  if (bar) bar.textContent = text.trim();
}

/** Set boxes and lists to what the server has rendered: it may not have accepted the last change. */
function reset(player) {
  for (const box of player.querySelectorAll("[data-fill]:is([type=checkbox], [type=radio])")) box.checked = box.hasAttribute("checked");
  for (const list of player.querySelectorAll("select[data-fill]")) list.value = list.querySelector("option[selected]")?.value ?? "";
}

/** Show what a strict policy keeps out of the markup: pictures in base64, colours and shapes. */
function dress(player) {
  for (const image of player.querySelectorAll("img[data-picture]")) {
    if (image.shown === image.dataset.picture) continue;
    if (image.src.startsWith("blob:")) URL.revokeObjectURL(image.src);
    image.shown = image.dataset.picture;
    const blob = decode(image.shown);
    image.hidden = !blob;
    if (blob) image.src = URL.createObjectURL(blob);
    const { aspectRatio = "", width, height } = image.dataset;
    const [across, down = "1"] = aspectRatio.split(":");
    if (Number(across) > 0 && Number(down) > 0) image.style.aspectRatio = `${across} / ${down}`;
    if (Number(width) > 0) image.style.width = `${width}px`;
    if (Number(height) > 0) image.style.height = `${height}px`;
  }
  for (const sign of player.querySelectorAll("[data-color]")) sign.style.backgroundColor = sign.dataset.color;
}

function decode(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replace(/^data:[^,]*,/, "")), (sign) => sign.charCodeAt(0));
    const type = { 137: "image/png", 255: "image/jpeg", 82: "image/webp" }[bytes[0]];
    return type ? new Blob([bytes], { type }) : null;
  } catch {
    return null;
  }
}
