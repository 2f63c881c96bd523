"""What kind of file some bytes are, told from the bytes. The declared type is not trusted.

Most is known by a library; what it does not know or cannot tell apart is a table here (decision 0022).
"""

from typing import Any, Final, cast

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OLD_OFFICE: Final = ("application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint")
_MP4: Final = ("video/mp4", "audio/mp4")

# fmt: off
KNOWN: Final = {  # the library's word for a kind, its file name ending, and the MIME types we call it
    ".png":  ("image/png",),
    ".jpg":  ("image/jpeg",),
    ".jpeg": ("image/jpeg",),
    ".jfif": ("image/jpeg",),
    ".webp": ("image/webp",),
    ".pdf":  ("application/pdf",),
    ".amr":  ("audio/amr",),
    ".mp3":  ("audio/mpeg",),
    ".ogg":  ("audio/ogg", "audio/opus"),
    ".doc":  _OLD_OFFICE,  # one container for all three; which one it is stands anywhere in it
}
BRANDS: Final = (  # ISO 14496-12, `ftyp`: how its brand begins; the library knows a few of them only
    (b"3g",   ("video/3gpp",)),
    (b"M4A",  ("audio/mp4",)),
    (b"M4B",  ("audio/mp4",)),
    (b"F4A",  ("audio/mp4",)),
    (b"qt",   ("video/quicktime",)),
    (b"hei",  ("image/heic",)),
    (b"mif1", ("image/heif",)),
    (b"avi",  ("image/avif",)),
    (b"",     _MP4),
)
FRAMES: Final = (  # MPEG audio without a header: which bits of the first two bytes, and their value
    # mask     value    MIME type
    (0xFFF6,   0xFFF0,  ("audio/aac",)),   # ADTS
    (0xFFE6,   0xFFE2,  ("audio/mpeg",)),  # layer III
)
ZIPPED: Final = (  # ECMA-376: the folder of an Office document's own parts, named in the archive's directory
    (b"word/", (f"{_OFFICE}wordprocessingml.document",)),
    (b"ppt/",  (f"{_OFFICE}presentationml.presentation",)),
    (b"xl/",   (f"{_OFFICE}spreadsheetml.sheet",)),
)
# fmt: on
_TEXT_CONTROLS: Final = frozenset(b"\t\n\x0c\r")
_ZIP: Final = b"PK\x03\x04"
_ZIP_DIRECTORY_ENTRY: Final = b"PK\x01\x02"


def types_of(head: bytes, tail: bytes) -> tuple[str, ...]:
    """The MIME types that bytes may be, the likeliest first; never empty.

    Args:
        head: their first few KiB.
        tail: their last; where an archive names what it holds.
    """
    if head[4:8] == b"ftyp":
        return next(types for brand, types in BRANDS if head[8:12].startswith(brand))
    if head.startswith(_ZIP):
        return _zipped(tail)
    first = int.from_bytes(head[:2])
    for mask, value, types in FRAMES:
        if len(head) > 1 and first & mask == value:
            return types
    found = _library_says(head)
    if is_text(head):
        found = (*found, "text/plain")
    return found or ("application/octet-stream",)


def most_bytes_types(head: bytes) -> tuple[str, ...]:
    """The same while bytes still come: an archive may still become any document."""
    if head.startswith(_ZIP):
        return tuple(one for _, types in ZIPPED for one in types)
    return types_of(head, b"")


def is_text(head: bytes) -> bool:
    """Whether the bytes are UTF-8 without control characters; the last one may be cut off."""
    if any(byte < 32 and byte not in _TEXT_CONTROLS for byte in head):
        return False
    for cut in range(min(4, max(1, len(head)))):
        try:
            head[: len(head) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return True
    return False


def _zipped(tail: bytes) -> tuple[str, ...]:
    directory = tail[max(0, tail.find(_ZIP_DIRECTORY_ENTRY)) :]
    for folder, types in ZIPPED:
        if folder in directory:
            return types
    return ("application/zip",)


def _library_says(head: bytes) -> tuple[str, ...]:
    # Its tables are read at import, 16 ms: only a process that is sent a file pays.
    import puremagic

    try:
        matches = cast("list[Any]", puremagic.magic_string(head))  # pyright: ignore[reportUnknownMemberType]
    except (puremagic.PureError, ValueError):
        return ()
    named = [match for match in matches if match.mime_type]
    # What it is less sure of than of something that has a name does not count: every RIFF file is
    # a little of a WebP to it.
    sure = named[0].confidence if named else 0
    found = [one for match in matches if match.confidence >= sure for one in KNOWN.get(str(match.extension), ())]
    return tuple(dict.fromkeys(found or [str(match.mime_type) for match in named[:1]]))
