"""The control door's calls about files: what a phone sends, what is kept, and ends before their time.

Also the standing of a number, which nobody can set at the real operator.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from waypost.simulator.accounts.records import STANDING
from waypost.simulator.control.downloads import file_answer
from waypost.simulator.control.guard import BYTES, ControlRefused, kind_of
from waypost.simulator.control.shapes import Digits, Name, NothingShape, Text, as_shape, given, read_shape
from waypost.simulator.errors import GraphRefused
from waypost.simulator.media.media import Media
from waypost.simulator.media.uploads import Upload
from waypost.simulator.parts import Parts


class MediaShape(NothingShape, frozen=True):
    """A file as a phone has it; the content is base64 text."""

    accepted: ClassVar[str] = "{to: a business number's digits, mime_type, content: base64 text, file_name?}"
    to: Digits
    mime_type: Name
    content: bytes
    file_name: Annotated[str, Meta(max_length=240)] = ""


class FileShape(NothingShape, frozen=True):
    """A file as a phone has it; its bytes are the body of the request."""

    accepted: ClassVar[str] = "a query with to: a business number's digits, mime_type, file_name?; the body is the file"
    to: Digits
    mime_type: Name
    file_name: Annotated[str, Meta(max_length=240)] = ""


class HandleShape(NothingShape, frozen=True):
    """A handle that a resumable upload ended in."""

    accepted: ClassVar[str] = "{handle}"
    handle: Text


class StandingShape(NothingShape, frozen=True):
    """How a number stands; what is absent stays as it is."""

    accepted: ClassVar[str] = (
        "{quality_rating?: GREEN, YELLOW, RED or UNKNOWN, messaging_limit?: TIER_250, TIER_2K, "
        "TIER_10K, TIER_100K or TIER_UNLIMITED, name_status?, status?}"
    )
    quality_rating: Literal["GREEN", "YELLOW", "RED", "UNKNOWN"] | UnsetType = UNSET
    messaging_limit: Literal["TIER_250", "TIER_2K", "TIER_10K", "TIER_100K", "TIER_UNLIMITED"] | UnsetType = UNSET
    name_status: Name | UnsetType = UNSET
    status: Name | UnsetType = UNSET


async def list_media(parts: Parts, _request: Request) -> dict[str, Any]:
    """Every file with an id, oldest first; also those whose time is over."""
    return {"media": [media_view(media) for media in parts.media.all.values()]}


async def keep_media(parts: Parts, request: Request) -> dict[str, Any]:
    """Keep a file as if a phone had sent it to a business number: from JSON, or its bytes as they come."""
    if kind_of(request.headers) == BYTES:
        wish: FileShape | MediaShape = as_shape(FileShape, dict(request.query_params))
        chunks = request.stream()
    else:
        wish = read_shape(MediaShape, await request.body())
        chunks = _whole(wish.content)
    number = parts.accounts.numbers_by_digits.get(wish.to.lstrip("+"))
    if number is None:
        known = ", ".join(parts.accounts.numbers_by_digits) or "none yet"
        raise ControlRefused(404, field="to", rule="is no business number", accepted=known)
    try:
        media = await parts.media.take(number.phone_number_id, wish.mime_type, wish.file_name, chunks, is_inbound=True)
    except GraphRefused as refused:
        if refused.status >= 500:  # the file is right, and the disk has no room
            raise ControlRefused(
                507,
                field="content",
                rule=_words_of(refused),
                accepted="a file when there is room, or WAYPOST_LEAST_FREE_MB lower",
            ) from refused
        raise ControlRefused(
            422, field="content", rule=_words_of(refused), accepted="what the operator's media table lists"
        ) from refused
    except ClientDisconnect:
        raise ControlRefused(400, field="content", rule="breaks off", accepted="the whole file") from None
    return media_view(media)


async def show_media(parts: Parts, request: Request) -> dict[str, Any]:
    """One file with an id."""
    return media_view(_media_of(parts, request))


async def show_content(parts: Parts, request: Request) -> Response:
    """The bytes of a file that lives: all of them, or the range that is asked for."""
    media = _media_of(parts, request)
    over = ControlRefused(410, field="media_id", rule="its time is over", accepted="an id that lives")
    if parts.media.find(media.media_id) is None:
        raise over
    # What somebody uploaded must not run as a page of this address.
    headers = {"x-content-type-options": "nosniff", "content-security-policy": "sandbox"}
    path = parts.files.path(media.content_name)
    try:
        return await file_answer(request, path, media.mime_type, headers)
    except FileNotFoundError:
        raise over from None


async def drop_media(parts: Parts, request: Request) -> dict[str, Any]:
    """Remove a file and its id, as if it had never been kept."""
    media = _media_of(parts, request)
    await parts.media.delete(media)
    return media_view(media)


async def expire_media(parts: Parts, request: Request) -> dict[str, Any]:
    """Let an id's time be over now."""
    media = _media_of(parts, request)
    read_shape(NothingShape, await request.body())
    await parts.media.expire(media)
    return media_view(parts.media.all[media.media_id])


