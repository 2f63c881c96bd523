// The question before an action: one <dialog>, which the browser keeps the focus in and Escape closes.

/** Ask a question and return whether the action is to be done. label: of the button that does it. */
export function ask(question, label, isDanger = false) {
  const dialog = document.createElement("dialog");
  dialog.className = "ask";
  dialog.setAttribute("role", "alertdialog");
  dialog.setAttribute("aria-labelledby", "ask-title");
  const [, title, rest] = question.match(/^(.*?[?.])(?:\s+(.*))?$/s) ?? [null, question, ""];
  const form = document.createElement("form");
  form.method = "dialog";
  const heading = document.createElement("h2");
  heading.id = "ask-title";
  heading.textContent = title;
  form.append(heading);
  if (rest) {
    const text = document.createElement("p");
    text.id = "ask-text";
    text.textContent = rest;
    dialog.setAttribute("aria-describedby", "ask-text");
    form.append(text);
  }
  const buttons = document.createElement("div");
  buttons.className = "ask-buttons";
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
