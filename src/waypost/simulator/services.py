"""The simulator's services, as its control API and its Graph API use them."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.time_travel import TimeTravel
from waypost.simulator.accounts.call_usage import ManagementCallUsage
from waypost.simulator.accounts.names import NumberNames
from waypost.simulator.accounts.qr_codes import QrCodes
from waypost.simulator.accounts.registrations import Registrations
from waypost.simulator.accounts.signups import Signups
from waypost.simulator.accounts.tokens import Tokens
from waypost.simulator.accounts.usage_counts import UsageCounts
from waypost.simulator.calling.model import CALLS
from waypost.simulator.dev_interfaces import DevPartners, SnapshotStore
from waypost.simulator.faults.faults import Faults
from waypost.simulator.flows.model import FLOWS
from waypost.simulator.groups.model import GROUPS
from waypost.simulator.handsets.feedback import PhoneFeedback
from waypost.simulator.handsets.group_chats import GroupChats
from waypost.simulator.handsets.handsets import Handsets, PhoneActionWriter
from waypost.simulator.handsets.inboxes import Chats, Inboxes
from waypost.simulator.handsets.planned_actions import PlannedActionRunner
from waypost.simulator.handsets.reachability import PhoneReachability
from waypost.simulator.media.media import MediaStorage
from waypost.simulator.media.references import References
from waypost.simulator.media.uploads import ResumableUploads
from waypost.simulator.messages.analytics import TemplateAnalytics
from waypost.simulator.messages.direct_send import DirectSendRequests, GeneratedTemplates
from waypost.simulator.messages.groups import GroupMessages
from waypost.simulator.messages.limits import SendingLimits, ThroughputLimits
from waypost.simulator.messages.marketing import MarketingClicks, MarketingInsights, MarketingRequests
from waypost.simulator.messages.media_links import MediaChecks, MediaLinkFetcher
from waypost.simulator.messages.message_checks import MessageChecker
from waypost.simulator.messages.message_writer import MessageWriter
from waypost.simulator.messages.messages import Messages
from waypost.simulator.messages.paced_messages import PacedMessages
from waypost.simulator.messages.statuses import DeliveryPlanner
from waypost.simulator.payments.model import CONFIGURATIONS
from waypost.simulator.phones.phones import BlockLists
from waypost.simulator.phones.scripts import Scripts
from waypost.simulator.reviews import TemplateReviewLoop
from waypost.simulator.settings import SimulatorSettings
from waypost.simulator.simulator_state import SimulatorState
from waypost.simulator.templates.names import TemplateNames
from waypost.simulator.templates.templates import Templates
from waypost.simulator.templates.usage import TemplateUsage
from waypost.simulator.webhooks.webhook_faults import FaultedWebhooks, WebhookFaults
from waypost.simulator.webhooks.webhooks import WebhookSender


class TimedService(Protocol):
    """A service with scheduled work."""

    async def next_due_ms(self) -> int | None:
        """Return the time of its next work; None if there is none."""
        ...


STORED_KINDS: Final = (CALLS, CONFIGURATIONS, FLOWS, GROUPS)
"""The values that are held in memory."""


class SimulatorServices(SimulatorState):
    """The state, and the services that have a state of their own; creates each once, opens none.

    Args:
        travel: advances the clock; None if the clock cannot be advanced.
        snapshots: snapshots of service and simulator; None if the simulator runs alone.
        partners: partners for tests; None if the simulator runs alone.
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
        store, settings_store, files, accounts = self.store, self.settings, self.files, self.accounts
        records, outbox, fleets, phones, delivery_signals = (
            self.records, self.outbox, self.fleets, self.phones, self.delivery_signals,
        )  # fmt: skip
        self.travel = travel
        self.snapshots = snapshots
        self.partners = partners
        self.media = media = MediaStorage(store, files, clock, ids)
        self.uploads = uploads = ResumableUploads(store, files, clock, ids)
        self.signups = Signups(store, ids)
        self.qr_codes = QrCodes(store, clock, ids)
        self.tokens = Tokens(store, clock, accounts)
        self.usage = ManagementCallUsage(clock, settings_store, accounts)
        self.scripts = scripts = Scripts(store, fleets, phones)
        self.blocks = blocks = BlockLists(store, clock, accounts, phones)
        references = References(settings_store, uploads, media, self.values(FLOWS))
        self.names = NumberNames(self.accounts, self.records)
        self.usage_counts = usage_counts = UsageCounts(store, clock)
        self.registrations = Registrations(store, clock, ids, settings_store, records, usage_counts)
        names = TemplateNames(store, clock, settings_store, usage_counts)
        self.templates = templates = Templates(store, clock, ids, settings_store, outbox, references, names, accounts)
        self.throughput_limits = throughput_limits = ThroughputLimits(clock)
        self.uses = uses = TemplateUsage(store, clock)
        self.paced_messages = paced_messages = PacedMessages(store, clock, outbox, phones, templates.changed)
        self.sending_limits = sending_limits = SendingLimits(
            records, usage_counts, self.values(FLOWS), clock, settings_store
        )
        self.direct_sends = direct_sends = DirectSendRequests(records)
        self.marketing = marketing = MarketingRequests(records)
        checks = MessageChecker(
            clock,
            settings_store,
            templates,
            phones,
            throughput_limits,
            references,
            blocks,
            sending_limits,
            direct_sends,
            marketing,
        )
        generated = GeneratedTemplates(clock, ids, settings_store, templates)
        delivery_planner = DeliveryPlanner(accounts, phones, scripts)
        self.media_checks = media_checks = MediaChecks(
            store, MediaLinkFetcher(settings.media_networks), paced_messages, delivery_signals
        )
        plans = MessageWriter(
            store, settings_store, phones, outbox, delivery_planner, paced_messages, media_checks, delivery_signals
        )
        group_messages = GroupMessages(store, settings_store, self.values(GROUPS), phones, delivery_signals, outbox)
        self.messages = Messages(
            store, clock, ids, phones, sending_limits, checks, plans, group_messages, delivery_signals, uses, generated
        )
        actions = PhoneActionWriter(store, phones, delivery_signals, outbox)
        self.handsets = handsets = Handsets(clock, ids, settings_store, phones, outbox, media, blocks, actions)
        self.feedback = feedback = PhoneFeedback(store, clock, phones, outbox)
        self.inboxes = Inboxes(store, clock, delivery_signals)
        self.chats = Chats(store, clock)
        self.group_chats = GroupChats(store, clock, delivery_signals, outbox)
        self.reachability = reachability = PhoneReachability(
            store, clock, settings_store, accounts, templates, phones, delivery_signals, outbox
        )
        self.planned_actions = PlannedActionRunner(
            store, clock, accounts, phones, delivery_signals, handsets, reachability, feedback
        )
        self.faults = faults = Faults(store, clock)
        self.faulted_updates = faulted_updates = FaultedWebhooks(store)
        webhook_faults = WebhookFaults(store, accounts, outbox, faults, faulted_updates)
        self.webhooks = WebhookSender(
            store, clock, ids, settings_store, accounts, outbox, faulted_updates, webhook_faults
        )
        self.reviews = TemplateReviewLoop(clock, settings_store, templates, paced_messages, delivery_signals, uses)
        self.analytics = analytics = TemplateAnalytics(store, clock, accounts, templates)
        self.marketing_clicks = marketing_clicks = MarketingClicks(store, clock, ids, outbox, analytics)
        self.marketing_insights = MarketingInsights(clock, analytics, marketing_clicks)
        self.timed_services: Sequence[TimedService] = (self.webhooks, self.reviews, self.planned_actions)
        """The services with scheduled work."""
        self.error_counts: Counter[int] = Counter()
        """Number of Graph error responses by code, since the start."""
        for counter in (throughput_limits, self.usage):
            store.register_reset(counter.clear)

    @property
    def failing_loop(self) -> str:
        """The error of a failing loop, or the damage of the file; an empty text while all work."""
        if self.store.damage:
            return f"its file is damaged: {self.store.damage}"
        loops = (self.reviews.loop, self.planned_actions.loop, *self.webhooks.loops)
        return next((loop.failure_text for loop in loops if loop.failure_text), "")
