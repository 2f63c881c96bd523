"""The bytes of what is on a phone, so that nothing in them can run as a page of this console."""

import re
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from waypost.client.door import DoorRefused
from waypost.console.desk import Desk
from waypost.console.not_there import NotThere
from waypost.console.phones.looks import control_of, numbers_of
from waypost.console.safe_files import SAFE, SHUT
from waypost.console.visit import Visit

_RANGE: Final = re.compile("bytes=([0-9]{1,15})-([0-9]{0,15})")


async def show_media(desk: Desk, visit: Visit) -> Response:
    """One file of the partner's own numbers: shown where that is safe, and to be kept otherwise."""
    control, media_id = control_of(desk), str(visit.path["media_id"])
    if not (media_id.isascii() and media_id.isdigit() and len(media_id) <= 32):
        raise NotThere("There is no such file.")
    try:
        known = await control.get(f"/control/media/{media_id}")
    except DoorRefused as refused:
        raise NotThere("There is no such file.") from refused
    if known["phone_number_id"] not in numbers_of(visit):
        raise NotThere("There is no such file.")
    status, content = await control.content(f"/control/media/{media_id}/content")
    if status != 200:
        raise NotThere("The file's time is over: the operator keeps files for some days only.")
    kind, name = known["mime_type"], known["file_name"] or f"file-{media_id}"
    is_safe = kind in SAFE
    headers = {
        **SHUT,
        "Content-Disposition": f"{'inline' if is_safe else 'attachment'}; "
        f"filename*=UTF-8''{quote(name, safe='')}",
        "Cache-Control": "private, max-age=3600",
    }
    asked = visit.request.headers.get("range", "")
    media_type = kind if is_safe else "application/octet-stream"
    part = _part_of(asked, len(content))
    if part is None:
        return Response(
            content, headers={**headers, "Accept-Ranges": "bytes"}, media_type=media_type
        )
    first, last = part
    headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    return Response(content[first : last + 1], 206, headers, media_type=media_type)


def _part_of(asked: str, size_bytes: int) -> tuple[int, int] | None:
    """The first and last byte of a range: players of sound and film ask for one. None: the whole."""
    found = _RANGE.fullmatch(asked)
    if found is None:
        return None
    first, end = int(found[1]), min(int(found[2] or size_bytes), size_bytes - 1)
    return (first, end) if first <= end else None
