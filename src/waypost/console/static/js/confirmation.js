// The question before an action: one <dialog>, which the browser keeps the focus in and Escape closes.

/** Show a question and return whether the action is to be done. label: of the button that does it. */
export function confirmAction(question, label, isDanger = false) {
  const dialog = document.createElement("dialog");
  dialog.className = "confirmation";
  dialog.setAttribute("role", "alertdialog");
  dialog.setAttribute("aria-labelledby", "confirmation-title");
  const [, title, rest] = question.match(/^(.*?[?.])(?:\s+(.*))?$/s) ?? [null, question, ""];
  const form = document.createElement("form");
  form.method = "dialog";
  const heading = document.createElement("h2");
  heading.id = "confirmation-title";
  heading.textContent = title;
  form.append(heading);
  if (rest) {
    const text = document.createElement("p");
    text.id = "confirmation-text";
    text.textContent = rest;
    dialog.setAttribute("aria-describedby", "confirmation-text");
    form.append(text);
  }
  const buttons = document.createElement("div");
  buttons.className = "confirmation-buttons";
  const [no, yes] = [button("Cancel", "", "button"), button(label, "yes", `button ${isDanger ? "danger" : "primary"}`)];
  (isDanger ? no : yes).autofocus = true; // Enter does nothing that cannot be undone
  buttons.append(no, yes);
  form.append(buttons);
  dialog.append(form);
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
  });
}

function button(text, value, className) {
  const made = document.createElement("button");
  made.textContent = text;
  made.value = value;
  made.className = className;
  return made;
}
