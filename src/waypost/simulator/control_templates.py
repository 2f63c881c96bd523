"""The control door's calls about templates: reviews, decided at once."""

from typing import Any

from starlette.requests import Request

from waypost.simulator.control_guard import ControlRefused
from waypost.simulator.control_shapes import NothingShape, RejectShape, read_shape
from waypost.simulator.nodes import template_node
from waypost.simulator.parts import Parts
from waypost.simulator.reviews import REJECTION_REASONS
from waypost.simulator.template import Decision, Template


async def list_templates(parts: Parts, _request: Request) -> dict[str, Any]:
    """Every template of every account, with its review."""
    return {"templates": [_template_view(one) for one in parts.templates.by_id.values()]}


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


def _template_of(parts: Parts, request: Request) -> Template:
    template = parts.templates.by_id.get(request.path_params["template_id"])
    if template is None:
        raise ControlRefused(
            404,
            field="template_id",
            rule="is no template",
            accepted="an id from GET /control/templates",
        )
    return template


def _template_view(template: Template) -> dict[str, Any]:
    view = template_node(template, None)
    return {
        **view,
        "waba_id": template.waba_id,
        "rejected_reason": template.rejected_reason,
        "review_due_ms": template.review_due_ms,
    }
