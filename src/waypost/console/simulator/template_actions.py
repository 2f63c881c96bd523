"""Actions on a template in the operator's place: a table, and the endpoint for all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.console.actions import ActionRow, Body, Fields, action_response, form_texts
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import call_control, get_control
from waypost.console.simulator.numbers import parse_seconds_ms
from waypost.console.simulator.reviews import get_own_template, read_reviews, render_reviews
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest

REVIEWS_PATH: Final = "/simulator"


def _empty_body(_fields: Fields) -> Body:
    return {}


def _rejection(fields: Fields) -> Body:
    body: Body = {"reason": fields.get("reason", "")}
    for name in ("explanation", "recommendation"):
        if fields.get(name, "").strip():
            body[name] = fields[name].strip()
    return body


def _category(fields: Fields) -> Body:
    announced = fields.get("when") == "announced"
    return {"category": fields.get("category", ""), "announced": announced}


def _pace(fields: Fields) -> Body:
    return {"for_ms": parse_seconds_ms(fields.get("for_s", ""), "for_s"), "verdict": fields.get("verdict") or "release"}


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """One action of the operator.

    Args:
        call: the last part of the control API's path.
        notice: the notice, with a place for the template's name.
        body: of the call, from the form.
    """

    call: str
    notice: str
    body: Callable[[Fields], Body] = _empty_body


OPERATOR_ACTIONS: Final = {  # Source: operator's facts 3.1 to 3.3; the control API's calls of these names
    # call, notice
    "approve": OperatorAction("approve", "{} approved."),
    "reject": OperatorAction("reject", "{} rejected.", _rejection),
    "quality": OperatorAction("quality", "Quality of {} set.", lambda fields: {"score": fields.get("score", "")}),
    "category": OperatorAction("category", "Category of {} changed.", _category),
    "pause": OperatorAction("pause", "{} paused for low quality; the third pause disables it."),
    "unpause": OperatorAction("unpause", "{} resumed."),
    "disable": OperatorAction("disable", "{} disabled."),
    "reinstate": OperatorAction("reinstate", "{} reinstated."),
    "appeal": OperatorAction("appeal", "{} is in appeal and waits for review."),
    "pend": OperatorAction("pend", "{} waits for review again."),
    "flag": OperatorAction("flag", "{} flagged; it can still be sent."),
    "lock": OperatorAction("lock", "{} locked against edits."),
    "limit": OperatorAction("limit", "{} has reached its limit."),
    "archive": OperatorAction("archive", "{} archived."),
    "unarchive": OperatorAction("unarchive", "{} unarchived."),
    "pending-deletion": OperatorAction("pending-deletion", "{} is pending deletion."),
    "delete": OperatorAction("delete", "{} deleted at the operator."),
    "pace": OperatorAction("pace", "Messages with {} are held from now on.", _pace),
    "release": OperatorAction("release", "Held messages with {} delivered."),
    "drop": OperatorAction("drop", "Held messages with {} failed, and it is paused."),
}


def _review_delay(fields: Fields) -> Body:
    is_manual = fields.get("mode") == "hand"
    return {"review_delay_ms": None if is_manual else parse_seconds_ms(fields.get("after_s", ""), "after_s") or 0}


def _review_delay_notice(values: Mapping[str, Any]) -> str:
    delay_ms = values["review_delay_ms"]
    if delay_ms is None:
        return "New templates wait for your review."
    return f"New templates are reviewed automatically after {delay_ms / 1000:g} s."


REVIEW_DELAY: Final = ActionRow(
    f"{REVIEWS_PATH}/review-delay", "manual or automatic reviews", "PUT /control/settings",
    REVIEWS_PATH, _review_delay_notice, body=_review_delay,
)  # fmt: skip


async def act_on_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Carry out one action on one of the partner's templates."""
    action = OPERATOR_ACTIONS.get(page_request.path_params["act"] or "")
    if action is None:
        raise NotFound("There is no such action.")
    template = await get_own_template(tools, page_request)
    body = action.body(await form_texts(page_request))

    async def call() -> None:
        path = f"/control/templates/{template['id']}/{action.call}"
        await get_control(tools).post(path, body)

    error_response = await call_control(tools, page_request, REVIEWS_PATH, call)
    if error_response is not None:
        return error_response
    pieces = (
        render_reviews(tools, page_request, await read_reviews(tools, page_request)) if page_request.is_quiet else ()
    )
    card_id = f"w-{template['id']}"
    removed = [] if any(piece.id == card_id for piece in pieces) else [card_id]
    return action_response(
        tools, page_request, REVIEWS_PATH, action.notice.format(template["name"]), pieces, removed_ids=removed
    )
