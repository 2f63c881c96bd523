"""The control door's calls about templates: what reviewers and quality would decide, at once."""

from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request

from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.phones import whole_number
from waypost.simulator.control.shapes import (
    ActShape,
    CategoryShape,
    NothingShape,
    PaceShape,
    QualityShape,
    RejectShape,
    read_shape,
)
from waypost.simulator.errors import GraphRefused
from waypost.simulator.graph.nodes import template_node
from waypost.simulator.messages.reviews import REJECTION_REASONS
from waypost.simulator.parts import Parts
from waypost.simulator.templates.acts import ACT_NAMES, decision_of
from waypost.simulator.templates.changes import announced, paced, pacing_ended, rated, recategorised
from waypost.simulator.templates.template import Decision, Template

_DAY_MS: Final = 24 * 3600 * 1000
_CALLS: Final = (
    "approve", "reject", "quality", "category", "delete", "pace", "release", "drop",
)  # fmt: skip
"""What has a call of its own."""


async def list_templates(parts: Parts, request: Request) -> dict[str, Any]:
    """Templates of every account, with their reviews, in the order of submission.

    `waba_id`, `status`, `not_status` and `id`, each perhaps several times, and `name`, a part of it,
    narrow the list; `limit` gives the newest so many; `count` says how many there are all the same.
    """
    asked = request.query_params
    accounts, states, others, ids = (asked.getlist(name) for name in ("waba_id", "status", "not_status", "id"))
    part = asked.get("name", "").lower()
    found = [
        one
        for one in parts.templates.by_id.values()
        if (not accounts or one.waba_id in accounts)
        and (not states or one.status in states)
        and one.status not in others
        and (not ids or one.template_id in ids)
        and part in one.name.lower()
    ]
    limit = whole_number(request, "limit", default=len(found), at_most=10_000_000)
    shown = found[-limit:] if limit else []
    return {"templates": [_template_view(one) for one in shown], "count": len(found), "reasons": REJECTION_REASONS}


async def approve_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Approve a template now."""
    template = _template_of(parts, request)
    read_shape(NothingShape, await request.body())
    return _template_view(await parts.templates.decide(template, Decision("APPROVED")) or template)


async def reject_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Reject a template now."""
    template = _template_of(parts, request)
    wish = read_shape(RejectShape, await request.body())
    if wish.reason not in REJECTION_REASONS:
        accepted = ", ".join(REJECTION_REASONS)
        raise ControlRefused(400, field="reason", rule="is unknown", accepted=accepted)
    explained = wish.reason == "INVALID_FORMAT"  # Source: facts 3.3
    explanation = (wish.explanation, wish.recommendation) if explained else None
    decision = Decision("REJECTED", wish.reason, explanation)
    return _template_view(await parts.templates.decide(template, decision) or template)


async def rate_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Give a template another quality now."""
    template = _template_of(parts, request)
    wish = read_shape(QualityShape, await request.body())
    return _template_view(await parts.templates.alter(template, rated(wish.score)))


async def recategorise_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Give a template another category now, or announce it, for a day later unless told when."""
    template = _template_of(parts, request)
    wish = read_shape(CategoryShape, await request.body())
    if not wish.announced:
        return _template_view(await parts.templates.alter(template, recategorised(wish.category)))
    due_ms = parts.clock.now_ms() + _DAY_MS if wish.due_ms is None else wish.due_ms
    return _template_view(
        await parts.templates.alter(template, announced(wish.category, due_ms))
    )  # fmt: skip


async def delete_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Delete a template now, as its owner would in the operator's own pages."""
    template = _template_of(parts, request)
    read_shape(NothingShape, await request.body())
    try:
        await parts.templates.delete(template.waba_id, template.name, template.template_id)
    except GraphRefused as refused:
        raise ControlRefused(
            409,
            field="template_id",
            rule=str(refused.error.get("error_user_msg", refused)),
            accepted="a template that is not DISABLED",
        ) from refused
    return {"deleted": template.template_id}


async def pace_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Hold what is sent with an approved template from now on, until its quality is known."""
    template = _template_of(parts, request)
    wish = read_shape(PaceShape, await request.body())
    if template.status != "APPROVED":
        raise ControlRefused(409, field="template_id", rule=f"is {template.status}", accepted="an APPROVED template")
    until_ms = None if wish.for_ms is None else parts.clock.now_ms() + wish.for_ms
    return _template_view(await parts.templates.alter(template, paced(until_ms, wish.verdict)))


async def release_template(parts: Parts, request: Request) -> dict[str, Any]:
    """End pacing now: what was held is delivered."""
    template = _template_of(parts, request)
    read_shape(NothingShape, await request.body())
    return _template_view(await parts.templates.alter(template, pacing_ended("release")))


async def drop_template(parts: Parts, request: Request) -> dict[str, Any]:
    """End pacing now: what was held fails, and the template is paused."""
    template = _template_of(parts, request)
    read_shape(NothingShape, await request.body())
    return _template_view(await parts.templates.alter(template, pacing_ended("drop")))


async def act_on_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Pause a template, disable it, flag it, and so on: whatever the table of acts has."""
    act: str = request.path_params["act"]
    if act not in ACT_NAMES:
        raise ControlRefused(404, field="act", rule="is unknown", accepted=", ".join((*_CALLS, *ACT_NAMES)))
    template = _template_of(parts, request)
    wish = read_shape(ActShape, await request.body())
    decision = decision_of(act, template)
    if wish.reason is not None:
        decision = replace(decision, reason=wish.reason)
    if wish.title or wish.description:
        title, description = decision.info or ("", "")
        decision = replace(
            decision, info=(wish.title or title, wish.description or description)
        )  # fmt: skip
    return _template_view(await parts.templates.decide(template, decision) or template)


def _template_of(parts: Parts, request: Request) -> Template:
    template = parts.templates.by_id.get(request.path_params["template_id"])
    if template is None:
        raise ControlRefused(
            404, field="template_id", rule="is no template", accepted="an id from GET /control/templates"
        )
    return template


def _template_view(template: Template) -> dict[str, Any]:
    view = template_node(template, None)
    return {
        **view,
        "waba_id": template.waba_id,
        "rejected_reason": template.rejected_reason,
        "review_due_ms": template.review_due_ms,
        "quality": template.quality,
        "previous_category": template.previous_category,
        "correct_category": template.correct_category,
        "category_due_ms": template.category_due_ms,
        "is_paced": template.is_paced,
        "pace_due_ms": template.pace_due_ms,
        "delete_due_ms": template.delete_due_ms,
        "pauses": template.pauses,
        "resume_due_ms": template.resume_due_ms,
    }
