// Starts `waypost dev`, or attaches to a running one, and gives each test a partner of its own.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";

const POLL_INTERVAL_MS = 20;
const NO_DELAYS = { deliver_after_ms: 0, gather_ms: 0, review_delay_ms: null };

/** An error response of the control API; its message is the API's own text. */
export class ControlError extends Error {
  constructor(status, body) {
    super(body.error ?? `status ${status}`);
    this.name = "ControlError";
    this.status = status;
    this.body = body;
  }
}

/** A failed wait; its message shows what arrived instead, and likely causes. */
export class NotReceived extends Error {
  constructor(explanation) {
    super(explanation);
    this.name = "NotReceived";
  }
}

/** Start `waypost dev` on free ports with a temporary folder; it ends with this process, or by `stop()`. */
export async function startWaypost({ command = ["waypost"], settings = {}, timeoutMs = 60_000 } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "waypost-dev-"));
  const envFile = join(folder, "waypost-dev.env");
  const [program, ...first] = command;
  const options = ["dev", "--memory", "--port", "0", "--simulator-port", "0", "--env-file", envFile, "--until-stdin-ends"];
  const env = { ...process.env, WAYPOST_RATES: "false", WAYPOST_LOG_LEVEL: "error" };
  for (const [name, value] of Object.entries(settings)) env[`WAYPOST_${name.toUpperCase()}`] = String(value);
  const child = spawn(program, [...first, ...options], { cwd: folder, env, stdio: ["pipe", "ignore", "pipe"] });
  let output = "";
  let failure = "";
  child.stderr.setEncoding("utf8").on("data", (text) => { output = (output + text).slice(-4000); });
  child.on("error", (error) => { failure = error.message; });
  child.on("exit", (code) => { failure ||= `it ended with status ${code}`; });
  const stop = async () => {
    if (!failure) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  };
  const deadline = Date.now() + timeoutMs;
  while (true) {
    const text = await readFile(envFile, "utf8").catch(() => "");
    if (text.includes("ADMIN_TOKEN=")) {
      const waypost = new Waypost(parseVariables(text), stop, command);
      await waypost.control("PUT", "/settings", NO_DELAYS);
      return waypost;
    }
    if (failure || Date.now() > deadline) {
      const reason = failure || `not ready within ${timeoutMs} ms`;
      await stop();
      throw new Error(`${command.join(" ")} dev did not start: ${reason}\n${output}`);
    }
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Attach to a running `waypost dev` by its environment file, or by the URLs under which it is reached. */
export async function attachWaypost({ envFile, apiUrl, graphUrl } = {}) {
  const variables = envFile ? parseVariables(await readFile(envFile, "utf8")) : {};
  if (apiUrl) variables.API_URL = apiUrl.replace(/\/$/, "");
  if (graphUrl) {
    variables.GRAPH_URL = graphUrl.replace(/\/$/, "");
    variables.CONTROL_URL = `${variables.GRAPH_URL}/control`;
  }
  const missing = ["API_URL", "GRAPH_URL", "CONTROL_URL"].filter((name) => !variables[name]);
  if (missing.length) throw new Error(`attachWaypost: ${missing.join(", ")} missing; give envFile, or apiUrl and graphUrl`);
  const waypost = new Waypost(variables, async () => {});
  await waypost.control("GET", "/partners");
  return waypost;
}

/** A running `waypost dev`. */
export class Waypost {
  constructor(variables, stop, command = ["waypost"]) {
    this.variables = variables;
    this.stop = stop;
    this.command = command;
    this.clock = new Clock(this);
  }

  /** Send a request to the control API; return its JSON response. */
  async control(method, path, body) {
    const hasBody = method === "POST" || method === "PUT";
    const response = await fetch(this.variables.CONTROL_URL + path, {
      method,
      headers: hasBody ? { "content-type": "application/json" } : {},
      body: hasBody ? JSON.stringify(body ?? {}) : undefined,
    });
    const content = await response.json();
    if (response.ok) return content;
    if (response.status === 422 && content.explanation) throw new NotReceived(content.explanation);
    throw new ControlError(response.status, content);
  }

  /** Let the hosts that programs have in their code lead here; needs Waypost on this machine, not in an image. */
  async intercept({ command = this.command, timeoutMs = 60_000 } = {}) {
    const { API_URL, GRAPH_URL, ADMIN_TOKEN } = this.variables;
    const [program, ...first] = command;
    const options = ["intercept", "--url", API_URL, "--graph-url", GRAPH_URL, "--print-variables", "--until-stdin-ends"];
    const env = { ...process.env, ...(ADMIN_TOKEN ? { WAYPOST_ADMIN_TOKEN: ADMIN_TOKEN } : {}) };
    const child = spawn(program, [...first, ...options], { env, stdio: ["pipe", "pipe", "pipe"] });
    const ended = new Promise((resolve) => child.once("close", resolve).once("error", resolve));
    const stop = async () => {
      child.stdin.end();
      await ended;
    };
    let printed = "";
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text) => { errors = (errors + text).slice(-4000); });
    child.stdout.setEncoding("utf8").on("data", (text) => { printed += text; });
    let hasEnded = false;
    ended.then(() => { hasEnded = true; });
    const deadline = Date.now() + timeoutMs;
    while (!printed.includes("\n\n")) {
      if (hasEnded || Date.now() > deadline) {
        await stop();
        throw new Error(`${command.join(" ")} intercept did not start\n${errors}`);
      }
      await sleep(POLL_INTERVAL_MS);
    }
    return new Interception(parseVariables(printed), stop);
  }

  /** Create a partner; the same name gets the same numbers at each new server. */
  async createPartner(name = "") {
    const body = { name, api_url: this.variables.API_URL, graph_url: this.variables.GRAPH_URL };
    return new Partner(this, await this.control("POST", "/partners", body));
  }
}

