// The search over all operations: it filters the list that every page has, and needs no request.

const nav = document.querySelector("nav");
const field = document.querySelector("#find");
const none = document.querySelector("#find-none");
const lists = [...nav.querySelectorAll(".operations > ul")];
const links = () => [...nav.querySelectorAll("li:not([hidden]) a")];

function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const list of lists) {
    const heading = list.previousElementSibling;
    for (const item of list.children) {
      const link = item.firstElementChild;
      const text = `${link.textContent} ${link.title} ${heading.textContent}`.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
    list.hidden = heading.hidden = [...list.children].every((item) => item.hidden);
  }
  nav.classList.toggle("is-searching", words.length > 0);
  none.hidden = links().length > 0;
  none.textContent = none.hidden ? "" : "No operation matches.";
}

field.addEventListener("input", filter);
nav.addEventListener("keydown", (event) => {
  const found = links();
  const at = found.indexOf(document.activeElement);
  if (event.key === "Escape" && field.value) {
    field.value = "";
    filter();
    field.focus();
  } else if (event.key === "Enter" && event.target === field) {
    found[0]?.click();
  } else if (event.key === "ArrowDown" && (at >= 0 || event.target === field)) {
    found[Math.min(at + 1, found.length - 1)]?.focus();
    event.preventDefault();
  } else if (event.key === "ArrowUp" && at >= 0) {
    (at > 0 ? found[at - 1] : field).focus();
    event.preventDefault();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  event.preventDefault();
  field.focus();
  field.select();
});
document.querySelector("#find-box").hidden = false;
const current = nav.querySelector("[aria-current]");
const scrolled = nav.querySelector(".operations");
if (current) scrolled.scrollTop = current.offsetTop - scrolled.clientHeight / 2;
