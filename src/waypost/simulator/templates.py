"""Templates: submitted, changed, deleted, decided; kept in memory, written through to the file."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.drafts import Draft
from waypost.simulator.errors import bad_parameter, template_refused
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.outbox import ADD_UPDATE, Outbox
from waypost.simulator.references import References
from waypost.simulator.store import Row, Store
from waypost.simulator.template import (
    Decision,
    Template,
    category_update,
    components_update,
    decided,
    quality_update,
    status_update,
)
from waypost.simulator.template_checks import check_draft

_DAY_MS: Final = 24 * 3600 * 1000
_LOCKED_FOR_MS: Final = 30 * _DAY_MS  # Source: facts 2.6
_EDITS_IN_30_DAYS: Final = 10  # Source: facts 2.6
_TEMPLATES_AT_MOST: Final = 6000  # Source: facts 2.3
_EDITABLE: Final = frozenset({"APPROVED", "REJECTED", "PAUSED"})  # Source: facts 2.6

_KEEP: Final = (
    "INSERT INTO templates VALUES (?,?,?,?,?) ON CONFLICT (template_id) DO UPDATE SET "
    "waba_id=excluded.waba_id, name=excluded.name, language=excluded.language, body=excluded.body"
)
_DROP: Final = "DELETE FROM templates WHERE template_id=?"
_LOCK: Final = "INSERT OR REPLACE INTO name_locks VALUES (?,?,?,?)"


class Templates:
    """Every template of every account. Changes happen one at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: LiveSettings,
        outbox: Outbox,
        references: References,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._outbox = outbox
        self._references = references
        self._changes = asyncio.Lock()
        self._locks: dict[tuple[str, str, str], int] = {}
        self.by_id: dict[str, Template] = {}
        self.by_key: dict[tuple[str, str, str], Template] = {}
        self.changed = asyncio.Event()

    async def open(self) -> None:
        """Read everything from the file."""
        for (body,) in await self._store.rows("SELECT body FROM templates ORDER BY rowid"):
            self._learn(msgspec.json.decode(body, type=Template))
        for waba_id, name, language, until_ms in await self._store.rows("SELECT * FROM name_locks"):
            self._locks[waba_id, name, language] = until_ms

    def of(self, waba_id: str) -> list[Template]:
        """The account's templates, oldest first."""
        return [template for template in self.by_id.values() if template.waba_id == waba_id]

    async def create(self, waba_id: str, fields: Mapping[str, Any]) -> Template:
        """Take a new template and plan its review.

        Raises:
            GraphRefused: for the first check that it breaks.

        Source: facts 2.1 to 2.4.
        """
        draft = check_draft(fields, self._references.of(waba_id))
        async with self._changes:
            self._check_name(waba_id, draft)
            now_ms = self._clock.now_ms()
            template = Template(
                template_id="1" + self._ids.digits(15),  # 16 digits, below 2^53
                waba_id=waba_id,
                name=draft.name,
                language=draft.language,
                category=draft.category,
                components=draft.components,
                parameter_format=draft.parameter_format,
                created_ms=now_ms,
                updated_ms=now_ms,
                review_due_ms=self._review_due_ms(now_ms),
                message_send_ttl_seconds=draft.message_send_ttl_seconds,
            )
            await self._keep(template)
            return template

    async def edit(self, template: Template, fields: Mapping[str, Any]) -> Template:
        """Change components, category or lifetime, and plan a new review.

        Raises:
            GraphRefused: in the wrong state, too often, or for a broken check.

        Source: facts 2.6.
        """
        async with self._changes:
            template = self.by_id.get(template.template_id, template)
            now_ms = self._clock.now_ms()
            self._check_editable(template, fields, now_ms)
            draft = check_draft(
                {
                    "category": template.category,
                    "components": template.components,
                    "parameter_format": template.parameter_format,
                    "message_send_ttl_seconds": template.message_send_ttl_seconds,
                    **fields,
                    "name": template.name,
                    "language": template.language,
                },
                self._references.of(template.waba_id) if "components" in fields else None,
            )
            approved = template.status == "APPROVED"
            edited = replace(
                template,
                category=draft.category,
                components=draft.components,
                parameter_format=draft.parameter_format,
                message_send_ttl_seconds=draft.message_send_ttl_seconds,
                status="PENDING",
                rejected_reason="NONE",
                updated_ms=now_ms,
                review_due_ms=self._review_due_ms(now_ms),
                resume_due_ms=None,
                edited_ms=(*template.edited_ms, now_ms) if approved else template.edited_ms,
            )
            field, value = "message_template_components_update", components_update(edited)
            await self._keep(edited, self._heard(edited, field, value, now_ms))
            return edited

    async def delete(self, waba_id: str, name: str, template_id: str | None) -> None:
        """Delete one template, or all languages of a name; an approved one locks its name.

        Raises:
            GraphRefused: nothing of that name, or one of them is disabled.

        Source: facts 2.1, 2.6.
        """
        async with self._changes:
            doomed = [
                template
                for template in self.of(waba_id)
                if template.name == name and template_id in (None, template.template_id)
            ]
            if not doomed:
                refused = template_refused(
                    None,
                    f"There is no message template named {name}.",
                    "Message Template Not Found",
                )
                refused.status = 404  # Source: facts 2.6: consumers take 404 as already gone
                raise refused
            if any(template.status == "DISABLED" for template in doomed):
                raise template_refused(None, "A disabled message template cannot be deleted.")
            await self._remove(doomed, for_all_languages=template_id is None)

    async def decide(self, template: Template, decision: Decision) -> Template | None:
        """Set what was decided and tell the webhook, in one transaction.

        Returns:
            The template as it is now; None when it has gone or changed in the meantime.
        """
        async with self._changes:
            if self.by_id.get(template.template_id) != template:
                return None
            now_ms = self._clock.now_ms()
            after = decided(template, decision, now_ms)
            await self._keep(after, self._told(after, decision, now_ms))
            return after

    async def rate(self, template: Template, score: str) -> Template:
        """Give a template another quality, and tell the webhook. Source: facts 3.3."""
        async with self._changes:
            template = self.by_id.get(template.template_id, template)
            now_ms = self._clock.now_ms()
            field, value = "message_template_quality_update", quality_update(template, score)
            rated = replace(template, quality=score, updated_ms=now_ms)
            await self._keep(rated, self._heard(rated, field, value, now_ms))
            return rated

    async def announce_category(self, template: Template, category: str, due_ms: int) -> Template:
        """Say that a template will have another category. Source: facts 3.2, 3.3."""
        async with self._changes:
            template = self.by_id.get(template.template_id, template)
            now_ms = self._clock.now_ms()
            field, value = "template_category_update", category_update(template, category, due_ms)
            announced = replace(template, correct_category=category)
            await self._keep(announced, self._heard(announced, field, value, now_ms))
            return announced

    async def recategorise(self, template: Template, category: str) -> Template:
        """Give a template another category, which takes its lifetime away. Source: facts 3.2."""
        async with self._changes:
            template = self.by_id.get(template.template_id, template)
            now_ms = self._clock.now_ms()
            field, value = "template_category_update", category_update(template, category, None)
            changed = replace(
                template,
                category=category,
                previous_category=template.category,
                correct_category=None,
                message_send_ttl_seconds=None,
                updated_ms=now_ms,
            )
            await self._keep(changed, self._heard(changed, field, value, now_ms))
            return changed

    async def put(self, template: Template) -> None:
        """Keep a template as it is, whatever was under its id before."""
        async with self._changes:
            await self._keep(template)

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self.by_id.clear()
        self.by_key.clear()
        self._locks.clear()

    def _check_name(self, waba_id: str, draft: Draft) -> None:
        now_ms = self._clock.now_ms()
        for language in ("", draft.language):
            if self._locks.get((waba_id, draft.name, language), 0) > now_ms:
                raise template_refused(
                    2388023,
                    f"New {draft.language} content can't be added while the existing "
                    f"{draft.language} content is being deleted. Try again in 4 weeks or consider "
                    "creating a new message template.",
                )
        if (waba_id, draft.name, draft.language) in self.by_key:
            raise template_refused(
                2388024,
                f"There is already {draft.language} content for this template. You can create a "
                "new template and try again.",
            )
        if len(self.of(waba_id)) >= _TEMPLATES_AT_MOST:
            raise template_refused(
                2388019, f"An account has at most {_TEMPLATES_AT_MOST} message templates."
            )

    def _check_editable(self, template: Template, fields: Mapping[str, Any], now_ms: int) -> None:
        if not {"components", "category", "parameter_format", "message_send_ttl_seconds"} & set(
            fields
        ):
            raise bad_parameter("The parameter components is required.")
        if template.status not in _EDITABLE:
            raise template_refused(
                2388039, f"A template that is {template.status} can't be edited."
            )
        if template.status != "APPROVED":
            return
        category = str(fields.get("category", template.category)).upper()
        if category != template.category:
            raise template_refused(
                None, "The category of an approved message template cannot be edited."
            )
        if not self._settings.value.limits:
            return
        recent = [at_ms for at_ms in template.edited_ms if at_ms > now_ms - 30 * _DAY_MS]
        if len(recent) >= _EDITS_IN_30_DAYS or (recent and recent[-1] > now_ms - _DAY_MS):
            raise template_refused(
                None, "An approved template can be edited once in 24 hours and 10 times in 30 days."
            )

    def _review_due_ms(self, now_ms: int) -> int | None:
        delay_ms = self._settings.value.review_delay_ms
        return None if delay_ms is None else now_ms + delay_ms

    async def _remove(self, doomed: Iterable[Template], *, for_all_languages: bool) -> None:
        now_ms = self._clock.now_ms()
        statements: list[tuple[str, Row]] = []
        locks: dict[tuple[str, str, str], int] = {}
        for template in doomed:
            statements.append((_DROP, (template.template_id,)))
            deleted = replace(template, status="DELETED")
            statements += self._told(deleted, Decision("DELETED", None), now_ms)
            if template.status == "APPROVED":
                language = "" if for_all_languages else template.language
                locks[template.waba_id, template.name, language] = now_ms + _LOCKED_FOR_MS
        statements += [(_LOCK, (*key, until_ms)) for key, until_ms in locks.items()]
        await self._store.run(statements)
        for template in doomed:
            self.by_id.pop(template.template_id, None)
            self.by_key.pop((template.waba_id, template.name, template.language), None)
            self._outbox.wake_of(template.waba_id).set()
        self._locks |= locks

    async def _keep(self, template: Template, more: Iterable[tuple[str, Row]] = ()) -> None:
        body = msgspec.json.encode(template).decode()
        row: Row = (
            template.template_id, template.waba_id, template.name, template.language, body,
        )  # fmt: skip
        await self._store.run([(_KEEP, row), *more])
        self._learn(template)
        self.changed.set()
        self._outbox.wake_of(template.waba_id).set()

    def _learn(self, template: Template) -> None:
        before = self.by_id.get(template.template_id)
        if before is not None:
            self.by_key.pop((before.waba_id, before.name, before.language), None)
        self.by_id[template.template_id] = template
        self.by_key[template.waba_id, template.name, template.language] = template

    def _told(self, template: Template, decision: Decision, now_ms: int) -> list[tuple[str, Row]]:
        if not self._outbox.listens(template.waba_id):
            return []
        value = status_update(template, decision, now_ms)
        row = self._outbox.template_update(template.waba_id, now_ms, template.template_id, value)
        return [(ADD_UPDATE, row)]

    def _heard(
        self, template: Template, field: str, value: dict[str, Any], now_ms: int
    ) -> list[tuple[str, Row]]:
        if not self._outbox.listens(template.waba_id):
            return []
        update = self._outbox.account_update
        row = update(template.waba_id, now_ms, field, value, subject=template.template_id)
        return [(ADD_UPDATE, row)]
