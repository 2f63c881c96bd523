"""Two services for wire cases, one of them strict: no stages run, and the clock is manual."""

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
import msgspec
import pytest
import pytest_asyncio

from tests.support.builders import ANN, INSTANCE_KEY, OPERATOR
from tests.support.callback_sink import CallbackSink, ReceivedCallback
from tests.support.case_files import CASES, encode_request, read_case_file, request_named
from tests.support.closed_port import closed_port
from tests.support.fast_passwords import hash_with_low_cost
from tests.support.file_server import FileServer
from tests.support.manual_clock import ManualClock
from tests.support.pipeline import HttpResponse
from tests.support.polling import HANGS_AFTER_S
from tests.support.wire_cases import Case, SetupStep, Step, filled, form_pairs, multipart, value_at
from tests.support.wire_partners import DAY_MS, HOUR_MS, PASSWORD, REACHABLE_OPERATOR, Tenants
from waypost.admin import provisioning
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.service import Waypost
from waypost.base.encryption import SecretBox
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.store.database import Database

ADMIN_TOKEN = "wire-admin-token-of-thirty-two-or-more"
PUBLIC_URL = "http://127.0.0.1:8080"
"""What the service calls itself in its links; it listens elsewhere."""


@dataclass
class WireService:
    """A service in which each case has its own partners."""

    url: str
    operator_url: str
    clock: ManualClock
    tenants: Tenants
    http: aiohttp.ClientSession
    sink: CallbackSink
    files: FileServer
    simulator: Simulator
    database: Database
    closed_port: int
    seeded: set[str] = field(default_factory=set[str])

    async def values(self, *, with_other: bool = True) -> dict[str, str]:
        """Return the placeholders of one case, with those of another partner if requested."""
        return {
            **await self.tenants.make(with_other=with_other),
            "receiver": self.sink.url,
            "files": self.files.url,
            "nobody": f"http://127.0.0.1:{self.closed_port}/",
            "admin_token": ADMIN_TOKEN,
            "verify_token": OPERATOR["verify_token"],
            "operator_account": OPERATOR.id,
            "operator_url": self.operator_url,
            "operator_token": OPERATOR["token"],
            "today": datetime.fromtimestamp(self.clock.now_ms() / 1000, tz=UTC).date().isoformat(),
            "just_before_an_hour": str(self.clock.now_ms() + HOUR_MS - 1),
            "in_an_hour": str(self.clock.now_ms() + HOUR_MS),
            "in_a_day": str(self.clock.now_ms() + DAY_MS),
            "just_after_a_day": str(self.clock.now_ms() + DAY_MS + 1),
        }

    async def add_universal_token(self, partner_id: str) -> str:
        """Return a new universal token of a partner."""
        step = request_named(read_case_file(CASES / "universal_token.toml"), "token")
        values = {"partner_id": partner_id, "admin_token": ADMIN_TOKEN, "in_a_day": str(self.clock.now_ms() + DAY_MS)}
        response = await self.send_request(msgspec.convert(encode_request(step), SetupStep), values)
        return str(value_at(response.body, "universal_token"))

    async def send_request(self, step: Step, values: dict[str, str]) -> HttpResponse:
        """Send a case's request."""
        self.clock.advance(ms=step.after_ms)
        for prefix in ("direct", "other_direct"):
            if f"{{{prefix}_" in step.path:
                await self._seed_number(values, prefix)
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
        path = filled(step.path, values).removeprefix(PUBLIC_URL)
        async with self.http.request(
            step.method,
            self.url + path if path.startswith("/") else path,
            data=body,
            headers=headers,
            skip_auto_headers=["Content-Type"] if body is None else [],
        ) as response:
            raw = await response.read()
            is_json = response.content_type == "application/json" and raw
            content = json.loads(raw) if is_json else None
            return HttpResponse(response.status, content, response.headers, raw)

    async def hang_up(self, step: Step, values: dict[str, str], *, at: str) -> None:
        """Send a case's request, and disconnect once this path of the file server is requested."""
        count = self.files.requested_paths.count(at)
        request = asyncio.create_task(self.send_request(step, values))
        async with asyncio.timeout(HANGS_AFTER_S):
            while self.files.requested_paths.count(at) == count:  # noqa: ASYNC110  a server that tests share
                await asyncio.sleep(0.005)
        request.cancel()
        await asyncio.wait([request])

    async def _seed_number(self, values: dict[str, str], prefix: str) -> None:
        """Create an app's number in the simulator; Ann has just written to it."""
        waba_id, source = values[f"{prefix}_waba_id"], values[f"{prefix}_source"]
        if waba_id in self.seeded:
            return
        self.seeded.add(waba_id)
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
        number_id, is_on_business_app = values[f"{prefix}_phone_number_id"], prefix == "direct"
        number = NumberSeed(number_id, waba_id, source, "Acme Shop", is_on_business_app=is_on_business_app)
        await self.simulator.seed(account, [number])
        await self.simulator.seed_template(
            waba_id=waba_id,
            template_id=values[f"{prefix}_operator_template_id"],
            name="offer",
            language="en_US",
            category="MARKETING",
            components=[{"type": "BODY", "text": "Everything is cheap."}],
        )
        if prefix == "other_direct":  # its owner has accepted the terms for marketing messages
            url = f"{self.operator_url}/control/accounts/{waba_id}/marketing-messages"
            async with self.http.put(url, json={"status": "ONBOARDED"}) as response:
                assert response.status == 200, await response.text()
        inbound_id = await self.simulator.send_phone_text(phone=ANN, to=source, text="Hello")
        values[f"{prefix}_inbound_id"] = inbound_id
        partner_id = values["other_partner_id" if prefix.startswith("other_") else "partner_id"]
        await self.tenants.record_inbound(int(partner_id), values[f"{prefix}_app_id"], inbound_id)


