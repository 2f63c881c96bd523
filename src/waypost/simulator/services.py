"""The simulator's parts, as its two doors use them."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.time_travel import Travel
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.accounts.call_usage import Usage
from waypost.simulator.accounts.flows import Flows
from waypost.simulator.accounts.records import Records
from waypost.simulator.accounts.registrations import Registrations
from waypost.simulator.accounts.tokens import Tokens
from waypost.simulator.accounts.usage_counts import Ledger
from waypost.simulator.faults.faults import Faults
from waypost.simulator.files import Files
from waypost.simulator.handsets.chats import Chats
from waypost.simulator.handsets.feedback import PhoneFeedback
from waypost.simulator.handsets.handsets import Handsets
from waypost.simulator.handsets.inboxes import Inboxes
from waypost.simulator.handsets.payments import Payments
from waypost.simulator.handsets.phone_actions import PhoneActs
from waypost.simulator.handsets.planned_actions import PlannedActs
from waypost.simulator.handsets.reachability import Absences
from waypost.simulator.media.media import MediaShelf
from waypost.simulator.media.references import References
from waypost.simulator.media.uploads import Uploads
from waypost.simulator.messages.analytics import Analytics
from waypost.simulator.messages.call_faults import CallFaults
from waypost.simulator.messages.delivery_planning import Receptions
from waypost.simulator.messages.delivery_signals import Arrivals
from waypost.simulator.messages.message_checks import MessageChecks
from waypost.simulator.messages.message_plans import MessagePlans
from waypost.simulator.messages.messages import Messages
from waypost.simulator.messages.paced_messages import Held
from waypost.simulator.messages.sending_limits import Standings
from waypost.simulator.messages.throughput import Limits
from waypost.simulator.phones.blocks import Blocks
from waypost.simulator.phones.fleets import Fleets
from waypost.simulator.phones.phones import Phones
from waypost.simulator.phones.scripts import Scripts
from waypost.simulator.reviews import Reviews
from waypost.simulator.settings import LiveSettings, SimulatorSettings
from waypost.simulator.store import Store
from waypost.simulator.tables import SCHEMA
from waypost.simulator.templates.names import TemplateNames
from waypost.simulator.templates.templates import Templates
from waypost.simulator.templates.uses import TemplateUses
from waypost.simulator.webhooks.faulted_updates import JudgedUpdates
from waypost.simulator.webhooks.outbox import Outbox
from waypost.simulator.webhooks.webhook_faults import WebhookFaults
from waypost.simulator.webhooks.webhooks import Webhooks
from waypost.simulator.whole_state import Keeper


class Timed(Protocol):
    """A part that does something by itself when its time has come."""

    async def next_due_ms(self) -> int | None:
        """When it will next do something; None when nothing waits."""
        ...


class Parts:
    """One of each; nothing is opened yet.

    Args:
        travel: what moves the clock; None where nobody does.
        keeper: what keeps the state of both sides; None where there is only this one.
    """

    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        ids: Ids,
        travel: Travel | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.travel = travel
        self.keeper = keeper
        self.store = store = Store(settings.path, SCHEMA)
        self.settings = live = LiveSettings(settings, store)
        folder = settings.path.with_name(settings.path.name + ".files")
        self.files = files = Files(folder, reserved_bytes=settings.least_free_mb * 1_000_000)
        self.media = media = MediaShelf(store, files, clock, ids)
        self.uploads = uploads = Uploads(store, files, clock, ids)
        self.flows = flows = Flows(store, clock, ids)
        self.accounts = accounts = Accounts(store)
        self.tokens = Tokens(store, clock, accounts)
        self.usage = Usage(clock, live, accounts)
        self.outbox = outbox = Outbox(store, accounts)
        self.fleets = fleets = Fleets(store)
        self.phones = phones = Phones(store, live, fleets)
        self.scripts = scripts = Scripts(store, fleets, phones)
        self.blocks = blocks = Blocks(store, clock, accounts, phones)
        references = References(live, uploads, media, flows)
        self.records = records = Records(store)
        self.ledger = ledger = Ledger(store, clock)
        self.registrations = Registrations(store, clock, ids, live, records, ledger)
        names = TemplateNames(store, clock, live, ledger)
        self.templates = templates = Templates(store, clock, ids, live, outbox, references, names)
        self.limits = limits = Limits(clock)
        self.uses = uses = TemplateUses(store, clock)
        self.held = held = Held(store, clock, outbox, phones, templates.changed)
        self.standings = standings = Standings(records, ledger, flows, clock, live)
        self.arrivals = arrivals = Arrivals(store, clock)
        checks = MessageChecks(clock, live, templates, phones, limits, references, blocks, standings)
        receptions = Receptions(accounts, phones, scripts)
        plans = MessagePlans(store, live, phones, outbox, receptions, held, arrivals)
        self.messages = Messages(clock, ids, phones, standings, checks, plans, arrivals, uses)
        acts = PhoneActs(store, phones, arrivals, outbox)
        self.handsets = handsets = Handsets(clock, ids, live, phones, outbox, media, blocks, acts)
        self.payments = Payments(store, clock, ids, live, phones, arrivals, outbox)
        self.feedback = feedback = PhoneFeedback(store, clock, phones, outbox)
        self.inboxes = Inboxes(store, clock, arrivals)
        self.chats = Chats(store, clock)
        self.absences = absences = Absences(store, clock, live, accounts, templates, phones, arrivals, outbox)
        self.planned_acts = PlannedActs(store, clock, accounts, phones, arrivals, handsets, absences, feedback)
        self.faults = faults = Faults(store, clock)
        self.call_faults = CallFaults(faults, accounts)
        self.judged_updates = judged = JudgedUpdates(store)
        webhook_faults = WebhookFaults(store, accounts, outbox, faults, judged)
        self.webhooks = Webhooks(store, clock, ids, live, accounts, outbox, judged, webhook_faults)
        self.reviews = Reviews(clock, live, templates, held, arrivals, uses)
        self.analytics = Analytics(store, clock, accounts, templates)
        self.timed: Sequence[Timed] = (self.webhooks, self.reviews, self.planned_acts)
        """The parts that do something by themselves."""
        self.refused: Counter[int] = Counter()
        """How many calls were refused with which code, since the start."""
        for counted in (limits, self.usage):
            store.at_reset(counted.clear)

    @property
    def failing_loop(self) -> str:
        """Why one of the loops does not do its work; an empty text while all do."""
        loops = (self.reviews.loop, self.planned_acts.loop, *self.webhooks.loops)
        return next((loop.why_not for loop in loops if loop.why_not), "")
