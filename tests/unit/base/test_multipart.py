"""Multipart bodies are read as they come, whatever the parts they come in."""

from collections.abc import Iterable, MutableMapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.api.http.multipart import read_parts
from waypost.api.http.requests import Request
from waypost.base.http.multipart import MAX_PART_HEADER_BYTES, MAX_PART_HEADERS, PartHead
from waypost.domain.errors import ApiError, ErrorCode

BODY = (
    b'--x\r\nContent-Disposition: form-data; name="file_type"\r\n\r\nimage/png\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n'
    b"Content-Type: Image/PNG; a=b\r\n\r\n\x89PNG\r\n--\r\n--y\r\n--x--\r\n"
)
FIELD, FILE = PartHead("file_type", None, ""), PartHead("file", "a.png", "image/png")


async def read(
    chunks: Iterable[bytes], content_type: str = "multipart/form-data; boundary=x"
) -> list[PartHead | bytes]:
    """The heads, and the bytes between put together."""
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
    ]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0)

    scope = {"headers": [(b"content-type", content_type.encode())]}
    found: list[PartHead | bytes] = []
    async for one in read_parts(Request(scope, b"", {}, receive)):
        last = found[-1] if found else None
        if isinstance(one, bytes) and isinstance(last, bytes):
            found[-1] = last + one
        else:
            found.append(one)
    return found


def part(disposition: str, *headers: str) -> bytes:
    lines = "\r\n".join((f"Content-Disposition: {disposition}", *headers))
    return b"--x\r\n" + lines.encode() + b"\r\n\r\nHello\r\n--x--\r\n"


@given(cuts=st.lists(st.integers(0, len(BODY)), max_size=12))
async def test_parts_do_not_depend_on_how_the_body_is_cut(cuts: Sequence[int]) -> None:
    places = [0, *sorted(cuts), len(BODY)]
    chunks = [BODY[a:b] for a, b in pairwise(places)]

    found = await read(chunks)

    assert found == [FIELD, b"image/png", FILE, b"\x89PNG\r\n--\r\n--y"]


@given(body=st.binary(max_size=300))
async def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for content in (body, BODY[: len(body)] + body, b"--x\r\n" + body):
        assert await reason_of(content) in (None, ErrorCode.UNREADABLE)


@given(content_type=st.text(max_size=80))
async def test_any_content_type_is_read_or_refused(content_type: str) -> None:
    for text in (content_type, f"multipart/form-data; {content_type}"):
        sent = text.encode("utf-8", "replace").decode()

        assert await reason_of(BODY, sent) in (None, ErrorCode.UNREADABLE)


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('form-data; name="file"; filename="größe.png"', "größe.png"),
        ('form-data; name="file"; filename="C:\\\\tmp\\\\a.png"', "a.png"),
        ('form-data; name="file"; filename="../../etc/passwd"', "passwd"),
        ('form-data; name="file"; filename="a\tb.png"', "ab.png"),
        ('form-data; name="file"; filename=""', ""),
        ('form-data; name="file"', None),
        ("form-data; name=file; filename=a.png", "a.png"),
        ("form-data; name=file; filename=\"a.png\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png", "größe.png"),
        ("form-data; name=file; filename*=utf-8'en'a%20b.png", "a b.png"),
    ],
)
async def test_file_name_is_its_last_segment(disposition: str, name: str | None) -> None:
    [head, content] = await read([part(disposition)])

    assert isinstance(head, PartHead)
    assert (head.name, head.file_name, content) == ("file", name, b"Hello")


@pytest.mark.parametrize(("count", "taken"), [(MAX_PART_HEADERS - 1, True), (MAX_PART_HEADERS, False), (10_000, False)])
async def test_headers_are_counted(count: int, taken: bool) -> None:
    body = part('form-data; name="file"', *(f"X-{number}: 1" for number in range(count)))

    assert await is_taken(body) is taken


@pytest.mark.parametrize(("size", "taken"), [(MAX_PART_HEADER_BYTES // 2, True), (10_000, False)])
async def test_headers_are_bounded(size: int, taken: bool) -> None:
    assert await is_taken(part('form-data; name="file"', f"X: {'x' * size}")) is taken


async def test_client_that_goes_away_is_no_refusal() -> None:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    scope = {"headers": [(b"content-type", b"multipart/form-data; boundary=x")]}

    with pytest.raises(ConnectionError):
        async for _ in read_parts(Request(scope, b"", {}, receive)):
            pass


async def is_taken(body: bytes) -> bool:
    return await reason_of(body) is None


async def reason_of(body: bytes, content_type: str = "multipart/form-data; boundary=x") -> ErrorCode | None:
    try:
        await read([body], content_type)
    except ApiError as refused:
        return refused.code
    return None
