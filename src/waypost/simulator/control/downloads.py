"""Files as answers of the control door: piece by piece, and ranges of them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response


async def file_answer(request: Request, path: Path, mime_type: str, headers: Mapping[str, str]) -> Response:
    """A file, or the range of it that is asked for; it is read only as fast as it is taken.

    Whoever plays a film takes as long as he looks, and an exchange of the state does not wait for that:
    a gate before this door, if there is one, lends an extension of the scope.

    Raises:
        FileNotFoundError: it has gone.
    """
    stat = await asyncio.to_thread(path.stat)
    passage = request.scope.get("extensions", {}).get("waypost.gate")
    if passage is not None:
        passage.step_aside()
    return FileResponse(path, headers=headers, media_type=mime_type, stat_result=stat)
