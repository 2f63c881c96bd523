"""Every template: submission, edits, decisions, other changes and deletion, each a part of one transaction.

Source: facts 2.1 to 2.6.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.base.object_ids import make_id
from waypost.base.written_numbers import encode_json
from waypost.simulator.apis.errors import coded_error, no_such_object, template_error
from waypost.simulator.apis.languages import language_name
from waypost.simulator.apis.parameters import is_missing
from waypost.simulator.media.references import known_references
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.usage_counts import CREATIONS, count_usage, times_counted
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.store import Statement
from waypost.simulator.storage.tables.phone_plans import has_undelivered
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.template import (
    AUTO_GENERATED,
    SimulatedTemplate,
    TemplateDecision,
    apply_decision,
    components_update,
    status_update,
    template_members,
)
from waypost.simulator.templates.text_variables import component_texts, contains_any

TEMPLATES: Final = StoredKind(
    "template", SimulatedTemplate, keys_of=lambda each: ((each.waba_id, each.name, each.language),)
)
TEMPLATE_USES: Final = StoredKind("template_use", int)
"""The last use of each template; one within a day of it is not recorded."""
NAME_LOCKS: Final = StoredKind("name_lock", int)
"""Until when the names of deleted templates are locked: of an account, by name and language; "" is every language."""
_NAME_LOCK_MS: Final = 30 * DAY_MS  # Source: facts 2.6
_UNPAUSE_AFTER_MS: Final = 5 * MINUTE_MS  # Source: facts 2.1
_DELETION_GRACE_MS: Final = 30 * DAY_MS  # Source: facts 2.6, "Deleted but undelivered"
# A use within a day of the last recorded use is not recorded, so a day is added to the twelve months.
_ARCHIVE_AFTER_MS: Final = 366 * DAY_MS  # Source: facts 2.6, "Inactive 12 months"
_MAX_CREATIONS_PER_HOUR: Final = 100  # Source: facts 2.3, "Creations"
_TOO_MANY_CREATIONS_CODE: Final = 80007  # facts 8 has no code for creations; this one is the account's own limit
_MAX_EDITS_IN_30_DAYS: Final = 10  # Source: facts 2.6
_EDITABLE_STATUSES: Final = frozenset({"APPROVED", "REJECTED", "PAUSED"})  # Source: facts 2.6
_EDITABLE_FIELDS: Final = ("category", "components", "parameter_format", "message_send_ttl_seconds")
_SAMPLE_NAMES: Final = re.compile(  # Source: facts 2.4, "Name of a sample template"
    "hello_world|sample_(flight_confirmation|happy_hour_announcement|issue_resolution|movie_ticket_confirmation"
    "|purchase_feedback|shipping_confirmation)"
)
_STATUS_FIELD: Final = "message_template_status_update"
TEMPLATE_ACTIONS: Final = {  # Source: facts 3.1 to 3.3
    "pacing-pause": TemplateDecision("PAUSED", info=("RATE_LIMITING_PAUSE", "Your template is paused by pacing.")),
    "appeal": TemplateDecision("IN_APPEAL"),
    "disable": TemplateDecision("DISABLED", info=("DISABLED", "The template was disabled.")),
    "flag": TemplateDecision("", event="FLAGGED"),
    "reinstate": TemplateDecision("APPROVED", event="REINSTATED"),
    "unpause": TemplateDecision("APPROVED", info=("UNPAUSE", "The pause is over.")),
    "lock": TemplateDecision("", event="LOCKED", info=("RATE_LIMITING_PAUSE", "The template can't be edited now.")),
    "archive": TemplateDecision("ARCHIVED"),
    "unarchive": TemplateDecision("APPROVED", event="UNARCHIVED"),
    "limit": TemplateDecision("LIMIT_EXCEEDED"),
    "pending-deletion": TemplateDecision("PENDING_DELETION", None),
    "pend": TemplateDecision("PENDING"),
}
_PAUSES: Final = (  # Source: facts 3.2: 3 hours, 6 hours, then disabled; the last level applies to all further pauses
    TemplateDecision(
        "PAUSED",
        info=("FIRST_PAUSE", "Your template is paused for 3 hours because of its quality."),
        resume_after_ms=3 * HOUR_MS,
    ),
    TemplateDecision(
        "PAUSED",
        info=("SECOND_PAUSE", "Your template is paused for 6 hours because of its quality."),
        resume_after_ms=6 * HOUR_MS,
    ),
    TemplateDecision("DISABLED", info=("DISABLED", "Your template is disabled because of its quality.")),
)
ACTION_NAMES: Final = ("pause", *TEMPLATE_ACTIONS)
"""Every action that `decide_action` accepts."""

TemplateEvents = Sequence[tuple[str, dict[str, Any]]]
"""Webhook fields and their values."""


def find_template(state: SimulatorState, waba_id: str, name: str, language: str) -> SimulatedTemplate | None:
    """Return the account's template with a name and language; None if there is none."""
    return state.cached(TEMPLATES).by_further_key.get((waba_id, name, language))


