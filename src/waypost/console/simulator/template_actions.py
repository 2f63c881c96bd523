"""What a person decides of a template in the operator's place: a table of acts, and the endpoint for all of them."""

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
    """One row.

    Args:
        call: the last part of the control door's path.
        body: what it is given, from the form.
        said: what happened, with the template's name.
    """

    call: str
    said: str
    body: Callable[[Fields], Body] = _nothing


# fmt: off
ACTS: Final = {  # Source: operator's facts 3.1 to 3.3; the control door's calls of these names
    #                              call                said
    "approve":          TemplateAct("approve",          "{} is approved."),
    "reject":           TemplateAct("reject",           "{} is rejected.", _rejection),
    "quality":          TemplateAct("quality",          "The quality of {} is set.", lambda fields: {"score": fields.get("score", "")}),
    "category":         TemplateAct("category",         "The category of {} is decided.", _category),
    "pause":            TemplateAct("pause",            "{} is paused for its quality, or disabled the third time."),
    "unpause":          TemplateAct("unpause",          "The pause of {} is over."),
    "disable":          TemplateAct("disable",          "{} is disabled."),
    "reinstate":        TemplateAct("reinstate",        "{} is reinstated."),
    "appeal":           TemplateAct("appeal",           "{} waits for a review again, as appealed."),
    "pend":             TemplateAct("pend",             "{} waits for a review again."),
    "flag":             TemplateAct("flag",             "{} is flagged; it can still be sent."),
    "lock":             TemplateAct("lock",             "{} is locked against edits."),
    "limit":            TemplateAct("limit",            "{} has reached its limit."),
    "archive":          TemplateAct("archive",          "{} is archived."),
    "unarchive":        TemplateAct("unarchive",        "{} is back from the archive."),
    "pending-deletion": TemplateAct("pending-deletion", "{} waits for its deletion."),
    "delete":           TemplateAct("delete",           "{} is deleted at the operator."),
    "pace":             TemplateAct("pace",             "What is sent with {} is held from now on.", _pace),
    "release":          TemplateAct("release",          "What was held of {} is delivered."),
    "drop":             TemplateAct("drop",             "What was held of {} has failed, and it is paused."),
}
# fmt: on


def _review_delay(fields: Fields) -> Body:
    by_hand = fields.get("mode") == "hand"
    return {"review_delay_ms": None if by_hand else seconds_as_ms(fields.get("after_s", ""), "after_s") or 0}


def _said_of_delay(values: Mapping[str, Any]) -> str:
    delay_ms = values["review_delay_ms"]
    if delay_ms is None:
        return "New templates wait for you."
    return f"New templates are decided after {delay_ms / 1000:g} s."


REVIEW_DELAY: Final = ActionRow(
    f"{PATH}/review-delay", "reviews by hand, or after a time", "PUT /control/settings",
    PATH, _said_of_delay, body=_review_delay,
)  # fmt: skip


async def act_on_template(desk: PageTools, visit: PageRequest) -> Response:
    """Carry out one row for one of the partner's templates."""
    act = ACTS.get(visit.path["act"] or "")
    if act is None:
        raise NotThere("There is nothing of that kind to decide.")
    template = await own_template(desk, visit)
    body = act.body(await fields_of(visit))

    async def decide() -> None:
        path = f"/control/templates/{template['id']}/{act.call}"
        await control_of(desk).post(path, body)

    refused = await attempt(desk, visit, PATH, decide)
    if refused is not None:
        return refused
    pieces = pieces_of(desk, visit, await reviews_now(desk, visit)) if visit.is_quiet else ()
    gone = [one for one in (f"w-{template['id']}",) if all(one != piece.id for piece in pieces)]
    return done(desk, visit, PATH, act.said.format(template["name"]), pieces, gone=gone)
