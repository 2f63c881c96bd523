"""The steps that the script of a player posts, and the responses that it gets."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from waypost.flow_pages.rendering import PlayerElement, render_log, render_player
from waypost.flow_player.play_state import PlayerView

_WITHOUT_TARGET = ("back", "refresh", "close")


class UnknownStep(ValueError):
    """A form is none of the script's."""


def read_step(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a step as the simulator's control API takes it.

    Raises:
        UnknownStep: no page of ours posts it.
    """
    name, kind = fields.get("name", ""), fields.get("step", "")
    if kind == "fill" and name:
        try:
            return {"fill": {name: json.loads(fields.get("value", ""))}}
        except (ValueError, RecursionError):
            raise UnknownStep("value must be JSON") from None
    if kind == "press" and fields.get("target"):
        return {"tap": fields["target"]}
    if kind == "remove" and name and fields.get("media_id"):
        return {"remove": {name: fields["media_id"]}}
    if kind in _WITHOUT_TARGET:
        return {kind: True}
    raise UnknownStep("step must be one of fill, press, remove, back, refresh, close")


def build_response(
    view: PlayerView, element: PlayerElement, events: Sequence[Mapping[str, Any]] = (), *,
    step: str = "", screen_before: str = "", rejection: str = "",
) -> dict[str, Any]:  # fmt: skip
    """Return the response to a step, as JSON.

    Args:
        events: what the step has caused, as the control API lists it.
        step: its name; errors beside the fields say why a press is refused.
        screen_before: the screen that was shown; empty: none was.
        rejection: why the handset does not allow the step; empty: it does.
    """
    opened = next((str(one.get("url", "")) for one in reversed(events) if one.get("type") == "opened_url"), "")
    moved = view.state in ("screen", "busy") and view.screen_id != screen_before
    navigations = [{"type": "screen", "screen": view.screen_id, "before": screen_before}] if moved else []
    rejections = [{"type": "rejected", "reason": rejection}] if rejection else []
    is_explained = step == "press" and any(one.error for one in view.components)
    return {
        "pieces": [{"id": element.id, "html": render_player(view, element, opened_url=opened)}],
        "log": render_log([*events, *navigations, *rejections]),
        "rejected": bool(rejection),
        "message": "" if is_explained else rejection,
    }
