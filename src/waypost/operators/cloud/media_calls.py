"""Media transfers: uploads for sending, samples of templates, and downloads of recipients' media."""

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from yarl import URL

from waypost.base.clock import DAY_MS
from waypost.base.error_texts import error_text
from waypost.base.files import open_for_reading
from waypost.base.http.request_bodies import FormPart, RequestBody, file_body, form_body
from waypost.domain.app import OperatorAccount
from waypost.domain.media import MEDIA_LIFE_MS, UploadedMedia
from waypost.domain.outcome import INVALID_RESPONSE_CODE, MAX_OPERATOR_ID_CHARS, OperatorRejected, OperatorUnavailable
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.rate_usage import CallCategory
from waypost.operators.cloud.responses import retry_uncertain
from waypost.operators.contract import OperatorUpload

COPY_LIFETIMES_MS: Final = {  # how long we rely on an id or handle of the operator
    # Source: operator's facts 6.1: 30 days; a day less, so that none expires in transit
    "media": MEDIA_LIFE_MS - DAY_MS,
    "handle": DAY_MS,  # not documented; needed only while a template is submitted
}
MEDIA_HOSTS: Final = ("fbsbx.com", "fbcdn.net", "facebook.com", "whatsapp.net")
"""Hosts of media in addition to the operator's base URL; our token goes nowhere else."""
MAX_HANDLE_CHARS: Final = 16 * 1024
"""A handle is part of the template's body; one of three lines has about six hundred characters."""
TRANSFER_TIMEOUT_S: Final = 15 * 60
TRANSFER_READ_TIMEOUT_S: Final = 30
"""From the end of the request to the response, and for each part of it."""
MAX_RESUMES: Final = 4
"""An upload is resumed so many times after a broken connection, then retried later."""

_MediaFailure = OperatorRejected | OperatorUnavailable


async def upload_media(
    calls: CloudHttpClient, account: OperatorAccount, phone_number_id: str, media: UploadedMedia, path: Path
) -> OperatorUpload | _MediaFailure:
    """Upload a file for sending from one number, streamed from disk.

    Any failure is retried: a second copy at the operator does no harm.

    Source: operator's facts 6.1.
    """
    texts = [FormPart("messaging_product", "whatsapp"), FormPart("type", media.mime_type)]
    async with open_for_reading(path) as file:
        content_type, form = form_body([*texts, FormPart("file", file, _file_name(media), media.mime_type)])
        url = _url(account, f"{phone_number_id}/media")
        headers = {"Content-Type": content_type}
        response = await _exchange(calls, account, "POST", url, form, headers, category=CallCategory.MESSAGES)
    match response:
        case {"id": str(operator_id)} if 0 < len(operator_id) <= MAX_OPERATOR_ID_CHARS:
            return OperatorUpload(operator_id, COPY_LIFETIMES_MS["media"])
        case dict():
            return OperatorUnavailable("the operator's response has no media id")
        case _:
            return response


async def upload_sample(
    calls: CloudHttpClient, account: OperatorAccount, media: UploadedMedia, path: Path
) -> OperatorUpload | _MediaFailure:
    """Upload a file as a template's sample; after a broken connection the upload is resumed.

    Returns:
        The handle as received; it may have several lines.

    Source: operator's facts 6.2.
    """
    query = {"file_name": _file_name(media), "file_length": str(media.size_bytes), "file_type": media.mime_type}
    encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    begin = _url(account, f"{account['app_id']}/uploads?{encoded}")
    session = await _exchange(calls, account, "POST", begin)
    match session:
        case {"id": str(session_id)} if session_id:
            return await _send_bytes(calls, account, session_id, path)
        case dict():
            return OperatorUnavailable("the operator's response has no upload session")
        case _:
            return session


