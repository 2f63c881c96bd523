"""Service and simulator of `waypost dev` on one folder: opened, seeded and closed together."""

from dataclasses import dataclass

from sqlalchemy import Connection

from waypost.admin import provisioning
from waypost.assembly.components import WEBHOOK_PATH
from waypost.assembly.console import ConsoleOptions
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock
from waypost.base.encryption import hash_secret
from waypost.base.ids import Ids
from waypost.base.time_travel import TimeTravel
from waypost.client.api_client import Transport
from waypost.config import Settings
from waypost.operators.cloud.webhook_items import FEATURE_FIELDS, NEEDED_FIELDS
from waypost.simulator import AccountSeed, DevPartners, NumberSeed, Simulator, SimulatorSettings, SnapshotStore
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_app, add_business_account, add_partner
from waypost.store.properties import is_demo, mark_demo, seed_template


@dataclass(frozen=True, slots=True)
class BaseUrls:
    """The base URLs of service and simulator."""

    base_url: str
    graph_url: str


class ServiceAndSimulator:
    """One service and one simulator on one folder; once closed, another pair can be opened on it.

    Attributes:
        is_new: the folder was empty, so that it has the data of the demonstration only.

    Args:
        simulator: settings of the simulator.
        travel: advances the clock for both sides.
        snapshots: the snapshot store of the control API.
        partners: the partners for tests of the control API.
        control: the console's transport to the simulator.
    """

    def __init__(
        self,
        settings: Settings,
        simulator: SimulatorSettings,
        clock: Clock,
        ids: Ids,
        *,
        travel: TimeTravel,
        snapshots: SnapshotStore,
        partners: DevPartners | None = None,
        control: Transport,
    ) -> None:
        self._clock = clock
        self._travel = travel
        self._simulator_path = simulator.path
        self.is_new = False
        stand = ConsoleOptions(control, demo.PARTNER.id)
        self.waypost = Waypost(settings, clock, ids, console_options=stand)
        self.simulator = Simulator(simulator, clock, ids, travel=travel, snapshots=snapshots, partners=partners)
        self.waypost.observability.readiness.services.simulator = lambda: self.simulator.failure_reason

    async def open(self, urls: BaseUrls) -> None:
        """Open both stores and seed the demonstration; no worker is started yet.

        Raises:
            StoreInUse: another process has the store open.
            WrongStore: it is of another revision, or not the demonstration's.
        """
        was_there = self._simulator_path.exists()
        await self.waypost.open()
        try:
            await self.simulator.open()
            try:
                await self._seed(urls)
                self.is_new = self.is_new and not was_there
            except BaseException:
                await self.simulator.close()
                raise
        except BaseException:
            await self.waypost.close()
            raise

    async def start(self) -> str:
        """Start the workers, and let a phone write, which opens its 24-hour window; return the app's token."""
        self._travel.sides = (self.waypost, self.simulator)
        self.waypost.start()
        await self.simulator.send_phone_text(phone=demo.DESTINATION, to=demo.SOURCE, text="Hello!")
        app = await self.waypost.directory.app(demo.APP_ID)
        return self.waypost.admin_context.secret_box.app_token(demo.APP_ID, app.token_serial if app else 1)

    async def has_app(self, app_id: str) -> bool:
        """True if the service has an app with this id."""
        return await self.waypost.directory.app(app_id) is not None

    async def close(self, *, within_s: float | None = None) -> None:
        """Drain stages, release leases, close both stores.

        Args:
            within_s: timeout for jobs in flight; None: as the settings say.
        """
        self._travel.sides = ()
        await self.waypost.drain(within_s=within_s)
        await self.simulator.close()
        await self.waypost.close()

    async def _seed(self, urls: BaseUrls) -> None:
        """Seed the demonstration's partner, app, keys, phones and template; update the URLs at every start."""
        context, database = self.waypost.admin_context, self.waypost.database
        now_ms = self._clock.now_ms()
        await provisioning.put_operator_account(context, demo.operator_account(urls.graph_url))
        if not await database.read(is_demo):
            self.is_new = await database.write(
                _seed_demonstration,
                demo.PASSWORD_HASH,
                hash_secret(context.secret_box.app_token(demo.APP_ID, 1)),
                now_ms,
            )
        await self.simulator.seed(
            AccountSeed(
                waba_id=demo.WABA_ID,
                name="Demo Business",
                namespace=demo.NAMESPACE,
                token=demo.GRAPH_TOKEN,
                app_id=demo.GRAPH_APP_ID,
                app_secret=demo.GRAPH_APP_SECRET,
                verify_token=demo.VERIFY_TOKEN,
                callback_uri=f"{urls.base_url}{WEBHOOK_PATH}/{demo.OPERATOR_ACCOUNT}",
                webhook_fields=(*(field.name for field in NEEDED_FIELDS), *FEATURE_FIELDS),
            ),
            [NumberSeed(demo.PHONE_NUMBER_ID, demo.WABA_ID, demo.SOURCE, "Waypost Demo")],
        )
        await self.simulator.name_phones(demo.PHONES)
        draft = demo.template(now_ms).draft
        await self.simulator.seed_template(
            template_id=demo.OPERATOR_TEMPLATE_ID,
            waba_id=demo.WABA_ID,
            name=draft.element_name or "",
            language=draft.language_code,
            category=draft.category or "",
            components=list(demo.COMPONENTS),
        )


def _seed_demonstration(connection: Connection, password_hash: str, app_token_hash: str, now_ms: int) -> bool:
    """Seed the demonstration in one transaction, so that no start finds it incomplete; False if it exists."""
    if not mark_demo(connection):
        return False
    add_partner(connection, demo.PARTNER, password_hash, now_ms)
    secret_hash, key_hash = hash_secret(demo.CLIENT_SECRET), hash_secret(demo.API_KEY)
    add_credential(connection, CredentialKind.CLIENT_SECRET, demo.PARTNER.id, secret_hash, now_ms)
    add_credential(connection, CredentialKind.API_KEY, demo.PARTNER.id, key_hash, now_ms, "demo")
    add_business_account(connection, demo.ACCOUNT)
    add_app(connection, demo.app(now_ms), app_token_hash)
    seed_template(connection, demo.template(now_ms))
    return True
