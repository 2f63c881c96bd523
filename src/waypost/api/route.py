"""What a row of the route table says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from waypost.api.auth.credentials import Credential
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.domain.errors import ErrorCode

Endpoint = Callable[[Services, Request], Awaitable[Answer]]


class Once(StrEnum):
    """Whether a route takes an idempotency key, and how it is carried out once under it (decision 0044)."""

    NO = "takes no key"
    IN_ONE = "all it does is one transaction, which keeps the key too"
    MARKED = "it asks others first: the key is marked as running, until the transaction that ends it"


class Carries(StrEnum):
    """How a request's body comes."""

    NOTHING = "nothing"
    FORM = "application/x-www-form-urlencoded"
    JSON = "application/json"
    FORM_OR_JSON = "form or JSON"
    MULTIPART = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One row.

    Attributes:
        rate: its row in the table of rates. Every route has windows of its own, whichever row it names.
        carries: how the body comes; a multipart body is left to the endpoint to stream.
        fields: the names it reads from the body; each is a row in the table of fields.
        query: likewise from the query.
        answers: the statuses it may give, but 429, 413 and 500, which any may.
        shape: the name of its successful answer in the table of shapes; empty: no body.
        calls: whether it may call somebody else before it answers (decision 0026).
        refuses: the reasons it may give beside those that its credential, its body and its key bring along.
        once: whether it takes an idempotency key.
        deprecated_s: since when its address is an older one, in seconds since the epoch: every response
            says so in the header `Deprecation`. Source: RFC 9745.
    """

    method: str
    path: str
    endpoint: Endpoint
    credential: Credential
    rate: str
    answers: tuple[int, ...]
    shape: str
    source: str
    carries: Carries = Carries.NOTHING
    fields: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    calls: bool = False
    refuses: tuple[ErrorCode, ...] = ()
    once: Once = Once.NO
    deprecated_s: int | None = None

    @property
    def deprecation(self) -> tuple[bytes, bytes] | None:
        """The header of every response of an older address; None of any other."""
        if self.deprecated_s is None:
            return None
        return (b"deprecation", f"@{self.deprecated_s}".encode())

    @property
    def name(self) -> str:
        """Method and path, as one text."""
        return f"{self.method} {self.path}"


def reasons_of(row: RouteRow) -> tuple[ErrorCode, ...]:
    """Every reason for which a route may refuse, in the order of the table of reasons."""
    found = {ErrorCode.AUTHENTICATION_FAILED, ErrorCode.TOO_MANY_REQUESTS, *row.refuses}
    if "{app_id}" in row.path:
        found.add(ErrorCode.NOT_FOR_THIS_APP)
    if row.carries is not Carries.NOTHING:
        found |= {ErrorCode.BODY_TOO_LARGE, ErrorCode.UNREADABLE}
    if row.once is not Once.NO:
        found |= {ErrorCode.KEY_BROKEN, ErrorCode.KEY_OF_ANOTHER_REQUEST, ErrorCode.KEY_IN_USE}
    return tuple(reason for reason in ErrorCode if reason in found)
