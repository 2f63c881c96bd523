"""Make the screenshots of the console in `docs/images/console/`. `make screenshots` runs it.

They show the scene of the console's tests, always at the same time. Each is reduced to 256 colours in the browser
that made it, so that a page with forty of them opens quickly.
"""

import asyncio
import base64
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.console.conftest import CHROMIUM
from tests.console.support import story
from tests.console.support.addresses import fill_path, list_routes
from tests.console.support.scene import ANN, BEN, CHI, Scene, open_scene
from waypost.console.route import RouteKind

FOLDER: Final = Path(__file__).parent / "images" / "console"
BEGINS: Final = datetime(2026, 5, 4, 22, 20, tzinfo=UTC)
MOST_BYTES: Final = 120_000
MOST_BYTES_OF_ALL: Final = 5_000_000
Size = tuple[int, int]
WIDE: Final[Size] = (1440, 900)
NARROW: Final[Size] = (360, 740)
THEMES: Final = ("light", "dark")

# fmt: off
NAMES: Final = {  # a page's path in the route table, the name of its picture, and whether there is a narrow one
    "/sign-in":                                                  ("sign-in", False),
    "/apps/{app_id}":                                            ("overview", True),
    "/businesses":                                               ("onboarding", False),
    "/phones":                                                   ("phones", True),
    "/apps/{app_id}/templates":                                  ("templates", False),
    "/apps/{app_id}/templates/{template_id}":                    ("template", False),
    "/apps/{app_id}/templates/new":                              ("template-new", False),
    "/apps/{app_id}/templates/{template_id}/edit":               ("template-edit", False),
    "/apps/{app_id}/flows":                                      ("flows", False),
    "/apps/{app_id}/flows/{flow_id}":                            ("flow-editor", False),
    "/apps/{app_id}/messages":                                   ("messages", False),
    "/apps/{app_id}/messages/received":                          ("messages-received", False),
    "/apps/{app_id}/conversations":                              ("conversations", False),
    "/apps/{app_id}/conversations/{recipient_id}":               ("conversation", False),
    "/apps/{app_id}/messages/{message_id:path}":                 ("trace", False),
    "/requests":                                                 ("api-requests", False),
    "/requests/{entry_id}":                                      ("api-request", False),
    "/apps/{app_id}/callbacks":                                  ("callbacks", False),
    "/apps/{app_id}/callbacks/new":                              ("subscription-new", False),
    "/apps/{app_id}/callbacks/subscriptions/{subscription_id}":  ("subscription", False),
    "/apps/{app_id}/callbacks/deliveries":                       ("deliveries", False),
    "/apps/{app_id}/callbacks/deliveries/{callback_id}":         ("delivery", False),
    "/apps/{app_id}/callbacks/replay":                           ("replay", False),
    "/apps/{app_id}/callbacks/response-times":                   ("response-times", False),
    "/apps/{app_id}/callbacks/verify":                           ("verify", False),
    "/simulator":                                                ("reviews", False),
    "/simulator/faults":                                         ("faults", False),
    "/simulator/faults/new/{on}/{kind}":                         ("fault-new", False),
    "/simulator/faults/{fault_id}":                              ("fault", False),
    "/simulator/clock":                                          ("clock", False),
    "/simulator/fleets":                                         ("fleets", False),
    "/simulator/fleets/{name}":                                  ("fleet", False),
    "/simulator/snapshots":                                      ("snapshots", False),
    "/simulator/rules":                                          ("rules", False),
    "/partners":                                                 ("partners", False),
    "/settings":                                                 ("settings", False),
    "/settings/password":                                        ("password", False),
    "/settings/secrets":                                         ("client-secrets", False),
    "/settings/keys":                                            ("api-keys", False),
    "/settings/apps":                                            ("apps", False),
    "/apps/{app_id}/settings/operator":                          ("operator-switch", False),
    "/phones/{phone}/script":                                     ("script", False),
    "/phones/business/{number}":                                  ("business-phone", False),
    "/settings/operator":                                        ("operator", False),
    "/settings/audit":                                           ("settings-audit", False),
    "/settings/personal-data":                                   ("personal-data", False),
    "/settings/administrator":                                   ("settings-administrator", False),
    "/apps/{app_id}/settings":                                   ("app-settings", False),
}
BESIDE: Final = (  # pages beside the console, in light: path, name
    ("/docs/post-wa-api-v1-template-msg#try-it", "try-it"),
)
ELSEWHERE: Final = ("/",)  # leads to another page
QUERIES: Final = {  # wide, and narrow
    "/phones":                (f"?show={ANN},{BEN},{CHI}", f"?show={ANN}"),
    "/phones/{phone}/script": ("?preset=customers",       "?preset=customers"),
    "/phones/business/{number}": (f"?chat={ANN}",         f"?chat={ANN}"),
}
# fmt: on

