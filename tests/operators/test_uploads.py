"""Media uploads to the operator and downloads from it, over real connections."""

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
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.cloud.media_calls import may_have_token
from waypost.operators.contract import OperatorUpload

PNG: Final = sample("png", 70_000)
THREE_LINES: Final = "4::dmlkZW8=:ARa:e:1:2:3:ARb\n4::dmlkZW8=:ARc:e:1:2:3:ARd\n4::dmlkZW8=:ARe:e:1:2:3:ARf"

# fmt: off
TOKEN_URLS: Final = (
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
class MediaServer:
    """An operator's media API: stores what it receives, and breaks connections where a test says so.

    Attributes:
        break_after: how many bytes of an upload it reads before it disconnects; one for each attempt.
        error: the response to every request, if set.
    """

    account: OperatorAccount = OPERATOR
    uploaded: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sessions: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    offsets: list[int] = field(default_factory=list[int])
    content: bytes = b""
    break_after: list[int] = field(default_factory=list[int])
    error: tuple[int, dict[str, Any]] | None = None
    media_record: dict[str, Any] = field(default_factory=dict[str, Any])
    download_status: int = 200
    requests: list[str] = field(default_factory=list[str])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.requests.append(f"{request.method} {request.path_qs} {request.headers['Authorization']}")
        if self.error is not None:
            return web.json_response(self.error[1], status=self.error[0])
        if path.endswith("/media"):
            return await self._receive_upload(request)
        if path.endswith("/uploads"):
            self.sessions.append(dict(request.query))
            return web.json_response({"id": "upload:MTph?sig=ARa-b_c%2F"})
        if "upload:" in path and request.method == "POST":
            return await self._receive_session_bytes(request)
        if "upload:" in path:
            return web.json_response({"id": "upload:MTph", "file_offset": len(self.content)})
        if path == "/bytes":
            return web.Response(body=self.content, status=self.download_status)
        return web.json_response(self.media_record)

    async def _receive_upload(self, request: web.Request) -> web.StreamResponse:
        fields: dict[str, Any] = {}
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            content = bytes(await part.read())
            fields[str(part.name)] = (content, part.filename, part.headers.get("Content-Type"))
        self.uploaded.append(fields)
        return web.json_response({"id": "1037543291543636"})

    async def _receive_session_bytes(self, request: web.Request) -> web.StreamResponse:
        offset = int(request.headers["file_offset"])
        self.offsets.append(offset)
        assert offset == len(self.content)
        limit = self.break_after.pop(0) if self.break_after else None
        received = 0
        async for part in request.content.iter_chunked(1000):
            if limit is not None and received + len(part) > limit:
                assert request.transport is not None
                request.transport.abort()
                break
            self.content += part
            received += len(part)
        return web.json_response({"h": THREE_LINES})


@dataclass
class UploadHarness:
    """The adapter, the media server behind it, and a file to upload."""

    adapter: CloudOperator
    server: MediaServer
    media: UploadedMedia
    path: Path

    async def fetch(self) -> tuple[bytes, OperatorRejected | OperatorUnavailable | None]:
        """Fetch a medium; return its bytes, and the outcome that ended it, if any."""
        content, outcome = b"", None
        async for part in self.adapter.fetch_media(self.server.account, "77", phone_number_id=APP.phone_number_id):
            if isinstance(part, bytes):
                content += part
            else:
                outcome = part
        return content, outcome


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[UploadHarness]:
    server = MediaServer()
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.account = replace(OPERATOR, base_url=f"http://127.0.0.1:{runner.addresses[0][1]}")
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
    yield UploadHarness(adapter, server, media, path)
    await adapter.close()
    await runner.cleanup()


async def test_file_is_uploaded_for_the_number_with_type_and_name(harness: UploadHarness) -> None:
    outcome = await harness.adapter.upload_media(harness.server.account, APP, harness.media, harness.path)

    assert isinstance(outcome, OperatorUpload)
    assert outcome.operator_id == "1037543291543636"
    [parts] = harness.server.uploaded
    assert parts["messaging_product"][0] == b"whatsapp"
    assert parts["type"][0] == b"image/png"
    assert parts["file"] == (PNG, "größe  co.png", "image/png")
    assert harness.server.requests == [f"POST /v25.0/{APP.phone_number_id}/media Bearer operator-token"]


async def test_unsupported_file_is_rejected_with_the_operators_text(harness: UploadHarness) -> None:
    text = "(#100) Param file must be a file with one of the following types: image/png."
    harness.server.error = (400, {"error": {"code": 100, "message": text}})

    outcome = await harness.adapter.upload_media(harness.server.account, APP, harness.media, harness.path)

    assert outcome == OperatorRejected(100, text)


async def test_upload_to_an_unreachable_operator_is_unavailable(harness: UploadHarness) -> None:
    account = replace(harness.server.account, base_url="http://127.0.0.1:9")

    outcomes = [
        await harness.adapter.upload_media(account, APP, harness.media, harness.path),
        await harness.adapter.upload_sample(account, harness.media, harness.path),
    ]

    assert all(isinstance(outcome, OperatorUnavailable) for outcome in outcomes)


@pytest.mark.parametrize("status", [500, 503, 429, 302])
async def test_upload_to_a_failing_operator_is_unavailable(status: int, harness: UploadHarness) -> None:
    harness.server.error = (status, {})

    outcome = await harness.adapter.upload_media(harness.server.account, APP, harness.media, harness.path)

    assert isinstance(outcome, OperatorUnavailable)


async def test_sample_is_sent_to_an_upload_session_and_its_handle_keeps_its_lines(harness: UploadHarness) -> None:
    outcome = await harness.adapter.upload_sample(harness.server.account, harness.media, harness.path)

    assert isinstance(outcome, OperatorUpload)
    assert outcome.operator_id == THREE_LINES
    assert harness.server.content == PNG
    assert harness.server.sessions == [
        {"file_name": "größe  co.png", "file_length": str(len(PNG)), "file_type": "image/png"}
    ]
    assert harness.server.requests[0].split(" ")[1] == (
        "/v25.0/3000000000000003/uploads"
        f"?file_name=gr%C3%B6%C3%9Fe%20%20co.png&file_length={len(PNG)}&file_type=image%2Fpng"
    )


async def test_session_id_is_appended_unchanged_and_the_token_is_an_oauth_token(harness: UploadHarness) -> None:
    await harness.adapter.upload_sample(harness.server.account, harness.media, harness.path)

    assert harness.server.requests[1] == "POST /v25.0/upload:MTph?sig=ARa-b_c%2F OAuth operator-token"


async def test_interrupted_upload_is_resumed_at_its_offset(harness: UploadHarness) -> None:
    harness.server.break_after = [20_000, 0, 30_000]

    outcome = await harness.adapter.upload_sample(harness.server.account, harness.media, harness.path)

    assert isinstance(outcome, OperatorUpload)
    assert harness.server.content == PNG
    assert harness.server.offsets == [0, 20_000, 20_000, 50_000]


async def test_upload_that_is_interrupted_repeatedly_is_unavailable(harness: UploadHarness) -> None:
    harness.server.break_after = [0] * 20

    outcome = await harness.adapter.upload_sample(harness.server.account, harness.media, harness.path)

    assert isinstance(outcome, OperatorUnavailable)
    assert len(harness.server.offsets) == 5


@pytest.mark.parametrize("in_base64", [False, True])
async def test_bytes_are_fetched_and_compared_with_their_digest(in_base64: bool, harness: UploadHarness) -> None:
    digest = hashlib.sha256(PNG)
    harness.server.content = PNG
    harness.server.media_record = {
        "url": f"{harness.server.account.base_url}/bytes?a=1%2F2",
        "sha256": base64.b64encode(digest.digest()).decode() if in_base64 else digest.hexdigest(),
    }

    content, outcome = await harness.fetch()

    assert (content, outcome) == (PNG, None)
    assert harness.server.requests == [
        f"GET /v25.0/77?phone_number_id={APP.phone_number_id} Bearer operator-token",
        "GET /bytes?a=1%2F2 Bearer operator-token",
    ]


async def test_bytes_with_another_digest_are_not_accepted(harness: UploadHarness) -> None:
    harness.server.content = PNG
    harness.server.media_record = {"url": f"{harness.server.account.base_url}/bytes", "sha256": "0" * 64}

    _, outcome = await harness.fetch()

    assert isinstance(outcome, OperatorUnavailable)


async def test_token_is_not_sent_to_another_host(harness: UploadHarness) -> None:
    other = harness.server.account.base_url.replace("127.0.0.1", "localhost")
    harness.server.media_record = {"url": f"{other}/bytes"}

    content, outcome = await harness.fetch()

    assert content == b""
    assert isinstance(outcome, OperatorRejected)
    assert len(harness.server.requests) == 1


async def test_medium_unknown_to_the_operator_is_rejected(harness: UploadHarness) -> None:
    harness.server.error = (400, {"error": {"code": 100, "error_subcode": 33, "message": "no object"}})

    assert await harness.fetch() == (b"", OperatorRejected(100, "no object"))


async def test_download_url_that_has_expired_is_unavailable(harness: UploadHarness) -> None:
    harness.server.media_record = {"url": f"{harness.server.account.base_url}/bytes"}
    harness.server.download_status = 404

    _, outcome = await harness.fetch()

    assert isinstance(outcome, OperatorUnavailable)


@pytest.mark.parametrize(("base_url", "url", "allowed"), TOKEN_URLS)
def test_token_is_sent_to_the_operator_only(base_url: str, url: str, allowed: bool) -> None:
    assert may_have_token(base_url, url) is allowed


async def test_many_uploads_run_concurrently(harness: UploadHarness) -> None:
    outcomes = await asyncio.gather(
        *(harness.adapter.upload_media(harness.server.account, APP, harness.media, harness.path) for _ in range(8))
    )

    assert all(isinstance(outcome, OperatorUpload) for outcome in outcomes)
    assert len(harness.server.uploaded) == 8
