// Forms that are sent while their page stays open: <form data-quiet>. Changes arrive through the page's stream
// or as elements in the response; an error is shown as a notice.
import { confirmAction } from "./confirmation.js";
import { put } from "./live.js";

let confirmed = null; // the form whose action was confirmed

export function quieten() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const { submitter } = event;
    const question = submitter?.dataset.confirm ?? form.dataset.confirm;
    if (question && confirmed !== form) {
      event.preventDefault();
      const label = submitter?.textContent.trim() || "Continue";
      if (!(await confirmAction(question, label, submitter?.classList.contains("danger")))) return;
      confirmed = form;
      form.requestSubmit(submitter);
      return;
    }
    confirmed = null;
    if (!form.matches("[data-quiet], [data-theme-form]") && !event.submitter?.hasAttribute("data-quiet")) return;
    event.preventDefault();
    const fields = new FormData(form, event.submitter);
    const hasFile = [...fields.values()].some((value) => value instanceof File);
    const body = hasFile ? fields : new URLSearchParams(fields);
    const response = await send(event.submitter?.getAttribute("formaction") || form.getAttribute("action"), body, form);
    if (response?.ok && (event.submitter?.dataset.quiet || form.dataset.quiet) === "reset") form.reset();
    if (response?.ok) form.dispatchEvent(new CustomEvent("waypost:done", { bubbles: true }));
  });
}

/** POST to a console URL, apply the elements in the response and show errors. Return the response, or null. */
export async function send(address, body, busy = null) {
  if (busy) busy.setAttribute("aria-busy", "true");
  try {
    const headers = { "X-Waypost-Quiet": "1", "X-Waypost-Csrf": document.body.dataset.csrf };
    const response = await fetch(address, { method: "POST", body, headers });
    const data = response.headers.get("content-type")?.includes("json") ? await response.json() : null;
    if (!response.ok) notify(data?.message ?? `The request failed (status ${response.status}).`, data?.hint ?? "", "bad", busy);
    else if (data?.pieces) put(data.pieces);
    if (data?.notice) notify(data.notice, data.hint ?? "", data.kind ?? "good", busy);
    if (data?.to) location.assign(data.to);
    return response;
  } catch {
    notify("The service is not responding.", "Check that it is running, then try again.", "bad", busy);
    return null;
  } finally {
    busy?.removeAttribute("aria-busy");
  }
}

/** Show a notice in the corner, or inside [data-notices-here] if the form is in one. */
export function notify(text, hint = "", kind = "info", near = null) {
  const over = near?.closest("dialog[open]") ?? document.body; // anything outside an open dialog is covered by it
  const here = near?.closest("[data-notices-here]")?.querySelector("[data-toasts]");
  let toasts = here && over.contains(here) ? here : over.querySelector(":scope > .toasts");
  if (!toasts) {
    toasts = document.createElement("div");
    toasts.className = "toasts";
    toasts.setAttribute("role", "status");
    over.append(toasts);
  }
  const toast = document.createElement("div");
  toast.className = `notice notice-${kind} is-new`;
  const paragraph = document.createElement("p");
  paragraph.textContent = text;
  if (hint) {
    const span = document.createElement("span");
    span.className = "notice-hint";
    span.textContent = ` ${hint}`;
    paragraph.append(span);
  }
  toast.append(paragraph);
  toasts.append(toast);
  while (toasts.children.length > 4) toasts.firstElementChild.remove();
  setTimeout(() => toast.remove(), kind === "bad" ? 12_000 : 5000);
}
