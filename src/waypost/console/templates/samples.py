"""Media samples of templates: lookup, download and upload."""

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
"""Returns the path of a sample by its reference; empty if there is none."""


async def samples_of(desk: PageTools, visit: PageRequest, drafts: Iterable[Draft], *more: str) -> dict[str, Media]:
    """Return the partner's unexpired uploads that drafts refer to, by reference."""
    references = [reference for draft in drafts for reference in sample_references(draft)] + list(more)
    names = {line for reference in references if reference for line in (reference, *lines_of(reference))}
    if not names:
        return {}
    now_ms = desk.parts.clock.now_ms()
    return await desk.parts.database.read(uploads_named, visit.partner.id, sorted(names), now_ms)


def finder(visit: PageRequest, uploads: dict[str, Media]) -> FindSample:
    """Return a function that returns the paths of these uploads."""

    def find(reference: str) -> str:
        lines = (reference, *lines_of(reference))
        upload = next((uploads[line] for line in lines if line in uploads), None)
        return "" if upload is None else f"/apps/{visit.app.id}/templates/media/{upload.id}"

    return find


async def show_sample(desk: PageTools, visit: PageRequest) -> Response:
    """Return an upload of the partner, of any app: the templates of an account belong to all its apps.

    Raises:
        NotThere: it does not exist, or has expired.
    """
    parts = desk.parts
    now_ms = parts.clock.now_ms()
    media_id = visit.path["media_id"]
    uploads = await parts.database.read(uploads_named, visit.partner.id, [media_id], now_ms)
    media = uploads.get(media_id)
    if media is None:
        raise NotThere("This sample does not exist, or has expired.")
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
    """Upload a file through the partner API, and return its handle.

    Raises:
        ApiResponseError: the file's type is not accepted, or it is too large.
    """
    response = await desk.parts.apis.app(visit.app).file(
        f"/partner/app/{visit.app.id}/upload/media",
        file,
        name=file.filename or "sample",
        media_type=file.content_type or "application/octet-stream",
    )
    return str(response["handleId"]["message"])
