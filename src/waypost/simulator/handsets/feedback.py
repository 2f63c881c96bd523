"""Feedback of a phone's owner about a business: marketing stopped or resumed, reports for spam."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.keyed_store import KeyedValues
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import Update, add_update

_PREFERENCE_DETAILS: Final = {
    True: "User requested to resume marketing messages",
    False: "User requested to stop marketing messages",
}


class _SpamReport(msgspec.Struct, frozen=True):
    """A report for spam; without a message it is about the whole chat."""

    phone_number_id: str
    message_id: str
    at_ms: int


class PhoneFeedback:
    """Stores feedback, and sends the business the webhooks about it."""

    def __init__(self, store: Store, clock: Clock, phones: Phones, outbox: Outbox) -> None:
        self._store = store
        self._clock = clock
        self._phones = phones
        self._outbox = outbox
        self._reports = KeyedValues(store, "spam_report", _SpamReport)  # of a phone

    async def set_marketing_preference(
        self, phone: str, number: Number, *, wants: bool, extra_statements: Sequence[Statement] = ()
    ) -> None:
        """Stop or resume a business's marketing, and send the business a webhook.

        Args:
            phone: its digits.
            number: the business number.
            wants: True to resume, False to stop.
            extra_statements: written in the same transaction.

        Source: facts 7.2 (`user_preferences`), 5.2 (131050).
        """
        changed = self._phones.change_list(phone, "stopped_marketing_of", number.phone_number_id, is_listed=not wants)
        self._phones.put(changed)
        statements = [self._phones.save_statement(changed), *extra_statements]
        if self._outbox.has_subscribers(number.waba_id):
            statements.append(add_update(self._preference_update(phone, number, wants=wants)))
        await self._store.run(statements)
        self._outbox.wake_events(number.waba_id).set()

    async def report_spam(
        self, phone: str, number: Number, wamid: str = "", *, extra_statements: Sequence[Statement] = ()
    ) -> None:
        """Report a business for spam. The business is not notified.

        Args:
            phone: its digits.
            number: the business number.
            wamid: the reported message; empty: the chat.
            extra_statements: written in the same transaction.
        """
        report = _SpamReport(number.phone_number_id, wamid, self._clock.now_ms())
        await self._store.run([self._reports.append_statement(report, phone), *extra_statements])

    async def list_reports(self, phone: str) -> list[dict[str, Any]]:
        """Return the reports of the phone's owner, oldest first."""
        return [msgspec.structs.asdict(report) for report in (await self._reports.read(phone)).values()]

    def _preference_update(self, phone: str, number: Number, *, wants: bool) -> Update:
        """Return the update with the new preference. Source: facts 7.2."""
        at_ms = self._clock.now_ms()
        handset = self._phones.seen_by(self._phones.find_or_create(phone)[0], number.phone_number_id, at_ms)
        preference = {
            **handset.identity_members("wa_id", "user_id"),
            "detail": _PREFERENCE_DETAILS[wants],
            "category": "marketing_messages",
            "value": "resume" if wants else "stop",
            "timestamp": at_ms // 1000,
        }
        value = {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": number.phone_number, "phone_number_id": number.phone_number_id},
            "contacts": [handset.contact()],
            "user_preferences": [preference],
        }
        return self._outbox.account_update(number.waba_id, at_ms, "user_preferences", value)
