"""Display names, official accounts and usernames of numbers: requests, rules, and the operator's decisions."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.json_values import text_or_none
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.accounts.records import NAMES, NUMBER_STATUS, Records
from waypost.simulator.errors import GraphApiError, bad_parameter

MIN_USERNAME_CHARS, MAX_USERNAME_CHARS = 3, 35  # Source: the operator's page "Business usernames"
MAX_DISPLAY_NAME_CHARS: Final = 512
_IN_USE: Final = 147005
_USERNAME: Final = re.compile(r"[A-Za-z0-9._]+")
_DOMAINS: Final = (".com", ".org", ".net", ".edu", ".gov", ".mil", ".us", ".in", ".html")
_REQUIRED: Final = ("business_website_url", "primary_country_of_operation")
_OPTIONAL: Final = (
    "primary_language", "parent_business_or_brand", "additional_supporting_information", "supporting_links",
)  # fmt: skip
_MAX_LINKS: Final = 5


class NumberNames:
    """Names that businesses request for their numbers. Decisions come from the control API."""

    def __init__(self, accounts: Accounts, records: Records) -> None:
        self._accounts = accounts
        self._records = records

    def record_of(self, number: Number) -> dict[str, Any]:
        """Return what was requested for a number and what the operator decided; empty if nothing was."""
        return self._records.get(number.phone_number_id, NAMES)

    async def request_display_name(self, number: Number, name: object) -> None:
        """Put another display name up for review.

        Raises:
            GraphApiError: it is no name.
        """
        if not isinstance(name, str) or not 0 < len(name.strip()) <= MAX_DISPLAY_NAME_CHARS:
            raise bad_parameter(f"Param new_display_name must have 1 to {MAX_DISPLAY_NAME_CHARS} characters.")
        await self._change(number, requested_name=name, requested_status="PENDING_REVIEW")

    async def decide_display_name(self, number: Number, *, is_approved: bool) -> str:
        """Approve the requested display name, which then replaces the current one, or decline it; return it."""
        name = str(self.record_of(number).get("requested_name", number.name))
        if is_approved:
            await self._accounts.save_number(replace(number, name=name))
            status = self._records.get(number.phone_number_id, NUMBER_STATUS)
            await self._records.save(number.phone_number_id, NUMBER_STATUS, {**status, "name_status": "APPROVED"})
        await self._change(number, requested_name=name, requested_status="APPROVED" if is_approved else "DECLINED")
        return name

    async def request_official_account(self, number: Number, members: Mapping[str, Any]) -> None:
        """Put a number up for review as an official business account.

        Raises:
            GraphApiError: a member is missing or invalid, or the number is already in review or approved.
        """
        for name in _REQUIRED:
            if not text_or_none(members.get(name)):
                raise bad_parameter(f"The parameter {name} is required.")
        links = members.get("supporting_links", [])
        if not isinstance(links, list) or len(links) > _MAX_LINKS:  # pyright: ignore[reportUnknownArgumentType]
            raise bad_parameter(f"Param supporting_links must be a list of at most {_MAX_LINKS} URLs.")
        if self.record_of(number).get("oba_status") in ("PENDING", "IN_PROGRESS", "APPROVED"):
            raise bad_parameter("The business phone number has been requested or approved as an official account.")
        request = {name: members[name] for name in (*_REQUIRED, *_OPTIONAL) if name in members}
        await self._change(number, oba_status="PENDING", oba_request=request)

    async def decide_official_account(self, number: Number, status: str) -> None:
        """Set the status of a number as an official business account."""
        await self._change(number, oba_status=status)

    async def set_username(self, number: Number, username: object, *, takes_over: bool) -> str:
        """Reserve a username for a number; return its status.

        Args:
            number: the number.
            username: letters, digits, periods and underscores; upper and lower case are the same.
            takes_over: take it from another number of the same account.

        Raises:
            GraphApiError: it breaks a rule, code 147005 another number of the account has it, or it is not available.
        """
        if not isinstance(username, str) or not _is_username(username):
            raise bad_parameter(f"Param username must have {_RULES}.")
        holder = self._holder_of(username)
        if holder is not None and holder.phone_number_id != number.phone_number_id:
            if holder.waba_id != number.waba_id:
                raise bad_parameter("The username is not available.")
            if not takes_over:
                text = f"(#{_IN_USE}) The username is in use by another phone number of the business."
                raise GraphApiError(400, {"message": text, "type": "OAuthException", "code": _IN_USE})
            await self.delete_username(holder)
        await self._change(number, username=username, username_status="reserved")
        return "reserved"

    async def decide_username(self, number: Number, status: str) -> None:
        """Set the status of a number's username."""
        await self._change(number, username_status=status)

    async def delete_username(self, number: Number) -> None:
        """Delete the username of a number; it may be used again."""
        record = {name: value for name, value in self.record_of(number).items() if not name.startswith("username")}
        await self._records.save(number.phone_number_id, NAMES, record)

    def suggest_usernames(self, number: Number) -> list[str]:
        """Return usernames made of the number's name that nobody has."""
        words = re.findall(r"[a-z0-9]+", number.name.lower())
        joined = ("".join(words), "_".join(words), ".".join(words), "_".join([*words, "official"]))
        return [name for name in dict.fromkeys(joined) if _is_username(name) and self._holder_of(name) is None]

    def _holder_of(self, username: str) -> Number | None:
        return next((number for number, name in self._usernames() if name.lower() == username.lower()), None)

    def _usernames(self) -> Iterator[tuple[Number, str]]:
        for number in self._accounts.numbers.values():
            name = self.record_of(number).get("username")
            if name:
                yield number, name

    async def _change(self, number: Number, **members: Any) -> None:
        await self._records.save(number.phone_number_id, NAMES, {**self.record_of(number), **members})


_RULES: Final = (
    f"{MIN_USERNAME_CHARS} to {MAX_USERNAME_CHARS} letters, digits, periods and underscores, with a letter, without "
    "www at its start, a period at either end or two together, or the end of a domain"
)


def _is_username(name: str) -> bool:
    """True if a name keeps the rules. Source: the operator's page "Business usernames"."""
    lower = name.lower()
    return (
        MIN_USERNAME_CHARS <= len(name) <= MAX_USERNAME_CHARS
        and _USERNAME.fullmatch(name) is not None
        and any(char.isalpha() for char in name)
        and not lower.startswith(("www", "."))
        and not lower.endswith((".", *_DOMAINS))
        and ".." not in name
    )
