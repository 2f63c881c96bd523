"""Taking messages from a business: checked, kept with their planned statuses, then answered."""

import asyncio
import itertools
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.errors import bad_parameter, message_refused
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.media.references import References
from waypost.simulator.messages.direct_send import DirectSend, direct_send_of
from waypost.simulator.messages.envelope import callback_data_of, check_envelope
from waypost.simulator.messages.groups import group_contact, group_place, group_sent
from waypost.simulator.messages.held import DROPPED_WITH, Held
from waypost.simulator.messages.limits import Limits
from waypost.simulator.messages.message_kinds import KINDS, shown_message
from waypost.simulator.messages.receptions import Receptions
from waypost.simulator.messages.standings import Standings
from waypost.simulator.messages.statuses import FAILURES, Sent, errors_of, planned_updates
from waypost.simulator.messages.takings import Taken, take_all
from waypost.simulator.messages.template_plans import TemplatePlans
from waypost.simulator.messages.template_sends import Shown, shown_template
from waypost.simulator.messages.wamids import sent_wamid
from waypost.simulator.phones.blocks import Blocks
from waypost.simulator.phones.phones import Phones, phone_digits
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import MESSAGES, Fate, Message
from waypost.simulator.tables.phone_plans import Waiting, waiting
from waypost.simulator.tables.updates import Update
from waypost.simulator.templates.template import Template
from waypost.simulator.templates.templates import Templates
from waypost.simulator.templates.uses import TemplateUses
from waypost.simulator.webhooks.outbox import Outbox

_TYPING_MS: Final = 25_000  # Source: facts 4.1
_NOT_SENDABLE: Final = {"PAUSED": 132015, "DISABLED": 132016}  # Source: facts 5.2


