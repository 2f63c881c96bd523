"""Requests that are rejected leave nothing behind: no memory, and no object that waits for the garbage collector."""

import asyncio
import gc
import itertools
import tracemalloc
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import aiohttp
import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tests.conftest import MakePipeline
from tests.support.builders import ANN, APP, OPERATOR
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, PipelineHarness
from tests.support.polling import poll_until
from waypost.api.requests import Request
from waypost.assembly.http.pacing import Pacing
from waypost.assembly.http.protocol import LimitedProtocol
from waypost.domain.errors import ApiError
from waypost.queue.job import Job
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.requests import Call

pytestmark = pytest.mark.content_only

MB: Final = 1_000_000
REJECTIONS: Final = {400, 401, 403, 413, 429}
REQUESTS: Final = 60
"""Of bodies of 889 kB: more than 50 MB if they were kept."""
FORM, JSON, PARTS = "application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=b"
FIELDS: Final = b"&".join(b"f%05d=1" % nth for nth in range(100_000))
PART: Final = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
SEND: Final = "/wa/api/v1/msg"
OF_PARTNER: Final = {"apikey": API_KEY}
OF_APP: Final = {"Authorization": "{app_token}"}
OF_ADMIN: Final = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
GRAPH: Final = "/v25.0/{phone_number_id}/messages"

# fmt: off
REJECTED: Final[dict[str, tuple[str, str, str, bytes, dict[str, str]]]] = {
    #                             side        path                               type   body                         headers
    "form of a message":         ("service",  SEND,                              FORM,  FIELDS,                      OF_PARTNER),
    "brackets of a message":     ("service",  SEND,                              FORM,  b"message=" + b"[" * 880_000, OF_PARTNER),
    "parts of a message":        ("service",  SEND,                              PARTS, PART * 15_000 + b"--b--",    OF_PARTNER),
    "form of a template":        ("service",  "/partner/app/{app_id}/templates", FORM,  FIELDS,                      OF_APP),
    "JSON of a subscription":    ("service",  "/partner/app/{app_id}/subscription", JSON, b"[" * 880_000,            OF_APP),
    "form of a login":           ("service",  "/partner/account/login",          FORM,  FIELDS,                      {}),
    "JSON of an administrator":  ("service",  "/admin/partners",                 JSON,  b"[" * 880_000,              OF_ADMIN),
    "lists of an administrator": ("service",  "/admin/partners",                 JSON,  b"[" + b"[]," * 290_000,     OF_ADMIN),
    "webhook of nobody":         ("service",  "/operator/webhook",               JSON,  b"[" * 880_000,              {}),
    "form at the simulator":     ("operator", GRAPH,                             FORM,  FIELDS,                      {"Authorization": "Bearer {graph_token}"}),
    "JSON at the simulator":     ("operator", GRAPH,                             JSON,  b"[" * 880_000,              {"Authorization": "Bearer {graph_token}"}),
    "lists at the simulator":    ("operator", GRAPH,                             JSON,  b'{"a":[' + b"[]," * 290_000 + b"[]]}", {"Authorization": "Bearer {graph_token}"}),
    "lists for the phones":      ("operator", "/control/faults",                 JSON,  b'{"a":[' + b"[]," * 290_000 + b"[]]}", {}),
}
# fmt: on


def live_objects() -> Counter[str]:
    """Return how many objects there are of the types that a request, a connection or a job is made of."""
    kinds = (Request, ApiError, GraphApiError, Call, Job, RequestResponseCycle, LimitedProtocol)
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds))


@contextmanager
def collector_off() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def post(session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]) -> int:
    async with session.post(url, data=body, headers=headers) as response:
        await response.read()
        return response.status


