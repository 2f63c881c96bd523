// The command palette: pages, actions and settings, saved filters, templates and phones by name, people, and messages
// by number, id or text. People and messages are searched for on the server while the user types.
import { confirmAction } from "./confirmation.js";
import { savedFilters } from "./filters.js";
import { send } from "./quiet.js";

const MAX_ITEMS = 12;
const SEARCH_AFTER_MS = 150;
const isId = /^wamid\.|^[0-9a-f]{8}-[0-9a-f-]{27}$|^[A-Z]{2}\.[A-Za-z0-9.]*\d/;
let offered = [];
let shown = [];
let chosen = 0;
let found = []; // on the server, for the text in the field
let waiting = 0;
let byHand = false; // selected with the arrow keys, not just the first

export async function openPalette() {
  const dialog = document.getElementById("palette");
  if (!dialog || dialog.open) return;
  const field = dialog.querySelector("input");
  field.value = "";
  found = [];
  byHand = false;
  dialog.showModal();
  if (!dialog.dataset.bound) bind(dialog, field);
  if (!offered.length) offered = pages();
  show(dialog, "");
  offered = await commands();
  show(dialog, field.value, byHand ? shown[chosen] : null);
}

function pages() {
  return [...document.querySelectorAll("a[data-command]")].map((link) => ({
    name: link.dataset.command, hint: "Page", path: link.getAttribute("href") }));
}

async function commands() {
  try {
    const response = await fetch("/commands");
    return response.ok ? [...pages(), ...filters(), ...(await response.json()).commands] : pages();
  } catch {
    return pages();
  }
}

function filters() {
  const partner = document.body.dataset.partner;
  return savedFilters(partner).map(({ name, path, query }) => ({ name, hint: "Saved filter", path: `${path}?${query}` }));
}

/** Search for people and messages on the server; a response to an older text is discarded. */
async function search(dialog, field) {
  const text = field.value.trim();
  const response = await fetch(`/commands/search?q=${encodeURIComponent(text)}`).catch(() => null);
  if (!response?.ok || field.value.trim() !== text) return;
  found = (await response.json()).commands;
  show(dialog, field.value, byHand ? shown[chosen] : null);
}

function bind(dialog, field) {
  dialog.dataset.bound = "yes";
  field.addEventListener("input", () => {
    byHand = false;
    found = [];
    clearTimeout(waiting);
    if (field.value.trim().length > 1) waiting = setTimeout(() => search(dialog, field), SEARCH_AFTER_MS);
    show(dialog, field.value);
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      byHand = true;
      choose(dialog, chosen + step);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      follow(dialog, shown[chosen]);
    }
  });
  dialog.addEventListener("click", (event) => {
    const item = event.target.closest("li[data-nth]");
    if (item) follow(dialog, shown[Number(item.dataset.nth)]);
    if (event.target === dialog) dialog.close();
  });
}

// A selection by the user is kept while more items arrive.
function show(dialog, text, kept = null) {
  const digits = digitsOf(text);
  const words = digits.length > 2 ? [digits] : text.toLowerCase().split(/\s+/).filter(Boolean);
  shown = matches(words).slice(0, found.length ? MAX_ITEMS - 4 : MAX_ITEMS);
  shown.push(...found.filter(({ path }) => shown.every((one) => one.path !== path)));
  shown.push(...directItems(text.trim(), digits).filter(({ path }) => shown.every((one) => one.path !== path)));
  dialog.querySelector("ul").replaceChildren(...shown.map((one, nth) => {
    const item = document.createElement("li");
    item.id = `place-${nth}`;
    item.role = "option";
    item.dataset.nth = nth;
    const name = document.createElement("span");
    name.textContent = one.name;
    const hint = document.createElement("small");
    hint.textContent = one.hint;
    item.append(name, hint);
    return item;
  }));
  choose(dialog, Math.max(0, shown.findIndex((one) => one.name === kept?.name && one.path === kept?.path)));
}

// All words must match; names that begin with the first word come first.
function matches(words) {
  const rank = ({ name }) => {
    const at = name.toLowerCase().indexOf(words[0] ?? "");
    return at === 0 ? 0 : at > 0 ? 1 : 2;
  };
  return offered
    .filter((one) => words.every((word) => `${one.name} ${one.hint}`.toLowerCase().includes(word)))
    .sort((one, other) => rank(one) - rank(other));
}

// Return the digits of a phone number; empty for other texts.
function digitsOf(text) {
  const digits = text.replace(/[\s+().-]/g, "");
  return /^\d*$/.test(digits) ? digits : "";
}

function directItems(text, digits) {
  const items = [];
  const path = (name) => document.querySelector(`a[data-command='${name}']`)?.getAttribute("href");
  if (text && path("Messages")) {
    const field = digits || isId.test(text) ? "q" : "text";
    items.push({ name: `Messages: ${text}`, hint: "Search", path: `${path("Messages")}?${field}=${encodeURIComponent(text)}` });
  }
  if (/^\d{8,15}$/.test(digits) && path("Phones")) {
    items.push({ name: `Phone +${digits}`, hint: "Open", path: `${path("Phones")}?show=${digits}` });
  }
  return items;
}

function choose(dialog, at) {
  const items = [...dialog.querySelectorAll("li")];
  chosen = items.length ? (at + items.length) % items.length : 0;
  items.forEach((item, nth) => { item.ariaSelected = String(nth === chosen); });
  items[chosen]?.scrollIntoView({ block: "nearest" });
  dialog.querySelector("input").setAttribute("aria-activedescendant", items[chosen]?.id ?? "");
}

async function follow(dialog, one) {
  if (!one) return;
  if (!one.posts) return location.assign(one.path);
  if (one.confirmation && !(await confirmAction(one.confirmation, one.name))) return;
  dialog.close();
  if (one.stays) return send(one.path, new URLSearchParams(one.posts));
  submit(one.path, { ...one.posts, next: location.pathname + location.search });
}

// Submit like a form of the page: the browser follows the redirect.
function submit(path, fields) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = path;
  form.hidden = true;
  for (const [name, value] of Object.entries({ ...fields, csrf: document.body.dataset.csrf })) {
    const input = document.createElement("input");
    input.type = "hidden";
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}
