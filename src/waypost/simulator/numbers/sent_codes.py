"""Verification codes: sent to a number by text message or call, shown on its phone, and checked.

Source: the operator's pages "Phone numbers", "Registering phone numbers"; facts 14.5, 14.8.
"""

import hmac
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

CodeMethod = Literal["SMS", "VOICE", "APP"]
"""`APP`: shown by the business app, which is asked for it by a message of the operator."""
CODE_DIGITS: Final = 6
MAX_CODE_REQUESTS: Final = 10  # in 72 hours
CODE_REQUESTS_WINDOW_MS: Final = 3 * DAY_MS
MAX_CODE_GUESSES: Final = 5
CODE_LOCK_MS: Final = 12 * HOUR_MS


class SentCode(msgspec.Struct, frozen=True):
    """The last code sent to a number, and how it is guessed; `text` is what its phone shows or says."""

    phone_number: str
    code: str
    method: CodeMethod
    language: str
    at_ms: int
    text: str
    guesses: int = 0
    locked_until_ms: int = 0
    is_used: bool = False


SENT_CODES: Final = StoredKind("sent_code", SentCode)
"""By digits."""


def send_code(transaction: Transaction, digits: str, method: CodeMethod, language: str) -> SentCode:
    """Send a new code to a number in place of the last; its guesses stay counted."""
    state, last = transaction.state, transaction.find(SENT_CODES, digits)
    code = state.ids.digits(CODE_DIGITS)
    text = f"Your WhatsApp code: {code[:3]}-{code[3:]}"
    guesses, locked_until_ms = (last.guesses, last.locked_until_ms) if last is not None else (0, 0)
    sent = SentCode(digits, code, method, language, state.clock.now_ms(), text, guesses, locked_until_ms)
    transaction.save(SENT_CODES, sent, digits)
    return sent


def is_locked(transaction: Transaction, digits: str) -> bool:
    """True if too many wrong codes were tried for a number in the last hours."""
    sent = transaction.find(SENT_CODES, digits)
    return sent is not None and sent.locked_until_ms > transaction.state.clock.now_ms()


def check_code(transaction: Transaction, digits: str, code: str) -> bool:
    """Use a number's code; True if it is right. The fifth wrong one locks the number for 12 hours."""
    sent = transaction.find(SENT_CODES, digits)
    if sent is None or sent.is_used:
        return False
    if hmac.compare_digest(sent.code.encode(), code.encode()):
        transaction.save(SENT_CODES, replace(sent, is_used=True, guesses=0), digits)
        return True
    guesses = sent.guesses + 1
    until_ms = sent.locked_until_ms
    if guesses >= MAX_CODE_GUESSES and transaction.state.settings.value.limits:
        guesses, until_ms = 0, transaction.state.clock.now_ms() + CODE_LOCK_MS
    transaction.save(SENT_CODES, replace(sent, guesses=guesses, locked_until_ms=until_ms), digits)
    return False


def last_code(state: SimulatorState, digits: str) -> SentCode | None:
    """Return the last code that was sent to a number; None if there was none."""
    return state.values(SENT_CODES).get(digits)
