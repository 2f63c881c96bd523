"""Access of other partners, security headers, and escaping of stored markup.

Sign-in, CSRF tokens and rate limits: tests/console/settings/test_sign_in.py.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Dialog
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.console.support import hostile_texts
from tests.console.support.addresses import addresses, fill_path, list_routes, parameters
from tests.console.support.scene import Scene, open_scene
from tests.support.polling import poll_until
from waypost.console.guard import guard_endpoint
from waypost.console.page_request import PageRequest
from waypost.console.route import Audience, PageRoute, RouteKind

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PASSWORD: Final = "Correct-horse-1"
OWN_APP: Final = "Elsewhere"

# fmt: off
SHARED: Final = (  # shared by all partners of a test bench: faults, fleets, snapshots, and phones as such
    "/simulator/faults/", "/simulator/fleets/", "/simulator/snapshots/", "/phones/{phone}",
    "/partners/",  # the partners of a demonstration
)
_CHAT: Final = "/phones/{phone}/chats/{number}"
FORMS: Final[dict[str, dict[str, str]]] = {  # fields that an action needs before it checks access
    f"{_CHAT}/text":    {"text": "Hello"},
    f"{_CHAT}/file":    {"file": "a.txt"},
    f"{_CHAT}/location": {"latitude": "1", "longitude": "2"},
    f"{_CHAT}/contact": {"name": "Mia"},
}
# fmt: on


class OtherPartner:
    """Another partner, signed in, with an app of their own."""

    def __init__(self, console: ConsoleClient, http: aiohttp.ClientSession, app_id: str, csrf: str) -> None:
        self.app_id = app_id
        self._console = console
        self._http = http
        self._csrf = csrf

    async def request(self, row: PageRoute, path: str) -> tuple[int, str]:
        """Send a request; return the status and text, of a stream only the status."""
        url = self._console.base_url + path
        if row.kind is RouteKind.ACT:
            form = aiohttp.FormData({"csrf": self._csrf})
            for name, value in FORMS.get(row.path, {}).items():
                form.add_field(name, value, filename=value if name == "file" else None)
            pending = self._http.post(url, data=form, allow_redirects=False)
        else:
            pending = self._http.get(url, allow_redirects=False)
        async with pending as response:
            if row.kind is RouteKind.LIVE and response.status == 200:
                return 200, ""
            return response.status, await response.text()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def other_partner(scene: Scene) -> AsyncGenerator[OtherPartner]:
    """A new partner for each test: the audit log of one that made requests has the IDs that it tried."""
    console = scene.console
    ordinal = len((await console.admin.json("GET", "/admin/partners"))["partners"])
    credentials = {"email": f"other{ordinal}@acme.test", "name": "Other", "password": PASSWORD}
    partner_id = (await console.admin.json("POST", "/admin/partners", credentials))["id"]
    account = {
        "id": f"20000000000000{ordinal:02}",
        "partner_id": partner_id,
        "operator_account_id": "demo",
        "namespace": f"other_namespace_{ordinal}",
    }
    app = {"partner_id": partner_id, "name": f"{OWN_APP}{ordinal}", "phone_number": f"155500030{ordinal:02}",
           "phone_number_id": f"30000000000000{ordinal:02}", "business_account_id": account["id"]}  # fmt: skip
    await console.admin.json("POST", "/admin/business-accounts", account)
    app_id = (await console.admin.json("POST", "/admin/apps", app))["id"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        form = {"email": credentials["email"], "password": PASSWORD}
        async with http.post(console.base_url + "/sign-in", data=form, allow_redirects=False) as sign_in:
            assert sign_in.status == 303, await sign_in.text()
        async with http.get(f"{console.base_url}/apps/{app_id}") as page:
            csrf = (await page.text()).partition('data-csrf="')[2].partition('"')[0]
        theme = {"csrf": csrf, "theme": "system"}
        async with http.post(console.base_url + "/theme", data=theme, allow_redirects=False) as response:
            assert response.status == 303, "their own actions are accepted"
        yield OtherPartner(console, http, app_id, csrf)


async def test_ids_of_another_partner_are_rejected_at_every_route(scene: Scene, other_partner: OtherPartner) -> None:
    """By the other's app, and by the own app with the other's IDs in the rest of the path."""
    before = await _read_state(scene)
    accessible: list[str] = []

    for row in list_routes(*RouteKind, audience=Audience.PARTNER):
        path_parameters = parameters(row)
        if not path_parameters or _is_shared(row):
            continue
        paths = [fill_path(row, scene.values)]
        if "app_id" in path_parameters and len(path_parameters) > 1:
            paths.append(fill_path(row, {**scene.values, "app_id": other_partner.app_id}))
        for path in paths:
            status, text = await other_partner.request(row, path)
            if status != 404:
                accessible.append(f"{row.kind} {path} ({row.path}) returns {status}: {text[:200]}")

    assert not accessible, "\n".join(accessible)
    assert await _read_state(scene) == before


async def test_pages_of_another_partner_show_nothing_of_the_first(scene: Scene, other_partner: OtherPartner) -> None:
    """Pages without IDs in their paths show what belongs to the session."""
    leaks: list[str] = []

    for row in list_routes(RouteKind.PAGE, RouteKind.PART, audience=Audience.PARTNER):
        if set(parameters(row)) - {"app_id"}:
            continue
        path = fill_path(row, {"app_id": other_partner.app_id})
        status, text = await other_partner.request(row, path)
        secrets = ("WaypostDemo", scene.console.app_id, scene.sent["read"], "spring_offer", "Like these?")
        leaks += [f"{path} ({status}) shows {secret}" for secret in secrets if secret in text]

    assert not leaks, "\n".join(leaks)


def _is_shared(row: PageRoute) -> bool:
    """True if all partners share it; the chat of a phone with a business is not shared."""
    return row.path.startswith(SHARED) and not {"number", "wamid"} & set(parameters(row))


async def _read_state(scene: Scene) -> str:
    """Return the state of a partner and of the simulator, from the APIs."""
    path = f"/partner/app/{scene.console.app_id}"
    partner = await scene.partner()
    return json.dumps(
        [
            await scene.states(),
            await scene.statuses(),
            await scene.console.api.json("GET", f"{path}/subscription"),
            await partner.json("GET", "/partner/app/list"),
            await partner.json("GET", f"{path}/tokens"),
            await scene.console.admin.json("GET", "/admin/apps"),
            await scene.control("GET", "fleets"),
            [snapshot["name"] for snapshot in (await scene.control("GET", "snapshots"))["snapshots"]],
            [fault["label"] for fault in (await scene.control("GET", "faults"))["faults"]],
            (await scene.control("GET", "state"))["settings"],
            len(await scene.list_phone_messages(scene.values["phone"])),
        ],
        sort_keys=True,
    )


HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def _find_unsafe_headers(headers: Any) -> list[str]:
    """Return what the headers allow a browser and should not."""
    policy = headers.get("Content-Security-Policy", "")
    rules = dict(part.strip().partition(" ")[::2] for part in policy.split(";") if part.strip())
    problems = [f"{name} is {headers.get(name)}" for name, value in HEADERS.items() if headers.get(name) != value]
    problems += [
        f"the policy has {keyword}"
        for keyword in ("unsafe-inline", "unsafe-eval", "http:", "https:", "*")
        if keyword in policy
    ]
    if rules.get("default-src") != "'none'":
        problems.append(f"default-src is {rules.get('default-src')}")
    is_page = "sandbox" not in rules
    if is_page and rules.get("frame-ancestors") != "'none'":
        problems.append(f"frame-ancestors is {rules.get('frame-ancestors')}")
    if is_page and rules.get("base-uri") != "'none'":
        problems.append(f"base-uri is {rules.get('base-uri')}")
    return problems


async def test_every_response_has_strict_security_headers(scene: Scene) -> None:
    http, problems = scene.console.http, list[str]()
    paths = [address.path for address in addresses(scene.values, RouteKind.PAGE, RouteKind.PART, RouteKind.LIVE)]

    for path in [*paths, "/apps/nobodys", f"/apps/{scene.console.app_id}/nothing-here"]:
        async with http.get(scene.console.base_url + path, allow_redirects=False) as response:
            problems += [f"{path} ({response.status}): {problem}" for problem in _find_unsafe_headers(response.headers)]

    assert not problems, "\n".join(problems)


async def test_unsupported_method_gets_a_page_with_the_supported_methods(scene: Scene) -> None:
    problems: list[str] = []

    for row in list_routes(*RouteKind):
        path = fill_path(row, scene.values)
        status, headers, text = await _request(scene.console.http, "DELETE", scene.console.base_url + path)
        problems += [f"{path}: {problem}" for problem in _find_unsafe_headers(headers)]
        if (status, headers["Content-Type"]) != (405, "text/html; charset=utf-8"):
            problems.append(f"{path} returns {status} {headers['Content-Type']}")
        if row.method not in headers.get("Allow", "").split(", "):
            problems.append(f"{path} allows {headers.get('Allow')}")
        if "Method DELETE is not allowed here." not in text or 'id="nav"' not in text:
            problems.append(f"{path} shows {text[:500]}")

    assert not problems, "\n".join(problems)


# fmt: off
METHODS: Final = (
    # method    path                           status  Allow                text
    ("GET",     "/sign-out",                   405,    "POST",              "There is no page at this address."),
    ("GET",     "/apps/{app_id}/first-message", 405,   "POST",              "Go back and use the button."),
    ("POST",    "/",                           405,    "GET, HEAD",         "Allowed: GET, HEAD."),
    ("PUT",     "/sign-in",                    405,    "GET, HEAD, POST",   "Method PUT is not allowed here."),
    ("POST",    "/apps/{app_id}/messages/",    405,    "GET, HEAD",         "Method POST is not allowed here."),
    ("POST",    "/apps/nobodys/messages",      405,    "GET, HEAD",         "Method POST is not allowed here."),
    ("PATCH",   "/settings",                   405,    "GET, HEAD",         "Method PATCH is not allowed here."),
    ("POST",    "/static/x/css/tokens.css",    405,    "GET, HEAD",         "Method not allowed. Use GET."),
    ("POST",    "/settings/nothing/here",      404,    None,                "Page not found."),
)
# fmt: on


@pytest.mark.parametrize(("method", "path", "status", "allow", "expected"), METHODS)
async def test_each_path_reports_all_its_methods(
    scene: Scene, method: str, path: str, status: int, allow: str | None, expected: str
) -> None:
    url = scene.console.base_url + path.format(app_id=scene.console.app_id)

    actual_status, headers, text = await _request(scene.console.http, method, url)

    assert (actual_status, headers.get("Allow")) == (status, allow)
    assert expected in text
    assert _find_unsafe_headers(headers) == []


async def test_unsupported_method_without_a_session_gets_a_page_that_shows_nothing(scene: Scene) -> None:
    async with aiohttp.ClientSession() as http:
        for path in ("/settings", f"/apps/{scene.console.app_id}", "/sign-in"):
            status, headers, text = await _request(http, "DELETE", scene.console.base_url + path)
            assert (status, _find_unsafe_headers(headers)) == (405, [])
            assert "Sign in" in text
            assert "Set-Cookie" not in headers


async def test_unsupported_method_from_a_script_gets_a_notice(scene: Scene) -> None:
    quiet = {"X-Waypost-Quiet": "1"}

    status, headers, text = await _request(
        scene.console.http, "POST", f"{scene.console.base_url}/commands", headers=quiet
    )

    assert (status, headers["Allow"], _find_unsafe_headers(headers)) == (405, "GET, HEAD", [])
    assert json.loads(text) == {"message": "Method POST is not allowed here.", "hint": "Allowed: GET, HEAD."}


async def test_api_reports_its_methods_in_json(scene: Scene) -> None:
    for path in (f"/partner/app/{scene.console.app_id}/templates", "/partner/account/login"):
        status, headers, text = await _request(scene.console.http, "DELETE", scene.console.base_url + path)
        assert (status, headers["Content-Type"]) == (405, "application/json")
        assert json.loads(text)["status"] == "error"
        assert headers["Allow"]


async def _request(http: aiohttp.ClientSession, method: str, url: str, **options: Any) -> tuple[int, Any, str]:
    async with http.request(method, url, allow_redirects=False, **options) as response:
        return response.status, response.headers, await response.text()


async def test_defect_responds_with_a_page_without_internals(scene: Scene) -> None:
    async def break_down(_request: PageRequest) -> Response:
        raise RuntimeError("secret-of-the-inside")

    sides: Any = scene.console.dev._sides  # pyright: ignore[reportPrivateUsage]
    row = PageRoute(RouteKind.PAGE, "/broken", break_down, "break down", Audience.PUBLIC)
    application = Starlette(
        routes=[Route("/broken", guard_endpoint(row, sides.waypost.console.tools), methods=["GET"])]
    )

    status, headers, body = await _call(application, "/broken")

    assert status == 500
    assert _find_unsafe_headers(headers) == []
    assert "secret-of-the-inside" not in body
    assert "Something went wrong on our side" in body
    assert '<a class="button" href="/broken">Try again</a>' in body


async def _call(application: Any, path: str) -> tuple[int, dict[str, str], str]:
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path,
        "raw_path": path.encode(), "root_path": "", "scheme": "http", "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    }  # fmt: skip
    await application(scope, receive, send)
    headers = {name.decode().title(): value.decode() for name, value in messages[0]["headers"]}
    lookup = {**headers, **{name: headers.get(name.title(), "") for name in HEADERS}}
    body = b"".join(message.get("body", b"") for message in messages[1:]).decode()
    return messages[0]["status"], lookup, body


async def test_stored_markup_is_shown_as_text_on_every_page(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with open_scene(tmp_path_factory.mktemp("hostile"), hostile_texts.populate) as scene:
        tabs = Tabs(browser, scene.console)
        try:
            problems = await _find_executed_markup(scene, tabs)
        finally:
            for context, _ in tabs.open:
                await context.close()
    assert not problems, "\n".join(problems)


async def _find_executed_markup(scene: Scene, tabs: Tabs) -> list[str]:
    tab = await tabs("/")
    dialogs: list[str] = []

    async def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        await dialog.dismiss()

    tab.page.on("dialog", dismiss)
    problems: list[str] = []
    for address in addresses(scene.values, RouteKind.PAGE):
        await tab.go(address.path)
        await tab.page.wait_for_timeout(120)  # its stream has sent its first update
        title, elements = await tab.page.evaluate(hostile_texts.FIND_MARKUP)
        if title == "taken" or elements or dialogs or tab.errors or tab.external_requests:
            details = [*dialogs, *tab.errors, *tab.external_requests]
            problems.append(f"{address.path}: {elements} elements of the markup; {details}")
        for events in (dialogs, tab.errors, tab.external_requests):
            events.clear()
    problems += await _find_hidden_markup(scene, tab)
    return problems


PAGES_WITH_MARKUP: Final = {  # pages that have to show the markup as text
    "/phones": "?show=15550002001",
    "/apps/{app_id}/templates/{template_id}": "",
    "/apps/{app_id}/callbacks": "",
}


async def _find_hidden_markup(scene: Scene, tab: Any) -> list[str]:
    problems: list[str] = []
    for row in list_routes(RouteKind.PAGE):
        if row.path in PAGES_WITH_MARKUP:
            path = fill_path(row, scene.values) + PAGES_WITH_MARKUP[row.path]
            await tab.go(path)

            async def text() -> str:
                return await tab.page.evaluate("() => document.body.innerText")

            try:
                await poll_until(text, lambda shown: "<img src=x onerror=" in shown)
            except TimeoutError:
                problems.append(f"{path} does not show the markup")
    return problems
