"""`waypost dev`: service and simulator in one process, with a demonstration partner."""

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waypost.admin import actions
from waypost.assembly import demo
from waypost.assembly.servers import HttpServer, bind, port_of
from waypost.assembly.service import WEBHOOK_PATH, Waypost
from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.seals import hash_of
from waypost.config import Settings
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.store.kind import mark_demo, seed_template
from waypost.store.partners import add_api_key, add_client_secret

ENV_FILE: Final = Path("waypost-dev.env")
LOOPBACK: Final = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class DevOptions:
    """How to start.

    Attributes:
        memory: keep nothing: a temporary folder that goes at the end.
        env_file: where to write what other programs need to know.
        read_after_ms: how soon phones read what they get; None when they are told to.
    """

    settings: Settings
    simulator_port: int = 8081
    memory: bool = False
    env_file: Path = ENV_FILE
    read_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """Where everything is, once it runs."""

    base_url: str
    graph_url: str
    data: Path
    variables: dict[str, str]


class Dev:
    """Service and simulator in one process; opened, and closed in the order of design 12.14.

    Raises at `open`: PortInUse, StoreInUse, WrongStore.
    """

    def __init__(self, options: DevOptions, clock: Clock, ids: Ids) -> None:
        self._options = options
        self._clock = clock
        self._ids = ids
        self._opened = contextlib.AsyncExitStack()

    async def open(self) -> Running:
        """Start everything and return once it answers."""
        settings = self._options.settings
        if self._options.memory:
            temporary = Path(tempfile.mkdtemp(prefix="waypost-"))
            self._opened.callback(shutil.rmtree, temporary, ignore_errors=True)
            settings = settings.model_copy(update={"data": temporary})
        sockets = (
            bind(settings.host, settings.port, option="--port"),
            bind(settings.host, self._options.simulator_port, option="--simulator-port"),
        )
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        local = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else host  # noqa: S104  compared, not bound
        base_url = f"http://{local}:{port_of(sockets[0])}"
        graph_url = f"http://{local}:{port_of(sockets[1])}"
        settings = settings.model_copy(
            update={
                "public_url": settings.public_url or base_url,
                "secret_key": _instance_key(settings),
                "admin_token": settings.admin_token or demo.ADMIN_TOKEN,
                "allowed_networks": (*LOOPBACK, *settings.allowed_networks),
            }
        )
        self._waypost = Waypost(settings, self._clock, self._ids)
        simulator = SimulatorSettings(
            path=settings.data / "simulator.db", read_after_ms=self._options.read_after_ms
        )
        self._simulator = Simulator(simulator, self._clock, self._ids)
        # What is opened first is closed last: doors, stages, simulator, store (design 12.14).
        self._opened.push_async_callback(self._waypost.close)
        await self._waypost.open()
        self._opened.push_async_callback(self._simulator.close)
        await self._simulator.open()
        await self._seed(base_url, graph_url)
        self._opened.push_async_callback(self._waypost.drain)
        for application, bound in (
            (self._simulator.application, sockets[1]),
            (self._waypost.application, sockets[0]),
        ):
            server = HttpServer(application, bound)
            self._opened.push_async_callback(server.stop)
            await server.start()
        self._waypost.start()
        await self._simulator.write_in(
            phone=demo.DESTINATION, to=demo.SOURCE, text="Hello!", name=demo.PHONES[0][1]
        )
        app = await self._waypost.directory.app(demo.APP_ID)
        token = self._waypost.office.seals.app_token(demo.APP_ID, app.token_serial if app else 1)
        variables = _variables(base_url, graph_url, settings.admin_token or "", token)
        _write_env(self._options.env_file, variables)
        return Running(base_url, graph_url, settings.data, variables)

    @property
    def tally(self) -> Counter[tuple[str, str]]:
        """How often each route has answered what."""
        return self._waypost.application.tally

    async def close(self) -> None:
        """Stop doors, drain stages, hand back leases, close stores: whatever had been opened."""
        await self._opened.aclose()

    async def _seed(self, base_url: str, graph_url: str) -> None:
        """The demonstration's partner, app, keys, phones and template; the addresses anew at each start."""
        office, database = self._waypost.office, self._waypost.database
        now_ms = self._clock.now_ms()
        await actions.put_operator_account(office, demo.operator_account(graph_url))
        if await database.write(mark_demo):
            password_hash = await self._waypost.passwords.hash(demo.PASSWORD)
            await actions.add_partner(office, demo.PARTNER, password_hash)
            secret = hash_of(demo.CLIENT_SECRET)
            await database.write(add_client_secret, demo.PARTNER.id, secret, now_ms, None)
            key = hash_of(demo.API_KEY)
            await database.write(add_api_key, key, demo.PARTNER.id, "demo", now_ms)
            await actions.add_business_account(office, demo.ACCOUNT)
            await actions.add_app(
                office,
                partner_id=demo.PARTNER.id,
                name=demo.APP_NAME,
                phone_number=demo.SOURCE,
                phone_number_id=demo.PHONE_NUMBER_ID,
                business_account_id=demo.WABA_ID,
                app_id=demo.APP_ID,
            )
            await database.write(seed_template, demo.template(now_ms))
        await self._simulator.seed(
            AccountSeed(
                waba_id=demo.WABA_ID,
                name="Demo Business",
                namespace=demo.NAMESPACE,
                token=demo.GRAPH_TOKEN,
                app_id=demo.GRAPH_APP_ID,
                app_secret=demo.GRAPH_APP_SECRET,
                verify_token=demo.VERIFY_TOKEN,
                callback_uri=f"{base_url}{WEBHOOK_PATH}/{demo.OPERATOR_ACCOUNT}",
            ),
            [NumberSeed(demo.PHONE_NUMBER_ID, demo.WABA_ID, demo.SOURCE, "Waypost Demo")],
        )
        draft = demo.template(now_ms).draft
        await self._simulator.seed_template(
            template_id=demo.OPERATOR_TEMPLATE_ID,
            waba_id=demo.WABA_ID,
            name=draft.element_name or "",
            language=draft.language_code,
            category=draft.category or "",
            components=list(demo.COMPONENTS),
        )


