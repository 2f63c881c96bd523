"""Pages of the API reference are made once; a client that has one gets 304."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from starlette.routing import Router

from waypost.operations import openapi
from waypost.operations.docs import SLICE_BYTES, DocsPages

PAGES = ["/openapi.json", "/docs", "/docs/post-wa-api-v1-msg"]


@pytest.fixture
def pages() -> Router:
    return Router(routes=list(DocsPages("http://127.0.0.1:1").routes()))


async def get(pages: Router, path: str, **headers: str) -> tuple[int, dict[str, str], list[bytes]]:
    """Return status, headers and slices of the body."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": raw, "root_path": ""}
    await pages(scope, receive, send)
    received = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], received, [message["body"] for message in sent[1:]]


@pytest.mark.parametrize("path", PAGES)
async def test_all_who_request_a_page_at_once_get_the_same_bytes_and_not_copies(pages: Router, path: str) -> None:
    responses = await asyncio.gather(*(get(pages, path) for _ in range(5)))

    assert len({tuple(map(id, slices)) for _, _, slices in responses}) == 1


@pytest.mark.parametrize("path", PAGES)
async def test_client_gets_the_page_plain_compressed_or_not_at_all(pages: Router, path: str) -> None:
    _, plain, slices = await get(pages, path)
    _, compressed, packed = await get(pages, path, accept_encoding="br, gzip;q=0.8")

    body = b"".join(slices)
    assert gzip.decompress(b"".join(packed)) == body
    assert int(plain["content-length"]) == len(body)
    assert (compressed["content-encoding"], compressed["vary"]) == ("gzip", "Accept-Encoding")
    assert plain["etag"] != compressed["etag"]
    assert max(map(len, slices)) <= SLICE_BYTES
    for headers, accepted in ((plain, "gzip;q=0"), (compressed, "gzip")):
        again = await get(pages, path, accept_encoding=accepted, if_none_match=f'"x", W/{headers["etag"]}')
        assert (again[0], again[2], again[1]["etag"]) == (304, [b""], headers["etag"])


async def test_document_is_json_of_the_whole_api(pages: Router) -> None:
    _, headers, slices = await get(pages, "/openapi.json")

    assert headers["content-type"] == "application/json"
    assert json.loads(b"".join(slices)) == openapi.make_document("http://127.0.0.1:1")


async def test_page_that_fails_says_what_to_do_next_and_is_made_again(
    pages: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Break a table, as an example of any defect: the log of the test has it."""
    path = "/docs/post-wa-api-v1-msg"
    with monkeypatch.context() as broken:
        broken.delitem(openapi.SCHEMES, "apiKey")
        status, _, slices = await get(pages, path)

    assert status == 500
    for link in (path, "/openapi.json", "/docs"):
        assert f'href="{link}"'.encode() in b"".join(slices)
    assert (await get(pages, path))[0] == 200


async def test_page_of_an_unknown_operation_costs_no_list_of_all(pages: Router) -> None:
    status, _, slices = await get(pages, "/docs/" + "post-wa-" * 900)

    assert status == 404
    assert len(b"".join(slices)) < 4_000
