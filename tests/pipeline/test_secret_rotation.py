"""The instance key is replaced while the service runs: no request fails, nothing is lost, and the old key is not needed."""

import asyncio
import hashlib
import hmac
import json
import zlib
from base64 import b64decode
from typing import Any, Final

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import ANN, APP, INSTANCE_KEY
from tests.support.callback_sink import ReceivedCallback
from tests.support.manual_clock import ServiceClock
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, HttpResponse, PipelineHarness
from tests.support.polling import poll_until
from waypost.base.encryption import SecretBox
from waypost.store.contract import WrongStore
from waypost.wire.errors import ERROR_HEADER

NEW_KEY: Final = "5ec70b1d" * 8
FORM: Final = {
    "channel": "whatsapp",
    "source": APP.phone_number,
    "src.name": APP.name,
    "destination": ANN,
    "message": json.dumps({"type": "text", "text": "Hello"}),
}


async def rotate(pipeline: PipelineHarness, **body: Any) -> HttpResponse:
    url = f"{pipeline.service_url}/admin/secret/rotate"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with pipeline.http.post(url, json=body, headers=headers) as response:
        return HttpResponse(response.status, await response.json(), response.headers, await response.read())


async def restart(pipeline: PipelineHarness, **keys: str) -> None:
    await pipeline.close_service()
    pipeline.changes = {name: value for name, value in pipeline.changes.items() if not name.endswith("secret_key")}
    pipeline.changes |= keys
    await pipeline.open_service()


async def send(pipeline: PipelineHarness, key: str) -> HttpResponse:
    headers = {"apikey": API_KEY, "Idempotency-Key": key}
    form = FORM | {"destination": f"1555{zlib.crc32(key.encode()) % 10**7:07}"}
    return await pipeline.send_request("POST", "/wa/api/v1/msg", form, headers)


async def list_subscriptions(pipeline: PipelineHarness, token: str) -> HttpResponse:
    return await pipeline.send_request("GET", f"/partner/app/{APP.id}/subscription", headers={"Authorization": token})


def signing_keys(received: ReceivedCallback, candidates: dict[str, bytes]) -> list[str]:
    """Return the names of the keys that have signed a callback."""
    headers = {name.lower(): value for name, value in received.headers.items()}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + received.body
    signatures = {b64decode(text.removeprefix("v1,")) for text in headers["webhook-signature"].split()}
    return [name for name, key in candidates.items() if hmac.digest(key, signed, hashlib.sha256) in signatures]


def keys_of(subscription_id: str) -> dict[str, bytes]:
    return {
        name: SecretBox(key).callback_key(subscription_id, 1) for name, key in (("old", INSTANCE_KEY), ("new", NEW_KEY))
    }


async def test_no_request_fails_during_a_rotation_and_the_old_key_is_not_needed_after_it(
    pipeline: PipelineHarness,
) -> None:
    meta = json.dumps({"headers": {"X-Shop": "secret-header"}})
    subscription = await pipeline.subscribe(tag="with-headers", url=f"{pipeline.sink.url}/2", meta=meta)
    await pipeline.open_window()
    first = await send(pipeline, "before")
    await restart(pipeline, secret_key=NEW_KEY, old_secret_key=INSTANCE_KEY)
    responses: list[HttpResponse] = []
    is_over = asyncio.Event()

    async def load(name: str) -> None:
        while not is_over.is_set():
            responses.append(await send(pipeline, f"{name}-{len(responses)}"))
            responses.append(await list_subscriptions(pipeline, pipeline.app_token))

    async def wait_for_responses(count: int) -> None:
        async def read() -> int:
            return len(responses)

        await poll_until(read, lambda found: found >= count)

    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b", "c"):
            tasks.create_task(load(name))
        await wait_for_responses(20)
        rotated = await rotate(pipeline)
        count = len(responses)
        await wait_for_responses(count + 20)
        is_over.set()
    again = await rotate(pipeline)
    await restart(pipeline, secret_key=NEW_KEY)
    last = await pipeline.send_text("After")
    await pipeline.events_of(last, until="delivered")

    assert rotated.status == 200, rotated
    assert {response.status for response in responses} == {200}
    assert rotated.body["changed"] is True
    assert rotated.body["secrets_encrypted_again"] >= 2  # the headers and the response before
    assert again.body["changed"] is False
    assert (await list_subscriptions(pipeline, pipeline.app_token)).status == 200
    assert (await send(pipeline, "before")).raw == first.raw
    of_headers = [request for request in pipeline.sink.requests if request.headers.get("X-Shop") == "secret-header"]
    assert signing_keys(of_headers[-1], keys_of(subscription["id"])) == ["old"]


