"""Whatever is sent to an address of the console is answered in words: no defect, there or in what comes of it."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from urllib.parse import quote_from_bytes

import aiohttp
import pytest
from yarl import URL

from tests.console.conftest import LOOP
from tests.console.support import story
from tests.console.support.addresses import addresses, filled, parameters, rows
from tests.console.support.scene import Scene, open_scene
from tests.fuzz.console_forms import FRESH, Address, Form, filled_oddly, forms_of, known_of
from tests.fuzz.odd_values import ODD_BODIES, ODD_FILES, ODD_SEGMENTS, odd_text
from tests.support.media_samples import sample
from tests.support.waiting import HANGS_AFTER_S
from waypost.console.route import Audience, PageRoute, RouteKind

EXAMPLES: Final = int(os.environ.get("WAYPOST_FUZZ_EXAMPLES", "1"))
IS_LONG: Final = EXAMPLES > 10
SEED: Final = int(os.environ.get("WAYPOST_FUZZ_SEED", Random().randrange(10**6) if IS_LONG else 1))
ANSWERS_WITHIN_S: Final = HANGS_AFTER_S

pytestmark = [pytest.mark.asyncio(loop_scope=LOOP), pytest.mark.timeout(3600 if IS_LONG else 600)]

# fmt: off
LAST: Final = (  # acts that take away what others need, or turn the clock: in this order, after all others
    "/number", "/report", "/offline", "/block", "/operator", "/simulator/templates", "/rules", "/review-delay", "/delete", "/drop", "/disarm", "/revoke", "/renew",
    "/password", "/end-others", "/sign-out", "/clock/", "/load", "/reset",
)
LOOKED_AT: Final = (  # pages that show what acts have left behind
    "/apps/{app_id}", "/apps/{app_id}/messages", "/apps/{app_id}/messages/received", "/apps/{app_id}/templates", "/apps/{app_id}/callbacks",
    "/apps/{app_id}/callbacks/deliveries", "/apps/{app_id}/callbacks/response-times", "/apps/{app_id}/settings", "/phones",
    "/phones?show={phone}", "/simulator", "/simulator/faults", "/simulator/fleets", "/simulator/snapshots", "/simulator/clock",
    "/simulator/rules", "/settings", "/settings/apps", "/settings/keys", "/settings/secrets", "/settings/operator", "/commands",
)
# fmt: on
_TICKED: Final = ("on", "true", "1")


@dataclass
class Fuzzer:
    """Sends odd things, and notes what is answered by a defect."""

    scene: Scene
    chance: Random
    csrf: str = ""
    wrong: list[str] = field(default_factory=list[str])
    answered: Counter[tuple[PageRoute, int]] = field(default_factory=Counter[tuple[PageRoute, int]])
    lately: list[str] = field(default_factory=list[str])

    async def ask(self, row: PageRoute, path: str, told: str, *, data: Any = None, headers: Any = None) -> int:
        """Ask for one address; gives the status, 0 where there was no answer in time."""
        url = URL(self.scene.desk.base_url + path, encoded=True)
        about = f"{row.method} {path[:300]} {told[:300]}"
        self.lately.append(about)
        try:
            async with (
                asyncio.timeout(ANSWERS_WITHIN_S),
                self.scene.desk.http.request(
                    row.method, url, data=data, headers=headers, allow_redirects=False
                ) as answer,
            ):
                status = answer.status
                if answer.content_type == "text/event-stream":  # an odd part may name one
                    await answer.content.readany()
                    answer.close()
                elif status >= 500:
                    self.wrong.append(f"{about}: {status} {(await answer.text())[:200]}")
                else:
                    await answer.read()
        except TimeoutError:
            status = 0
            self.wrong.append(f"{about}: no answer within {ANSWERS_WITHIN_S} s")
        except aiohttp.ClientError as error:  # the server hung up; it may not do that either
            status = -1
            self.wrong.append(f"{about}: {error!r}")
        self.answered[row, status] += 1
        return status

    async def act(self, row: PageRoute, path: str, form: Form, odd: str | None) -> None:
        """Send a form in which one field at least is odd, or none.

        Args:
            row: of the act.
            path: to which it goes.
            form: its fields.
            odd: the field that is odd for certain; empty: the body is no form; None: nothing is odd.
        """
        chance = self.chance
        headers = {"x-waypost-csrf": self.csrf}
        if chance.randrange(3) == 0:
            headers["x-waypost-quiet"] = "1"
        if odd == "":
            kind, content = chance.choice(ODD_BODIES)
            more = {"Content-Type": kind} if kind else {}
            await self.ask(row, path, repr((kind, content[:60])), data=content, headers=headers | more)  # fmt: skip
            return
        fields = self.usual(form, is_whole=odd is None)
        some: list[str] = []
        if odd is not None:
            some = [odd, *(name for name in fields if chance.randrange(8) == 0)]
        files: dict[str, tuple[str, str, bytes]] = {
            name: ("a.png", "image/png", sample("png")) for name in form.files if chance.randrange(2)
        }
        for name in some:
            if name in form.files or chance.randrange(25) == 0:
                files[name] = chance.choice(ODD_FILES)
                fields.pop(name, None)
            else:
                fields[name] = odd_text(chance)
        told = repr({name: value[:80] for name, value in fields.items() if name in some} | files)
        if files or chance.randrange(4) == 0:
            kind, content = _multipart(fields, files, chance)
        else:
            kind, content = "application/x-www-form-urlencoded", _urlencoded(fields)
        await self.ask(row, path, told, data=content, headers=headers | {"Content-Type": kind})

    def usual(self, form: Form, *, is_whole: bool = False) -> dict[str, str]:
        """What a person would send: what stands in the fields, or one of the choices; whole, or with fields left out."""
        fields: dict[str, str] = {}
        for name, values in form.choices.items():
            value = values[0] if self.chance.randrange(3) else self.chance.choice(values)
            is_box = value in _TICKED
            if (is_box or not is_whole) and self.chance.randrange(4 if is_box else 12) == 0:
                continue
            if name in FRESH and self.chance.randrange(2):
                value = FRESH[name].format(self.answered.total())
            fields[name] = value
        return fields

    async def enter(self) -> None:
        """Sign in, where the last act has ended the session, and take the token of the session."""
        http, base = self.scene.desk.http, self.scene.desk.base_url
        async with http.get(base + "/settings", allow_redirects=False) as answer:
            page, status = await answer.text(), answer.status
        if status != 200:
            async with http.post(base + "/enter", allow_redirects=False) as answer:
                assert answer.status == 303, await answer.text()
            page = await self.scene.desk.get("/settings")
        self.csrf = page.partition('data-csrf="')[2].partition('"')[0]

    async def look(self) -> None:
        """See that the pages on which all that is shown are still there, and that no stage has had a defect."""
        await self.enter()
        http, base = self.scene.desk.http, self.scene.desk.base_url
        since = " | ".join(self.lately[-12:])
        for page in LOOKED_AT:
            path = page.format(**self.scene.values)
            async with http.get(base + path, allow_redirects=False) as answer:
                if answer.status >= 500:
                    self.wrong.append(f"{path}: {answer.status} after {since}")
        async with http.get(base + "/metrics") as answer:
            told = await answer.text()
        defects = re.findall(r'(waypost_lane_entries_total\{[^}]*"defects"[^}]*\}) ([1-9].*)', told)
        if defects:
            self.wrong.append(f"{defects} after {since}")
        self.lately.clear()


async def test_no_form_and_no_address_makes_a_defect(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each field of each act is odd once at least; then each part of each address, and each field of its query."""
    async with open_scene(tmp_path_factory.mktemp("fuzz"), story.tell) as scene:
        fuzzer = Fuzzer(scene, Random(SEED))
        await fuzzer.enter()
        found = await _forms(scene)
        acts = sorted(rows(RouteKind.ACT), key=_lateness)
        for row in (one for one in acts if not _lateness(one)):
            await _fuzz_act(fuzzer, row, known_of(row, found))
        for row in rows(RouteKind.PAGE, RouteKind.PART, RouteKind.LIVE):
            await _fuzz_address(fuzzer, row, known_of(row, found))
        await fuzzer.look()
        for row in (one for one in acts if _lateness(one)):
            await _fuzz_act(fuzzer, row, known_of(row, found))
        await fuzzer.look()
    _tell(fuzzer)
    assert not fuzzer.wrong, f"seed {SEED}:\n" + "\n".join(dict.fromkeys(fuzzer.wrong))


