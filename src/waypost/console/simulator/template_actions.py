"""Actions on a template in the operator's place: a table, and the endpoint for all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.console.actions import ActionRow, Body, Fields, done, fields_of
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import attempt, control_of
from waypost.console.simulator.numbers import seconds_as_ms
from waypost.console.simulator.reviews import own_template, pieces_of, reviews_now
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest

PATH: Final = "/simulator"


def _nothing(_fields: Fields) -> Body:
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
    return {"for_ms": seconds_as_ms(fields.get("for_s", ""), "for_s"), "verdict": fields.get("verdict") or "release"}


@dataclass(frozen=True, slots=True)
class TemplateAct:
    """One action of the operator.

    Args:
        call: the last part of the control API's path.
        said: the notice, with a place for the template's name.
        body: of the call, from the form.
    """

    call: str
    said: str
    body: Callable[[Fields], Body] = _nothing


# fmt: off
ACTS: Final = {  # Source: operator's facts 3.1 to 3.3; the control API's calls of these names
    #                              call                said
    "approve":          TemplateAct("approve",          "{} approved."),
    "reject":           TemplateAct("reject",           "{} rejected.", _rejection),
    "quality":          TemplateAct("quality",          "Quality of {} set.", lambda fields: {"score": fields.get("score", "")}),
    "category":         TemplateAct("category",         "Category of {} changed.", _category),
    "pause":            TemplateAct("pause",            "{} paused for low quality; the third pause disables it."),
    "unpause":          TemplateAct("unpause",          "{} resumed."),
    "disable":          TemplateAct("disable",          "{} disabled."),
    "reinstate":        TemplateAct("reinstate",        "{} reinstated."),
    "appeal":           TemplateAct("appeal",           "{} is in appeal and waits for review."),
    "pend":             TemplateAct("pend",             "{} waits for review again."),
    "flag":             TemplateAct("flag",             "{} flagged; it can still be sent."),
    "lock":             TemplateAct("lock",             "{} locked against edits."),
    "limit":            TemplateAct("limit",            "{} has reached its limit."),
    "archive":          TemplateAct("archive",          "{} archived."),
    "unarchive":        TemplateAct("unarchive",        "{} unarchived."),
    "pending-deletion": TemplateAct("pending-deletion", "{} is pending deletion."),
    "delete":           TemplateAct("delete",           "{} deleted at the operator."),
    "pace":             TemplateAct("pace",             "Messages with {} are held from now on.", _pace),
    "release":          TemplateAct("release",          "Held messages with {} delivered."),
    "drop":             TemplateAct("drop",             "Held messages with {} failed, and it is paused."),
}
# fmt: on


def _review_delay(fields: Fields) -> Body:
    is_manual = fields.get("mode") == "hand"
    return {"review_delay_ms": None if is_manual else seconds_as_ms(fields.get("after_s", ""), "after_s") or 0}


def _said_of_delay(values: Mapping[str, Any]) -> str:
    delay_ms = values["review_delay_ms"]
    if delay_ms is None:
        return "New templates wait for your review."
    return f"New templates are reviewed automatically after {delay_ms / 1000:g} s."


REVIEW_DELAY: Final = ActionRow(
    f"{PATH}/review-delay", "manual or automatic reviews", "PUT /control/settings",
    PATH, _said_of_delay, body=_review_delay,
)  # fmt: skip


async def act_on_template(desk: PageTools, visit: PageRequest) -> Response:
    """Carry out one action on one of the partner's templates."""
    action = ACTS.get(visit.path["act"] or "")
    if action is None:
        raise NotThere("There is no such action.")
    template = await own_template(desk, visit)
    body = action.body(await fields_of(visit))

    async def call() -> None:
        path = f"/control/templates/{template['id']}/{action.call}"
        await control_of(desk).post(path, body)

    error_response = await attempt(desk, visit, PATH, call)
    if error_response is not None:
        return error_response
    pieces = pieces_of(desk, visit, await reviews_now(desk, visit)) if visit.is_quiet else ()
    card_id = f"w-{template['id']}"
    removed = [] if any(piece.id == card_id for piece in pieces) else [card_id]
    return done(desk, visit, PATH, action.said.format(template["name"]), pieces, gone=removed)