/** The hosts of vendor and operator lead to a sandbox, for programs that get `env`, until `stop()`. */
export class Interception {
  #restore = [];

  constructor(env, stop) {
    this.env = env;
    this.end = stop;
  }

  /** Let the hosts lead there in this process too; return false if this version of Node cannot. */
  async applyToProcess() {
    if (!tls.setDefaultCACertificates || !http.setGlobalProxyFromEnv) return false;
    const before = tls.getCACertificates("default");
    tls.setDefaultCACertificates([...before, await readFile(this.env.NODE_EXTRA_CA_CERTS, "utf8")]);
    this.#restore.push(() => tls.setDefaultCACertificates(before), http.setGlobalProxyFromEnv(this.env));
    return true;
  }

  /** Undo `applyToProcess()`, and end it. */
  async stop() {
    for (const restore of this.#restore.splice(0)) restore();
    await this.end();
  }
}

/** The clock that service and simulator share. */
export class Clock {
  constructor(waypost) {
    this.waypost = waypost;
  }

  /** Advance the clock; return when all that became due has happened. */
  async advance(ms) {
    let result = await this.waypost.control("POST", "/clock/advance", { ms });
    while (!result.is_complete) result = await this.waypost.control("POST", "/clock/advance", { ms: result.left_ms });
    return result.now_ms;
  }

  /** Return when service and simulator are idle. */
  async waitUntilIdle() {
    return this.advance(100);
  }
}

/** A partner that no other test sees. */
export class Partner {
  constructor(waypost, view) {
    this.waypost = waypost;
    this.id = view.id;
    this.env = view.env;
    this.inboxUrl = view.inbox_url;
  }

  #call(method, path, body) {
    return this.waypost.control(method, `/partners/${this.id}${path}`, body);
  }

