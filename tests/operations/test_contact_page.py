"""The page that confirms the e-mail address of an app's contact."""

import json
from typing import Any

from tests.conftest import MakePipeline
from tests.support.builders import APP, PARTNER
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.base.clock import DAY_MS, VirtualClock
from waypost.base.encryption import hash_secret
from waypost.store.accounts.credentials import CredentialKind, add_credential

SECRET = "client-secret-of-acme"


async def partner_headers(pipeline: PipelineHarness) -> dict[str, str]:
    login = {"email": PARTNER.email, "password": SECRET}
    response = await pipeline.send_request("POST", "/partner/account/login", login)
    return {"Authorization": response.body["token"]}


async def set_contact(pipeline: PipelineHarness, email: str) -> None:
    contact = {"contactEmail": email, "contactName": "Grace Hopper", "contactNumber": "15550007777"}
    path = f"/partner/app/{APP.id}/onboarding/contact"
    response = await pipeline.send_request("PUT", path, contact, await partner_headers(pipeline))
    assert response.status == 200, response


async def contact_email(pipeline: PipelineHarness) -> Any:
    url = f"{pipeline.service_url}/admin/apps/{APP.id}/contact-email"
    async with pipeline.http.get(url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}) as response:
        return json.loads(await response.read())


async def open_link(pipeline: PipelineHarness, url: str, method: str = "GET") -> tuple[int, str]:
    async with pipeline.http.request(method, url) as response:
        return response.status, await response.text()


async def test_address_is_confirmed_by_the_page_of_its_current_link(make_pipeline: MakePipeline) -> None:
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock)
    now_ms = clock.now_ms()
    await pipeline.waypost.admin_context.database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_secret(SECRET), now_ms
    )
    await set_contact(pipeline, "old@shop.example")
    old = await contact_email(pipeline)
    clock.set(at_ms=clock.now_ms() + 1)
    await set_contact(pipeline, "ops@shop.example")
    mail = await contact_email(pipeline)

    assert mail["email"] == "ops@shop.example"
    assert mail["expires_on_ms"] - mail["sent_on_ms"] == 5 * DAY_MS
    assert (await open_link(pipeline, old["url"], "POST"))[0] == 404
    status, text = await open_link(pipeline, mail["url"])
    assert (status, "Confirm your e-mail address" in text) == (200, True)
    assert not (await contact_email(pipeline))["verified"]  # opening it changes nothing
    status, text = await open_link(pipeline, mail["url"], "POST")
    assert (status, "The address is confirmed" in text) == (200, True)
    assert await contact_email(pipeline) == {**mail, "verified": True, "expires_on_ms": 0, "url": ""}

    await set_contact(pipeline, "ops@shop.example")
    assert (await contact_email(pipeline))["verified"]
    await set_contact(pipeline, "other@shop.example")
    assert not (await contact_email(pipeline))["verified"]


async def test_link_ends_after_five_days(make_pipeline: MakePipeline) -> None:
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock)
    await pipeline.waypost.admin_context.database.write(
        add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, hash_secret(SECRET), clock.now_ms()
    )
    await set_contact(pipeline, "ops@shop.example")
    mail = await contact_email(pipeline)

    clock.set(at_ms=clock.now_ms() + 5 * DAY_MS)

    assert (await open_link(pipeline, mail["url"], "POST"))[0] == 404
    assert not (await contact_email(pipeline))["verified"]
