"""No request to the console causes a defect, neither in its own response nor later in a stage."""

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
from tests.console.support.addresses import addresses, fill_path, list_routes, parameters
from tests.console.support.scene import Scene, open_scene
from tests.fuzz.console_forms import (
    UNIQUE_VALUES,
    Form,
    RouteInputs,
    collect_inputs,
    fill_with_hostile_segments,
    forms_of,
)
from tests.fuzz.hostile_values import HOSTILE_FILES, HOSTILE_SEGMENTS, MALFORMED_BODIES, draw_hostile_text
from tests.support.library_texts import LIBRARY_TEXTS
from tests.support.media_samples import sample
from tests.support.polling import HANGS_AFTER_S
from waypost.console.route import Audience, PageRoute, RouteKind

EXAMPLES: Final = int(os.environ.get("WAYPOST_FUZZ_EXAMPLES", "1"))
IS_LONG: Final = EXAMPLES > 10
SEED: Final = int(os.environ.get("WAYPOST_FUZZ_SEED", Random().randrange(10**6) if IS_LONG else 1))
RESPONSE_TIMEOUT_S: Final = HANGS_AFTER_S

pytestmark = [pytest.mark.asyncio(loop_scope=LOOP), pytest.mark.timeout(3600 if IS_LONG else 600)]

# fmt: off
LATE_ACTIONS: Final = (  # actions that delete what others need, or set the clock: in this order, after all others
    "/number", "/report", "/offline", "/block", "/operator", "/simulator/templates", "/rules", "/review-delay", "/delete", "/drop", "/disarm", "/revoke", "/renew",
    "/password", "/end-others", "/enter", "/sign-out", "/clock/", "/load", "/reset",
)
CHECKED_PAGES: Final = (  # pages that show the results of actions
    "/apps/{app_id}", "/apps/{app_id}/messages", "/apps/{app_id}/messages/received", "/apps/{app_id}/conversations", "/apps/{app_id}/templates", "/apps/{app_id}/callbacks",
    "/apps/{app_id}/callbacks/deliveries", "/apps/{app_id}/callbacks/response-times", "/apps/{app_id}/settings", "/phones",
    "/phones?show={phone}", "/simulator", "/simulator/faults", "/simulator/fleets", "/simulator/snapshots", "/simulator/clock",
    "/simulator/rules", "/partners", "/phones/{phone}/script", "/settings", "/settings/apps", "/settings/keys", "/settings/secrets", "/settings/operator", "/commands",
)
# fmt: on
_CHECKED_VALUES: Final = ("on", "true", "1")


