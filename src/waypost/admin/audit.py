"""The call that reads the audit log: filtered, a page at a time."""

from typing import Any, Final

import msgspec
from starlette.requests import Request

from waypost.domain.refusals import Reason, Refused
from waypost.store.audit_log import AuditFilter, audit_page
from waypost.store.database import Database

MAX_ENTRIES: Final = 500
_ENTRIES: Final = 100
_OUTCOMES: Final = {None: None, "done": False, "rejected": True}
_FIELDS: Final = ("partner_id", "actor", "action", "outcome", "since_ms", "until_ms", "before", "limit")


class AuditCalls:
    """A plain call; the gate guards it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def show(self, request: Request) -> Any:
        """Return the newest entries, and where the next page begins."""
        query = request.query_params
        unknown = next((name for name in query if name not in _FIELDS), None)
        if unknown is not None:
            raise Refused(
                Reason.FIELD_BROKEN, f"{unknown[:100]} is no filter of the audit log; accepted: {', '.join(_FIELDS)}."
            )
        outcome = query.get("outcome")
        if outcome not in _OUTCOMES:
            raise Refused(Reason.FIELD_BROKEN, "outcome must be done or rejected.")
        wanted = AuditFilter(
            partner_id=_number(request, "partner_id"),
            actor=query.get("actor"),
            action=query.get("action"),
            rejected=_OUTCOMES[outcome],
            since_ms=_number(request, "since_ms"),
            until_ms=_number(request, "until_ms"),
            before_id=_number(request, "before"),
        )
        limit = _number(request, "limit")
        limit = _ENTRIES if limit is None else limit
        if not 1 <= limit <= MAX_ENTRIES:
            raise Refused(Reason.FIELD_BROKEN, f"limit must be 1 to {MAX_ENTRIES}.")
        found = await self._database.read(audit_page, wanted, limit + 1)
        entries, is_more = found[:limit], len(found) > limit
        return {"entries": [msgspec.to_builtins(one) for one in entries], "next": entries[-1].id if is_more else None}


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Refused(Reason.FIELD_BROKEN, f"{name} must be a number.")
    return int(text)
