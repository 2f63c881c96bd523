// Simulated phones: chats open in place, Enter sends the text, visible messages are marked as read.
import { put, watch } from "./live.js";
import { send } from "./quiet.js";
import { now, timeZone } from "./times.js";

const READS = "waypost-reads";
const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric", timeZone });
const following = new WeakMap(); // lists scrolled to their end, which follow new messages
const heights = new WeakMap(); // content height of a list when it was last followed
const sized = new WeakSet();
const resized = new ResizeObserver((entries) => entries.forEach((entry) => follow(entry.target)));
const reading = new Set(); // messages that are being marked as read

document.addEventListener("click", (event) => {
  closeMenus(event);
  const target = event.target.closest("[data-view], [data-opens], [data-closes], [data-reply], [data-react], [data-edit], [data-unquote], [data-older], [data-place]");
  if (!target) return;
  if (target.matches("[data-view]")) return view(event, target);
  if (target.matches("[data-opens]")) document.getElementById(target.dataset.opens)?.showModal();
  else if (target.matches("[data-closes]")) target.closest("dialog").close();
  else if (target.matches("[data-reply]")) quote(target.closest(".entry"));
  else if (target.matches("[data-react]")) react(target);
  else if (target.matches("[data-edit]")) edit(target);
  else if (target.matches("[data-unquote]")) unquote(target.closest("form"));
  else if (target.matches("[data-older]")) older(target);
  else if (target.matches("[data-place]")) fill(target);
});

document.addEventListener("keydown", (event) => {
  if (event.target.matches("[data-composer] textarea")) return type(event);
  if (event.key === "Escape") return escape(event);
  if (event.target.matches("[data-own-emoji]") && event.key === "Enter") {
    event.preventDefault();
    event.target.form.querySelector("[data-own-send]").click();
  }
  if (event.target.matches(".entry, [data-items]") && !event.ctrlKey && !event.metaKey && !event.altKey) walk(event);
});

document.addEventListener("input", (event) => {
  if (event.target.matches("[data-own-emoji]")) event.target.form.querySelector("[data-own-send]").value = event.target.value;
  if (event.target.matches("[data-find] input")) find(event.target.value);
});

// Media and other content is a reply, or forwarded, as set in the composer.
document.addEventListener("formdata", (event) => {
  if (!event.target.matches("[data-along]")) return;
  const composer = event.target.closest("[data-phone]").querySelector("[data-composer]");
  for (const name of ["context_id", "send_as"]) event.formData.set(name, composer.elements[name]?.value ?? "");
}, true);

// A file that is dropped or pasted on a handset opens the dialog for files.
for (const kind of ["dragover", "drop", "paste"]) {
  document.addEventListener(kind, (event) => {
    const phone = event.target.closest?.("[data-phone][data-chat]");
    const transfer = event.dataTransfer ?? event.clipboardData;
    if (!phone || !transfer || ![...transfer.types].includes("Files")) return;
    event.preventDefault();
    if (kind === "dragover" || !transfer.files.length) return;
    const sheet = document.getElementById(`file-${phone.dataset.phone}`);
    sheet.querySelector("[type='file']").files = transfer.files;
    if (!sheet.open) sheet.showModal();
    sheet.querySelector("[name='caption']").focus();
  });
}

document.addEventListener("waypost:done", (event) => {
  const form = event.target;
  if (form.matches(".reactions:popover-open")) form.hidePopover();
  form.closest("details[data-menu-box]")?.removeAttribute("open");
  const phone = form.closest("[data-phone]");
  if (!form.matches("[data-composer], [data-along]") || !phone) return;
  form.closest("dialog")?.close();
  const composer = phone.querySelector("[data-composer]");
  if (form === composer) composer.elements.text.value = "";
  composer.querySelector("details")?.removeAttribute("open");
  if (composer.elements.send_as) composer.elements.send_as.value = "";
  unquote(composer);
  const items = phone.querySelector("[data-items]");
  if (items) following.set(items, true);
});

