import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NotReceived, type Partner, type Phone, type Waypost, attachWaypost, startWaypost } from "../index.js";

const WAIT = { timeoutMs: 60_000 };
let waypost: Waypost;

beforeAll(async () => {
  waypost = await startWaypost({ command: [process.env.WAYPOST ?? "waypost"] });
}, 120_000);
afterAll(() => waypost?.stop());

async function sendText(partner: Partner, to: Phone, text: string) {
  const { API_URL, API_KEY, SOURCE, SRC_NAME } = partner.env;
  const body = new URLSearchParams({
    channel: "whatsapp", source: SOURCE, "src.name": SRC_NAME, destination: String(to),
    message: JSON.stringify({ type: "text", text }),
  });
  const response = await fetch(`${API_URL}/wa/api/v1/msg`, { method: "POST", headers: { apikey: API_KEY }, body });
  return (await response.json()).messageId;
}

test("a partner sends to a phone, and its callbacks are received", async () => {
  const partner = await waypost.createPartner("sends");
  const ann = await partner.phone("Ann");
  await ann.write("Hi");
  await partner.waitForCallback("text", { phone: ann, ...WAIT });

  const messageId = await sendText(partner, ann, "Hello");

  expect((await ann.waitForMessage("Hello", WAIT)).callback_data).toBe(messageId);
  expect((await partner.waitForCallback("delivered", { messageId, ...WAIT })).phone).toBe(ann.number);
  await partner.noCallbackWithin(0, "failed");
});

const FLOW = {
  version: "7.3",
  screens: [{
    id: "TABLE", title: "A table", terminal: true,
    layout: {
      type: "SingleColumnLayout",
      children: [
        { type: "TextInput", name: "guest", label: "Your name", required: true },
        {
          type: "Footer", label: "Reserve",
          "on-click-action": { name: "complete", payload: { guest: "${form.guest}" } },
        },
      ],
    },
  }],
};

test("a phone plays a flow", async () => {
  const partner = await waypost.createPartner("plays a flow");
  const ann = await partner.phone("Ann");
  await ann.write("Hi");
  await partner.waitForCallback("text", { phone: ann, ...WAIT });
  const { PARTNER_URL, APP_ID, APP_TOKEN } = partner.env;
  const call = async (path: string, body: unknown) => {
    const headers = { Authorization: APP_TOKEN, "Content-Type": "application/json" };
    const options = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${PARTNER_URL}/partner/app/${APP_ID}${path}`, options);
    expect(response.status).toBe(200);
    return response.json();
  };
  const { id } = await call("/flows", { name: "table", categories: ["OTHER"], flow_json: JSON.stringify(FLOW) });
  await call(`/flows/${id}/publish`, {});
  const parameters = { flow_message_version: "3", flow_id: id, flow_cta: "Book", flow_token: "t-1" };
  await call("/v3/message", {
    messaging_product: "whatsapp", recipient_type: "individual", to: ann.number, type: "interactive",
    interactive: { type: "flow", body: { text: "A table?" }, action: { name: "flow", parameters } },
  });
  const message = await ann.waitForMessage("A table?", WAIT);

  const opened = await ann.openFlow(message);
  await expect(ann.playFlow(message, [{ tap: "Reserve" }])).rejects.toThrow("guest");
  const ended = await ann.playFlow(message, [{ fill: { guest: "Ann" } }, { tap: "Reserve" }]);

  expect(opened.view.screen_id).toBe("TABLE");
  expect(ended.view.state).toBe("completed");
  expect(ended.events.find(({ type }) => type === "completed")).toMatchObject({ response: { guest: "Ann" } });
});

test("a partner gets rates of its own", async () => {
  const partner = await waypost.createPartner("rates");

  const changed = await partner.changeRates({ templates: "2/1h" });
  const reset = await partner.changeRates({}, { reset: true });

  expect(changed.find(({ rate }) => rate === "templates")).toMatchObject({ app: "2/3600s", source: "app" });
  expect(reset.every(({ source }) => source === "documented")).toBe(true);
  await expect(partner.changeRates({ login: "2/1h" })).rejects.toThrow("there is no rate login that can be set");
});

test("a failed wait explains itself", async () => {
  const partner = await waypost.createPartner("explains");
  const ann = await partner.phone("Ann");
  await ann.write("Hi");
  await partner.waitForCallback("text", WAIT);
  await ann.write("Hello?");

  await expect(partner.waitForCallback("read", { timeoutMs: 50 })).rejects.toThrow(NotReceived);
  await expect(ann.waitForMessage("Welcome", { timeoutMs: 50 })).rejects.toThrow(/on Ann's phone, newest last:\n.*"Hi"/);
  await expect(partner.noCallbackWithin(60_000, "text")).rejects.toThrow(/none was expected within 60 s/);
});

test("another process attaches by the URLs", async () => {
  const { API_URL: apiUrl, GRAPH_URL: graphUrl } = waypost.variables;
  const attached = await attachWaypost({ apiUrl, graphUrl });

  const partner = await attached.createPartner();

  expect(partner.env.API_URL).toBe(apiUrl);
  await partner.delete();
  await expect(partner.callbacks()).rejects.toThrow("is not a partner of this process");
});

test("a command that is missing is named", async () => {
  await expect(startWaypost({ command: ["/missing/waypost"] })).rejects.toThrow("/missing/waypost dev did not start");
});

test("hosts in a program's code lead to the service", async () => {
  const interception = await waypost.intercept();
  const code = "fetch('https://api.gupshup.io/readyz').then(async (response) => console.log(await response.text()))";
  const { stdout } = spawnSync(process.execPath, ["-e", code], {
    env: { ...process.env, ...interception.env }, encoding: "utf8",
  });
  const isApplied = await interception.applyToProcess();

  const [major = 0] = process.versions.node.split(".").map(Number);
  if (major >= 24) expect(stdout).toContain('"status":"ready"');
  if (isApplied) expect((await fetch("https://api.gupshup.io/readyz")).status).toBe(200);
  await interception.stop();
});
