"""Entries of the admin API and the partner API in the audit log, and wrong admin tokens."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from sqlalchemy import Connection, text

from tests.support.builders import ACCOUNT, APP, INSTANCE_KEY, OPERATOR, PARTNER
from tests.support.manual_clock import ManualClock
from waypost.admin import authorisation
from waypost.api.limits import RATES
from waypost.assembly.service import Waypost
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, ApiResponseError, InProcessTransport
from waypost.config import Settings
from waypost.store.accounts.audit_log import AuditEntry, AuditFilter, audit_page
from waypost.store.accounts.partners import add_app, add_business_account, add_partner

TOKEN = "right-admin-token-of-thirty-two-or-more"
HERE, ELSEWHERE = "198.51.100.4", "203.0.113.9"
PASSWORD = "Secret-horse-1"
MOST = RATES["admin_failures"].at_most


@pytest.fixture
async def waypost(tmp_path: Path) -> AsyncIterator[Waypost]:
    """A service with one partner and an app."""
    clock = ManualClock()
    settings = Settings(
        data=tmp_path, secret_key=INSTANCE_KEY, admin_token=TOKEN, rates=False,
        public_url="http://127.0.0.1:8080",
    )  # fmt: skip
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    await waypost.database.write(add_partner, PARTNER, "", 0)
    await waypost.database.write(add_business_account, ACCOUNT)
    await waypost.database.write(add_app, APP, "hash of a key")
    yield waypost
    await waypost.close()


async def send_request(
    waypost: Waypost, method: str, path: str, body: Any = None, *, token: str = TOKEN,
    peer: str = HERE, headers: dict[str, str] | None = None,
) -> tuple[int, Any]:  # fmt: skip
    path, _, query = path.partition("?")
    content = b"" if body is None else msgspec.json.encode(body)
    all_headers = {
        "host": "127.0.0.1", "authorization": f"Bearer {token}",
        "content-type": "application/json", **(headers or {}),
    }  # fmt: skip
    scope: dict[str, Any] = {
        "type": "http", "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "root_path": "", "scheme": "http",
        "query_string": query.encode(), "client": (peer, 4711), "server": ("127.0.0.1", 80),
        "headers": [(name.encode(), value.encode()) for name, value in all_headers.items()],
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await waypost.application(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], msgspec.json.decode(text) if text else None


async def read_entries(waypost: Waypost, **filters: Any) -> list[AuditEntry]:
    return await waypost.database.read(audit_page, AuditFilter(**filters), 1000)


# fmt: off
ACTIONS: tuple[tuple[str, str, Any, int, int | None, str, str], ...] = (
    # method   path                                             body                                        status  partner       subject            detail
    ("POST",   "/admin/partners",                               {"email": "bob@acme.test", "name": "Bob", "password": PASSWORD}, 200, None, "id=",  ""),
    ("POST",   "/admin/partners",                               {"email": "none", "name": "Bob"},           400,    None,         "",                "field_broken"),
    ("POST",   "/admin/partners",                               {"nonsense": PASSWORD},                     400,    None,         "",                "unreadable"),
    ("POST",   f"/admin/partners/{PARTNER.id}/client-secrets",  {},                                         200,    PARTNER.id,   f"partner_id={PARTNER.id}", ""),
    ("POST",   f"/admin/partners/{PARTNER.id}/password",        {"password": PASSWORD},                     200,    PARTNER.id,   f"partner_id={PARTNER.id}", ""),
    ("POST",   f"/admin/partners/{PARTNER.id}/password",        {"password": "short"},                      400,    PARTNER.id,   f"partner_id={PARTNER.id}", "field_broken"),
    ("POST",   f"/admin/partners/{PARTNER.id}/api-keys",        {"name": "shop"},                           200,    PARTNER.id,   f"partner_id={PARTNER.id}", ""),
    ("DELETE", f"/admin/partners/{PARTNER.id}/api-keys/abc",    None,                                       404,    PARTNER.id,   f"partner_id={PARTNER.id} key_id=abc", "not_found"),
    ("POST",   "/admin/api-keys/revoke",                        {"api_key": PASSWORD},                      404,    None,         "",                "not_found"),
    ("POST",   f"/admin/apps/{APP.id}/token/revoke",            {},                                         200,    PARTNER.id,   f"app_id={APP.id}", ""),
    ("DELETE", "/admin/dead-letters/17",                             None,                                       404,    None,         "position=17",     "not_found"),
)
# fmt: on


@pytest.mark.parametrize(("method", "path", "body", "status", "partner", "subject", "detail"), ACTIONS)
async def test_each_action_of_the_admin_api_has_an_entry(
    waypost: Waypost, method: str, path: str, body: Any, status: int, partner: int | None,
    subject: str, detail: str,
) -> None:  # fmt: skip
    before = await read_entries(waypost)

    actual, _ = await send_request(waypost, method, path, body)

    assert before == []
    [entry] = await read_entries(waypost)
    assert actual == entry.status == status
    assert (entry.actor, entry.remote_address, entry.partner_id) == ("admin", HERE, partner)
    assert entry.action.startswith(f"{method} /admin/")
    assert entry.subject.startswith(subject)
    assert entry.detail.startswith(detail)
    assert bool(entry.detail) == (status >= 400)


async def test_reads_have_no_entry_except_that_of_a_secret(waypost: Waypost) -> None:
    for path in ("/admin/partners", "/admin/apps", "/admin/audit", "/admin/queues"):
        await send_request(waypost, "GET", path)
    assert await read_entries(waypost) == []

    await send_request(waypost, "GET", "/admin/subscriptions/5/key")

    [entry] = await read_entries(waypost)
    assert entry.subject == "subscription_id=5"


async def test_after_ten_wrong_tokens_an_address_gets_429_even_with_the_right_one(
    waypost: Waypost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorisation, "_REJECTED_DELAY_S", 0)
    statuses = [
        (await send_request(waypost, "GET", "/admin/apps", token=f"wrong{number}"))[0] for number in range(MOST + 20)
    ]

    assert statuses == [401] * MOST + [429] * 20
    assert (await send_request(waypost, "GET", "/admin/apps"))[0] == 429
    assert (await send_request(waypost, "GET", "/admin/apps", peer=ELSEWHERE))[0] == 200
    found = await read_entries(waypost)
    assert [(entry.actor, entry.status) for entry in found] == [("nobody", 401)] * MOST


async def test_right_tokens_never_count(waypost: Waypost) -> None:
    for _ in range(50):
        assert (await send_request(waypost, "GET", "/admin/apps"))[0] == 200


async def test_unauthenticated_requests_do_not_fill_the_log(waypost: Waypost) -> None:
    most = RATES["audited_rejections"].at_most
    for number in range(most + 50):
        await send_request(waypost, "GET", "/admin/apps", peer=f"198.51.{number}.1", token="wrong")
        await send_request(waypost, "GET", "/admin/apps", headers={"host": "evil.example"})

    assert len(await read_entries(waypost)) == most


async def test_no_entry_holds_a_secret_that_was_sent_or_created(waypost: Waypost) -> None:
    secrets: list[str] = [TOKEN, PASSWORD]
    partner = f"/admin/partners/{PARTNER.id}"
    secrets.append((await send_request(waypost, "POST", f"{partner}/client-secrets", {}))[1]["client_secret"])
    secrets.append((await send_request(waypost, "POST", f"{partner}/api-keys", {}))[1]["api_key"])
    secrets.append((await send_request(waypost, "POST", f"/admin/apps/{APP.id}/token/revoke", {}))[1]["app_token"])
    await send_request(waypost, "POST", f"{partner}/password", {"password": PASSWORD})
    await send_request(waypost, "POST", "/admin/api-keys/revoke", {"api_key": secrets[3]})
    account = {
        "base_url": "http://127.0.0.1:9", "version": "v25.0", "token": OPERATOR["token"],
        "app_id": OPERATOR["app_id"], "app_secret": OPERATOR["app_secret"],
        "verify_token": OPERATOR["verify_token"],
    }  # fmt: skip
    secrets += [OPERATOR["token"], OPERATOR["app_secret"], OPERATOR["verify_token"]]
    await send_request(waypost, "PUT", "/admin/operator-accounts/main", account)
    await send_request(waypost, "GET", "/admin/apps", token="wrong-token-that-somebody-mistyped")
    secrets.append("wrong-token-that-somebody-mistyped")

    found = await read_entries(waypost)

    assert len(found) == 7
    for entry in found:
        content = str(msgspec.to_builtins(entry))
        assert not [secret for secret in secrets if secret in content or hash_secret(secret) in content]


def drop_log(connection: Connection) -> None:
    connection.execute(text("DROP TABLE audit_log"))


async def test_an_action_is_not_reported_as_done_without_its_entry(waypost: Waypost) -> None:
    """Drop the table, as an example of any failure to write the entry."""
    await waypost.database.write(drop_log)
    before = await send_request(waypost, "GET", "/admin/apps")
    path = f"/admin/partners/{PARTNER.id}/client-secrets"
    status, body = await send_request(waypost, "POST", path, {})

    assert before[0] == 200
    assert status == 500
    assert "client_secret" not in str(body)


async def test_pages_of_the_log_by_the_admin_api(waypost: Waypost) -> None:
    for number in range(5):
        await send_request(waypost, "DELETE", f"/admin/dead-letters/{number}")
    await send_request(waypost, "POST", f"/admin/partners/{PARTNER.id}/client-secrets", {})

    _, first = await send_request(waypost, "GET", "/admin/audit?limit=4")
    _, second = await send_request(waypost, "GET", f"/admin/audit?limit=4&before={first['next']}")
    _, own = await send_request(waypost, "GET", f"/admin/audit?partner_id={PARTNER.id}&outcome=done")
    _, rejected = await send_request(waypost, "GET", "/admin/audit?outcome=rejected&action=dead-letters")

    assert [len(first["entries"]), len(second["entries"])] == [4, 2]
    assert second["next"] is None
    assert [entry["action"] for entry in own["entries"]] == ["POST /admin/partners/{partner_id}/client-secrets"]
    assert len(rejected["entries"]) == 5


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("limit=0", "limit must be 1 to 500."),
        ("limit=501", "limit must be 1 to 500."),
        ("before=x", "before must be a number."),
        ("partner_id=", "partner_id must be a number."),
        ("since_ms=-1", "since_ms must be a number."),
        ("outcome=maybe", "outcome must be done or rejected."),
        ("user=ann", "user is not a filter of this list"),
    ],
)
async def test_unknown_or_invalid_filter_is_named_in_the_error(waypost: Waypost, query: str, names: str) -> None:
    status, body = await send_request(waypost, "GET", f"/admin/audit?{query}")

    assert status == 400
    assert names in body["message"]


async def test_changes_of_an_account_by_the_partner_api_have_entries(waypost: Waypost) -> None:
    _, created = await send_request(waypost, "POST", f"/admin/partners/{PARTNER.id}/client-secrets", {})
    form = urlencode({"email": PARTNER.email, "password": created["client_secret"]}).encode()

    async def call(method: str, path: str, content: bytes, token: str) -> tuple[int, Any]:
        transport = InProcessTransport(waypost.application)
        kind = {"Content-Type": "application/x-www-form-urlencoded", "token": token}
        reply = await transport(method, path, kind, content)
        return reply.status, msgspec.json.decode(reply.body)

    _, login = await call("POST", "/partner/account/login", form, "")
    token = login["token"]
    key = await call("POST", f"/partner/app/{APP.id}/apikey", b"", token)
    deleted = await call("DELETE", f"/partner/app/{APP.id}/apikey/nothing", b"", token)
    wrong = await call("POST", f"/partner/app/{APP.id}/apikey", b"", "wrong")
    mistaken = [
        key[1]["apiKey"]["token"], f"sk_{'0a' * 16}", "EAAG" + "x" * 60, "eyJhbGciOiJIUzI1NiIsInR5cCI6.e30.x"
    ]  # fmt: skip
    for secret in mistaken:
        await call("DELETE", f"/partner/app/{APP.id}/apikey/{secret}", b"", token)
        await call("DELETE", f"/partner/app/{secret}", b"", token)
        await send_request(waypost, "DELETE", f"/admin/partners/{PARTNER.id}/api-keys/{secret}")
        await send_request(waypost, "PUT", f"/admin/apps/{secret}/rates", {})

    assert wrong[0] == 401
    everything = await read_entries(waypost)
    assert sum("(hidden)" in entry.subject for entry in everything) == 4 * len(mistaken)
    assert not [entry for entry in everything if any(secret in str(entry) for secret in mistaken)]
    found = [entry for entry in await read_entries(waypost, actor=PARTNER.email) if "(hidden)" not in entry.subject]
    assert [(entry.action, entry.status < 400) for entry in found] == [
        ("DELETE /partner/app/{app_id}/apikey/{key_id}", deleted[0] < 400),
        ("POST /partner/app/{app_id}/apikey", key[0] < 400),
    ]
    assert all(entry.partner_id == PARTNER.id for entry in found)
    assert all(APP.id in entry.subject for entry in found)


async def test_script_reads_the_log_through_the_admin_api(waypost: Waypost) -> None:
    client = ApiClient(InProcessTransport(waypost.application), {"Authorization": f"Bearer {TOKEN}"})

    with pytest.raises(ApiResponseError):
        await client.json("DELETE", "/admin/dead-letters/1")

    page = await client.json("GET", "/admin/audit")
    assert [entry["status"] for entry in page["entries"]] == [404]
