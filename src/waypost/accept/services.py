"""What an endpoint may use."""

from dataclasses import dataclass

from waypost.accept.limits import Limiter
from waypost.accept.passwords import Passwords
from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.seals import Seals
from waypost.outbound.vetted import VettedClient
from waypost.store.database import Database
from waypost.store.directory import Directory


@dataclass(frozen=True, slots=True)
class Services:
    """Handed to every endpoint.

    Attributes:
        strict: hold requests to the operator's rules too, at once.
    """

    clock: Clock
    ids: Ids
    seals: Seals
    database: Database
    directory: Directory
    limiter: Limiter
    passwords: Passwords
    outbound: VettedClient
    strict: bool = False
