"""Signing in and staying so, as somebody who means harm tries it."""

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
from sqlalchemy import Connection, delete

from tests.console.conftest import LOOP, Desk, Tabs
from tests.support.builders import ACCOUNT, APP, INSTANCE_KEY, PARTNER
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.console import ConsoleOptions
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import ManualClock, machine_ms
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds
from waypost.config import Settings
from waypost.console.guard import CSRF_HEADER
from waypost.console.route import Audience, RouteKind
from waypost.console.routes import NOT_FOUND_ROUTES, PAGES
from waypost.console.sign_in import local_path
from waypost.console.web.headers import SECURITY_HEADERS
from waypost.console.web.sessions import SESSION_LIFE_MS, Sessions
from waypost.store.accounts.console_sessions import list_sessions_with_emails
from waypost.store.accounts.partners import add_app, add_business_account, add_partner, change_password
from waypost.store.tables import partners

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PASSWORD: Final = "Correct-horse-1"


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: str

    def all_of(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def one(self, name: str) -> str:
        return (self.all_of(name) or [""])[0]

    @property
    def session(self) -> str:
        """What the session's cookie holds, if one was set."""
        for cookie in self.all_of("set-cookie"):
            name, _, rest = cookie.partition("=")
            if name in ("waypost_session", "__Host-waypost"):
                return rest.partition(";")[0]
        return ""


@dataclass
class House:
    """A service by itself, asked as a server would hand requests to it."""

    waypost: Waypost
    clock: ManualClock
    client: str = "198.51.100.4"
    cookie: str = "waypost_session"
    host: str = "waypost.test"
    more: dict[str, str] = field(default_factory=dict[str, str])

    async def ask(
        self,
        method: str,
        path: str,
        fields: dict[str, str] | None = None,
        *,
        session: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent: list[Any] = []
        content = urlencode(fields or {}).encode() if body is None else body
        given = {
            "host": self.host,
            "content-type": "application/x-www-form-urlencoded",
            "content-length": str(len(content)),
            **(headers or {}),
        }
        if session:
            given["cookie"] = f"{self.cookie}={session}"
        place, _, query = path.partition("?")

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope: dict[str, Any] = {
            "type": "http", "http_version": "1.1", "method": method, "path": place,
            "raw_path": place.encode(), "root_path": "", "scheme": "http",
            "query_string": query.encode(), "client": (self.client, 4711),
            "server": ("localhost", 80),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        }  # fmt: skip
        async with asyncio.timeout(HANGS_AFTER_S):
            await self.waypost.application(scope, receive, send)
        return Answer(
            sent[0]["status"],
            [(name.decode().lower(), value.decode("latin-1")) for name, value in sent[0]["headers"]],
            b"".join(one.get("body", b"") for one in sent[1:]).decode(errors="replace"),
        )

    async def sign_in(self, password: str = PASSWORD, email: str = PARTNER.email, **fields: str) -> Answer:
        return await self.ask("POST", "/sign-in", {"email": email, "password": password, **fields})

    async def enter(self) -> str:
        """The token of a new session, without the work of checking a password."""
        return (await self.waypost.console.services.sessions.start(PARTNER)).token

    async def csrf(self, session: str) -> str:
        page = await self.ask("GET", f"/apps/{APP.id}", session=session)
        return page.body.partition('data-csrf="')[2].partition('"')[0]


_HASHES: Final[dict[str, str]] = {}
"""Each takes a part of a second to make."""


async def open_house(
    folder: Path, *, public_url: str = "http://waypost.test", demo_partner_id: int | None = None
) -> House:
    clock = ManualClock(at_ms=machine_ms())
    settings = Settings(data=folder, secret_key=INSTANCE_KEY, public_url=public_url)
    stand = ConsoleOptions(demo_partner_id=demo_partner_id)
    waypost = Waypost(settings, clock, RandomIds(clock), console_options=stand)
    await waypost.open()
    if PASSWORD not in _HASHES:
        _HASHES[PASSWORD] = await waypost.passwords.hash(PASSWORD)
    await waypost.database.write(add_partner, PARTNER, _HASHES[PASSWORD], 0)
    await waypost.database.write(add_business_account, ACCOUNT)
    await waypost.database.write(add_app, APP, "hash of a key")
    return House(waypost, clock)


@pytest_asyncio.fixture(loop_scope=LOOP)
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = await open_house(tmp_path)
    yield house
    await house.waypost.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def secure(tmp_path: Path) -> AsyncIterator[House]:
    """One that browsers reach by https."""
    house = await open_house(tmp_path, public_url="https://waypost.test")
    house.cookie = "__Host-waypost"
    yield house
    await house.waypost.close()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def demonstration(tmp_path: Path) -> AsyncIterator[House]:
    house = await open_house(tmp_path / "demonstration", demo_partner_id=PARTNER.id)
    house.host = "127.0.0.1:8080"
    yield house
    await house.waypost.close()


# Who it is.


async def test_password_opens_the_console_and_the_page_that_was_asked_for(house: House) -> None:
    asked = await house.ask("GET", f"/apps/{APP.id}?day=1")
    answer = await house.sign_in(next=f"/apps/{APP.id}?day=1")
    page = await house.ask("GET", f"/apps/{APP.id}", session=answer.session)

    assert (asked.status, asked.one("location")) == (
        303, f"/sign-in?next=%2Fapps%2F{APP.id}%3Fday%3D1",
    )  # fmt: skip
    assert (answer.status, answer.one("location")) == (303, f"/apps/{APP.id}?day=1")
    assert page.status == 200


async def test_wrong_password_and_unknown_address_get_the_same_answer(house: House) -> None:
    wrong = await house.sign_in("Wrong-horse-1")
    unknown = await house.sign_in("Wrong-horse-1", "nobody@acme.test")

    assert wrong.status == unknown.status == 401
    assert wrong.body.replace(PARTNER.email, "") == unknown.body.replace("nobody@acme.test", "")
    assert wrong.session == unknown.session == ""
    assert "Wrong-horse-1" not in wrong.body


async def test_wrong_password_and_unknown_address_cost_the_same_work(house: House) -> None:
    async def cost_s(email: str) -> float:
        begun = perf_counter()
        await house.sign_in("Wrong-horse-1", email)
        return perf_counter() - begun

    await cost_s("first@acme.test")  # which also makes nobody's hash
    known = [await cost_s(PARTNER.email) for _ in range(3)]
    unknown = [await cost_s(f"nobody{one}@acme.test") for one in range(3)]

    assert 1 / 3 < median(known) / median(unknown) < 3


async def test_tenth_failure_is_the_last_for_one_address_of_mail_in_a_minute(house: House) -> None:
    for _ in range(10):
        assert (await house.sign_in("Wrong-horse-1")).status == 401

    refused = await house.sign_in(PASSWORD, PARTNER.email.upper())
    here, house.client = house.client, "198.51.100.77"
    elsewhere = await house.sign_in()
    house.client = here
    house.clock.advance(ms=60_000)
    admitted = await house.sign_in()

    assert refused.status == 429
    assert refused.session == ""
    assert int(refused.one("retry-after")) in range(1, 61)
    assert re.search(r"Try again in \d+ s", refused.body)
    assert elsewhere.status == 303  # whoever guesses from one address locks nobody out elsewhere
    assert admitted.status == 303


async def test_sixty_failures_a_minute_are_all_from_one_address(house: House) -> None:
    limits = house.waypost.console.services.sign_in_limiter
    for number in range(60):  # costs no hashing
        await limits.spend(f"somebody{number}@acme.test", house.client)

    refused = await house.sign_in()
    house.client = "198.51.100.5"

    assert refused.status == 429
    assert (await house.sign_in()).status == 303


async def test_changed_password_opens_the_console_though_not_the_api(house: House) -> None:
    new = "Other-horse-2"
    await house.waypost.database.write(change_password, PARTNER.id, await house.waypost.passwords.hash(new))

    api = await house.ask("POST", "/partner/account/login", {"email": PARTNER.email, "password": new})

    assert api.status == 401
    assert (await house.sign_in()).status == 401
    assert (await house.sign_in(new)).status == 303


# The session.


async def test_cookie_is_out_of_reach_of_scripts_and_other_sites(house: House) -> None:
    [cookie] = (await house.sign_in()).all_of("set-cookie")

    flags = {one.strip().lower() for one in cookie.split(";")[1:]}
    assert flags == {"httponly", "samesite=lax", "path=/", f"max-age={SESSION_LIFE_MS // 1000}"}


async def test_cookie_by_https_is_secure_and_bound_to_the_host(secure: House) -> None:
    answer = await secure.sign_in()
    [cookie] = answer.all_of("set-cookie")

    flags = {one.strip().lower() for one in cookie.split(";")[1:]}
    assert cookie.startswith("__Host-waypost=")
    assert flags >= {"httponly", "secure", "samesite=lax", "path=/"}
    assert not any(flag.startswith("domain") for flag in flags)
    assert (await secure.ask("GET", f"/apps/{APP.id}", session=answer.session)).status == 200
    secure.cookie = "waypost_session"  # which another name of the site could have set
    assert (await secure.ask("GET", f"/apps/{APP.id}", session=answer.session)).status == 303


async def test_each_sign_in_has_a_token_of_its_own_and_ends_the_one_it_came_with(house: House) -> None:
    first = (await house.sign_in()).session
    csrf = await house.csrf(first)
    fields = {"email": PARTNER.email, "password": PASSWORD, "csrf": csrf}
    second = (await house.ask("POST", "/sign-in", fields, session=first)).session
    fixed = (await house.ask("POST", "/sign-in", fields, session="chosen-by-another")).session

    assert len({first, second, fixed, "chosen-by-another"}) == 4
    assert len(second) >= 32
    assert (await house.ask("GET", f"/apps/{APP.id}", session=first)).status == 303
    assert (await house.ask("GET", f"/apps/{APP.id}", session="chosen-by-another")).status == 303
    assert (await house.ask("GET", f"/apps/{APP.id}", session=second)).status == 200


async def test_store_knows_no_token_only_its_hash(house: House) -> None:
    token = await house.enter()

    rows = await house.waypost.database.read(list_sessions_with_emails, machine_ms())

    assert [row.hash for row, _ in rows] == [hash_secret(token)]
    assert token not in str(rows)


async def test_session_ends_after_twelve_hours(house: House) -> None:
    now_ms = [machine_ms()]
    sessions = Sessions(house.waypost.database, RandomIds(house.clock), now_ms=lambda: now_ms[0])
    token = (await sessions.start(PARTNER)).token

    now_ms[0] += SESSION_LIFE_MS - 1
    before = await sessions.find(token)
    now_ms[0] += 1
    after = await sessions.find(token)

    assert SESSION_LIFE_MS == 12 * 60 * 60 * 1000
    assert before is not None
    assert after is None


async def test_moving_the_service_s_clock_does_not_end_a_session(house: House) -> None:
    token = await house.enter()
    house.clock.advance(ms=30 * 24 * 3600 * 1000)

    assert (await house.ask("GET", f"/apps/{APP.id}", session=token)).status == 200


async def test_signing_out_ends_the_session_at_the_store(house: House) -> None:
    token = await house.enter()
    csrf = await house.csrf(token)

    answer = await house.ask("POST", "/sign-out", {"csrf": csrf}, session=token)

    assert answer.one("location") == "/sign-in"
    assert 'waypost_session="";' in answer.one("set-cookie")
    assert (await house.ask("GET", f"/apps/{APP.id}", session=token)).status == 303
    assert await house.waypost.database.read(list_sessions_with_emails, machine_ms()) == []


async def test_session_of_a_partner_who_is_gone_opens_nothing(house: House) -> None:
    token = await house.enter()
    await house.waypost.database.write(_forget_partners)

    answer = await house.ask("GET", f"/apps/{APP.id}", session=token)

    assert answer.status == 303
    assert answer.one("location").startswith("/sign-in")


# Other sites.


@pytest.mark.parametrize(
    "how", ["no token", "another's token", "Origin", "null", "broken", "Sec-Fetch-Site", "same-site"]
)
async def test_no_act_is_done_for_another_site(house: House, how: str) -> None:
    token = await house.enter()
    own, others = await house.csrf(token), await house.csrf(await house.enter())
    before = await house.waypost.database.read(_everything)
    csrf = {"no token": "", "another's token": others}.get(how, own)
    headers = {
        "Origin": {"origin": "https://evil.test"},
        "null": {"origin": "null"},
        "broken": {"origin": "http://[evil"},
        "Sec-Fetch-Site": {"sec-fetch-site": "cross-site"},
        "same-site": {"sec-fetch-site": "same-site"},
    }.get(how, {})

    for row in PAGES:
        if row.kind is not RouteKind.ACT:
            continue
        path = re.sub(r"\{app_id\}", APP.id, row.path)
        path = re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "1", path)
        form = await house.ask("POST", path, {"csrf": csrf}, session=token, headers=headers)
        quiet = await house.ask(
            "POST", path, {}, session=token,
            headers={**headers, "x-waypost-quiet": "1", CSRF_HEADER: csrf},
        )  # fmt: skip
        assert (form.status, quiet.status) == (403, 403), (row.path, form.body)
        assert quiet.one("content-type") == "application/json"

    assert await house.waypost.database.read(_everything) == before
    assert (await house.ask("GET", f"/apps/{APP.id}", session=token)).status == 200


async def test_no_act_is_done_without_a_session(house: House) -> None:
    before = await house.waypost.database.read(_everything)

    for row in PAGES:
        if row.kind is RouteKind.ACT and row.audience is Audience.PARTNER:
            path = re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "1", row.path)
            form = await house.ask("POST", path, {"csrf": "x"})
            quiet = await house.ask("POST", path, headers={"x-waypost-quiet": "1"})
            assert (form.status, form.one("location")) == (303, "/sign-in?next=%2F"), path
            assert quiet.status == 401, path

    assert await house.waypost.database.read(_everything) == before