document.addEventListener("scrollend", readVisible, true);
document.addEventListener("scroll", (event) => {
  if (!event.target.matches?.("[data-items]")) return;
  const items = event.target;
  if (heights.get(items) !== items.scrollHeight) return follow(items); // it grew: the user has not scrolled
  following.set(items, items.scrollHeight - items.scrollTop - items.clientHeight < 60);
}, true);
document.addEventListener("load", (event) => follow(event.target.closest?.("[data-items]")), true);
document.addEventListener("loadedmetadata", (event) => follow(event.target.closest?.("[data-items]")), true);
document.addEventListener("waypost:put", refresh);
document.addEventListener("visibilitychange", readVisible);

const reads = document.querySelector("[data-reads]");
if (reads) {
  reads.checked = localStorage.getItem(READS) !== "no";
  reads.addEventListener("change", () => {
    localStorage.setItem(READS, reads.checked ? "yes" : "no");
    readVisible();
  });
}
let shown = location.search;
window.addEventListener("popstate", () => {
  if (location.search !== shown) location.reload(); // another chat; a hash only selects another handset
});
toEnds();
refresh();
markTabs();
setInterval(tick, 1000);

/** After every update: days between messages, clocks, scroll positions, and read marks. */
function refresh() {
  for (const items of document.querySelectorAll("[data-items]")) {
    days(items);
    tabStop(items);
    follow(items);
    if (!sized.has(items)) resized.observe(items);
    sized.add(items);
  }
  tick();
  readVisible();
}

function tick() {
  const text = hour.format(now());
  for (const clock of document.querySelectorAll("[data-handset-clock] time")) if (clock.textContent !== text) clock.textContent = text;
}

function toEnds() {
  for (const items of document.querySelectorAll("[data-items]")) {
    following.set(items, true);
    items.scrollTop = items.scrollHeight;
  }
}

function follow(items) {
  if (!items) return;
  heights.set(items, items.scrollHeight);
  if (following.get(items) !== false) items.scrollTop = items.scrollHeight;
}

function days(items) {
  let before = "";
  const today = date.format(now()), yesterday = date.format(now() - 86_400_000);
  for (const entry of items.querySelectorAll(":scope > .entry")) {
    const day = date.format(Number(entry.dataset.cameMs));
    const shown = day === before ? undefined : day === today ? "Today" : day === yesterday ? "Yesterday" : day;
    before = day;
    if (entry.dataset.day === shown) continue;
    if (shown === undefined) delete entry.dataset.day;
    else entry.dataset.day = shown;
  }
}

/** One message can be reached with Tab: the newest, or the one last focused with the arrow keys. */
function tabStop(items) {
  const stops = items.querySelectorAll(".entry[tabindex='0']");
  const last = items.querySelector(":scope > .entry:last-of-type");
  if (stops.length === 1 && stops[0].contains(document.activeElement)) return;
  for (const stop of stops) if (stop !== last) stop.tabIndex = -1;
  if (last) last.tabIndex = 0;
}

function walk(event) {
  const entry = event.target.closest(".entry");
  const key = event.key.toLowerCase();
  if (entry && /^[a-z]$/.test(key)) {
    const tool = entry.querySelector(`.tool[aria-keyshortcuts="${key}"]`);
    if (tool) return press(event, tool);
  }
  const step = { arrowup: -1, k: -1, arrowdown: 1, j: 1 }[key];
  if (!step && key !== "home" && key !== "end") return;
  const items = event.target.closest("[data-items]");
  const all = [...items.querySelectorAll(":scope > .entry")];
  const at = all.indexOf(entry);
  const next = key === "home" ? all[0] : key === "end" ? all.at(-1) : at < 0 ? all.at(-1) : all[at + step];
  event.preventDefault();
  event.stopPropagation();
  if (!next) return;
  for (const stop of items.querySelectorAll(".entry[tabindex='0']")) stop.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function press(event, tool) {
  event.preventDefault();
  event.stopPropagation();
  tool.click();
}

function type(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (event.target.value.trim()) event.target.form.requestSubmit(event.target.form.querySelector(".send"));
  } else if (event.key === "Escape") {
    unquote(event.target.form);
  } else if (event.key === "ArrowUp" && !event.target.value) {
    const last = event.target.closest("[data-phone]").querySelector(".entry[tabindex='0']");
    if (!last) return;
    event.preventDefault();
    last.focus();
  }
}