  /** Return the phone of a person; the same one for the same name. */
  async phone(name, number = null) {
    return new Phone(this, await this.#call("POST", "/phones", { name, number }));
  }

  /** Forward callbacks to the application; they count as received once it has responded with 2xx. */
  async forwardCallbacks(url, options = {}) {
    await this.#call("PUT", "/callbacks", { forward_to: url, ...options });
  }

  /** Set status, version, modes or headers of the inbox. */
  async changeCallbacks(options) {
    await this.#call("PUT", "/callbacks", options);
  }

  /** Give its app rates of its own, in force at once if the server limits requests; return all rows. */
  async changeRates(rates, { reset = false } = {}) {
    return (await this.#call("PUT", "/rates", { rates, reset })).rates;
  }

  /** Return the newest attempts of callbacks, oldest first. */
  async callbacks() {
    return (await this.#call("GET", "/callbacks?limit=1000")).callbacks;
  }

  /** Return the first matching callback that was not returned before. */
  async waitForCallback(kind = "", { messageId = "", phone = "", text = "", postbackText = "", timeoutMs = 5000 } = {}) {
    const body = { kind, message_id: messageId, phone: String(phone), text, postback_text: postbackText, timeout_ms: timeoutMs };
    return (await this.#call("POST", "/wait-for-callback", body)).callback;
  }

  /** Return after a time without a matching callback. */
  async noCallbackWithin(ms, kind = "", { messageId = "", phone = "", text = "", postbackText = "" } = {}) {
    const body = { kind, message_id: messageId, phone: String(phone), text, postback_text: postbackText, ms };
    await this.#call("POST", "/no-callback-within", body);
  }

  /** Approve a template by its name or id; waits until the application has submitted it. */
  async approveTemplate(template, { timeoutMs = 5000 } = {}) {
    return this.#decide(template, "approve", { timeout_ms: timeoutMs });
  }

  /** Reject a template by its name or id. */
  async rejectTemplate(template, reason = "INVALID_FORMAT", { timeoutMs = 5000 } = {}) {
    return this.#decide(template, "reject", { reason, timeout_ms: timeoutMs });
  }

  async #decide(template, action, body) {
    return (await this.#call("POST", `/templates/${encodeURIComponent(template)}/${action}`, body)).template;
  }

  /** Arm a fault for this partner; return a function that disarms it. */
  async fault(fault) {
    const body = { on: fault.webhook ? "webhook" : "call", ...fault, waba_id: this.env.WABA_ID };
    const { faults } = await this.waypost.control("POST", "/faults", body);
    return async () => {
      for (const { id } of faults) await this.waypost.control("DELETE", `/faults/${id}`);
    };
  }

  /** Return the report that explains failures. */
  async explain() {
    return (await this.#call("GET", "/explanation")).explanation;
  }

  /** Delete its subscriptions and faults. */
  async delete() {
    await this.#call("DELETE", "");
  }
}

/** The phone of a person, as its owner uses it. */
export class Phone {
  constructor(partner, view) {
    this.partner = partner;
    this.name = view.name;
    this.number = view.phone;
  }

  toString() {
    return this.number;
  }

  #act(action, body) {
    return this.partner.waypost.control("POST", `/phones/${this.number}/${action}`, body);
  }

  /** Write to the partner, which opens the 24-hour window; return the wamid. */
  async write(text) {
    return (await this.#act("messages", { to: this.partner.env.SOURCE, text })).wamid;
  }

  /** Return the first matching message that was not returned before. */
  async waitForMessage(text = "", { type = "", messageId = "", button = "", timeoutMs = 5000 } = {}) {
    const body = { phone: this.number, text, type, message_id: messageId, button, timeout_ms: timeoutMs };
    const path = `/partners/${this.partner.id}/wait-for-message`;
    return (await this.partner.waypost.control("POST", path, body)).message;
  }

  /** Tap a button of a message by its label or index; return the wamid of the reply. */
  async tap(message, button) {
    const choice = typeof button === "number" ? { index: button } : { text: button };
    return (await this.#act("tap", { message_id: message.wamid, ...choice })).wamid;
  }

  /** Open the flow of a message, where it was left; return what the phone shows. */
  async openFlow(message, { restart = false } = {}) {
    return this.#act("flow", { message_id: message.wamid, restart });
  }

  /** Carry out steps in a flow that was opened; return what the phone shows then, and what the steps caused. */
  async playFlow(message, steps) {
    return this.#act("flow/steps", { message_id: message.wamid, steps });
  }
}

function parseVariables(text) {
  const pairs = text.split("\n").filter((line) => line.includes("=")).map((line) => line.split(/=(.*)/s).slice(0, 2));
  return Object.fromEntries(pairs);
}
