"""Large files go through the console piece by piece: to phones, from them, and as snapshots."""

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tests.console.conftest import LOOP, Desk, Tabs
from tests.support.media_samples import sample
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.assembly.dev import demo
from waypost.assembly.http.swappable_app import SwappableApp
from waypost.client.api_client import ApiResponseError, InProcessTransport
from waypost.simulator.control.media import file_response

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)
ANN: Final = demo.DESTINATION
CHAT: Final = f"/phones/{ANN}/chats/{demo.SOURCE}"
MB: Final = 1024 * 1024
LARGE_BYTES: Final = 48 * MB
HELD_BYTES: Final = 24 * MB
"""What all parts of the way may hold at once: buffers of the connections, and a piece here and there."""

FRAME: Final = b"\xff\xfb\x90\xc4" + bytes(413)
"""Of an MP3 at 128 kbit/s: 26 ms of silence."""


class Told:
    """A file that is made while it is read."""

    def __init__(self, piece: bytes, times: int) -> None:
        self._piece, self._times, self._at = piece, times, 0

    async def seek(self, offset: int, /) -> None:
        self._at = offset

    async def read(self, _size: int = -1, /) -> bytes:
        self._at += 1
        return self._piece if self._at <= self._times else b""


async def keep(desk: Desk, content: Told, mime_type: str, **more: str) -> str:
    """Have the operator keep a file as if the phone had sent it; gives its id."""
    about = urlencode({"to": demo.SOURCE, "mime_type": mime_type, **more})
    return (await desk.control.plain_file(f"/control/media?{about}", content))["media_id"]


async def keep_text(desk: Desk) -> str:
    return await keep(desk, Told(b"0123456789", 1), "text/plain")


def file_of(desk: Desk, media_id: str) -> Path:
    """Where the simulator keeps it."""
    return desk.data / "simulator.db.files" / f"media-{media_id}"


async def test_large_file_is_held_nowhere_whole_on_its_way_to_a_phone_and_back(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "large.pdf"
    with file.open("wb") as made:
        made.write(sample("pdf"))
        made.truncate(LARGE_BYTES)
    csrf = await desk.csrf()
    tracemalloc.start()

    with file.open("rb") as content:
        form = aiohttp.FormData({"csrf": csrf, "kind": "document"})
        form.add_field("file", content, filename="large.pdf", content_type="application/pdf")
        async with desk.http.post(f"{desk.base_url}{CHAT}/file", data=form) as answer:
            assert answer.status == 200, await answer.text()
    _, peak_up = tracemalloc.get_traced_memory()
    media_id = (await newest(desk))["media"]["id"]
    tracemalloc.reset_peak()
    async with desk.http.get(f"{desk.base_url}/phones/media/{media_id}") as answer:
        read = sum([len(piece) async for piece in answer.content.iter_chunked(MB)])
    _, peak_down = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert read == int(answer.headers["Content-Length"]) == LARGE_BYTES
    assert (peak_up < HELD_BYTES, peak_down < HELD_BYTES) == (True, True), (peak_up, peak_down)


@pytest.mark.parametrize(
    ("asked", "status", "content", "content_range"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=7-99", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=5-4", 200, b"0123456789", None),  # what is no range is passed over
        ("bytes=0-1,4-5", 200, b"0123456789", None),  # and so are several
        ("lines=0-1", 200, b"0123456789", None),
        (f"bytes={'9' * 40}-", 200, b"0123456789", None),
    ],
)
async def test_one_range_of_a_file_is_given(
    shared_desk: Desk, asked: str, status: int, content: bytes, content_range: str | None
) -> None:
    url = f"{shared_desk.base_url}/phones/media/{await keep_text(shared_desk)}"

    async with shared_desk.http.get(url, headers={"Range": asked}) as answer:
        read = await answer.read()

    assert (answer.status, answer.headers.get("Content-Range")) == (status, content_range)
    assert status == 416 or read == content
    assert answer.headers["Content-Length"] == str(len(read))
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer.headers["Content-Type"] == "application/octet-stream"


async def test_range_of_a_file_that_has_changed_since_is_the_whole(shared_desk: Desk) -> None:
    url = f"{shared_desk.base_url}/phones/media/{await keep_text(shared_desk)}"
    async with shared_desk.http.head(url) as head:
        etag = head.headers["ETag"]
        assert (head.status, head.headers["Content-Length"]) == (200, "10")

    for told, status in ((etag, 206), ('"another"', 200)):
        headers = {"Range": "bytes=1-2", "If-Range": told}
        async with shared_desk.http.get(url, headers=headers) as answer:
            assert answer.status == status


