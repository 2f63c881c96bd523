"""Actions as table rows: one API call, the page that follows, and the notice shown there."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.api_clients import exclude_from_drain
from waypost.console.page_request import PageRequest
from waypost.console.route import PageRoute, RouteKind
from waypost.console.web.errors import NotFound
from waypost.console.web.streams import PageElement, elements_response

Fields = Mapping[str, str]
Body = dict[str, Any]
NoticeText = str | Callable[[Mapping[str, Any]], str]
ActionElements = Callable[[PageRequest], Awaitable[Sequence[PageElement]]]

_CONTROL: Final = "/control/"
_ADMIN: Final = "/admin/"
_UNKNOWN_STATUSES: Final = (400, 404)
"""Statuses with which our APIs report an unknown object: the partner API 400, the admin API 404."""


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action.

    Texts contain placeholders in braces: path parameters, `partner_id`, `zone`, and members of the response.

    Args:
        body: function that builds the request body from form fields and path parameters; None: no body.
        render_elements: function that renders the page elements to update when the page stays open.
    """

    path: str  # console path of the action
    does: str  # short description for readers of the table
    call: str  # method and path in the admin, control or partner API
    page: str  # page to redirect to
    notice: NoticeText  # sentence about the result, or a function that builds it from the values
    hint: NoticeText = ""  # second sentence of the notice, likewise
    body: Callable[[Fields], Body] | None = None
    missing: str = ""  # error text for an unknown object; empty: use the API's text
    render_elements: ActionElements | None = None
    removed_ids: tuple[str, ...] = ()  # ids of elements to remove from such a page
    steps_aside: bool = False  # True if the call replaces the store that the console itself uses

    @property
    def page_row(self) -> PageRoute:
        """The action's row in the route table."""
        return PageRoute(RouteKind.ACT, self.path, self.run, self.does)

    async def run(self, request: PageRequest) -> Response:
        """Run the action with the form fields and path parameters."""
        body = {} if self.body is None else self.body({**await form_texts(request), **request.path_params})
        return await self.call_api(request, body)

    async def call_api(self, request: PageRequest, body: Body) -> Response:
        """Make the API call with a body; show an error of the simulator as a notice on the page."""
        fixed = {"partner_id": request.partner.id, "zone": request.zone}
        values: dict[str, Any] = {**request.path_params, **fixed}
        method, path = self.call.split(" ", 1)
        target = path.format(**{name: quote(str(value), safe="") for name, value in values.items()})
        if self.steps_aside:
            exclude_from_drain(request.http.scope)
        try:
            response = await self._call(request, method, target, body)
        except ApiResponseError as error:
            if self.missing and error.status in _UNKNOWN_STATUSES:
                raise NotFound(self.missing) from error
            if not path.startswith(_CONTROL):
                raise
            return error_response(request, self.page, error)
        values |= response if isinstance(response, dict) else {}
        renders = self.render_elements if request.is_quiet else None
        elements = await renders(request) if renders else ()
        removed_ids = [element_id.format(**values) for element_id in self.removed_ids]
        notice, hint = (
            text.format(**values) if isinstance(text, str) else text(values) for text in (self.notice, self.hint)
        )
        path = self.page.format(**values)
        return action_response(request, path, notice, elements, removed_ids=removed_ids, hint=hint)

    async def _call(self, request: PageRequest, method: str, target: str, body: Body) -> Any:
        apis = request.services.apis
        if target.startswith(_ADMIN):
            api = apis.admin
        elif target.startswith(_CONTROL):
            if apis.control is None:
                raise NotFound("This service has no simulator.")
            api = apis.control
        else:
            api = await apis.partner(request.partner.id)
            if method != "DELETE":
                return await api.form(method, target, body)
        return await api.json(method, target, None if method == "DELETE" else body)


def empty_body(_fields: Fields) -> Body:
    """Return the body of a call without fields."""
    return {}


async def form_texts(request: PageRequest) -> dict[str, str]:
    """Return the text fields of the form."""
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def action_response(
    request: PageRequest, path: str, notice: str, elements: Sequence[PageElement] = (), *,
    removed_ids: Sequence[str] = (), hint: str = "",
) -> Response:  # fmt: skip
    """Return the response to a completed action: a redirect, or updated elements if the page stays open."""
    if not request.is_quiet:
        return request.redirect(path, notice, hint=hint)
    return elements_response([*elements, *(PageElement(element_id, "") for element_id in removed_ids)], notice=notice)


def error_notice(error: ApiResponseError) -> tuple[str, str]:
    """Return an API error as a sentence, and a sentence about the values that are accepted."""
    problem = error.problem
    return f"{problem[:1].upper()}{problem[1:]}.", f"Accepted: {error.expected}." if error.expected else ""


def error_response(request: PageRequest, path: str, error: ApiResponseError) -> Response:
    """Return the response to a failed action: the error as a notice on the same page."""
    text, hint = error_notice(error)
    if request.is_quiet:
        return JSONResponse({"message": text, "hint": hint}, error.status)
    return request.redirect(path, text, hint=hint, kind="bad")
