"""Whose things one sees, what headers say, and that stored words stay words.

Signing in, tokens of forms and limits of attempts: tests/console/settings/test_sign_in.py.
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

from tests.console.conftest import LOOP, Desk, Tabs
from tests.console.support import hostile_texts
from tests.console.support.addresses import addresses, filled, parameters, rows
from tests.console.support.scene import Scene, open_scene
from tests.support.waiting import patiently
from waypost.console.guard import guard_endpoint
from waypost.console.route import Audience, PageRoute, RouteKind
from waypost.console.web.page_request import PageRequest

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PASSWORD: Final = "Correct-horse-1"
OWN_APP: Final = "Elsewhere"

# fmt: off
SHARED: Final = (  # what is everybody's on a test bench: faults, fleets, kept states, and phones as such
    "/simulator/faults/", "/simulator/fleets/", "/simulator/snapshots/", "/phones/{phone}",
)
_CHAT: Final = "/phones/{phone}/chats/{number}"
FORMS: Final[dict[str, dict[str, str]]] = {  # what an act needs before it looks whose the thing is
    f"{_CHAT}/text":    {"text": "Hello"},
    f"{_CHAT}/file":    {"file": "a.txt"},
    f"{_CHAT}/location": {"latitude": "1", "longitude": "2"},
    f"{_CHAT}/contact": {"name": "Mia"},
}
# fmt: on


class Stranger:
    """Another partner, signed in, with an app of their own."""

    def __init__(self, desk: Desk, http: aiohttp.ClientSession, app_id: str, csrf: str) -> None:
        self.app_id = app_id
        self._desk = desk
        self._http = http
        self._csrf = csrf

    async def asks(self, row: PageRoute, path: str) -> tuple[int, str]:
        """Status and text of an answer; of a stream only its status."""
        url = self._desk.base_url + path
        if row.kind is RouteKind.ACT:
            form = aiohttp.FormData({"csrf": self._csrf})
            for name, value in FORMS.get(row.path, {}).items():
                form.add_field(name, value, filename=value if name == "file" else None)
            asked = self._http.post(url, data=form, allow_redirects=False)
        else:
            asked = self._http.get(url, allow_redirects=False)
        async with asked as answer:
            if row.kind is RouteKind.LIVE and answer.status == 200:
                return 200, ""
            return answer.status, await answer.text()


@pytest_asyncio.fixture(loop_scope=LOOP)
async def stranger(scene: Scene) -> AsyncGenerator[Stranger]:
    desk = scene.desk
    who = {"email": "other@acme.test", "name": "Other", "password": PASSWORD}
    known = (await desk.admin.json("GET", "/admin/partners"))["partners"]
    if all(one["email"] != who["email"] for one in known):
        partner_id = (await desk.admin.json("POST", "/admin/partners", who))["id"]
        app = {"partner_id": partner_id, "name": OWN_APP, "phone_number": "15550003000",
               "phone_number_id": "2000000000000002", "business_account_id": "2000000000000001"}  # fmt: skip
        account = {
            "id": "2000000000000001",
            "partner_id": partner_id,
            "operator_account_id": "demo",
            "namespace": "other_namespace",
        }
        await desk.admin.json("POST", "/admin/business-accounts", account)
        await desk.admin.json("POST", "/admin/apps", app)
    apps = (await desk.admin.json("GET", "/admin/apps"))["apps"]
    app_id = next(one["id"] for one in apps if one["name"] == OWN_APP)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        form = {"email": who["email"], "password": PASSWORD}
        async with http.post(desk.base_url + "/sign-in", data=form, allow_redirects=False) as came:
            assert came.status == 303, await came.text()
        async with http.get(f"{desk.base_url}/apps/{app_id}") as page:
            csrf = (await page.text()).partition('data-csrf="')[2].partition('"')[0]
        theme = {"csrf": csrf, "theme": "system"}
        async with http.post(desk.base_url + "/theme", data=theme, allow_redirects=False) as acted:
            assert acted.status == 303, "their own acts are taken"
        yield Stranger(desk, http, app_id, csrf)


async def test_another_partners_ids_are_refused_at_every_address(scene: Scene, stranger: Stranger) -> None:
    """By the other's app, and by one's own app with the other's ids in the rest of the path."""
    before = await _everything(scene)
    let_in: list[str] = []

    for row in rows(*RouteKind, who=Audience.PARTNER):
        named = parameters(row)
        if not named or _is_shared(row):
            continue
        tries = [filled(row, scene.values)]
        if "app_id" in named and len(named) > 1:
            tries.append(filled(row, {**scene.values, "app_id": stranger.app_id}))
        for path in tries:
            status, text = await stranger.asks(row, path)
            if status != 404:
                let_in.append(f"{row.kind} {path} ({row.path}) answers {status}: {text[:200]}")

    assert not let_in, "\n".join(let_in)
    assert await _everything(scene) == before


