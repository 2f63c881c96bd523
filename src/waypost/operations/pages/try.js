// "Try it": sends the request of the form to this service, and shows the response. Credentials stay in this page's
// memory: they are stored nowhere, and requests go to the page's own origin only (its policy allows no other).

const form = document.querySelector("#try");
const find = (selector) => form.querySelector(selector);
const chosen = find("#try-app");
const typed = find("#try-token");
const note = find("#try-note");
const result = document.querySelector("#try-result");
let session = null;

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const explain = (text, link) => {
  note.replaceChildren(text);
  if (link) note.append(" ", element("a", link[0], { href: link[1] }));
};

const signIn = ["Sign in", `/sign-in?next=${encodeURIComponent(location.pathname)}`];

async function readSession() {
  if (!typed) return;
  if (form.dataset.credential === "universal token") return explain("Type a universal token: a session has none.");
  const response = await fetch("/try/session").catch(() => null);
  if (response?.ok) {
    session = await response.json();
    for (const app of session.apps) chosen.append(element("option", `${app.name} of ${session.partner}`, { value: app.id }));
    if (form.dataset.partner && !session.apps.length) chosen.append(element("option", session.partner, { value: "" }));
    chosen.append(element("option", "a typed credential", { value: "typed" }));
    find("#try-session").hidden = false;
    explain("The console's session gives the credential; it is not shown.");
    chooseCredential();
  } else if (response?.status === 401) {
    explain("Sign in to the console to use your own credential, or type one.", signIn);
  } else {
    explain("Type a credential; the console is not here.");
  }
}

function chooseCredential() {
  const isTyped = !session || chosen.value === "typed";
  find("#try-typed").hidden = !isTyped;
  const app = session?.apps.find((one) => one.id === chosen.value);
  if (!app) return;
  for (const input of form.querySelectorAll("[data-app]")) {
    if (app[input.dataset.app] && !input.dataset.changed) input.value = app[input.dataset.app];
  }
  writeCurl();
}

async function readCredential() {
  if (!typed) return "";
  if (!session || chosen.value === "typed") return typed.value.trim();
  const path = form.dataset.partner ? "/try/partner-token" : `/apps/${encodeURIComponent(chosen.value)}/try-token`;
  const headers = { "X-Waypost-CSRF": session.csrf, "X-Waypost-Quiet": "1" };
  const response = await fetch(path, { method: "POST", headers });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body.token;
  if (response.status === 401) {
    session = null;
    find("#try-session").hidden = true;
    chooseCredential();
    explain("The console's session has ended. Sign in again, or type a credential.", signIn);
    throw new Error("The console's session has ended, so nothing was sent. Sign in again, or type a credential.");
  }
  throw new Error([body.message, body.hint].filter(Boolean).join(" ") || "The console gives no credential.");
}

function makeRequest() {
  const query = new URLSearchParams();
  const values = [];
  let path = form.dataset.path;
  for (const input of form.querySelectorAll("[data-part]")) {
    const { part, name } = input.dataset;
    const value = input.type === "file" ? input.files[0] : input.value;
    if (part === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value === undefined || value === "") continue;
    else if (part === "query") query.append(name, value);
    else values.push([name, value, input]);
  }
  const options = { method: form.dataset.method, headers: {}, credentials: "omit" };
  if (form.dataset.encoding === "form") options.body = new URLSearchParams(values.map(([name, value]) => [name, value]));
  if (form.dataset.encoding === "multipart") {
    options.body = new FormData();
    for (const [name, value] of values) options.body.append(name, value);
  }
  if (form.dataset.encoding === "json") {
    const members = values.map(([name, value, input]) => {
      if (input.dataset.object === undefined) return [name, value];
      try {
        return [name, JSON.parse(value)];
      } catch (error) {
        throw new Error(`${name} must be JSON: ${error.message}`);
      }
    });
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(Object.fromEntries(members));
  }
  const search = query.toString();
  return [path + (search ? `?${search}` : ""), options];
}