function escape(event) {
  const open = event.target.closest?.("details[data-menu-box][open], details.adder[open]");
  if (open) {
    open.removeAttribute("open");
    open.querySelector("summary").focus();
  } else if (event.target.matches?.(".entry, .entry *")) {
    event.target.closest("[data-phone]").querySelector("[data-composer] textarea")?.focus();
  }
}

function closeMenus(event) {
  for (const open of document.querySelectorAll("details[data-menu-box][open], details.adder[open]")) {
    if (!open.contains(event.target) || event.target.closest("[data-opens]")) open.removeAttribute("open");
  }
}

function quote(entry) {
  const form = entry.closest("[data-phone]").querySelector("[data-composer]");
  unquote(form);
  form.elements.context_id.value = entry.dataset.wamid;
  form.querySelector("[data-quoted]").textContent = entry.querySelector("[data-reply]").dataset.reply;
  form.querySelector("[data-quoting]").hidden = false;
  form.elements.text.focus();
}

/** Edit a message of the business's own phone: the composer sends the new text. */
function edit(button) {
  const form = button.closest("[data-phone]").querySelector("[data-composer]");
  form.elements.context_id.value = "";
  form.dataset.sendsTo ??= form.getAttribute("action");
  form.action = button.dataset.edit;
  form.elements.text.value = button.dataset.text;
  form.querySelector("[data-quoted]").textContent = button.dataset.text;
  nameQuote(form, "editLabel");
  form.querySelector("[data-quoting]").hidden = false;
  form.elements.text.focus();
}

function nameQuote(form, label) {
  const what = form.querySelector("[data-quoting-what]");
  if (what) what.textContent = what.dataset[label];
}

function unquote(form) {
  form.elements.context_id.value = "";
  if (form.dataset.sendsTo && form.getAttribute("action") !== form.dataset.sendsTo) {
    form.setAttribute("action", form.dataset.sendsTo);
    form.elements.text.value = "";
  }
  nameQuote(form, "replyLabel");
  form.querySelector("[data-quoting]").hidden = true;
}

function react(button) {
  const form = document.getElementById("reactions");
  form.action = button.dataset.react;
  const mine = button.dataset.reacted;
  form.querySelector("[data-no-reaction]").hidden = !mine;
  for (const choice of form.querySelectorAll("button[value]")) choice.classList.toggle("is-on", Boolean(mine) && choice.value === mine);
  form.querySelector("[data-own-emoji]").value = "";
  form.showPopover();
  const box = button.getBoundingClientRect();
  form.style.position = "fixed";
  form.style.left = `${Math.max(8, Math.min(box.left - 40, window.innerWidth - form.offsetWidth - 8))}px`;
  form.style.top = `${Math.max(8, box.top - form.offsetHeight - 6)}px`;
  form.style.right = "auto";
  form.style.bottom = "auto";
  form.querySelector("button").focus();
}

/** Open another chat on one handset without reloading the page. */
async function view(event, link) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const target = new URL(link.href);
  const isKeyboard = event.detail === 0;
  const response = await fetch(`/phones/${link.dataset.view}/handset${target.search}`);
  if (!response.ok) return location.assign(link.href);
  const data = await response.json();
  history.pushState(null, "", data.address);
  shown = location.search;
  put(data.pieces);
  for (const other of document.querySelectorAll("a[data-view]")) updateLink(other, target, link.dataset.view);
  const phone = document.getElementById(`phone-${link.dataset.view}`);
  const items = phone.querySelector("[data-items]");
  if (items) items.scrollTop = items.scrollHeight;
  if (isKeyboard) phone.querySelector("[data-composer] textarea, .chats a")?.focus();
  watch(data.live);
}