async def _fuzz_act(fuzzer: Fuzzer, row: PageRoute, known: Address) -> None:
    names = known.form.names
    plan: list[str | None] = [None, *names, "", None]
    while len(plan) < EXAMPLES:
        plan += [*fuzzer.chance.choices(names, k=17), "", None, None] if names else ["", None]
    for nth, odd in enumerate(plan):
        await fuzzer.act(row, _path(fuzzer, row, known, odd_of=8), known.form, odd)
        if _lateness(row) or row.audience is Audience.PUBLIC:
            await fuzzer.enter()
        if nth % 25 == 24:
            await fuzzer.look()
    # Else the operator goes on answering as faults say, and the console tells so by a 503, rightly.
    await fuzzer.scene.control("DELETE", "faults")
    if IS_LONG:
        await fuzzer.look()


async def _fuzz_address(fuzzer: Fuzzer, row: PageRoute, known: Address) -> None:
    asked = known.form.names
    for nth in range(max(EXAMPLES // 3, len(parameters(row)) + 1, len(asked))):
        path, chance = _path(fuzzer, row, known, odd_of=3), fuzzer.chance
        if asked:
            some: set[str] = set()
            if nth % 4 != 3:
                some = {asked[nth % len(asked)], *(one for one in asked if not chance.randrange(8))}
            fields = fuzzer.usual(known.form, is_whole=not some) | {name: odd_text(chance)[:6000] for name in some}
            path += "?" + _urlencoded(fields).decode()[:12_000]
        if row.kind is RouteKind.LIVE and nth > EXAMPLES // 10 + 1:
            continue
        await fuzzer.ask(row, path, "")


def _path(fuzzer: Fuzzer, row: PageRoute, known: Address, *, odd_of: int) -> str:
    """One of the paths that lead to something, or, once in so many, one with an odd part."""
    chance, values = fuzzer.chance, dict(fuzzer.scene.values)
    named = parameters(row)
    if not named or chance.randrange(odd_of):
        return chance.choice([filled(row, values), *known.paths])
    own = {name: values.get(f"{row.path} {name}", "") for name in named}
    values |= {name: value for name, value in own.items() if value}
    return filled_oddly(row, values, {chance.choice(named): chance.choice(ODD_SEGMENTS)})


async def _forms(scene: Scene) -> list[tuple[str, Form]]:
    found: list[tuple[str, Form]] = []
    kinds = (await scene.control("GET", "faults/kinds"))["kinds"]
    types = ("TEXT", "IMAGE", "CAROUSEL", "LOCATION", "CATALOG", "PRODUCT", "DOCUMENT")
    pages = [
        *(one.path for one in addresses(scene.values, RouteKind.PAGE)),
        *(f"/apps/{scene.desk.app_id}/templates/new?type={one}" for one in types),
        *(f"/apps/{scene.desk.app_id}/templates/{one}" for one in scene.templates.values()),
        *(f"/simulator/faults/new/{one['on']}/{one['name']}" for one in kinds),
    ]
    if IS_LONG:
        own = f"/apps/{scene.desk.app_id}/templates"
        pages += [f"{own}/{one}/edit" for one in scene.templates.values()]
    for path in pages:
        async with scene.desk.http.get(scene.desk.base_url + path) as answer:
            found += forms_of(await answer.text())
    return found


def _lateness(row: PageRoute) -> int:
    """0: early; else the place among those that come last."""
    return next((nth for nth, one in enumerate(LAST, 1) if one in row.path), 0)


def _urlencoded(fields: Mapping[str, str]) -> bytes:
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in fields.items()).encode()


def _quoted(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")


def _multipart(
    fields: Mapping[str, str], files: Mapping[str, tuple[str, str, bytes]], chance: Random
) -> tuple[str, bytes]:
    parts: list[bytes] = []
    for name, value in fields.items():
        parts.append(_head(name) + b"\r\n\r\n" + value.encode("utf-8", "surrogatepass"))
    for name, (file, kind, content) in files.items():
        head = _head(name) + b'; filename="%s"' % file.encode("utf-8", "surrogatepass")
        head += b"\r\nContent-Type: " + kind.encode() if kind else b""
        parts.append(head + b"\r\n\r\n" + content)
    body = b"".join(b"--waypost-x\r\n" + part + b"\r\n" for part in parts) + b"--waypost-x--\r\n"
    charset = chance.choice(("", "", "", "; charset=utf-7", "; charset=latin-1", "; charset=utf-16"))
    return f"multipart/form-data; boundary=waypost-x{charset}", body


def _head(name: str) -> bytes:
    told = name.replace('"', "%22").replace("\r", "").replace("\n", "")
    return b'Content-Disposition: form-data; name="%s"' % told.encode("utf-8", "surrogatepass")


def _tell(fuzzer: Fuzzer) -> None:
    """Print, per address, how many requests were answered, and how many of them were done or shown."""
    print(f"\n{'address':70} {'asked':>6} {'taken':>6}")
    for row in rows(*RouteKind):
        counts = {status: count for (one, status), count in fuzzer.answered.items() if one is row}
        taken = sum(count for status, count in counts.items() if 200 <= status < 400)
        print(f"{row.method:4} {row.path:65} {sum(counts.values()):6} {taken:6}  {counts}")
