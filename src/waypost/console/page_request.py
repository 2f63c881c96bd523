"""The argument of every endpoint: the request, its session and app, and what a page reads, calls and shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from waypost.client.api_client import ApiClient
from waypost.console import rendering
from waypost.console.api_clients import ControlClient
from waypost.console.page_tools import PageTools
from waypost.console.services import ConsoleServices
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.forms import read_form
from waypost.console.web.sessions import Session
from waypost.console.web.streams import ElementRenderer, PageElement
from waypost.console.web.zones import ZONE_COOKIE, DisplayZone, find_zone, reader_zone
from waypost.domain.app import App
from waypost.domain.partner import Partner
from waypost.store.database import StoreResult

QUIET_HEADER: Final = "x-waypost-quiet"
"""Header of requests from our scripts: errors are returned as JSON, and the page stays open."""
_SHELL_MACROS: Final = "shell.html"


@dataclass(slots=True)
class PageRequest:
    """A request with the session and app that the guard has looked up."""

    tools: PageTools  # what all requests share
    http: Request
    session: Session | None = None  # None without a sign-in, on public pages
    apps: list[App] = field(default_factory=list[App])  # all of the partner, oldest first
    named_app: App | None = None  # the app in the path
    chosen_app_id: str = ""  # the app viewed last, from a cookie; may not exist
    notices: list[dict[str, str]] = field(default_factory=list[dict[str, str]])  # of the last action, shown once
    searches_hidden_text: bool = False  # it searches in texts that the user does not see, which is audited
    _form: FormData | None = None

    @property
    def services(self) -> ConsoleServices:
        """The services that endpoints use."""
        return self.tools.services

    @property
    def partner(self) -> Partner:
        """The signed-in partner; only for routes that require a session."""
        assert self.session is not None, "a public page used the partner"  # noqa: S101  a defect
        return self.session.partner

    @property
    def app(self) -> App:
        """The partner's app in the path."""
        assert self.named_app is not None, "a path without an app used one"  # noqa: S101  a defect
        return self.named_app

    @property
    def shown_app(self) -> App | None:
        """The app of the navigation: the one in the path, the last viewed, or the first."""
        if self.named_app is not None:
            return self.named_app
        chosen = [app for app in self.apps if app.id == self.chosen_app_id]
        return (chosen or self.apps or [None])[0]

    @property
    def is_quiet(self) -> bool:
        """True if one of our scripts sent the request, not a page navigation."""
        return QUIET_HEADER in self.http.headers

    @property
    def zone(self) -> DisplayZone:
        """The time zone of every time that the response shows."""
        return reader_zone(self.http.cookies)

    @property
    def browser_zone(self) -> DisplayZone | None:
        """The browser's time zone; None if it is unknown, as without JavaScript."""
        return find_zone(self.http.cookies.get(ZONE_COOKIE, ""))

    @property
    def path_and_query(self) -> str:
        """The address of the page, for a form that returns to it; of a page that a form returned, only the path."""
        url = self.http.url
        return f"{url.path}?{url.query}" if url.query and self.http.method == "GET" else url.path

    @property
    def path_params(self) -> Mapping[str, Any]:
        """The path parameters."""
        return self.http.path_params

    def query(self, name: str, default: str = "") -> str:
        """Return a query parameter without surrounding spaces."""
        return self.http.query_params.get(name, default).strip()

    async def form(self) -> FormData:
        """Return the form, parsed once: urlencoded, or multipart with files on disk.

        Raises:
            InvalidPageRequest: the form is too large or cannot be parsed.
        """
        if self._form is None:
            self._form = await read_form(self.http, takes_files=self.session is not None)
        return self._form

    async def field(self, name: str, default: str = "") -> str:
        """Return a text field of the form unchanged; U+0000 and unpaired surrogates are rejected."""
        value = (await self.form()).get(name, default)
        if isinstance(value, UploadFile):
            raise InvalidPageRequest(f"The field {name} contains a file.", "Send a text.")
        return value

    async def is_checked(self, name: str) -> bool:
        """True if a checkbox of the form is checked."""
        return (await self.field(name)) in ("on", "true", "1", "yes")

    async def file(self, name: str) -> UploadFile | None:
        """Return a file of the form; None if none was chosen."""
        value = (await self.form()).get(name)
        if isinstance(value, UploadFile) and (value.filename or value.size):
            return value
        return None

    async def close(self) -> None:
        """Close the form's files."""
        if self._form is not None:
            await self._form.close()

    @property
    def is_administrator(self) -> bool:
        """True if the user may change what all partners share; in a demo everybody may."""
        if self.services.demo_partner_id is not None:
            return True
        return self.session is not None and self.session.admin_until_ms is not None

    def now_ms(self) -> int:
        """Return the time of the service's clock."""
        return self.services.clock.now_ms()

    async def read(self, query: Callable[..., StoreResult], *args: Any) -> StoreResult:
        """Return the result of a query of the store."""
        return await self.services.database.read(query, *args)

    async def read_own(self, query: Callable[..., StoreResult], *args: Any) -> StoreResult:
        """Read what belongs to the app in the path: the ids of its partner and the app precede the other arguments."""
        return await self.services.database.read(query, self.partner.id, self.app.id, *args)

    async def admin(self, operation: str, /, **values: Any) -> Any:
        """Call an operation of the admin API, such as `GET /admin/apps`, and return its JSON response."""
        return await self.services.apis.admin.call(operation, **values)

    @property
    def control(self) -> ControlClient:
        """The client of the simulator's control API.

        Raises:
            NotFound: there is no simulator.
        """
        if self.services.apis.control is None:
            raise NotFound("This service has no simulator.")
        return self.services.apis.control

    @property
    def app_api(self) -> ApiClient:
        """The client of the partner API with the token of the app in the path."""
        return self.services.apis.app(self.app)

    async def partner_api(self) -> ApiClient:
        """Return the client of the partner API with a token of the partner."""
        return await self.services.apis.partner(self.partner.id)

    async def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """Return a whole page with the layout."""
        shell, is_demo = await self.tools.context_reader.read(), self.services.demo_partner_id is not None
        shown = {"is_administrator": self.is_administrator, "is_demo": is_demo, **values}
        return self.bare_page(name, status, shell=shell, **shown)

    def bare_page(self, name: str, status: int = 200, **values: Any) -> Response:
        """Return a whole page without navigation, and delete the cookie of the notices that it shows."""
        response = self.fragment(name, status, **values)
        if rendering.NOTICES_COOKIE in self.http.cookies:
            response.delete_cookie(rendering.NOTICES_COOKIE, path="/")
        return response

    def fragment(self, name: str, status: int = 200, **values: Any) -> Response:
        """Return a page fragment that has its own template file."""
        theme = rendering.read_theme(self.http.cookies)
        html = self.services.pages.render(name, self.zone, request=self, theme=theme, **values)
        return HTMLResponse(html, status)

    def macro(self, file: str, name: str, *args: Any, **values: Any) -> str:
        """Return the HTML of one macro of a template file."""
        return self.services.pages.render_macro(file, name, self.zone, *args, **values)

    def redirect(self, path: str, notice: str = "", *, hint: str = "", kind: str = "good") -> Response:
        """Redirect to a page after an action, with a notice; `kind` is good, warn or bad."""
        return rendering.redirect(path, notice=notice, hint=hint, kind=kind, secure=self.services.is_secure)

    def set_cookie(
        self, response: Response, name: str, value: str, max_age_s: int = 31_536_000, *, httponly: bool = True
    ) -> None:
        """Set a cookie of the console, by default for a year."""
        secure = self.services.is_secure
        response.set_cookie(name, value, max_age_s, path="/", httponly=httponly, samesite="lax", secure=secure)

    def live(self, render: ElementRenderer, **pace: float) -> Response:
        """Return a live stream of the rendered elements and of the layout's badges."""

        async def render_all() -> Sequence[PageElement]:
            return [*await render(), *await self._badge_elements()]

        return self.tools.stream_runner.respond(self.http, self.partner.id, render_all, **pace)

    async def _badge_elements(self) -> list[PageElement]:
        shell = await self.tools.context_reader.read_cached()
        return [
            PageElement("shell-faults", self.macro(_SHELL_MACROS, "faults_badge", shell)),
            PageElement("shell-clock", self.macro(_SHELL_MACROS, "clock_badge", shell)),
        ]