@pytest.mark.parametrize("name", list(REJECTED))
@pytest.mark.timeout(120)
async def test_memory_of_rejected_requests_is_free_at_once(pipeline: PipelineHarness, name: str) -> None:
    side, path, kind, body, headers = REJECTED[name]
    for server in (pipeline._server, pipeline._operator_server):  # pyright: ignore[reportPrivateUsage]
        fast = itertools.count(0.0, 100.0).__next__  # what a request costs under tracemalloc is paid by the next
        server.connections._pacing = Pacing(fast)  # pyright: ignore[reportPrivateUsage]
    known = {"app_id": APP.id, "app_token": pipeline.app_token, "phone_number_id": APP.phone_number_id}
    known["graph_token"] = str(OPERATOR["token"])
    url = (pipeline.service_url if side == "service" else pipeline.operator_url) + path.format(**known)
    sent = {"Content-Type": kind, **{key: value.format(**known) for key, value in headers.items()}}

    async with aiohttp.ClientSession() as session:
        assert await post(session, url, body, sent) in REJECTIONS
        with collector_off():
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                for _ in range(REQUESTS // 4):
                    statuses = await asyncio.gather(*(post(session, url, body, sent) for _ in range(4)))
                    assert set(statuses) <= REJECTIONS
                after, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()

    assert (peak - before) / MB < 50
    assert (after - before) / MB < 5


@pytest.mark.both_engines
async def test_requests_connections_and_jobs_are_freed_without_the_collector(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline()
    good = {
        "channel": "whatsapp", "source": APP.phone_number, "src.name": APP.name, "destination": ANN,
        "message": '{"type":"text","text":"hi"}',
    }  # fmt: skip
    bad: tuple[dict[str, str], ...] = ({**good, "destination": "1"}, {**good, "message": "{"}, {**good, "source": "1"})
    await pipeline.send_request("POST", SEND, good, OF_PARTNER)
    await idle(pipeline)

    with collector_off():
        before = live_objects()
        for _ in range(3):
            async with aiohttp.ClientSession() as session:
                for form in (good, *bad):
                    async with session.post(pipeline.service_url + SEND, data=form, headers=OF_PARTNER) as response:
                        await response.read()
                for path in ("/healthz", "/nothing", "/docs", "/partner/app/x/templates"):
                    async with session.get(pipeline.service_url + path) as response:
                        await response.read()
        await idle(pipeline)

        async def left() -> Counter[str]:
            return live_objects() - before

        assert not await poll_until(left, lambda objects: not objects, within_s=20)


async def idle(pipeline: PipelineHarness) -> None:
    """Wait until the service has nothing to do."""

    async def is_busy() -> bool:
        return pipeline.waypost.busy

    await poll_until(is_busy, lambda busy: not busy)


@pytest.mark.parametrize(
    ("path", "headers", "is_authenticated"),
    [
        ("/sm/api/v2/wallet/balance", OF_PARTNER, True),
        ("/sm/api/v2/wallet/balance", {"apikey": "wrong"}, False),
        ("/admin/partners", OF_ADMIN, True),
        ("/admin/partners", {"Authorization": "Bearer wrong"}, False),
        ("/healthz", {}, False),
    ],
)
async def test_connection_with_a_valid_credential_keeps_its_place(
    pipeline: PipelineHarness, path: str, headers: dict[str, str], is_authenticated: bool
) -> None:
    connections = pipeline._server.connections  # pyright: ignore[reportPrivateUsage]
    before = set(connections._authenticated)  # pyright: ignore[reportPrivateUsage]

    async with (
        aiohttp.ClientSession() as session,
        session.get(pipeline.service_url + path, headers=headers) as response,
    ):
        await response.read()
        marked = connections._authenticated - before  # pyright: ignore[reportPrivateUsage]

    assert bool(marked) is is_authenticated


# fmt: off
PACED: Final[dict[str, tuple[bool, str, str, str, str, bytes, dict[str, str]]]] = {
    #                            paced  side        method  path                             type   body             headers
    "send":                     (False, "service",  "GET",  "/sm/api/v2/wallet/balance",     FORM,  b"",             OF_PARTNER),
    "send with a mistake":      (True,  "service",  "POST", SEND,                            FORM,  b"channel=sms",  OF_PARTNER),
    "wrong key":                (True,  "service",  "GET",  "/sm/api/v2/wallet/balance",     FORM,  b"",             {"apikey": "wrong"}),
    "login":                    (True,  "service",  "POST", "/partner/account/login",        FORM,  b"email=a",      {}),
    "unknown path":             (True,  "service",  "GET",  "/nothing",                      FORM,  b"",             OF_PARTNER),
    "probe":                    (True,  "service",  "GET",  "/healthz",                      FORM,  b"",             {}),
    "API reference":            (True,  "service",  "GET",  "/openapi.json",                 FORM,  b"",             {}),
    "unsigned webhook":         (True,  "service",  "POST", "/operator/webhook",             JSON,  b"{}",           {}),
    "administrator":            (False, "service",  "GET",  "/admin/partners",               JSON,  b"",             OF_ADMIN),
    "administrator's mistake":  (True,  "service",  "POST", "/admin/partners",               JSON,  b"[",            OF_ADMIN),
    "wrong admin token":        (True,  "service",  "GET",  "/admin/partners",               JSON,  b"",             {"Authorization": "Bearer wrong"}),
    "Graph call":               (False, "operator", "GET",  "/v25.0/{phone_number_id}",      JSON,  b"",             {"Authorization": "Bearer {graph_token}"}),
    "Graph call with a mistake": (True, "operator", "POST", GRAPH,                           JSON,  b"[",            {"Authorization": "Bearer {graph_token}"}),
    "Graph call without token": (True,  "operator", "GET",  "/v25.0/{phone_number_id}",      JSON,  b"",             {}),
    "control call":             (False, "operator", "GET",  "/control/state",                JSON,  b"",             {}),
    "control call's mistake":   (True,  "operator", "POST", "/control/faults",               JSON,  b"[",            {}),
    "control call of a page":   (True,  "operator", "GET",  "/control/state",                JSON,  b"",             {"Origin": "http://other.test"}),
    "unknown control call":     (True,  "operator", "GET",  "/control/nothing",              JSON,  b"",             {}),
}
# fmt: on


@pytest.mark.parametrize("name", list(PACED))
async def test_requests_without_a_credential_and_those_that_end_in_errors_are_paced(
    pipeline: PipelineHarness, name: str
) -> None:
    """Every listener charges the network of their clients, and no other."""
    is_paced, side, method, path, kind, body, headers = PACED[name]
    known = {"phone_number_id": APP.phone_number_id, "graph_token": str(OPERATOR["token"])}
    server = pipeline._server if side == "service" else pipeline._operator_server  # pyright: ignore[reportPrivateUsage]
    url = (pipeline.service_url if side == "service" else pipeline.operator_url) + path.format(**known)
    sent = {"Content-Type": kind, **{key: value.format(**known) for key, value in headers.items()}}

    connector = aiohttp.TCPConnector(local_addr=("127.9.9.9", 0))
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(2):  # a second one on the same connection
            async with session.request(method, url, data=body, headers=sent) as response:
                await response.read()

    charged = server.connections._pacing._paid_at_s  # pyright: ignore[reportPrivateUsage]
    assert ("127.9.9.0/24" in charged) is is_paced


async def test_error_of_an_armed_fault_is_not_paced(pipeline: PipelineHarness) -> None:
    fault = {"on": "call", "call": "messages.send", "what": {"error": 131016}}
    connector = aiohttp.TCPConnector(local_addr=("127.9.9.9", 0))
    headers = {"Authorization": f"Bearer {OPERATOR['token']}"}
    url = f"{pipeline.operator_url}/v25.0/{APP.phone_number_id}/messages"
    async with aiohttp.ClientSession(connector=connector) as session:
        async with session.post(f"{pipeline.operator_url}/control/faults", json=fault) as armed:
            assert armed.status == 200, await armed.text()
        message = {"messaging_product": "whatsapp", "to": ANN, "type": "text", "text": {"body": "hi"}}
        async with session.post(url, json=message, headers=headers) as response:
            assert response.status >= 400, await response.text()

    charged = pipeline._operator_server.connections._pacing._paid_at_s  # pyright: ignore[reportPrivateUsage]
    assert "127.9.9.0/24" not in charged
