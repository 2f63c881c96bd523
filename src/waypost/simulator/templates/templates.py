"""Every template: submission, edits, decisions and deletion; in memory, and written through to the file."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import DAY_MS, MINUTE_MS, Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.errors import no_such_object, template_error
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.media.references import References
from waypost.simulator.outbox import Outbox
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.phone_plans import has_undelivered
from waypost.simulator.tables.updates import add_update
from waypost.simulator.templates.actions import decide_action
from waypost.simulator.templates.changes import STATUS_FIELD, TemplateChange, TemplateEvents, decision_events
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.edits import check_editable
from waypost.simulator.templates.names import TemplateNames
from waypost.simulator.templates.template import (
    AUTO_GENERATED,
    SimulatedTemplate,
    TemplateDecision,
    apply_decision,
    components_update,
)
from waypost.simulator.templates.text_variables import component_texts, contains_any

_UNPAUSE_AFTER_MS: Final = 5 * MINUTE_MS  # Source: facts 2.1
_DELETION_GRACE_MS: Final = 30 * DAY_MS  # Source: facts 2.6, "Deleted but undelivered"


class Templates:
    """Every template of every account. Changes happen one at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: SimulatorSettingsStore,
        outbox: Outbox,
        references: References,
        names: TemplateNames,
        accounts: Accounts,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._outbox = outbox
        self._references = references
        self._names = names
        self._accounts = accounts
        self._lock = asyncio.Lock()
        self._templates = CachedKeyedValues(store, "template", SimulatedTemplate)
        self.by_id = self._templates.all
        self.by_key = self._templates.index(lambda template: ((template.waba_id, template.name, template.language),))
        self.changed = asyncio.Event()

    def list_templates(self, waba_id: str) -> list[SimulatedTemplate]:
        """Return the account's templates, oldest first."""
        return [template for template in self.by_id.values() if template.waba_id == waba_id]

    async def create(self, waba_id: str, fields: Mapping[str, Any]) -> SimulatedTemplate:
        """Create a template and plan its review; its category may differ from the requested one.

        Raises:
            GraphApiError: for the first violation.

        Source: facts 2.1 to 2.4.
        """
        settings = self._settings.value
        draft = check_draft(
            fields, self._references.lookup(waba_id), any_language=not settings.check_languages, strict=settings.strict
        )
        async with self._lock:
            self._names.check(waba_id, draft, self.by_key.get, len(self.list_templates(waba_id)))
            now_ms = self._clock.now_ms()
            becomes_marketing = (
                draft.category == "UTILITY"
                and str(fields.get("allow_category_change")).lower() == "true"
                and contains_any(component_texts(draft.components), settings.marketing_words)
            )
            template = SimulatedTemplate(
                template_id="1" + self._ids.digits(15),  # 16 digits, below 2^53
                waba_id=waba_id,
                name=draft.name,
                language=draft.language,
                category="MARKETING" if becomes_marketing else draft.category,
                previous_category=draft.category if becomes_marketing else None,
                components=draft.components,
                parameter_format=draft.parameter_format,
                created_ms=now_ms,
                updated_ms=now_ms,
                review_due_ms=self._review_due_ms(waba_id, now_ms),
                message_send_ttl_seconds=None if becomes_marketing else draft.message_send_ttl_seconds,
                extras=draft.extras,
            )
            await self._save(template, [self._names.count_creation(template)])
            return template

    async def edit(self, template: SimulatedTemplate, fields: Mapping[str, Any]) -> SimulatedTemplate:
        """Change components, category or lifetime, and plan a new review.

        Raises:
            GraphApiError: the wrong state, too many edits, or the first violation.

        Source: facts 2.6.
        """
        async with self._lock:
            known = self.by_id.get(template.template_id)
            if known is None:  # deleted meanwhile
                raise no_such_object("POST", template.template_id)
            template, now_ms = known, self._clock.now_ms()
            check_editable(template, fields, now_ms, is_limited=self._settings.value.limits)
            draft = check_draft(
                {
                    "category": template.category,
                    "components": template.components,
                    "parameter_format": template.parameter_format,
                    "message_send_ttl_seconds": template.message_send_ttl_seconds,
                    **template.extras,
                    **fields,
                    "name": template.name,
                    "language": template.language,
                },
                self._references.lookup(template.waba_id) if "components" in fields else None,
                any_language=True,
                strict=self._settings.value.strict,
            )
            is_approved = template.status == "APPROVED"
            edited = replace(
                template,
                category=draft.category,
                components=draft.components,
                parameter_format=draft.parameter_format,
                message_send_ttl_seconds=draft.message_send_ttl_seconds,
                extras=draft.extras,
                status="PENDING",
                rejected_reason="NONE",
                updated_ms=now_ms,
                review_due_ms=self._review_due_ms(template.waba_id, now_ms),
                resume_due_ms=None,
                edited_ms=(*template.edited_ms, now_ms) if is_approved else template.edited_ms,
            )
            events: TemplateEvents = [("message_template_components_update", components_update(edited))]
            await self._save(edited, self._event_statements(edited, events, now_ms))
            return edited

    async def delete(self, waba_id: str, name: str, template_id: str | None) -> None:
        """Delete one template, or all languages of a name; an approved one locks its name.

        Raises:
            GraphApiError: no template has that name, or one of them is disabled.

        Source: facts 2.1, 2.6.
        """
        async with self._lock:
            templates = [
                template
                for template in self.list_templates(waba_id)
                if template.name == name and template_id in (None, template.template_id)
            ]
            if not templates:
                error = template_error(
                    None, f"There is no message template named {name}.", "Message Template Not Found"
                )
                error.status = 404  # Source: facts 2.6: clients treat 404 as already deleted
                raise error
            _check_deletable(templates)
            await self._delete_or_postpone(templates, for_all_languages=template_id is None)

    async def delete_all(self, waba_id: str, template_ids: Sequence[str]) -> None:
        """Delete several templates of an account, or none.

        Raises:
            GraphApiError: an id that the account does not have, or a disabled template.

        Source: facts 2.1, "hsm_ids".
        """
        async with self._lock:
            candidates = [self.by_id.get(template_id) for template_id in template_ids]
            templates = [template for template in candidates if template is not None and template.waba_id == waba_id]
            if len(templates) != len(template_ids):
                raise template_error(None, "Param hsm_ids names a template that does not exist in this account.")
            _check_deletable(templates)
            await self._delete_or_postpone(templates, for_all_languages=False)

    async def finish_deletion(self, template: SimulatedTemplate) -> None:
        """Delete a template whose pending deletion or archiving is over."""
        async with self._lock:
            if self.by_id.get(template.template_id) == template:
                await self._delete([template], for_all_languages=False)

    async def decide(self, template: SimulatedTemplate, decision: TemplateDecision) -> SimulatedTemplate | None:
        """Apply a decision and add its webhook, in one transaction.

        Returns:
            The changed template; None if it has been deleted or changed in the meantime.
        """
        async with self._lock:
            if self.by_id.get(template.template_id) != template:
                return None
            now_ms = self._clock.now_ms()
            changed = apply_decision(template, decision, now_ms)
            await self._save(
                changed, self._event_statements(changed, decision_events(changed, decision, now_ms), now_ms)
            )
            return changed

    async def apply_change(self, template: SimulatedTemplate, change: TemplateChange) -> SimulatedTemplate:
        """Apply a change and add its webhooks, in one transaction; return the changed template."""
        async with self._lock:
            now_ms = self._clock.now_ms()
            known = self.by_id.get(template.template_id)
            if known is None:  # deleted meanwhile
                return template
            changed, events = change(known, now_ms)
            await self._save(changed, self._event_statements(changed, events, now_ms))
            return changed

    async def unpause(self, template: SimulatedTemplate) -> str:
        """End a pause by pacing; return the reason if that is not possible, else an empty text.

        Source: facts 2.1, "unpause": not sooner than five minutes after the pause began.
        """
        now_ms = self._clock.now_ms()
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
        async with self._lock:
            await self._save(template)

    def _review_due_ms(self, waba_id: str, now_ms: int) -> int | None:
        account = self._accounts.by_id.get(waba_id)
        if account is not None and account.manual_reviews:
            return None
        delay_ms = self._settings.value.review_delay_ms
        return None if delay_ms is None else now_ms + delay_ms

    async def _delete_or_postpone(self, templates: Sequence[SimulatedTemplate], *, for_all_languages: bool) -> None:
        """Delete templates; those with undelivered messages become pending deletion instead."""
        now_ms = self._clock.now_ms()
        undelivered = [template for template in templates if await self._has_undelivered(template)]
        await self._delete(
            [template for template in templates if template not in undelivered], for_all_languages=for_all_languages
        )
        for template in undelivered:
            decision = TemplateDecision("PENDING_DELETION", None)
            pending = replace(apply_decision(template, decision, now_ms), delete_due_ms=now_ms + _DELETION_GRACE_MS)
            locks, statements = self._names.build_locks([template], for_all_languages=for_all_languages)
            events = decision_events(pending, decision, now_ms)
            await self._save(pending, [*statements, *self._event_statements(pending, events, now_ms)])
            self._names.set_locks(locks)

    async def _has_undelivered(self, template: SimulatedTemplate) -> bool:
        if template.status == "PENDING_DELETION":
            return False
        return await has_undelivered(self._store, template.waba_id, template.name, template.language)

    async def _delete(self, templates: list[SimulatedTemplate], *, for_all_languages: bool) -> None:
        now_ms = self._clock.now_ms()
        locks, statements = self._names.build_locks(templates, for_all_languages=for_all_languages)
        for template in templates:
            statements.append(self._templates.delete_statement(template.template_id))
            deleted = replace(template, status="DELETED")
            events = decision_events(deleted, TemplateDecision("DELETED", None), now_ms)
            statements += self._event_statements(deleted, events, now_ms)
        await self._store.run(statements)
        for template in templates:
            self._templates.pop(template.template_id)
            self._outbox.wake_events(template.waba_id).set()
        self._names.set_locks(locks)
        self.changed.set()

    async def find_or_add(self, template: SimulatedTemplate, events: TemplateEvents) -> SimulatedTemplate:
        """Store a generated template with its webhooks, unless its name and language are in use; return the stored one."""
        async with self._lock:
            known = self.by_key.get((template.waba_id, template.name, template.language))
            if known is None:
                await self._save(template, self._event_statements(template, events, self._clock.now_ms()))
            return known or template

    async def _save(self, template: SimulatedTemplate, extra_statements: Sequence[Statement] = ()) -> None:
        await self._templates.save(template, template.template_id, also=extra_statements)
        self.changed.set()
        self._outbox.wake_events(template.waba_id).set()

    def _event_statements(self, template: SimulatedTemplate, events: TemplateEvents, now_ms: int) -> list[Statement]:
        waba_id, template_id = template.waba_id, template.template_id
        if not self._outbox.has_subscribers(waba_id):
            return []
        outbox = self._outbox
        return [
            add_update(
                outbox.template_update(waba_id, now_ms, template_id, value)
                if field == STATUS_FIELD
                else outbox.account_update(waba_id, now_ms, field, value, subject=template_id)
            )
            for field, value in events
        ]


def _check_deletable(templates: Sequence[SimulatedTemplate]) -> None:
    """Check that templates may be deleted.

    Raises:
        GraphApiError: 2388330 for a template of Direct Send, 100 for a disabled one.
    """
    for template in templates:
        if template.source == AUTO_GENERATED:
            raise template_error(2388330, "Templates generated by Direct Send can't be deleted.")
        if template.status == "DISABLED":
            raise template_error(None, "A disabled message template cannot be deleted.")
