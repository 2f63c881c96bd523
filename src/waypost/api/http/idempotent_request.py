"""The state of a request with an idempotency key while an endpoint works on it."""

import hashlib
from dataclasses import dataclass, field

import msgspec

from waypost.base.http.multipart import PartHead
from waypost.store.requests.idempotency import KeyedRequest


class Fingerprint:
    """The SHA-256 of a request's content: its bytes, or the parts of a multipart body.

    Clients choose a new multipart boundary for each attempt, so bodies of the same parts differ. Only the
    parts' heads and bytes count, however they are split in transit.
    """

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self._part = hashlib.sha256()

    def add(self, body: bytes) -> None:
        """Add raw bytes."""
        self._whole.update(body)

    def add_part(self, part: PartHead | bytes) -> None:
        """Add the head of a part, or bytes of the last one."""
        if isinstance(part, bytes):
            self._part.update(part)
            return
        self._whole.update(self._part.digest())
        head = msgspec.json.encode((part.name, part.file_name, part.content_type))
        self._part = hashlib.sha256(head + b"\0")

    @property
    def value(self) -> bytes:
        """Return the hash of everything added so far."""
        whole = self._whole.copy()
        whole.update(self._part.digest())
        return whole.digest()


@dataclass(slots=True)
class IdempotentRequest:
    """An idempotency key and the progress of its request.

    Attributes:
        route: method and path, and the app's id if the path has one.
        at_ms: the time the request was received.
        app_id: the app of the request; None: a call on the partner's account.
        holder: id of this request's mark that the key is running; None: it has no mark.
        begun_before: True if the same request was begun before and its outcome is unknown.
        is_complete: True if the key has a stored response: this request's, or an earlier one's.
        is_replay: True if the response is an earlier request's.
    """

    partner_id: int
    route: str
    key: str
    at_ms: int
    app_id: str | None
    holder: str | None = None
    begun_before: bool = False
    is_complete: bool = False
    is_replay: bool = False
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    @property
    def keyed_request(self) -> KeyedRequest:
        """Return the request as the store expects it; read the whole body first."""
        return KeyedRequest(
            partner_id=self.partner_id,
            route=self.route,
            key=self.key,
            body_hash=self.fingerprint.value,
            at_ms=self.at_ms,
            app_id=self.app_id,
            holder=self.holder,
        )
