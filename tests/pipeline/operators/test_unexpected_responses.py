"""Direct calls of an operator that answers oddly, slowly or only half: nothing of ours is lost by it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.media_samples import sample
from tests.support.pipeline import Answer, PipelineHarness
from tests.support.waiting import patiently
from waypost.admin import provisioning
from waypost.api import direct_calls, flows

pytestmark = pytest.mark.content_only

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Odd:
    """A real server in the operator's place; `answer` says what it answers."""

    answer: Answering
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path.partition("/v25.0/")[2]))
        return await self.answer(request)

    def always(self, body: Any, status: int = 200) -> None:
        """Answer everything with this."""
        self.answer = telling(body, status)


def telling(body: Any, status: int = 200) -> Answering:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return answer


@pytest.fixture
async def odd(pipeline: PipelineHarness) -> AsyncIterator[Odd]:
    """The street's templates are made and approved by the simulator; then this takes its place."""
    await pipeline.approved_template()
    odd = Odd(telling({}))
    application = web.Application(client_max_size=2**25)
    application.router.add_route("*", "/{path:.*}", odd.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=url))
    yield odd
    await runner.cleanup()


NODE = {"id": "900", "name": "another", "language": "en_US", "status": "APPROVED"}
MORE = {"next": "http://more.example", "cursors": {"after": "abc"}}

# fmt: off
NO_LIST: dict[str, tuple[int, Any, int]] = {
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
    "more_without_a_way":      (200, {"data": [NODE], "paging": {"next": "http://more.example"}}, 503),
    "a_list_without_an_end":   (200, {"data": [NODE], "paging": MORE},                       503),
}
# fmt: on


@pytest.mark.parametrize("name", NO_LIST)
async def test_sync_changes_nothing_unless_the_operator_gives_its_whole_list(
    pipeline: PipelineHarness, odd: Odd, name: str
) -> None:
    status, body, expected = NO_LIST[name]
    odd.always(body, status)

    answer = await ask(pipeline, "GET", "template/sync")

    assert answer.status == expected
    assert [one["status"] for one in await listed(pipeline)] == ["APPROVED"]


@pytest.mark.both_engines
async def test_sync_deletes_by_a_whole_list_of_several_pages(pipeline: PipelineHarness, odd: Odd) -> None:
    async def pages(request: web.Request) -> web.StreamResponse:
        is_last = "after" in request.query
        return web.json_response({"data": [NODE]} | ({} if is_last else {"paging": MORE}))

    odd.answer = pages

    answer = await ask(pipeline, "GET", "template/sync")

    assert answer.status == 202
    assert len(odd.asked) == 2
    assert "APPROVED" not in [one["status"] for one in await listed(pipeline)]


