"""The simulator's parts, as its two doors use them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.travel import Travel
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.accounts.flows import Flows
from waypost.simulator.accounts.ledger import Ledger
from waypost.simulator.accounts.records import Records
from waypost.simulator.accounts.registrations import Registrations
from waypost.simulator.accounts.tokens import Tokens
from waypost.simulator.accounts.usage import Usage
from waypost.simulator.faults.faults import Faults
from waypost.simulator.files import Files
from waypost.simulator.handsets.absences import Absences
from waypost.simulator.handsets.chats import Chats
from waypost.simulator.handsets.handsets import Handsets
from waypost.simulator.handsets.inboxes import Inboxes
from waypost.simulator.handsets.planned_acts import PlannedActs
from waypost.simulator.keeper import Keeper
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.media.media import MediaShelf
from waypost.simulator.media.references import References
from waypost.simulator.media.uploads import Uploads
from waypost.simulator.messages.analytics import Analytics
from waypost.simulator.messages.call_faults import CallFaults
from waypost.simulator.messages.held import Held
from waypost.simulator.messages.limits import Limits
from waypost.simulator.messages.messages import Messages
from waypost.simulator.messages.receptions import Receptions
from waypost.simulator.messages.reviews import Reviews
from waypost.simulator.messages.standings import Standings
from waypost.simulator.phones.blocks import Blocks
from waypost.simulator.phones.fleets import Fleets
from waypost.simulator.phones.phones import Phones
from waypost.simulator.phones.scripts import Scripts
from waypost.simulator.settings import SimulatorSettings
from waypost.simulator.store import Store
from waypost.simulator.templates.names import TemplateNames
from waypost.simulator.templates.templates import Templates
from waypost.simulator.templates.uses import TemplateUses
from waypost.simulator.webhooks.judged_updates import JudgedUpdates
from waypost.simulator.webhooks.outbox import Outbox
from waypost.simulator.webhooks.webhook_faults import WebhookFaults
from waypost.simulator.webhooks.webhooks import Webhooks


class Timed(Protocol):
    """A part that does something by itself when its time has come."""

    async def next_due_ms(self) -> int | None:
        """When it will next do something; None when nothing waits."""
        ...


@dataclass(frozen=True)
class Parts:
    """One of each.

    Args:
        timed: the parts that do something by themselves.
        travel: what moves the clock; None where nobody does.
        keeper: what keeps the state of both sides; None where there is only this one.
    """

    clock: Clock
    ids: Ids
    store: Store
    settings: LiveSettings
    accounts: Accounts
    tokens: Tokens
    usage: Usage
    ledger: Ledger
    standings: Standings
    held: Held
    uses: TemplateUses
    registrations: Registrations
    outbox: Outbox
    templates: Templates
    phones: Phones
    fleets: Fleets
    scripts: Scripts
    absences: Absences
    planned_acts: PlannedActs
    refused: Counter[int]
    """How many calls were refused with which code, since the start."""
    limits: Limits
    messages: Messages
    inboxes: Inboxes
    chats: Chats
    handsets: Handsets
    webhooks: Webhooks
    reviews: Reviews
    files: Files
    media: MediaShelf
    uploads: Uploads
    flows: Flows
    records: Records
    blocks: Blocks
    analytics: Analytics
    faults: Faults
    call_faults: CallFaults
    judged_updates: JudgedUpdates
    timed: Sequence[Timed]
    travel: Travel | None
    keeper: Keeper | None

    @property
    def failing_loop(self) -> str:
        """Why one of the loops does not do its work; an empty text while all do."""
        loops = (self.reviews.loop, self.planned_acts.loop, *self.webhooks.loops)
        return next((loop.why_not for loop in loops if loop.why_not), "")


def make_parts(
    settings: SimulatorSettings, clock: Clock, ids: Ids, travel: Travel | None = None, keeper: Keeper | None = None
) -> Parts:
    """Put the parts together; nothing is opened yet."""
    store = Store(settings.path)
    files = Files(
        settings.path.with_name(settings.path.name + ".files"), reserved_bytes=settings.least_free_mb * 1_000_000
    )
    media = MediaShelf(store, files, clock, ids)
    uploads = Uploads(store, files, clock, ids)
    flows = Flows(store, clock, ids)
    live = LiveSettings(settings, store)
    accounts = Accounts(store)
    outbox = Outbox(store, accounts)
    fleets = Fleets(store)
    phones = Phones(store, live, fleets)
    scripts = Scripts(store, fleets, phones)
    blocks = Blocks(store, clock, accounts, phones)
    references = References(live, uploads, media, flows)
    records = Records(store)
    ledger = Ledger(store, clock)
    names = TemplateNames(store, clock, live, ledger)
    templates = Templates(store, clock, ids, live, outbox, references, names)
    limits = Limits(clock)
    uses = TemplateUses(store, clock)
    held = Held(store, clock, outbox, phones)
    standings = Standings(records, ledger, flows, clock, live)
    messages = Messages(
        store, clock, ids, live, accounts, templates, phones, outbox, limits, references, blocks,
        standings, Receptions(accounts, phones, scripts), held=held, uses=uses,
    )  # fmt: skip
    handsets = Handsets(store, clock, ids, live, phones, messages, outbox, media, blocks)
    inboxes = Inboxes(store, clock, messages)
    absences = Absences(store, clock, live, accounts, templates, phones, messages, outbox)
    planned_acts = PlannedActs(store, clock, accounts, phones, messages, handsets, absences)
    faults = Faults(store, clock)
    judged = JudgedUpdates(store)
    webhook_faults = WebhookFaults(store, accounts, outbox, faults, judged)
    webhooks = Webhooks(store, clock, ids, live, accounts, outbox, judged, webhook_faults)
    usage = Usage(clock, live, accounts)
    for counted in (limits, usage):
        store.at_reset(counted.clear)
    reviews = Reviews(clock, live, templates, held, messages, uses)
    return Parts(
        clock=clock,
        ids=ids,
        store=store,
        settings=live,
        accounts=accounts,
        tokens=Tokens(store, clock, accounts),
        usage=usage,
        ledger=ledger,
        standings=standings,
        held=held,
        uses=uses,
        registrations=Registrations(store, clock, ids, live, records, ledger),
        outbox=outbox,
        templates=templates,
        phones=phones,
        fleets=fleets,
        scripts=scripts,
        absences=absences,
        planned_acts=planned_acts,
        refused=Counter(),
        limits=limits,
        messages=messages,
        inboxes=inboxes,
        chats=Chats(store, clock),
        handsets=handsets,
        webhooks=webhooks,
        reviews=reviews,
        files=files,
        media=media,
        uploads=uploads,
        flows=flows,
        records=records,
        blocks=blocks,
        analytics=Analytics(store, clock, accounts, templates),
        faults=faults,
        call_faults=CallFaults(faults, accounts),
        judged_updates=judged,
        timed=(webhooks, reviews, planned_acts),
        travel=travel,
        keeper=keeper,
    )
