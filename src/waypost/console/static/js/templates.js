// The gallery's filters are applied as soon as one is changed.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-filters] select")) event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-filters]")) return;
  for (const field of event.target.querySelectorAll("input, select")) field.disabled = field.value === "";
});

window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("[data-filters] :disabled")) field.disabled = false;
});
