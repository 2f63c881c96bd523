"""Security headers, and the style sheets, scripts and images, served under a digest of their content."""

import hashlib
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

# Source: OWASP, "HTTP Headers Cheat Sheet"
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "media-src 'self' blob:; font-src 'self'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}


DISPLAYABLE_TYPES: Final = (  # images, videos and audio that browsers can display
    "image/jpeg", "image/png", "image/webp", "image/gif",
    "video/mp4", "video/3gpp",
    "audio/aac", "audio/mp4", "audio/mpeg", "audio/amr", "audio/ogg", "audio/opus",
)  # fmt: skip

SANDBOX_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}
"""Headers of files from others: opened on its own, such a file cannot run scripts."""


ASSET_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
}
_IMMUTABLE: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


_PACKAGES: Final = ("waypost.console", "waypost.flow_pages")
"""Whose `static/` is served: the console's, and that of the player of Flows."""


class Assets:
    """All files of `static/`. Their path contains one digest of all files, so that modules can import each other."""

    @cached_property
    def files(self) -> dict[str, tuple[str, bytes]]:
        """Media type and bytes by path, read with the first request."""
        roots = [Path(str(resources.files(package))) / "static" for package in _PACKAGES]
        return {
            path.relative_to(root).as_posix(): (ASSET_MEDIA_TYPES[path.suffix], path.read_bytes())
            for root in roots
            for path in sorted(root.rglob("*"))
            if path.suffix in ASSET_MEDIA_TYPES
        }

    @cached_property
    def digest(self) -> str:
        """Digest of all files."""
        digest = hashlib.sha256()
        for path, (_, content) in self.files.items():
            digest.update(b"%s\0%d\0%s" % (path.encode(), len(content), content))
        return digest.hexdigest()[:16]

    def url_path(self, path: str) -> str:
        """Return the path of a file.

        Raises:
            KeyError: the file does not exist; otherwise its page would break silently.
        """
        self.files[path]
        return f"/static/{self.digest}/{path}"

    async def serve(self, request: Request) -> Response:
        """Return a file; under an old digest too, for pages that are still open, but without long caching."""
        file = self.files.get(request.path_params["path"])
        if file is None:
            return Response("File not found.", 404, SECURITY_HEADERS, media_type="text/plain")
        kind, content = file
        is_current = request.path_params["digest"] == self.digest
        cache = _IMMUTABLE if is_current else {"Cache-Control": "no-cache"}
        return Response(content, headers={**cache, **SECURITY_HEADERS, "Content-Type": kind})
