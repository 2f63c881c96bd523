"""Pictures for the messages of the bakery, drawn in code: PNG, the same bytes in every run."""

import struct
import zlib
from functools import cache
from math import hypot
from typing import Final

WIDTH: Final = 240
HEIGHT: Final = 150
Colour = tuple[int, int, int]

# fmt: off
PICTURES: Final[dict[str, tuple[Colour, Colour, Colour]]] = {  # above, below, and the loaf
    "bread":  ((250, 236, 210), (214, 178, 122), (150, 92, 44)),
    "cake":   ((252, 226, 232), (226, 150, 170), (250, 246, 236)),
    "rolls":  ((222, 236, 246), (120, 160, 196), (216, 164, 90)),
    "pretzel":((228, 240, 222), (136, 178, 120), (120, 66, 30)),
}
# fmt: on


@cache
def picture(name: str) -> bytes:
    """Return a picture as PNG."""
    above, below, loaf = PICTURES[name]
    rows = bytearray()
    for y in range(HEIGHT):
        part = y / HEIGHT
        ground = tuple(round(a + (b - a) * part) for a, b in zip(above, below, strict=True))
        rows.append(0)
        for x in range(WIDTH):
            rows += bytes(_loaf(x, y, loaf) or ground)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    content = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(bytes(rows), 9))
    return b"\x89PNG\r\n\x1a\n" + content + _chunk(b"IEND", b"")


def _loaf(x: int, y: int, colour: Colour) -> Colour | None:
    """Return the colour of a loaf with three cuts at a point; None outside the loaf."""
    across, down = (x - WIDTH / 2) / 80, (y - HEIGHT * 0.55) / 42
    distance = hypot(across, down)
    if distance > 1:
        return None
    is_cut = any(abs(across - at + down * 0.25) < 0.05 and abs(down) < 0.55 for at in (-0.4, 0, 0.4))
    light = 1.25 if is_cut else 1.12 - 0.3 * (down + 1) / 2 - 0.15 * distance
    red, green, blue = (min(255, round(part * light)) for part in colour)
    return red, green, blue


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check