async def test_all_pages_of_a_sync_together_are_given_up_in_time(
    pipeline: PipelineHarness, odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        return web.json_response({"data": [NODE], "paging": MORE})

    monkeypatch.setattr(direct_calls, "DIRECT_CALL_TIMEOUT_S", 0.5)
    odd.answer = slowly

    answer = await ask(pipeline, "GET", "template/sync")  # there is always another page

    assert answer.status == 503
    assert [one["status"] for one in await listed(pipeline)] == ["APPROVED"]


@pytest.mark.parametrize("path", ["template/metalibrary", "flows", "user/blocklist", "business/profile/about"])
async def test_list_that_is_missing_is_not_an_empty_one(pipeline: PipelineHarness, odd: Odd, path: str) -> None:
    odd.always({"success": True})

    answer = await ask(pipeline, "GET", path)

    assert answer.status == 503


@pytest.mark.parametrize("body", [{"error": "bad gateway"}, {"error": {"message": "x", "code": "2"}}], ids=str)
@pytest.mark.both_engines
async def test_template_behind_a_broken_gateway_is_handed_in_until_it_gets_through(
    pipeline: PipelineHarness, odd: Odd, body: Any
) -> None:
    odd.always(body, 502)
    template = await pipeline.create_template(elementName="second")
    await patiently(lambda: is_asked(odd, "POST"))

    odd.always({"id": "901", "status": "APPROVED", "category": "UTILITY"})

    await patiently(lambda: status_of(pipeline, template["id"]), lambda it: it == "APPROVED")


READY = {
    "name": "ready",
    "language": "en_US",
    "category": "UTILITY",
    "body": "Hello {{1}}, it is ready.",
    "body_params": ["Ann"],
    "topic": "ORDER_MANAGEMENT",
    "id": "1",
}
TAKEN = {"error": {"message": "content exists", "code": 100, "error_subcode": 2388024}}
FORM = {"elementName": "mine", "category": "UTILITY", "languageCode": "en_US", "libraryTemplateName": "ready"}
MINE = {
    "id": "77",
    "name": "mine",
    "language": "en_US",
    "status": "APPROVED",
    "components": [{"type": "BODY", "text": READY["body"]}],
}


def library(*, held: list[dict[str, Any]], lose_first: bool) -> Answering:
    """Has one ready template, and perhaps loses the answer to its making; then the name is taken."""
    made: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("library"):
            return web.json_response({"data": [READY]})
        if request.method == "GET":
            return web.json_response({"data": held})
        if lose_first and not made:
            made.append(request)
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(TAKEN, status=400)

    return answer


@pytest.mark.both_engines
async def test_ready_template_whose_answer_was_lost_is_ours_when_it_is_asked_for_again(
    pipeline: PipelineHarness, odd: Odd
) -> None:
    odd.answer = library(held=[{**MINE, "language": "de"}, MINE], lose_first=True)
    lost = await ask(pipeline, "POST", "template/metalibrary", FORM)

    again = await ask(pipeline, "POST", "template/metalibrary", FORM)

    assert (lost.status, again.status) == (503, 200)
    assert again.body["templates"]["externalId"] == "77"
    assert again.body["templates"]["status"] == "APPROVED"
    assert "mine" in [one["elementName"] for one in await listed(pipeline)]


@pytest.mark.parametrize(
    "held",
    [
        [],
        [{**MINE, "status": "PENDING_DELETION"}],
        [{**MINE, "components": [{"type": "BODY", "text": "Something else."}]}],
    ],
    ids=["nothing", "going", "another_text"],
)
async def test_what_is_not_the_ready_template_is_not_taken_for_it(
    pipeline: PipelineHarness, odd: Odd, held: list[dict[str, Any]]
) -> None:
    odd.answer = library(held=held, lose_first=False)

    answer = await ask(pipeline, "POST", "template/metalibrary", FORM)

    assert (answer.status, answer.body["message"]) == (400, "content exists")
    assert "mine" not in [one["elementName"] for one in await listed(pipeline)]


async def test_only_a_flow_of_the_apps_account_is_copied(pipeline: PipelineHarness, odd: Odd) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return web.json_response({"id": "123"})
        owner = ACCOUNT.id if request.path.endswith("/111") else "2000000000000002"
        return web.json_response({"id": "1", "whatsapp_business_account": {"id": owner}})

    odd.answer = answer
    form = {"name": "n", "categories": "OTHER"}

    theirs = await ask(pipeline, "POST", "flows", form | {"clone_flow_id": "222"})
    odd_id = await ask(pipeline, "POST", "flows", form | {"clone_flow_id": "222/publish"})
    change = await ask(pipeline, "PUT", "flows/111", {"name": "m", "clone_flow_id": "222"})
    assert not [path for method, path in odd.asked if method == "POST"]
    ours = await ask(pipeline, "POST", "flows", form | {"clone_flow_id": "111"})

    assert [theirs.status, odd_id.status, change.status, ours.status] == [400, 400, 400, 201]
    assert "clone_flow_id" in theirs.body["message"]


async def test_photo_that_takes_the_operator_too_long_is_given_up_in_time(
    pipeline: PipelineHarness, odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/uploads"):
            await never.wait()
        return web.json_response({"id": "upload:1"})

    monkeypatch.setattr(direct_calls, "DIRECT_CALL_TIMEOUT_S", 0.5)
    odd.answer = slowly

    status = await put_file(pipeline, "business/profile/photo", sample("png"), "image/png")

    never.set()
    assert status == 503


async def test_files_of_flows_are_held_in_memory_only_a_few_at_once(pipeline: PipelineHarness, odd: Odd) -> None:
    hold = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        if request.method == "POST":
            await hold.wait()
            return web.json_response({"success": True})
        return web.json_response({"id": "111", "whatsapp_business_account": {"id": ACCOUNT.id}})

    async def put() -> int:
        return await put_file(pipeline, "flows/111/assets", b"{}", "application/json")

    async def are_held() -> bool:
        return [method for method, _ in odd.asked].count("POST") == flows.MAX_FLOW_FILES

    odd.answer = answer
    first = [asyncio.create_task(put()) for _ in range(flows.MAX_FLOW_FILES)]
    await patiently(are_held)

    beyond = await put()
    hold.set()
    held = await asyncio.gather(*first)
    later = await put()

    assert beyond == 429
    assert held == [200] * flows.MAX_FLOW_FILES
    assert later == 200


async def test_file_of_a_flow_that_arrives_too_slowly_gives_its_place_up(
    pipeline: PipelineHarness, odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "FLOW_FILE_TIMEOUT_S", 0.3)
    odd.always({"id": "111", "whatsapp_business_account": {"id": ACCOUNT.id}})
    done = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n{'
        await done.wait()

    async with pipeline.http.put(
        f"{pipeline.service_url}/partner/app/{APP.id}/flows/111/assets",
        data=slow(),
        headers={"token": pipeline.app_token, "Content-Type": "multipart/form-data; boundary=x"},
    ) as answer:
        told = await answer.json()
    done.set()

    assert answer.status == 400
    assert "did not arrive" in told["message"]


async def ask(pipeline: PipelineHarness, method: str, path: str, form: dict[str, str] | None = None) -> Answer:
    """A call of the partner's about the app."""
    headers = {"token": pipeline.app_token}
    return await pipeline.ask(method, f"/partner/app/{APP.id}/{path}", form, headers)


async def put_file(pipeline: PipelineHarness, path: str, content: bytes, mime_type: str) -> int:
    """Put a file, and give the status of the answer."""
    form = aiohttp.FormData()
    form.add_field("file", content, filename="file", content_type=mime_type)
    async with pipeline.http.put(
        f"{pipeline.service_url}/partner/app/{APP.id}/{path}", data=form, headers={"token": pipeline.app_token}
    ) as answer:
        await answer.read()
        return answer.status


async def listed(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """The partner's templates."""
    return (await ask(pipeline, "GET", "templates")).body["templates"]


async def status_of(pipeline: PipelineHarness, template_id: str) -> str:
    """Of one template."""
    return (await ask(pipeline, "GET", f"templates/{template_id}")).body["template"]["status"]


async def is_asked(odd: Odd, method: str) -> bool:
    """Whether the operator has been called so."""
    return any(one == method for one, _ in odd.asked)
