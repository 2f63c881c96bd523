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

// A flow that is closed on the handset closes its sheet; a sheet that is closed otherwise closes its flow.
document.addEventListener("waypost:played", (event) => {
  if (event.target.dataset.state === "closed") event.target.closest("dialog")?.close();
});
document.addEventListener("cancel", (event) => {
  if (event.target.querySelector?.('[data-step="close"]')) play(event.target, "close");
}, true);

// The form's input is sent as one JSON text, in the field that the form names.
document.addEventListener("formdata", (event) => {
  const form = event.target;
  if (form.dataset.composes === "response") event.formData.set("response", JSON.stringify(values(form)));
  if (form.dataset.composes === "order") event.formData.set("order", JSON.stringify(order(form)));
}, true);

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-composes]");
  if (form) check(form);
});

window.addEventListener("resize", () => document.querySelectorAll(".bubble-sheet[open]").forEach(place));
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
  place(sheet);
  sheet.showModal();
  play(sheet, "open");
}

/** Put a sheet over the screen of its handset, if it is in one. */
function place(sheet) {
  const screen = sheet.closest("[data-screen]");
  sheet.classList.toggle("is-over-screen", Boolean(screen));
  if (!screen) return;
  const box = screen.getBoundingClientRect(), corners = getComputedStyle(screen);
  sheet.style.left = `${box.left}px`;
  sheet.style.width = `${box.width}px`;
  sheet.style.top = "auto";
  sheet.style.bottom = `${Math.max(0, window.innerHeight - box.bottom)}px`;
  sheet.style.borderBottomLeftRadius = corners.borderBottomLeftRadius;
  sheet.style.borderBottomRightRadius = corners.borderBottomRightRadius;
  sheet.style.maxHeight = `${Math.min(box.height, window.innerHeight) * (sheet.matches(".is-flow") ? 0.95 : 0.85)}px`;
}

/** Let player.js take a step in the flow of a sheet, if it has one. */
function play(sheet, step) {
  sheet.querySelector("[data-player]")?.dispatchEvent(new CustomEvent("waypost:step", { bubbles: true, detail: { step } }));
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

function values(form) {
  const filled = [...form.querySelectorAll("[data-field]")].filter((field) => field.value);
  return Object.fromEntries(filled.map((field) => [field.dataset.field, field.value]));
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
  if (form.dataset.composes !== "order") return;
  const first = form.querySelector('[data-part="quantity"]');
  first?.setCustomValidity(order(form).product_items.length ? "" : "Choose at least one item.");
}
