"""Checks of a new template's name, and of an edit: both depend on the account's other templates and the time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from waypost.base.clock import DAY_MS
from waypost.simulator.errors import coded_error, template_error
from waypost.simulator.keyed_store import StoredKind
from waypost.simulator.languages import language_name
from waypost.simulator.parameters import is_missing
from waypost.simulator.simulator_state import SimulatorState, Transaction
from waypost.simulator.templates.template import AUTO_GENERATED, SimulatedTemplate

NAME_LOCK_MS: Final = 30 * DAY_MS  # Source: facts 2.6
NAME_LOCKS: Final = StoredKind("name_lock", int)
"""Until when the names of deleted templates are locked: of an account, by `name_lock`."""
_MAX_CREATIONS_PER_HOUR: Final = 100  # Source: facts 2.3, "Creations"
_TOO_MANY_CREATIONS_CODE: Final = 80007  # facts 8 has no code for creations; this one is the account's own limit
_MAX_EDITS_IN_30_DAYS: Final = 10  # Source: facts 2.6
_EDITABLE_STATUSES: Final = frozenset({"APPROVED", "REJECTED", "PAUSED"})  # Source: facts 2.6
_EDITABLE_FIELDS: Final = frozenset({"components", "category", "parameter_format", "message_send_ttl_seconds"})
SAMPLE_NAMES: Final = frozenset(  # Source: facts 2.4, "Name of a sample template"
    {
        "hello_world",
        "sample_flight_confirmation",
        "sample_happy_hour_announcement",
        "sample_issue_resolution",
        "sample_movie_ticket_confirmation",
        "sample_purchase_feedback",
        "sample_shipping_confirmation",
    }
)


def name_lock(name: str, language: str) -> str:
    """Return the key of a locked name; the empty language stands for all languages."""
    return f"{name} {language}"


def check_name(
    state: SimulatorState,
    transaction: Transaction,
    template: SimulatedTemplate,
    others: Sequence[SimulatedTemplate],
    creations: int,
) -> None:
    """Check the name of a new template and the number of templates.

    Args:
        state: the state.
        transaction: in which the template is stored.
        template: the new one.
        others: all other templates of the account.
        creations: how many templates the account has created within an hour.

    Raises:
        GraphApiError: 2388023, 2388024, 2388019; 100 for a sample's name and 80007 for the hour's
            hundred and first creation, both only if the settings are strict.

    Source: facts 2.3, 2.4, 2.6.
    """
    settings, name, language = state.settings.value, template.name, template.language
    if settings.strict and name in SAMPLE_NAMES:
        raise template_error(None, "Template name is already used as a sample template.")
    for locked in ("", language):
        until_ms = transaction.find(NAME_LOCKS, name_lock(name, locked), template.waba_id) or 0
        if until_ms > state.clock.now_ms():
            retry_text = "in 4 weeks or consider creating a new message template"
            raise template_error(2388023, _being_deleted_text(language, retry_text))
    existing = next((other for other in others if (other.name, other.language) == (name, language)), None)
    if existing is not None and existing.status == "PENDING_DELETION":
        raise template_error(2388023, _being_deleted_text(language, "in less than a minute"))
    if existing is not None:
        raise template_error(
            2388024,
            f"There is already {language_name(language)} content for this template. You "
            "can create a new template and try again.",
        )
    if len(others) >= settings.templates_at_most:
        raise template_error(2388019, f"An account has at most {settings.templates_at_most} message templates.")
    if settings.strict and creations >= _MAX_CREATIONS_PER_HOUR:
        raise coded_error(_TOO_MANY_CREATIONS_CODE)


def _being_deleted_text(language: str, retry_text: str) -> str:
    """Return the text about a name that is being deleted. Source: facts 2.4: one number, two texts."""
    name = language_name(language)
    return (
        f"New {name} content can't be added while the existing {name} content is being deleted. Try again {retry_text}."
    )


def check_editable(template: SimulatedTemplate, fields: Mapping[str, Any], now_ms: int, *, is_limited: bool) -> None:
    """Check that a template may be edited.

    Args:
        template: in its current state.
        fields: the fields to change.
        now_ms: the time.
        is_limited: whether the number of edits of an approved template is limited.

    Raises:
        GraphApiError: 100, no field to change, another category for an approved template, or too many
            edits (no subcode is documented); 2388318, a template of Direct Send; 2388039, the state does not
            allow edits.

    Source: facts 2.4, 2.6.
    """
    if not _EDITABLE_FIELDS & set(fields):
        raise is_missing("components")
    if template.source == AUTO_GENERATED:
        raise template_error(2388318, "Templates generated by Direct Send can't be updated.")
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
