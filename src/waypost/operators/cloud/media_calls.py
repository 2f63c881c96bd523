"""Media to the operator and back: for sending, as samples of templates, and what recipients have sent."""

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, urlsplit

import aiohttp
from yarl import URL

from waypost.base.clock import DAY_MS
from waypost.base.error_texts import error_text
from waypost.base.files import opened
from waypost.domain.app import OperatorAccount
from waypost.domain.media import MEDIA_LIFE_MS, Media
from waypost.domain.outcome import INVALID_ANSWER, MOST_ID_CHARS, Rejected, Sent, Unavailable, Uncertain
from waypost.operators.cloud.http_calls import CONNECT_S, Calls
from waypost.operators.cloud.rate_usage import Kind
from waypost.operators.contract import Uploaded

# fmt: off
LIVES_MS: Final = {  # how long we count on what the operator gives
    "media":  MEDIA_LIFE_MS - DAY_MS,  # Source: operator's facts 6.1: 30 days; a day less, so that none dies on its way
    "handle": DAY_MS,                  # not documented; needed in the moment of a submission only
}
MEDIA_HOSTS: Final = (  # where the operator keeps bytes beside its own address; our token goes nowhere else
    "fbsbx.com",
    "fbcdn.net",
    "facebook.com",
    "whatsapp.net",
)
# fmt: on
MOST_HANDLE_CHARS: Final = 16 * 1024
"""A handle travels in the body of its template; one of three lines has some six hundred characters."""
BROKEN_AT_MOST: Final = 4
"""How often one upload is resumed after a broken connection before it is left for later."""

_TIMEOUT: Final = aiohttp.ClientTimeout(total=15 * 60, connect=CONNECT_S, sock_read=30)
_Refusal = Rejected | Unavailable


async def upload_media(
    calls: Calls, account: OperatorAccount, phone_number_id: str, media: Media, path: Path
) -> Uploaded | Rejected | Unavailable:
    """Upload a file for sending from one number, streamed from disk.

    Whatever breaks, it is tried again: a second copy at the operator does no harm.

    Source: operator's facts 6.1.
    """
    async with opened(path) as file:
        form = aiohttp.FormData(quote_fields=False)
        form.add_field("messaging_product", "whatsapp")
        form.add_field("type", media.mime_type)
        form.add_field("file", file, filename=_file_name(media), content_type=media.mime_type)
        url = _url(account, f"{phone_number_id}/media")
        answer = await _ask(calls, account, "POST", url, form, kind=Kind.MESSAGES)
    match answer:
        case {"id": str(operator_id)} if 0 < len(operator_id) <= MOST_ID_CHARS:
            return Uploaded(operator_id, LIVES_MS["media"])
        case dict():
            return Unavailable("the operator's answer has no media id")
        case _:
            return answer


async def upload_sample(
    calls: Calls, account: OperatorAccount, media: Media, path: Path
) -> Uploaded | Rejected | Unavailable:
    """Upload a file as a template's sample; a broken connection is built on, not begun anew.

    Returns:
        The handle as it came; it may have several lines.

    Source: operator's facts 6.2.
    """
    query = {"file_name": _file_name(media), "file_length": str(media.size_bytes), "file_type": media.mime_type}
    encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    begin = _url(account, f"{account['app_id']}/uploads?{encoded}")
    begun = await _ask(calls, account, "POST", begin)
    match begun:
        case {"id": str(session_id)} if session_id:
            return await _send_bytes(calls, account, session_id, path)
        case dict():
            return Unavailable("the operator's answer has no upload session")
        case _:
            return begun


