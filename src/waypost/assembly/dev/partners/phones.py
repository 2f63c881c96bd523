"""The phones of a partner for a test: their messages, and waiting for one."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from waypost.assembly.dev.partners.descriptions import button_labels
from waypost.assembly.dev.partners.partner import PartnerForTest
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_interfaces import PhoneMessageFilter

_MAX_MESSAGES: Final = 1000
_MAX_WAIT_MS: Final = 250
"""A message may arrive before one that was sent earlier; the control API's own wait does not notice that."""
_MAX_PHONES: Final = 1000


async def add_named_phone(partner: PartnerForTest, name: str, number: str) -> str:
    """Give a person a phone, and return its digits; the same ones for the same name.

    Raises:
        ControlApiError: the person has another number, or the partner has too many phones.
    """
    known = partner.phones.get(name)
    digits = number.lstrip("+") or known or partner.names.phone(name, tuple(partner.phones.values()))
    if known not in (None, digits):
        raise ControlApiError("number", f"{name} has {known}", f"{known}, or another name", status=409)
    if known is None and len(partner.phones) >= _MAX_PHONES:
        raise ControlApiError("name", f"a partner has at most {_MAX_PHONES} named phones", "a known name", status=409)
    await partner.clients.control.json("PUT", f"/control/phones/{digits}", {"name": name})
    partner.phones[name] = digits
    return digits


def resolve_phone(partner: PartnerForTest, phone: str) -> tuple[str, str]:
    """Return name and digits of a phone.

    Args:
        partner: the partner.
        phone: digits, or the name of a person.

    Raises:
        ControlApiError: there is no such person.
    """
    if phone in partner.phones:
        return phone, partner.phones[phone]
    digits = phone.lstrip("+")
    if not (digits.isascii() and digits.isdecimal() and 8 <= len(digits) <= 15):
        names = ", ".join(list(partner.phones)[:20]) or "none yet"
        raise ControlApiError(
            "phone", "is not a phone of this partner", f"8 to 15 digits, or a name: {names}", status=404
        )
    name = next((name for name, number in partner.phones.items() if number == digits), "phone")
    return name, digits


async def read_chat(partner: PartnerForTest, digits: str, *, after: int = 0, wait_ms: int = 0) -> list[dict[str, Any]]:
    """Return the messages between a phone and the partner's number, oldest first.

    Args:
        partner: the partner.
        digits: of the phone.
        after: only messages after this position.
        wait_ms: real time to wait for one.
    """
    query = (
        f"limit={_MAX_MESSAGES}&after={after}&wait_ms={wait_ms}&phone_number_id={partner.variables['PHONE_NUMBER_ID']}"
    )
    response = await partner.clients.control.json("GET", f"/control/phones/{digits}?{query}")
    messages: list[dict[str, Any]] = response["messages"]
    return messages


async def read_chats(partner: PartnerForTest) -> dict[str, list[dict[str, Any]]]:
    """Return the chat of each named phone, by its owner's name."""
    return {name: await read_chat(partner, digits) for name, digits in partner.phones.items()}


async def wait_for_phone_message(
    partner: PartnerForTest, digits: str, wanted: PhoneMessageFilter, timeout_ms: int
) -> dict[str, Any] | None:
    """Return the first match that was not returned before, or None after the timeout; looks at least once."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + timeout_ms / 1000
    while True:
        partner.check_exists()
        chat = await read_chat(partner, digits)
        for view in chat:
            if view["wamid"] not in partner.returned_wamids and _is_match(view, wanted):
                partner.returned_wamids.add(view["wamid"])
                return view
        left_ms = round((ends_s - loop.time()) * 1000)
        if left_ms <= 0:
            return None
        last = max((int(view["position"]) for view in chat), default=0)
        await read_chat(partner, digits, after=last, wait_ms=min(left_ms, _MAX_WAIT_MS))


def _is_match(view: Mapping[str, Any], wanted: PhoneMessageFilter) -> bool:
    return (
        view["direction"] == "to_phone"
        and wanted.text in str(view.get("text") or "")
        and wanted.type in ("", view["type"])
        and wanted.message_id in ("", view.get("callback_data"))
        and (not wanted.button or wanted.button in button_labels(view))
    )
