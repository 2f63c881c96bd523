"""The audit log: who did what from where, and the result; rejected actions too.

An entry is on disk before its action is acknowledged. It names ids and reasons, never the content of a
request, so that it cannot hold a secret.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from operator import eq, ge, lt
from typing import Final

from sqlalchemy import Connection, insert, select

from waypost.base.clock import Clock
from waypost.store.database import Database
from waypost.store.sql import contains_escaped, filter_conditions, read_all
from waypost.store.tables import audit_log

ADMIN_ACTOR: Final = "admin"  # the actor who holds the admin token
ANONYMOUS_ACTOR: Final = "nobody"  # the actor of a rejected request without a valid credential
MAX_AUDIT_TEXT_CHARS: Final = 300
HIDDEN_VALUE: Final = "(hidden)"
"""Stands for a value of a path that is no id: it may be a key that was given by mistake."""
_ID: Final = re.compile(
    r"[0-9]{1,32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|wamid\..*|(?!sk_)(?!.*[A-Za-z0-9+/=]{20})[^\s]{1,256}"
)
"""A number, a UUID, a message id of the operator, or a name; a key has twenty letters and digits in a row."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action."""

    at_ms: int
    partner_id: int | None  # the partner whose account it concerns; None: none, or not known
    actor: str  # `admin`, `nobody`, or the partner's e-mail address
    remote_address: str  # of the client
    action: str  # method and path template
    subject: str  # ids of what it concerns
    status: int  # of the response; from 400 on the action was rejected
    detail: str = ""  # why it was rejected, as a short name; of a search in hidden texts, that it was one
    id: int = 0  # in the order in which entries were written; 0 before that


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of entries; None matches all."""

    partner_id: int | None = None
    actor: str | None = None
    action: str | None = None
    rejected: bool | None = None  # only rejected ones, or only others
    since_ms: int | None = None
    until_ms: int | None = None
    before_id: int | None = None  # entries older than this one


class AuditLog:
    """Writes and reads entries."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record(
        self,
        *,
        actor: str,
        remote_address: str,
        action: str,
        status: int,
        partner_id: int | None = None,
        subject: Mapping[str, object] | str = "",
        detail: str = "",
    ) -> None:
        """Write an entry; return once it is on disk.

        Args:
            subject: ids by name, from the path; what is no id is hidden. The others are as of `AuditEntry`.

        Raises:
            StoreUnavailable: it cannot be written.
        """
        if not isinstance(subject, str):
            shown = {name: str(value) if _ID.fullmatch(str(value)) else HIDDEN_VALUE for name, value in subject.items()}
            subject = " ".join(f"{name}={value}" for name, value in shown.items())
        entry = AuditEntry(
            at_ms=self._clock.now_ms(),
            partner_id=partner_id,
            actor=_clean_text(actor),
            remote_address=_clean_text(remote_address),
            action=_clean_text(action),
            subject=_clean_text(subject),
            status=status,
            detail=_clean_text(detail),
        )
        await self._database.write(add_audit_entry, entry)

    async def page(self, query: AuditFilter, at_most: int) -> list[AuditEntry]:
        """Return matching entries, newest first."""
        return await self._database.read(audit_page, query, at_most)


def add_audit_entry(connection: Connection, entry: AuditEntry) -> None:
    """Add one entry."""
    columns = asdict(entry)
    del columns["id"]
    connection.execute(insert(audit_log), columns)


def audit_page(connection: Connection, query: AuditFilter, at_most: int) -> list[AuditEntry]:
    """Return the newest matching entries, newest first."""
    columns = audit_log.c
    conditions = filter_conditions(
        (eq, columns.partner_id, query.partner_id),
        (eq, columns.actor, query.actor),
        (contains_escaped, columns.action, query.action),
        (ge if query.rejected else lt, columns.status, None if query.rejected is None else 400),
        (ge, columns.at_ms, query.since_ms),
        (lt, columns.at_ms, query.until_ms),
        (lt, columns.id, query.before_id),
    )
    names = (columns[field.name] for field in fields(AuditEntry))
    newest = select(*names).where(*conditions).order_by(columns.id.desc()).limit(at_most)
    return read_all(connection, newest, lambda row: AuditEntry(*row))


def _clean_text(text: str) -> str:
    """Return a text as it is stored: printable, and limited in length."""
    plain = "".join(char if char.isprintable() else "?" for char in text[:MAX_AUDIT_TEXT_CHARS])
    return plain.encode("utf-8", "replace").decode()