async def test_file_that_ends_early_ends_the_connection_and_does_not_look_whole(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    media_id = await keep(desk, Told(bytes(MB), 32), "application/pdf")
    url = f"{desk.base_url}/phones/media/{media_id}"

    async with desk.http.get(url) as answer:
        first = await answer.content.readexactly(MB)
        with file_of(desk, media_id).open("r+b") as file:
            file.truncate(16 * MB)
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()

    assert (answer.status, len(first)) == (200, MB)
    assert "defect" not in capsys.readouterr().err


async def test_file_is_let_go_of_when_the_visitor_leaves(desk: Desk) -> None:
    media_id = await keep(desk, Told(bytes(MB), 32), "application/pdf")
    file = file_of(desk, media_id)

    async with desk.http.get(f"{desk.base_url}/phones/media/{media_id}") as answer:
        await answer.content.readexactly(MB)
        assert is_open(file)
        answer.close()

    async def is_let_go() -> bool:
        return not is_open(file)

    await patiently(is_let_go)


async def test_file_that_somebody_looks_at_holds_up_no_exchange_of_the_state(tmp_path: Path) -> None:
    film, gate = tmp_path / "film", SwappableApp()
    film.write_bytes(bytes(4 * MB))

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        answer = await file_response(Request(scope), film, "video/mp4", {})
        await answer(scope, receive, send)

    gate.set_application(application)
    answer = await InProcessTransport(gate).open("GET", "/", {})
    await anext(aiter(answer))

    async with asyncio.timeout(HANGS_AFTER_S):
        await gate.close(ignored=0, timeout_s=10 * HANGS_AFTER_S)

    assert is_open(film)
    await answer.aclose()
    assert not is_open(film)


async def test_file_that_no_message_came_of_is_not_kept(desk: Desk) -> None:
    await desk.control.json("PUT", f"/control/phones/{ANN}", {"is_offline": True})
    form = aiohttp.FormData({"csrf": await desk.csrf(), "kind": "document"})
    form.add_field("file", sample("pdf"), filename="a.pdf", content_type="application/pdf")

    async with desk.http.post(f"{desk.base_url}{CHAT}/file", data=form) as answer:
        assert "This phone is offline." in await answer.text()

    assert (await desk.control.json("GET", "/control/media"))["media"] == []
    files = [one for one in desk.data.rglob("*") if one.is_file()]
    assert not [one for one in files if one.read_bytes() == sample("pdf")]


async def test_control_door_takes_a_file_as_it_is_and_says_what_is_wrong(desk: Desk) -> None:
    media_id = await keep(desk, Told(b"abc", 3), "text/plain", file_name="three.txt")
    shown = await desk.control.json("GET", f"/control/media/{media_id}")
    refused: list[int] = []

    for mime_type, to, more in (
        ("text/csv", demo.SOURCE, {}),
        ("text/plain", "15559999999", {}),
        ("text/plain", "", {}),
        ("text/plain", demo.SOURCE, {"colour": "red"}),
    ):
        with pytest.raises(ApiResponseError) as told:
            await keep(desk, Told(b"abc", 1), mime_type, **{"to": to, **more})
        refused.append(told.value.status)
    with pytest.raises(ApiResponseError) as elsewhere:
        await desk.control.plain_file("/control/reset", Told(b"{}", 1))

    assert (shown["file_name"], shown["size_bytes"], shown["is_inbound"]) == ("three.txt", 9, True)
    assert refused == [422, 404, 400, 400]
    assert elsewhere.value.status == 415


async def test_file_larger_than_its_kind_is_refused_while_it_comes(desk: Desk) -> None:
    content = Told(bytes(MB), 400)

    with pytest.raises(ApiResponseError, match="too big"):
        await keep(desk, content, "video/mp4")

    assert not [*(desk.data / "simulator.db.files").glob("media-*")]


async def test_snapshot_comes_with_its_length(desk: Desk) -> None:
    await desk.post("/simulator/snapshots", {"name": "mine"})
    [kept] = (await desk.control.json("GET", "/control/snapshots"))["snapshots"]

    async with desk.http.get(f"{desk.base_url}/simulator/snapshots/mine/content") as answer:
        content = await answer.read()

    assert answer.headers["Content-Length"] == str(len(content)) == str(kept["size_bytes"])
    assert answer.headers["Content-Disposition"] == 'attachment; filename="mine.waypost"'
    assert answer.headers["Content-Type"] == "application/zip"


async def test_sound_on_a_phone_is_sought_by_a_range(desk: Desk, tabs: Tabs) -> None:
    media_id = await keep(desk, Told(FRAME * 40, 600), "audio/mpeg")  # 10 MB, ten minutes
    media = {"type": "audio", "media": {"id": media_id}}
    message = {"to": demo.SOURCE, **media}
    await desk.control.json("POST", f"/control/phones/{ANN}/messages", message)
    tab = await tabs(f"/phones?show={ANN}&chats={demo.SOURCE}")
    answers: list[tuple[int, str]] = []
    tab.page.on(
        "response",
        lambda one: answers.append((one.status, one.headers.get("content-range", ""))) if media_id in one.url else None,
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
    assert {status for status, _ in answers} == {206}
    assert any(not told.startswith("bytes 0-") for _, told in answers)


async def newest(desk: Desk) -> dict[str, Any]:
    return (await desk.control.json("GET", f"/control/phones/{ANN}"))["messages"][-1]


def is_open(file: Path) -> bool:
    """Whether this process has it open."""
    for link in list(Path("/proc/self/fd").iterdir()):
        try:
            if link.readlink() == file:
                return True
        except OSError:
            continue
    return False
