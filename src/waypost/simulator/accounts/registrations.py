"""Registration of business numbers: PIN, verification code, and the limits of attempts."""

import hmac
from typing import Any, Final

from waypost.base.clock import DAY_MS, Clock
from waypost.base.ids import Ids
from waypost.base.json_values import integer_or_none
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import HINDRANCE, REGISTRATION, Records
from waypost.simulator.accounts.usage_counts import REGISTRATIONS, Ledger
from waypost.simulator.errors import bad_parameter, message_refused
from waypost.simulator.settings import LiveSettings
from waypost.simulator.store import Store

_PIN_DIGITS: Final = 6
_GUESSES_AT_MOST: Final = 10
_REGISTRATIONS_AT_MOST: Final = 10  # Source: the operator's page "Registration": in 72 hours
_WITHIN_MS: Final = 3 * DAY_MS
UNREGISTERED: Final = "UNREGISTERED"
_DELETED: Final = "DELETED"


class Registrations:
    """The PIN and the last verification code of each number."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, settings: LiveSettings, records: Records, ledger: Ledger
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._records = records
        self._ledger = ledger

    def of(self, number: Number) -> dict[str, Any]:
        """Return a number's record with `pin`, `code`, `needs_code` and `guesses`; each may be absent."""
        return self._records.of(number.phone_number_id, REGISTRATION)

    async def register(self, number: Number, pin: object) -> None:
        """Register a number for sending; its first PIN becomes its own.

        Raises:
            GraphApiError: 100, the PIN is malformed; 133005, the PIN does not match; 133008, too many
                PINs were tried; 133006, a requested code was not verified; 133015, the number was
                deleted; 133016, ten registrations in three days.

        Source: facts 5.2, the registration errors.
        """
        pin_digits = _pin(pin)
        number_id = number.phone_number_id
        if self._records.of(number_id, HINDRANCE).get("name") == _DELETED:
            raise message_refused(133015, "The number was deleted recently; try again later.")
        if self.of(number).get("needs_code"):
            raise message_refused(133006, "The number must be verified by its code first.")
        if (
            self._settings.value.limits
            and self._ledger.count(REGISTRATIONS, number_id, within_ms=_WITHIN_MS) >= _REGISTRATIONS_AT_MOST
        ):
            raise message_refused(133016, f"A number is registered at most {_REGISTRATIONS_AT_MOST} times in 72 hours.")
        await self._check_pin(number, pin_digits)
        await self._store.run([self._ledger.note(REGISTRATIONS, number_id, self._ids.new())])
        await self._keep(number, pin=pin_digits, guesses=0)
        if self._records.of(number_id, HINDRANCE).get("name") == UNREGISTERED:
            await self._records.keep(number_id, HINDRANCE, {})

    async def deregister(self, number: Number) -> None:
        """Deregister a number: its messages are rejected with 133010."""
        await self._records.keep(number.phone_number_id, HINDRANCE, {"name": UNREGISTERED})

    async def change_pin(self, number: Number, pin: object) -> None:
        """Set the PIN for two-step verification; the current one is not needed."""
        await self._keep(number, pin=_pin(pin), guesses=0)

    async def ask_code(self, number: Number) -> None:
        """Create a verification code for the number; the control API shows it."""
        await self._keep(number, code=self._ids.digits(_PIN_DIGITS), needs_code=True)

    async def verify_code(self, number: Number, code: object) -> None:
        """Verify a number by the code that was sent.

        Raises:
            GraphApiError: code 100, the code does not match.
        """
        known = str(self.of(number).get("code", ""))
        text = str(code or "").replace("-", "")
        if not known or not hmac.compare_digest(known.encode(), text.encode()):
            raise bad_parameter("Param code is not the code that was sent.")
        await self._keep(number, code="", needs_code=False)

    async def _check_pin(self, number: Number, given: str) -> None:
        record = self.of(number)
        known, guesses = str(record.get("pin", "")), integer_or_none(record.get("guesses")) or 0
        if not known:
            return
        if guesses >= _GUESSES_AT_MOST:
            raise message_refused(133008, "Too many PINs were tried; set another PIN.")
        if not hmac.compare_digest(known.encode(), given.encode()):
            await self._keep(number, guesses=guesses + 1)
            raise message_refused(133005, "The PIN does not match.")

    async def _keep(self, number: Number, **changes: Any) -> None:
        await self._records.keep(number.phone_number_id, REGISTRATION, {**self.of(number), **changes})


def _pin(given: object) -> str:
    text = str(given) if isinstance(given, str | int) else ""
    if len(text) != _PIN_DIGITS or not (text.isascii() and text.isdigit()):
        raise bad_parameter(f"Param pin must be {_PIN_DIGITS} digits.")
    return text
