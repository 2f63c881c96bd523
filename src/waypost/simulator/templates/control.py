"""Control API calls for templates: decisions of reviewers and quality control, applied at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.base.clock import DAY_MS
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, path_object, view_of
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.field_types import HoldMs, accepts
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.templates.model import (
    ACTION_NAMES,
    TEMPLATES,
    announce_category,
    change_category,
    change_quality,
    decide,
    decide_action,
    delete_by_name,
    end_pacing,
    start_pacing,
)
from waypost.simulator.templates.nodes import component_views
from waypost.simulator.templates.template import REJECTION_REASONS, SimulatedTemplate, TemplateDecision

_ACTIONS_WITH_CALLS: Final = ("approve", "reject", "quality", "category", "delete", "pace", "release", "drop")
"""The actions with calls of their own."""

PathTemplate = Annotated[
    SimulatedTemplate,
    path_object(
        "template_id", lambda state: state.values(TEMPLATES), "is no template", "an id from GET /control/templates"
    ),
]

operation = ControlOperations()


class TemplateView(Struct, frozen=True, kw_only=True):
    """A template as the operator shows it, with its reviews and what is scheduled for it."""

    name: str
    parameter_format: str
    components: list[dict[str, Any]]
    language: str
    status: str
    category: str
    sub_category: str | UnsetType = UNSET
    previous_category: str | None
    correct_category: str | None
    source: str | UnsetType = UNSET
    id: str
    waba_id: str
    rejected_reason: str
    review_due_ms: int | None
    quality: str
    category_due_ms: int | None
    is_paced: bool
    pace_due_ms: int | None
    delete_due_ms: int | None
    pauses: int
    resume_due_ms: int | None


@operation("GET", "/control/templates", templates=list[TemplateView], count=int, reasons=tuple[str, ...])
async def list_templates(
    state: SimulatorState,
    *,
    waba_id: tuple[str, ...] = (),
    status: tuple[str, ...] = (),
    not_status: tuple[str, ...] = (),
    id: tuple[str, ...] = (),
    name: str = "",
    limit: Annotated[int, Meta(ge=0, le=10_000_000)] = 10_000_000,
) -> dict[str, Any]:
    """Return the templates of every account, with their reviews, in order of submission.

    `waba_id`, `status`, `not_status` and `id`, all repeatable, and `name`, a substring, filter the
    list; `limit` keeps the newest ones; `count` in the response is the number before the limit.
    """
    matches = [
        template
        for template in state.values(TEMPLATES).values()
        if (not waba_id or template.waba_id in waba_id)
        and (not status or template.status in status)
        and template.status not in not_status
        and (not id or template.template_id in id)
        and name.lower() in template.name.lower()
    ]
    page = [_template_view(template) for template in (matches[-limit:] if limit else ())]
    return {"templates": page, "count": len(matches), "reasons": REJECTION_REASONS}


@operation("POST", "/control/templates/{template_id}/approve")
async def approve_template(state: SimulatorState, template: PathTemplate) -> TemplateView:
    """Approve a template now."""
    return await _change(state, template, decide, TemplateDecision("APPROVED"))


@operation("POST", "/control/templates/{template_id}/reject")
async def reject_template(
    state: SimulatorState,
    template: PathTemplate,
    *,
    reason: Annotated[str, accepts(", ".join(REJECTION_REASONS))] = "INVALID_FORMAT",
    explanation: str = "The reviewer rejected this template.",
    recommendation: str = "Change the template and submit it again.",
) -> TemplateView:
    """Reject a template now."""
    if reason not in REJECTION_REASONS:
        raise ControlApiError("reason", "is unknown", ", ".join(REJECTION_REASONS))
    explained = reason == "INVALID_FORMAT"  # Source: facts 3.3
    texts = (explanation, recommendation) if explained else None
    return await _change(state, template, decide, TemplateDecision("REJECTED", reason, texts))


@operation("POST", "/control/templates/{template_id}/quality")
async def rate_template(
    state: SimulatorState, template: PathTemplate, *, score: Literal["GREEN", "YELLOW", "RED", "UNKNOWN"]
) -> TemplateView:
    """Set a template's quality now."""
    return await _change(state, template, change_quality, score)


