"""QR codes of numbers: short links that open a chat with a prefilled message; in memory, written through to the file."""

import asyncio
import base64
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.errors import bad_parameter
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.store import Store

# Source: the operator's page "QR Codes and Short Links"
_MAX_QR_CODES: Final = 2000
_MAX_MESSAGE_CHARS: Final = 140
_CODE_CHARS: Final = 14


class QrCode(msgspec.Struct, frozen=True):
    """A QR code and its short link.

    Args:
        code: unique among the codes of all numbers; the last part of the link.
    """

    code: str
    prefilled_message: str
    created_ms: int


class QrCodes:
    """Every QR code of every number. Changes run one at a time."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._changes = asyncio.Lock()
        self._codes = CachedKeyedValues(store, "qr_code", QrCode)  # of a number

    def number_codes(self, phone_number_id: str) -> list[QrCode]:
        """Return a number's QR codes, oldest first."""
        return list(self._codes.values_of(phone_number_id).values())

    async def create(self, phone_number_id: str, fields: dict[str, Any]) -> QrCode:
        """Create a QR code.

        Raises:
            GraphApiError: 100, the message is missing or too long, or the number has 2,000 codes.
        """
        message = _read_message(fields)
        async with self._changes:
            if len(self._codes.values_of(phone_number_id)) >= _MAX_QR_CODES:
                raise bad_parameter(f"A phone number has at most {_MAX_QR_CODES} QR codes.")
            random_text = base64.b32encode(bytes.fromhex(self._ids.secret())).decode()
            code = random_text[: _CODE_CHARS - 1] + "1"  # the operator's samples end so
            qr_code = QrCode(code, message, self._clock.now_ms())
            await self._codes.save(qr_code, code, phone_number_id)
        return qr_code

    async def update(self, phone_number_id: str, code: str, fields: dict[str, Any]) -> QrCode:
        """Change the message of a QR code.

        Raises:
            GraphApiError: 100, the message is missing or too long, or the number has no such code.
        """
        message = _read_message(fields)
        async with self._changes:
            qr_code = msgspec.structs.replace(self._find(phone_number_id, code), prefilled_message=message)
            await self._codes.save(qr_code, code, phone_number_id)
        return qr_code

    async def delete(self, phone_number_id: str, code: str) -> None:
        """Delete a QR code.

        Raises:
            GraphApiError: 100, the number has no such code.
        """
        async with self._changes:
            self._find(phone_number_id, code)
            await self._codes.delete(code, phone_number_id)

    def _find(self, phone_number_id: str, code: str) -> QrCode:
        known = self._codes.values_of(phone_number_id).get(code)
        if known is None:
            # No page shows the operator's error for it; the text is ours.
            raise bad_parameter("Param code must be the code of one of this phone number's QR codes.")
        return known


def _read_message(fields: dict[str, Any]) -> str:
    message = fields.get("prefilled_message")
    if message is None:
        raise bad_parameter("The parameter prefilled_message is required.")
    if not isinstance(message, str) or not message.strip() or len(message) > _MAX_MESSAGE_CHARS:
        raise bad_parameter(f"Param prefilled_message must be a text of 1 to {_MAX_MESSAGE_CHARS} characters.")
    return message
