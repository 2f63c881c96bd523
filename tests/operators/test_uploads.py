"""Media to the operator and back, over real connections."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import BodyPartReader, web

from tests.support.builders import APP, AT_MS, OPERATOR
from tests.support.media_samples import sample
from waypost.domain.app import OperatorAccount
from waypost.domain.media import UploadedMedia
from waypost.domain.outcome import Rejected, Unavailable
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.cloud.media_calls import may_have_token
from waypost.operators.contract import OperatorUpload

PNG: Final = sample("png", 70_000)
THREE_LINES: Final = "4::dmlkZW8=:ARa:e:1:2:3:ARb\n4::dmlkZW8=:ARc:e:1:2:3:ARd\n4::dmlkZW8=:ARe:e:1:2:3:ARf"

# fmt: off
ADDRESSES: Final = (
    ("https://graph.facebook.com", "https://lookaside.fbsbx.com/whatsapp/?mid=1", True),
    ("https://graph.facebook.com", "https://graph.facebook.com/x",                True),
    ("https://graph.facebook.com", "https://evil.test/x",                         False),
    ("https://graph.facebook.com", "https://fbsbx.com.evil.test/x",               False),
    ("https://graph.facebook.com", "https://evilfbsbx.com/x",                     False),
    ("https://graph.facebook.com", "http://lookaside.fbsbx.com/x",                False),
    ("https://graph.facebook.com", "https://lookaside.fbsbx.com:8443/x",          False),
    ("https://graph.facebook.com", "https://a@lookaside.fbsbx.com/x",             False),
    ("https://graph.facebook.com", "file:///etc/passwd",                          False),
    ("https://graph.facebook.com", "https://[broken/x",                           False),
    ("http://127.0.0.1:8081",      "http://127.0.0.1:8081/x",                     True),
    ("http://127.0.0.1:8081",      "http://127.0.0.1:8082/x",                     False),
    ("http://127.0.0.1:8081",      "https://lookaside.fbsbx.com/x",               False),
)
# fmt: on


@dataclass
class Shelf:
    """An operator's media side: keeps what it is sent, and breaks where a test says so.

    Attributes:
        break_after: how many bytes of an upload it takes before it hangs up; one for each try.
        error: answered to everything, where there is one.
    """

    account: OperatorAccount = OPERATOR
    uploaded: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    begun: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    resumed: list[int] = field(default_factory=list[int])
    content: bytes = b""
    break_after: list[int] = field(default_factory=list[int])
    error: tuple[int, dict[str, Any]] | None = None
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    download_status: int = 200
    asked: list[str] = field(default_factory=list[str])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.asked.append(f"{request.method} {request.path_qs} {request.headers['Authorization']}")
        if self.error is not None:
            return web.json_response(self.error[1], status=self.error[0])
        if path.endswith("/media"):
            return await self._media(request)
        if path.endswith("/uploads"):
            self.begun.append(dict(request.query))
            return web.json_response({"id": "upload:MTph?sig=ARa-b_c%2F"})
        if "upload:" in path and request.method == "POST":
            return await self._bytes(request)
        if "upload:" in path:
            return web.json_response({"id": "upload:MTph", "file_offset": len(self.content)})
        if path == "/bytes":
            return web.Response(body=self.content, status=self.download_status)
        return web.json_response(self.told)

    async def _media(self, request: web.Request) -> web.StreamResponse:
        found: dict[str, Any] = {}
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            content = bytes(await part.read())
            found[str(part.name)] = (content, part.filename, part.headers.get("Content-Type"))
        self.uploaded.append(found)
        return web.json_response({"id": "1037543291543636"})

    async def _bytes(self, request: web.Request) -> web.StreamResponse:
        offset = int(request.headers["file_offset"])
        self.resumed.append(offset)
        assert offset == len(self.content)
        most = self.break_after.pop(0) if self.break_after else None
        taken = 0
        async for part in request.content.iter_chunked(1000):
            if most is not None and taken + len(part) > most:
                assert request.transport is not None
                request.transport.abort()
                break
            self.content += part
            taken += len(part)
        return web.json_response({"h": THREE_LINES})


@dataclass
class Desk:
    """The adapter, the shelf behind it, and a file to upload."""

    adapter: CloudOperator
    shelf: Shelf
    media: UploadedMedia
    path: Path

    async def fetch(self) -> tuple[bytes, Rejected | Unavailable | None]:
        """What is fetched, and what ended it."""
        content, outcome = b"", None
        async for part in self.adapter.fetch_media(self.shelf.account, "77", phone_number_id=APP.phone_number_id):
            if isinstance(part, bytes):
                content += part
            else:
                outcome = part
        return content, outcome


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    shelf = Shelf()
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", shelf.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    shelf.account = replace(OPERATOR, base_url=f"http://127.0.0.1:{runner.addresses[0][1]}")
    path = tmp_path / "file"
    path.write_bytes(PNG)
    media = UploadedMedia(
        id="1234567890123456",
        partner_id=7,
        app_id=APP.id,
        handle=None,
        mime_type="image/png",
        size_bytes=len(PNG),
        sha256=hashlib.sha256(PNG).hexdigest(),
        file_name="größe & co.png",
        created_on_ms=AT_MS,
        expires_on_ms=AT_MS + 1,
    )
    adapter = CloudOperator(timeout_s=5)
    await adapter.open()
    yield Desk(adapter, shelf, media, path)
    await adapter.close()
    await runner.cleanup()


async def test_file_goes_to_the_number_with_type_and_name(desk: Desk) -> None:
    outcome = await desk.adapter.upload_media(desk.shelf.account, APP, desk.media, desk.path)

    assert isinstance(outcome, OperatorUpload)
    assert outcome.operator_id == "1037543291543636"
    [parts] = desk.shelf.uploaded
    assert parts["messaging_product"][0] == b"whatsapp"
    assert parts["type"][0] == b"image/png"
    assert parts["file"] == (PNG, "größe  co.png", "image/png")
    assert desk.shelf.asked == [f"POST /v25.0/{APP.phone_number_id}/media Bearer operator-token"]


async def test_refused_file_is_rejected_with_the_operators_words(desk: Desk) -> None:
    words = "(#100) Param file must be a file with one of the following types: image/png."
    desk.shelf.error = (400, {"error": {"code": 100, "message": words}})

    outcome = await desk.adapter.upload_media(desk.shelf.account, APP, desk.media, desk.path)

    assert outcome == Rejected(100, words)


async def test_upload_waits_for_an_operator_that_is_not_there(desk: Desk) -> None:
    account = replace(desk.shelf.account, base_url="http://127.0.0.1:9")

    outcomes = [
        await desk.adapter.upload_media(account, APP, desk.media, desk.path),
        await desk.adapter.upload_sample(account, desk.media, desk.path),
    ]

    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)


@pytest.mark.parametrize("status", [500, 503, 429, 302])
async def test_upload_waits_for_an_operator_in_trouble(status: int, desk: Desk) -> None:
    desk.shelf.error = (status, {})

    outcome = await desk.adapter.upload_media(desk.shelf.account, APP, desk.media, desk.path)

    assert isinstance(outcome, Unavailable)


async def test_sample_is_sent_to_a_session_and_its_handle_keeps_its_lines(desk: Desk) -> None:
    outcome = await desk.adapter.upload_sample(desk.shelf.account, desk.media, desk.path)

    assert isinstance(outcome, OperatorUpload)
    assert outcome.operator_id == THREE_LINES
    assert desk.shelf.content == PNG
    assert desk.shelf.begun == [{"file_name": "größe  co.png", "file_length": str(len(PNG)), "file_type": "image/png"}]
    assert desk.shelf.asked[0].split(" ")[1] == (
        "/v25.0/3000000000000003/uploads"
        f"?file_name=gr%C3%B6%C3%9Fe%20%20co.png&file_length={len(PNG)}&file_type=image%2Fpng"
    )


async def test_session_is_appended_as_it_is_and_its_token_is_an_oauth_one(desk: Desk) -> None:
    await desk.adapter.upload_sample(desk.shelf.account, desk.media, desk.path)

    assert desk.shelf.asked[1] == "POST /v25.0/upload:MTph?sig=ARa-b_c%2F OAuth operator-token"


async def test_broken_upload_goes_on_where_it_broke(desk: Desk) -> None:
    desk.shelf.break_after = [20_000, 0, 30_000]

    outcome = await desk.adapter.upload_sample(desk.shelf.account, desk.media, desk.path)

    assert isinstance(outcome, OperatorUpload)
    assert desk.shelf.content == PNG
    assert desk.shelf.resumed == [0, 20_000, 20_000, 50_000]


async def test_upload_that_breaks_again_and_again_is_left_for_later(desk: Desk) -> None:
    desk.shelf.break_after = [0] * 20

    outcome = await desk.adapter.upload_sample(desk.shelf.account, desk.media, desk.path)

    assert isinstance(outcome, Unavailable)
    assert len(desk.shelf.resumed) == 5


@pytest.mark.parametrize("in_base64", [False, True])
async def test_bytes_are_fetched_and_held_to_their_digest(in_base64: bool, desk: Desk) -> None:
    digest = hashlib.sha256(PNG)
    desk.shelf.content = PNG
    desk.shelf.told = {
        "url": f"{desk.shelf.account.base_url}/bytes?a=1%2F2",
        "sha256": base64.b64encode(digest.digest()).decode() if in_base64 else digest.hexdigest(),
    }

    content, outcome = await desk.fetch()

    assert (content, outcome) == (PNG, None)
    assert desk.shelf.asked == [
        f"GET /v25.0/77?phone_number_id={APP.phone_number_id} Bearer operator-token",
        "GET /bytes?a=1%2F2 Bearer operator-token",
    ]


async def test_other_bytes_than_announced_are_not_taken(desk: Desk) -> None:
    desk.shelf.content = PNG
    desk.shelf.told = {"url": f"{desk.shelf.account.base_url}/bytes", "sha256": "0" * 64}

    _, outcome = await desk.fetch()

    assert isinstance(outcome, Unavailable)


async def test_token_does_not_go_to_another_host(desk: Desk) -> None:
    other = desk.shelf.account.base_url.replace("127.0.0.1", "localhost")
    desk.shelf.told = {"url": f"{other}/bytes"}

    content, outcome = await desk.fetch()

    assert content == b""
    assert isinstance(outcome, Rejected)
    assert len(desk.shelf.asked) == 1


async def test_medium_that_the_operator_does_not_know_is_rejected(desk: Desk) -> None:
    desk.shelf.error = (400, {"error": {"code": 100, "error_subcode": 33, "message": "no object"}})

    assert await desk.fetch() == (b"", Rejected(100, "no object"))


async def test_address_that_has_died_meanwhile_is_asked_for_anew(desk: Desk) -> None:
    desk.shelf.told = {"url": f"{desk.shelf.account.base_url}/bytes"}
    desk.shelf.download_status = 404

    _, outcome = await desk.fetch()

    assert isinstance(outcome, Unavailable)


@pytest.mark.parametrize(("base_url", "url", "may"), ADDRESSES)
def test_token_goes_to_the_operator_only(base_url: str, url: str, may: bool) -> None:
    assert may_have_token(base_url, url) is may


async def test_many_uploads_run_side_by_side(desk: Desk) -> None:
    outcomes = await asyncio.gather(
        *(desk.adapter.upload_media(desk.shelf.account, APP, desk.media, desk.path) for _ in range(8))
    )

    assert all(isinstance(outcome, OperatorUpload) for outcome in outcomes)
    assert len(desk.shelf.uploaded) == 8
