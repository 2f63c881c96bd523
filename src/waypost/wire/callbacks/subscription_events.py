"""Version 2 bodies of events of a subscription."""

from waypost.domain.app import App
from waypost.wire.callbacks.callback_v2 import envelope
from waypost.wire.callbacks.kinds import PAUSED


def paused_body(
    app: App, at_ms: int, version: int, *, subscription_id: str, tag: str, url: str, since_ms: int, reason: str
) -> bytes | None:
    """Return the body for a subscription that the service paused; None in version 3, which has only operator bodies.

    Source: decision 0042; the names are those of subscription objects.
    """
    if version != 2:
        return None
    payload = {"id": subscription_id, "tag": tag, "url": url, "since": since_ms, "reason": reason}
    return envelope(app, at_ms, PAUSED.type, {"type": PAUSED.inner_type, "payload": payload})
