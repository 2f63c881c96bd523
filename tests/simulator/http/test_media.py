"""Media: upload, metadata, download, expiry; and malformed multipart forms."""

import base64
import hashlib
import io
import shutil
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import BUSINESS, NUMBER_ID, TOKEN, WABA, Bench, SimulatorResponse
from tests.support.manual_clock import ManualClock
from waypost.simulator import AccountSeed, NumberSeed

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 40
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def form(content: bytes = PNG, mime_type: str = "image/png", name: str = "a.png", **fields: str) -> aiohttp.FormData:
    data = aiohttp.FormData()
    for field, value in {"messaging_product": "whatsapp", "type": mime_type, **fields}.items():
        data.add_field(field, value)
    data.add_field("file", io.BytesIO(content), filename=name, content_type=mime_type)
    return data


async def upload(bench: Bench, *content: Any, **more: Any) -> SimulatorResponse:
    return await bench.graph("POST", f"{NUMBER_ID}/media", data=form(*content, **more))


async def fetch(bench: Bench, url: str, token: str = TOKEN) -> tuple[int, bytes, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with bench.http.get(url, headers=headers) as response:
        return response.status, await response.read(), response.headers["Content-Type"]


async def test_uploaded_file_is_shown_and_can_be_fetched(bench: Bench) -> None:
    content = bytes(range(256)) * 8000 + b"\r\n--x\r\n"

    uploaded = await upload(bench, b"%PDF" + content, "application/pdf", "plan.pdf")

    media_id = uploaded.body["id"]
    shown = await bench.graph("GET", media_id)
    scoped = await bench.graph("GET", f"{media_id}?phone_number_id={NUMBER_ID}")
    status, body, mime_type = await fetch(bench, shown.body["url"])
    assert uploaded.body == {"id": media_id}
    assert len(media_id) == 16
    assert media_id.isdigit()
    url = shown.body.pop("url")
    assert url.startswith(bench.base)
    assert shown.body == {
        "messaging_product": "whatsapp",
        "mime_type": "application/pdf",
        "sha256": hashlib.sha256(b"%PDF" + content).hexdigest(),
        "file_size": len(content) + 4,
        "id": media_id,
    }
    assert scoped.status == 200
    assert (status, body, mime_type) == (200, b"%PDF" + content, "application/pdf")


async def test_unsupported_file_type_is_rejected_with_the_operators_error_text(bench: Bench) -> None:
    response = await upload(bench, b"a,b", "text/csv", "a.csv")

    assert (response.status, response.error["code"]) == (400, 100)
    assert response.error["message"].startswith(
        "(#100) Param file must be a file with one of the following types: audio/aac, "
    )
    assert response.error["message"].endswith("Received file of type 'text/csv'.")


WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"


@pytest.mark.parametrize(
    ("mime_type", "beginning", "at_most"),
    [
        ("image/jpeg", b"\xff\xd8\xff", 5 * 1024 * 1024),
        ("audio/ogg", b"OggS", 16 * 1024 * 1024),
        ("video/mp4", b"\x00\x00\x00\x18ftyp", 16 * 1024 * 1024),
        ("image/webp", WEBP + b"\x00", 100 * 1024),
        ("image/webp", WEBP + b"\x02", 500 * 1024),
    ],
)
async def test_file_size_is_limited_by_media_type(bench: Bench, mime_type: str, beginning: bytes, at_most: int) -> None:
    within_limit = await upload(bench, beginning.ljust(at_most, b"x"), mime_type)
    above_limit = await upload(bench, beginning.ljust(at_most + 1, b"x"), mime_type)

    assert within_limit.status == 200, within_limit.body
    assert (above_limit.status, above_limit.error["code"]) == (400, 131053)
    assert str(at_most) in above_limit.error["error_data"]["details"]
    stored = await bench.control("GET", "media")
    assert [media["media_id"] for media in stored.body["media"]] == [within_limit.body["id"]]


async def test_empty_file_and_missing_parameters_are_rejected(bench: Bench) -> None:
    empty = await upload(bench, b"")
    without_product = await upload(bench, PNG, messaging_product="")
    without_file = aiohttp.FormData({"messaging_product": "whatsapp"}, default_to_multipart=True)
    fileless = await bench.graph("POST", f"{NUMBER_ID}/media", data=without_file)
    as_json = await bench.graph("POST", f"{NUMBER_ID}/media", json={"file": "x"})

    assert "empty" in empty.error["message"]
    assert "messaging_product" in without_product.error["message"]
    assert "file" in fileless.error["message"]
    assert "multipart" in as_json.error["message"]
    stored = await bench.control("GET", "media")
    assert stored.body["media"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no form",
        b"--x\r\n",
        b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\nno end",
        b"--x\r\nContent-Disposition: attachment\r\n\r\na\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n",
        b"--x\r\nno colon\r\n\r\na\r\n--x--\r\n",
        b"--x\r\n" + b"a: b\r\n" * 3000 + b"\r\n\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n" + b"a" * 5000 + b"\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n" * 70 + b"--x--\r\n",
    ],
)
async def test_unreadable_form_is_code_100(bench: Bench, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    response = await bench.graph("POST", f"{NUMBER_ID}/media", data=body, headers=headers)

    assert (response.status, response.error["code"]) == (400, 100)
    assert "form" in response.error["message"]


async def test_form_without_a_boundary_is_code_100(bench: Bench) -> None:
    headers = {"Content-Type": "multipart/form-data"}
    response = await bench.graph("POST", f"{NUMBER_ID}/media", data=b"x", headers=headers)

    assert "boundary" in response.error["message"]


async def test_body_sent_byte_by_byte_is_parsed(bench: Bench) -> None:
    file = b'--"x\r\nContent-Disposition: form-data; name="file"; filename="a\\"b.png"\r\n'
    raw = (
        b'--x y\r\nContent-Disposition: form-data; name="messaging_product"\r\n\r\nwhatsapp\r\n'
        b"--x y\r\n" + file[6:] + b"Content-Type: image/png; charset=x\r\n\r\n\r\n--x\r\r\n\r\n--x y--"
    )

    async def trickle() -> Any:
        for index in range(len(raw)):
            yield raw[index : index + 1]

    headers = {"Content-Type": 'multipart/form-data; boundary="x y"'}
    response = await bench.graph("POST", f"{NUMBER_ID}/media", data=trickle(), headers=headers)

    stored = await bench.control("GET", "media")
    content = await bench.http.get(f"{bench.base}/control/media/{response.body['id']}/content")
    assert stored.body["media"][0]["file_name"] == 'a"b.png'
    assert await content.read() == b"\r\n--x\r\r\n"


async def test_media_url_needs_the_token_and_expires_after_five_minutes(slow: Bench, clock: ManualClock) -> None:
    media_id = (await upload(slow)).body["id"]
    url = (await slow.graph("GET", media_id)).body["url"]

    without = await fetch(slow, url, token="")
    wrong = await fetch(slow, url, token="other")
    forged = await fetch(slow, url.replace("hash=", "hash=0"))
    clock.advance(ms=5 * MINUTE_MS - 1)
    in_time = await fetch(slow, url)
    clock.advance(ms=1)
    late = await fetch(slow, url)

    assert (without[0], wrong[0]) == (401, 401)
    assert forged[0] == 404
    assert in_time[:2] == (200, PNG)
    assert late[0] == 404


async def test_uploaded_media_expires_after_30_days_and_inbound_media_after_7(slow: Bench, clock: ManualClock) -> None:
    uploaded = (await upload(slow)).body["id"]
    inbound = await slow.simulator.save_inbound_media(to=BUSINESS, content=PNG, mime_type="image/png")

    clock.advance(ms=7 * DAY_MS - 1)
    before = [(await slow.graph("GET", media_id)).status for media_id in (uploaded, inbound)]
    clock.advance(ms=1)
    after = [(await slow.graph("GET", media_id)).status for media_id in (uploaded, inbound)]
    clock.advance(ms=23 * DAY_MS)
    expired = await slow.graph("GET", uploaded)

    assert (before, after) == ([200, 200], [200, 400])
    assert (expired.error["code"], expired.error["error_subcode"]) == (100, 33)


async def test_media_id_belongs_to_the_number_it_was_uploaded_to(bench: Bench) -> None:
    await bench.simulator.seed(
        AccountSeed("1000000000000011", "Two", "", "token-2", "3000000000000033", "s", "v", ""),
        [NumberSeed("2000000000000022", "1000000000000011", "15550002222", "Shop Two")],
    )
    media_id = (await upload(bench)).body["id"]
    url = (await bench.graph("GET", media_id)).body["url"]

    elsewhere = await bench.graph("GET", f"{media_id}?phone_number_id=2000000000000022")
    stranger = await bench.graph("GET", media_id, token="token-2")
    deleting = await bench.graph("DELETE", media_id, token="token-2")
    fetched = await fetch(bench, url, token="token-2")

    for rejected in (elsewhere, stranger, deleting):
        assert (rejected.status, rejected.error["error_subcode"]) == (400, 33)
    assert fetched[0] == 404


async def test_deleted_media_is_not_found(bench: Bench) -> None:
    media_id = (await upload(bench)).body["id"]
    url = (await bench.graph("GET", media_id)).body["url"]

    deleted = await bench.graph("DELETE", f"{media_id}?phone_number_id={NUMBER_ID}")

    assert deleted.body == {"success": True}
    assert (await bench.graph("GET", media_id)).error["error_subcode"] == 33
    assert (await fetch(bench, url))[0] == 404


async def test_upload_is_rejected_and_not_stored_when_free_disk_space_is_too_low(bench: Bench) -> None:
    free_mb = shutil.disk_usage(bench.settings.path.parent).free // 1_000_000
    await bench.restart(least_free_mb=2 * free_mb)

    uploaded = await upload(bench)
    attached = await bench.control(
        "POST", "media", {"to": BUSINESS, "mime_type": "image/png", "content": base64.b64encode(PNG).decode()}
    )

    assert (uploaded.status, uploaded.error["code"]) == (503, 131016)
    assert f"Fewer than {2 * free_mb} MB are free" in uploaded.error["error_data"]["details"]
    assert (attached.status, "WAYPOST_LEAST_FREE_MB" in str(attached.body)) == (507, True)
    folder = bench.settings.path.with_name("simulator.sqlite3.files")
    assert list(folder.iterdir()) == []
    assert (await bench.control("GET", "media")).body == {"media": []}


async def test_media_survives_a_restart_and_is_deleted_by_a_reset(bench: Bench) -> None:
    media_id = (await upload(bench)).body["id"]
    stray = bench.settings.path.with_name("simulator.sqlite3.files") / "media-7000"
    stray.write_bytes(b"a file whose row was never written")

    await bench.restart()
    after_restart = await fetch(bench, (await bench.graph("GET", media_id)).body["url"])
    swept = not stray.exists()
    await bench.control("POST", "reset")

    assert after_restart[:2] == (200, PNG)
    assert swept
    assert (await bench.graph("GET", media_id)).status == 400
    assert list(stray.parent.iterdir()) == []


async def test_control_api_stores_and_expires_inbound_media(bench: Bench) -> None:
    body = {
        "to": BUSINESS,
        "mime_type": "image/png",
        "content": base64.b64encode(PNG).decode(),
        "file_name": "beach.png",
    }

    stored = await bench.control("POST", "media", body)
    wrong = await bench.control("POST", "media", {**body, "mime_type": "text/csv\r\nSet-Cookie: a=b"})
    unknown_number = await bench.control("POST", "media", {**body, "to": "15559999999"})
    shown = await bench.graph("GET", stored.body["media_id"])
    expired = await bench.control("POST", f"media/{stored.body['media_id']}/expire")
    after = await bench.graph("GET", stored.body["media_id"])
    content = await bench.control("GET", f"media/{stored.body['media_id']}/content")
    unknown = await bench.control("POST", "media/1/expire")

    assert stored.body["is_inbound"] is True
    assert stored.body["file_name"] == "beach.png"
    assert (wrong.status, unknown_number.status, unknown.status) == (422, 404, 404)
    assert shown.body["file_size"] == len(PNG)
    assert expired.body["expires_ms"] <= expired.body["created_ms"] + MINUTE_MS
    assert after.status == 400
    assert content.status == 410


async def test_ordinary_call_may_be_a_multipart_form(bench: Bench) -> None:
    fields = {"messaging_product": "whatsapp", "to": "15551234567", "text": '{"body": "Hello"}'}

    sent = await bench.graph("POST", f"{NUMBER_ID}/messages", data=aiohttp.FormData(fields, default_to_multipart=True))

    assert sent.status == 200, sent.body
    assert (await bench.graph("GET", WABA)).status == 200
