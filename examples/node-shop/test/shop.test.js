import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { NotReceived, startWaypost } from "@waypost/dev";
import { Shop } from "../shop.js";

const WAIT = { timeoutMs: Number(process.env.WAIT_MS ?? 5000) };
const began = performance.now();
let waypost, partner, shop, server;

before(async () => {
  waypost = await startWaypost({ command: [process.env.WAYPOST ?? "waypost"] });
});
after(() => waypost?.stop());

beforeEach(async (context) => {
  partner = await waypost.createPartner(context.name);
  shop = new Shop(partner.env);
  server = await shop.serve();
  await partner.forwardCallbacks(`http://127.0.0.1:${server.address().port}/callbacks`);
  await shop.submitTemplate();
  await partner.approveTemplate("order_confirmation", WAIT);
  context.diagnostic?.(`fixture ready after ${Math.round(performance.now() - began)} ms`);
});
afterEach(async () => {
  await partner.delete();
  server.close();
});

test("an order is confirmed by a message", async () => {
  const ann = await partner.phone("Ann");
  const id = await shop.placeOrder(ann.number, "green tea");

  const message = await ann.waitForMessage("green tea", WAIT);

  assert.equal(message.text, `Thank you for your order ${id}: green tea. All right?`);
  await partner.waitForCallback("delivered", { messageId: message.callback_data, ...WAIT });
});

test("a tap cancels the order, and the customer is notified", async () => {
  const ann = await partner.phone("Ann");
  const id = await shop.placeOrder(ann.number, "green tea");

  await ann.tap(await ann.waitForMessage("green tea", WAIT), "Cancel it");

  await ann.waitForMessage(`Your order ${id} is cancelled.`, WAIT);
  assert.equal(shop.orderState(id), "cancelled");
});

test("a failed wait shows what arrived instead", async () => {
  const ann = await partner.phone("Ann");
  await shop.placeOrder(ann.number, "green tea");
  await ann.waitForMessage("green tea", WAIT);

  const wait = ann.waitForMessage("Your order 1 is cancelled.", { timeoutMs: 50 });

  await assert.rejects(wait, (error) => error instanceof NotReceived && error.message.includes("green tea"));
});
