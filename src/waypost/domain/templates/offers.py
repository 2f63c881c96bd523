"""The limited-time offer of a template, which may expire: its component, its texts, and the check of a send.

The form's fields are rows of `fields.py`, and their rules are in `rules.py`.

Source: spec, "Create template", isLTO; facts 3.2, LTO line; operator's facts 2.2, 4.2.
"""

from typing import Any

from waypost.domain.message import TemplateSend
from waypost.domain.session_messages.content import Body
from waypost.domain.templates.fields import TemplateDraft


def offer_component(draft: TemplateDraft) -> Body | None:
    """Return the component of the operator's template; None: it has no offer."""
    return {"type": "LIMITED_TIME_OFFER", "limited_time_offer": _offer(draft)} if draft.is_lto else None


def offer_parameters(send: TemplateSend, draft: TemplateDraft) -> Body | None:
    """Return the component of the operator's template message; None: it needs none."""
    if not draft.is_lto or send.expiration_ms is None:
        return None
    offer = {"expiration_time_ms": send.expiration_ms}
    return {"type": "limited_time_offer", "parameters": [{"type": "limited_time_offer", "limited_time_offer": offer}]}


def offer_members(draft: TemplateDraft) -> dict[str, Any]:
    """Return the members of the record's `containerMeta`."""
    return {"limitedTimeOffer": _offer(draft)} if draft.is_lto else {}


def offer_text(draft: TemplateDraft) -> str | None:
    """Return its line in the record's `data`, between body and footer; None: it has no offer."""
    return f"{draft.limited_offer_text or ''} | {'true' if draft.has_expiration else 'false'}" if draft.is_lto else None


def offer_preview(draft: TemplateDraft, until_ms: int | None) -> dict[str, Any]:
    """Return its members of a preview, in the format of the simulator control API.

    Args:
        draft: as stored, or as in the editor.
        until_ms: when the offer expires; None: not known.
    """
    if not draft.is_lto:
        return {}
    expires = {"expires": True, "expiration_time_ms": until_ms} if draft.has_expiration else {}
    return {"limited_time_offer": {"text": draft.limited_offer_text or "", **expires}}


def offer_error(send: TemplateSend, draft: TemplateDraft, now_ms: int) -> str | None:
    """Return why the operator will reject a send: field, rule, and what would be accepted; None: it will not."""
    if draft.is_lto and draft.has_expiration and (send.expiration_ms is None or send.expiration_ms <= now_ms):
        return "template.expiration is required for an offer that ends: milliseconds in the future"
    return None


def _offer(draft: TemplateDraft) -> dict[str, Any]:
    return {"text": draft.limited_offer_text, "has_expiration": bool(draft.has_expiration)}
