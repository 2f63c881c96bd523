// The operator's script for pages that offer embedded signup: the same names, calls and messages as the real one.
// The message about the session comes from the operator's origin, and the call of the page's function beside it.
(function () {
  "use strict";
  const base = new URL(document.currentScript.src);
  // By their own names, which lead here for an intercepted browser, the script and the window have two hosts.
  const windowBase = base.hostname === "connect.facebook.net" ? new URL("https://www.facebook.com") : base;
  const settings = { version: "v25.0", appId: "" };
  const listeners = {};
  const POLL_MS = 250;
  const unknown = () => ({ authResponse: null, status: "unknown" });

  function newKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  async function ask(path, options) {
    const response = await fetch(new URL(path, base), options);
    return response.json();
  }

  function deliver(event, callback) {
    if (event.kind === "message") {
      window.dispatchEvent(new MessageEvent("message", { data: event.data, origin: event.origin, source: window }));
    } else {
      (listeners["auth.login"] || []).forEach((listener) => listener(event.response));
      callback(event.response);
    }
  }

  // Until the window has ended and everything has been delivered: it may be late, or never come.
  async function follow(dialog, key, callback) {
    const path = "/dialog/window/" + key;
    let given = 0, isClosed = false;
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      let state;
      try {
        const wasClosed = dialog.closed;
        const closes = wasClosed && !isClosed; // the window was closed since the last time
        state = await ask(path + (closes ? "/close" : "/events"), closes ? { method: "POST" } : {});
        isClosed = wasClosed;
      } catch (_error) {
        continue; // the operator is away: it will be asked again
      }
      state.events.slice(given).forEach((event) => deliver(event, callback));
      given = Math.max(given, state.events.length);
      if (isClosed && !state.is_open && !state.has_more) {
        if (!state.is_known) callback(unknown()); // the window showed an error, and no session
        return;
      }
      if (!isClosed && given > 0 && !state.has_more) dialog.close();
    }
  }

  const FB = {
    init(options) {
      Object.assign(settings, options);
    },
    login(callback, options = {}) {
      const key = newKey(), query = new URLSearchParams();
      Object.entries({ client_id: settings.appId, channel: key, display: "popup", origin: location.origin })
        .forEach(([name, value]) => query.set(name, value));
      for (const [name, value] of Object.entries(options)) {
        query.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
      }
      const url = new URL("/" + settings.version + "/dialog/oauth?" + query, windowBase);
      const dialog = window.open(url, "_blank", "width=640,height=780");
      if (dialog === null) {
        callback(unknown());
        return;
      }
      follow(dialog, key, callback || (() => {}));
    },
    getLoginStatus(callback) {
      setTimeout(() => callback(unknown()));
    },
    logout(callback) {
      setTimeout(() => callback && callback(unknown()));
    },
    getAuthResponse: () => null,
    getAccessToken: () => null,
    getUserID: () => "",
    api(...parameters) {
      const callback = parameters.find((one) => typeof one === "function");
      const message = "An active access token must be used: a signup gives a code, for the server.";
      const error = { message, type: "OAuthException", code: 2500 };
      setTimeout(() => callback && callback({ error }));
    },
    Event: {
      subscribe: (name, listener) => (listeners[name] = [...(listeners[name] || []), listener]),
      unsubscribe: (name, listener) => (listeners[name] = (listeners[name] || []).filter((one) => one !== listener)),
    },
    AppEvents: { logPageView() {}, logEvent() {}, activateApp() {} },
    XFBML: { parse(_element, callback) { if (callback) setTimeout(callback); } },
  };
  window.FB = FB;
  if (typeof window.fbAsyncInit === "function") setTimeout(window.fbAsyncInit);
})();
