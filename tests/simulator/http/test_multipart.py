"""Multipart forms: any content in chunks of any size is parsed or rejected."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waypost.base.http.multipart import MAX_PARTS, PartHead
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.requests import MultipartForm

BOUNDARY = b"==b"
PIECES = st.lists(st.sampled_from([b"\r\n--==b", b"--==b", b"\r\n", b"--", b"\r", b"a", b"\x00"]))


async def chunked(raw: bytes, size: int) -> AsyncIterator[bytes]:
    for index in range(0, len(raw), size):
        yield raw[index : index + size]


async def parts_of(raw: bytes, size: int) -> list[tuple[PartHead, bytes]]:
    form = MultipartForm("multipart/form-data; boundary===b", chunked(raw, size))
    parts: list[tuple[PartHead, bytes]] = []
    while (head := await form.next_part()) is not None:
        parts.append((head, b"".join([chunk async for chunk in form.chunks()])))
    return parts


CONTENTS = PIECES.map(b"".join).filter(lambda content: b"\r\n--==b" not in b"\r\n" + content)


def form_with(contents: list[bytes]) -> bytes:
    parts = [
        b'--==b\r\nContent-Disposition: form-data; name="p%d"; filename="f"\r\n\r\n%s\r\n' % (index, content)
        for index, content in enumerate(contents)
    ]
    return b"".join(parts) + b"--==b--\r\n"


@given(st.lists(CONTENTS, max_size=MAX_PARTS), st.integers(1, 40))
@example([b""] * MAX_PARTS, 1)
def test_part_contents_are_returned_unchanged(contents: list[bytes], size: int) -> None:
    parts = asyncio.run(parts_of(form_with(contents), size))

    assert [content for _, content in parts] == contents
    assert [head.name for head, _ in parts] == [f"p{index}" for index in range(len(contents))]


def test_a_form_with_more_parts_than_are_read_is_rejected_with_the_limit() -> None:
    with pytest.raises(GraphApiError) as raised:
        asyncio.run(parts_of(form_with([b""] * (MAX_PARTS + 1)), 1))

    assert f"more than {MAX_PARTS} parts" in str(raised.value.error)


async def is_read(raw: bytes, size: int) -> bool:
    try:
        return all(head.name for head, _ in await parts_of(raw, size))
    except GraphApiError as error:
        return "not a readable form" in str(error.error)


@given(st.one_of(st.binary(), PIECES.map(b"".join)), st.integers(1, 40))
def test_any_input_is_parsed_or_rejected(tail: bytes, size: int) -> None:
    head = b"--==b\r\nContent-Disposition: form-data; name=a\r\n\r\n"

    for raw in (tail, head + tail, head + b"x\r\n--==b" + tail):
        assert asyncio.run(is_read(raw, size))


def test_names_may_be_quoted_and_escaped() -> None:
    raw = (
        b"--==b\r\nContent-Disposition: form-data; name=\"a b\"; filename*=UTF-8''%E2%82%AC.png\r\n"
        b"CONTENT-TYPE: Image/PNG; x=y\r\n\r\n\r\n--==b--"
    )

    [(head, content)] = asyncio.run(parts_of(raw, 7))

    assert head == PartHead("a b", "€.png", "image/png")
    assert content == b""