@pytest.mark.parametrize(
    ("referer", "after"),
    [
        ("http://waypost.test/settings?a=1", "%2Fsettings%3Fa%3D1"),
        ("http://evil.test/settings", "%2F"),
        ("http://[evil", "%2F"),
    ],
)
async def test_form_of_an_ended_session_leads_to_the_door_and_back(house: House, referer: str, after: str) -> None:
    answer = await house.ask("POST", "/sign-out", {}, headers={"referer": referer})

    assert (answer.status, answer.one("location")) == (303, f"/sign-in?next={after}")


async def test_other_site_cannot_sign_anybody_in(house: House, demonstration: House) -> None:
    fields = {"email": PARTNER.email, "password": PASSWORD}

    for headers in ({"origin": "https://evil.test"}, {"sec-fetch-site": "cross-site"}):
        assert (await house.ask("POST", "/sign-in", fields, headers=headers)).session == ""
        assert (await demonstration.ask("POST", "/enter", {}, headers=headers)).session == ""


async def test_act_comes_through_a_proxy_that_writes_another_host(secure: House) -> None:
    secure.host = "10.0.0.7:8080"
    fields = {"email": PARTNER.email, "password": PASSWORD}

    answer = await secure.ask("POST", "/sign-in", fields, headers={"origin": "https://waypost.test"})

    assert answer.status == 303


