"""A request with an idempotency key, while it is being worked on."""

import hashlib
from dataclasses import dataclass, field

import msgspec

from waypost.base.http.multipart import PartHead
from waypost.store.requests.idempotency import KeyedRequest


class Fingerprint:
    """The SHA-256 of what a request says: its bytes as they are, or the parts of a multipart body.

    Two bodies of the same parts differ in their boundary, which clients choose anew for each try. So
    of parts their heads count, and their bytes, however they arrive.
    """

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self._part = hashlib.sha256()

    def add(self, body: bytes) -> None:
        """Add bytes as they are."""
        self._whole.update(body)

    def add_part(self, one: PartHead | bytes) -> None:
        """Add the head of a part, or bytes of the last one."""
        if isinstance(one, bytes):
            self._part.update(one)
            return
        self._whole.update(self._part.digest())
        head = msgspec.json.encode((one.name, one.file_name, one.content_type))
        self._part = hashlib.sha256(head + b"\0")

    @property
    def value(self) -> bytes:
        """What has been added so far."""
        whole = self._whole.copy()
        whole.update(self._part.digest())
        return whole.digest()


@dataclass(slots=True)
class Keyed:
    """A key, and how far its request has come.

    Attributes:
        route: method and path, and the app's id where the path has one.
        at_ms: when the request came.
        app_id: of whose request; None: the partner's own.
        holder: who has marked the key as being worked on; None: nobody did.
        begun_before: whether the same request was begun before, and nobody knows what came of it.
        ended: whether the key has its answer: its own, or an earlier one's.
        replayed: whether it is an earlier one's.
    """

    partner_id: int
    route: str
    key: str
    at_ms: int
    app_id: str | None
    holder: str | None = None
    begun_before: bool = False
    ended: bool = False
    replayed: bool = False
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    @property
    def asked(self) -> KeyedRequest:
        """As the store takes it; once the whole body has been read."""
        return KeyedRequest(
            partner_id=self.partner_id,
            route=self.route,
            key=self.key,
            body_hash=self.fingerprint.value,
            at_ms=self.at_ms,
            app_id=self.app_id,
            holder=self.holder,
        )
