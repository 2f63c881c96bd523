"""What the command palette offers: every page by what one does there, a few acts, and the partner's own things by name."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waypost.base.clock import HOUR_MS
from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.page_tools import PageTools
from waypost.console.phones.selection import asked
from waypost.console.phones.view_models import numbers_of
from waypost.console.simulator.faults import DISARM_ALL
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App
from waypost.store.templates.gallery import names_on_shelf

MOST_TEMPLATES: Final = 300
MOST_PHONES: Final = 60
PHONES_WITHIN_S: Final = 1
"""A palette opens at once, whether or not the simulator answers."""


@dataclass(frozen=True, slots=True)
class Command:
    """One page to go to, or one act.

    Attributes:
        name: as it is read and searched.
        place: the part of the console that it belongs to.
        path: of the page or the act; `{app_id}` is that of the app that is shown.
        posts: whether it is an act, and what its form says; None: it is a page.
        stays: whether the page that is open stays, and a notice tells what was done.
        asks: what is asked before it is done; empty: nothing.
    """

    name: str
    place: str
    path: str
    posts: Mapping[str, str] | None = None
    stays: bool = False
    asks: str = ""


def act(name: str, place: str, path: str, *, stays: bool = True, asks: str = "", **fields: str) -> Command:
    """A command that does something."""
    return Command(name, place, path, fields, stays, asks)


_APP: Final = "/apps/{app_id}"

# fmt: off
COMMANDS: Final = (
    #       name                            place         path
    Command("New template",                 "Templates",  f"{_APP}/templates/new"),
    Command("Messages received",            "Messages",   f"{_APP}/messages/received"),
    Command("Failed messages",              "Messages",   f"{_APP}/messages?state=failed"),
    Command("New subscription",             "Callbacks",  f"{_APP}/callbacks/new"),
    Command("Deliveries",                   "Callbacks",  f"{_APP}/callbacks/deliveries"),
    Command("Replay callbacks",             "Callbacks",  f"{_APP}/callbacks/replay"),
    Command("Answer times of receivers",    "Callbacks",  f"{_APP}/callbacks/answers"),
    Command("Verify a signature",           "Callbacks",  f"{_APP}/callbacks/verify"),
    Command("App token, keys, preferences", "Settings",   f"{_APP}/settings"),
    Command("Reviews of templates",         "Simulator",  "/simulator"),
    Command("Arm a fault",                  "Simulator",  "/simulator/faults"),
    Command("Clock",                        "Simulator",  "/simulator/clock"),
    Command("Fleets",                       "Simulator",  "/simulator/fleets"),
    Command("Snapshots, and reset",         "Simulator",  "/simulator/snapshots"),
    Command("Rules of the operator",        "Simulator",  "/simulator/rules"),
    Command("Change password",              "Settings",   "/settings/password"),
    Command("Client secrets",               "Settings",   "/settings/secrets"),
    Command("API keys",                     "Settings",   "/settings/keys"),
    Command("Apps and their tokens",        "Settings",   "/settings/apps"),
    Command("Operator and health check",    "Settings",   "/settings/operator"),
    Command("Audit log",                    "Settings",   "/settings/audit"),
    Command("Act as administrator",         "Settings",   "/settings/administrator"),
    act("Clock: one hour on",               "Simulator",  "/simulator/clock/advance", by=str(HOUR_MS)),
    act("Clock: one day on",                "Simulator",  "/simulator/clock/advance", by=str(24 * HOUR_MS)),
    act("Clock: to what is due next",       "Simulator",  "/simulator/clock/next"),
    act("Clock: freeze",                    "Simulator",  "/simulator/clock/freeze"),
    act("Clock: let it run",                "Simulator",  "/simulator/clock/run"),
    act("Disarm every fault",               "Simulator",  "/simulator/faults/disarm", asks=DISARM_ALL),
    act("Colours: light",                   "Colours",    "/theme", stays=False, theme="light"),
    act("Colours: dark",                    "Colours",    "/theme", stays=False, theme="dark"),
    act("Colours: as the system",           "Colours",    "/theme", stays=False, theme="system"),
    act("Sign out",                         "Account",    "/sign-out", stays=False),
)
# fmt: on
"""The pages that the navigation names are offered by the page itself."""


@dataclass(slots=True)
class _Offered:
    """What is offered, as the module reads it."""

    commands: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, name: str, hint: str, path: str, **more: Any) -> None:
        self.commands.append({"name": name, "hint": hint, "path": path, **more})


async def list_commands(desk: PageTools, visit: PageRequest) -> Response:
    """All of them, as `{name, hint, path}`; an act has `posts`, the fields of its form, `stays` and `asks` besides."""
    app = visit.shown_app
    offered = _Offered()
    for one in _meant(app, has_simulator=desk.parts.apis.control is not None):
        path = one.path.replace("{app_id}", app.id if app else "")
        more: dict[str, Any] = {}
        if one.posts is not None:
            more = {"posts": dict(one.posts), "stays": one.stays, "asks": one.asks}
        offered.add(one.name, one.place, path, **more)
    for app_of_partner in visit.apps:
        hint = f"App, {app_of_partner.phone_number or 'no number'}"
        offered.add(app_of_partner.name, hint, f"/apps/{app_of_partner.id}")
    for name, number in await _phones(desk, visit):
        offered.add(name, f"Phone, {number}", f"/phones?show={number}")
    if app is not None and app.business_account_id:
        for template_id, name, language in await desk.parts.database.read(
            names_on_shelf, visit.partner.id, app.business_account_id, MOST_TEMPLATES
        ):
            offered.add(name, f"Template, {language}", f"/apps/{app.id}/templates/{template_id}")
    return JSONResponse({"commands": offered.commands})


def _meant(app: App | None, *, has_simulator: bool) -> Iterator[Command]:
    """The commands that mean something: for a partner without an app, where there is no simulator."""
    for one in COMMANDS:
        if (app is None and "{app_id}" in one.path) or (not has_simulator and one.place == "Simulator"):
            continue
        yield one


async def _phones(desk: PageTools, visit: PageRequest) -> list[tuple[str, str]]:
    """`(name, number)` of phones that have chats with the partner's numbers, newest first."""
    control, mine = desk.parts.apis.control, list(numbers_of(visit))
    if control is None or not mine:
        return []
    try:
        async with asyncio.timeout(PHONES_WITHIN_S):
            found = await control.get(f"/control/chats?{asked(mine)}&limit={MOST_PHONES}")
    except (ApiResponseError, NotReached, TimeoutError):
        return []
    return [(one["name"] or one["phone"], one["phone"]) for one in found["phones"]]
