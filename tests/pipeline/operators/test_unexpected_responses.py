"""Direct calls to an operator whose responses are malformed, slow or incomplete: no data of ours is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.media_samples import sample
from tests.support.pipeline import HttpResponse, PipelineHarness
from tests.support.polling import poll_until
from waypost.admin import provisioning
from waypost.api import flows
from waypost.api import operation as direct_calls

pytestmark = pytest.mark.content_only

Responder = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class ScriptedOperator:
    """A real server in the operator's place; `respond` makes its responses."""

    respond: Responder
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path.partition("/v25.0/")[2]))
        return await self.respond(request)

    def always(self, body: Any, status: int = 200) -> None:
        """Respond to every request with this body and status."""
        self.respond = make_responder(body, status)


def make_responder(body: Any, status: int = 200) -> Responder:
    async def respond(_request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return respond


@pytest.fixture
async def scripted_operator(pipeline: PipelineHarness) -> AsyncIterator[ScriptedOperator]:
    """Create and approve a template with the simulator; then replace it with a scripted operator."""
    await pipeline.approved_template()
    scripted_operator = ScriptedOperator(make_responder({}))
    application = web.Application(client_max_size=2**25)
    application.router.add_route("*", "/{path:.*}", scripted_operator.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=url))
    yield scripted_operator
    await runner.cleanup()


NODE = {"id": "900", "name": "another", "language": "en_US", "status": "APPROVED"}
NEXT_PAGE = {"next": "http://more.example", "cursors": {"after": "abc"}}

# fmt: off
INVALID_LISTS: dict[str, tuple[int, Any, int]] = {
    "an_empty_object":         (200, {},                                                     503),
    "success":                 (200, {"success": True},                                      503),
    "data_that_is_no_list":    (200, {"data": {}},                                           503),
    "data_beside_an_error":    (200, {"data": [], "error": "half of it"},                    503),
    "a_redirect":              (302, {"data": []},                                           503),
    "an_error_of_a_gateway":   (502, {"error": "bad gateway"},                               503),
    "a_code_as_text":          (500, {"error": {"message": "x", "code": "2"}},               503),
    "a_limit_as_text":         (429, {"error": "slow down"},                                 503),
    "a_refusal_of_a_proxy":    (401, {"error": "unauthorized"},                              400),
    "a_text_in_the_list":      (200, {"data": ["greeting"]},                                 503),
    "a_number_as_id":          (200, {"data": [{**NODE, "id": 900}]},                        503),
    "more_without_a_cursor":   (200, {"data": [NODE], "paging": {"next": "http://more.example"}}, 503),
    "a_list_without_an_end":   (200, {"data": [NODE], "paging": NEXT_PAGE},                  503),
}
# fmt: on


@pytest.mark.parametrize("name", INVALID_LISTS)
async def test_sync_changes_nothing_unless_the_operator_returns_its_complete_list(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, name: str
) -> None:
    status, body, expected = INVALID_LISTS[name]
    scripted_operator.always(body, status)

    response = await call_app(pipeline, "GET", "template/sync")

    assert response.status == expected
    assert [template["status"] for template in await list_templates(pipeline)] == ["APPROVED"]


@pytest.mark.both_engines
async def test_sync_deletes_templates_by_a_complete_list_of_several_pages(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator
) -> None:
    async def pages(request: web.Request) -> web.StreamResponse:
        is_last = "after" in request.query
        return web.json_response({"data": [NODE]} | ({} if is_last else {"paging": NEXT_PAGE}))

    scripted_operator.respond = pages

    response = await call_app(pipeline, "GET", "template/sync")

    assert response.status == 202
    assert len(scripted_operator.requests) == 2
    assert "APPROVED" not in [template["status"] for template in await list_templates(pipeline)]


