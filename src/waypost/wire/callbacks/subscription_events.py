"""Version 2 bodies of what becomes of a subscription itself."""

from waypost.domain.app import App
from waypost.wire.callbacks.callback_v2 import envelope
from waypost.wire.callbacks.kinds import PAUSED


def paused_body(
    app: App, at_ms: int, version: int, *, subscription_id: str, tag: str, url: str, since_ms: int, reason: str
) -> bytes | None:
    """The service has paused a subscription; None in version 3, whose bodies are the operator's.

    Source: decision 0042; the names are those of subscription objects.
    """
    if version != 2:
        return None
    inner = {"id": subscription_id, "tag": tag, "url": url, "since": since_ms, "reason": reason}
    return envelope(app, at_ms, PAUSED.type, {"type": PAUSED.inner_type, "payload": inner})
