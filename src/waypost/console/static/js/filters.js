// Saved filters: named queries of a list, kept in this browser for each partner (decision 0111).
const MAX_SAVED = 50;

/** Return the saved filters of a partner: [{list, path, name, query}], in the order of their names. */
export function savedFilters(partner) {
  try {
    const saved = JSON.parse(localStorage.getItem(key(partner)) ?? "[]");
    return Array.isArray(saved) ? saved.filter((one) => typeof one?.name === "string" && typeof one?.query === "string") : [];
  } catch {
    return [];
  }
}

function key(partner) {
  return `waypost.filters.${partner}`;
}

function store(partner, saved) {
  try {
    localStorage.setItem(key(partner), JSON.stringify(saved));
    return true;
  } catch {
    return false; // the browser keeps nothing for this page
  }
}

bind();

function bind() {
  const box = document.querySelector("[data-saved]");
  if (!box) return;
  const { saved: list, path } = box.dataset, { partner } = document.body.dataset;
  box.hidden = false;
  draw(box);
  box.querySelector("[data-saved-form]").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = event.target.querySelector("input");
    const name = field.value.trim();
    if (!name) return;
    const query = currentQuery();
    const others = savedFilters(partner).filter((one) => one.list !== list || one.name !== name);
    const all = [...others, { list, path, name, query }].sort((a, b) => a.name.localeCompare(b.name)).slice(0, MAX_SAVED);
    field.value = "";
    if (store(partner, all)) draw(box);
    [...box.querySelectorAll("[data-saved-list] a")].find((link) => link.textContent === name)?.focus();
  });
  box.addEventListener("click", (event) => {
    const remove = event.target.closest("[data-saved-remove]");
    if (!remove) return;
    store(partner, savedFilters(partner).filter((one) => one.list !== list || one.name !== remove.dataset.savedRemove));
    draw(box);
    (box.querySelector("[data-saved-list] a") ?? box.querySelector("summary")).focus();
  });
}

/** Return the query of the page's filter as it is now, without the cursor of a page, and with a zone only for times. */
function currentQuery() {
  const fields = new FormData(document.getElementById("filter"));
  const hasTime = ["from", "until", "to"].some((name) => fields.get(name));
  const filled = [...fields].filter(([name, value]) => value !== "" && (name !== "zone" || hasTime));
  return new URLSearchParams(filled).toString();
}

function draw(box) {
  const { saved: list, path } = box.dataset, { partner } = document.body.dataset;
  const saved = savedFilters(partner).filter((one) => one.list === list);
  const here = currentQuery();
  box.querySelector("[data-saved-none]").hidden = saved.length > 0;
  box.querySelector("[data-saved-list]").replaceChildren(...saved.map(({ name, query }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = `${path}${query ? "?" : ""}${query}`;
    link.textContent = name;
    if (query === here) link.setAttribute("aria-current", "true");
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon-button";
    remove.dataset.savedRemove = name;
    remove.setAttribute("aria-label", `Remove the filter ${name}`);
    remove.title = "Remove";
    remove.textContent = "×";
    item.append(link, remove);
    return item;
  }));
}
