"""Media files of phones, served so that nothing in them can run as a page of the console."""

from urllib.parse import quote

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.phones.view_models import control_of, numbers_of
from waypost.console.proxying import open_file, pass_on
from waypost.console.web.headers import SAFE, SHUT
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest


async def show_media(desk: PageTools, visit: PageRequest) -> Response:
    """Return a file of the partner's numbers: inline if its type is safe, else as a download."""
    control, media_id = control_of(desk), str(visit.path["media_id"])
    if not (media_id.isascii() and media_id.isdigit() and len(media_id) <= 32):
        raise NotThere("There is no such file.")
    try:
        media = await control.get(f"/control/media/{media_id}")
    except ApiResponseError as error:
        raise NotThere("There is no such file.") from error
    if media["phone_number_id"] not in numbers_of(visit):
        raise NotThere("There is no such file.")
    source = await open_file(control, visit, f"/control/media/{media_id}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotThere("The file has expired: the operator stores files for a few days only.")
    kind, name = media["mime_type"], media["file_name"] or f"file-{media_id}"
    is_safe = kind in SAFE
    headers = {
        **SHUT,
        "Content-Disposition": f"{'inline' if is_safe else 'attachment'}; filename*=UTF-8''{quote(name, safe='')}",
        "Cache-Control": "private, max-age=3600",
    }
    return pass_on(source, headers, media_type=kind if is_safe else "application/octet-stream")
