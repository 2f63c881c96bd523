"""Multipart bodies are parsed while they arrive, however they are cut into chunks."""

from collections.abc import Iterable, MutableMapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.api.requests import Request, read_parts
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
    """Return the heads of the parts, and the bytes between them joined."""
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
    ]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0)

    scope = {"headers": [(b"content-type", content_type.encode())]}
    parts: list[PartHead | bytes] = []
    async for item in read_parts(Request(scope, b"", {}, receive)):
        last = parts[-1] if parts else None
        if isinstance(item, bytes) and isinstance(last, bytes):
            parts[-1] = last + item
        else:
            parts.append(item)
    return parts


def body_with_part(disposition: str, *headers: str) -> bytes:
    lines = "\r\n".join((f"Content-Disposition: {disposition}", *headers))
    return b"--x\r\n" + lines.encode() + b"\r\n\r\nHello\r\n--x--\r\n"


@given(cuts=st.lists(st.integers(0, len(BODY)), max_size=12))
async def test_parts_do_not_depend_on_how_the_body_is_cut(cuts: Sequence[int]) -> None:
    positions = [0, *sorted(cuts), len(BODY)]
    chunks = [BODY[a:b] for a, b in pairwise(positions)]

    parts = await read(chunks)

    assert parts == [FIELD, b"image/png", FILE, b"\x89PNG\r\n--\r\n--y"]


@given(body=st.binary(max_size=300))
async def test_any_bytes_are_read_or_rejected(body: bytes) -> None:
    for content in (body, BODY[: len(body)] + body, b"--x\r\n" + body):
        assert await error_code_of(content) in (None, ErrorCode.UNREADABLE)


@given(content_type=st.text(max_size=80))
async def test_any_content_type_is_read_or_rejected(content_type: str) -> None:
    for text in (content_type, f"multipart/form-data; {content_type}"):
        sent = text.encode("utf-8", "replace").decode()

        assert await error_code_of(BODY, sent) in (None, ErrorCode.UNREADABLE)


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
    [head, content] = await read([body_with_part(disposition)])

    assert isinstance(head, PartHead)
    assert (head.name, head.file_name, content) == ("file", name, b"Hello")


@pytest.mark.parametrize(
    ("count", "is_accepted"), [(MAX_PART_HEADERS - 1, True), (MAX_PART_HEADERS, False), (10_000, False)]
)
async def test_headers_are_counted(count: int, is_accepted: bool) -> None:
    body = body_with_part('form-data; name="file"', *(f"X-{number}: 1" for number in range(count)))

    assert await accepts(body) is is_accepted


@pytest.mark.parametrize(("size", "is_accepted"), [(MAX_PART_HEADER_BYTES // 2, True), (10_000, False)])
async def test_headers_are_bounded(size: int, is_accepted: bool) -> None:
    assert await accepts(body_with_part('form-data; name="file"', f"X: {'x' * size}")) is is_accepted


async def test_disconnect_of_the_client_is_no_api_error() -> None:
    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    scope = {"headers": [(b"content-type", b"multipart/form-data; boundary=x")]}

    with pytest.raises(ConnectionError):
        async for _ in read_parts(Request(scope, b"", {}, receive)):
            pass


async def accepts(body: bytes) -> bool:
    return await error_code_of(body) is None


async def error_code_of(body: bytes, content_type: str = "multipart/form-data; boundary=x") -> ErrorCode | None:
    try:
        await read([body], content_type)
    except ApiError as error:
        return error.code
    return None
