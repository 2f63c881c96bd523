"""Security headers of the console's responses, and the media types that a browser may display."""

from typing import Final

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