@dataclass
class Fuzzer:
    """Sends hostile values, and records the defects."""

    scene: Scene
    chance: Random
    csrf: str = ""
    defects: list[str] = field(default_factory=list[str])
    outcomes: Counter[tuple[PageRoute, int]] = field(default_factory=Counter[tuple[PageRoute, int]])
    recent_requests: list[str] = field(default_factory=list[str])

    async def send_request(
        self, row: PageRoute, path: str, description: str, *, data: Any = None, headers: Any = None
    ) -> int:
        """Send a request; return its status, 0 if there was no response in time."""
        url = URL(self.scene.console.base_url + path, encoded=True)
        request = f"{row.method} {path[:300]} {description[:300]}"
        self.recent_requests.append(request)
        try:
            async with (
                asyncio.timeout(RESPONSE_TIMEOUT_S),
                self.scene.console.http.request(
                    row.method, url, data=data, headers=headers, allow_redirects=False
                ) as response,
            ):
                status = response.status
                if response.content_type == "text/event-stream":  # a hostile segment may name one
                    await response.content.readany()
                    response.close()
                elif status >= 500:
                    self.defects.append(f"{request}: {status} {(await response.text())[:200]}")
                elif status < 400 or "text" not in response.content_type:
                    await response.read()
                elif found := LIBRARY_TEXTS.search(await response.text()):
                    self.defects.append(f"{request}: shows the text of a library: {found[0]}")
        except TimeoutError:
            status = 0
            self.defects.append(f"{request}: no response within {RESPONSE_TIMEOUT_S} s")
        except aiohttp.ClientError as error:  # the server closed the connection, which is a defect too
            status = -1
            self.defects.append(f"{request}: {error!r}")
        self.outcomes[row, status] += 1
        return status

    async def submit_form(self, row: PageRoute, path: str, form: Form, hostile: str | None) -> None:
        """Submit a form with at least one hostile field, or with none.

        Args:
            row: of the action.
            path: of the request.
            form: its fields.
            hostile: a field that must be hostile; empty: the body is malformed; None: all fields are valid.
        """
        chance = self.chance
        headers = {"x-waypost-csrf": self.csrf}
        if chance.randrange(3) == 0:
            headers["x-waypost-quiet"] = "1"
        if hostile == "":
            kind, content = chance.choice(MALFORMED_BODIES)
            more = {"Content-Type": kind} if kind else {}
            await self.send_request(row, path, repr((kind, content[:60])), data=content, headers=headers | more)  # fmt: skip
            return
        fields = self.usual_fields(form, is_whole=hostile is None)
        some: list[str] = []
        if hostile is not None:
            some = [hostile, *(name for name in fields if chance.randrange(8) == 0)]
        files: dict[str, tuple[str, str, bytes]] = {
            name: ("a.png", "image/png", sample("png")) for name in form.files if chance.randrange(2)
        }
        for name in some:
            if name in form.files or chance.randrange(25) == 0:
                files[name] = chance.choice(HOSTILE_FILES)
                fields.pop(name, None)
            else:
                fields[name] = draw_hostile_text(chance)
        description = repr({name: value[:80] for name, value in fields.items() if name in some} | files)
        if files or chance.randrange(4) == 0:
            kind, content = _multipart(fields, files, chance)
        else:
            kind, content = "application/x-www-form-urlencoded", _urlencoded(fields)
        await self.send_request(row, path, description, data=content, headers=headers | {"Content-Type": kind})

    def usual_fields(self, form: Form, *, is_whole: bool = False) -> dict[str, str]:
        """Return what a person would send: preset values or choices, with all fields or with some left out."""
        fields: dict[str, str] = {}
        for name, values in form.choices.items():
            value = values[0] if self.chance.randrange(3) else self.chance.choice(values)
            is_box = value in _CHECKED_VALUES
            if (is_box or not is_whole) and self.chance.randrange(4 if is_box else 12) == 0:
                continue
            if name in UNIQUE_VALUES and self.chance.randrange(2):
                value = UNIQUE_VALUES[name].format(self.outcomes.total())
            fields[name] = value
        return fields

    async def sign_in(self) -> None:
        """Sign in again if the last action has ended the session, and read the session's CSRF token."""
        http, base = self.scene.console.http, self.scene.console.base_url
        async with http.get(base + "/settings", allow_redirects=False) as response:
            page, status = await response.text(), response.status
        if status != 200:
            async with http.post(base + "/enter", allow_redirects=False) as response:
                assert response.status == 303, await response.text()
            page = await self.scene.console.get("/settings")
        self.csrf = page.partition('data-csrf="')[2].partition('"')[0]

    async def check_pages(self) -> None:
        """Check that the pages still load, and that no stage has had a defect."""
        await self.sign_in()
        http, base = self.scene.console.http, self.scene.console.base_url
        recent = " | ".join(self.recent_requests[-12:])
        for page in CHECKED_PAGES:
            path = page.format(**self.scene.values)
            async with http.get(base + path, allow_redirects=False) as response:
                if response.status >= 500:
                    self.defects.append(f"{path}: {response.status} after {recent}")
        async with http.get(base + "/metrics") as response:
            metrics = await response.text()
        stage_defects = re.findall(r'(waypost_queue_jobs_total\{[^}]*"defects"[^}]*\}) ([1-9].*)', metrics)
        if stage_defects:
            self.defects.append(f"{stage_defects} after {recent}")
        self.recent_requests.clear()


