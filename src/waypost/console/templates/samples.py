"""The samples of media that templates show: where their bytes are, and taking new ones."""

from collections.abc import Callable, Iterable

from starlette.datastructures import UploadFile
from starlette.responses import FileResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.headers import SAFE, SHUT
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.domain.media import Media, lines_of
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.template import sample_references
from waypost.store.media.media import uploads_named
from waypost.wire.media import content_type, disposition

FindSample = Callable[[str], str]
"""Gives the path that shows a sample by what names it; empty where there is none."""


async def samples_of(desk: PageTools, visit: PageRequest, drafts: Iterable[Draft], *more: str) -> dict[str, Media]:
    """The partner's own live uploads that drafts name, by what names them."""
    named = [one for draft in drafts for one in sample_references(draft)] + list(more)
    names = {line for one in named if one for line in (one, *lines_of(one))}
    if not names:
        return {}
    now_ms = desk.parts.clock.now_ms()
    return await desk.parts.database.read(uploads_named, visit.partner.id, sorted(names), now_ms)


def finder(visit: PageRequest, uploads: dict[str, Media]) -> FindSample:
    """Gives the paths of these uploads' bytes."""

    def find(reference: str) -> str:
        lines = (reference, *lines_of(reference))
        upload = next((uploads[line] for line in lines if line in uploads), None)
        return "" if upload is None else f"/apps/{visit.app.id}/templates/media/{upload.id}"

    return find


async def show_sample(desk: PageTools, visit: PageRequest) -> Response:
    """The bytes of one upload of the partner's: templates of an account may be shown by several apps.

    Raises:
        NotThere: there is none, or it has expired.
    """
    parts = desk.parts
    now_ms = parts.clock.now_ms()
    media_id = visit.path["media_id"]
    found = await parts.database.read(uploads_named, visit.partner.id, [media_id], now_ms)
    media = found.get(media_id)
    if media is None:
        raise NotThere("There is no such sample, or it has expired.")
    kind = "inline" if media.mime_type in SAFE else "attachment"
    return FileResponse(
        parts.files.path(media.sha256),
        media_type=content_type(media.mime_type),
        headers={
            **SHUT,
            "Content-Disposition": disposition(media.file_name or media.id, kind),
            "Cache-Control": "private, max-age=3600",
        },
    )


async def take_sample(desk: PageTools, visit: PageRequest, file: UploadFile) -> str:
    """Upload a file through the partner API; gives its handle.

    Raises:
        DoorRefused: it is of another kind, or too large.
    """
    answer = await desk.parts.apis.app(visit.app).file(
        f"/partner/app/{visit.app.id}/upload/media",
        file,
        name=file.filename or "sample",
        media_type=file.content_type or "application/octet-stream",
    )
    return str(answer["handleId"]["message"])
