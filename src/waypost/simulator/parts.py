"""The simulator's parts, as its two doors use them."""

from dataclasses import dataclass

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts import Accounts
from waypost.simulator.analytics import Analytics
from waypost.simulator.blocks import Blocks
from waypost.simulator.files import Files
from waypost.simulator.flows import Flows
from waypost.simulator.handsets import Handsets
from waypost.simulator.inboxes import Inboxes
from waypost.simulator.limits import Limits
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.media import MediaShelf
from waypost.simulator.messages import Messages
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones import Phones
from waypost.simulator.records import Records
from waypost.simulator.references import References
from waypost.simulator.reviews import Reviews
from waypost.simulator.settings import SimulatorSettings
from waypost.simulator.store import Store
from waypost.simulator.templates import Templates
from waypost.simulator.uploads import Uploads
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
    files: Files
    media: MediaShelf
    uploads: Uploads
    flows: Flows
    records: Records
    blocks: Blocks
    analytics: Analytics


def make_parts(settings: SimulatorSettings, clock: Clock, ids: Ids) -> Parts:
    """Put the parts together; nothing is opened yet."""
    store = Store(settings.path)
    files = Files(settings.path.with_name(settings.path.name + ".files"))
    media = MediaShelf(store, files, clock, ids)
    uploads = Uploads(store, files, clock, ids)
    flows = Flows(store, clock, ids)
    live = LiveSettings(settings, store)
    accounts = Accounts(store)
    outbox = Outbox(store, accounts)
    phones = Phones(store, live)
    blocks = Blocks(store, clock, accounts, phones)
    references = References(live, uploads, media, flows)
    templates = Templates(store, clock, ids, live, outbox, references)
    limits = Limits(clock)
    messages = Messages(
        store, clock, ids, live, accounts, templates, phones, outbox, limits, references, blocks
    )
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
        handsets=Handsets(store, clock, ids, phones, messages, outbox, media, blocks),
        webhooks=Webhooks(store, clock, ids, live, accounts, outbox),
        reviews=Reviews(clock, templates),
        files=files,
        media=media,
        uploads=uploads,
        flows=flows,
        records=Records(store),
        blocks=blocks,
        analytics=Analytics(store, clock, accounts, templates),
    )
