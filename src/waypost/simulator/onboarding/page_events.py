"""The message and the call of its function that the page which opened the window gets at its end."""

import json
from typing import Any
from urllib.parse import urlencode

from waypost.simulator.onboarding.session import OnboardingSession
from waypost.simulator.state.embedded_signup import LATE_MS, OTHER_ORIGIN, SESSION_INFO_VERSION


def page_events(session: OnboardingSession) -> list[dict[str, Any]]:
    """Return what the page gets, in order: the message and the call of its function, each with its time.

    A message has the `data` of a `message` event as text; a callback the argument `response`, and for a dialog without
    the script the `redirect_url` in place of it.
    """
    if session.ended_ms is None:
        return []
    events: list[dict[str, Any]] = []
    message_ms = _delay(session, "message", session.message_delay_ms)
    callback_ms = _delay(session, "callback", session.callback_delay_ms)
    if session.event and session.sends_message and message_ms is not None:
        body = {
            "type": "WA_EMBEDDED_SIGNUP",
            "event": session.event,
            "data": session.data,
            "version": SESSION_INFO_VERSION,
        }
        at_ms = session.ended_ms + message_ms
        origin = OTHER_ORIGIN if "other_origin" in session.breaks else session.origin
        events.append({"kind": "message", "at_ms": at_ms, "origin": origin, "data": json.dumps(body)})
    if callback_ms is not None:
        code = session.code
        response: dict[str, Any] = {
            "authResponse": {"code": code} if code else None,
            "status": "connected" if code else "unknown",
        }
        event: dict[str, Any] = {"kind": "callback", "at_ms": session.ended_ms + callback_ms, "response": response}
        if session.redirect_uri:
            event["redirect_url"] = _redirect_url(session)
        events.append(event)
    first = "callback" if "callback_first" in session.breaks else session.order.partition("_")[0]
    return sorted(events, key=lambda event: (event["at_ms"], event["kind"] != first))


def _delay(session: OnboardingSession, kind: str, usual_ms: int | None) -> int | None:
    if f"{kind}_never" in session.breaks:
        return None
    return LATE_MS if f"{kind}_late" in session.breaks else usual_ms


def _redirect_url(session: OnboardingSession) -> str:
    query = {"code": session.code} if session.code else {"error": "access_denied", "error_reason": "user_denied"}
    state = {"state": session.state} if session.state else {}
    return f"{session.redirect_uri}{'&' if '?' in session.redirect_uri else '?'}{urlencode({**query, **state})}"
