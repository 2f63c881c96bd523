// Keeps an open page up to date from its event stream: <body data-live="/…/live">. A page in the background
// closes its stream, because a browser allows six connections per service; it reconnects when visible again.
import { morph } from "./morph.js";
import { readClock, showTimes } from "./times.js";

let source = null;

export function goLive() {
  document.addEventListener("visibilitychange", connect);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", connect);
  connect();
}

/** Switch to the stream of another URL. */
export function watch(address) {
  document.body.dataset.live = address;
  close();
  connect();
}

function close() {
  source?.close();
  source = null;
}

function connect() {
  const address = document.body.dataset.live;
  if (!address || document.visibilityState !== "visible") return close();
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource(address);
  source.addEventListener("pieces", (event) => {
    showConnection("");
    put(JSON.parse(event.data));
  });
  source.addEventListener("past", (event) => JSON.parse(event.data).forEach(remove));
  source.addEventListener("go", (event) => location.assign(JSON.parse(event.data).to));
  source.addEventListener("away", (event) => showConnection(JSON.parse(event.data).why));
  source.addEventListener("open", () => showConnection(""));
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) setTimeout(reconnect, 3000);
    showConnection("Connection lost. Reconnecting…");
  });
}

/** A stream does not report why it was rejected; if the user is signed out, reload for the sign-in form. */
async function reconnect() {
  const response = await fetch("/commands").catch(() => null);
  if (response?.status === 401) return location.reload();
  connect();
}

function showConnection(problem) {
  const shown = document.getElementById("shell-away");
  if (!shown) return;
  shown.textContent = problem;
  shown.hidden = !problem;
}

/** Replace, add or remove page elements. */
export function put(pieces) {
  const focused = document.activeElement;
  const { selectionStart, selectionEnd } = focused;
  for (const piece of pieces) {
    const made = element(piece.html);
    const old = document.getElementById(piece.id);
    if (!made) {
      old?.remove();
    } else if (old) {
      morph(old, made);
    } else if (piece.into) {
      add(made, document.getElementById(piece.into), piece.at);
    }
  }
  if (!focused.isConnected && focused.id) { // made anew, because others came before it: the user may be typing
    const made = document.getElementById(focused.id);
    made?.focus({ preventScroll: true });
    if (selectionStart != null) made?.setSelectionRange?.(selectionStart, selectionEnd);
  }
  readClock();
  showTimes();
  document.dispatchEvent(new CustomEvent("waypost:put", { detail: pieces }));
}

function add(made, into, at) {
  if (!into) return;
  made.classList.add("is-new");
  const isAtEnd = into.scrollHeight - into.scrollTop - into.clientHeight < 80;
  if (at === "start") into.prepend(made);
  else into.append(made);
  into.querySelector(":scope > [data-nothing]")?.remove();
  const most = Number(into.dataset.atMost ?? Infinity);
  while (into.children.length > most) (at === "start" ? into.lastElementChild : into.firstElementChild).remove();
  if (at === "end" && isAtEnd && into.dataset.follow !== undefined) into.scrollTop = into.scrollHeight;
}

function remove(id) {
  const element = document.getElementById(id);
  if (element && !element.parentElement.hasAttribute("data-keeps")) element.remove();
}

function element(html) {
  const box = document.createElement("template");
  box.innerHTML = html; // rendered by our own templates, which escape their values
  return box.content.firstElementChild;
}