def account_templates(reader: SimulatorState | Transaction, waba_id: str) -> list[SimulatedTemplate]:
    """Return the account's templates, oldest first."""
    return [template for template in list(reader.values(TEMPLATES).values()) if template.waba_id == waba_id]


def create_template(
    transaction: Transaction, waba_id: str, fields: Mapping[str, Any], *, is_approved: bool = False
) -> SimulatedTemplate:
    """Create a template and plan its review, or approve it at once; its category may differ from the requested one.

    Raises:
        GraphApiError: for the first violation.
    """
    state, settings, now_ms = transaction.state, transaction.state.settings.value, transaction.state.clock.now_ms()
    draft = check_draft(
        fields, known_references(state, waba_id), any_language=not settings.check_languages, strict=settings.strict
    )
    template = replace(
        draft,
        template_id=make_id(state.ids, "template"),
        waba_id=waba_id,
        created_ms=now_ms,
        updated_ms=now_ms,
        review_due_ms=_review_due_ms(state, waba_id),
    )
    allows_change = str(fields.get("allow_category_change")).lower() == "true"
    texts = component_texts(draft.components)
    if draft.category == "UTILITY" and allows_change and contains_any(texts, settings.marketing_words):
        template = replace(template, category="MARKETING", previous_category="UTILITY", message_send_ttl_seconds=None)
    _check_name(transaction, template)
    count_usage(transaction, CREATIONS, waba_id, template.template_id)
    if is_approved:
        return decide(transaction, template, TemplateDecision("APPROVED"))
    return save_template(transaction, template)


def edit_template(
    transaction: Transaction, template: SimulatedTemplate, fields: Mapping[str, Any]
) -> SimulatedTemplate:
    """Change components, category or lifetime, and plan a new review.

    Raises:
        GraphApiError: the wrong state, too many edits, or the first violation.
    """
    state, settings, now_ms = transaction.state, transaction.state.settings.value, transaction.state.clock.now_ms()
    known = transaction.find(TEMPLATES, template.template_id)
    if known is None:  # deleted meanwhile
        raise no_such_object("POST", template.template_id)
    _check_editable(known, fields, now_ms, is_limited=settings.limits)
    submission = {name: getattr(known, name) for name in _EDITABLE_FIELDS} | known.extras | dict(fields)
    submission |= {"name": known.name, "language": known.language}
    references = known_references(state, template.waba_id) if "components" in fields else None
    draft = check_draft(submission, references, any_language=True, strict=settings.strict)
    edited = replace(
        known,
        **{name: getattr(draft, name) for name in (*_EDITABLE_FIELDS, "extras")},
        status="PENDING",
        rejected_reason="NONE",
        updated_ms=now_ms,
        review_due_ms=_review_due_ms(state, known.waba_id),
        resume_due_ms=None,
        edited_ms=(*known.edited_ms, now_ms) if known.status == "APPROVED" else known.edited_ms,
    )
    return save_template(transaction, edited, [("message_template_components_update", components_update(edited))])


def delete_by_name(transaction: Transaction, waba_id: str, name: str, template_id: str | None = None) -> None:
    """Delete one template, or all languages of a name; an approved one locks its name.

    Raises:
        GraphApiError: no template has that name, or one of them is disabled.
    """
    same_name = [template for template in account_templates(transaction, waba_id) if template.name == name]
    templates = [template for template in same_name if template_id in (None, template.template_id)]
    if not templates:
        error = template_error(None, f"There is no message template named {name}.", "Message Template Not Found")
        error.status = 404  # Source: facts 2.6: clients treat 404 as already deleted
        raise error
    _delete_or_postpone(transaction, templates, for_all_languages=template_id is None)


