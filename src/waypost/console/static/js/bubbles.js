// Behaviour of message bubbles: sheets over the handset, scrolling cards, expiring offers, long texts.
import { now } from "./times.js";

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-sheet], [data-close], [data-more], [data-scroll], .bubble-quote");
  if (event.target.matches(".bubble-sheet")) return clickBeside(event);
  if (!target) return;
  if (target.matches("[data-sheet]")) openSheet(target);
  else if (target.matches("[data-close]")) target.closest("dialog").close();
  else if (target.matches("[data-more]")) more(target);
  else if (target.matches("[data-scroll]")) scroll(target.parentElement.querySelector("[data-cards]"), Number(target.dataset.scroll));
  else showQuoted(event, target);
});

document.addEventListener("keydown", (event) => {
  if (!event.target.matches("[data-cards]")) return;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  scroll(event.target, step);
});

// A vertical wheel scrolls the cards; at their end it scrolls the page.
document.addEventListener("wheel", (event) => {
  const cards = event.target.closest?.("[data-cards]");
  if (!cards || event.deltaX || event.ctrlKey) return;
  const most = cards.scrollWidth - cards.clientWidth;
  const isAtEnd = event.deltaY > 0 ? cards.scrollLeft >= most - 1 : cards.scrollLeft <= 0;
  if (isAtEnd) return;
  event.preventDefault();
  cards.scrollBy({ left: event.deltaY });
}, { passive: false });

document.addEventListener("scroll", (event) => {
  if (event.target.matches?.("[data-cards]")) edges(event.target);
}, true);

document.addEventListener("waypost:done", (event) => event.target.closest(".bubble-sheet")?.close());

// The form's input is sent as one JSON text, in the field that the form names.
document.addEventListener("formdata", (event) => {
  const form = event.target;
  if (form.dataset.composes === "response") event.formData.set("response", JSON.stringify(flowResponse(form)));
  if (form.dataset.composes === "order") event.formData.set("order", JSON.stringify(order(form)));
}, true);

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-composes]");
  if (form) check(form);
});

document.addEventListener("waypost:put", refresh);
refresh();
setInterval(() => {
  if (document.visibilityState === "visible") countDown();
}, 1000);

function refresh() {
  for (const button of document.querySelectorAll("[data-more]")) name(button);
  for (const cards of document.querySelectorAll("[data-cards]")) edges(cards);
  countDown();
}

function countDown() {
  for (const offer of document.querySelectorAll("[data-until-ms]")) {
    const leftMs = Number(offer.dataset.untilMs) - now();
    const shown = offer.querySelector("[data-countdown]");
    const text = left(leftMs);
    if (shown.textContent !== text) shown.textContent = text;
    offer.classList.toggle("is-over", leftMs <= 0);
    offer.classList.toggle("is-soon", leftMs > 0 && leftMs < 3_600_000);
  }
}

function left(ms) {
  if (ms <= 0) return "Offer ended";
  const s = Math.floor(ms / 1000);
  const days = Math.floor(s / 86_400);
  const pad = (number) => String(number).padStart(2, "0");
  if (days > 1) return `Ends in ${days} days`;
  return `Ends in ${pad(Math.floor(s / 3600))}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`;
}

function openSheet(button) {
  const sheet = document.getElementById(button.dataset.sheet);
  if (!sheet) return;
  button.closest("dialog")?.close();
  const screen = button.closest("[data-screen]");
  sheet.classList.toggle("is-over-screen", Boolean(screen));
  if (screen) {
    const box = screen.getBoundingClientRect();
    sheet.style.left = `${box.left}px`;
    sheet.style.width = `${box.width}px`;
    sheet.style.top = "auto";
    sheet.style.bottom = `${Math.max(0, window.innerHeight - box.bottom)}px`;
    const corners = getComputedStyle(screen);
    sheet.style.borderBottomLeftRadius = corners.borderBottomLeftRadius;
    sheet.style.borderBottomRightRadius = corners.borderBottomRightRadius;
    sheet.style.maxHeight = `${Math.min(box.height, window.innerHeight) * 0.85}px`;
  }
  sheet.showModal();
  const form = sheet.querySelector("[data-flow]");
  if (form) fetchForm(form);
}

