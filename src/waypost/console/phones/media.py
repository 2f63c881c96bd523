"""Media files of phones, served so that nothing in them can run as a page of the console."""

from urllib.parse import quote

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.phones.view_models import apps_by_number_id, get_control
from waypost.console.proxying import open_file, proxy_response
from waypost.console.web.errors import NotFound
from waypost.console.web.headers import DISPLAYABLE_TYPES, SANDBOX_HEADERS
from waypost.console.web.page_request import PageRequest


async def show_media(tools: PageTools, page_request: PageRequest) -> Response:
    """Return a file of the partner's numbers: inline if its type is safe, else as a download."""
    control, media_id = get_control(tools), str(page_request.path_params["media_id"])
    if not (media_id.isascii() and media_id.isdigit() and len(media_id) <= 32):
        raise NotFound("There is no such file.")
    try:
        media = await control.get(f"/control/media/{media_id}")
    except ApiResponseError as error:
        raise NotFound("There is no such file.") from error
    if media["phone_number_id"] not in apps_by_number_id(page_request):
        raise NotFound("There is no such file.")
    source = await open_file(control, page_request, f"/control/media/{media_id}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotFound("The file has expired: the operator stores files for a few days only.")
    kind, name = media["mime_type"], media["file_name"] or f"file-{media_id}"
    is_safe = kind in DISPLAYABLE_TYPES
    headers = {
        **SANDBOX_HEADERS,
        "Content-Disposition": f"{'inline' if is_safe else 'attachment'}; filename*=UTF-8''{quote(name, safe='')}",
        "Cache-Control": "private, max-age=3600",
    }
    return proxy_response(source, headers, media_type=kind if is_safe else "application/octet-stream")
