"""Two services for wire cases, one of them strict: no stages run, and time stands still."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.support.builders import ANN, INSTANCE_KEY, OPERATOR
from tests.support.callback_sink import CallbackSink, Try
from tests.support.closed_port import refusing_port
from tests.support.fast_passwords import hash_of_little_work
from tests.support.file_server import FileServer
from tests.support.pipeline import Answer
from tests.support.test_partners import ANSWERING, DAY_MS, HOUR_MS, PASSWORD, Tenants
from tests.support.waiting import HANGS_AFTER_S
from tests.support.wire_cases import Case, Step, filled, form_pairs, multipart
from waypost.admin import provisioning
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.clock import ManualClock
from waypost.base.encryption import SecretBox
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.store.database import Database

ADMIN_TOKEN = "wire-admin-token-of-thirty-two-or-more"


@dataclass
class World:
    """A service on which each case has partners of its own."""

    url: str
    clock: ManualClock
    tenants: Tenants
    http: aiohttp.ClientSession
    sink: CallbackSink
    files: FileServer
    simulator: Simulator
    database: Database
    refusing_port: int
    known: set[str] = field(default_factory=set[str])

    async def values(self, *, with_other: bool = True) -> dict[str, str]:
        """The placeholders of one case; those of another partner too, if it names any."""
        return {
            **await self.tenants.make(with_other=with_other),
            "receiver": self.sink.url,
            "files": self.files.url,
            "nobody": f"http://127.0.0.1:{self.refusing_port}/",
            "admin_token": ADMIN_TOKEN,
            "verify_token": OPERATOR["verify_token"],
            "operator_account": OPERATOR.id,
            "today": datetime.fromtimestamp(self.clock.now_ms() / 1000, tz=UTC).date().isoformat(),
            "just_before_an_hour": str(self.clock.now_ms() + HOUR_MS - 1),
            "in_an_hour": str(self.clock.now_ms() + HOUR_MS),
            "in_a_day": str(self.clock.now_ms() + DAY_MS),
            "just_after_a_day": str(self.clock.now_ms() + DAY_MS + 1),
        }

    async def ask(self, step: Step, values: dict[str, str]) -> Answer:
        """Send a case's request."""
        self.clock.advance(ms=step.after_ms)
        for whose in ("direct", "other_direct"):
            if f"{{{whose}_" in step.path:
                await self._make_known(values, whose)
        body: io.BytesIO | aiohttp.FormData | aiohttp.MultipartWriter | None = None
        if step.form is not None:
            body = aiohttp.FormData(form_pairs(filled(step.form, values)))
        elif step.parts is not None:
            body = multipart(step.parts, values)
        elif step.hex is not None:
            body = io.BytesIO(bytes.fromhex(step.hex))
        elif step.body is not None:
            body = io.BytesIO(filled(step.body, values).encode())
        headers = filled(step.headers, values)
        if isinstance(body, io.BytesIO):
            headers = {"Content-Type": "application/x-www-form-urlencoded"} | headers
        async with self.http.request(
            step.method,
            self.url + filled(step.path, values),
            data=body,
            headers=headers,
            skip_auto_headers=["Content-Type"] if body is None else [],
        ) as answer:
            raw = await answer.read()
            is_json = answer.content_type == "application/json" and raw
            told = json.loads(raw) if is_json else None
            return Answer(answer.status, told, answer.headers, raw)

    async def hang_up(self, step: Step, values: dict[str, str], *, at: str) -> None:
        """Send a case's request, and hang up once this path of the file server is asked for."""
        asked = self.files.asked.count(at)
        asking = asyncio.create_task(self.ask(step, values))
        async with asyncio.timeout(HANGS_AFTER_S):
            while self.files.asked.count(at) == asked:  # noqa: ASYNC110  a server that tests share
                await asyncio.sleep(0.005)
        asking.cancel()
        await asyncio.wait([asking])

    async def _make_known(self, values: dict[str, str], whose: str) -> None:
        """Tell the simulator of an app's number; Ann has just written to it."""
        waba_id, source = values[f"{whose}_waba_id"], values[f"{whose}_source"]
        if waba_id in self.known:
            return
        self.known.add(waba_id)
        account = AccountSeed(
            waba_id=waba_id,
            name="Acme",
            namespace="",
            token=OPERATOR["token"],
            app_id=OPERATOR["app_id"],
            app_secret=OPERATOR["app_secret"],
            verify_token=OPERATOR["verify_token"],
            callback_uri="",
        )
        number = NumberSeed(values[f"{whose}_phone_number_id"], waba_id, source, "Acme Shop")
        await self.simulator.seed(account, [number])
        inbound_id = await self.simulator.send_phone_text(phone=ANN, to=source, text="Hello")
        values[f"{whose}_inbound_id"] = inbound_id
        partner_id = values["other_partner_id" if whose.startswith("other_") else "partner_id"]
        await self.tenants.hear(int(partner_id), values[f"{whose}_app_id"], inbound_id)


