"""The simulator's services, as its control API and its Graph API use them."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.loops import Loop
from waypost.base.time_travel import TimeTravel
from waypost.simulator.accounts.signups import SIGNUPS
from waypost.simulator.apis.dev_partners import DevPartners
from waypost.simulator.apis.dev_snapshots import SnapshotStore
from waypost.simulator.apis.link_fetches import MediaLinkFetcher
from waypost.simulator.calling.model import CALLS
from waypost.simulator.faults.model import FAULTS
from waypost.simulator.flows.model import FLOWS
from waypost.simulator.groups.model import GROUPS
from waypost.simulator.media.model import MEDIA
from waypost.simulator.media.uploads import UPLOADS
from waypost.simulator.numbers.blocks import BLOCKS
from waypost.simulator.numbers.qr_codes import QR_CODES
from waypost.simulator.payments.model import CONFIGURATIONS
from waypost.simulator.state.phones.scripts import Scripts
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.usage_counts import ManagementCallUsage, ThroughputLimits
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.settings import SimulatorSettings
from waypost.simulator.templates.model import NAME_LOCKS, TEMPLATE_USES, TEMPLATES
from waypost.simulator.webhooks.webhooks import WebhookSender

MARKETING_CLICKS: Final = StoredKind("marketing_click", int)
"""Times of clicks on links of marketing messages: of a template, by the click's id."""
STORED_KINDS: Final = (
    BLOCKS,
    CALLS,
    CONFIGURATIONS,
    FAULTS,
    FLOWS,
    GROUPS,
    MARKETING_CLICKS,
    MEDIA,
    NAME_LOCKS,
    QR_CODES,
    SIGNUPS,
    TEMPLATE_USES,
    TEMPLATES,
    UPLOADS,
)
"""The values that are held in memory."""


class SimulatorServices(SimulatorState):
    """The state, and the services that have a state of their own; creates each once, opens none.

    Args:
        travel: advances the clock; None if it cannot be advanced.
        snapshots: None if the simulator runs alone, and so of `partners`.
    """

    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        ids: Ids,
        travel: TimeTravel | None = None,
        snapshots: SnapshotStore | None = None,
        partners: DevPartners | None = None,
    ) -> None:
        super().__init__(settings, clock, ids, STORED_KINDS)
        store, settings_store, accounts = self.store, self.settings, self.accounts
        fleets, phones = self.fleets, self.phones
        self.travel = travel
        self.snapshots = snapshots
        self.partners = partners
        self.link_fetcher = MediaLinkFetcher(settings.media_networks)
        self.usage = ManagementCallUsage(clock, settings_store, accounts)
        self.scripts = Scripts(store, fleets, phones)
        self.templates = self.values(TEMPLATES)
        self.templates_by_key = self.cached(TEMPLATES).index(lambda each: ((each.waba_id, each.name, each.language),))
        self.throughput_limits = ThroughputLimits(clock)
        self.held_template_ids: set[str] = set()
        """The templates that have held messages."""
        self.webhooks = WebhookSender(self)
        self.loops: list[Loop] = []
        self.due_times: list[Callable[[], Awaitable[int | None]]] = [self.webhooks.next_due_ms]
        """Functions that return when scheduled work is due; None if there is none."""
        self.error_counts: Counter[int] = Counter()
        """Number of Graph error responses by code, since the start."""
        for clear in (self.throughput_limits.clear, self.usage.clear, self.held_template_ids.clear):
            store.register_reset(clear)

    def start_loop(self, loop: Loop, next_due_ms: Callable[[], Awaitable[int | None]]) -> None:
        """Start a loop whose work is due at these times."""
        self.loops.append(loop)
        self.due_times.append(next_due_ms)
        loop.start()

    @property
    def failing_loop(self) -> str:
        """The error of a failing loop, or the damage of the file; an empty text while all work."""
        if self.store.damage:
            return f"its file is damaged: {self.store.damage}"
        loops = (*self.loops, *self.webhooks.loops.values())
        return next((loop.failure_text for loop in loops if loop.failure_text), "")
