"""Registration of business numbers: PIN, verification code, and the limits of attempts."""

import hmac
from typing import Any, Final

from waypost.base.clock import DAY_MS, Clock
from waypost.base.ids import Ids
from waypost.base.json_values import integer_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import REGISTRATION, SENDING_RESTRICTION, SYNCS, Records
from waypost.simulator.accounts.usage_counts import REGISTRATIONS, UsageCounts
from waypost.simulator.errors import bad_parameter, message_error
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Store

_PIN_DIGITS: Final = 6
_MAX_PIN_GUESSES: Final = 10
_MAX_REGISTRATIONS: Final = 10  # Source: the operator's page "Registration": in 72 hours
_REGISTRATIONS_WINDOW_MS: Final = 3 * DAY_MS
UNREGISTERED: Final = "UNREGISTERED"
_DELETED: Final = "DELETED"
_SYNC_WITHIN_MS: Final = DAY_MS
_SYNC_ID_DIGITS: Final = 16


class Registrations:
    """The PIN and the last verification code of each number."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        settings: SimulatorSettingsStore,
        records: Records,
        usage_counts: UsageCounts,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._records = records
        self._usage_counts = usage_counts

    def registration(self, number: Number) -> dict[str, Any]:
        """Return a number's record with `pin`, `code`, `needs_code` and `guesses`; each may be absent."""
        return self._records.get(number.phone_number_id, REGISTRATION)

    async def register(self, number: Number, pin: object) -> None:
        """Register a number for sending; its first PIN becomes its own.

        Raises:
            GraphApiError: 100, the PIN is malformed; 133005, the PIN does not match; 133008, too many
                PINs were tried; 133006, a requested code was not verified; 133015, the number was
                deleted; 133016, ten registrations in three days.

        Source: facts 5.2, the registration errors.
        """
        pin_digits = _parse_pin(pin)
        number_id = number.phone_number_id
        if self._records.get(number_id, SENDING_RESTRICTION).get("name") == _DELETED:
            raise message_error(133015, "The number was deleted recently; try again later.")
        if self.registration(number).get("needs_code"):
            raise message_error(133006, "The number must be verified by its code first.")
        if (
            self._settings.value.limits
            and self._usage_counts.count(REGISTRATIONS, number_id, within_ms=_REGISTRATIONS_WINDOW_MS)
            >= _MAX_REGISTRATIONS
        ):
            raise message_error(133016, f"A number is registered at most {_MAX_REGISTRATIONS} times in 72 hours.")
        await self._check_pin(number, pin_digits)
        await self._store.run([self._usage_counts.record(REGISTRATIONS, number_id, self._ids.new())])
        await self._save(number, pin=pin_digits, guesses=0)
        if self._records.get(number_id, SENDING_RESTRICTION).get("name") == UNREGISTERED:
            await self._records.save(number_id, SENDING_RESTRICTION, {})

    async def deregister(self, number: Number) -> None:
        """Deregister a number: its messages are rejected with 133010."""
        await self._records.save(number.phone_number_id, SENDING_RESTRICTION, {"name": UNREGISTERED})

    async def request_sync(self, number: Number, sync_type: str) -> str:
        """Record a request for the data of the app on a phone, and return its id.

        Raises:
            GraphApiError: the same data was requested before, or the first request is a day old.
        """
        record = self._records.get(number.phone_number_id, SYNCS)
        now_ms = self._clock.now_ms()
        if sync_type in record:
            raise bad_parameter(f"Param sync_type: {sync_type} was requested before; each can be requested once.")
        if record and now_ms - min(record.values()) >= _SYNC_WITHIN_MS:
            raise bad_parameter("Data can be requested within 24 hours of onboarding only.")
        await self._records.save(number.phone_number_id, SYNCS, {**record, sync_type: now_ms})
        return self._ids.digits(_SYNC_ID_DIGITS)

    async def change_pin(self, number: Number, pin: object) -> None:
        """Set the PIN for two-step verification; the current one is not needed."""
        await self._save(number, pin=_parse_pin(pin), guesses=0)

    async def send_code(self, number: Number) -> None:
        """Create a verification code for the number; the control API shows it."""
        await self._save(number, code=self._ids.digits(_PIN_DIGITS), needs_code=True)

    async def verify_code(self, number: Number, code: object) -> None:
        """Verify a number by the code that was sent.

        Raises:
            GraphApiError: code 100, the code does not match.
        """
        known = str(self.registration(number).get("code", ""))
        text = str(code or "").replace("-", "")
        if not known or not hmac.compare_digest(known.encode(), text.encode()):
            raise bad_parameter("Param code is not the code that was sent.")
        await self._save(number, code="", needs_code=False)

    async def _check_pin(self, number: Number, pin: str) -> None:
        record = self.registration(number)
        known, guesses = str(record.get("pin", "")), integer_or_none(record.get("guesses")) or 0
        if not known:
            return
        if guesses >= _MAX_PIN_GUESSES:
            raise message_error(133008, "Too many PINs were tried; set another PIN.")
        if not hmac.compare_digest(known.encode(), pin.encode()):
            await self._save(number, guesses=guesses + 1)
            raise message_error(133005, "The PIN does not match.")

    async def _save(self, number: Number, **changes: Any) -> None:
        await self._records.save(number.phone_number_id, REGISTRATION, {**self.registration(number), **changes})


def _parse_pin(value: object) -> str:
    text = str(value) if isinstance(value, str | int) else ""
    if len(text) != _PIN_DIGITS or not (text.isascii() and text.isdigit()):
        raise bad_parameter(f"Param pin must be {_PIN_DIGITS} digits.")
    return text
