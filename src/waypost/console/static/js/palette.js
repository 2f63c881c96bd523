// The command palette: pages, apps, and whatever is typed as a message's number or id.
let offered = null;

export async function openPalette() {
  const dialog = document.getElementById("palette");
  if (!dialog || dialog.open) return;
  const field = dialog.querySelector("input");
  field.value = "";
  dialog.showModal();
  if (!dialog.dataset.heard) hear(dialog, field);
  show(dialog, "");
  offered = await commands();
  show(dialog, field.value);
}

async function commands() {
  const pages = [...document.querySelectorAll("a[data-command]")].map((link) => ({
    name: link.dataset.command, hint: "Page", path: link.getAttribute("href") }));
  try {
    const answer = await fetch("/commands");
    return answer.ok ? [...pages, ...(await answer.json()).commands] : pages;
  } catch {
    return pages;
  }
}

function hear(dialog, field) {
  dialog.dataset.heard = "yes";
  field.addEventListener("input", () => show(dialog, field.value));
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose(dialog, step);
    }
    if (event.key === "Enter") {
      event.preventDefault();
      const path = dialog.querySelector("[aria-selected='true']")?.dataset.path;
      if (path) location.assign(path);
    }
  });
  dialog.addEventListener("click", (event) => {
    const item = event.target.closest("[data-path]");
    if (item) location.assign(item.dataset.path);
    if (event.target === dialog) dialog.close();
  });
}

function show(dialog, text) {
  const wanted = text.trim().toLowerCase();
  const found = (offered ?? []).filter((one) => `${one.name} ${one.hint}`.toLowerCase().includes(wanted)).slice(0, 12);
  const messages = document.querySelector("a[data-command='Messages']")?.getAttribute("href");
  if (wanted && messages) {
    found.push({ name: `Messages: ${text.trim()}`, hint: "Search", path: `${messages}?q=${encodeURIComponent(text.trim())}` });
  }
  const list = dialog.querySelector("ul");
  list.replaceChildren(...found.map((one, at) => {
    const item = document.createElement("li");
    item.id = `place-${at}`;
    item.role = "option";
    item.dataset.path = one.path;
    item.ariaSelected = String(at === 0);
    const hint = document.createElement("small");
    hint.textContent = one.hint;
    item.append(one.name, hint);
    return item;
  }));
  dialog.querySelector("input").setAttribute("aria-activedescendant", found.length ? "place-0" : "");
}

function choose(dialog, step) {
  const items = [...dialog.querySelectorAll("li")];
  const at = items.findIndex((item) => item.ariaSelected === "true");
  const next = items[(at + step + items.length) % items.length];
  items.forEach((item) => { item.ariaSelected = String(item === next); });
  next?.scrollIntoView({ block: "nearest" });
  dialog.querySelector("input").setAttribute("aria-activedescendant", next?.id ?? "");
}