async def test_pages_of_another_partner_show_nothing_of_the_first(scene: Scene, stranger: Stranger) -> None:
    """Pages whose paths name nobody: what they show is by who is signed in."""
    told: list[str] = []

    for row in rows(RouteKind.PAGE, RouteKind.PART, who=Audience.PARTNER):
        if set(parameters(row)) - {"app_id"}:
            continue
        path = filled(row, {"app_id": stranger.app_id})
        status, text = await stranger.asks(row, path)
        words = ("WaypostDemo", scene.desk.app_id, scene.sent["read"], "spring_offer", "Like these?")
        if path == "/settings/audit":  # it names what the stranger's own refused requests named
            words = tuple(word for word in words if word != scene.desk.app_id)
        told += [f"{path} ({status}) shows {word}" for word in words if word in text]

    assert not told, "\n".join(told)


def _is_shared(row: PageRoute) -> bool:
    """Whether it is everybody's: what one phone has with one business is not."""
    return row.path.startswith(SHARED) and not {"number", "wamid"} & set(parameters(row))


async def _everything(scene: Scene) -> str:
    """What a partner and a simulator have, as doors show it."""
    path = f"/partner/app/{scene.desk.app_id}"
    partner = await scene.partner()
    return json.dumps(
        [
            await scene.states(),
            await scene.statuses(),
            await scene.desk.api.json("GET", f"{path}/subscription"),
            await partner.json("GET", "/partner/app/list"),
            await partner.json("GET", f"{path}/tokens"),
            await scene.desk.admin.json("GET", "/admin/apps"),
            await scene.control("GET", "fleets"),
            [one["name"] for one in (await scene.control("GET", "snapshots"))["snapshots"]],
            [one["label"] for one in (await scene.control("GET", "faults"))["faults"]],
            (await scene.control("GET", "state"))["settings"],
            len(await scene.shown(scene.values["phone"])),
        ],
        sort_keys=True,
    )


HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def _unsafe(headers: Any) -> list[str]:
    """What a browser is allowed that it should not be."""
    policy = headers.get("Content-Security-Policy", "")
    rules = dict(part.strip().partition(" ")[::2] for part in policy.split(";") if part.strip())
    wrong = [f"{name} is {headers.get(name)}" for name, value in HEADERS.items() if headers.get(name) != value]
    wrong += [
        f"the policy has {word}" for word in ("unsafe-inline", "unsafe-eval", "http:", "https:", "*") if word in policy
    ]
    if rules.get("default-src") != "'none'":
        wrong.append(f"default-src is {rules.get('default-src')}")
    is_page = "sandbox" not in rules
    if is_page and rules.get("frame-ancestors") != "'none'":
        wrong.append(f"frame-ancestors is {rules.get('frame-ancestors')}")
    if is_page and rules.get("base-uri") != "'none'":
        wrong.append(f"base-uri is {rules.get('base-uri')}")
    return wrong


async def test_every_answer_says_what_a_browser_may_do_with_it(scene: Scene) -> None:
    http, wrong = scene.desk.http, list[str]()
    asked = [one.path for one in addresses(scene.values, RouteKind.PAGE, RouteKind.PART, RouteKind.LIVE)]

    for path in [*asked, "/apps/nobodys", f"/apps/{scene.desk.app_id}/nothing-here"]:
        async with http.get(scene.desk.base_url + path, allow_redirects=False) as answer:
            wrong += [f"{path} ({answer.status}): {one}" for one in _unsafe(answer.headers)]

    assert not wrong, "\n".join(wrong)


async def test_method_that_an_address_does_not_take_is_told_on_a_page_with_those_it_takes(scene: Scene) -> None:
    wrong: list[str] = []

    for row in rows(*RouteKind):
        path = filled(row, scene.values)
        status, headers, text = await _sent(scene.desk.http, "DELETE", scene.desk.base_url + path)
        wrong += [f"{path}: {one}" for one in _unsafe(headers)]
        if (status, headers["Content-Type"]) != (405, "text/html; charset=utf-8"):
            wrong.append(f"{path} answers {status} {headers['Content-Type']}")
        if row.method not in headers.get("Allow", "").split(", "):
            wrong.append(f"{path} allows {headers.get('Allow')}")
        if "Method DELETE is not allowed here." not in text or 'id="nav"' not in text:
            wrong.append(f"{path} says {text[:500]}")

    assert not wrong, "\n".join(wrong)


