"""Which files a browser may show in a page of ours: those that can hold no script."""

from typing import Final

SAFE: Final = (  # what browsers show as pictures, sounds and films
    "image/jpeg", "image/png", "image/webp", "image/gif",
    "video/mp4", "video/3gpp",
    "audio/aac", "audio/mp4", "audio/mpeg", "audio/amr", "audio/ogg", "audio/opus",
)  # fmt: skip

SHUT: Final = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}
"""Headers of every file that somebody else has made: opened by itself it may do nothing."""