def _status_in_path(request: ReceivedCallback) -> int:
    """Return the status that a request's path ends with, such as 500 for `…/500`; otherwise 200."""
    last = request.path.rpartition("/")[2]
    return int(last) if last.isdecimal() else 200


@asynccontextmanager
async def _open_service(
    folder: Path, *, strict: bool, settings: Mapping[str, int] | None = None
) -> AsyncGenerator[WireService]:
    clock = ManualClock()
    ids = RandomIds(clock)
    values: dict[str, Any] = {
        "data": folder,
        "secret_key": INSTANCE_KEY,
        "admin_token": ADMIN_TOKEN,
        "allowed_networks": ("127.0.0.0/8",),
        "strict": strict,
        **(settings or {}),
    }
    waypost = Waypost(Settings(**values), clock, ids)
    await waypost.open()
    await provisioning.put_operator_account(waypost.admin_context, OPERATOR)
    bound = bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(waypost.application, bound)
    await server.start()
    sink = CallbackSink()
    sink.choose_status = _status_in_path
    await sink.open()
    files = FileServer()
    await files.open()
    simulator = Simulator(SimulatorSettings(path=folder / "simulator.db"), clock, ids)
    await simulator.open()
    graph_socket = bind_socket("127.0.0.1", 0, option="--port")
    graph = HttpServer(simulator.application, graph_socket)
    await graph.start()
    graph_url = f"http://127.0.0.1:{port_of(graph_socket)}"
    reachable = replace(OPERATOR, id=REACHABLE_OPERATOR, base_url=graph_url)
    await provisioning.put_operator_account(waypost.admin_context, reachable)
    tenants = Tenants(waypost.database, SecretBox(INSTANCE_KEY), ids, clock, hash_with_low_cost(PASSWORD))
    url = f"http://127.0.0.1:{port_of(bound)}"
    async with aiohttp.ClientSession() as http:
        with closed_port() as port:
            yield WireService(url, graph_url, clock, tenants, http, sink, files, simulator, waypost.database, port)
    await asyncio.gather(server.stop(), sink.close(), files.close())
    await waypost.close()
    await graph.stop()
    await simulator.close()


@dataclass
class WireServices:
    """Both services; also opens one for a case that has its own settings."""

    lenient: WireService
    strict: WireService
    folder: Path

    @asynccontextmanager
    async def service_for(self, case: Case) -> AsyncGenerator[WireService]:
        """Open the service that a case needs."""
        if not case.settings:
            yield self.strict if case.strict else self.lenient
            return
        folder = self.folder / "-".join(f"{name}-{case.settings[name]}" for name in case.settings)
        opened = _open_service(folder, strict=case.strict, settings=case.settings)
        async with opened as service:
            yield service


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WireServices]:
    """Both services, for all cases of a file."""
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("wire")
        lenient = await stack.enter_async_context(_open_service(folder / "lenient", strict=False))
        strict = await stack.enter_async_context(_open_service(folder / "strict", strict=True))
        yield WireServices(lenient, strict, folder)
