"""Access tokens: accounts, permissions, expiry and revocation."""

import aiohttp
import pytest

from tests.simulator.conftest import ANN, APP, NUMBER_ID, TOKEN, WABA, Bench
from tests.support.manual_clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

MANAGEMENT = "whatsapp_business_management"
MESSAGING = "whatsapp_business_messaging"
DAY_MS = 24 * 3_600_000
HELLO = {"messaging_product": "whatsapp", "to": ANN, "text": {"body": "x"}}


async def create_token(bench: Bench, **fields: object) -> str:
    response = await bench.control("POST", "tokens", {"waba_ids": [WABA], **fields})
    assert response.status == 200, response.body
    return response.body["token"]


async def test_new_token_gives_access_to_its_account_until_it_expires(slow: Bench, clock: ManualClock) -> None:
    token = await create_token(slow, expires_in_ms=60 * DAY_MS)

    before = await slow.graph("GET", WABA, token=token)
    clock.advance(ms=60 * DAY_MS)
    after = await slow.graph("GET", WABA, token=token)
    own = await slow.graph("GET", WABA)

    assert (before.status, after.status, own.status) == (200, 401, 200)
    assert (after.error["code"], after.error["error_subcode"]) == (190, 463)
    assert after.error["message"].startswith("Error validating access token: Session has expired on ")


async def test_token_can_be_expired_or_revoked_at_once(bench: Bench) -> None:
    expired, revoked = await create_token(bench, token="a"), await create_token(bench, token="b")

    await bench.control("POST", "tokens/expire", {"token": expired})
    await bench.control("POST", "tokens/revoke", {"token": revoked})

    first = await bench.graph("GET", WABA, token=expired)
    second = await bench.graph("GET", WABA, token=revoked)
    assert (first.error["code"], first.error["error_subcode"]) == (190, 463)
    assert second.error["code"] == 190
    assert "error_subcode" not in second.error


async def test_account_token_can_be_expired_and_restored(bench: Bench) -> None:
    await bench.control("POST", "tokens/expire", {"token": TOKEN})
    await bench.restart()

    expired = await bench.graph("GET", WABA)
    await bench.control("POST", "tokens", {"waba_ids": [WABA], "token": TOKEN})
    restored = await bench.graph("GET", WABA)

    assert (expired.status, restored.status) == (401, 200)


# fmt: off
LACKING = [
    # permission  method    path                                code
    (MESSAGING,   "DELETE", f"{WABA}/message_templates?name=a", 200),  # Source: facts 1, "Permissions"
    (MESSAGING,   "GET",    f"{WABA}/phone_numbers",            200),
    (MESSAGING,   "GET",    NUMBER_ID,                          200),
    (MANAGEMENT,  "POST",   f"{NUMBER_ID}/messages",            10),
]
# fmt: on


@pytest.mark.parametrize(("permission", "method", "path", "code"), LACKING)
async def test_call_needs_its_permission(bench: Bench, permission: str, method: str, path: str, code: int) -> None:
    token = await create_token(bench, permissions=[permission])

    response = await bench.graph(method, path, token=token)

    assert (response.status, response.error["code"]) == (403, code)


async def test_messaging_token_can_send_and_upload(bench: Bench) -> None:
    token = await create_token(bench, permissions=[MESSAGING])
    form = aiohttp.FormData({"messaging_product": "whatsapp"})
    form.add_field("file", b"content", content_type="image/png", filename="a.png")

    sent = await bench.graph("POST", f"{NUMBER_ID}/messages", token=token, json=HELLO)
    uploaded = await bench.graph("POST", f"{NUMBER_ID}/media", token=token, data=form)
    shown = await bench.graph("GET", uploaded.body["id"], token=token)
    begun = await bench.graph("POST", f"{APP}/uploads?file_length=1&file_type=image/png", token=token)

    assert (sent.status, uploaded.status, begun.status) == (200, 200, 200)
    headers = {"Authorization": f"Bearer {token}"}
    async with bench.http.get(shown.body["url"], headers=headers) as response:
        assert await response.read() == b"content"


async def test_token_of_two_accounts_gives_access_to_both(bench: Bench) -> None:
    other = AccountSeed("1000000000000011", "Two", "", "token-2", "3000000000000033", "s", "v", "")
    await bench.simulator.seed(other, [NumberSeed("2000000000000022", other.waba_id, "15550002222", "Two")])
    token = await create_token(bench, waba_ids=[WABA, other.waba_id])

    first = await bench.graph("GET", WABA, token=token)
    second = await bench.graph("GET", "2000000000000022", token=token)

    assert (first.status, second.status) == (200, 200)


async def test_debug_token_shows_validity_and_scopes(slow: Bench, clock: ManualClock) -> None:
    token = await create_token(slow, permissions=[MESSAGING], expires_in_ms=1000)

    valid = await slow.graph("GET", f"debug_token?input_token={token}")
    clock.advance(ms=1000)
    expired = await slow.graph("GET", f"debug_token?input_token={token}")
    unknown = await slow.graph("GET", "debug_token?input_token=nobody")
    without = await slow.graph("GET", "debug_token")

    assert valid.body["data"]["is_valid"] is True
    assert valid.body["data"]["scopes"] == [MESSAGING]
    assert valid.body["data"]["granular_scopes"] == [{"scope": MESSAGING, "target_ids": [WABA]}]
    assert expired.body["data"]["is_valid"] is False
    assert expired.body["data"]["error"]["subcode"] == 463
    assert unknown.body["data"]["is_valid"] is False
    assert without.error["code"] == 100


async def test_tokens_are_listed_with_their_validity(bench: Bench) -> None:
    token = await create_token(bench)

    listed = await bench.control("GET", "tokens")
    unknown = await bench.control("POST", "tokens/revoke", {"token": "nobody"})
    unknown_account = await bench.control("POST", "tokens", {"waba_ids": ["9"]})

    assert [entry["token"] for entry in listed.body["tokens"]] == [TOKEN, token]
    assert all(entry["is_good"] for entry in listed.body["tokens"])
    assert (unknown.status, unknown.body["field"]) == (404, "token")
    assert (unknown_account.status, unknown_account.body["field"]) == (404, "waba_ids")