def _instance_key(settings: Settings) -> str:
    """The setting, or the demonstration's key, kept in a file that only its owner reads.

    The demonstration's key is known, because app tokens derive from it and have to be the same on
    every machine; `serve` refuses it.
    """
    if settings.secret_key is not None:
        return settings.secret_key
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = settings.data / "instance.key"
    if not path.exists():
        _write_private(path, demo.INSTANCE_KEY + "\n")
    return path.read_text(encoding="utf-8").strip()


def _variables(base_url: str, graph_url: str, admin_token: str, app_token: str) -> dict[str, str]:
    """What other programs need to know. Source: design, section 11."""
    return {
        "PARTNER_URL": base_url,
        "API_URL": base_url,
        "GRAPH_URL": graph_url,
        "CONTROL_URL": f"{graph_url}/control",
        "EMAIL": demo.EMAIL,
        "PASSWORD": demo.PASSWORD,
        "CLIENT_SECRET": demo.CLIENT_SECRET,
        "APP_ID": demo.APP_ID,
        "APP_TOKEN": app_token,
        "API_KEY": demo.API_KEY,
        "SOURCE": demo.SOURCE,
        "SRC_NAME": demo.APP_NAME,
        "WABA_ID": demo.WABA_ID,
        "PHONE_NUMBER_ID": demo.PHONE_NUMBER_ID,
        "GRAPH_TOKEN": demo.GRAPH_TOKEN,
        "DESTINATION": demo.DESTINATION,
        "TEMPLATE_ID": demo.TEMPLATE_ID,
        "ADMIN_URL": f"{base_url}/admin",
        "ADMIN_TOKEN": admin_token,
    }


def _write_env(path: Path, variables: dict[str, str]) -> None:
    lines = "".join(f"{name}={value}\n" for name, value in variables.items())
    _write_private(path, lines)


def _write_private(path: Path, text: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
