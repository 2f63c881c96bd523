"""Embedded signup on a running simulator: the window by the control API, the calls of the app by the Graph API."""

import json
from typing import Any

from tests.simulator.conftest import APP, SECRET, Bench, SimulatorResponse

OTHER_APP = "3000000000000009"


async def play(bench: Bench, **answers: Any) -> dict[str, Any]:
    """Use the window at once, and return the session."""
    played = await bench.control("POST", "onboarding/play", {"app_id": APP, **answers})
    assert played.status == 200, played.body
    return played.body


async def open_window(bench: Bench, **options: Any) -> dict[str, Any]:
    """Open the window, and return the session."""
    opened = await bench.control("POST", "onboarding/sessions", {"app_id": APP, **options})
    assert opened.status == 200, opened.body
    return opened.body


async def step(bench: Bench, session: dict[str, Any], name: str, **members: Any) -> dict[str, Any]:
    """Take one step, and return the session."""
    taken = await bench.control("POST", f"onboarding/sessions/{session['session_id']}/{name}", members)
    assert taken.status == 200, taken.body
    return taken.body


def message_of(session: dict[str, Any]) -> dict[str, Any] | None:
    """Return the message that the page gets; None if it gets none."""
    texts = [event["data"] for event in session["events"] if event["kind"] == "message"]
    return json.loads(texts[0]) if texts else None


def response_of(session: dict[str, Any]) -> dict[str, Any] | None:
    """Return the argument of the page's callback; None if it is not called."""
    responses = [event["response"] for event in session["events"] if event["kind"] == "callback"]
    return responses[0] if responses else None


async def exchange(
    bench: Bench, code: str, *, secret: str = SECRET, app_id: str = APP, **more: str
) -> SimulatorResponse:
    """Exchange a code by GET, as most clients do."""
    query = {"client_id": app_id, "client_secret": secret, "code": code, **more}
    return await bench.request("GET", "/v25.0/oauth/access_token", params=query)


async def get_token(bench: Bench, session: dict[str, Any]) -> str:
    """Exchange the code of a finished session, and return the token."""
    exchanged = await exchange(bench, session["code"])
    assert exchanged.status == 200, exchanged.body
    return exchanged.body["access_token"]


async def debug(bench: Bench, token: str) -> dict[str, Any]:
    """Return the debug data of a token, asked for with the app's own."""
    shown = await bench.graph("GET", "debug_token", f"{APP}|{SECRET}", params={"input_token": token})
    return shown.body["data"]
