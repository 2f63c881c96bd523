"""Actions as rows: one call of an API of ours, the page that it leads to, and what is said there."""

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
"""How our APIs answer for a thing that is not there: the partner API by 400, the admin API by 404."""


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action.

    Texts have values in braces: those of the address, `partner_id`, and the members of the response.

    Args:
        path: of the console.
        does: in a few words, for whoever reads the table.
        call: method and path of the administration, of the control API, or of the partner API.
        page: where it leads.
        said: what has happened, in a sentence; or a function that gives it from the values.
        remedy: what is to be known besides; likewise.
        body: of the call, made from the form and the values of the address; None: it has none.
        missing: what is said where there is no such thing; empty: the words of the API are.
        pieces: what it changes on a page that stays open.
        gone: ids of elements that such a page loses.
        steps_aside: the call exchanges the store under the console that makes it.
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
        """The row of the route table."""
        return PageRow(Kind.ACT, self.path, self.act, self.does)

    async def act(self, desk: PageTools, visit: PageRequest) -> Response:
        """Do it with what the form and the address say."""
        body = {} if self.body is None else self.body({**await fields_of(visit), **visit.path})
        return await self.carry_out(desk, visit, body)

    async def carry_out(self, desk: PageTools, visit: PageRequest, body: Body) -> Response:
        """Make the call with a body; an error of the simulator is shown on the page.

        Raises:
            DoorRefused: another API refuses it.
            NotReached: the simulator does not answer.
            NotThere: there is no such thing, or no simulator.
        """
        values: dict[str, Any] = {**visit.path, "partner_id": visit.partner.id}
        method, path = self.call.split(" ", 1)
        target = path.format(**{name: quote(str(value), safe="") for name, value in values.items()})
        if self.steps_aside:
            step_aside(visit.request.scope)
        try:
            response = await self._call(desk, visit, method, target, body)
        except ApiResponseError as refused:
            if self.missing and refused.status in _UNKNOWN:
                raise NotThere(self.missing) from refused
            if not path.startswith(_CONTROL):
                raise
            return refusal(desk, visit, self.page, refused)
        values |= response if isinstance(response, dict) else {}
        pieces = await self.pieces(desk, visit) if visit.is_quiet and self.pieces else ()
        return done(
            desk, visit, self.page.format(**values), _text(self.said, values), pieces,
            gone=[one.format(**values) for one in self.gone], remedy=_text(self.remedy, values),
        )  # fmt: skip

    async def _call(self, desk: PageTools, visit: PageRequest, method: str, target: str, body: Body) -> Any:
        apis = desk.parts.apis
        if target.startswith(_ADMIN):
            api = apis.admin
        elif target.startswith(_CONTROL):
            if apis.control is None:
                raise NotThere("There is no simulator behind this service.")
            api = apis.control
        else:
            api = await apis.partner(visit.partner.id)
            if method != "DELETE":
                return await api.form(method, target, body)
        return await api.json(method, target, None if method == "DELETE" else body)


async def fields_of(visit: PageRequest) -> dict[str, str]:
    """The texts of the form."""
    return {name: value for name, value in (await visit.form()).items() if isinstance(value, str)}


def done(
    desk: PageTools, visit: PageRequest, path: str, said: str, pieces: Sequence[Piece] = (), *,
    gone: Sequence[str] = (), remedy: str = "",
) -> Response:  # fmt: skip
    """The end of an action: the page that it was done on says what happened, and shows it.

    Args:
        desk: what there is.
        visit: the request.
        path: of the page.
        said: what happened.
        pieces: what the page shows again where it stays open.
        gone: ids of elements that the action has made superfluous.
        remedy: what is to be known besides.
    """
    if not visit.is_quiet:
        return desk.go(path, said, remedy=remedy)
    return answer_with([*pieces, *(Piece(one, "") for one in gone)], said=said)


def reason_of(refused: ApiResponseError) -> tuple[str, str]:
    """What an API refused, as a sentence, and what it would accept."""
    said = refused.problem
    return f"{said[:1].upper()}{said[1:]}.", f"It takes {refused.expected}." if refused.expected else ""


def refusal(desk: PageTools, visit: PageRequest, path: str, refused: ApiResponseError) -> Response:
    """The error, shown on the page that the action was tried on."""
    said, remedy = reason_of(refused)
    if visit.is_quiet:
        return JSONResponse({"message": said, "remedy": remedy}, refused.status)
    return desk.go(path, said, remedy=remedy, kind="bad")


def _text(said: Said, values: Mapping[str, Any]) -> str:
    return said.format(**values) if isinstance(said, str) else said(values)
