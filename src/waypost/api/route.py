"""The row type of the route table, and the error codes of a row."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from waypost.api.authorisation import Credential
from waypost.api.fields import RequestField
from waypost.api.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.errors import ErrorCode
from waypost.wire.responses import Schema

Endpoint = Callable[[Services, Request], Awaitable[ApiResponse]]


class IdempotencyMode(StrEnum):
    """The handling of an idempotency key by a route (decision 0044)."""

    NO_KEY = "accepts no key"
    ONE_TRANSACTION = "does all its work in one transaction, which stores the key too"
    MARKED_FIRST = "makes an outgoing call first: the key is marked as running until the transaction that completes it"


class BodyFormat(StrEnum):
    """The format of a request's body."""

    NOTHING = "nothing"
    FORM = "application/x-www-form-urlencoded"
    JSON = "application/json"
    FORM_OR_JSON = "form or JSON"
    MULTIPART = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One row of the route table."""

    method: str
    path: str
    endpoint: Endpoint
    credential: Credential
    rate: str  # its row in the table of rates. Every route has windows of its own, whichever row it names.
    statuses: tuple[int, ...]  # the statuses of its responses except 429, 413 and 500, which any route may return
    response_schema: Schema | None = field(hash=False)  # of its successful response; None: it has no body
    source: str
    # the format of the body; a multipart body is left to the endpoint to stream
    body_format: BodyFormat = BodyFormat.NOTHING
    fields: tuple[RequestField, ...] = ()  # the fields that it reads from the body
    query: tuple[RequestField, ...] = ()  # likewise from the query
    calls_out: bool = False  # True if it may make an outgoing call before it responds (decision 0026)
    # its error codes in addition to those that follow from its credential, its body and its key
    errors: tuple[ErrorCode, ...] = ()
    idempotency: IdempotencyMode = IdempotencyMode.NO_KEY  # its handling of an idempotency key
    # its error for a missing, unknown or expired credential
    wrong_credential: ErrorCode = ErrorCode.AUTHENTICATION_FAILED
    # its error for a valid credential and an app in the path that is not the caller's
    other_app: ErrorCode = ErrorCode.NOT_FOR_THIS_APP
    # since when its path is deprecated, in seconds since the epoch: every response then has the header `Deprecation`.
    # Source: RFC 9745.
    deprecated_s: int | None = None
    section: str = ""  # the heading that it has in the reference

    @property
    def deprecation(self) -> tuple[bytes, bytes] | None:
        """Return the header of every response of a deprecated path; None for any other."""
        if self.deprecated_s is None:
            return None
        return (b"deprecation", f"@{self.deprecated_s}".encode())

    @property
    def name(self) -> str:
        """Return method and path as one text."""
        return f"{self.method} {self.path}"


def error_codes_of(row: RouteRow) -> tuple[ErrorCode, ...]:
    """Return every error code that a route may return, in the order of `ErrorCode`."""
    codes = {ErrorCode.TOO_MANY_REQUESTS, *row.errors}
    if row.credential is not Credential.NONE:
        codes.add(row.wrong_credential)
    if "{app_id}" in row.path:
        codes.add(row.other_app)
    if row.body_format is not BodyFormat.NOTHING:
        codes |= {ErrorCode.BODY_TOO_LARGE, ErrorCode.UNREADABLE}
    if ErrorCode.FIELD_BROKEN in codes:
        codes.add(ErrorCode.WRONG_TYPE)
    if row.idempotency is not IdempotencyMode.NO_KEY:
        codes |= {ErrorCode.KEY_BROKEN, ErrorCode.KEY_OF_ANOTHER_REQUEST, ErrorCode.KEY_IN_USE}
    return tuple(code for code in ErrorCode if code in codes)
