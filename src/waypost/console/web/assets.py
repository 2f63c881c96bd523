"""Style sheets, modules and pictures, from the package: named by what is in them, so that browsers keep them."""

import hashlib
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from waypost.console.web.headers import SECURE

KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
}
_FOR_EVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


class Assets:
    """All files of `static/`. Their address holds a digest of all of them, so that modules find each other."""

    @cached_property
    def files(self) -> dict[str, tuple[str, bytes]]:
        """Media type and bytes by path, read when the first page is asked for."""
        return dict(sorted(_files(resources.files("waypost.console") / "static")))

    @cached_property
    def digest(self) -> str:
        """Of everything."""
        digest = hashlib.sha256()
        for path, (_, content) in self.files.items():
            digest.update(b"%s\0%d\0%s" % (path.encode(), len(content), content))
        return digest.hexdigest()[:16]

    def address(self, path: str) -> str:
        """Where a file is.

        Raises:
            KeyError: there is none; a page that names it would break in silence.
        """
        self.files[path]
        return f"/static/{self.digest}/{path}"

    async def show(self, request: Request) -> Response:
        """One file; under an old digest too, but then not for ever: a page may have been open since."""
        found = self.files.get(request.path_params["path"])
        if found is None:
            return Response("There is no such file.", 404, SECURE, media_type="text/plain")
        kind, content = found
        is_current = request.path_params["digest"] == self.digest
        cache = _FOR_EVER if is_current else {"Cache-Control": "no-cache"}
        return Response(content, headers={**cache, **SECURE, "Content-Type": kind})


def _files(folder: Traversable, before: str = "") -> list[tuple[str, tuple[str, bytes]]]:
    found: list[tuple[str, tuple[str, bytes]]] = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _files(one, f"{before}{one.name}/")
            continue
        kind = KINDS.get(f".{one.name.rpartition('.')[2]}")
        if kind is not None:
            found.append((f"{before}{one.name}", (kind, one.read_bytes())))
    return found
