// Behaviour of every page. Pages work without it; it adds live updates and shortcuts.
import "./zone.js";
import { keepTimes } from "./times.js";
import { goLive } from "./live.js";
import { bindKeys } from "./keys.js";
import { openPalette } from "./palette.js";
import { quieten } from "./quiet.js";

keepTimes();
bindKeys();
quieten();
goLive();

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-copy], [data-copy-from], [data-dismiss], [data-menu], [data-palette]");
  if (!target) return;
  if (target.matches("[data-copy]")) copy(target, target.dataset.copy);
  if (target.matches("[data-copy-from]")) {
    event.preventDefault();
    fetch(target.href).then((response) => response.text()).then((text) => copy(target, text));
  }
  if (target.matches("[data-dismiss]")) target.closest(".notice").remove();
  if (target.matches("[data-palette]")) openPalette();
  if (target.matches("[data-menu]")) {
    const isOpen = document.getElementById("nav").classList.toggle("is-open");
    target.setAttribute("aria-expanded", String(isOpen));
  }
});

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  button.classList.add("is-copied");
  setTimeout(() => button.classList.remove("is-copied"), 1500);
}

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const theme = document.querySelector("[data-theme-form] select");
theme?.addEventListener("change", () => {
  document.documentElement.dataset.theme = theme.value;
  theme.form.requestSubmit();
});