@pytest.mark.parametrize(
    "path",
    [
        "//evil.test", "/\\evil.test", "https://evil.test", "javascript:alert(1)", "\\\\evil.test",
        "/%0d\nSet-Cookie: a=b", "evil.test", "", "/\tevil", "/x\\evil.test", "/" + "x" * 1000,
    ],
)  # fmt: skip
async def test_sign_in_leads_to_no_other_site(house: House, path: str) -> None:
    answer = await house.sign_in(next=path)

    assert local_path(path) == "/"
    assert answer.one("location") == "/"


# A demonstration.


@pytest.mark.parametrize("host", ["evil.test", "evil.test:8080", "127.0.0.1.evil.test", "", "[::1"])
async def test_demonstration_answers_to_no_other_name(demonstration: House, host: str) -> None:
    token = (await demonstration.ask("POST", "/enter", {})).session
    demonstration.host = host

    page = await demonstration.ask("GET", f"/apps/{APP.id}", session=token)
    door = await demonstration.ask("GET", "/sign-in")
    entered = await demonstration.ask("POST", "/enter", {})

    assert token
    assert (page.status, door.status, entered.status) == (400, 400, 403)
    assert "is not allowed for this demo" in page.body
    assert APP.name not in page.body
    assert entered.session == ""


async def test_nobody_enters_without_a_password_where_there_is_no_demonstration(house: House) -> None:
    answer = await house.ask("POST", "/enter", {})

    assert (answer.status, answer.session) == (404, "")
    assert "Continue as the demo partner" not in (await house.ask("GET", "/sign-in")).body


