"""What an app may do for itself: get its token, and say where its webhooks go."""

import pytest

from tests.simulator.conftest import APP, SECRET, WABA, Bench

GRANT = {"grant_type": "client_credentials", "client_id": APP, "client_secret": SECRET}


async def test_app_moves_its_webhooks_with_its_own_token(bench: Bench) -> None:
    token = (await bench.ask("GET", "/v25.0/oauth/access_token", params=GRANT)).body["access_token"]
    query = {
        "object": "whatsapp_business_account",
        "callback_url": bench.receiver.uri + "?again",
        "verify_token": bench.receiver.verify_token,
        "fields": "messages",
    }

    moved = await bench.graph("POST", f"{APP}/subscriptions", token, params=query)
    listed = await bench.graph("GET", f"{APP}/subscriptions", token)

    assert moved.body == {"success": True}
    assert listed.body["data"][0]["callback_url"] == bench.receiver.uri + "?again"
    await bench.let_write()
    await bench.receiver.until(lambda: bench.receiver.messages())


async def test_token_of_an_app_opens_no_account(bench: Bench) -> None:
    token = f"{APP}|{SECRET}"

    refused = await bench.graph("GET", f"{WABA}/message_templates", token)

    assert (refused.status, refused.error["code"]) == (403, 200)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"client_secret": "another"}, 1), ({"client_id": "3000000000000009"}, 101), ({"grant_type": "password"}, 100)],
)
async def test_token_needs_the_secret_of_an_app(bench: Bench, changes: dict[str, str], code: int) -> None:
    refused = await bench.ask("GET", "/v25.0/oauth/access_token", params={**GRANT, **changes})

    assert (refused.status, refused.error["code"]) == (400, code)


async def test_address_that_fails_the_handshake_is_not_taken(bench: Bench) -> None:
    query = {"callback_url": bench.receiver.uri, "verify_token": "another"}

    refused = await bench.graph("POST", f"{APP}/subscriptions", params=query)

    assert refused.error["code"] == 2200


async def test_app_without_an_address_hears_nothing(bench: Bench) -> None:
    ended = await bench.graph("DELETE", f"{APP}/subscriptions")

    listed = await bench.graph("GET", f"{APP}/subscriptions")

    assert ended.body == {"success": True}
    assert listed.body == {"data": []}
