"""Under `serve`, what all partners share is for the administrator; and the entries of actions in the audit log."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.console.conftest import LOOP
from tests.console.simulator.test_simulator_alone import Site, close_site, open_site
from tests.support.builders import APP, PARTNER
from waypost.api.limits import RATES
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds, uuid7_text
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.console.phones.business import BUSINESS_PATH
from waypost.console.route import RouteKind
from waypost.console.routes import PHONES, SIMULATOR
from waypost.simulator import Simulator, SimulatorSettings
from waypost.store.accounts.audit_log import AuditEntry, AuditFilter
from waypost.store.requests.request_log import RequestLogEntry, add_request_entries

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

ACCOUNT_BODY: Final = {"name": "Shops", "token": "t", "app_id": "7", "app_secret": "s"}
TOKEN: Final = "admin-token-of-a-console-test-long-enough"
VALUES: Final = {
    "template_id": "1", "act": "approve", "on": "call", "kind": "error", "key": "none",
    "fault_id": "1", "name": "crowd",
}  # fmt: skip


class SharedSimulator:
    """A service, the simulator that its partners share, and one of them signed in."""

    def __init__(self, site: Site, control: ApiClient) -> None:
        self.site = site
        self.control = control

    async def post_action(self, path: str, **fields: str) -> tuple[int, str]:
        _, page = await self.site.get("/settings")
        csrf = re.search(r'data-csrf="([^"]*)"', page)
        body = {"csrf": csrf[1] if csrf else "", **fields}
        url = self.site.base_url + path
        async with self.site.http.post(url, data=body, allow_redirects=False) as response:
            return response.status, await response.text()

    async def entries(self, **filters: Any) -> list[AuditEntry]:
        return await self.site.waypost.console.services.audit.page(AuditFilter(**filters), 100)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def shared_simulator(tmp_path: Path) -> AsyncIterator[SharedSimulator]:
    clock = SystemClock()
    simulator = Simulator(SimulatorSettings(path=tmp_path / "simulator.db"), clock, RandomIds(clock))
    await simulator.open()
    bound = bind_socket("127.0.0.1", 0, option="--simulator-port")
    server = HttpServer(simulator.application, bound)
    await server.start()
    url = f"http://127.0.0.1:{port_of(bound)}"
    site, site_server = await open_site(tmp_path, url, admin_token=TOKEN, administrates=False)
    yield SharedSimulator(site, ApiClient(HttpTransport(url), {}))
    await close_site(site, site_server)
    await server.stop()
    await simulator.close()


def fill_path(path: str) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: VALUES[match[1]], path)


async def test_partner_sees_the_rates_of_its_app_and_only_an_administrator_changes_them(
    shared_simulator: SharedSimulator,
) -> None:
    settings = f"/apps/{APP.id}/settings"
    change = {"rate": "templates", "requests": "2", "period_s": "60"}

    status, page = await shared_simulator.site.get(settings)
    rejected = [
        (await shared_simulator.post_action(settings + path, **change))[0]
        for path in ("/rates", "/rates/reset", "/rates/reset-all")
    ]
    await shared_simulator.post_action("/settings/administrator", token=TOKEN)
    changed, _ = await shared_simulator.post_action(settings + "/rates", **change)
    _, page_of_administrator = await shared_simulator.site.get(settings)

    assert (status, rejected, changed) == (200, [403, 403, 403], 303)
    assert "10 per minute" in page
    assert "Only the administrator can change these rates." in page
    assert f"{settings}/rates" not in page
    assert "2 per minute" in page_of_administrator
    entries = await shared_simulator.entries(partner_id=PARTNER.id)
    recorded = {(entry.action, entry.status) for entry in entries}
    assert {("POST /apps/{app_id}/settings/rates", 403), ("POST /apps/{app_id}/settings/rates", 303)} <= recorded


async def test_partner_has_no_access_to_simulator_pages_and_actions(shared_simulator: SharedSimulator) -> None:
    await shared_simulator.control.json(
        "POST", "/control/faults", {"on": "call", "call": "messages.send", "what": {"error": 131000}}
    )
    before = await shared_simulator.control.json("GET", "/control/faults")

    for row in SIMULATOR:
        path = fill_path(row.path)
        if row.kind is RouteKind.ACT:
            status, text = await shared_simulator.post_action(path)
        else:
            status, text = await shared_simulator.site.get(path)
        assert status == 403, (row.kind, path, text[:300])
        assert "Administrator access required" in text, (path, text[:300])
        assert text.startswith("{") or '<a class="button" href="/settings/administrator">' in text, path

    assert await shared_simulator.control.json("GET", "/control/faults") == before
    rejected = await shared_simulator.entries(actor=PARTNER.email, rejected=True)
    acts = [row for row in SIMULATOR if row.kind is RouteKind.ACT]
    assert len(rejected) == len(acts)


async def test_partner_uses_only_phones_that_chat_with_it_or_with_nobody(shared_simulator: SharedSimulator) -> None:
    others_number, foreign, shared, own, new = "15550009999", "15551230001", "15551230002", "15551230003", "15551230004"
    numbers = ((APP.phone_number_id, APP.phone_number), ("999", others_number))
    control = shared_simulator.control
    await control.json("PUT", "/control/accounts/1000", ACCOUNT_BODY)
    for number_id, number in numbers:
        body = {"waba_id": "1000", "phone_number": number, "name": "Shop"}
        await control.json("PUT", f"/control/numbers/{number_id}", body)

    async def write(phone: str, number: str) -> None:
        body = {"to": number, "type": "text", "text": "Hello"}
        await control.json("POST", f"/control/phones/{phone}/messages", body)

    for phone, number in (
        (foreign, others_number),
        (shared, others_number),
        (shared, APP.phone_number),
        (own, APP.phone_number),
    ):
        await write(phone, number)
    before = await control.json("GET", f"/control/phones/{foreign}")
    values = {"phone": foreign, "number": APP.phone_number, "position": "1"}

    async def statuses(phone: str) -> list[int]:
        """Of an action in a chat, of one of the phone as such, and of the page of its script."""
        acted = [
            (await shared_simulator.post_action(f"/phones/{phone}/chats/{APP.phone_number}/text", text="Hi"))[0],
            (await shared_simulator.post_action(f"/phones/{phone}/offline", is_offline="on"))[0],
        ]
        return [*acted, (await shared_simulator.site.get(f"/phones/{phone}/script"))[0]]

    for row in PHONES:
        if row.kind is RouteKind.ACT:
            is_of_business = row.path.startswith(BUSINESS_PATH)
            of_another = {"number": others_number, "sync_type": "history", "wamid": "wamid.1"} if is_of_business else {}
            path = row.path.format(**{**values, **of_another})
            status, *_ = await shared_simulator.post_action(path, to="15551239999")
            assert status == (404 if is_of_business else 403), row.path
    taken = await shared_simulator.post_action(f"/phones/{own}/number", to=foreign)

    assert taken[0] == 403
    assert await control.json("GET", f"/control/phones/{foreign}") == before
    assert await statuses(foreign) == [403, 403, 403]
    assert await statuses(shared) == [303, 403, 403]
    assert await statuses(own) == [303, 303, 200]
    assert await statuses(new) == [303, 303, 200]
    await shared_simulator.post_action("/settings/administrator", token=TOKEN)
    assert await statuses(foreign) == [303, 303, 200]


async def test_partner_has_no_access_to_personal_data_of_all_partners(shared_simulator: SharedSimulator) -> None:
    page = await shared_simulator.site.get("/settings/personal-data")
    statuses = [
        (await shared_simulator.post_action(f"/settings/personal-data/{act}", number="15551234567"))[0]
        for act in ("export", "erase")
    ]

    assert page[0] == 403
    assert statuses == [403, 403]


async def test_session_has_admin_access_with_the_admin_token_until_it_ends_it(
    shared_simulator: SharedSimulator,
) -> None:
    assert (await shared_simulator.post_action("/settings/administrator", token="wrong"))[0] == 400
    assert (await shared_simulator.site.get("/simulator/faults"))[0] == 403

    assert (await shared_simulator.post_action("/settings/administrator", token=TOKEN))[0] == 303
    assert (await shared_simulator.site.get("/simulator/faults"))[0] == 200
    assert (await shared_simulator.post_action("/simulator/faults/disarm"))[0] == 303
    other_session = await shared_simulator.site.waypost.console.services.sessions.start(PARTNER)
    session = await shared_simulator.site.waypost.console.services.sessions.find(other_session.token)
    assert session is not None
    assert session.admin_until_ms is None  # the session does, not the partner

    assert (await shared_simulator.post_action("/settings/administrator/end"))[0] == 303
    assert (await shared_simulator.site.get("/simulator/faults"))[0] == 403
    actions = [(entry.action, entry.status) for entry in await shared_simulator.entries()]
    assert actions == [
        ("POST /settings/administrator/end", 303),
        ("POST /simulator/faults/disarm", 303),
        ("POST /settings/administrator", 303),
        ("POST /settings/administrator", 400),
    ]


async def test_wrong_admin_tokens_are_rate_limited_in_the_console_too(shared_simulator: SharedSimulator) -> None:
    limit = RATES["admin_failures"].at_most
    statuses = [
        (await shared_simulator.post_action("/settings/administrator", token=f"wrong{number}"))[0]
        for number in range(limit + 3)
    ]

    assert statuses == [400] * limit + [429] * 3
    assert (await shared_simulator.post_action("/settings/administrator", token=TOKEN))[0] == 429


async def test_partner_can_use_the_phones(shared_simulator: SharedSimulator) -> None:
    chat = f"/phones/15550002001/chats/{APP.phone_number}/text"

    assert (await shared_simulator.site.get("/phones?show=15550002001"))[0] == 200
    status, text = await shared_simulator.post_action(chat, text="Hello")
    assert status != 500
    assert "administrator" not in text  # the simulator may reject it; the console does not


async def test_actions_of_the_settings_are_audited_without_their_secrets(shared_simulator: SharedSimulator) -> None:
    _, page = await shared_simulator.post_action("/settings/keys", name="shop")
    await shared_simulator.post_action("/settings/keys", name="")
    await shared_simulator.post_action("/settings/secrets/0123456789abcdef/revoke")
    await shared_simulator.post_action(
        "/settings/password", old="Old-horse-1", new="New-horse-1", again="Other-horse-1"
    )

    entries = await shared_simulator.entries(partner_id=PARTNER.id)

    assert [(entry.action, entry.status < 400) for entry in entries] == [
        ("POST /settings/password", False),
        ("POST /settings/secrets/{secret_id}/revoke", False),
        ("POST /settings/keys", False),
        ("POST /settings/keys", True),
    ]
    assert entries[1].subject == "secret_id=0123456789abcdef"
    assert {entry.actor for entry in entries} == {PARTNER.email}
    assert {entry.remote_address for entry in entries} == {"127.0.0.1"}
    key = re.search(r"[0-9a-zA-Z_-]{40,}", page.partition("Your new API key")[2])
    assert key is not None
    for entry in entries:
        assert not {"horse", key[0]} & set(re.split(r"[^\w-]", str(entry)))
    assert await shared_simulator.entries(actor="admin") == []  # the console's own calls are not counted twice


async def test_audit_page_shows_a_partner_its_own_entries_and_the_administrator_all(
    shared_simulator: SharedSimulator,
) -> None:
    audit = shared_simulator.site.waypost.console.services.audit
    await audit.record(
        actor="admin", remote_address="192.0.2.1", action="POST /admin/partners", status=200,
        partner_id=PARTNER.id + 1, subject="<script>alert(1)</script>",
    )  # fmt: skip
    await shared_simulator.post_action("/settings/keys", name="shop")

    _, own = await shared_simulator.site.get("/settings/audit")
    await shared_simulator.post_action("/settings/administrator", token=TOKEN)
    _, everything = await shared_simulator.site.get("/settings/audit")
    _, rejected = await shared_simulator.site.get("/settings/audit?outcome=rejected")
    _, of_administrator = await shared_simulator.site.get("/settings/audit?actor=administrator")
    _, of_partner = await shared_simulator.site.get(f"/settings/audit?actor={PARTNER.email}")

    assert "Create an API key" in own
    assert "POST /settings/keys" in own
    assert "Create a partner" not in own
    assert "Create a partner" in everything
    assert "&lt;script&gt;" in everything
    assert "<script>alert(1)" not in everything
    assert "Create a partner" not in rejected
    assert ("POST /admin/partners" in of_administrator, "POST /settings/keys" in of_administrator) == (True, False)
    assert ("POST /admin/partners" in of_partner, "POST /settings/keys" in of_partner) == (False, True)


async def test_request_log_shows_a_partner_its_own_requests_and_the_administrator_all(
    shared_simulator: SharedSimulator,
) -> None:
    site = shared_simulator.site
    own, foreign = (
        RequestLogEntry(
            id=uuid7_text(1_900_000_000_000 + partner_id, bytes(10)), at_ms=1_900_000_000_000, partner_id=partner_id,
            app_id="", route=f"POST /of/{partner_id}", credential="API key", status=400, error="", message="", field="",
            explanation="", accepted="", request="", response="", recipient="", size_bytes=0, took_us=1, request_id="shared-id",
        )
        for partner_id in (PARTNER.id, PARTNER.id + 1)
    )  # fmt: skip
    await site.waypost.database.write(add_request_entries, [own, foreign])

    _, before = await site.get("/requests")
    hidden, _ = await site.get(f"/requests/{foreign.id}")
    _, found = await site.get("/requests?id=shared-id")
    await shared_simulator.post_action("/settings/administrator", token=TOKEN)
    _, after = await site.get("/requests")
    shown, _ = await site.get(f"/requests/{foreign.id}")

    assert (own.route in before, foreign.route in before) == (True, False)
    assert (own.route in found, foreign.route in found) == (True, False)
    assert (own.route in after, foreign.route in after) == (True, True)
    assert (hidden, shown) == (404, 200)