async def fetch_media(
    calls: CloudHttpClient, account: OperatorAccount, operator_media_id: str, phone_number_id: str | None
) -> AsyncIterator[bytes | OperatorRejected | OperatorUnavailable]:
    """Yield the bytes of a media file in chunks; an outcome comes last if they are not complete.

    The URL in the response gets our token, so it must be the operator account's own or one of the
    operator's media hosts over https: a manipulated response, or an account with a wrong base URL,
    must not send the token elsewhere.

    Source: operator's facts 6.1.
    """
    # The id is ours or a partner's: encoded, it is always one segment.
    path = quote(operator_media_id, safe="")
    if phone_number_id is not None:
        path += f"?phone_number_id={quote(phone_number_id, safe='')}"
    media_object = await _exchange(calls, account, "GET", _url(account, path), category=CallCategory.MESSAGES)
    if not isinstance(media_object, dict):
        yield media_object
        return
    url = media_object.get("url")
    if not isinstance(url, str) or not may_have_token(account.base_url, url):
        yield OperatorRejected(INVALID_RESPONSE_CODE, "the operator named no address of its own for the bytes")
        return
    digest = hashlib.sha256()
    try:
        async with calls.client.stream(
            "GET",
            URL(url, encoded=True),
            {"Authorization": f"Bearer {account['token']}"},
            timeout_s=TRANSFER_TIMEOUT_S,
            read_timeout_s=TRANSFER_READ_TIMEOUT_S,
        ) as response:
            if response.status != 200:  # the URL lives for five minutes; the next attempt gets a new one
                yield OperatorUnavailable(f"the operator returned status {response.status} for the bytes")
                return
            async for chunk in response:
                digest.update(chunk)
                yield chunk
    except (OSError, ValueError) as error:
        yield OperatorUnavailable(f"the bytes broke off: {error_text(error)}")
        return
    expected_digest = _hex_digest(media_object.get("sha256"))
    if expected_digest is not None and expected_digest != digest.hexdigest():
        yield OperatorUnavailable("the bytes are not those that the operator announced")


def may_have_token(base_url: str, url: str) -> bool:
    """True if a URL is the operator's own: the account's scheme, host and port, or a media host."""
    try:
        own, named = urlsplit(base_url), urlsplit(url)
        is_same_origin = (own.scheme, own.hostname, own.port) == (named.scheme, named.hostname, named.port)
        is_plain = named.username is None and named.port in (None, 443)
    except ValueError:
        return False
    if is_same_origin:
        return named.username is None
    host = named.hostname or ""
    is_media = any(host == media_host or host.endswith(f".{media_host}") for media_host in MEDIA_HOSTS)
    # A simulator or a stand-in never uses these hosts, so its token stays with it.
    return is_plain and named.scheme == own.scheme == "https" and is_media


async def _send_bytes(
    calls: CloudHttpClient, account: OperatorAccount, session_id: str, path: Path
) -> OperatorUpload | _MediaFailure:
    # Appended unchanged: it has a signature of its own, question mark included.
    url = _url(account, session_id)
    offset, broken_count = 0, 0
    while True:
        async with open_for_reading(path) as file:
            file.seek(offset)
            headers = {"file_offset": str(offset), "Content-Type": "application/octet-stream"}
            response = await _exchange(calls, account, "POST", url, file_body(file), headers, scheme="OAuth")
        match response:
            case {"h": str(handle)} if 0 < len(handle) <= MAX_HANDLE_CHARS:
                return OperatorUpload(handle, COPY_LIFETIMES_MS["handle"])
            case OperatorRejected() if not broken_count:
                return response
            case OperatorRejected(text=text):  # perhaps only the session is invalid: retry with a new one
                return OperatorUnavailable(text)
            case OperatorUnavailable() | dict():
                broken_count += 1
        if broken_count > MAX_RESUMES:
            return response if isinstance(response, OperatorUnavailable) else OperatorUnavailable("no handle came")
        match await _exchange(calls, account, "GET", url, scheme="OAuth"):
            case {"file_offset": int(stored_bytes)} if stored_bytes >= 0:
                offset = stored_bytes
            case dict():
                return OperatorUnavailable("the operator does not say how far the upload has come")
            case failure:
                return failure


async def _exchange(
    calls: CloudHttpClient,
    account: OperatorAccount,
    method: str,
    url: URL,
    body: RequestBody = None,
    headers: Mapping[str, str] | None = None,
    *,
    category: CallCategory = CallCategory.MANAGEMENT,
    scheme: str = "Bearer",
) -> dict[str, Any] | _MediaFailure:
    """Return the response's object, or the outcome of its error; never uncertain, because all calls are repeatable."""
    return retry_uncertain(
        await calls.exchange(
            account,
            method,
            url,
            body=body,
            headers=headers,
            timeout_s=TRANSFER_TIMEOUT_S,
            read_timeout_s=TRANSFER_READ_TIMEOUT_S,
            category=category,
            scheme=scheme,
        )
    )


def _hex_digest(text: object) -> str | None:
    """Return a SHA-256 in hex, from any of the operator's encodings; None if there is none."""
    if not isinstance(text, str) or not text:
        return None
    if len(text) == 64:
        return text.lower()
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return None


def _file_name(media: UploadedMedia) -> str:
    """Return the file name that recipients see: the letters and digits of the partner's, or one of ours."""
    plain = "".join(char for char in media.file_name if char.isalnum() or char in "._- ")
    return plain.strip(" .") or f"upload-{media.id}"


def _url(account: OperatorAccount, path: str) -> URL:
    return URL(f"{account.base_url}/{account['version']}/{path}", encoded=True)
