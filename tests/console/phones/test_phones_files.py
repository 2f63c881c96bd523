"""Large files are streamed through the console: to phones, from phones, and as snapshots."""

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.media_samples import sample
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.assembly.dev import demo
from waypost.assembly.http.swappable_app import SwappableApp
from waypost.client.api_client import ApiResponseError, InProcessTransport
from waypost.simulator.apis.control_operations import file_response

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
ANN: Final = demo.DESTINATION
CHAT: Final = f"/phones/{ANN}/chats/{demo.SOURCE}"
MB: Final = 1024 * 1024
LARGE_BYTES: Final = 48 * MB
MAX_BUFFERED_BYTES: Final = 24 * MB
"""Limit of what all parts together may buffer: the connections, and some chunks."""

FRAME: Final = b"\xff\xfb\x90\xc4" + bytes(413)
"""A frame of an MP3 at 128 kbit/s: 26 ms of silence."""


class GeneratedFile:
    """A file that is generated while it is read."""

    def __init__(self, chunk: bytes, times: int) -> None:
        self._chunk, self._times, self._at = chunk, times, 0

    async def seek(self, offset: int, /) -> None:
        self._at = offset

    async def read(self, _size: int = -1, /) -> bytes:
        self._at += 1
        return self._chunk if self._at <= self._times else b""


async def store_file(console: ConsoleClient, content: GeneratedFile, mime_type: str, **more: str) -> str:
    """Store a file at the operator as if the phone had sent it; return its ID."""
    query = urlencode({"to": demo.SOURCE, "mime_type": mime_type, **more})
    return (await console.control.plain_file(f"/control/media?{query}", content))["media_id"]


async def store_text_file(console: ConsoleClient) -> str:
    return await store_file(console, GeneratedFile(b"0123456789", 1), "text/plain")


def stored_file_path(console: ConsoleClient, media_id: str) -> Path:
    """Return the path where the simulator stores a file."""
    return console.data / "simulator.db.files" / f"media-{media_id}"


async def test_large_file_to_and_from_a_phone_is_never_buffered_whole(console: ConsoleClient, tmp_path: Path) -> None:
    file = tmp_path / "large.pdf"
    with file.open("wb") as writer:
        writer.write(sample("pdf"))
        writer.truncate(LARGE_BYTES)
    csrf = await console.csrf()
    tracemalloc.start()

    with file.open("rb") as content:
        form = aiohttp.FormData({"csrf": csrf, "kind": "document"})
        form.add_field("file", content, filename="large.pdf", content_type="application/pdf")
        async with console.http.post(f"{console.base_url}{CHAT}/file", data=form) as response:
            assert response.status == 200, await response.text()
    _, peak_up = tracemalloc.get_traced_memory()
    media_id = (await newest(console))["media"]["id"]
    tracemalloc.reset_peak()
    async with console.http.get(f"{console.base_url}/phones/media/{media_id}") as response:
        received_bytes = sum([len(chunk) async for chunk in response.content.iter_chunked(MB)])
    _, peak_down = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert received_bytes == int(response.headers["Content-Length"]) == LARGE_BYTES
    assert (peak_up < MAX_BUFFERED_BYTES, peak_down < MAX_BUFFERED_BYTES) == (True, True), (peak_up, peak_down)


@pytest.mark.parametrize(
    ("range_header", "status", "content", "content_range"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=7-99", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=5-4", 200, b"0123456789", None),  # an invalid range is ignored
        ("bytes=0-1,4-5", 200, b"0123456789", None),  # and so are several ranges
        ("lines=0-1", 200, b"0123456789", None),
        (f"bytes={'9' * 40}-", 200, b"0123456789", None),
    ],
)
async def test_single_range_of_a_file_is_served(
    shared_console: ConsoleClient, range_header: str, status: int, content: bytes, content_range: str | None
) -> None:
    url = f"{shared_console.base_url}/phones/media/{await store_text_file(shared_console)}"

    async with shared_console.http.get(url, headers={"Range": range_header}) as response:
        received = await response.read()

    assert (response.status, response.headers.get("Content-Range")) == (status, content_range)
    assert status == 416 or received == content
    assert response.headers["Content-Length"] == str(len(received))
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response.headers["Content-Type"] == "application/octet-stream"


async def test_range_of_a_changed_file_is_the_whole_file(shared_console: ConsoleClient) -> None:
    url = f"{shared_console.base_url}/phones/media/{await store_text_file(shared_console)}"
    async with shared_console.http.head(url) as head:
        etag = head.headers["ETag"]
        assert (head.status, head.headers["Content-Length"]) == (200, "10")

    for if_range, status in ((etag, 206), ('"another"', 200)):
        headers = {"Range": "bytes=1-2", "If-Range": if_range}
        async with shared_console.http.get(url, headers=headers) as response:
            assert response.status == status


async def test_truncated_file_ends_the_connection_and_does_not_look_complete(
    console: ConsoleClient, capsys: pytest.CaptureFixture[str]
) -> None:
    media_id = await store_file(console, GeneratedFile(bytes(MB), 32), "application/pdf")
    url = f"{console.base_url}/phones/media/{media_id}"

    async with console.http.get(url) as response:
        first = await response.content.readexactly(MB)
        with stored_file_path(console, media_id).open("r+b") as file:
            file.truncate(16 * MB)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()

    assert (response.status, len(first)) == (200, MB)
    assert "defect" not in capsys.readouterr().err