def _by_path(came: Try) -> int:
    """A receiver that answers by its path: `…/500` with 500."""
    last = came.path.rpartition("/")[2]
    return int(last) if last.isdecimal() else 200


@asynccontextmanager
async def _open_world(
    folder: Path, *, strict: bool, settings: Mapping[str, int] | None = None
) -> AsyncGenerator[World]:
    clock = ManualClock()
    ids = RandomIds(clock)
    chosen: dict[str, Any] = {
        "data": folder,
        "secret_key": INSTANCE_KEY,
        "admin_token": ADMIN_TOKEN,
        "allowed_networks": ("127.0.0.0/8",),
        "strict": strict,
        **(settings or {}),
    }
    waypost = Waypost(Settings(**chosen), clock, ids)
    await waypost.open()
    await provisioning.put_operator_account(waypost.admin_context, OPERATOR)
    bound = bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(waypost.application, bound)
    await server.start()
    sink = CallbackSink()
    sink.answers = _by_path
    await sink.open()
    files = FileServer()
    await files.open()
    simulator = Simulator(SimulatorSettings(path=folder / "simulator.db"), clock, ids)
    await simulator.open()
    graph_socket = bind_socket("127.0.0.1", 0, option="--port")
    graph = HttpServer(simulator.application, graph_socket)
    await graph.start()
    graph_url = f"http://127.0.0.1:{port_of(graph_socket)}"
    answering = replace(OPERATOR, id=ANSWERING, base_url=graph_url)
    await provisioning.put_operator_account(waypost.admin_context, answering)
    tenants = Tenants(waypost.database, SecretBox(INSTANCE_KEY), ids, clock, hash_of_little_work(PASSWORD))
    url = f"http://127.0.0.1:{port_of(bound)}"
    async with aiohttp.ClientSession() as http:
        with refusing_port() as port:
            yield World(url, clock, tenants, http, sink, files, simulator, waypost.database, port)
    await asyncio.gather(server.stop(), sink.close(), files.close())
    await waypost.close()
    await graph.stop()
    await simulator.close()


@dataclass
class Worlds:
    """Both, and how to open one for a case that has settings of its own."""

    lenient: World
    strict: World
    folder: Path

    @asynccontextmanager
    async def of(self, case: Case) -> AsyncGenerator[World]:
        """The service that a case asks."""
        if not case.settings:
            yield self.strict if case.strict else self.lenient
            return
        folder = self.folder / "-".join(f"{name}-{case.settings[name]}" for name in case.settings)
        opened = _open_world(folder, strict=case.strict, settings=case.settings)
        async with opened as world:
            yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worlds(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Worlds]:
    """Both services, for all cases of a file."""
    async with AsyncExitStack() as at_end:
        folder = tmp_path_factory.mktemp("wire")
        lenient = await at_end.enter_async_context(_open_world(folder / "lenient", strict=False))
        strict = await at_end.enter_async_context(_open_world(folder / "strict", strict=True))
        yield Worlds(lenient, strict, folder)