/** Add this handset's new chat to the links of the other handsets. */
function updateLink(link, shown, moved) {
  if (link.dataset.view === moved) return;
  const address = new URL(link.href), phones = (address.searchParams.get("show") ?? "").split(",");
  const chats = (address.searchParams.get("chats") ?? "").split(",");
  const at = phones.indexOf(moved);
  const chat = (shown.searchParams.get("chats") ?? "").split(",")[(shown.searchParams.get("show") ?? "").split(",").indexOf(moved)];
  if (at < 0) return;
  const all = phones.map((_, place) => (place === at ? chat ?? "" : chats[place] ?? ""));
  link.setAttribute("href", `/phones?show=${phones.join(",")}&chats=${all.join(",")}`);
}

async function older(button) {
  const items = button.closest("[data-items]");
  button.disabled = true;
  const response = await fetch(`${items.dataset.olderAt}?before=${button.dataset.older}`);
  if (!response.ok) return (button.disabled = false);
  const data = await response.json();
  const box = document.createElement("template");
  box.innerHTML = data.html.join(""); // rendered by our own templates, which escape their values
  for (const entry of [...box.content.children]) if (document.getElementById(entry.id)) entry.remove();
  const heightBefore = items.scrollHeight - items.scrollTop;
  following.set(items, false);
  items.dataset.keeps = ""; // older messages stay from now on
  button.after(box.content);
  button.disabled = false;
  if (data.before) button.dataset.older = data.before;
  else items.dataset.all = "";
  document.dispatchEvent(new CustomEvent("waypost:put", { detail: [] }));
  items.scrollTop = items.scrollHeight - heightBefore;
}

function fill(button) {
  const form = button.closest("form");
  for (const [name, value] of Object.entries(JSON.parse(button.dataset.place))) form.elements[name].value = value;
}

/** Mark the messages of a visible chat as read, as on a real phone, unless the option is off. */
function readVisible() {
  if (document.visibilityState !== "visible" || !reads?.checked) return;
  for (const phone of document.querySelectorAll("[data-phone][data-chat]")) {
    if (phone.querySelector(".status.is-offline") || !isSeen(phone)) continue;
    const unread = [...phone.querySelectorAll(".entry[data-unread]")].at(-1);
    if (!unread || reading.has(unread.id)) continue;
    reading.add(unread.id);
    const address = `/phones/${phone.dataset.phone}/items/${unread.dataset.position}/read`;
    send(address, new URLSearchParams()).then((response) => {
      if (response?.ok) setTimeout(() => reading.delete(unread.id), 1500);
    });
  }
}

function isSeen(phone) {
  const box = phone.getBoundingClientRect();
  return box.right > 8 && box.left < window.innerWidth - 8 && box.bottom > 8 && box.top < window.innerHeight - 8;
}

function find(text) {
  const query = text.trim().toLowerCase(), digits = query.replace(/[\s()+.-]/g, "");
  let shown = 0;
  for (const row of document.querySelectorAll("[data-found] > li")) {
    row.hidden = !(row.dataset.words.includes(query) || (/^\d+$/.test(digits) && row.dataset.words.includes(digits)));
    if (!row.hidden) shown += 1;
  }
  const none = document.querySelector("[data-found-none]");
  if (none) none.hidden = shown > 0;
}

document.querySelector("[data-find]")?.addEventListener("submit", (event) => {
  const field = event.target.elements.add;
  if (/^\+?[\d\s().-]{8,}$/.test(field.value.trim())) return;
  event.preventDefault();
  document.querySelector("[data-found] > li:not([hidden]) > a")?.click();
});

/** At phone width one handset fills the screen: mark its name in the tabs. */
function markTabs() {
  const stage = document.querySelector("[data-stage]");
  const tabs = [...document.querySelectorAll(".phone-tabs a")];
  if (!stage || !tabs.length) return;
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const tab of tabs) {
        if (tab.hash === `#${entry.target.id}`) tab.setAttribute("aria-current", "true");
        else tab.removeAttribute("aria-current");
      }
    }
  }, { root: stage, threshold: 0.6 });
  for (const phone of stage.querySelectorAll(".phone")) seen.observe(phone);
}
