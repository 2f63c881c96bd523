"""Sign-in and sessions, including what an attacker would try."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from argon2 import PasswordHasher
from sqlalchemy import Connection, delete

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.builders import ACCOUNT, APP, INSTANCE_KEY, PARTNER
from tests.support.fast_passwords import hash_with_low_cost
from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S
from waypost.api import passwords
from waypost.assembly.console import ConsoleOptions
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import machine_ms
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.console.guard import CSRF_HEADER
from waypost.console.route import Audience, RouteKind
from waypost.console.routes import NOT_FOUND_ROUTES, PAGES
from waypost.console.sign_in import local_path
from waypost.console.web.assets import SECURITY_HEADERS
from waypost.console.web.sessions import SESSION_LIFE_MS, Sessions
from waypost.store.accounts.credentials import list_sessions_with_emails
from waypost.store.accounts.partners import add_app, add_business_account, add_partner, change_password
from waypost.store.tables import partners

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PASSWORD: Final = "Correct-horse-1"


@dataclass
class ServiceResponse:
    status: int
    headers: list[tuple[str, str]]
    body: str

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def get_header(self, name: str) -> str:
        return (self.get_all(name) or [""])[0]

    @property
    def session(self) -> str:
        """The value of the session cookie, or an empty string."""
        for cookie in self.get_all("set-cookie"):
            name, _, remainder = cookie.partition("=")
            if name in ("waypost_session", "__Host-waypost"):
                return remainder.partition(";")[0]
        return ""


@dataclass
class ServiceClient:
    """A client of a service without a server: it calls the ASGI application."""

    waypost: Waypost
    clock: ManualClock
    client: str = "198.51.100.4"
    cookie: str = "waypost_session"
    host: str = "waypost.test"
    more: dict[str, str] = field(default_factory=dict[str, str])

    async def request(
        self,
        method: str,
        path: str,
        fields: dict[str, str] | None = None,
        *,
        session: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ServiceResponse:
        messages: list[Any] = []
        content = urlencode(fields or {}).encode() if body is None else body
        all_headers = {
            "host": self.host,
            "content-type": "application/x-www-form-urlencoded",
            "content-length": str(len(content)),
            **(headers or {}),
        }
        if session:
            all_headers["cookie"] = f"{self.cookie}={session}"
        url_path, _, query = path.partition("?")

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        scope: dict[str, Any] = {
            "type": "http", "http_version": "1.1", "method": method, "path": url_path,
            "raw_path": url_path.encode(), "root_path": "", "scheme": "http",
            "query_string": query.encode(), "client": (self.client, 4711),
            "server": ("localhost", 80),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in all_headers.items()],
        }  # fmt: skip
        async with asyncio.timeout(HANGS_AFTER_S):
            await self.waypost.application(scope, receive, send)
        return ServiceResponse(
            messages[0]["status"],
            [(name.decode().lower(), value.decode("latin-1")) for name, value in messages[0]["headers"]],
            b"".join(message.get("body", b"") for message in messages[1:]).decode(errors="replace"),
        )

    async def sign_in(self, password: str = PASSWORD, email: str = PARTNER.email, **fields: str) -> ServiceResponse:
        return await self.request("POST", "/sign-in", {"email": email, "password": password, **fields})

    async def enter(self) -> str:
        """Start a session without checking a password; return its token."""
        return (await self.waypost.console.services.sessions.start(PARTNER)).token

    async def csrf(self, session: str) -> str:
        page = await self.request("GET", f"/apps/{APP.id}", session=session)
        return page.body.partition('data-csrf="')[2].partition('"')[0]


async def open_service(
    folder: Path, *, public_url: str = "http://waypost.test", demo_partner_id: int | None = None
) -> ServiceClient:
    clock = ManualClock(at_ms=machine_ms())
    settings = Settings(data=folder, secret_key=INSTANCE_KEY, public_url=public_url)
    options = ConsoleOptions(demo_partner_id=demo_partner_id)
    waypost = Waypost(settings, clock, RandomIds(clock), console_options=options)
    await waypost.open()
    await waypost.database.write(add_partner, PARTNER, hash_with_low_cost(PASSWORD), 0)
    await waypost.database.write(add_business_account, ACCOUNT)
    await waypost.database.write(add_app, APP, "hash of a key")
    return ServiceClient(waypost, clock)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def service(tmp_path: Path) -> AsyncIterator[ServiceClient]:
    service = await open_service(tmp_path)
    yield service
    await service.waypost.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def https_service(tmp_path: Path) -> AsyncIterator[ServiceClient]:
    """A service that browsers reach over HTTPS."""
    service = await open_service(tmp_path, public_url="https://waypost.test")
    service.cookie = "__Host-waypost"
    yield service
    await service.waypost.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def demo_service(tmp_path: Path) -> AsyncIterator[ServiceClient]:
    service = await open_service(tmp_path / "demonstration", demo_partner_id=PARTNER.id)
    service.host = "127.0.0.1:8080"
    yield service
    await service.waypost.close()


# Authentication.


async def test_password_opens_the_console_and_the_requested_page(service: ServiceClient) -> None:
    redirect = await service.request("GET", f"/apps/{APP.id}?day=1")
    response = await service.sign_in(next=f"/apps/{APP.id}?day=1")
    page = await service.request("GET", f"/apps/{APP.id}", session=response.session)

    assert (redirect.status, redirect.get_header("location")) == (
        303, f"/sign-in?next=%2Fapps%2F{APP.id}%3Fday%3D1",
    )  # fmt: skip
    assert (response.status, response.get_header("location")) == (303, f"/apps/{APP.id}?day=1")
    assert page.status == 200


async def test_wrong_password_and_unknown_address_get_the_same_response(service: ServiceClient) -> None:
    wrong_password = await service.sign_in("Wrong-horse-1")
    unknown_address = await service.sign_in("Wrong-horse-1", "nobody@acme.test")

    assert wrong_password.status == unknown_address.status == 401
    assert wrong_password.body.replace(PARTNER.email, "") == unknown_address.body.replace("nobody@acme.test", "")
    assert wrong_password.session == unknown_address.session == ""
    assert "Wrong-horse-1" not in wrong_password.body


async def test_wrong_password_and_unknown_address_take_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "PasswordHasher", PasswordHasher)  # with the cost that it has in production
    service = await open_service(tmp_path)

    async def measure_s(email: str) -> float:
        started_s = perf_counter()
        await service.sign_in("Wrong-horse-1", email)
        return perf_counter() - started_s

    stored = await service.waypost.passwords.hash(PASSWORD)
    await service.waypost.database.write(change_password, PARTNER.id, stored)
    await measure_s("first@acme.test")  # which also creates the hash for unknown addresses
    known = [await measure_s(PARTNER.email) for _ in range(3)]
    unknown = [await measure_s(f"nobody{number}@acme.test") for number in range(3)]
    await service.waypost.close()

    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert 1 / 3 < median(known) / median(unknown) < 3


async def test_failures_per_minute_of_an_email_address_at_one_client_are_limited_to_ten(service: ServiceClient) -> None:
    for _ in range(10):
        assert (await service.sign_in("Wrong-horse-1")).status == 401

    rejected = await service.sign_in(PASSWORD, PARTNER.email.upper())
    client, service.client = service.client, "198.51.100.77"
    other_client = await service.sign_in()
    service.client = client
    service.clock.advance(ms=60_000)
    later = await service.sign_in()

    assert rejected.status == 429
    assert rejected.session == ""
    assert int(rejected.get_header("retry-after")) in range(1, 61)
    assert re.search(r"Try again in \d+ s", rejected.body)
    assert other_client.status == 303  # failures at one client do not lock out others
    assert later.status == 303


async def test_failures_per_minute_of_one_client_are_limited_to_sixty(service: ServiceClient) -> None:
    limits = service.waypost.console.services.sign_in_limiter
    for number in range(60):  # costs no hashing
        await limits.spend(f"somebody{number}@acme.test", service.client)

    rejected = await service.sign_in()
    service.client = "198.51.100.5"

    assert rejected.status == 429
    assert (await service.sign_in()).status == 303


async def test_changed_password_opens_the_console_but_not_the_api(service: ServiceClient) -> None:
    new = "Other-horse-2"
    await service.waypost.database.write(change_password, PARTNER.id, await service.waypost.passwords.hash(new))

    api = await service.request("POST", "/partner/account/login", {"email": PARTNER.email, "password": new})

    assert api.status == 403
    assert (await service.sign_in()).status == 401
    assert (await service.sign_in(new)).status == 303


# The session.


async def test_cookie_is_not_available_to_scripts_and_other_sites(service: ServiceClient) -> None:
    [cookie] = (await service.sign_in()).get_all("set-cookie")

    flags = {flag.strip().lower() for flag in cookie.split(";")[1:]}
    assert flags == {"httponly", "samesite=lax", "path=/", f"max-age={SESSION_LIFE_MS // 1000}"}


async def test_cookie_over_https_is_secure_and_bound_to_the_host(https_service: ServiceClient) -> None:
    response = await https_service.sign_in()
    [cookie] = response.get_all("set-cookie")

    flags = {flag.strip().lower() for flag in cookie.split(";")[1:]}
    assert cookie.startswith("__Host-waypost=")
    assert flags >= {"httponly", "secure", "samesite=lax", "path=/"}
    assert not any(flag.startswith("domain") for flag in flags)
    assert (await https_service.request("GET", f"/apps/{APP.id}", session=response.session)).status == 200
    https_service.cookie = "waypost_session"  # which another host name of the site could have set
    assert (await https_service.request("GET", f"/apps/{APP.id}", session=response.session)).status == 303


async def test_each_sign_in_has_a_new_token_and_ends_the_previous_session(service: ServiceClient) -> None:
    first = (await service.sign_in()).session
    csrf = await service.csrf(first)
    fields = {"email": PARTNER.email, "password": PASSWORD, "csrf": csrf}
    second = (await service.request("POST", "/sign-in", fields, session=first)).session
    fixed = (await service.request("POST", "/sign-in", fields, session="chosen-by-another")).session

    assert len({first, second, fixed, "chosen-by-another"}) == 4
    assert len(second) >= 32
    assert (await service.request("GET", f"/apps/{APP.id}", session=first)).status == 303
    assert (await service.request("GET", f"/apps/{APP.id}", session="chosen-by-another")).status == 303
    assert (await service.request("GET", f"/apps/{APP.id}", session=second)).status == 200


async def test_store_has_only_the_hash_of_a_token(service: ServiceClient) -> None:
    token = await service.enter()

    rows = await service.waypost.database.read(list_sessions_with_emails, machine_ms())

    assert [row.hash for row, _ in rows] == [hash_secret(token)]
    assert token not in str(rows)


async def test_session_ends_after_twelve_hours(service: ServiceClient) -> None:
    now_ms = [machine_ms()]
    sessions = Sessions(service.waypost.database, RandomIds(service.clock), now_ms=lambda: now_ms[0])
    token = (await sessions.start(PARTNER)).token

    now_ms[0] += SESSION_LIFE_MS - 1
    before = await sessions.find(token)
    now_ms[0] += 1
    after = await sessions.find(token)

    assert SESSION_LIFE_MS == 12 * 60 * 60 * 1000
    assert before is not None
    assert after is None


async def test_advancing_the_clock_of_the_service_does_not_end_a_session(service: ServiceClient) -> None:
    token = await service.enter()
    service.clock.advance(ms=30 * 24 * 3600 * 1000)

    assert (await service.request("GET", f"/apps/{APP.id}", session=token)).status == 200


async def test_signing_out_deletes_the_session_from_the_store(service: ServiceClient) -> None:
    token = await service.enter()
    csrf = await service.csrf(token)

    response = await service.request("POST", "/sign-out", {"csrf": csrf}, session=token)

    assert response.get_header("location") == "/sign-in"
    assert 'waypost_session="";' in response.get_header("set-cookie")
    assert (await service.request("GET", f"/apps/{APP.id}", session=token)).status == 303
    assert await service.waypost.database.read(list_sessions_with_emails, machine_ms()) == []


async def test_session_of_a_deleted_partner_is_not_valid(service: ServiceClient) -> None:
    token = await service.enter()
    await service.waypost.database.write(_delete_partners)

    response = await service.request("GET", f"/apps/{APP.id}", session=token)

    assert response.status == 303
    assert response.get_header("location").startswith("/sign-in")


# Other sites.


@pytest.mark.parametrize(
    "violation", ["no token", "another's token", "Origin", "null", "broken", "Sec-Fetch-Site", "same-site"]
)
async def test_no_action_is_accepted_from_another_site(service: ServiceClient, violation: str) -> None:
    token = await service.enter()
    own, others = await service.csrf(token), await service.csrf(await service.enter())
    before = await service.waypost.database.read(_read_all_tables)
    csrf = {"no token": "", "another's token": others}.get(violation, own)
    headers = {
        "Origin": {"origin": "https://evil.test"},
        "null": {"origin": "null"},
        "broken": {"origin": "http://[evil"},
        "Sec-Fetch-Site": {"sec-fetch-site": "cross-site"},
        "same-site": {"sec-fetch-site": "same-site"},
    }.get(violation, {})

    for row in PAGES:
        if row.kind is not RouteKind.ACT:
            continue
        path = re.sub(r"\{app_id\}", APP.id, row.path)
        path = re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "1", path)
        form = await service.request("POST", path, {"csrf": csrf}, session=token, headers=headers)
        quiet = await service.request(
            "POST", path, {}, session=token,
            headers={**headers, "x-waypost-quiet": "1", CSRF_HEADER: csrf},
        )  # fmt: skip
        assert (form.status, quiet.status) == (403, 403), (row.path, form.body)
        assert quiet.get_header("content-type") == "application/json"

    assert await service.waypost.database.read(_read_all_tables) == before
    assert (await service.request("GET", f"/apps/{APP.id}", session=token)).status == 200


async def test_no_action_is_accepted_without_a_session(service: ServiceClient) -> None:
    before = await service.waypost.database.read(_read_all_tables)

    for row in PAGES:
        if row.kind is RouteKind.ACT and row.audience is Audience.PARTNER:
            path = re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "1", row.path)
            form = await service.request("POST", path, {"csrf": "x"})
            quiet = await service.request("POST", path, headers={"x-waypost-quiet": "1"})
            assert (form.status, form.get_header("location")) == (303, "/sign-in?next=%2F"), path
            assert quiet.status == 401, path

    assert await service.waypost.database.read(_read_all_tables) == before


@pytest.mark.parametrize(
    ("referer", "after"),
    [
        ("http://waypost.test/settings?a=1", "%2Fsettings%3Fa%3D1"),
        ("http://evil.test/settings", "%2F"),
        ("http://[evil", "%2F"),
    ],
)
async def test_form_of_an_ended_session_redirects_to_sign_in_and_back(
    service: ServiceClient, referer: str, after: str
) -> None:
    response = await service.request("POST", "/sign-out", {}, headers={"referer": referer})

    assert (response.status, response.get_header("location")) == (303, f"/sign-in?next={after}")


async def test_other_site_cannot_sign_in_a_user(service: ServiceClient, demo_service: ServiceClient) -> None:
    fields = {"email": PARTNER.email, "password": PASSWORD}

    for headers in ({"origin": "https://evil.test"}, {"sec-fetch-site": "cross-site"}):
        assert (await service.request("POST", "/sign-in", fields, headers=headers)).session == ""
        assert (await demo_service.request("POST", "/enter", {}, headers=headers)).session == ""


async def test_action_is_accepted_through_a_proxy_that_changes_the_host(https_service: ServiceClient) -> None:
    https_service.host = "10.0.0.7:8080"
    fields = {"email": PARTNER.email, "password": PASSWORD}

    response = await https_service.request("POST", "/sign-in", fields, headers={"origin": "https://waypost.test"})

    assert response.status == 303


@pytest.mark.parametrize(
    "path",
    [
        "//evil.test", "/\\evil.test", "https://evil.test", "javascript:alert(1)", "\\\\evil.test",
        "/%0d\nSet-Cookie: a=b", "evil.test", "", "/\tevil", "/x\\evil.test", "/" + "x" * 1000,
    ],
)  # fmt: skip
async def test_sign_in_redirects_to_no_other_site(service: ServiceClient, path: str) -> None:
    response = await service.sign_in(next=path)

    assert local_path(path) == "/"
    assert response.get_header("location") == "/"


# The demo.


@pytest.mark.parametrize("host", ["evil.test", "evil.test:8080", "127.0.0.1.evil.test", "", "[::1"])
async def test_demo_accepts_no_other_host_name(demo_service: ServiceClient, host: str) -> None:
    token = (await demo_service.request("POST", "/enter", {})).session
    demo_service.host = host

    page = await demo_service.request("GET", f"/apps/{APP.id}", session=token)
    sign_in_page = await demo_service.request("GET", "/sign-in")
    entry = await demo_service.request("POST", "/enter", {})

    assert token
    assert (page.status, sign_in_page.status, entry.status) == (400, 400, 403)
    assert "is not allowed for this demo" in page.body
    assert APP.name not in page.body
    assert entry.session == ""


async def test_sign_in_without_a_password_is_available_only_in_the_demo(service: ServiceClient) -> None:
    response = await service.request("POST", "/enter", {})

    assert (response.status, response.session) == (404, "")
    assert "Continue as the demo partner" not in (await service.request("GET", "/sign-in")).body


# Headers; oversized and malformed requests.


async def test_every_response_has_the_security_headers(service: ServiceClient) -> None:
    token = await service.enter()
    sign_in_page = await service.request("GET", "/sign-in")
    sheet = re.search(r'href="(/static/[^"]+\.css)"', sign_in_page.body)
    assert sheet is not None
    responses = [
        sign_in_page,
        await service.request("GET", "/"),
        await service.request("GET", f"/apps/{APP.id}", session=token),
        await service.request("GET", "/apps/nobody-s", session=token),
        await service.request("GET", f"/apps/{APP.id}/nothing", session=token),
        await service.request("GET", "/commands"),
        await service.request("POST", "/sign-out", {}, session=token),
        await service.sign_in("Wrong-horse-1"),
        await service.request("GET", sheet[1]),
        await service.request("GET", "/static/x/nothing.js"),
    ]

    for response in responses:
        for name, value in SECURITY_HEADERS.items():
            assert response.get_header(name.lower()) == value, (response.status, name)
    assert all("no-store" in response.get_header("cache-control") for response in responses[:8])
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


async def test_malformed_and_oversized_forms_are_rejected_without_a_defect(service: ServiceClient) -> None:
    token = await service.enter()
    csrf = await service.csrf(token)
    multipart = {"content-type": "multipart/form-data; boundary=x"}
    file_ = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n'
    responses = [
        await service.request("POST", "/sign-in", body=b"email=" + b"a" * 2_000_000),
        await service.request("POST", "/sign-in", body=b"a", headers={"content-length": "9" * 18}),
        await service.request("POST", "/sign-in", body=b"\xff\xfe=%ff%00&email=%00"),
        await service.request("POST", "/sign-in", body=b"email=a%00b&password=c"),
        await service.request("POST", "/sign-in", body=b"{}", headers={"content-type": "application/json"}),
        await service.request("POST", "/sign-in", body=b"--y", headers=multipart),
        await service.request("POST", "/sign-in", body=b"x", headers={"content-type": "multipart/form-data"}),
        await service.request("POST", "/sign-in", body=file_ + b"a" * 2_000_000 + b"\r\n--x--", headers=multipart),
        await service.request("POST", "/sign-out", body=b"csrf=\xff", session=token),
        await service.request("POST", "/sign-out", body=b"", session=token, headers={CSRF_HEADER: "\xff\xe9"}),
        await service.request("POST", "/theme", {"csrf": csrf, "theme": "x" * 2000}, session=token),
        await service.request("GET", "/apps/a\0b", session=token),
        await service.request("GET", f"/apps/{APP.id}?q=%00", session=token),
        await service.request("GET", "/sign-in?next=%00"),
        await service.request("GET", f"/apps/{APP.id}", session="\xff" * 300),
        await service.request("GET", f"/apps/{APP.id}", session=token, headers={"x-waypost-quiet": "\xff"}),
    ]

    assert all(response.status < 500 for response in responses), [response.status for response in responses]
    assert all(response.session == "" for response in responses)


async def test_error_page_without_a_session_shows_no_internals(demo_service: ServiceClient) -> None:
    demo_service.host = "evil.test"

    page = await demo_service.request("GET", "/")

    assert "<nav" not in page.body
    assert "csrf" not in page.body


async def test_every_route_needs_a_session_except_those_of_the_sign_in(service: ServiceClient) -> None:
    open_to_all = {(row.kind, row.path) for row in PAGES if row.audience is Audience.PUBLIC}

    for row in (*PAGES, *NOT_FOUND_ROUTES):
        if row.audience is Audience.PARTNER and row.kind is not RouteKind.ACT:
            path = re.sub(r"\{app_id\}", APP.id, row.path)
            response = await service.request("GET", re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "1", path))
            assert response.status == (303 if row.kind is RouteKind.PAGE else 401), row.path
            assert APP.name not in response.body

    assert open_to_all == {
        (RouteKind.PAGE, "/sign-in"), (RouteKind.ACT, "/sign-in"), (RouteKind.ACT, "/enter"), (RouteKind.ACT, "/theme"),
    }  # fmt: skip


async def test_user_signs_in_with_a_password_and_signs_out(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/simulator/clock", signed_in=False)
    await tab.page.get_by_label("E-mail address").fill(demo.EMAIL)
    await tab.page.get_by_label("Password or client secret").fill(demo.PASSWORD)
    await tab.page.get_by_role("button", name="Sign in", exact=True).click()

    await tab.page.wait_for_url("**/simulator/clock")
    await tab.page.get_by_role("button", name="Sign out").click()
    await tab.page.wait_for_url("**/sign-in")
    await tab.page.go_back()
    assert await tab.page.get_by_role("button", name="Sign out").count() == 0


def _delete_partners(connection: Connection) -> None:
    connection.execute(delete(partners))


def _read_all_tables(connection: Connection) -> list[Any]:
    """Return the rows of every table that actions could have changed."""
    tables = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").scalars()
    return [
        (table, connection.exec_driver_sql(f'SELECT * FROM "{table}"').fetchall())
        for table in list(tables)
        if table not in ("rate_windows", "rates", "audit_log")  # rejected actions have entries there
    ]
