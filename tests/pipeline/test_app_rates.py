"""Rates of one app: stored, enforced for this app only, and in every response as the service's rates are."""

from dataclasses import replace
from typing import Any, Final

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import APP, id_number
from tests.support.pipeline import ADMIN_TOKEN, HttpResponse, PipelineHarness
from waypost.base.encryption import hash_secret
from waypost.store.accounts.partners import add_app

SERVICE: Final = 5
OTHER: Final = replace(
    APP, id=id_number(2), name="Other", phone_number="15550002222", phone_number_id="2000000000000009"
)
TEMPLATE: Final = {
    "category": "UTILITY",
    "templateType": "TEXT",
    "vertical": "Orders",
    "content": "We are open again.",
    "example": "We are open again.",
}
BODY: Final = b'{"status":"error","message":"Too Many Requests"}'


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline) -> PipelineHarness:
    """A service with a rate of its own, and two apps."""
    pipeline = await make_pipeline(changes={"rates": True, "rate_limits": (f"templates={SERVICE}/1h",)})
    token = pipeline.waypost.admin_context.secret_box.app_token(OTHER.id, OTHER.token_serial)
    await pipeline.waypost.database.write(add_app, OTHER, hash_secret(token))
    return pipeline


async def change_rates(pipeline: PipelineHarness, app_id: str = APP.id, **change: Any) -> tuple[int, Any]:
    url = f"{pipeline.service_url}/admin/apps/{app_id}/rates"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with pipeline.http.put(url, json=change, headers=headers) as response:
        return response.status, await response.json()


async def list_templates(pipeline: PipelineHarness, app_id: str = APP.id) -> HttpResponse:
    token = pipeline.waypost.admin_context.secret_box.app_token(app_id, 1)
    path = f"/partner/app/{app_id}/templates"
    return await pipeline.send_request("GET", path, headers={"Authorization": token})


async def count_accepted(pipeline: PipelineHarness, app_id: str = APP.id) -> tuple[int, HttpResponse]:
    """Send requests until one is rejected; return the number before it, and its response."""
    for accepted in range(20):
        response = await list_templates(pipeline, app_id)
        if response.status != 200:
            return accepted, response
    raise AssertionError("no request was rejected")


async def test_rate_of_an_app_is_enforced_for_this_app_only(pipeline: PipelineHarness) -> None:
    status, changed = await change_rates(pipeline, rates={"templates": "2/30m"})
    await pipeline.close_service()
    await pipeline.open_service()

    own, rejected = await count_accepted(pipeline)
    service, rejected_too = await count_accepted(pipeline, OTHER.id)

    assert status == 200
    assert next(row for row in changed["rates"] if row["rate"] == "templates") == {
        "rate": "templates", "per": "app", "documented": "10/60s", "service": "5/3600s", "app": "2/1800s",
        "source": "app", "in_force": "2/1800s",
    }  # fmt: skip
    assert (own, service) == (2, SERVICE)
    assert rejected.raw == rejected_too.raw == BODY
    assert rejected.headers["Waypost-Reason"].startswith("At most 2 requests in 1800 s per app; ")
    assert 1700 < int(rejected.headers["Retry-After"]) <= 1800


async def test_request_that_cannot_be_stored_does_not_count(pipeline: PipelineHarness) -> None:
    await change_rates(pipeline, rates={"templates": "2/1h"})
    token = pipeline.waypost.admin_context.secret_box.app_token(APP.id, 1)
    path, form = f"/partner/app/{APP.id}/templates", TEMPLATE | {"elementName": "later"}

    async with pipeline.unavailable_store():
        failed = [await pipeline.send_request("POST", path, form, {"Authorization": token}) for _ in range(3)]

    accepted, _ = await count_accepted(pipeline)
    assert [response.status for response in failed] == [500, 500, 500]
    assert accepted == 2


async def test_change_applies_to_the_current_window(pipeline: PipelineHarness) -> None:
    """A higher rate, a lower one, and the service's again: what was counted before still counts."""
    counts: list[int] = []
    changes: list[dict[str, Any]] = [
        {"rates": {"templates": "3/1h"}},
        {"rates": {"templates": "1/1h"}},
        {"reset": True},
    ]
    for change in changes:
        await change_rates(pipeline, **change)
        counts.append((await count_accepted(pipeline))[0])

    assert counts == [3, 0, SERVICE - 3]


async def test_null_removes_one_rate_of_the_app(pipeline: PipelineHarness) -> None:
    await change_rates(pipeline, rates={"templates": "2/1h", "download": "9/s"})

    status, changed = await change_rates(pipeline, rates={"templates": None, "upload": "3/s"})
    unknown, body = await change_rates(pipeline, rates={"create_app": None})

    assert status == 200
    assert {row["rate"]: row["app"] for row in changed["rates"] if row["app"]} == {"download": "9/1s", "upload": "3/1s"}
    sources = {row["rate"]: row["source"] for row in changed["rates"]}
    assert (sources["templates"], sources["download"], sources["analytics"]) == ("setting", "app", "documented")
    assert (unknown, "an app can have its own of app_token, app_tokens" in body["message"]) == (400, True)


async def test_api_reference_names_the_rates_of_the_service(pipeline: PipelineHarness) -> None:
    document = (await pipeline.send_request("GET", "/openapi.json")).body
    operations = {row["operationId"]: row for methods in document["paths"].values() for row in methods.values()}
    pages = {
        name: (await pipeline.send_request("GET", f"/docs/{name}")).raw.decode()
        for name in ("get-partner-app-app-id-templates", "post-partner-app")
    }

    changed = "At most 5 requests in 3600 s per app, set by this service; documented: 10 requests in 60 s."
    assert operations["get-partner-app-app-id-templates"]["description"].endswith(changed)
    assert changed in pages["get-partner-app-app-id-templates"]
    assert operations["post-partner-app"]["description"].endswith("At most 10 requests in 60 s per partner.")
    assert "At most 10 requests in 60 s per partner." in pages["post-partner-app"]


INVALID: Final = {  # a change, and a part of the text of its error
    "template=1/s":      "did you mean templates?",
    "login=1/s":         "there is no rate login that can be set",
    "admin_failures=1/s": "there is no rate admin_failures that can be set",
    "create_app=1/s":    "the rate create_app is per partner; an app can have its own of app_token, app_tokens",
    "templates=0/s":     "1 to 1000000 requests in 1 to 86400 seconds",
    "templates=quick":   "write the row, the number of requests and the period: templates=20/60s",
}  # fmt: skip


async def test_invalid_change_names_the_rule_and_changes_nothing(pipeline: PipelineHarness) -> None:
    for text, reason in INVALID.items():
        row, _, rate = text.partition("=")

        status, body = await change_rates(pipeline, rates={"download": "9/s", row: rate})

        assert (status, reason in body["message"]) == (400, True), (text, body)
    missing, _ = await change_rates(pipeline, OTHER.id.replace("2", "3"), rates={"download": "9/s"})
    assert missing == 404
    app = await pipeline.waypost.directory.app(APP.id)
    assert app is not None
    assert app.rates == {}
