"""Access tokens: whose they are, what they allow, and when they end."""

import aiohttp
import pytest

from tests.simulator.conftest import ANN, APP, NUMBER_ID, TOKEN, WABA, Bench
from waypost.base.clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

MANAGEMENT = "whatsapp_business_management"
MESSAGING = "whatsapp_business_messaging"
DAY_MS = 24 * 3_600_000
HELLO = {"messaging_product": "whatsapp", "to": ANN, "text": {"body": "x"}}


async def make(bench: Bench, **wish: object) -> str:
    answer = await bench.control("POST", "tokens", {"waba_ids": [WABA], **wish})
    assert answer.status == 200, answer.body
    return answer.body["token"]


async def test_new_token_opens_its_account_until_its_time_is_over(slow: Bench, manual: ManualClock) -> None:
    token = await make(slow, expires_in_ms=60 * DAY_MS)

    before = await slow.graph("GET", WABA, token=token)
    manual.advance(ms=60 * DAY_MS)
    after = await slow.graph("GET", WABA, token=token)
    own = await slow.graph("GET", WABA)

    assert (before.status, after.status, own.status) == (200, 401, 200)
    assert (after.error["code"], after.error["error_subcode"]) == (190, 463)
    assert after.error["message"].startswith("Error validating access token: Session has expired on ")


async def test_token_can_be_expired_or_revoked_at_once(bench: Bench) -> None:
    expired, revoked = await make(bench, token="a"), await make(bench, token="b")

    await bench.control("POST", "tokens/expire", {"token": expired})
    await bench.control("POST", "tokens/revoke", {"token": revoked})

    first = await bench.graph("GET", WABA, token=expired)
    second = await bench.graph("GET", WABA, token=revoked)
    assert (first.error["code"], first.error["error_subcode"]) == (190, 463)
    assert second.error["code"] == 190
    assert "error_subcode" not in second.error


async def test_account_own_token_can_be_expired_and_given_back(bench: Bench) -> None:
    await bench.control("POST", "tokens/expire", {"token": TOKEN})
    await bench.restart()

    expired = await bench.graph("GET", WABA)
    await bench.control("POST", "tokens", {"waba_ids": [WABA], "token": TOKEN})
    given_back = await bench.graph("GET", WABA)

    assert (expired.status, given_back.status) == (401, 200)


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
    token = await make(bench, permissions=[permission])

    answer = await bench.graph(method, path, token=token)

    assert (answer.status, answer.error["code"]) == (403, code)


async def test_messaging_token_sends_and_uploads(bench: Bench) -> None:
    token = await make(bench, permissions=[MESSAGING])
    form = aiohttp.FormData({"messaging_product": "whatsapp"})
    form.add_field("file", b"content", content_type="image/png", filename="a.png")

    sent = await bench.graph("POST", f"{NUMBER_ID}/messages", token=token, json=HELLO)
    uploaded = await bench.graph("POST", f"{NUMBER_ID}/media", token=token, data=form)
    shown = await bench.graph("GET", uploaded.body["id"], token=token)
    begun = await bench.graph("POST", f"{APP}/uploads?file_length=1&file_type=image/png", token=token)

    assert (sent.status, uploaded.status, begun.status) == (200, 200, 200)
    headers = {"Authorization": f"Bearer {token}"}
    async with bench.http.get(shown.body["url"], headers=headers) as answer:
        assert await answer.read() == b"content"


async def test_token_of_two_accounts_opens_both(bench: Bench) -> None:
    other = AccountSeed("1000000000000011", "Two", "", "token-2", "3000000000000033", "s", "v", "")
    await bench.simulator.seed(other, [NumberSeed("2000000000000022", other.waba_id, "15550002222", "Two")])
    token = await make(bench, waba_ids=[WABA, other.waba_id])

    first = await bench.graph("GET", WABA, token=token)
    second = await bench.graph("GET", "2000000000000022", token=token)

    assert (first.status, second.status) == (200, 200)


async def test_operator_says_what_a_token_is_good_for(slow: Bench, manual: ManualClock) -> None:
    token = await make(slow, permissions=[MESSAGING], expires_in_ms=1000)

    good = await slow.graph("GET", f"debug_token?input_token={token}")
    manual.advance(ms=1000)
    over = await slow.graph("GET", f"debug_token?input_token={token}")
    unknown = await slow.graph("GET", "debug_token?input_token=nobody")
    without = await slow.graph("GET", "debug_token")

    assert good.body["data"]["is_valid"] is True
    assert good.body["data"]["scopes"] == [MESSAGING]
    assert good.body["data"]["granular_scopes"] == [{"scope": MESSAGING, "target_ids": [WABA]}]
    assert over.body["data"]["is_valid"] is False
    assert over.body["data"]["error"]["subcode"] == 463
    assert unknown.body["data"]["is_valid"] is False
    assert without.error["code"] == 100


async def test_tokens_are_listed_with_what_they_open(bench: Bench) -> None:
    token = await make(bench)

    listed = await bench.control("GET", "tokens")
    unknown = await bench.control("POST", "tokens/revoke", {"token": "nobody"})
    nowhere = await bench.control("POST", "tokens", {"waba_ids": ["9"]})

    assert [one["token"] for one in listed.body["tokens"]] == [TOKEN, token]
    assert all(one["is_good"] for one in listed.body["tokens"])
    assert (unknown.status, unknown.body["field"]) == (404, "token")
    assert (nowhere.status, nowhere.body["field"]) == (404, "waba_ids")
