// One message: what it says is asked for only when somebody wants to see it.
import { put } from "./live.js";
import { notify } from "./quiet.js";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-words]");
  if (!button) return;
  button.disabled = true;
  try {
    const answer = await fetch(button.dataset.words);
    const told = await answer.json();
    if (!answer.ok) return notify(told.message, told.remedy, "bad");
    put(told.pieces);
    document.getElementById("words").focus();
  } catch {
    notify("The service did not answer.", "Look whether it runs, and try again.", "bad");
  } finally {
    button.disabled = false;
  }
});