def delete_by_ids(transaction: Transaction, waba_id: str, template_ids: Sequence[str]) -> None:
    """Delete several templates of an account, or none.

    Raises:
        GraphApiError: an id that the account does not have, or a disabled template.

    Source: facts 2.1, "hsm_ids".
    """
    known = [transaction.find(TEMPLATES, template_id) for template_id in template_ids]
    templates = [template for template in known if template is not None and template.waba_id == waba_id]
    if len(templates) != len(template_ids):
        raise template_error(None, "Param hsm_ids names a template that does not exist in this account.")
    _delete_or_postpone(transaction, templates, for_all_languages=False)


def finish_deletion(transaction: Transaction, template: SimulatedTemplate, *, for_all_languages: bool = False) -> None:
    """Delete a template, for example one whose pending deletion or archiving is over."""
    _lock_name(transaction, template, for_all_languages=for_all_languages)
    transaction.delete(TEMPLATES, template.template_id)
    deleted = replace(template, status="DELETED")
    value = status_update(deleted, TemplateDecision("DELETED", None), transaction.state.clock.now_ms())
    _send(transaction, deleted, [(_STATUS_FIELD, value)])


def is_unchanged(transaction: Transaction, template: SimulatedTemplate) -> bool:
    """True if a template is stored as it was read."""
    return encode_json(transaction.find(TEMPLATES, template.template_id)) == encode_json(template)


def decide_action(action: str, template: SimulatedTemplate) -> TemplateDecision:
    """Return the decision that an action makes about a template: one of `ACTION_NAMES`."""
    if action == "pause":
        return _PAUSES[min(template.pauses, len(_PAUSES) - 1)]
    return TEMPLATE_ACTIONS[action]


def decide(transaction: Transaction, template: SimulatedTemplate, decision: TemplateDecision) -> SimulatedTemplate:
    """Apply a decision to a template as it is now, send its webhook, and return the changed template."""
    now_ms = transaction.state.clock.now_ms()
    changed = apply_decision(template, decision, now_ms)
    return save_template(transaction, changed, [(_STATUS_FIELD, status_update(changed, decision, now_ms))])


def change_quality(transaction: Transaction, template: SimulatedTemplate, score: str) -> SimulatedTemplate:
    """Change the quality; RED pauses an approved template. Source: facts 3.2, 3.3."""
    value = {"previous_quality_score": template.quality, "new_quality_score": score, **template_members(template)}
    changed = replace(template, quality=score, updated_ms=transaction.state.clock.now_ms())
    save_template(transaction, changed, [("message_template_quality_update", value)])
    if score == "RED" and changed.status == "APPROVED":
        return decide(transaction, changed, decide_action("pause", changed))
    return changed


