// Keeps an open page up to date from its stream: <body data-live="/…/live">. A page in the background lets
// go of its stream, because a browser keeps six connections to one service; it catches up when it is seen again.
import { morph } from "./morph.js";
import { readClock, showTimes } from "./times.js";

let source = null;

export function goLive() {
  document.addEventListener("visibilitychange", connect);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", connect);
  connect();
}

/** Look at something else from now on: its address, or the page's own once more. */
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
    away("");
    put(JSON.parse(event.data));
  });
  source.addEventListener("past", (event) => JSON.parse(event.data).forEach(remove));
  source.addEventListener("go", (event) => location.assign(JSON.parse(event.data).to));
  source.addEventListener("away", (event) => away(JSON.parse(event.data).why));
  source.addEventListener("open", () => away(""));
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) setTimeout(again, 3000);
    away("Not connected; trying again");
  });
}

/** A stream says nothing about why it was refused; where the person is signed out, lead to the sign-in. */
async function again() {
  const answer = await fetch("/commands").catch(() => null);
  if (answer?.status === 401) return location.reload();
  connect();
}

function away(why) {
  const shown = document.getElementById("shell-away");
  if (!shown) return;
  shown.textContent = why;
  shown.hidden = !why;
}

/** Put pieces of a page where they belong. */
export function put(pieces) {
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
  const gone = document.getElementById(id);
  if (gone && !gone.parentElement.hasAttribute("data-keeps")) gone.remove();
}

function element(html) {
  const box = document.createElement("template");
  box.innerHTML = html; // made by our templates, which escape what they are given
  return box.content.firstElementChild;
}