@operation("POST", "/control/templates/{template_id}/category")
async def recategorise_template(
    state: SimulatorState,
    template: PathTemplate,
    *,
    category: Literal["UTILITY", "MARKETING", "AUTHENTICATION"],
    announced: bool = False,
    due_ms: Annotated[int, Meta(ge=0)] | None = None,
) -> TemplateView:
    """Change a template's category now, or announce the change, by default for a day later."""
    if not announced:
        return await _change(state, template, change_category, category)
    due_ms = state.clock.now_ms() + DAY_MS if due_ms is None else due_ms
    return await _change(state, template, announce_category, category, due_ms)


@operation("POST", "/control/templates/{template_id}/delete", deleted=str)
async def delete_template(state: SimulatorState, template: PathTemplate) -> dict[str, Any]:
    """Delete a template now, as its owner would on the operator's pages."""
    try:
        await state.transact(
            lambda transaction: delete_by_name(transaction, template.waba_id, template.name, template.template_id)
        )
    except GraphApiError as error:
        rule = str(error.error.get("error_user_msg", error))
        raise ControlApiError("template_id", rule, "a template that is not DISABLED", status=409) from error
    return {"deleted": template.template_id}


@operation("POST", "/control/templates/{template_id}/pace")
async def pace_template(
    state: SimulatorState,
    template: PathTemplate,
    *,
    for_ms: HoldMs = None,
    verdict: Literal["release", "drop"] = "release",
) -> TemplateView:
    """Hold the messages sent with an approved template from now on, until its quality is known."""
    if template.status != "APPROVED":
        raise ControlApiError("template_id", f"is {template.status}", "an APPROVED template", status=409)
    until_ms = None if for_ms is None else state.clock.now_ms() + for_ms
    return await _change(state, template, start_pacing, until_ms, verdict)


@operation("POST", "/control/templates/{template_id}/release")
async def release_template(state: SimulatorState, template: PathTemplate) -> TemplateView:
    """End pacing now: the held messages are delivered."""
    return await _change(state, template, end_pacing, "release")


@operation("POST", "/control/templates/{template_id}/drop")
async def drop_template(state: SimulatorState, template: PathTemplate) -> TemplateView:
    """End pacing now: the held messages fail, and the template is paused."""
    return await _change(state, template, end_pacing, "drop")


@operation("POST", "/control/templates/{template_id}/{action}")
async def apply_template_action(
    state: SimulatorState,
    action: str,
    template: PathTemplate,
    *,
    reason: str | None = None,
    title: str = "",
    description: str = "",
) -> TemplateView:
    """Apply an action of the table of template actions: pause, disable, flag, and others."""
    if action not in ACTION_NAMES:
        raise ControlApiError("action", "is unknown", ", ".join((*_ACTIONS_WITH_CALLS, *ACTION_NAMES)), status=404)

    def decide_by_action(transaction: Transaction, current: SimulatedTemplate) -> SimulatedTemplate:
        decision = decide_action(action, current)
        if reason is not None:
            decision = replace(decision, reason=reason)
        if title or description:
            known = decision.info or ("", "")
            decision = replace(decision, info=(title or known[0], description or known[1]))
        return decide(transaction, current, decision)

    return await _change(state, template, decide_by_action)


async def _change(
    state: SimulatorState, template: SimulatedTemplate, change: Callable[..., SimulatedTemplate], *arguments: Any
) -> TemplateView:
    """Change a template as it is now: an automatic review may have changed it since it was read.

    Raises:
        ControlApiError: it was deleted meanwhile.
    """

    def write(transaction: Transaction) -> SimulatedTemplate:
        known = transaction.find(TEMPLATES, template.template_id)
        if known is None:
            raise ControlApiError("template_id", "was deleted", "a template's id", status=404)
        return change(transaction, known, *arguments)

    return _template_view(await state.transact(write))


def _template_view(template: SimulatedTemplate) -> TemplateView:
    return view_of(
        TemplateView,
        template,
        id=template.template_id,
        components=component_views(template.components),
        sub_category=template.extras.get("sub_category", UNSET),
        source=template.source or UNSET,
    )
