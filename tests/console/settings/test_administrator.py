"""Under `serve`, what all partners share is the administrator's; and what acts leave in the audit log."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP
from tests.console.simulator.test_simulator_alone import Site, close_site, open_site
from tests.support.builders import APP, PARTNER
from waypost.api.limits.rate_limits import RATES
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.console.route import RouteKind
from waypost.console.simulator.routes import SIMULATOR
from waypost.simulator import Simulator, SimulatorSettings
from waypost.store.accounts.audit_log import AuditEntry, AuditFilter

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

TOKEN: Final = "admin-token-of-a-console-test-long-enough"
VALUES: Final = {
    "template_id": "1", "act": "approve", "on": "call", "kind": "error", "key": "none",
    "fault_id": "1", "name": "crowd",
}  # fmt: skip


class Shared:
    """A service, the simulator that its partners share, and one of them signed in."""

    def __init__(self, site: Site, control: ApiClient) -> None:
        self.site = site
        self.control = control

    async def act(self, path: str, **fields: str) -> tuple[int, str]:
        _, page = await self.site.get("/settings")
        found = re.search(r'data-csrf="([^"]*)"', page)
        body = {"csrf": found[1] if found else "", **fields}
        url = self.site.base_url + path
        async with self.site.http.post(url, data=body, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def entries(self, **wanted: Any) -> list[AuditEntry]:
        return await self.site.waypost.console.services.audit.page(AuditFilter(**wanted), 100)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    clock = SystemClock()
    simulator = Simulator(SimulatorSettings(path=tmp_path / "simulator.db"), clock, RandomIds(clock))
    await simulator.open()
    bound = bind_socket("127.0.0.1", 0, option="--simulator-port")
    server = HttpServer(simulator.application, bound)
    await server.start()
    url = f"http://127.0.0.1:{port_of(bound)}"
    site, site_server = await open_site(tmp_path, url, admin_token=TOKEN, administrates=False)
    yield Shared(site, ApiClient(HttpTransport(url), {}))
    await close_site(site, site_server)
    await server.stop()
    await simulator.close()


def path_of(path: str) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: VALUES[found[1]], path)


async def test_a_partner_gets_none_of_the_simulators_pages_and_acts(shared: Shared) -> None:
    await shared.control.json(
        "POST", "/control/faults", {"on": "call", "call": "messages.send", "what": {"error": 131000}}
    )
    before = await shared.control.json("GET", "/control/faults")

    for row in SIMULATOR:
        path = path_of(row.path)
        if row.kind is RouteKind.ACT:
            status, text = await shared.act(path)
        else:
            status, text = await shared.site.get(path)
        assert status == 403, (row.kind, path, text[:300])
        assert "Administrator access required" in text, (path, text[:300])

    assert await shared.control.json("GET", "/control/faults") == before
    rejected = await shared.entries(actor=PARTNER.email, rejected=True)
    acts = [row for row in SIMULATOR if row.kind is RouteKind.ACT]
    assert len(rejected) == len(acts)


async def test_with_the_admin_token_a_session_administrates_until_it_stops(shared: Shared) -> None:
    assert (await shared.act("/settings/administrator", token="wrong"))[0] == 400
    assert (await shared.site.get("/simulator/faults"))[0] == 403

    assert (await shared.act("/settings/administrator", token=TOKEN))[0] == 303
    assert (await shared.site.get("/simulator/faults"))[0] == 200
    assert (await shared.act("/simulator/faults/disarm"))[0] == 303
    another = await shared.site.waypost.console.services.sessions.start(PARTNER)
    found = await shared.site.waypost.console.services.sessions.find(another.token)
    assert found is not None
    assert found.administers_until_ms is None  # the session does, not the partner

    assert (await shared.act("/settings/administrator/end"))[0] == 303
    assert (await shared.site.get("/simulator/faults"))[0] == 403
    told = [(one.action, one.status) for one in await shared.entries()]
    assert told == [
        ("POST /settings/administrator/end", 303),
        ("POST /simulator/faults/disarm", 303),
        ("POST /settings/administrator", 303),
        ("POST /settings/administrator", 400),
    ]


async def test_wrong_admin_tokens_are_limited_in_the_console_too(shared: Shared) -> None:
    most = RATES["admin_failures"].at_most
    statuses = [(await shared.act("/settings/administrator", token=f"wrong{number}"))[0] for number in range(most + 3)]

    assert statuses == [400] * most + [429] * 3
    assert (await shared.act("/settings/administrator", token=TOKEN))[0] == 429


async def test_a_partner_uses_the_phones_as_before(shared: Shared) -> None:
    chat = f"/phones/15550002001/chats/{APP.phone_number}/text"

    assert (await shared.site.get("/phones?show=15550002001"))[0] == 200
    status, text = await shared.act(chat, text="Hello")
    assert status != 500
    assert "administrator" not in text  # the simulator may refuse it, and we do not


async def test_acts_of_the_settings_leave_entries_without_their_secrets(shared: Shared) -> None:
    _, page = await shared.act("/settings/keys", name="shop")
    await shared.act("/settings/keys", name="")
    await shared.act("/settings/secrets/0123456789abcdef/revoke")
    await shared.act("/settings/password", old="Old-horse-1", new="New-horse-1", again="Other-horse-1")

    found = await shared.entries(partner_id=PARTNER.id)

    assert [(one.action, one.status < 400) for one in found] == [
        ("POST /settings/password", False),
        ("POST /settings/secrets/{secret_id}/revoke", False),
        ("POST /settings/keys", False),
        ("POST /settings/keys", True),
    ]
    assert found[1].subject == "secret_id=0123456789abcdef"
    assert {one.actor for one in found} == {PARTNER.email}
    assert {one.remote_address for one in found} == {"127.0.0.1"}
    key = re.search(r"[0-9a-zA-Z_-]{40,}", page.partition("Your new API key")[2])
    assert key is not None
    for one in found:
        assert not {"horse", key[0]} & set(re.split(r"[^\w-]", str(one)))
    assert await shared.entries(actor="admin") == []  # the console's own calls are not counted twice


async def test_the_page_shows_a_partner_its_own_entries_and_the_administrator_all(shared: Shared) -> None:
    audit = shared.site.waypost.console.services.audit
    await audit.record(
        actor="admin", remote_address="192.0.2.1", action="POST /admin/partners", status=200,
        partner_id=PARTNER.id + 1, subject="<script>alert(1)</script>",
    )  # fmt: skip
    await shared.act("/settings/keys", name="shop")

    _, own = await shared.site.get("/settings/audit")
    await shared.act("/settings/administrator", token=TOKEN)
    _, everything = await shared.site.get("/settings/audit")
    _, done = await shared.site.get("/settings/audit?outcome=rejected")

    assert "POST /settings/keys" in own
    assert "POST /admin/partners" not in own
    assert "POST /admin/partners" in everything
    assert "&lt;script&gt;" in everything
    assert "<script>alert(1)" not in everything
    assert "POST /admin/partners" not in done
