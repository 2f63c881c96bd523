"""Template components other than header, body, footer, buttons and cards: a class for each, and the table of them.

The operator's bodies, the record, its text, the preview and the strict checks of a send use every row. The form's
fields are rows of `fields.py`, and their rules are in `rules.py`.
"""

from typing import Any, Final

from waypost.domain.message import TemplateSend
from waypost.domain.session_messages.content import Body
from waypost.domain.templates.fields import TemplateDraft


class TemplateExtra:
    """A row of the table. Each method returns nothing for a template without it, which is also the default."""

    def component(self, draft: TemplateDraft) -> Body | None:
        """Return the component of the operator's template."""
        return None

    def send_component(self, send: TemplateSend, draft: TemplateDraft) -> Body | None:
        """Return the component of the operator's template message."""
        return None

    def record_members(self, draft: TemplateDraft) -> dict[str, Any]:
        """Return the members of the record's `containerMeta`."""
        return {}

    def record_text(self, draft: TemplateDraft) -> str | None:
        """Return its line in the record's `data`, between body and footer."""
        return None

    def preview_members(self, draft: TemplateDraft, until_ms: int | None) -> dict[str, Any]:
        """Return its members of a preview, in the format of the simulator control API.

        Args:
            draft: as stored, or as in the editor.
            until_ms: when an offer expires; None: not known.
        """
        return {}

    def send_error(self, send: TemplateSend, draft: TemplateDraft, now_ms: int) -> str | None:
        """Return why the operator will reject a send: field, rule, and what would be accepted."""
        return None


class LimitedTimeOffer(TemplateExtra):
    """A limited-time offer, which may expire.

    Source: spec, "Create template", isLTO; facts 3.2, LTO line; operator's facts 2.2, 4.2.
    """

    def component(self, draft: TemplateDraft) -> Body | None:
        return {"type": "LIMITED_TIME_OFFER", "limited_time_offer": self._offer(draft)} if draft.is_lto else None

    def send_component(self, send: TemplateSend, draft: TemplateDraft) -> Body | None:
        if not draft.is_lto or send.expiration_ms is None:
            return None
        offer = {"expiration_time_ms": send.expiration_ms}
        return {
            "type": "limited_time_offer",
            "parameters": [{"type": "limited_time_offer", "limited_time_offer": offer}],
        }

    def record_members(self, draft: TemplateDraft) -> dict[str, Any]:
        return {"limitedTimeOffer": self._offer(draft)} if draft.is_lto else {}

    def record_text(self, draft: TemplateDraft) -> str | None:
        if not draft.is_lto:
            return None
        return f"{draft.limited_offer_text or ''} | {'true' if draft.has_expiration else 'false'}"

    def preview_members(self, draft: TemplateDraft, until_ms: int | None) -> dict[str, Any]:
        if not draft.is_lto:
            return {}
        expires = {"expires": True, "expiration_time_ms": until_ms} if draft.has_expiration else {}
        return {"limited_time_offer": {"text": draft.limited_offer_text or "", **expires}}

    def send_error(self, send: TemplateSend, draft: TemplateDraft, now_ms: int) -> str | None:
        if not draft.is_lto or not draft.has_expiration:
            return None
        if send.expiration_ms is None or send.expiration_ms <= now_ms:
            return "template.expiration is required for an offer that ends: milliseconds in the future"
        return None

    def _offer(self, draft: TemplateDraft) -> dict[str, Any]:
        return {"text": draft.limited_offer_text, "has_expiration": bool(draft.has_expiration)}


TEMPLATE_EXTRAS: Final[tuple[TemplateExtra, ...]] = (LimitedTimeOffer(),)