async def test_sync_with_endless_pages_times_out(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return web.json_response({"data": [NODE], "paging": NEXT_PAGE})

    monkeypatch.setattr(direct_calls, "DIRECT_CALL_TIMEOUT_S", 0.5)
    scripted_operator.respond = slowly

    response = await call_app(pipeline, "GET", "template/sync")  # there is always another page

    assert response.status == 503
    assert [template["status"] for template in await list_templates(pipeline)] == ["APPROVED"]


@pytest.mark.parametrize("path", ["template/metalibrary", "flows", "user/blocklist", "business/profile/about"])
async def test_missing_list_is_not_treated_as_empty(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, path: str
) -> None:
    scripted_operator.always({"success": True})

    response = await call_app(pipeline, "GET", path)

    assert response.status == 503


@pytest.mark.parametrize("body", [{"error": "bad gateway"}, {"error": {"message": "x", "code": "2"}}], ids=str)
@pytest.mark.both_engines
async def test_template_behind_a_broken_gateway_is_submitted_until_the_operator_accepts_it(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, body: Any
) -> None:
    scripted_operator.always(body, 502)
    template = await pipeline.create_template(elementName="second")
    await poll_until(lambda: has_request(scripted_operator, "POST"))

    scripted_operator.always({"id": "901", "status": "APPROVED", "category": "UTILITY"})

    await poll_until(lambda: status_of(pipeline, template["id"]), lambda status: status == "APPROVED")


LIBRARY_TEMPLATE = {
    "name": "ready",
    "language": "en_US",
    "category": "UTILITY",
    "body": "Hello {{1}}, it is ready.",
    "body_params": ["Ann"],
    "topic": "ORDER_MANAGEMENT",
    "id": "1",
}
NAME_EXISTS_ERROR = {"error": {"message": "content exists", "code": 100, "error_subcode": 2388024}}
FORM = {"elementName": "mine", "category": "UTILITY", "languageCode": "en_US", "libraryTemplateName": "ready"}
OWN_TEMPLATE = {
    "id": "77",
    "name": "mine",
    "language": "en_US",
    "status": "APPROVED",
    "components": [{"type": "BODY", "text": LIBRARY_TEMPLATE["body"]}],
}


def respond_as_library(*, templates: list[dict[str, Any]], lose_first: bool) -> Responder:
    """Return a responder with one library template; the first creation may be done and its response lost."""
    lost: list[web.Request] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("library"):
            return web.json_response({"data": [LIBRARY_TEMPLATE]})
        if request.method == "GET":
            return web.json_response({"data": templates})
        if lose_first and not lost:
            lost.append(request)
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(NAME_EXISTS_ERROR, status=400)

    return respond


@pytest.mark.both_engines
async def test_library_template_is_adopted_by_a_second_request_when_the_first_response_was_lost(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator
) -> None:
    scripted_operator.respond = respond_as_library(
        templates=[{**OWN_TEMPLATE, "language": "de"}, OWN_TEMPLATE], lose_first=True
    )
    lost = await call_app(pipeline, "POST", "template/metalibrary", FORM)

    again = await call_app(pipeline, "POST", "template/metalibrary", FORM)

    assert (lost.status, again.status) == (503, 200)
    assert again.body["templates"]["externalId"] == "77"
    assert again.body["templates"]["status"] == "APPROVED"
    assert "mine" in [template["elementName"] for template in await list_templates(pipeline)]


@pytest.mark.parametrize(
    "templates",
    [
        [],
        [{**OWN_TEMPLATE, "status": "PENDING_DELETION"}],
        [{**OWN_TEMPLATE, "components": [{"type": "BODY", "text": "Something else."}]}],
    ],
    ids=["nothing", "being_deleted", "another_text"],
)
async def test_existing_template_that_differs_from_the_library_template_is_not_adopted(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, templates: list[dict[str, Any]]
) -> None:
    scripted_operator.respond = respond_as_library(templates=templates, lose_first=False)

    response = await call_app(pipeline, "POST", "template/metalibrary", FORM)

    assert (response.status, response.body["message"]) == (400, "content exists")
    assert "mine" not in [template["elementName"] for template in await list_templates(pipeline)]


async def test_only_a_flow_of_the_apps_account_is_cloned(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator
) -> None:
    async def respond(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return web.json_response({"id": "123"})
        owner = ACCOUNT.id if request.path.endswith("/111") else "2000000000000002"
        return web.json_response({"id": "1", "whatsapp_business_account": {"id": owner}})

    scripted_operator.respond = respond
    form = {"name": "n", "categories": "OTHER"}

    foreign = await call_app(pipeline, "POST", "flows", form | {"clone_flow_id": "222"})
    invalid_id = await call_app(pipeline, "POST", "flows", form | {"clone_flow_id": "222/publish"})
    change = await call_app(pipeline, "PUT", "flows/111", {"name": "m", "clone_flow_id": "222"})
    assert not [path for method, path in scripted_operator.requests if method == "POST"]
    own = await call_app(pipeline, "POST", "flows", form | {"clone_flow_id": "111"})

    assert [foreign.status, invalid_id.status, change.status, own.status] == [400, 400, 400, 200]
    assert "clone_flow_id" in foreign.body["message"]


async def test_upload_of_a_photo_times_out_when_the_operator_is_too_slow(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/uploads"):
            await never.wait()
        return web.json_response({"id": "upload:1"})

    monkeypatch.setattr(direct_calls, "DIRECT_CALL_TIMEOUT_S", 0.5)
    scripted_operator.respond = slowly

    status = await put_file(pipeline, "business/profile/photo", sample("png"), "image/png")

    never.set()
    assert status == 503


async def test_concurrent_flow_files_beyond_the_limit_get_429(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator
) -> None:
    hold = asyncio.Event()

    async def respond(request: web.Request) -> web.StreamResponse:
        await request.read()
        if request.method == "POST":
            await hold.wait()
            return web.json_response({"success": True})
        return web.json_response({"id": "111", "whatsapp_business_account": {"id": ACCOUNT.id}})

    async def put() -> int:
        return await put_file(pipeline, "flows/111/assets", b"{}", "application/json")

    async def is_full() -> bool:
        return [method for method, _ in scripted_operator.requests].count("POST") == flows.MAX_FLOW_FILES

    scripted_operator.respond = respond
    first = [asyncio.create_task(put()) for _ in range(flows.MAX_FLOW_FILES)]
    await poll_until(is_full)

    beyond = await put()
    hold.set()
    statuses = await asyncio.gather(*first)
    later = await put()

    assert beyond == 429
    assert statuses == [200] * flows.MAX_FLOW_FILES
    assert later == 200


async def test_flow_file_that_is_uploaded_too_slowly_gets_400(
    pipeline: PipelineHarness, scripted_operator: ScriptedOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "FLOW_FILE_TIMEOUT_S", 0.3)
    scripted_operator.always({"id": "111", "whatsapp_business_account": {"id": ACCOUNT.id}})
    done = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n{'
        await done.wait()

    async with pipeline.http.put(
        f"{pipeline.service_url}/partner/app/{APP.id}/flows/111/assets",
        data=slow(),
        headers={"token": pipeline.app_token, "Content-Type": "multipart/form-data; boundary=x"},
    ) as response:
        await response.read()
    done.set()

    assert response.status == 400
    assert "that arrives within" in response.headers["Waypost-Reason"]


async def call_app(
    pipeline: PipelineHarness, method: str, path: str, form: dict[str, str] | None = None
) -> HttpResponse:
    """Make a call of the partner for the app."""
    headers = {"token": pipeline.app_token}
    return await pipeline.send_request(method, f"/partner/app/{APP.id}/{path}", form, headers)


async def put_file(pipeline: PipelineHarness, path: str, content: bytes, mime_type: str) -> int:
    """Put a file, and return the status of the response."""
    form = aiohttp.FormData()
    form.add_field("file", content, filename="file", content_type=mime_type)
    async with pipeline.http.put(
        f"{pipeline.service_url}/partner/app/{APP.id}/{path}", data=form, headers={"token": pipeline.app_token}
    ) as response:
        await response.read()
        return response.status


async def list_templates(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the partner's templates."""
    return (await call_app(pipeline, "GET", "templates")).body["templates"]


async def status_of(pipeline: PipelineHarness, template_id: str) -> str:
    """Return the status of a template."""
    return (await call_app(pipeline, "GET", f"templates/{template_id}")).body["template"]["status"]


async def has_request(scripted_operator: ScriptedOperator, method: str) -> bool:
    """Return True if the operator has got a request with this method."""
    return any(request_method == method for request_method, _ in scripted_operator.requests)