/** Load the flow's own form; if there is none, the user types names and values. */
async function fetchForm(place) {
  const path = `/phones/flows/${encodeURIComponent(place.dataset.flow)}`;
  const response = await fetch(path).catch(() => null);
  if (response?.status !== 200) return;
  place.innerHTML = await response.text(); // rendered by our own template, which escapes its values
  place.removeAttribute("data-flow");
  place.querySelector("input, select, textarea")?.focus();
}

function clickBeside(event) {
  const box = event.target.getBoundingClientRect();
  const isWithin = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
  if (!isWithin && event.clientX + event.clientY > 0) event.target.close();
}

function more(button) {
  const text = document.getElementById(button.dataset.more);
  const isOpen = text.toggleAttribute("data-open");
  button.setAttribute("aria-expanded", String(isOpen));
  name(button);
}

function name(button) {
  const text = button.getAttribute("aria-expanded") === "true" ? "Read less" : "Read more";
  if (button.textContent !== text) button.textContent = text;
}

function scroll(cards, step) {
  const card = cards.firstElementChild;
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  cards.scrollBy({ left: step * (card.offsetWidth + 8), behavior: isCalm ? "instant" : "smooth" });
}

/** Hide a scroll button at its end; move the focus from it to the cards. */
function edges(cards) {
  const most = cards.scrollWidth - cards.clientWidth;
  const [back, next] = cards.parentElement.querySelectorAll("[data-scroll]");
  for (const [button, isOver] of [[back, cards.scrollLeft <= 1], [next, cards.scrollLeft >= most - 1]]) {
    if (isOver && document.activeElement === button) cards.focus();
    button.hidden = isOver;
  }
}

function showQuoted(event, link) {
  const bubble = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  event.preventDefault(); // keep the page's URL
  if (!bubble) return;
  bubble.scrollIntoView({ block: "center" });
  bubble.classList.add("is-shown");
  setTimeout(() => bubble.classList.remove("is-shown"), 1500);
}

function flowResponse(form) {
  const whole = form.querySelector("[data-json]")?.value.trim();
  if (whole) return JSON.parse(whole);
  const values = {};
  for (const field of form.querySelectorAll("[data-field]")) {
    const { field: name, as } = field.dataset;
    if (as === "tick") values[name] = field.checked;
    else if (as === "several") (values[name] ??= []).push(...(field.checked ? [field.value] : []));
    else if (field.value) values[name] = field.value;
  }
  for (const pair of form.querySelectorAll("[data-pair]")) {
    const [name, value] = pair.querySelectorAll("input");
    if (name.value.trim()) values[name.value.trim()] = value.value;
  }
  return values;
}

function order(form) {
  const value = (name, within = form) => within.querySelector(`[data-part="${name}"]`)?.value.trim() ?? "";
  const items = [...form.querySelectorAll("[data-item]")].map((item) => ({
    product_retailer_id: item.dataset.item || value("id", item), quantity: Number(value("quantity", item)),
    item_price: Number(value("price", item)), currency: value("currency"),
  }));
  return { catalog_id: value("catalog"), text: value("text"), product_items: items.filter((one) => one.quantity > 0 && one.product_retailer_id) };
}

/** Validate the form before it is sent. */
function check(form) {
  const json = form.querySelector("[data-json]");
  if (json) {
    let error = "";
    try {
      const value = json.value.trim() ? JSON.parse(json.value) : {};
      if (typeof value !== "object" || value === null || Array.isArray(value)) error = "Enter a JSON object: {…}";
    } catch {
      error = "Invalid JSON.";
    }
    json.setCustomValidity(error);
  }
  if (form.dataset.composes === "order") {
    const first = form.querySelector('[data-part="quantity"]');
    first?.setCustomValidity(order(form).product_items.length ? "" : "Choose at least one item.");
  }
}
