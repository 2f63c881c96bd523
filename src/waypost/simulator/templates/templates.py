"""Every template: submission, edits, decisions and deletion.

Source: facts 2.1 to 2.6.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.base.written_numbers import encode_json
from waypost.simulator.accounts.usage_counts import CREATIONS
from waypost.simulator.errors import no_such_object, template_error
from waypost.simulator.keyed_store import StoredKind
from waypost.simulator.media.references import known_references
from waypost.simulator.simulator_state import SimulatorState, Transaction
from waypost.simulator.store import Statement
from waypost.simulator.tables.phone_plans import has_undelivered
from waypost.simulator.templates.admission import NAME_LOCK_MS, NAME_LOCKS, check_editable, check_name, name_lock
from waypost.simulator.templates.changes import (
    STATUS_FIELD,
    TemplateChange,
    TemplateEvents,
    decide_action,
    decision_events,
)
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.template import (
    AUTO_GENERATED,
    SimulatedTemplate,
    TemplateDecision,
    apply_decision,
    components_update,
)
from waypost.simulator.templates.text_variables import component_texts, contains_any

TEMPLATES: Final = StoredKind("template", SimulatedTemplate)
TEMPLATE_USES: Final = StoredKind("template_use", int)
"""The last use of each template; one within a day of it is not recorded."""
_UNPAUSE_AFTER_MS: Final = 5 * MINUTE_MS  # Source: facts 2.1
_DELETION_GRACE_MS: Final = 30 * DAY_MS  # Source: facts 2.6, "Deleted but undelivered"
# A use within a day of the last recorded use is not recorded, so a day is added to the twelve months.
_ARCHIVE_AFTER_MS: Final = 366 * DAY_MS  # Source: facts 2.6, "Inactive 12 months"


class Templates:
    """Every template of every account, by id and by account, name and language."""

    def __init__(self, state: SimulatorState) -> None:
        self._state = state
        self.by_id = state.values(TEMPLATES)
        self.by_key = state.cached(TEMPLATES).index(lambda item: ((item.waba_id, item.name, item.language),))
        self.changed = asyncio.Event()

    def list_templates(self, waba_id: str) -> list[SimulatedTemplate]:
        """Return the account's templates, oldest first."""
        return [template for template in self.by_id.values() if template.waba_id == waba_id]

    async def create(self, waba_id: str, fields: Mapping[str, Any], *, is_approved: bool = False) -> SimulatedTemplate:
        """Create a template and plan its review, or approve it at once; its category may differ from the requested one.

        Raises GraphApiError: for the first violation.
        """
        state, settings, now_ms = self._state, self._state.settings.value, self._state.clock.now_ms()
        draft = check_draft(
            fields, known_references(state, waba_id), any_language=not settings.check_languages, strict=settings.strict
        )
        creations = state.usage_counts.count(CREATIONS, waba_id, within_ms=HOUR_MS)
        becomes_marketing = (
            draft.category == "UTILITY"
            and str(fields.get("allow_category_change")).lower() == "true"
            and contains_any(component_texts(draft.components), settings.marketing_words)
        )
        template = SimulatedTemplate(
            template_id="1" + state.ids.digits(15),  # 16 digits, below 2^53
            waba_id=waba_id,
            name=draft.name,
            language=draft.language,
            category="MARKETING" if becomes_marketing else draft.category,
            previous_category=draft.category if becomes_marketing else None,
            components=draft.components,
            parameter_format=draft.parameter_format,
            created_ms=now_ms,
            updated_ms=now_ms,
            review_due_ms=self._review_due_ms(waba_id),
            message_send_ttl_seconds=None if becomes_marketing else draft.message_send_ttl_seconds,
            extras=draft.extras,
        )

        def write(transaction: Transaction) -> SimulatedTemplate:
            check_name(state, transaction, template, _account_templates(transaction, waba_id), creations)
            transaction.count(CREATIONS, waba_id, template.template_id)
            if not is_approved:
                self._save(transaction, template)
                return template
            decision = TemplateDecision("APPROVED")
            approved = apply_decision(template, decision, now_ms)
            self._save(transaction, approved, decision_events(approved, decision, now_ms))
            return approved

        return await state.transact(write)

    async def edit(self, template: SimulatedTemplate, fields: Mapping[str, Any]) -> SimulatedTemplate:
        """Change components, category or lifetime, and plan a new review.

        Raises GraphApiError: the wrong state, too many edits, or the first violation.
        """
        state, settings, now_ms = self._state, self._state.settings.value, self._state.clock.now_ms()
        references = known_references(state, template.waba_id) if "components" in fields else None

        def write(transaction: Transaction) -> SimulatedTemplate:
            known = transaction.find(TEMPLATES, template.template_id)
            if known is None:  # deleted meanwhile
                raise no_such_object("POST", template.template_id)
            check_editable(known, fields, now_ms, is_limited=settings.limits)
            own = ("category", "components", "parameter_format", "message_send_ttl_seconds")
            submission = {name: getattr(known, name) for name in own} | known.extras | dict(fields)
            submission |= {"name": known.name, "language": known.language}
            draft = check_draft(submission, references, any_language=True, strict=settings.strict)
            edited = replace(
                known,
                category=draft.category,
                components=draft.components,
                parameter_format=draft.parameter_format,
                message_send_ttl_seconds=draft.message_send_ttl_seconds,
                extras=draft.extras,
                status="PENDING",
                rejected_reason="NONE",
                updated_ms=now_ms,
                review_due_ms=self._review_due_ms(known.waba_id),
                resume_due_ms=None,
                edited_ms=(*known.edited_ms, now_ms) if known.status == "APPROVED" else known.edited_ms,
            )
            self._save(transaction, edited, [("message_template_components_update", components_update(edited))])
            return edited

        return await state.transact(write)

    async def delete(self, waba_id: str, name: str, template_id: str | None) -> None:
        """Delete one template, or all languages of a name; an approved one locks its name.

        Raises GraphApiError: no template has that name, or one of them is disabled.
        """

        def write(transaction: Transaction) -> None:
            templates = [
                template
                for template in _account_templates(transaction, waba_id)
                if template.name == name and template_id in (None, template.template_id)
            ]
            if not templates:
                text = f"There is no message template named {name}."
                error = template_error(None, text, "Message Template Not Found")
                error.status = 404  # Source: facts 2.6: clients treat 404 as already deleted
                raise error
            self._delete_or_postpone(transaction, templates, for_all_languages=template_id is None)

        await self._state.transact(write)

    async def delete_all(self, waba_id: str, template_ids: Sequence[str]) -> None:
        """Delete several templates of an account, or none.

        Raises GraphApiError: an id that the account does not have, or a disabled template. Source: facts 2.1,
        "hsm_ids".
        """

        def write(transaction: Transaction) -> None:
            known = [transaction.find(TEMPLATES, template_id) for template_id in template_ids]
            templates = [template for template in known if template is not None and template.waba_id == waba_id]
            if len(templates) != len(template_ids):
                raise template_error(None, "Param hsm_ids names a template that does not exist in this account.")
            self._delete_or_postpone(transaction, templates, for_all_languages=False)

        await self._state.transact(write)

    async def finish_deletion(self, template: SimulatedTemplate) -> None:
        """Delete a template whose pending deletion or archiving is over."""

        def write(transaction: Transaction) -> None:
            if _is_unchanged(transaction, template):
                self._delete(transaction, template, for_all_languages=False)

        await self._state.transact(write)

    async def decide(self, template: SimulatedTemplate, decision: TemplateDecision) -> SimulatedTemplate | None:
        """Apply a decision and send its webhook.

        Returns the changed template; None if it has been deleted or changed in the meantime.
        """
        now_ms = self._state.clock.now_ms()

        def write(transaction: Transaction) -> SimulatedTemplate | None:
            if not _is_unchanged(transaction, template):
                return None
            changed = apply_decision(template, decision, now_ms)
            self._save(transaction, changed, decision_events(changed, decision, now_ms))
            return changed

        return await self._state.transact(write)

    async def apply_change(self, template: SimulatedTemplate, change: TemplateChange) -> SimulatedTemplate:
        """Apply a change and send its webhooks; return the changed template."""
        now_ms = self._state.clock.now_ms()

        def write(transaction: Transaction) -> SimulatedTemplate:
            known = transaction.find(TEMPLATES, template.template_id)
            if known is None:  # deleted meanwhile
                return template
            changed, events = change(known, now_ms)
            self._save(transaction, changed, events)
            return changed

        return await self._state.transact(write)

    async def unpause(self, template: SimulatedTemplate) -> str:
        """End a pause by pacing; return the reason if that is not possible, else an empty text.

        Source: facts 2.1, "unpause": not sooner than five minutes after the pause began.
        """
        now_ms = self._state.clock.now_ms()
        template = self.by_id.get(template.template_id, template)
        if template.status != "PAUSED":
            return "The template is not paused."
        if template.source == AUTO_GENERATED:
            return "The template was generated by Direct Send, which only time unpauses."
        if template.resume_due_ms is not None:
            return "The template is paused for its quality, which only time ends."
        if template.paused_ms is not None and now_ms < template.paused_ms + _UNPAUSE_AFTER_MS:
            return "The template was paused less than 5 minutes ago."
        changed = await self.decide(template, decide_action("unpause", template))
        return "" if changed is not None else "The template has changed meanwhile."

    async def put(self, template: SimulatedTemplate) -> None:
        """Store a template, replacing any with its id."""
        await self._state.transact(lambda transaction: self._save(transaction, template))

    async def find_or_add(self, template: SimulatedTemplate, events: TemplateEvents) -> SimulatedTemplate:
        """Store a generated template, unless its name and language are in use; return the stored one."""

        def write(transaction: Transaction) -> SimulatedTemplate:
            for known in _account_templates(transaction, template.waba_id):
                if (known.name, known.language) == (template.name, template.language):
                    return known
            self._save(transaction, template, events)
            return template

        return await self._state.transact(write)

    def record_use(self, template: SimulatedTemplate) -> list[Statement]:
        """Record that a template is used now; return the statements for its message's transaction."""
        now_ms, uses = self._state.clock.now_ms(), self._state.cached(TEMPLATE_USES)
        if now_ms < uses.all.get(template.template_id, 0) + DAY_MS:
            return []
        uses.put(now_ms, template.template_id)
        return [uses.save_statement(now_ms, template.template_id)]

    def archive_due_ms(self, template: SimulatedTemplate) -> int | None:
        """Return when a template is archived if it stays unused for a year; None if it will not be."""
        if template.status != "APPROVED":
            return None
        used_ms = self._state.values(TEMPLATE_USES).get(template.template_id, 0)
        return max(used_ms, template.updated_ms) + _ARCHIVE_AFTER_MS

    def _review_due_ms(self, waba_id: str) -> int | None:
        account, delay_ms = self._state.accounts.by_id.get(waba_id), self._state.settings.value.review_delay_ms
        if delay_ms is None or (account is not None and account.manual_reviews):
            return None
        return self._state.clock.now_ms() + delay_ms

    def _delete_or_postpone(
        self, transaction: Transaction, templates: Sequence[SimulatedTemplate], *, for_all_languages: bool
    ) -> None:
        """Delete templates; those with undelivered messages become pending deletion instead.

        Raises GraphApiError: 2388330 for a template of Direct Send, 100 for a disabled one.
        """
        now_ms = self._state.clock.now_ms()
        for template in templates:
            if template.source == AUTO_GENERATED:
                raise template_error(2388330, "Templates generated by Direct Send can't be deleted.")
            if template.status == "DISABLED":
                raise template_error(None, "A disabled message template cannot be deleted.")
        for template in templates:
            key = (template.waba_id, template.name, template.language)
            if template.status == "PENDING_DELETION" or not has_undelivered(transaction.connection, *key):
                self._delete(transaction, template, for_all_languages=for_all_languages)
                continue
            decision = TemplateDecision("PENDING_DELETION", None)
            pending = replace(apply_decision(template, decision, now_ms), delete_due_ms=now_ms + _DELETION_GRACE_MS)
            self._lock_name(transaction, template, for_all_languages=for_all_languages)
            self._save(transaction, pending, decision_events(pending, decision, now_ms))

    def _delete(self, transaction: Transaction, template: SimulatedTemplate, *, for_all_languages: bool) -> None:
        self._lock_name(transaction, template, for_all_languages=for_all_languages)
        transaction.delete(TEMPLATES, template.template_id)
        deleted = replace(template, status="DELETED")
        events = decision_events(deleted, TemplateDecision("DELETED", None), self._state.clock.now_ms())
        self._send(transaction, deleted, events)

    def _lock_name(self, transaction: Transaction, template: SimulatedTemplate, *, for_all_languages: bool) -> None:
        """Lock the name of an approved template for 30 days. Source: facts 2.6."""
        if template.status == "APPROVED":
            key = name_lock(template.name, "" if for_all_languages else template.language)
            transaction.save(NAME_LOCKS, self._state.clock.now_ms() + NAME_LOCK_MS, key, template.waba_id)

    def _save(self, transaction: Transaction, template: SimulatedTemplate, events: TemplateEvents = ()) -> None:
        transaction.save(TEMPLATES, template, template.template_id)
        self._send(transaction, template, events)

    def _send(self, transaction: Transaction, template: SimulatedTemplate, events: TemplateEvents) -> None:
        outbox, now_ms = self._state.outbox, self._state.clock.now_ms()
        waba_id, template_id = template.waba_id, template.template_id
        for field, value in events:
            transaction.send(
                outbox.template_update(waba_id, now_ms, template_id, value)
                if field == STATUS_FIELD
                else outbox.account_update(waba_id, now_ms, field, value, subject=template_id)
            )
        transaction.follow(self.changed.set)


def _account_templates(transaction: Transaction, waba_id: str) -> list[SimulatedTemplate]:
    return [template for template in transaction.values(TEMPLATES).values() if template.waba_id == waba_id]


def _is_unchanged(transaction: Transaction, template: SimulatedTemplate) -> bool:
    return encode_json(transaction.find(TEMPLATES, template.template_id)) == encode_json(template)