async def test_renewed_tokens_are_accepted_beside_those_of_before_until_their_time_is_over(
    make_pipeline: MakePipeline,
) -> None:
    clock = ServiceClock()
    pipeline = await make_pipeline(clock=clock)
    [subscription] = (await list_subscriptions(pipeline, pipeline.app_token)).body["subscriptions"]
    old_token = pipeline.app_token
    new_token = SecretBox(NEW_KEY).app_token(APP.id, 1)
    await restart(pipeline, secret_key=NEW_KEY, old_secret_key=INSTANCE_KEY)

    before = [(await list_subscriptions(pipeline, token)).status for token in (old_token, new_token)]
    rotated = await rotate(pipeline, app_tokens="renew", keep_old_for_s=3600)
    await restart(pipeline, secret_key=NEW_KEY)
    both = [(await list_subscriptions(pipeline, token)).status for token in (old_token, new_token)]
    without_message = {name: value for name, value in FORM.items() if name != "message"}  # nothing is to be sent
    as_api_keys = [
        (await pipeline.send_request("POST", "/wa/api/v1/msg", without_message, {"apikey": token})).status
        for token in (old_token, new_token, "another")
    ]
    await pipeline.open_window()
    during = pipeline.sink.requests[-1]
    clock.advance(ms=3_600_000)
    await restart(pipeline, secret_key=NEW_KEY)
    await pipeline.reply(ANN, "Later")
    after = [(await list_subscriptions(pipeline, token)).status for token in (old_token, new_token)]

    assert rotated.body["app_tokens_renewed"] == 1
    assert before == [200, 401]
    assert both == [200, 200]
    assert as_api_keys == [400, 400, 401]
    assert after == [401, 200]
    keys = keys_of(str(subscription["id"]))
    assert signing_keys(during, keys) == ["old", "new"]
    assert signing_keys(pipeline.sink.requests[-1], keys) == ["new"]


async def test_revoked_token_of_before_is_no_longer_accepted(pipeline: PipelineHarness) -> None:
    old_token = pipeline.app_token
    await restart(pipeline, secret_key=NEW_KEY, old_secret_key=INSTANCE_KEY)
    await rotate(pipeline, app_tokens="renew")

    url = f"{pipeline.service_url}/admin/apps/{APP.id}/token/revoke"
    async with pipeline.http.post(url, json={}, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}) as response:
        token = (await response.json())["app_token"]

    assert (await list_subscriptions(pipeline, old_token)).status == 401
    assert (await list_subscriptions(pipeline, token)).status == 200


async def test_start_with_another_key_is_an_error_that_names_the_settings(pipeline: PipelineHarness) -> None:
    await pipeline.close_service()
    pipeline.changes = {"secret_key": NEW_KEY}

    with pytest.raises(WrongStore, match="another secret_key than the one that is set"):
        await pipeline.open_service()

    await restart(pipeline)
    assert (await list_subscriptions(pipeline, pipeline.app_token)).status == 200


async def test_interrupted_rotation_needs_both_keys_and_continues(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="second", meta=json.dumps({"headers": {"X-Shop": "secret-header"}}))
    await restart(pipeline, secret_key=NEW_KEY, old_secret_key=INSTANCE_KEY)
    box = pipeline.waypost.admin_context.secret_box
    state = box.rotated_state(box.keys[0], keeps_root=True, old_root_until_ms=0)
    await pipeline.waypost.instance_keys.change(state)  # and killed here, before any secret is encrypted again
    await pipeline.close_service()

    pipeline.changes = {"secret_key": NEW_KEY}
    with pytest.raises(WrongStore, match="run `waypost secret rotate` again"):
        await pipeline.open_service()
    await restart(pipeline, secret_key=NEW_KEY, old_secret_key=INSTANCE_KEY)
    rotated = await rotate(pipeline)
    await restart(pipeline, secret_key=NEW_KEY)

    assert rotated.body["secrets_encrypted_again"] >= 1
    await pipeline.open_window()
    await pipeline.events_of(await pipeline.send_text("After"), until="delivered")


async def test_rotation_without_the_old_key_names_the_setting(pipeline: PipelineHarness) -> None:
    unchanged = await rotate(pipeline)
    unlimited = await rotate(pipeline, keep_old_for_s=-1)

    assert unchanged.body["changed"] is False
    assert unlimited.status == 400
    assert json.loads(unlimited.headers[ERROR_HEADER])["field"] == "keep_old_for_s"