async def test_no_form_and_no_url_causes_a_defect(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each field of each action is hostile at least once; then each path parameter and query field of each URL."""
    async with open_scene(tmp_path_factory.mktemp("fuzz"), story.populate) as scene:
        fuzzer = Fuzzer(scene, Random(SEED))
        await fuzzer.sign_in()
        forms = await _forms(scene)
        actions = sorted(list_routes(RouteKind.ACT), key=_late_position)
        for row in (action for action in actions if not _late_position(action)):
            await _fuzz_action(fuzzer, row, collect_inputs(row, forms))
        for row in list_routes(RouteKind.PAGE, RouteKind.PART, RouteKind.LIVE):
            await _fuzz_url(fuzzer, row, collect_inputs(row, forms))
        await fuzzer.check_pages()
        for row in (action for action in actions if _late_position(action)):
            await _fuzz_action(fuzzer, row, collect_inputs(row, forms))
        await fuzzer.check_pages()
    _print_summary(fuzzer)
    assert not fuzzer.defects, f"seed {SEED}:\n" + "\n".join(dict.fromkeys(fuzzer.defects))


async def _fuzz_action(fuzzer: Fuzzer, row: PageRoute, inputs: RouteInputs) -> None:
    names = inputs.form.names
    plan: list[str | None] = [None, *names, "", None]
    while len(plan) < EXAMPLES:
        plan += [*fuzzer.chance.choices(names, k=17), "", None, None] if names else ["", None]
    for nth, hostile in enumerate(plan):
        await fuzzer.submit_form(row, _path(fuzzer, row, inputs, hostile_of=8), inputs.form, hostile)
        if _late_position(row) or row.audience is Audience.PUBLIC:
            await fuzzer.sign_in()
        if nth % 25 == 24:
            await fuzzer.check_pages()
    # Otherwise the operator's faults stay armed, and the console rightly responds with 503.
    await fuzzer.scene.control("DELETE", "faults")
    if IS_LONG:
        await fuzzer.check_pages()


async def _fuzz_url(fuzzer: Fuzzer, row: PageRoute, inputs: RouteInputs) -> None:
    fields_of_form = inputs.form.names
    for nth in range(max(EXAMPLES // 3, len(parameters(row)) + 1, len(fields_of_form))):
        path, chance = _path(fuzzer, row, inputs, hostile_of=3), fuzzer.chance
        if fields_of_form:
            some: set[str] = set()
            if nth % 4 != 3:
                some = {
                    fields_of_form[nth % len(fields_of_form)],
                    *(name for name in fields_of_form if not chance.randrange(8)),
                }
            fields = fuzzer.usual_fields(inputs.form, is_whole=not some) | {
                name: draw_hostile_text(chance)[:6000] for name in some
            }
            path += "?" + _urlencoded(fields).decode()[:12_000]
        if row.kind is RouteKind.LIVE and nth > EXAMPLES // 10 + 1:
            continue
        await fuzzer.send_request(row, path, "")


def _path(fuzzer: Fuzzer, row: PageRoute, inputs: RouteInputs, *, hostile_of: int) -> str:
    """Return a path to an existing object or, once in `hostile_of` times, one with a hostile segment."""
    chance, values = fuzzer.chance, dict(fuzzer.scene.values)
    named = parameters(row)
    if not named or chance.randrange(hostile_of):
        return chance.choice([fill_path(row, values), *inputs.paths])
    own = {name: values.get(f"{row.path} {name}", "") for name in named}
    values |= {name: value for name, value in own.items() if value}
    return fill_with_hostile_segments(row, values, {chance.choice(named): chance.choice(HOSTILE_SEGMENTS)})


async def _forms(scene: Scene) -> list[tuple[str, Form]]:
    forms: list[tuple[str, Form]] = []
    kinds = (await scene.control("GET", "faults/kinds"))["kinds"]
    types = ("TEXT", "IMAGE", "CAROUSEL", "LOCATION", "CATALOG", "PRODUCT", "DOCUMENT")
    pages = [
        *(page.path for page in addresses(scene.values, RouteKind.PAGE)),
        *(f"/apps/{scene.console.app_id}/templates/new?type={template_type}" for template_type in types),
        *(f"/apps/{scene.console.app_id}/templates/{template_id}" for template_id in scene.templates.values()),
        *(f"/simulator/faults/new/{kind['on']}/{kind['name']}" for kind in kinds),
    ]
    if IS_LONG:
        own = f"/apps/{scene.console.app_id}/templates"
        pages += [f"{own}/{template_id}/edit" for template_id in scene.templates.values()]
    for path in pages:
        async with scene.console.http.get(scene.console.base_url + path) as response:
            forms += forms_of(await response.text())
    return forms


def _late_position(row: PageRoute) -> int:
    """Return 0 for an early action, otherwise its position among the late ones."""
    return next((nth for nth, path in enumerate(LATE_ACTIONS, 1) if path in row.path), 0)


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
    quoted = name.replace('"', "%22").replace("\r", "").replace("\n", "")
    return b'Content-Disposition: form-data; name="%s"' % quoted.encode("utf-8", "surrogatepass")


def _print_summary(fuzzer: Fuzzer) -> None:
    """Print, per URL, the number of requests, and how many of them succeeded."""
    print(f"\n{'url':70} {'sent':>6} {'done':>6}")
    for row in list_routes(*RouteKind):
        counts = {status: count for (route, status), count in fuzzer.outcomes.items() if route is row}
        done = sum(count for status, count in counts.items() if 200 <= status < 400)
        print(f"{row.method:4} {row.path:65} {sum(counts.values()):6} {done:6}  {counts}")
