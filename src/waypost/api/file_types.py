"""The MIME types that a file may have, by its first and last bytes."""

from typing import Any, Final, cast

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OLD_OFFICE: Final = ("application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint")
_MP4: Final = ("video/mp4", "audio/mp4")

# fmt: off
LIBRARY_TYPES: Final = {  # the library's name of a type, a file extension, and our MIME types
    ".png":  ("image/png",),
    ".jpg":  ("image/jpeg",),
    ".jpeg": ("image/jpeg",),
    ".jfif": ("image/jpeg",),
    ".webp": ("image/webp",),
    ".pdf":  ("application/pdf",),
    ".amr":  ("audio/amr",),
    ".mp3":  ("audio/mpeg",),
    ".wav":  ("audio/wave",),  # versions of the library name it differently
    ".ogg":  ("audio/ogg", "audio/opus"),
    ".doc":  _OLD_OFFICE,  # one container for all three; the difference may be anywhere in it
}
MP4_BRANDS: Final = (  # ISO 14496-12, `ftyp`: the prefix of its brand; the library knows only a few of them
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
MPEG_FRAMES: Final = (  # MPEG audio without a header: a mask of the first two bytes, and the masked value
    # mask     value    MIME type
    (0xFFF6, 0xFFF0, ("audio/aac",)),   # ADTS
    (0xFFE6, 0xFFE2, ("audio/mpeg",)),  # layer III
)
OFFICE_FOLDERS: Final = (  # ECMA-376: the folder of an Office document's own parts, named in the archive's directory
    (b"word/", (f"{_OFFICE}wordprocessingml.document",)),
    (b"ppt/",  (f"{_OFFICE}presentationml.presentation",)),
    (b"xl/",   (f"{_OFFICE}spreadsheetml.sheet",)),
)
# fmt: on
_ID3: Final = b"ID3"  # ID3v2, before MPEG audio; newer versions of the library take it for another format
_TEXT_CONTROLS: Final = frozenset(b"\t\n\x0c\r")
_ZIP: Final = b"PK\x03\x04"
_ZIP_DIRECTORY_ENTRY: Final = b"PK\x01\x02"


def types_of(head: bytes, tail: bytes) -> tuple[str, ...]:
    """Return the MIME types that a file may have, the likeliest first; never empty.

    Args:
        head: its first few KiB.
        tail: its last bytes, which contain an archive's directory.
    """
    if head[4:8] == b"ftyp":
        return next(types for brand, types in MP4_BRANDS if head[8:12].startswith(brand))
    if head.startswith(_ZIP):
        return _archive_types(tail)
    first = int.from_bytes(head[:2])
    for mask, value, types in MPEG_FRAMES:
        if len(head) > 1 and first & mask == value:
            return types
    if head.startswith(_ID3):
        return ("audio/mpeg",)
    detected = _detect_by_library(head)
    if is_text(head):
        detected = (*detected, "text/plain")
    return detected or ("application/octet-stream",)


def possible_types(head: bytes) -> tuple[str, ...]:
    """Return the possible MIME types of a file that is still arriving: an archive may be any Office document."""
    if head.startswith(_ZIP):
        return tuple(mime_type for _, types in OFFICE_FOLDERS for mime_type in types)
    return types_of(head, b"")


def is_text(head: bytes) -> bool:
    """True if the bytes are UTF-8 without control characters; the last character may be cut off."""
    if any(byte < 32 and byte not in _TEXT_CONTROLS for byte in head):
        return False
    for cut in range(min(4, max(1, len(head)))):
        try:
            head[: len(head) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return True
    return False


def _archive_types(tail: bytes) -> tuple[str, ...]:
    directory = tail[max(0, tail.find(_ZIP_DIRECTORY_ENTRY)) :]
    for folder, types in OFFICE_FOLDERS:
        if folder in directory:
            return types
    return ("application/zip",)


def _detect_by_library(head: bytes) -> tuple[str, ...]:
    # The import reads its tables, 16 ms: only a process that receives a file pays for it.
    import puremagic

    try:
        matches = cast("list[Any]", puremagic.magic_string(head))  # pyright: ignore[reportUnknownMemberType]
    except (puremagic.PureError, ValueError):
        return ()
    named = [match for match in matches if match.mime_type]
    # A match with less confidence than the first one with a MIME type does not count: the library reports
    # every RIFF file as a WebP with low confidence.
    confidence = named[0].confidence if named else 0
    mime_types = [
        mime_type
        for match in matches
        if match.confidence >= confidence
        for mime_type in LIBRARY_TYPES.get(str(match.extension), ())
    ]
    return tuple(dict.fromkeys(mime_types or [str(match.mime_type) for match in named[:1]]))