async def test_file_is_closed_when_the_client_disconnects(console: ConsoleClient) -> None:
    media_id = await store_file(console, GeneratedFile(bytes(MB), 32), "application/pdf")
    file = stored_file_path(console, media_id)

    async with console.http.get(f"{console.base_url}/phones/media/{media_id}") as response:
        await response.content.readexactly(MB)
        assert is_open(file)
        response.close()

    async def is_closed() -> bool:
        return not is_open(file)

    await poll_until(is_closed)


async def test_file_being_read_does_not_delay_closing_the_application(tmp_path: Path) -> None:
    film, swappable_app = tmp_path / "film", SwappableApp()
    film.write_bytes(bytes(4 * MB))

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        response = await file_response(Request(scope), film, "video/mp4", {})
        await response(scope, receive, send)

    swappable_app.set_application(application)
    response = await InProcessTransport(swappable_app).open("GET", "/", {})
    await anext(aiter(response))

    async with asyncio.timeout(HANGS_AFTER_S):
        await swappable_app.close(ignored=0, timeout_s=10 * HANGS_AFTER_S)

    assert is_open(film)
    await response.aclose()
    assert not is_open(film)


async def test_file_without_a_message_is_not_stored(console: ConsoleClient) -> None:
    await console.control.json("PUT", f"/control/phones/{ANN}", {"is_offline": True})
    form = aiohttp.FormData({"csrf": await console.csrf(), "kind": "document"})
    form.add_field("file", sample("pdf"), filename="a.pdf", content_type="application/pdf")

    async with console.http.post(f"{console.base_url}{CHAT}/file", data=form) as response:
        assert "This phone is offline." in await response.text()

    assert (await console.control.json("GET", "/control/media"))["media"] == []
    files = [path for path in console.data.rglob("*") if path.is_file()]
    assert not [path for path in files if path.read_bytes() == sample("pdf")]


async def test_control_api_accepts_a_raw_file_and_rejects_invalid_requests(console: ConsoleClient) -> None:
    media_id = await store_file(console, GeneratedFile(b"abc", 3), "text/plain", file_name="three.txt")
    shown = await console.control.json("GET", f"/control/media/{media_id}")
    statuses: list[int] = []

    for mime_type, to, more in (
        ("csv", demo.SOURCE, {}),
        ("text/plain", "15559999999", {}),
        ("text/plain", "", {}),
        ("text/plain", demo.SOURCE, {"colour": "red"}),
    ):
        with pytest.raises(ApiResponseError) as error:
            await store_file(console, GeneratedFile(b"abc", 1), mime_type, **{"to": to, **more})
        statuses.append(error.value.status)
    with pytest.raises(ApiResponseError) as unsupported:
        await console.control.plain_file("/control/reset", GeneratedFile(b"{}", 1))

    assert (shown["file_name"], shown["size_bytes"], shown["is_inbound"]) == ("three.txt", 9, True)
    assert statuses == [422, 404, 400, 400]
    assert unsupported.value.status == 415


async def test_file_too_large_for_its_type_is_rejected_during_the_upload(console: ConsoleClient) -> None:
    content = GeneratedFile(bytes(MB), 400)

    with pytest.raises(ApiResponseError, match="too big"):
        await store_file(console, content, "video/mp4")

    assert not [*(console.data / "simulator.db.files").glob("media-*")]


async def test_snapshot_is_served_with_its_length(console: ConsoleClient) -> None:
    await console.post("/simulator/snapshots", {"name": "mine"})
    [snapshot] = (await console.control.json("GET", "/control/snapshots"))["snapshots"]

    async with console.http.get(f"{console.base_url}/simulator/snapshots/mine/content") as response:
        content = await response.read()

    assert response.headers["Content-Length"] == str(len(content)) == str(snapshot["size_bytes"])
    assert response.headers["Content-Disposition"] == 'attachment; filename="mine.waypost"'
    assert response.headers["Content-Type"] == "application/zip"


async def test_seeking_in_a_sound_requests_a_range(console: ConsoleClient, tabs: Tabs) -> None:
    media_id = await store_file(console, GeneratedFile(FRAME * 40, 600), "audio/mpeg")  # 10 MB, ten minutes
    media = {"type": "audio", "media": {"id": media_id}}
    message = {"to": demo.SOURCE, **media}
    await console.control.json("POST", f"/control/phones/{ANN}/messages", message)
    tab = await tabs(f"/phones?show={ANN}&chats={demo.SOURCE}")
    responses: list[tuple[int, str]] = []
    tab.page.on(
        "response",
        lambda response: (
            responses.append((response.status, response.headers.get("content-range", "")))
            if media_id in response.url
            else None
        ),
    )

    at_s = await tab.page.locator(".bubble-audio audio").evaluate(
        """(sound) => new Promise((done, fail) => {
          sound.onerror = () => fail(new Error("it cannot be played"));
          sound.onseeked = () => done(sound.currentTime);
          sound.onloadedmetadata = () => { sound.currentTime = 500; };
          sound.preload = "auto";
          sound.load();
        })"""
    )

    assert at_s == 500
    assert {status for status, _ in responses} == {206}
    assert any(not content_range.startswith("bytes 0-") for _, content_range in responses)


async def newest(console: ConsoleClient) -> dict[str, Any]:
    return (await console.control.json("GET", f"/control/phones/{ANN}"))["messages"][-1]


def is_open(file: Path) -> bool:
    """Return True if this process has the file open."""
    for link in list(Path("/proc/self/fd").iterdir()):
        try:
            if link.readlink() == file:
                return True
        except OSError:
            continue
    return False