# fmt: off
METHODS: Final = (
    # method    path                           status  Allow                what it says
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


@pytest.mark.parametrize(("method", "path", "status", "allow", "says"), METHODS)
async def test_each_address_says_all_methods_that_it_takes(
    scene: Scene, method: str, path: str, status: int, allow: str | None, says: str
) -> None:
    url = scene.desk.base_url + path.format(app_id=scene.desk.app_id)

    was, headers, text = await _sent(scene.desk.http, method, url)

    assert (was, headers.get("Allow")) == (status, allow)
    assert says in text
    assert _unsafe(headers) == []


async def test_nobody_in_particular_is_told_of_methods_on_a_page_that_shows_nothing(scene: Scene) -> None:
    async with aiohttp.ClientSession() as http:
        for path in ("/settings", f"/apps/{scene.desk.app_id}", "/sign-in"):
            status, headers, text = await _sent(http, "DELETE", scene.desk.base_url + path)
            assert (status, _unsafe(headers)) == (405, [])
            assert "Sign in" in text
            assert "Set-Cookie" not in headers


async def test_module_of_a_page_is_told_of_methods_as_a_notice(scene: Scene) -> None:
    quiet = {"X-Waypost-Quiet": "1"}

    status, headers, text = await _sent(scene.desk.http, "POST", f"{scene.desk.base_url}/commands", headers=quiet)

    assert (status, headers["Allow"], _unsafe(headers)) == (405, "GET, HEAD", [])
    assert json.loads(text) == {"message": "Method POST is not allowed here.", "remedy": "Allowed: GET, HEAD."}


async def test_api_says_in_json_which_methods_it_takes(scene: Scene) -> None:
    for path in (f"/partner/app/{scene.desk.app_id}/templates", "/partner/account/login"):
        status, headers, text = await _sent(scene.desk.http, "DELETE", scene.desk.base_url + path)
        assert (status, headers["Content-Type"]) == (405, "application/json")
        assert json.loads(text)["status"] == "error"
        assert headers["Allow"]


async def _sent(http: aiohttp.ClientSession, method: str, url: str, **more: Any) -> tuple[int, Any, str]:
    async with http.request(method, url, allow_redirects=False, **more) as answer:
        return answer.status, answer.headers, await answer.text()


async def test_defect_answers_a_page_that_tells_nothing_of_it(scene: Scene) -> None:
    async def break_down(desk: Any, visit: PageRequest) -> Response:
        del desk, visit
        raise RuntimeError("secret-of-the-inside")

    pair: Any = scene.desk.dev._sides  # pyright: ignore[reportPrivateUsage]
    row = PageRoute(RouteKind.PAGE, "/broken", break_down, "break down", Audience.PUBLIC)
    application = Starlette(routes=[Route("/broken", guard_endpoint(row, pair.waypost.console.tools), methods=["GET"])])

    status, headers, body = await _ask(application, "/broken")

    assert status == 500
    assert _unsafe(headers) == []
    assert "secret-of-the-inside" not in body
    assert "Something went wrong on our side" in body


async def _ask(application: Any, path: str) -> tuple[int, dict[str, str], str]:
    came: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        came.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path,
        "raw_path": path.encode(), "root_path": "", "scheme": "http", "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("localhost", 80),
    }  # fmt: skip
    await application(scope, receive, send)
    headers = {name.decode().title(): value.decode() for name, value in came[0]["headers"]}
    lookup = {**headers, **{name: headers.get(name.title(), "") for name in HEADERS}}
    body = b"".join(one.get("body", b"") for one in came[1:]).decode()
    return came[0]["status"], lookup, body


async def test_words_that_would_run_are_shown_as_words_on_every_page(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with open_scene(tmp_path_factory.mktemp("hostile"), hostile_texts.tell) as scene:
        tabs = Tabs(browser, scene.desk)
        try:
            complaints = await _run_by_words(scene, tabs)
        finally:
            for context, _ in tabs.open:
                await context.close()
    assert not complaints, "\n".join(complaints)


async def _run_by_words(scene: Scene, tabs: Tabs) -> list[str]:
    tab = await tabs("/")
    dialogs: list[str] = []

    async def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        await dialog.dismiss()

    tab.page.on("dialog", note)
    complaints: list[str] = []
    for address in addresses(scene.values, RouteKind.PAGE):
        await tab.go(address.path)
        await tab.page.wait_for_timeout(120)  # the first look of its stream has come
        title, made = await tab.page.evaluate(hostile_texts.TAKEN)
        if title == "taken" or made or dialogs or tab.wrong or tab.elsewhere:
            told = [*dialogs, *tab.wrong, *tab.elsewhere]
            complaints.append(f"{address.path}: {made} elements of the words; {told}")
        for noted in (dialogs, tab.wrong, tab.elsewhere):
            noted.clear()
    complaints += await _unseen(scene, tab)
    return complaints


WHERE_SHOWN: Final = {  # pages on which the words themselves have to be read
    "/phones": "?show=15550002001",
    "/apps/{app_id}/templates/{template_id}": "",
    "/apps/{app_id}/callbacks": "",
}


async def _unseen(scene: Scene, tab: Any) -> list[str]:
    unseen: list[str] = []
    for row in rows(RouteKind.PAGE):
        if row.path in WHERE_SHOWN:
            path = filled(row, scene.values) + WHERE_SHOWN[row.path]
            await tab.go(path)

            async def text() -> str:
                return await tab.page.evaluate("() => document.body.innerText")

            try:
                await patiently(text, lambda shown: "<img src=x onerror=" in shown)
            except TimeoutError:
                unseen.append(f"{path} does not show the words")
    return unseen
