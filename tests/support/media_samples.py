"""Small media files, generated in code; each begins with the signature of its format."""

import io
import struct
import zipfile
import zlib
from typing import Final


def _png() -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _zip(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "<x/>")
    return content.getvalue()


def _boxed(brand: bytes) -> bytes:
    return b"\0\0\0\x18ftyp" + brand + b"\0\0\2\0" + b"isommp42" + bytes(8)


SAMPLES: Final = {
    "png": _png(),
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + bytes(16) + b"\xff\xd9",
    "webp": b"RIFF\x2c\0\0\0WEBPVP8 " + bytes(32),
    "mp4": _boxed(b"isom"),
    "mp4_of_camera": _boxed(b"avc1"),
    "3gp": _boxed(b"3gp4"),
    "m4a": _boxed(b"M4A "),
    "mov": _boxed(b"qt  "),
    "mp3": b"\xff\xfb\x90\x64" + bytes(32),
    "mp3_mpeg2": b"\xff\xf3\x90\x64" + bytes(32),
    "mp3_tagged": b"ID3\x03\0\0\0\0\0\x0a" + bytes(32),
    "aac": b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(32),
    "amr": b"#!AMR\n" + b"\x3c" * 32,
    "ogg": b"OggS\0\2" + bytes(20) + b"\1\x13OpusHead" + bytes(16),
    "pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n%%EOF\n",
    "doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "docx": _zip("[Content_Types].xml", "word/document.xml"),
    "xlsx": _zip("[Content_Types].xml", "xl/workbook.xml"),
    "pptx": _zip("[Content_Types].xml", "ppt/presentation.xml"),
    "zip": _zip("a.txt"),
    "text": b"Hello, Ann.\nThis is a text.\n",
    "csv": b"name,price\nshoe,12\n",
    "gif": b"GIF89a\1\0\1\0" + bytes(16),
    "wav": b"RIFF\x24\0\0\0WAVEfmt " + bytes(32),
    "exe": b"MZ\x90\0" + bytes(60),
    "empty": b"",
}


def sample(kind: str, size_bytes: int = 0) -> bytes:
    """Return a sample, padded at the end to a size."""
    content = SAMPLES[kind]
    return content + bytes(max(0, size_bytes - len(content)))
