"""The page behind the onboarding link of an app."""

import json

from tests.conftest import MakePipeline
from tests.support.builders import APP, PARTNER
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.base.clock import DAY_MS, HOUR_MS, VirtualClock


async def new_link(pipeline: PipelineHarness, query: str) -> str:
    """Log in, and return the path of the link that the API gives for a query."""
    url = f"{pipeline.service_url}/admin/partners/{PARTNER.id}/client-secrets"
    async with pipeline.http.post(url, json={}, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}) as created:
        secret = json.loads(await created.read())["client_secret"]
    login = await pipeline.send_request("POST", "/partner/account/login", {"email": PARTNER.email, "password": secret})
    response = await pipeline.send_request(
        "GET", f"/partner/app/{APP.id}/onboarding/embed/link?{query}", headers={"Authorization": login.body["token"]}
    )
    assert response.status == 200, response
    return response.body["link"].removeprefix(pipeline.service_url)


async def test_link_shows_the_state_of_the_app_for_five_days(make_pipeline: MakePipeline) -> None:
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock)
    path = await new_link(pipeline, "user=ada")

    shown = await pipeline.send_request("GET", path)
    changed = await pipeline.send_request("GET", path[:-1] + ("0" if path[-1] != "0" else "1"))
    clock.set(at_ms=clock.now_ms() + 5 * DAY_MS - HOUR_MS)
    at_the_end = await pipeline.send_request("GET", path)
    clock.set(at_ms=clock.now_ms() + HOUR_MS)
    expired = await pipeline.send_request("GET", path)

    for text in (APP.name, APP.phone_number, "The app can send and receive messages.", "another 5 days"):
        assert text.encode() in shown.raw
    assert shown.headers["Cache-Control"] == "no-store"
    assert b"another 1 hour." in at_the_end.raw
    assert [page.status for page in (shown, changed, at_the_end, expired)] == [200, 404, 200, 404]
    assert b"This link is not valid" in changed.raw
    assert b"This link has expired" in expired.raw


async def test_regenerated_link_replaces_the_earlier_one(make_pipeline: MakePipeline) -> None:
    clock = VirtualClock()
    pipeline = await make_pipeline(clock=clock)
    first = await new_link(pipeline, "user=ada")
    clock.set(at_ms=clock.now_ms() + 1)

    second = await new_link(pipeline, "user=ada&regenerate=true")

    replaced = await pipeline.send_request("GET", first)
    assert replaced.status == 404
    assert b"It was replaced by another" in replaced.raw
    assert (await pipeline.send_request("GET", second)).status == 200