REDUCE: Final = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (one) => one.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const byCount = [...counts].sort((a, b) => b[1] - a[1]);
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  // What is seen most stays as it is; all else is cut into boxes of like colours.
  const palette = byCount.slice(0, 140).map(([colour]) => parts(colour));
  let boxes = [byCount.slice(140).map(([colour, count]) => ({ at: parts(colour), count }))].filter((box) => box.length);
  const widest = (box) => {
    const spans = [0, 1, 2].map((one) => {
      let least = 255, most = 0;
      for (const { at } of box) { least = Math.min(least, at[one]); most = Math.max(most, at[one]); }
      return most - least;
    });
    const span = Math.max(...spans);
    return [span, spans.indexOf(span)];
  };
  while (boxes.length && palette.length + boxes.length < 256) {
    const ranked = boxes.map((box) => [widest(box), box]).sort((a, b) => b[0][0] - a[0][0]);
    const [[span, along], box] = ranked[0];
    if (span < 2) break;
    box.sort((a, b) => a.at[along] - b.at[along]);
    const half = Math.ceil(box.length / 2);
    boxes = boxes.filter((one) => one !== box).concat([box.slice(0, half), box.slice(half)].filter((one) => one.length));
  }
  for (const box of boxes) {
    const all = box.reduce((sum, one) => sum + one.count, 0);
    palette.push([0, 1, 2].map((part) => Math.round(box.reduce((sum, one) => sum + one.at[part] * one.count, 0) / all)));
  }
  const nearest = new Map(byCount.map(([colour]) => {
    const [red, green, blue] = parts(colour);
    let best = 0, least = Infinity;
    palette.forEach(([r, g, b], at) => {
      const away = 2 * (red - r) ** 2 + 4 * (green - g) ** 2 + 3 * (blue - b) ** 2;
      if (away < least) { least = away; best = at; }
    });
    return [colour, best];
  }));
  const indexes = Uint8Array.from(pixels, (pixel) => nearest.get(pixel));
  let text = "";
  for (let at = 0; at < indexes.length; at += 32768) text += String.fromCharCode(...indexes.subarray(at, at + 32768));
  return [bitmap.width, bitmap.height, palette.flat(), btoa(text)];
}"""


@dataclass(frozen=True, slots=True)
class Shot:
    """One screenshot."""

    name: str
    path: str
    size: Size
    theme: str


def shots(values: dict[str, str]) -> Iterator[Shot]:
    """Yield all screenshots: every page wide in both themes, the main ones narrow in light.

    Raises:
        KeyError: a page has no name here.
    """
    for row in list_routes(RouteKind.PAGE):
        if row.path in ELSEWHERE:
            continue
        name, is_narrow = NAMES[row.path]
        path = fill_path(row, values)
        wide, narrow = QUERIES.get(row.path, ("", ""))
        for theme in THEMES:
            yield Shot(f"{name}-{theme}", path + wide, WIDE, theme)
        if is_narrow:
            yield Shot(f"{name}-narrow", path + narrow, NARROW, "light")
    for path, name in BESIDE:
        yield Shot(f"{name}-light", path, WIDE, "light")


async def make(folder: Path = FOLDER, *, only: str = "") -> list[tuple[str, int]]:
    """Write the screenshots, and return their names and sizes in bytes."""
    made: list[tuple[str, int]] = []
    begins_ms = int(BEGINS.timestamp() * 1000)
    with tempfile.TemporaryDirectory() as data:
        async with (
            open_scene(Path(data), story.populate_for_screenshots, begins_ms=begins_ms) as scene,
            async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"]
            )
            reducer = await (await browser.new_context()).new_page()
            contexts = {
                (size, theme): await _context(browser, scene, size, theme)
                for size in (WIDE, NARROW)
                for theme in THEMES
            }
            for shot in shots(scene.values):
                if only and only not in shot.name:
                    continue
                context = contexts[shot.size, shot.theme]
                picture = await _take_picture(context, scene, shot)
                small = await _reduced(reducer, picture)
                await asyncio.to_thread((folder / f"{shot.name}.png").write_bytes, small)
                made.append((shot.name, len(small)))
            await browser.close()
    return made


async def _context(browser: Browser, scene: Scene, size: Size, theme: Any) -> BrowserContext:
    width, height = size
    return await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce",
        timezone_id="UTC", locale="en-GB",
    )  # fmt: skip


async def _take_picture(context: BrowserContext, scene: Scene, shot: Shot) -> bytes:
    url = scene.console.base_url
    await context.clear_cookies()
    if shot.path != "/sign-in":
        cookie = next(one for one in scene.console.http.cookie_jar if one.key == "waypost_session")
        await context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": url}])
    page = await context.new_page()
    await page.goto(url + shot.path, wait_until="load")
    await page.wait_for_timeout(700)  # until the first update of its stream has arrived and the layout is stable
    picture = await page.screenshot(animations="disabled", caret="hide")
    await page.close()
    return picture


async def _reduced(reducer: Page, picture: bytes) -> bytes:
    """Return the picture reduced to 256 colours."""
    width, height, palette, indexes = await reducer.evaluate(REDUCE, base64.b64encode(picture).decode())
    pixels = base64.b64decode(indexes)
    lines = b"".join(b"\0" + pixels[at : at + width] for at in range(0, width * height, width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"PLTE", bytes(palette))
        + _chunk(b"IDAT", _compress(lines)) + _chunk(b"IEND", b"")
    )  # fmt: skip


def _compress(lines: bytes) -> bytes:
    """Return the smaller of two compressions: which one suits a picture better is not known before."""
    strategies = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED)
    encoders = [zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, zlib.MAX_MEM_LEVEL, one) for one in strategies]
    return min((encoder.compress(lines) + encoder.flush() for encoder in encoders), key=len)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


def main() -> None:
    """Write the pictures, and print their sizes."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = asyncio.run(make(only=only))
    for name, size in sorted(made, key=lambda one: -one[1]):
        note = "  is too large" if size > MOST_BYTES else ""
        sys.stdout.write(f"{size:>8,}  {name}.png{note}\n")
    all_of_them = sum(file.stat().st_size for file in FOLDER.glob("*.png"))
    sys.stdout.write(f"{all_of_them:>8,}  in total, of at most {MOST_BYTES_OF_ALL:,}\n")


if __name__ == "__main__":
    main()