async def list_handles(parts: Parts, _request: Request) -> dict[str, Any]:
    """Every complete upload with its handle, oldest first."""
    complete = [upload for upload in parts.uploads.by_id.values() if upload.handle]
    return {"handles": [_handle_view(upload) for upload in complete]}


async def expire_handle(parts: Parts, request: Request) -> dict[str, Any]:
    """Let a handle's time be over now."""
    wish = read_shape(HandleShape, await request.body())
    upload = parts.uploads.of_handle(wish.handle)
    if upload is None:
        raise ControlRefused(404, field="handle", rule="was not given out, or is over", accepted="a whole handle")
    await parts.uploads.expire(upload)
    return _handle_view(parts.uploads.by_id[upload.upload_id])


async def put_standing(parts: Parts, request: Request) -> dict[str, Any]:
    """Set a number's quality, messaging limit and states; no webhook tells of it."""
    number = parts.accounts.numbers.get(request.path_params["phone_number_id"])
    wish = read_shape(StandingShape, await request.body())
    if number is None:
        known = ", ".join(parts.accounts.numbers) or "none yet"
        raise ControlRefused(404, field="phone_number_id", rule="is no number", accepted=known)
    standing = {**parts.records.of(number.phone_number_id, STANDING), **given(wish)}
    await parts.records.keep(number.phone_number_id, STANDING, standing)
    return {"phone_number_id": number.phone_number_id, **standing}


def media_view(media: Media) -> dict[str, Any]:
    """A file as the door shows it."""
    return {
        "media_id": media.media_id,
        "phone_number_id": media.phone_number_id,
        "mime_type": media.mime_type,
        "file_name": media.file_name,
        "size_bytes": media.size_bytes,
        "sha256": media.sha256,
        "is_inbound": media.is_inbound,
        "created_ms": media.created_ms,
        "expires_ms": media.expires_ms,
    }


def _handle_view(upload: Upload) -> dict[str, Any]:
    return {
        "handle": upload.handle,
        "file_name": upload.file_name,
        "mime_type": upload.file_type,
        "size_bytes": upload.file_length,
        "expires_ms": upload.expires_ms,
    }


def _words_of(refused: GraphRefused) -> str:
    """What is wrong with a file: the details where there are any, which say more than the error's name."""
    details = refused.error.get("error_data", {}).get("details")
    return str(details or refused.error.get("message", refused))


async def _whole(content: bytes) -> AsyncGenerator[bytes]:
    yield content


def _media_of(parts: Parts, request: Request) -> Media:
    media = parts.media.all.get(request.path_params["media_id"])
    if media is None:
        raise ControlRefused(404, field="media_id", rule="is no media", accepted="an id of GET /control/media")
    return media