// Write the request of the form as curl: made by the function that makes the request which is sent.
function writeCurl() {
  let lines;
  try {
    const [path, options] = makeRequest();
    lines = [`curl -X ${options.method} ${quote(location.origin + path)}`];
    if (typed) lines.push(`-H "${form.dataset.header}: $${form.dataset.variable}"`);
    for (const [name, value] of Object.entries(options.headers)) lines.push(`-H ${quote(`${name}: ${value}`)}`);
    if (options.body instanceof URLSearchParams) for (const [name, value] of options.body) lines.push(`--data-urlencode ${quote(`${name}=${value}`)}`);
    else if (options.body instanceof FormData) for (const [name, value] of options.body) lines.push(value instanceof File ? `-F ${quote(`${name}=@${value.name}`)}` : `--form-string ${quote(`${name}=${value}`)}`);
    else if (options.body) lines.push(`--data-raw ${quote(options.body)}`);
  } catch (error) {
    lines = [error.message];
  }
  document.querySelector("#sample-curl pre").textContent = lines.join(" \\\n  ");
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

async function showResponse(response, tookMs) {
  const kind = response.headers.get("Content-Type") ?? "";
  let text = kind.includes("json") ? await response.text() : `${(await response.blob()).size} bytes of ${kind || "no type"}`;
  try {
    text = JSON.stringify(JSON.parse(text), null, 2);
  } catch {} // shown as it is
  const parts = [element("p", `${response.status} ${response.statusText} in ${Math.round(tookMs)} ms`, { class: response.ok ? "status ok" : "status" })];
  const reason = response.headers.get("Waypost-Reason");
  if (reason) parts.push(element("p", reason));
  const after = response.headers.get("Retry-After");
  if (after) parts.push(element("p", `Try again in ${after} s.`));
  parts.push(element("pre", text || "no body", { tabindex: 0 }));
  const links = element("p", "", { class: "jump" });
  const id = response.headers.get("X-Request-Id");
  const message = messageOf(text);
  const app = find("[data-part=path][data-name=app_id]")?.value || session?.apps.find((one) => one.id === chosen.value)?.id;
  if (message && app && session) links.append(element("a", "Trace of the message", { href: `/apps/${encodeURIComponent(app)}/messages/${encodeURIComponent(message)}` }));
  if (id && session) links.append(element("a", response.ok ? "This request in the console" : "Why it failed, in the console", { href: `/requests?id=${encodeURIComponent(id)}` }));
  if (links.childElementCount) parts.push(links);
  const headers = element("dl", "");
  for (const [name, value] of response.headers) headers.append(element("dt", name), element("dd", value));
  const folded = element("details", "", { class: "response-headers" });
  folded.append(element("summary", "Response headers"), headers);
  parts.push(folded);
  result.replaceChildren(...parts);
}

function messageOf(text) {
  try {
    return JSON.parse(text).messageId;
  } catch {
    return null; // no JSON
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = find("button");
  button.disabled = true;
  result.replaceChildren(element("p", "Sending …"));
  try {
    const [path, options] = makeRequest();
    const credential = await readCredential();
    if (typed && !credential) {
      typed.focus();
      throw new Error(`Type the ${form.dataset.credential}, or sign in to the console.`);
    }
    if (credential) options.headers[form.dataset.header] = credential;
    const beganMs = performance.now();
    const response = await fetch(path, options);
    await showResponse(response, performance.now() - beganMs);
  } catch (error) {
    const text = error instanceof TypeError ? "The service does not respond. Check that it runs, and try again." : error.message;
    result.replaceChildren(element("p", text, { class: "status" }));
  } finally {
    button.disabled = false;
    result.scrollIntoView({ block: "nearest" });
  }
});

form.addEventListener("input", (event) => {
  event.target.dataset.changed = "yes";
  writeCurl();
});
chosen?.addEventListener("change", chooseCredential);
form.hidden = false;
document.querySelector("#curl-note").hidden = false;
writeCurl();
readSession();
