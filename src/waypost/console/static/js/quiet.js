// Forms that do something while their page stays: <form data-quiet>. What changes comes by the page's stream,
// or as pieces in the answer; what is refused becomes a notice that says what to do.
import { put } from "./live.js";

export function quieten() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
    if (question && !window.confirm(question)) return event.preventDefault();
    if (!form.matches("[data-quiet], [data-theme-form]")) return;
    event.preventDefault();
    const fields = new FormData(form, event.submitter);
    const hasFile = [...fields.values()].some((value) => value instanceof File);
    const body = hasFile ? fields : new URLSearchParams(fields);
    const answer = await send(event.submitter?.getAttribute("formaction") || form.getAttribute("action"), body, form);
    if (answer?.ok && form.dataset.quiet === "reset") form.reset();
    if (answer?.ok) form.dispatchEvent(new CustomEvent("waypost:done", { bubbles: true }));
  });
}

/** POST to an address of ours; pieces in the answer are put, a refusal is told. Gives the answer, or null. */
export async function send(address, body, busy = null) {
  if (busy) busy.setAttribute("aria-busy", "true");
  try {
    const headers = { "X-Waypost-Quiet": "1", "X-Waypost-Csrf": document.body.dataset.csrf };
    const answer = await fetch(address, { method: "POST", body, headers });
    const told = answer.headers.get("content-type")?.includes("json") ? await answer.json() : null;
    if (!answer.ok) notify(told?.message ?? `That was refused (${answer.status}).`, told?.remedy ?? "", "bad", busy);
    else if (told?.pieces) put(told.pieces);
    if (told?.said) notify(told.said, told.remedy ?? "", told.kind ?? "good", busy);
    if (told?.to) location.assign(told.to);
    return answer;
  } catch {
    notify("The service did not answer.", "Look whether it runs, and try again.", "bad", busy);
    return null;
  } finally {
    busy?.removeAttribute("aria-busy");
  }
}

/** A notice in the corner: what was said, and what to do. Inside [data-said-here] it is said there. */
export function notify(said, remedy = "", kind = "info", near = null) {
  const over = near?.closest("dialog[open]") ?? document.body; // what is not in an open dialog lies under it
  const here = near?.closest("[data-said-here]")?.querySelector("[data-toasts]");
  let toasts = here && over.contains(here) ? here : over.querySelector(":scope > .toasts");
  if (!toasts) {
    toasts = document.createElement("div");
    toasts.className = "toasts";
    toasts.setAttribute("role", "status");
    over.append(toasts);
  }
  const toast = document.createElement("div");
  toast.className = `notice notice-${kind} is-new`;
  const text = document.createElement("p");
  text.textContent = said;
  if (remedy) {
    const next = document.createElement("span");
    next.className = "remedy";
    next.textContent = ` ${remedy}`;
    text.append(next);
  }
  toast.append(text);
  toasts.append(toast);
  while (toasts.children.length > 4) toasts.firstElementChild.remove();
  setTimeout(() => toast.remove(), kind === "bad" ? 12_000 : 5000);
}
