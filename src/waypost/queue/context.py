"""The context of a stage: what dispatch, events and callbacks all work with."""

import random
from dataclasses import dataclass

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.operators.contract import Operators
from waypost.outbound.vetted_client import VettedClient
from waypost.queue.queue import JobQueue
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import MediaFiles


@dataclass(frozen=True, slots=True)
class StageContext:
    """The store, queues, clients and common settings of one process."""

    database: Database
    directory: Directory
    queue: JobQueue
    operators: Operators
    outbound: VettedClient
    files: MediaFiles
    clock: Clock
    ids: Ids
    chance: random.Random  # spreads retries; not used for secrets
    public_url: str  # where receivers fetch media and the operator posts webhooks, without a slash at its end
    hold_ms: int  # how long after a message was accepted its events are delayed
    is_held: bool  # the stages do not work, and webhooks are sent back to the operator
