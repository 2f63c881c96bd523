"""Media samples of templates: lookup, download and upload."""

from collections.abc import Callable, Iterable

from starlette.datastructures import UploadFile
from starlette.responses import FileResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.errors import NotFound
from waypost.console.web.headers import DISPLAYABLE_TYPES, SANDBOX_HEADERS
from waypost.console.web.page_request import PageRequest
from waypost.domain.media import UploadedMedia, handle_lines
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import sample_references
from waypost.store.media.media import find_uploads
from waypost.wire.media import content_disposition, content_type

FindSample = Callable[[str], str]
"""Returns the path of a sample by its reference; empty if there is none."""


async def find_samples(
    tools: PageTools, page_request: PageRequest, drafts: Iterable[TemplateDraft], *more: str
) -> dict[str, UploadedMedia]:
    """Return the partner's unexpired uploads that drafts refer to, by reference."""
    references = [reference for draft in drafts for reference in sample_references(draft)] + list(more)
    names = {line for reference in references if reference for line in (reference, *handle_lines(reference))}
    if not names:
        return {}
    now_ms = tools.services.clock.now_ms()
    return await tools.services.database.read(find_uploads, page_request.partner.id, sorted(names), now_ms)


def sample_finder(page_request: PageRequest, uploads: dict[str, UploadedMedia]) -> FindSample:
    """Return a function that returns the paths of these uploads."""

    def find(reference: str) -> str:
        lines = (reference, *handle_lines(reference))
        upload = next((uploads[line] for line in lines if line in uploads), None)
        return "" if upload is None else f"/apps/{page_request.app.id}/templates/media/{upload.id}"

    return find


async def show_sample(tools: PageTools, page_request: PageRequest) -> Response:
    """Return an upload of the partner, of any app: the templates of an account belong to all its apps.

    Raises:
        NotFound: it does not exist, or has expired.
    """
    parts = tools.services
    now_ms = parts.clock.now_ms()
    media_id = page_request.path_params["media_id"]
    uploads = await parts.database.read(find_uploads, page_request.partner.id, [media_id], now_ms)
    media = uploads.get(media_id)
    if media is None:
        raise NotFound("This sample does not exist, or has expired.")
    kind = "inline" if media.mime_type in DISPLAYABLE_TYPES else "attachment"
    return FileResponse(
        await parts.files.local_path(media.sha256),
        media_type=content_type(media.mime_type),
        headers={
            **SANDBOX_HEADERS,
            "Content-Disposition": content_disposition(media.file_name or media.id, kind),
            "Cache-Control": "private, max-age=3600",
        },
    )


async def upload_sample(tools: PageTools, page_request: PageRequest, file: UploadFile) -> str:
    """Upload a file through the partner API, and return its handle.

    Raises:
        ApiResponseError: the file's type is not accepted, or it is too large.
    """
    response = await tools.services.apis.app(page_request.app).file(
        f"/partner/app/{page_request.app.id}/upload/media",
        file,
        name=file.filename or "sample",
        media_type=file.content_type or "application/octet-stream",
    )
    return str(response["handleId"]["message"])
