"""Graph API calls of an app: its access token and its webhook subscription."""

import pytest

from tests.simulator.conftest import APP, SECRET, WABA, Bench

GRANT = {"grant_type": "client_credentials", "client_id": APP, "client_secret": SECRET}


async def test_app_changes_its_webhook_url_with_its_own_token(bench: Bench) -> None:
    token = (await bench.request("GET", "/v25.0/oauth/access_token", params=GRANT)).body["access_token"]
    query = {
        "object": "whatsapp_business_account",
        "callback_url": bench.receiver.uri + "?again",
        "verify_token": bench.receiver.verify_token,
        "fields": "messages",
    }

    changed = await bench.graph("POST", f"{APP}/subscriptions", token, params=query)
    listed = await bench.graph("GET", f"{APP}/subscriptions", token)

    assert changed.body == {"success": True}
    assert listed.body["data"][0]["callback_url"] == bench.receiver.uri + "?again"
    await bench.send_from_phone()
    await bench.receiver.wait_until(lambda: bench.receiver.messages())


async def test_app_token_gives_no_access_to_accounts(bench: Bench) -> None:
    token = f"{APP}|{SECRET}"

    rejected = await bench.graph("GET", f"{WABA}/message_templates", token)

    assert (rejected.status, rejected.error["code"]) == (403, 200)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"client_secret": "another"}, 1), ({"client_id": "3000000000000009"}, 101), ({"grant_type": "password"}, 100)],
)
async def test_app_token_requires_the_app_secret(bench: Bench, changes: dict[str, str], code: int) -> None:
    rejected = await bench.request("GET", "/v25.0/oauth/access_token", params={**GRANT, **changes})

    assert (rejected.status, rejected.error["code"]) == (400, code)


async def test_url_that_fails_verification_is_rejected(bench: Bench) -> None:
    query = {"object": "whatsapp_business_account", "callback_url": bench.receiver.uri, "verify_token": "another"}

    rejected = await bench.graph("POST", f"{APP}/subscriptions", params=query)

    assert rejected.error["code"] == 2200


@pytest.mark.parametrize("given", [{}, {"object": ""}, {"object": "page"}], ids=["none", "empty", "another"])
async def test_subscription_names_its_object(bench: Bench, given: dict[str, str]) -> None:
    uri = {"callback_url": bench.receiver.uri, "verify_token": bench.receiver.verify_token, "fields": "messages"}

    rejected = await bench.graph("POST", f"{APP}/subscriptions", params=uri | given)

    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert "object" in rejected.error["message"]


async def test_app_can_delete_its_subscription(bench: Bench) -> None:
    deleted = await bench.graph("DELETE", f"{APP}/subscriptions")

    listed = await bench.graph("GET", f"{APP}/subscriptions")

    assert deleted.body == {"success": True}
    assert listed.body == {"data": []}
