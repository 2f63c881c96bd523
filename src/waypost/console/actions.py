"""Actions as table rows: one API call, the page that follows, and the notice shown there."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.proxying import step_aside
from waypost.console.route import Kind, PageRow
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with

Fields = Mapping[str, str]
Body = dict[str, Any]
Said = str | Callable[[Mapping[str, Any]], str]
Pieces = Callable[[PageTools, PageRequest], Awaitable[Sequence[Piece]]]

_CONTROL: Final = "/control/"
_ADMIN: Final = "/admin/"
_UNKNOWN: Final = (400, 404)
"""Statuses with which our APIs report an unknown object: the partner API 400, the admin API 404."""


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action.

    Texts contain placeholders in braces: path parameters, `partner_id`, and members of the response.

    Args:
        path: console path of the action.
        does: short description for readers of the table.
        call: method and path in the admin, control or partner API.
        page: page to redirect to.
        said: sentence about the result, or a function that builds it from the values.
        remedy: second sentence of the notice, likewise.
        body: function that builds the request body from form fields and path parameters; None: no body.
        missing: error text for an unknown object; empty: use the API's text.
        pieces: function that renders the page elements to update when the page stays open.
        gone: ids of elements to remove from such a page.
        steps_aside: True if the call replaces the store that the console itself uses.
    """

    path: str
    does: str
    call: str
    page: str
    said: Said
    remedy: Said = ""
    body: Callable[[Fields], Body] | None = None
    missing: str = ""
    pieces: Pieces | None = None
    gone: tuple[str, ...] = ()
    steps_aside: bool = False

    @property
    def page_row(self) -> PageRow:
        """The action's row in the route table."""
        return PageRow(Kind.ACT, self.path, self.act, self.does)

    async def act(self, desk: PageTools, visit: PageRequest) -> Response:
        """Run the action with the form fields and path parameters."""
        body = {} if self.body is None else self.body({**await fields_of(visit), **visit.path})
        return await self.carry_out(desk, visit, body)

    async def carry_out(self, desk: PageTools, visit: PageRequest, body: Body) -> Response:
        """Make the API call with a body; show an error of the simulator as a notice on the page.

        Raises:
            ApiResponseError: another API returned an error.
            NotReached: the simulator does not respond.
            NotFound: the object or the simulator does not exist.
        """
        values: dict[str, Any] = {**visit.path, "partner_id": visit.partner.id}
        method, path = self.call.split(" ", 1)
        target = path.format(**{name: quote(str(value), safe="") for name, value in values.items()})
        if self.steps_aside:
            step_aside(visit.request.scope)
        try:
            response = await self._call(desk, visit, method, target, body)
        except ApiResponseError as error:
            if self.missing and error.status in _UNKNOWN:
                raise NotThere(self.missing) from error
            if not path.startswith(_CONTROL):
                raise
            return refusal(desk, visit, self.page, error)
        values |= response if isinstance(response, dict) else {}
        pieces = await self.pieces(desk, visit) if visit.is_quiet and self.pieces else ()
        return done(
            desk, visit, self.page.format(**values), _text(self.said, values), pieces,
            gone=[element_id.format(**values) for element_id in self.gone], remedy=_text(self.remedy, values),
        )  # fmt: skip

    async def _call(self, desk: PageTools, visit: PageRequest, method: str, target: str, body: Body) -> Any:
        apis = desk.parts.apis
        if target.startswith(_ADMIN):
            api = apis.admin
        elif target.startswith(_CONTROL):
            if apis.control is None:
                raise NotThere("This service has no simulator.")
            api = apis.control
        else:
            api = await apis.partner(visit.partner.id)
            if method != "DELETE":
                return await api.form(method, target, body)
        return await api.json(method, target, None if method == "DELETE" else body)


async def fields_of(visit: PageRequest) -> dict[str, str]:
    """Return the text fields of the form."""
    return {name: value for name, value in (await visit.form()).items() if isinstance(value, str)}


def done(
    desk: PageTools, visit: PageRequest, path: str, said: str, pieces: Sequence[Piece] = (), *,
    gone: Sequence[str] = (), remedy: str = "",
) -> Response:  # fmt: skip
    """Return the response to a completed action: a redirect, or updated elements if the page stays open.

    Args:
        desk: the page tools.
        visit: the request.
        path: path of the page.
        said: notice about the result.
        pieces: page elements to update.
        gone: ids of page elements to remove.
        remedy: second sentence of the notice.
    """
    if not visit.is_quiet:
        return desk.go(path, said, remedy=remedy)
    return answer_with([*pieces, *(Piece(element_id, "") for element_id in gone)], said=said)


def reason_of(refused: ApiResponseError) -> tuple[str, str]:
    """Return an API error as a sentence, and a sentence about the values that are accepted."""
    problem = refused.problem
    return f"{problem[:1].upper()}{problem[1:]}.", f"Accepted: {refused.expected}." if refused.expected else ""


def refusal(desk: PageTools, visit: PageRequest, path: str, refused: ApiResponseError) -> Response:
    """Return the response to a failed action: the error as a notice on the same page."""
    text, hint = reason_of(refused)
    if visit.is_quiet:
        return JSONResponse({"message": text, "remedy": hint}, refused.status)
    return desk.go(path, text, remedy=hint, kind="bad")


def _text(said: Said, values: Mapping[str, Any]) -> str:
    return said.format(**values) if isinstance(said, str) else said(values)
