"""Flow JSON for tests: one screen that ends the Flow."""

from typing import Any


def one_screen_flow(
    *components: dict[str, Any], screen_id: str = "START", version: str = "7.0", label: str = "Book"
) -> dict[str, Any]:
    """Return a valid Flow of one screen: the components, and a Footer that completes it."""
    footer: dict[str, Any] = {"type": "Footer", "label": label, "on-click-action": {"name": "complete", "payload": {}}}
    layout: dict[str, Any] = {"type": "SingleColumnLayout", "children": [*components, footer]}
    return {"version": version, "screens": [{"id": screen_id, "title": "Book", "terminal": True, "layout": layout}]}