# Headers, and what is too large or broken.


async def test_every_answer_has_the_headers_that_keep_others_out(house: House) -> None:
    token = await house.enter()
    door = await house.ask("GET", "/sign-in")
    sheet = re.search(r'href="(/static/[^"]+\.css)"', door.body)
    assert sheet is not None
    answers = [
        door,
        await house.ask("GET", "/"),
        await house.ask("GET", f"/apps/{APP.id}", session=token),
        await house.ask("GET", "/apps/nobody-s", session=token),
        await house.ask("GET", f"/apps/{APP.id}/nothing", session=token),
        await house.ask("GET", "/commands"),
        await house.ask("POST", "/sign-out", {}, session=token),
        await house.sign_in("Wrong-horse-1"),
        await house.ask("GET", sheet[1]),
        await house.ask("GET", "/static/x/nothing.js"),
    ]

    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            assert answer.one(name.lower()) == value, (answer.status, name)
    assert all("no-store" in answer.one("cache-control") for answer in answers[:8])
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


async def test_broken_and_oversized_forms_are_refused_and_no_defect(house: House) -> None:
    token = await house.enter()
    csrf = await house.csrf(token)
    multipart = {"content-type": "multipart/form-data; boundary=x"}
    file_ = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n'
    tried = [
        await house.ask("POST", "/sign-in", body=b"email=" + b"a" * 2_000_000),
        await house.ask("POST", "/sign-in", body=b"a", headers={"content-length": "9" * 18}),
        await house.ask("POST", "/sign-in", body=b"\xff\xfe=%ff%00&email=%00"),
        await house.ask("POST", "/sign-in", body=b"email=a%00b&password=c"),
        await house.ask("POST", "/sign-in", body=b"{}", headers={"content-type": "application/json"}),
        await house.ask("POST", "/sign-in", body=b"--y", headers=multipart),
        await house.ask("POST", "/sign-in", body=b"x", headers={"content-type": "multipart/form-data"}),
        await house.ask("POST", "/sign-in", body=file_ + b"a" * 2_000_000 + b"\r\n--x--", headers=multipart),
        await house.ask("POST", "/sign-out", body=b"csrf=\xff", session=token),
        await house.ask("POST", "/sign-out", body=b"", session=token, headers={CSRF_HEADER: "\xff\xe9"}),
        await house.ask("POST", "/theme", {"csrf": csrf, "theme": "x" * 2000}, session=token),
        await house.ask("GET", "/apps/a\0b", session=token),
        await house.ask("GET", f"/apps/{APP.id}?q=%00", session=token),
        await house.ask("GET", "/sign-in?next=%00"),
        await house.ask("GET", f"/apps/{APP.id}", session="\xff" * 300),
        await house.ask("GET", f"/apps/{APP.id}", session=token, headers={"x-waypost-quiet": "\xff"}),
    ]

    assert all(answer.status < 500 for answer in tried), [one.status for one in tried]
    assert all(answer.session == "" for answer in tried)


