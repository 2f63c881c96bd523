// A shop: confirms each order with a template message, and cancels it when the customer taps a button.

import { createServer } from "node:http";

export class Shop {
  #env;
  #orders = new Map();
  #processed = new Set();
  #templateId = "";

  constructor(env) {
    this.#env = env;
  }

  /** Submit the template; orders can be confirmed once it is approved. */
  async submitTemplate() {
    const { PARTNER_URL, APP_ID, APP_TOKEN } = this.#env;
    const fields = {
      elementName: "order_confirmation", languageCode: "en_US", category: "UTILITY", templateType: "TEXT",
      vertical: "Orders", content: "Thank you for your order {{1}}: {{2}}. All right?",
      example: "Thank you for your order [1]: [tea]. All right?",
      buttons: JSON.stringify([{ type: "QUICK_REPLY", text: "Keep it" }, { type: "QUICK_REPLY", text: "Cancel it" }]),
    };
    const url = `${PARTNER_URL}/partner/app/${APP_ID}/templates`;
    this.#templateId = (await post(url, fields, { Authorization: APP_TOKEN })).template.id;
  }

  /** Store an order and confirm it; return its id. */
  async placeOrder(phone, goods) {
    const id = this.#orders.size + 1;
    this.#orders.set(id, { phone, goods, state: "placed" });
    await this.#send("template/msg", phone, {
      template: JSON.stringify({ id: this.#templateId, params: [String(id), goods] }),
      postbackTexts: JSON.stringify([{ index: 0, text: `keep ${id}` }, { index: 1, text: `cancel ${id}` }]),
    });
    return id;
  }

  orderState(id) {
    return this.#orders.get(id).state;
  }

  /** Serve the receiver of callbacks on a free port; return the server. */
  serve() {
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const id = request.headers["waypost-callback-id"];
      try {
        if (!this.#processed.has(id)) await this.#handle(JSON.parse(body));
        this.#processed.add(id);
        response.writeHead(200).end();
      } catch (error) {
        response.writeHead(500).end(String(error));
      }
    });
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
  }

  async #handle({ type, payload }) {
    if (type !== "message" || payload.type !== "quick_reply") return;
    const [action, id] = payload.payload.postbackText.split(" ");
    const order = this.#orders.get(Number(id));
    order.state = action === "cancel" ? "cancelled" : "confirmed";
    const text = `Your order ${id} is ${order.state}.`;
    await this.#send("msg", order.phone, { message: JSON.stringify({ type: "text", text }) });
  }

  #send(path, destination, fields) {
    const { API_URL, API_KEY, SOURCE, SRC_NAME } = this.#env;
    const form = { channel: "whatsapp", source: SOURCE, "src.name": SRC_NAME, destination, ...fields };
    return post(`${API_URL}/wa/api/v1/${path}`, form, { apikey: API_KEY });
  }
}

async function post(url, fields, headers) {
  const response = await fetch(url, { method: "POST", headers, body: new URLSearchParams(fields) });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}
