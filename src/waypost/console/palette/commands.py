"""Commands of the command palette: pages, a few actions, and the partner's apps, phones and templates by name."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waypost.base.clock import HOUR_MS
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.page_tools import PageTools
from waypost.console.phones.view_models import apps_by_number_id, number_ids_query
from waypost.console.simulator.faults import DISARM_ALL_QUESTION
from waypost.console.simulator.rules import RULES_PATH, SIMULATOR_RULES
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App
from waypost.store.templates.gallery import account_template_names

MAX_PALETTE_TEMPLATES: Final = 300
MAX_PALETTE_PHONES: Final = 60
PALETTE_PHONES_TIMEOUT_S: Final = 1
"""The palette opens at once, whether or not the simulator responds."""


@dataclass(frozen=True, slots=True)
class Command:
    """One page to open, or one action.

    Attributes:
        name: displayed and searched text.
        section: part of the console that it belongs to.
        path: of the page or action; `{app_id}` stands for the current app.
        posts: form fields of an action; None for a page.
        stays: True if the open page stays and shows a notice.
        confirmation: question to confirm first; empty: none.
    """

    name: str
    section: str
    path: str
    posts: Mapping[str, str] | None = None
    stays: bool = False
    confirmation: str = ""


def action_command(
    name: str, section: str, path: str, *, stays: bool = True, confirmation: str = "", **fields: str
) -> Command:
    """Return a command that runs an action."""
    return Command(name, section, path, fields, stays, confirmation)


_APP: Final = "/apps/{app_id}"

COMMANDS: Final = (
    # name, section, path
    Command("New template", "Templates", f"{_APP}/templates/new"),
    Command("Messages received", "Messages", f"{_APP}/messages/received"),
    Command("Conversations", "Messages", f"{_APP}/conversations"),
    Command("Unread conversations", "Messages", f"{_APP}/conversations?state=unread"),
    Command("Failed messages", "Messages", f"{_APP}/messages?state=failed"),
    Command("API requests", "Messages", "/requests"),
    Command("Failed API requests", "Messages", "/requests?status=4xx"),
    Command("New subscription", "Callbacks", f"{_APP}/callbacks/new"),
    Command("Deliveries", "Callbacks", f"{_APP}/callbacks/deliveries"),
    Command("Replay callbacks", "Callbacks", f"{_APP}/callbacks/replay"),
    Command("Response times", "Callbacks", f"{_APP}/callbacks/response-times"),
    Command("Verify a signature", "Callbacks", f"{_APP}/callbacks/verify"),
    Command("App token, keys, settings", "Settings", f"{_APP}/settings"),
    Command("Template reviews", "Simulator", "/simulator"),
    Command("Arm a fault", "Simulator", "/simulator/faults"),
    Command("Clock", "Simulator", "/simulator/clock"),
    Command("Fleets", "Simulator", "/simulator/fleets"),
    Command("Snapshots and reset", "Simulator", "/simulator/snapshots"),
    Command("Operator rules", "Simulator", "/simulator/rules"),
    Command("New partner", "Settings", "/partners"),
    Command("Change password", "Settings", "/settings/password"),
    Command("Client secrets", "Settings", "/settings/secrets"),
    Command("App token: show, regenerate", "Settings", f"{_APP}/settings#token"),
    Command("Additional keys of the app", "Settings", f"{_APP}/settings#keys-of-app"),
    Command("Expiring app tokens", "Settings", f"{_APP}/settings#tokens"),
    Command("Rates and limits of the app", "Settings", f"{_APP}/settings#rates"),
    Command("Name and preferences of the app", "Settings", f"{_APP}/settings#preferences"),
    Command("Delete the app", "Settings", f"{_APP}/settings#delete"),
    Command("Partner: e-mail, name, account", "Settings", "/settings#account"),
    Command("Retention of messages and bodies", "Settings", "/settings#retention"),
    Command("Quotas", "Settings", "/settings#quotas"),
    Command("Console sessions: sign out others", "Settings", "/settings#sessions"),
    Command("API keys", "Settings", "/settings/keys"),
    Command("Apps and tokens", "Settings", "/settings/apps"),
    Command("Operator and health check", "Settings", "/settings/operator"),
    Command("Switch operator account", "Settings", f"{_APP}/settings/operator"),
    Command("Audit log", "Settings", "/settings/audit"),
    Command("Personal data of a recipient", "Settings", "/settings/personal-data"),
    Command("Act as administrator", "Settings", "/settings/administrator"),
    action_command("Clock: advance 1 hour", "Simulator", "/simulator/clock/advance", by=str(HOUR_MS)),
    action_command("Clock: advance 1 day", "Simulator", "/simulator/clock/advance", by=str(24 * HOUR_MS)),
    action_command("Clock: advance to next due", "Simulator", "/simulator/clock/next"),
    action_command("Clock: freeze", "Simulator", "/simulator/clock/freeze"),
    action_command("Clock: run", "Simulator", "/simulator/clock/run"),
    action_command("Disarm all faults", "Simulator", "/simulator/faults/disarm", confirmation=DISARM_ALL_QUESTION),
    action_command("Theme: light", "Theme", "/theme", stays=False, theme="light"),
    action_command("Theme: dark", "Theme", "/theme", stays=False, theme="dark"),
    action_command("Theme: system", "Theme", "/theme", stays=False, theme="system"),
    action_command("Sign out", "Account", "/sign-out", stays=False),
)
"""Without the pages of the navigation: the browser adds those itself."""


@dataclass(slots=True)
class _CommandList:
    """The list of commands in the JSON that `palette.js` reads."""

    commands: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, name: str, hint: str, path: str, **more: Any) -> None:
        self.commands.append({"name": name, "hint": hint, "path": path, **more})


async def list_commands(tools: PageTools, page_request: PageRequest) -> Response:
    """Return all commands as `{name, hint, path}`; an action also has `posts` (form fields), `stays` and `confirmation`."""
    app = page_request.shown_app
    offered = _CommandList()
    for command in _available_commands(app, has_simulator=tools.services.apis.control is not None):
        path = command.path.replace("{app_id}", app.id if app else "")
        more: dict[str, Any] = {}
        if command.posts is not None:
            more = {"posts": dict(command.posts), "stays": command.stays, "confirmation": command.confirmation}
        offered.add(command.name, command.section, path, **more)
    for app_of_partner in page_request.apps:
        hint = f"App, {app_of_partner.phone_number or 'no phone number'}"
        offered.add(app_of_partner.name, hint, f"/apps/{app_of_partner.id}")
    for name, number in await _phones(tools, page_request):
        offered.add(name, f"Phone, {number}", f"/phones?show={number}")
    if app is not None and app.business_account_id:
        for template_id, name, language in await tools.services.database.read(
            account_template_names, page_request.partner.id, app.business_account_id, MAX_PALETTE_TEMPLATES
        ):
            offered.add(name, f"Template, {language}", f"/apps/{app.id}/templates/{template_id}")
    if tools.services.apis.control is not None:
        for group, rules in SIMULATOR_RULES:
            for rule in rules:
                offered.add(rule.label, f"Simulator rule, {group.lower()}", f"{RULES_PATH}#r-{rule.name}")
    return JSONResponse({"commands": offered.commands})


def _available_commands(app: App | None, *, has_simulator: bool) -> Iterator[Command]:
    """Yield the commands that apply to a partner without an app, or without a simulator."""
    for command in COMMANDS:
        if (app is None and "{app_id}" in command.path) or (not has_simulator and command.section == "Simulator"):
            continue
        yield command


async def _phones(tools: PageTools, page_request: PageRequest) -> list[tuple[str, str]]:
    """Return `(name, number)` of phones that have chats with the partner's numbers, newest first."""
    control, numbers = tools.services.apis.control, list(apps_by_number_id(page_request))
    if control is None or not numbers:
        return []
    try:
        async with asyncio.timeout(PALETTE_PHONES_TIMEOUT_S):
            chats = await control.get(f"/control/chats?{number_ids_query(numbers)}&limit={MAX_PALETTE_PHONES}")
    except (ApiResponseError, ApiUnreachable, TimeoutError):
        return []
    return [(phone["name"] or phone["phone"], phone["phone"]) for phone in chats["phones"]]