async def fetch_media(
    calls: Calls, account: OperatorAccount, operator_media_id: str, phone_number_id: str | None
) -> AsyncIterator[bytes | Rejected | Unavailable]:
    """The bytes of a medium, part by part; an outcome is the last thing where they are not whole.

    The address that the operator names gets our token, so it must be the operator account's own or
    one of the operator's media hosts over https: an answer that somebody has tampered with, or an
    account that points to a stranger, must not lead the token elsewhere.

    Source: operator's facts 6.1.
    """
    # An id of ours or of a partner's: encoded, it can be nothing but one segment.
    path = quote(operator_media_id, safe="")
    if phone_number_id is not None:
        path += f"?phone_number_id={quote(phone_number_id, safe='')}"
    told = await _ask(calls, account, "GET", _url(account, path), kind=Kind.MESSAGES)
    if not isinstance(told, dict):
        yield told
        return
    url = told.get("url")
    if not isinstance(url, str) or not may_have_token(account.base_url, url):
        yield Rejected(INVALID_ANSWER, "the operator named no address of its own for the bytes")
        return
    digest = hashlib.sha256()
    headers = {"Authorization": f"Bearer {account['token']}", "Accept-Encoding": "identity"}
    try:
        async with calls.pool.get(
            URL(url, encoded=True), headers=headers, allow_redirects=False, timeout=_TIMEOUT
        ) as response:
            if response.status != 200:  # it lives for five minutes; the next try is given a new one
                yield Unavailable(f"the operator answered {response.status} for the bytes")
                return
            async for part in response.content.iter_any():
                digest.update(part)
                yield part
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        yield Unavailable(f"the bytes broke off: {error_text(error)}")
        return
    wanted = _hex_digest(told.get("sha256"))
    if wanted is not None and wanted != digest.hexdigest():
        yield Unavailable("the bytes are not those that the operator announced")


def may_have_token(base_url: str, url: str) -> bool:
    """Whether an address is the operator's own: the account's scheme, host and port, or a media host."""
    try:
        own, named = urlsplit(base_url), urlsplit(url)
        same = (own.scheme, own.hostname, own.port) == (named.scheme, named.hostname, named.port)
        plain = named.username is None and named.port in (None, 443)
    except ValueError:
        return False
    if same:
        return named.username is None
    host = named.hostname or ""
    is_media = any(host == one or host.endswith(f".{one}") for one in MEDIA_HOSTS)
    # A simulator or a stand-in never names them, so its token stays with it.
    return plain and named.scheme == own.scheme == "https" and is_media


async def _send_bytes(calls: Calls, account: OperatorAccount, session_id: str, path: Path) -> Uploaded | _Refusal:
    # Appended as it is: it carries a signature of its own, question mark included.
    url = _url(account, session_id)
    offset, broken = 0, 0
    while True:
        answer = await _send_from(calls, account, url, path, offset)
        match answer:
            case {"h": str(handle)} if 0 < len(handle) <= MOST_HANDLE_CHARS:
                return Uploaded(handle, LIVES_MS["handle"])
            case Rejected() if not broken:
                return answer
            case Rejected(text=text):  # perhaps the session only: a new one tells
                return Unavailable(text)
            case Unavailable() | dict():
                broken += 1
        if broken > BROKEN_AT_MOST:
            return answer if isinstance(answer, Unavailable) else Unavailable("no handle came")
        match await _ask(calls, account, "GET", url, scheme="OAuth"):
            case {"file_offset": int(there)} if there >= 0:
                offset = there
            case dict():
                return Unavailable("the operator does not say how far the upload has come")
            case refused:
                return refused


async def _send_from(
    calls: Calls, account: OperatorAccount, url: URL, path: Path, offset: int
) -> dict[str, Any] | _Refusal:
    async with opened(path) as file:
        file.seek(offset)
        headers = {"file_offset": str(offset), "Content-Type": "application/octet-stream"}
        return await _ask(calls, account, "POST", url, file, headers, scheme="OAuth")


async def _ask(
    calls: Calls,
    account: OperatorAccount,
    method: str,
    url: URL,
    data: aiohttp.FormData | IO[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    kind: Kind = Kind.MANAGEMENT,
    scheme: str = "Bearer",
) -> dict[str, Any] | _Refusal:
    """The answer's object, or what its error means; nothing here is uncertain, all of it can be repeated."""
    answer = await calls.exchange(
        account, method, url, data=data, headers=headers, timeout=_TIMEOUT, kind=kind, scheme=scheme
    )
    match answer:
        case Uncertain(text=text):
            return Unavailable(text)
        case Sent():
            raise AssertionError("a call has no message to send")
        case _:
            return answer


def _hex_digest(text: object) -> str | None:
    """A SHA-256 in hex, however the operator writes it; None where it gives none."""
    if not isinstance(text, str) or not text:
        return None
    if len(text) == 64:
        return text.lower()
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return None


def _file_name(media: Media) -> str:
    """A name for the operator, which a recipient may see: the partner's letters and digits, or one of ours."""
    plain = "".join(char for char in media.file_name if char.isalnum() or char in "._- ")
    return plain.strip(" .") or f"upload-{media.id}"


def _url(account: OperatorAccount, path: str) -> URL:
    return URL(f"{account.base_url}/{account['version']}/{path}", encoded=True)