class Messages:
    """Takes messages, and knows who waits for one to come."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: LiveSettings,
        accounts: Accounts,
        templates: Templates,
        phones: Phones,
        outbox: Outbox,
        limits: Limits,
        references: References,
        blocks: Blocks,
        standings: Standings,
        receptions: Receptions,
        held: Held,
        uses: TemplateUses,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._accounts = accounts
        self._templates = templates
        self._phones = phones
        self._outbox = outbox
        self._limits = limits
        self._references = references
        self._blocks = blocks
        self._standings = standings
        self._held = held
        self._uses = uses
        self._receptions = receptions
        self._plans = TemplatePlans()
        self._positions = itertools.count(1)
        self._arrivals: dict[str, asyncio.Event] = {}
        self._typing_until_ms: dict[tuple[str, str], int] = {}
        store.at_reset(self._typing_until_ms.clear)
        self.planned = asyncio.Event()
        """Set when a message has made its phone plan something."""

    async def open(self) -> None:
        """Go on after the last position in the file."""
        self._positions = itertools.count(await MESSAGES.highest(self._store, "position") + 1)

    def next_position(self) -> int:
        """A higher position than any before; may be called on the writer's thread."""
        return next(self._positions)

    async def take(
        self, number: Number, request: dict[str, Any], raw: bytes, *, fail_code: int | None = None
    ) -> dict[str, Any]:
        """Check a message, keep it on disk together with its planned statuses, and answer.

        Refuses in this order: the envelope, the number's standing, the content, the sender himself,
        who is blocked, a closed window if the settings want that at once, the limits.

        Args:
            number: who sends.
            request: the decoded body.
            raw: the body as it came.
            fail_code: the code of a failure that a fault wants it to come to; None: none does.

        Raises:
            GraphRefused: for what is wrong at once; a closed window only shows in a status.

        Source: facts 4, 5.2.
        """
        check_envelope(request)
        group = group_place(request)
        phone = group or self._recipient(request)
        callback_data = callback_data_of(request)
        self._standings.check(number, phone, request.get("recipient_identity_key_hash"))
        kind: Any = request.get("type", "text")
        direct = direct_send_of(request, kind)
        template: Template | None = None
        if kind == "template":
            template, shown = self._template_message(number, request)
        elif isinstance(kind, str) and kind in KINDS:
            known = self._references.of(number.waba_id, number.phone_number_id)
            shown = shown_message(kind, request.get(kind), known)
        else:
            raise message_refused(131051, f"Message type {kind!r} is not supported")
        context = object_or_none(request.get("context"))
        message = Message(
            position=self.next_position(),
            wamid=sent_wamid(self._ids, number.phone_number if group else phone),
            phone=phone,
            phone_number_id=number.phone_number_id,
            is_inbound=0,
            type=kind,
            at_ms=self._clock.now_ms(),
            shown=msgspec.json.encode(shown).decode(),
            body=raw.decode(errors="replace"),
            callback_data=callback_data,
            context_id=text_or_none(context.get("message_id")) if context else None,
        )
        if group is not None:
            await self._keep_of_group(number, message, fail_code)
            messages = [{"id": message.wamid}]
            return {"messaging_product": "whatsapp", "contacts": [group_contact(group)], "messages": messages}
        if phone == number.phone_number:
            raise message_refused(131021, "Recipient phone number is the sender's own")
        if self._blocks.is_blocked(number.phone_number_id, phone):
            raise message_refused(130403, "The business has blocked this user")
        self._check_window(number, phone, template, shown, direct)
        if self._settings.value.limits:
            self._limits.spend(number.phone_number_id, phone, number.throughput)
        self._typing_until_ms.pop((phone, number.phone_number_id), None)
        if fail_code is None:
            fail_code = self._standings.failure_of(number)
        await self._keep(number, message, shown, template, direct, fail_code)
        taken = {"id": message.wamid}
        if template is not None:
            held = template.is_paced
            taken["message_status"] = "held_for_quality_assessment" if held else "accepted"
        return {"messaging_product": "whatsapp", "contacts": [self._contact(request, phone)], "messages": [taken]}

    async def mark_read(self, number: Number, message_id: object, typing_indicator: object = None) -> None:
        """The business has read a phone's message, and perhaps says that it is typing.

        Args:
            number: whose message it was.
            message_id: its id.
            typing_indicator: `{"type": "text"}`, or nothing. The phone shows it for 25 seconds.

        Raises:
            GraphRefused: 131009, no such message came to this number; 100, another indicator.

        Source: facts 4.1, "Mark as read / typing".
        """
        wamid = message_id if isinstance(message_id, str) else ""
        received = {"phone_number_id": number.phone_number_id, "is_inbound": 1}
        found = next(iter(await MESSAGES.find(self._store, wamid=wamid, **received)), None)
        if found is None:
            raise message_refused(131009, "message_id: no message with this id was received")
        now_ms = self._clock.now_ms()
        if typing_indicator is not None:
            if (object_or_none(typing_indicator) or {}).get("type") != "text":
                raise bad_parameter("Param typing_indicator['type'] must be one of {text}.")
            self._typing_until_ms[found.phone, number.phone_number_id] = now_ms + _TYPING_MS
            self.tell(found.phone)
        await self._store.run([MESSAGES.update({"read_ms": now_ms}, position=found.position, read_ms=None)])

    def typing_to(self, phone: str) -> list[str]:
        """The ids of the business numbers that the phone sees typing."""
        now_ms = self._clock.now_ms()
        return [
            number_id
            for (typed_to, number_id), until_ms in self._typing_until_ms.items()
            if typed_to == phone and until_ms > now_ms
        ]

    def tell(self, phone: str) -> None:
        """Something new is on its way to a phone, or has happened on it: wake who waits for it."""
        if phone in self._arrivals:
            self._arrivals.pop(phone).set()

    def arrival(self, phone: str) -> asyncio.Event:
        """Set when something happens on a phone after this call."""
        return self._arrivals.setdefault(phone, asyncio.Event())

    def _check_window(
        self, number: Number, phone: str, template: Template | None, shown: Shown, direct: DirectSend
    ) -> None:
        """Refuse what the window decides at once. Source: facts 5.2 (131047), 8, 13."""
        is_open = self._phones.window_is_open(number.phone_number_id, phone, self._clock.now_ms())
        needs_window = template is None and not direct.category
        if needs_window and not is_open and self._settings.value.window_at_once:
            raise message_refused(131047, FAILURES[131047])
        self._standings.check_content(number, phone, template, shown, is_free=is_open)

    def _template_message(self, number: Number, request: dict[str, Any]) -> tuple[Template, Shown]:
        content = object_or_none(request.get("template"))
        if content is None:
            raise bad_parameter("The parameter template is required.")
        name = text_or_none(content.get("name"))
        if not name:
            raise bad_parameter("The parameter template['name'] is required.")
        language = (object_or_none(content.get("language")) or {}).get("code")
        if not isinstance(language, str):
            raise bad_parameter("The parameter template['language']['code'] is required.")
        template = self._templates.by_key.get((number.waba_id, name, language))
        if template is not None and template.status in _NOT_SENDABLE:
            raise message_refused(
                _NOT_SENDABLE[template.status], f"template name ({name}) is {template.status.lower()}"
            )
        if template is None or template.status != "APPROVED":
            raise message_refused(132001, f"template name ({name}) does not exist in {language}")
        if not request.get("to") and template.category == "AUTHENTICATION":  # Source: facts 7.5
            raise message_refused(131062, "A one-time code goes to a phone number")
        return template, shown_template(
            self._plans.of(template),
            content.get("components"),
            now_ms=self._clock.now_ms(),
            known=self._references.of(number.waba_id, number.phone_number_id),
        )

    def _recipient(self, request: dict[str, Any]) -> str:
        """The digits of the phone that is meant. Source: facts 4.1, 7.5."""
        user_id = request.get("recipient")
        to = request.get("to")
        if not to and user_id:
            phone = self._phones.of_user_id(user_id) if isinstance(user_id, str) else None
            if phone is None:
                raise message_refused(131009, "recipient: no user has this id")
            return phone.phone
        if not to:
            raise bad_parameter("The parameter to is required.")
        digits = phone_digits(str(to) if type(to) is int else to)
        if digits is None:
            raise message_refused(131009, "to: a phone number has 8 to 15 digits")
        return digits

    def _contact(self, request: dict[str, Any], phone: str) -> dict[str, Any]:
        """Who the answer says it went to. Source: facts 4.3, 7.5."""
        handset, _ = self._phones.meet(phone)
        if request.get("to"):
            user = {"user_id": handset.user_id} if handset.user_id else {}
            return {"input": request["to"], "wa_id": phone, **user}
        return {"input": request["recipient"], **handset.named("wa_id", "user_id")}

    async def _keep(
        self,
        number: Number,
        message: Message,
        shown: Shown,
        template: Template | None,
        direct: DirectSend,
        fail_code: int | None,
    ) -> None:
        phone, now_ms = message.phone, message.at_ms
        handset, is_new = self._phones.meet(phone)
        is_in_window = self._phones.window_is_open(number.phone_number_id, phone, now_ms)
        reception = self._receptions.of(
            number,
            handset,
            template,
            shown,
            wamid=message.wamid,
            now_ms=now_ms,
            is_in_window=is_in_window,
            direct=direct,
            sender_fails=fail_code,
        )
        sent = Sent(
            message=message,
            waba_id=number.waba_id,
            handset=handset,
            has_contacts=self._settings.value.statuses_contacts,
            skips_delivered=self._settings.value.skips_delivered,
            category=direct.category or "service" if template is None else template.category.lower(),
            is_in_window=is_in_window,
        )
        updates = self._planned(sent, reception.fate)
        notes = self._standings.notes(number, phone, shown, message.wamid, is_free=is_in_window)
        if template is not None:
            notes += self._uses.note(template)
        if is_new:
            notes.append(self._phones.add_statement(phone))
        if template is not None and template.is_paced:
            dropped = self._planned(sent, Fate(failed_ms=now_ms, failed_code=DROPPED_WITH))
            held = self._held.hold(template, message, number.waba_id, reception, updates, dropped)
            await self._store.write(take_all, Taken(message, [], [*notes, held], plan=reception.plan.put_off()))
            self._held.template_ids.add(template.template_id)  # settled meanwhile: again
            self._templates.changed.set()
            return
        message = msgspec.structs.replace(message, **msgspec.structs.asdict(reception.fate))
        waits: Waiting | None = None
        if reception.until_ms is not None:  # what is told then costs what `sent` said
            rest = updates[0].rest if updates else ""
            waits = waiting(message, number.waba_id, reception.until_ms, reception.read_after_ms, rest)
        await self._store.write(take_all, Taken(message, updates, notes, waits, reception.plan))
        if reception.plan.acts:
            self.planned.set()
        self._outbox.wake_of(number.waba_id).set()
        self.tell(phone)

    async def _keep_of_group(self, number: Number, message: Message, fail_code: int | None) -> None:
        """Keep a message to a group, and say that it was sent; its members are nobody here."""
        if fail_code is None:
            fail_code = self._standings.failure_of(number)
        if fail_code:
            message = msgspec.structs.replace(message, failed_ms=message.at_ms, failed_code=fail_code)
        updates: list[Update] = []
        if self._outbox.listens(number.waba_id):
            errors = errors_of(fail_code) if fail_code else ""
            updates.append(group_sent(message, number.waba_id, self._outbox.next_id(), errors))
        await self._store.write(take_all, Taken(message, updates))
        self._outbox.wake_of(number.waba_id).set()

    def _planned(self, sent: Sent, fate: Fate) -> list[Update]:
        if not self._outbox.listens(sent.waba_id):
            return []
        return planned_updates(sent, fate, self._outbox, self._settings.value.statuses_version)
