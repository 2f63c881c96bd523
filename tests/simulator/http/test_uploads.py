"""Resumable uploads: sessions, offsets, handles."""

import asyncio
import base64
import io
import re
import secrets

import pytest

from tests.simulator.conftest import TOKEN, Bench, SimulatorResponse
from tests.support.manual_clock import ManualClock

APP = "3000000000000003"
CONTENT = b"\xff\xd8\xff" + b"picture" * 1000
MB = 1024 * 1024
DAY_MS = 24 * 3600 * 1000


async def begin(bench: Bench, length: int = len(CONTENT), kind: str = "image/jpeg") -> str:
    query = {"file_name": "a.jpg", "file_length": str(length), "file_type": kind}
    response = await bench.graph("POST", f"{APP}/uploads", params=query)
    assert response.status == 200, response.body
    return response.body["id"]


async def put(bench: Bench, session: str, content: bytes, offset: int | str = 0) -> SimulatorResponse:
    headers = {"Authorization": f"OAuth {TOKEN}", "file_offset": str(offset)}
    return await bench.request("POST", f"/v25.0/{session}", data=io.BytesIO(content), headers=headers)


async def upload_file(bench: Bench, content: bytes = CONTENT, kind: str = "image/jpeg") -> str:
    response = await put(bench, await begin(bench, len(content), kind), content)
    return response.body["h"]


async def is_valid_handle(bench: Bench, handle: str, kind: str = "IMAGE") -> bool:
    """True if a template may refer to the handle."""
    header = {"type": "HEADER", "format": kind, "example": {"header_handle": [handle]}}
    body = {"type": "BODY", "text": "Hello there"}
    created = await bench.create_template([header, body], name=f"a_{secrets.token_hex(4)}")
    return created.status == 200


async def test_complete_upload_returns_a_handle(bench: Bench) -> None:
    session = await begin(bench)

    response = await put(bench, session, CONTENT)

    mime = base64.b64encode(b"image/jpeg").decode()
    assert session.startswith("upload:")
    assert "?sig=" in session
    assert re.fullmatch(rf"4::{mime}:AR[\w-]+:e:\d{{10}}:{APP}:\d+:AR[\w-]+", response.body["h"])
    listed = await bench.control("GET", "handles")
    assert listed.body["handles"][0]["size_bytes"] == len(CONTENT)


async def test_upload_resumes_at_its_offset(bench: Bench) -> None:
    session = await begin(bench)

    partly = await put(bench, session, CONTENT[:1000])
    shown = await bench.graph("GET", session)
    wrong = await put(bench, session, CONTENT[500:], 500)
    await bench.restart()
    rest = await put(bench, session, CONTENT[1000:], 1000)

    assert partly.body == shown.body == {"id": session, "file_offset": 1000}
    assert (wrong.status, wrong.error["code"]) == (400, 100)
    assert rest.body["h"].startswith("4::")


async def test_broken_connection_keeps_the_bytes_received(bench: Bench) -> None:
    content = bytes(3 * MB)
    session = await begin(bench, len(content))
    host, port = bench.base.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST /v25.0/{session} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"file_offset: 0\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content[: 2 * MB])

    async def current_offset() -> int:
        return (await bench.graph("GET", session)).body["file_offset"]

    while await current_offset() < MB:
        pass
    writer.close()
    rest, offset = SimulatorResponse(0, {}, {}), 0
    while rest.status != 200:  # the session is busy until the bytes received are written
        offset = await current_offset()
        rest = await put(bench, session, content[offset:], offset)

    assert MB <= offset <= 2 * MB
    assert "h" in rest.body


async def test_more_bytes_than_announced_are_rejected(bench: Bench) -> None:
    session = await begin(bench)
    await put(bench, session, CONTENT[:10])

    response = await put(bench, session, CONTENT[10:] + b"x", 10)

    assert (response.status, response.error["code"]) == (400, 100)
    assert (await bench.graph("GET", session)).body["file_offset"] == 10


@pytest.mark.parametrize("offset", ["x", "-1", "1.5", ""])
async def test_offset_must_be_a_whole_number(bench: Bench, offset: str) -> None:
    response = await put(bench, await begin(bench), CONTENT, offset)

    assert response.error["code"] == 100


async def test_offset_is_required(bench: Bench) -> None:
    response = await bench.graph("POST", await begin(bench), data=CONTENT)

    assert "file_offset" in response.error["message"]


@pytest.mark.parametrize(
    "query",
    [
        {"file_length": "0"},
        {"file_length": "104857601"},
        {"file_length": ""},
        {"file_type": "audio/ogg"},
        {"file_type": ""},
    ],
)
async def test_session_needs_a_length_and_a_known_type(bench: Bench, query: dict[str, str]) -> None:
    good = {"file_length": "104857600", "file_type": "video/mp4"}

    accepted = await bench.graph("POST", f"{APP}/uploads", params=good)
    rejected = await bench.graph("POST", f"{APP}/uploads", params={**good, **query})

    assert accepted.status == 200
    assert (rejected.status, rejected.error["code"]) == (400, 100)


async def test_session_of_another_app_or_with_a_wrong_signature_is_not_found(bench: Bench) -> None:
    session = await begin(bench)
    account = {"name": "Two", "token": "token-2", "app_id": "3000000000000033", "app_secret": "s"}
    await bench.control("PUT", "accounts/1000000000000011", account)

    stranger = await bench.graph("GET", session, token="token-2")
    forged = await bench.graph("GET", session + "x")
    other_app = await bench.graph("POST", f"{APP}/uploads", token="token-2")
    escaped = await bench.graph("GET", session.replace("?", "%3F"))

    for rejected in (stranger, forged, other_app):
        assert (rejected.status, rejected.error["error_subcode"]) == (400, 33)
    assert escaped.status == 200


@pytest.mark.parametrize(("size", "lines"), [(8 * MB, 1), (8 * MB + 1, 3)])
async def test_long_video_has_a_handle_of_three_lines(bench: Bench, size: int, lines: int) -> None:
    handle = await upload_file(bench, b"v" * size, "video/mp4")

    assert len(handle.split("\n")) == lines
    assert await is_valid_handle(bench, handle, "VIDEO")
    assert not await is_valid_handle(bench, handle + "\n4::x", "VIDEO")
    assert not await is_valid_handle(bench, handle, "IMAGE")


async def test_handle_is_valid_until_it_expires(slow: Bench, clock: ManualClock) -> None:
    first, second = await upload_file(slow), await upload_file(slow)

    expired = await slow.control("POST", "handles/expire", {"handle": first})
    again = await slow.control("POST", "handles/expire", {"handle": first})
    valid = [await is_valid_handle(slow, handle) for handle in (first, second, "4::x")]
    clock.advance(ms=30 * DAY_MS)

    assert (expired.status, again.status) == (200, 404)
    assert valid == [False, True, False]
    assert not await is_valid_handle(slow, second)


async def test_handle_survives_a_restart(bench: Bench) -> None:
    handle = await upload_file(bench)

    await bench.restart()

    assert await is_valid_handle(bench, handle)
