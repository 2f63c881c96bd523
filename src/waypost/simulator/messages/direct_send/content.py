"""The content of Direct Send messages: the formats and limits of a template, written as a free-form message."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.errors import bad_parameter
from waypost.simulator.media.references import KnownReferences
from waypost.simulator.messages.interactive.fields import check_distinct, invalid_error, missing_error, require_text
from waypost.simulator.messages.interactive.interactive_types import (
    ANY_HEADER,
    Action,
    Buttons,
    InteractiveType,
    link_button,
    render_interactive,
    voice_call_button,
)
from waypost.simulator.messages.message_kinds import render_message
from waypost.simulator.messages.template_sends.rendering import RenderedMessage

_MAX_BODY_CHARS: Final = 1024
_MAX_LABEL_CHARS: Final = 20
_MAX_BUTTONS: Final = 10
_MAX_LINKS: Final = 2
_BUTTONS_PATH: Final = "action']['buttons"


def render_direct(kind: str, content: Any, references: KnownReferences | None) -> RenderedMessage:
    """Check the content of a Direct Send message, and return it as the phone will show it.

    Args:
        kind: `text` or `interactive`.
        content: the member of the request that has the kind's name.
        references: what the sender may refer to; None: references are not checked.

    Raises:
        GraphApiError: 100 for a missing or too long member, 131009 for a wrong one.

    Source: the operator's pages "Direct Send: supported features and limits" and
        "Direct Send: supported message types".
    """
    interactive = object_or_none(content) if kind == "interactive" else None
    if interactive is not None:
        return render_interactive(interactive, references, _DIRECT_TYPES)
    rendered = render_message(kind, content, references)
    if len(rendered["text"]) > _MAX_BODY_CHARS:
        raise bad_parameter(f"Param text['body'] must be at most {_MAX_BODY_CHARS} characters long.")
    return {name: value for name, value in rendered.items() if name != "preview_url"}


def _mixed_buttons(action: Action, _references: KnownReferences | None) -> Buttons:
    """Return up to 10 buttons: at most 2 links, then replies, which a tap returns as those of a template."""
    raw_buttons = objects_in(action.get("buttons"))
    if not raw_buttons:
        raise missing_error(_BUTTONS_PATH)
    if len(raw_buttons) > _MAX_BUTTONS:
        raise invalid_error(_BUTTONS_PATH, f"has 1 to {_MAX_BUTTONS} buttons")
    kinds = [text_or_none(button.get("type")) for button in raw_buttons]
    if any(kind not in ("cta_url", "reply") for kind in kinds):
        raise invalid_error(_BUTTONS_PATH, "has buttons of the types cta_url and reply")
    if kinds.count("cta_url") > _MAX_LINKS:
        raise invalid_error(_BUTTONS_PATH, f"has at most {_MAX_LINKS} buttons of the type cta_url")
    if kinds != sorted(kinds, key=str):
        raise invalid_error(_BUTTONS_PATH, "has those of the type cta_url before those of the type reply")
    buttons = [_mixed_button(button) for button in raw_buttons]
    check_distinct(_BUTTONS_PATH, [button["payload"] for button in buttons if "payload" in button])
    return buttons


def _mixed_button(button: dict[str, Any]) -> dict[str, Any]:
    if button.get("type") == "cta_url":
        link = object_or_none(button.get("cta_url"))
        if link is None:
            raise missing_error(f"{_BUTTONS_PATH}']['cta_url")
        return link_button({"parameters": link}, None)[0]
    reply = object_or_none(button.get("reply")) or {}
    return {
        "type": "QUICK_REPLY",
        "text": require_text(reply, "title", _BUTTONS_PATH, _MAX_LABEL_CHARS),
        "payload": require_text(reply, "id", _BUTTONS_PATH, 256),
    }


# fmt: off
_DIRECT_TYPES: Final = {  # Source: the operator's page "Direct Send: supported message types"
    #                             needs body  headers    needs header  buttons
    "button":     InteractiveType(True,       ANY_HEADER, False,       _mixed_buttons),
    "cta_url":    InteractiveType(True,       ANY_HEADER, False,       link_button),
    "voice_call": InteractiveType(True,       ("text",),  False,       voice_call_button),
}
# fmt: on
