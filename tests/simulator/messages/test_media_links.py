"""Media links that the simulator fetches: status, type and size decide about the message after its 200."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.simulator.conftest import ANN, BUSINESS, Bench, Receiver, make_bench
from tests.support.closed_port import closed_port
from tests.support.polling import poll_until
from waypost.base.clock import SystemClock
from waypost.base.ids import SeededIds
from waypost.simulator import Simulator

PNG = b"\x89PNG picture"
LOOPBACK = ("127.0.0.0/8", "::1/128")
MB = 1024 * 1024


class FileServer:
    """Serves what a path names; counts the requests that are open."""

    def __init__(self) -> None:
        self.url = ""
        self.released = asyncio.Event()
        self.open_requests = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/picture.png":
                return web.Response(body=PNG, content_type="image/png")
            case "/voice.ogg":
                return web.Response(body=b"OggS", headers={"Content-Type": "audio/ogg; codecs=opus"})
            case "/moved.png":
                return web.Response(status=302, headers={"Location": "/picture.png"})
            case "/loop.png":
                return web.Response(status=302, headers={"Location": "/loop.png"})
            case "/page.png":
                return web.Response(text="<p>Log in</p>", content_type="text/html")
            case "/empty.png":
                return web.Response(body=b"", content_type="image/png")
            case "/large.png":
                return web.Response(body=bytes(5 * MB + 1), content_type="image/png")
            case "/slow.png":
                self.open_requests += 1
                await self.released.wait()
                return web.Response(body=PNG, content_type="image/png")
            case _:
                return web.Response(status=404)


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    server = FileServer()
    application = web.Application()
    application.router.add_get("/{path:.*}", server.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    server.released.set()
    await runner.cleanup()


@pytest.fixture
async def near(tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession) -> AsyncIterator[Bench]:
    """A simulator that may fetch from this machine."""
    near = make_bench(tmp_path, SystemClock(), receiver, http, media_networks=LOOPBACK)
    await near.start()
    await near.send_from_phone()
    yield near
    await near.stop()


def media_message(kind: str, link: str) -> dict[str, Any]:
    return {"type": kind, kind: {"link": link}}


async def send(bench: Bench, message: dict[str, Any]) -> str:
    response = await bench.send(message)
    assert response.status == 200, response.body
    wamid: str = response.body["messages"][0]["id"]
    return wamid


async def final_status(bench: Bench, wamid: str) -> dict[str, Any]:
    def find() -> list[dict[str, Any]]:
        return [item for item in bench.receiver.statuses(wamid) if item["status"] in ("delivered", "failed")]

    statuses: list[dict[str, Any]] = await bench.receiver.wait_until(find)
    return statuses[0]


# fmt: off
FETCHED: list[tuple[str, str, str]] = [  # Source: facts 5.2 (131053), 6.1
    # kind       path            details; empty: delivered
    ("image",    "/picture.png", ""),
    ("image",    "/moved.png",   ""),
    ("audio",    "/voice.ogg",   ""),
    ("image",    "/none.png",    "http code 404"),
    ("image",    "/page.png",    "mime type text/html"),
    ("video",    "/picture.png", "mime type image/png"),
    ("document", "/picture.png", "mime type image/png"),
    ("sticker",  "/picture.png", "mime type image/png"),
    ("image",    "/empty.png",   "must not be empty"),
    ("image",    "/large.png",   "size too big"),
    ("image",    "/loop.png",    "redirects more than 3 times"),
]
# fmt: on


@pytest.mark.parametrize(("kind", "path", "details"), FETCHED)
async def test_link_is_fetched_after_the_message_was_accepted(
    near: Bench, files: FileServer, kind: str, path: str, details: str
) -> None:
    wamid = await send(near, media_message(kind, files.url + path))

    status = await final_status(near, wamid)
    shown = [message["wamid"] for message in await near.inbox()]
    assert (status["status"], wamid in shown) == (("failed", False) if details else ("delivered", True))
    if details:
        assert status["errors"][0]["code"] == 131053
        assert details in status["errors"][0]["error_data"]["details"]


async def test_host_that_does_not_answer_fails_the_message(near: Bench) -> None:
    with closed_port() as port:
        wamid = await send(near, media_message("image", f"http://localhost:{port}/a.png"))

        assert (await final_status(near, wamid))["errors"][0]["code"] == 131053


async def test_links_of_headers_and_cards_are_fetched(near: Bench, files: FileServer) -> None:
    bad, good = ({"type": "image", "image": {"link": files.url + path}} for path in ("/none.png", "/picture.png"))
    buttons = {"buttons": [{"type": "reply", "reply": {"id": "a", "title": "Yes"}}]}
    bubble = {"type": "button", "body": {"text": "Well?"}, "action": buttons}
    cards = [
        {
            "card_index": index, "type": "cta_url", "header": header, "body": {"text": "A"},
            "action": {"buttons": [{"type": "quick_reply", "quick_reply": {"id": str(index), "title": "More"}}]},
        }
        for index, header in enumerate((good, bad))
    ]  # fmt: skip
    carousel = {"type": "carousel", "body": {"text": "Slide"}, "action": {"cards": cards}}
    await near.seed_template(
        [
            {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::a"]}},
            {"type": "BODY", "text": "Look at this"},
        ]
    )

    in_header = await send(near, {"type": "interactive", "interactive": {**bubble, "header": bad}})
    in_good_header = await send(near, {"type": "interactive", "interactive": {**bubble, "header": good}})
    in_card = await send(near, {"type": "interactive", "interactive": carousel})
    in_template = (await near.send_template([{"type": "header", "parameters": [bad]}])).body["messages"][0]["id"]

    for wamid in (in_header, in_card, in_template):
        assert (await final_status(near, wamid))["errors"][0]["code"] == 131053
    assert (await final_status(near, in_good_header))["status"] == "delivered"


async def test_slow_host_delays_its_own_messages_only(near: Bench, files: FileServer) -> None:
    slow = [await send(near, media_message("image", f"{files.url}/slow.png")) for _ in range(20)]
    await poll_until(lambda: _value(files.open_requests), lambda count: count > 0)

    others = [await near.send_text(), await send(near, media_message("image", "https://x.example/a.png"))]

    for wamid in others:
        assert (await final_status(near, wamid))["status"] == "delivered"
    assert files.open_requests <= 8
    assert [item for wamid in slow for item in near.receiver.statuses(wamid)] == []
    files.released.set()
    for wamid in slow:
        assert (await final_status(near, wamid))["status"] == "delivered"


async def _value(value: int) -> int:
    return value


async def test_link_that_may_not_be_reached_is_not_fetched_and_the_message_says_so(near: Bench) -> None:
    link = "https://x.example/a.png"

    wamid = await send(near, media_message("image", link))

    assert (await final_status(near, wamid))["status"] == "delivered"
    assert (await near.inbox())[-1]["not_fetched"] == [link]
    shown, unknown = [await near.control("GET", f"messages/{each}") for each in (wamid, "wamid.none")]
    assert shown.body == (await near.inbox())[-1]
    assert unknown.status == 404


async def test_nothing_is_fetched_unless_the_settings_name_networks(bench: Bench, files: FileServer) -> None:
    await bench.send_from_phone()

    wamid = await send(bench, media_message("image", f"{files.url}/none.png"))

    assert (await final_status(bench, wamid))["status"] == "delivered"
    assert "not_fetched" not in (await bench.inbox())[-1]


async def test_redirect_out_of_the_networks_is_not_followed(near: Bench) -> None:
    async def handle(_request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://192.0.2.1/picture.png"})

    application = web.Application()
    application.router.add_get("/a.png", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    wamid = await send(near, media_message("image", f"http://127.0.0.1:{runner.addresses[0][1]}/a.png"))

    assert (await final_status(near, wamid))["status"] == "delivered"
    await runner.cleanup()


async def test_message_that_waits_for_its_media_survives_a_restart(near: Bench, files: FileServer) -> None:
    wamid = await send(near, media_message("image", f"{files.url}/slow.png"))
    await poll_until(lambda: _value(files.open_requests), lambda count: count > 0)
    await near.stop()
    files.released.set()

    near.simulator = Simulator(near.settings, near.clock, SeededIds(near.clock, "again"))
    await near.start()

    assert (await final_status(near, wamid))["status"] == "delivered"


async def test_offline_phone_gets_the_fetched_message_later(near: Bench, files: FileServer) -> None:
    await near.control("PUT", f"phones/{ANN}", {"is_offline": True})
    wamid = await send(near, media_message("image", f"{files.url}/picture.png"))
    await near.receiver.wait_until(lambda: near.receiver.statuses(wamid))

    await near.control("PUT", f"phones/{ANN}", {"is_offline": False})

    assert (await final_status(near, wamid))["status"] == "delivered"
    assert [status["status"] for status in near.receiver.statuses(wamid)] == ["sent", "delivered"]
    await near.control("POST", f"phones/{ANN}/read", {"to": BUSINESS})