async def test_what_says_sorry_to_strangers_says_nothing_of_the_inside(demonstration: House) -> None:
    demonstration.host = "evil.test"

    page = await demonstration.ask("GET", "/")

    assert "<nav" not in page.body
    assert "csrf" not in page.body


async def test_every_address_of_the_table_needs_a_session_but_the_door_s(house: House) -> None:
    open_to_all = {(row.kind, row.path) for row in PAGES if row.audience is Audience.PUBLIC}

    for row in (*PAGES, *NOT_FOUND_ROUTES):
        if row.audience is Audience.PARTNER and row.kind is not RouteKind.ACT:
            path = re.sub(r"\{app_id\}", APP.id, row.path)
            answer = await house.ask("GET", re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "1", path))
            assert answer.status == (303 if row.kind is RouteKind.PAGE else 401), row.path
            assert APP.name not in answer.body

    assert open_to_all == {
        (RouteKind.PAGE, "/sign-in"), (RouteKind.ACT, "/sign-in"), (RouteKind.ACT, "/enter"), (RouteKind.ACT, "/theme"),
    }  # fmt: skip


async def test_person_signs_in_with_a_password_and_out_again(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/simulator/clock", signed_in=False)
    await tab.page.get_by_label("E-mail address").fill(demo.EMAIL)
    await tab.page.get_by_label("Password or client secret").fill(demo.PASSWORD)
    await tab.page.get_by_role("button", name="Sign in", exact=True).click()

    await tab.page.wait_for_url("**/simulator/clock")
    await tab.page.get_by_role("button", name="Sign out").click()
    await tab.page.wait_for_url("**/sign-in")
    await tab.page.go_back()
    assert await tab.page.get_by_role("button", name="Sign out").count() == 0


def _forget_partners(connection: Connection) -> None:
    connection.execute(delete(partners))


def _everything(connection: Connection) -> list[Any]:
    """What acts could have changed: the rows of every table that has any."""
    tables = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").scalars()
    return [
        (table, connection.exec_driver_sql(f'SELECT * FROM "{table}"').fetchall())
        for table in list(tables)
        if table not in ("rate_windows", "rates", "audit_log")  # refused acts have their entries
    ]