def announce_category(
    transaction: Transaction, template: SimulatedTemplate, category: str, due_ms: int
) -> SimulatedTemplate:
    """Announce another category, which takes effect by itself.

    Source: facts 3.2, 3.3: in the announcement `new_category` is the current one.
    """
    times = {"category_update_timestamp": due_ms // 1000}
    value = template_members(template) | {"new_category": template.category, "correct_category": category} | times
    changed = replace(template, correct_category=category, category_due_ms=due_ms)
    return save_template(transaction, changed, [("template_category_update", value)])


def change_category(transaction: Transaction, template: SimulatedTemplate, category: str) -> SimulatedTemplate:
    """Change the category, which removes the lifetime. Source: facts 3.2."""
    value = template_members(template) | {"previous_category": template.category, "new_category": category}
    changed = replace(
        template,
        category=category,
        previous_category=template.category,
        correct_category=None,
        category_due_ms=None,
        message_send_ttl_seconds=None,
        updated_ms=transaction.state.clock.now_ms(),
    )
    return save_template(transaction, changed, [("template_category_update", value)])


def start_pacing(
    transaction: Transaction, template: SimulatedTemplate, until_ms: int | None, verdict: str
) -> SimulatedTemplate:
    """Hold the messages sent from now on: until a time, or with None until a request ends it.

    Args:
        verdict: `release` or `drop`: what then happens to the held messages.

    Source: facts 3.2, "pacing".
    """
    return save_template(transaction, replace(template, is_paced=True, pace_due_ms=until_ms, pace_verdict=verdict))


def end_pacing(transaction: Transaction, template: SimulatedTemplate, verdict: str | None = None) -> SimulatedTemplate:
    """End pacing: held messages are released, or dropped and the template paused; None: as planned.

    Source: facts 3.2, "pacing".
    """
    if not template.is_paced:
        return template
    ended = replace(template, is_paced=False, pace_due_ms=None, pace_verdict=verdict or template.pace_verdict)
    if ended.pace_verdict == "drop" and ended.status == "APPROVED":
        return decide(transaction, ended, TEMPLATE_ACTIONS["pacing-pause"])
    return save_template(transaction, ended)


def unpause(transaction: Transaction, template: SimulatedTemplate) -> str:
    """End a pause by pacing; return the reason if that is not possible, else an empty text.

    Source: facts 2.1, "unpause": not sooner than five minutes after the pause began.
    """
    template = transaction.find(TEMPLATES, template.template_id) or template
    if template.status != "PAUSED":
        return "The template is not paused."
    if template.source == AUTO_GENERATED:
        return "The template was generated by Direct Send, which only time unpauses."
    if template.resume_due_ms is not None:
        return "The template is paused for its quality, which only time ends."
    if template.paused_ms is not None and transaction.state.clock.now_ms() < template.paused_ms + _UNPAUSE_AFTER_MS:
        return "The template was paused less than 5 minutes ago."
    decide(transaction, template, TEMPLATE_ACTIONS["unpause"])
    return ""


def save_template(
    transaction: Transaction, template: SimulatedTemplate, events: TemplateEvents = ()
) -> SimulatedTemplate:
    """Store a template, replacing any with its id, and send webhooks about it; return it."""
    transaction.save(TEMPLATES, template, template.template_id)
    _send(transaction, template, events)
    return template


def record_use(state: SimulatorState, template: SimulatedTemplate) -> list[Statement]:
    """Record that a template is used now; return the statements for its message's transaction."""
    now_ms, uses = state.clock.now_ms(), state.cached(TEMPLATE_USES)
    if now_ms < uses.all.get(template.template_id, 0) + DAY_MS:
        return []
    uses.put(now_ms, template.template_id)
    return [TEMPLATE_USES.save_statement(now_ms, template.template_id)]


def archive_due_ms(state: SimulatorState, template: SimulatedTemplate) -> int | None:
    """Return when a template is archived if it stays unused for a year; None if it will not be."""
    if template.status != "APPROVED":
        return None
    used_ms = state.values(TEMPLATE_USES).get(template.template_id, 0)
    return max(used_ms, template.updated_ms) + _ARCHIVE_AFTER_MS


def _review_due_ms(state: SimulatorState, waba_id: str) -> int | None:
    account, delay_ms = state.accounts.by_id.get(waba_id), state.settings.value.review_delay_ms
    if delay_ms is None or (account is not None and account.manual_reviews):
        return None
    return state.clock.now_ms() + delay_ms


def _check_name(transaction: Transaction, template: SimulatedTemplate) -> None:
    """Check the name of a new template, and the number of templates.

    Raises:
        GraphApiError: 2388023, 2388024, 2388019; 100 for a sample's name and 80007 for the hour's hundred and first
            creation, both only if the settings are strict.

    Source: facts 2.3, 2.4, 2.6.
    """
    settings, name, language = transaction.state.settings.value, template.name, template.language
    others = account_templates(transaction, template.waba_id)
    if settings.strict and _SAMPLE_NAMES.fullmatch(name):
        raise template_error(None, "Template name is already used as a sample template.")
    existing = next((other for other in others if (other.name, other.language) == (name, language)), None)
    locks = [transaction.find(NAME_LOCKS, f"{name} {locked}", template.waba_id) for locked in ("", language)]
    retry = ""  # Source: facts 2.4: one number, two texts
    if any(until_ms is not None and until_ms > transaction.state.clock.now_ms() for until_ms in locks):
        retry = "in 4 weeks or consider creating a new message template"
    elif existing is not None and existing.status == "PENDING_DELETION":
        retry = "in less than a minute"
    if retry:
        shown = language_name(language)
        rule = f"New {shown} content can't be added while the existing {shown} content is being deleted."
        raise template_error(2388023, f"{rule} Try again {retry}.")
    if existing is not None:
        raise template_error(
            2388024,
            f"There is already {language_name(language)} content for this template. You "
            "can create a new template and try again.",
        )
    if len(others) >= settings.templates_at_most:
        raise template_error(2388019, f"An account has at most {settings.templates_at_most} message templates.")
    creations = times_counted(transaction, CREATIONS, template.waba_id, within_ms=HOUR_MS)
    if settings.strict and creations >= _MAX_CREATIONS_PER_HOUR:
        raise coded_error(_TOO_MANY_CREATIONS_CODE)


def _check_editable(template: SimulatedTemplate, fields: Mapping[str, Any], now_ms: int, *, is_limited: bool) -> None:
    """Check that a template may be edited.

    Args:
        is_limited: whether the number of edits of an approved template is limited.

    Raises:
        GraphApiError: 100, no field to change, another category for an approved template, or too many
            edits (no subcode is documented); 2388318, a template of Direct Send; 2388039, the state does not
            allow edits.

    Source: facts 2.4, 2.6.
    """
    if not any(name in fields for name in _EDITABLE_FIELDS):
        raise is_missing("components")
    if template.source == AUTO_GENERATED:
        raise template_error(2388318, "Templates generated by Direct Send can't be updated.")
    if template.status not in _EDITABLE_STATUSES:
        raise template_error(2388039, f"A template that is {template.status} can't be edited.")
    if template.status != "APPROVED":
        return
    if str(fields.get("category", template.category)).upper() != template.category:
        raise template_error(None, "The category of an approved message template cannot be edited.")
    recent = [at_ms for at_ms in template.edited_ms if at_ms > now_ms - 30 * DAY_MS]
    is_too_soon = bool(recent) and recent[-1] > now_ms - DAY_MS
    if is_limited and (is_too_soon or len(recent) >= _MAX_EDITS_IN_30_DAYS):
        raise template_error(None, "An approved template can be edited once in 24 hours and 10 times in 30 days.")


def _delete_or_postpone(
    transaction: Transaction, templates: Sequence[SimulatedTemplate], *, for_all_languages: bool
) -> None:
    """Delete templates; those with undelivered messages become pending deletion instead.

    Raises:
        GraphApiError: 2388330 for a template of Direct Send, 100 for a disabled one.
    """
    now_ms = transaction.state.clock.now_ms()
    for template in templates:
        if template.source == AUTO_GENERATED:
            raise template_error(2388330, "Templates generated by Direct Send can't be deleted.")
        if template.status == "DISABLED":
            raise template_error(None, "A disabled message template cannot be deleted.")
    for template in templates:
        key = (template.waba_id, template.name, template.language)
        if template.status == "PENDING_DELETION" or not has_undelivered(transaction.connection, *key):
            finish_deletion(transaction, template, for_all_languages=for_all_languages)
            continue
        _lock_name(transaction, template, for_all_languages=for_all_languages)
        pending = decide(transaction, template, TEMPLATE_ACTIONS["pending-deletion"])
        save_template(transaction, replace(pending, delete_due_ms=now_ms + _DELETION_GRACE_MS))


def _lock_name(transaction: Transaction, template: SimulatedTemplate, *, for_all_languages: bool) -> None:
    """Lock the name of an approved template for 30 days. Source: facts 2.6."""
    if template.status == "APPROVED":
        key = f"{template.name} {'' if for_all_languages else template.language}"
        transaction.save(NAME_LOCKS, transaction.state.clock.now_ms() + _NAME_LOCK_MS, key, template.waba_id)


def _send(transaction: Transaction, template: SimulatedTemplate, events: TemplateEvents) -> None:
    for field, value in events:
        transaction.notify(template.waba_id, field, value, subject=template.template_id)
    transaction.follow(transaction.state.templates_changed.set)
