"""The check of a template edit: the template's state, the fields to change, and the number of earlier edits."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.base.clock import DAY_MS
from waypost.simulator.errors import bad_parameter, template_error
from waypost.simulator.templates.template import SimulatedTemplate

_MAX_EDITS_IN_30_DAYS: Final = 10  # Source: facts 2.6
_EDITABLE_STATUSES: Final = frozenset({"APPROVED", "REJECTED", "PAUSED"})  # Source: facts 2.6
_EDITABLE_FIELDS: Final = frozenset({"components", "category", "parameter_format", "message_send_ttl_seconds"})


def check_editable(template: SimulatedTemplate, fields: Mapping[str, Any], now_ms: int, *, is_limited: bool) -> None:
    """Check that a template may be edited.

    Args:
        template: in its current state.
        fields: the fields to change.
        now_ms: the time.
        is_limited: whether the number of edits of an approved template is limited.

    Raises:
        GraphApiError: 100, no field to change, another category for an approved template, or too many
            edits (no subcode is documented); 2388039, the state does not allow edits.

    Source: facts 2.4, 2.6.
    """
    if not _EDITABLE_FIELDS & set(fields):
        raise bad_parameter("The parameter components is required.")
    if template.status not in _EDITABLE_STATUSES:
        raise template_error(2388039, f"A template that is {template.status} can't be edited.")
    if template.status != "APPROVED":
        return
    category = str(fields.get("category", template.category)).upper()
    if category != template.category:
        raise template_error(None, "The category of an approved message template cannot be edited.")
    recent = [at_ms for at_ms in template.edited_ms if at_ms > now_ms - 30 * DAY_MS]
    is_too_soon = bool(recent) and recent[-1] > now_ms - DAY_MS
    if is_limited and (is_too_soon or len(recent) >= _MAX_EDITS_IN_30_DAYS):
        raise template_error(None, "An approved template can be edited once in 24 hours and 10 times in 30 days.")
