"""The simulator's parts, as its two doors use them."""

from dataclasses import dataclass

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts import Accounts
from waypost.simulator.handsets import Handsets
from waypost.simulator.inboxes import Inboxes
from waypost.simulator.limits import Limits
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.messages import Messages
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones import Phones
from waypost.simulator.reviews import Reviews
from waypost.simulator.settings import SimulatorSettings
from waypost.simulator.store import Store
from waypost.simulator.templates import Templates
from waypost.simulator.webhooks import Webhooks


@dataclass(frozen=True)
class Parts:
    """One of each."""

    clock: Clock
    ids: Ids
    store: Store
    settings: LiveSettings
    accounts: Accounts
    outbox: Outbox
    templates: Templates
    phones: Phones
    limits: Limits
    messages: Messages
    inboxes: Inboxes
    handsets: Handsets
    webhooks: Webhooks
    reviews: Reviews


def make_parts(settings: SimulatorSettings, clock: Clock, ids: Ids) -> Parts:
    """Put the parts together; nothing is opened yet."""
    store = Store(settings.path)
    live = LiveSettings(settings, store)
    accounts = Accounts(store)
    outbox = Outbox(store, accounts)
    templates = Templates(store, clock, ids, live, outbox)
    phones = Phones(store, live)
    limits = Limits(clock)
    messages = Messages(store, clock, ids, live, accounts, templates, phones, outbox, limits)
    return Parts(
        clock=clock,
        ids=ids,
        store=store,
        settings=live,
        accounts=accounts,
        outbox=outbox,
        templates=templates,
        phones=phones,
        limits=limits,
        messages=messages,
        inboxes=Inboxes(store, clock, messages),
        handsets=Handsets(store, clock, ids, phones, messages, outbox),
        webhooks=Webhooks(store, clock, ids, live, accounts, outbox),
        reviews=Reviews(clock, templates),
    )
