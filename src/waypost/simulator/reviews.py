"""Template reviews: the rules that reject a template after submission, and the loop that runs due changes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from waypost.base.json_values import objects_in, text_or_none
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.messages.held_messages import find_decided_templates, release_or_drop_all
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.templates.model import (
    TEMPLATE_ACTIONS,
    TEMPLATES,
    account_templates,
    archive_due_ms,
    change_category,
    decide,
    end_pacing,
    finish_deletion,
    is_unchanged,
)
from waypost.simulator.templates.template import SimulatedTemplate, TemplateDecision
from waypost.simulator.templates.text_variables import VARIABLE, component_texts, contains_any, variables

_REVIEWS_LOG = log("simulator")
TemplateTimerWork = Callable[[Transaction, SimulatedTemplate], object]
_IDLE_WAIT_MS: Final = 3_600_000
_VARIABLE_NAME: Final = re.compile(r"[1-9][0-9]{0,3}|[a-z_][a-z0-9_]*")
_ADJACENT: Final = re.compile(r"\}\}\s*\{\{")


@dataclass(frozen=True)
class ReviewRule:
    """One rule: the header and body texts it rejects, and the explanation for the author."""

    is_broken: Callable[[str], bool]
    reason: str
    recommendation: str


_DEAD_STATUSES: Final = ("REJECTED", "PENDING_DELETION")
_DUPLICATE_TEXT: Final = (
    "Another template of this account has the same body and footer.",
    "Use the other template, or change the text.",
)


def _has_gaps(text: str) -> bool:
    numbers = [int(name) for name in variables(text) if name.isascii() and name.isdigit()]
    return numbers != list(range(1, len(numbers) + 1))


def _has_loose_braces(text: str) -> bool:
    rest = VARIABLE.sub("", text)
    return "{{" in rest or "}}" in rest or not all(map(_VARIABLE_NAME.fullmatch, VARIABLE.findall(text)))


# fmt: off
REVIEW_RULES: Final = (  # Source: facts 2.4, the rules that lead to a rejection with INVALID_FORMAT
    ReviewRule(lambda text: bool(_ADJACENT.search(text)),
               "Variables are next to each other.",
               "Put text between the variables."),
    ReviewRule(_has_gaps,
               "The variables are not numbered one after the other.",
               "Number the variables {{1}}, {{2}} and so on, without a gap."),
    ReviewRule(_has_loose_braces,
               "A variable's braces do not match, or hold more than its number or name.",
               "Write each variable with two opening and two closing braces around its number or name."),
)
# fmt: on


def review_decision(
    template: SimulatedTemplate, others: Iterable[SimulatedTemplate] = (), marketing_words: Iterable[str] = ()
) -> TemplateDecision:
    """Return the decision of an automatic review: approval, unless a rule is broken.

    Source: facts 2.4; 3.1, INCORRECT_CATEGORY.
    """
    texts = _texts_with_variables(template.components)
    for rule in REVIEW_RULES:
        if any(map(rule.is_broken, texts)):
            return TemplateDecision("REJECTED", "INVALID_FORMAT", (rule.reason, rule.recommendation))
    if template.category == "UTILITY" and contains_any(component_texts(template.components), marketing_words):
        return TemplateDecision("REJECTED", "INCORRECT_CATEGORY")
    if template.category != "AUTHENTICATION":
        wording = _body_and_footer(template)
        rivals = (other for other in others if other.name != template.name and other.status not in _DEAD_STATUSES)
        if any(_body_and_footer(other) == wording for other in rivals):
            return TemplateDecision("REJECTED", "INVALID_FORMAT", _DUPLICATE_TEXT)
    return TemplateDecision("APPROVED")


def _body_and_footer(template: SimulatedTemplate) -> tuple[str, str]:
    return template.text("BODY").strip(), template.text("FOOTER").strip()


def _texts_with_variables(components: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the header, the body and the cards' bodies."""
    texts: list[str] = []
    for component in components:
        if component["type"] in ("HEADER", "BODY"):
            texts.append(text_or_none(component.get("text")) or "")
        for card in objects_in(component.get("cards")):
            texts += _texts_with_variables(objects_in(card.get("components")))
    return texts


def _review(transaction: Transaction, template: SimulatedTemplate) -> None:
    """Decide a template by its text; other templates count if the settings are strict."""
    settings = transaction.state.settings.value
    rivals = account_templates(transaction, template.waba_id) if settings.strict else ()
    decide(transaction, template, review_decision(template, rivals, settings.marketing_words))


_TIMERS: Final[Mapping[str, TemplateTimerWork]] = {  # Source: facts 3.2, the automatic transitions
    # member of the template with the due time: what happens then
    "review_due_ms": _review,
    "resume_due_ms": lambda transaction, template: decide(transaction, template, TEMPLATE_ACTIONS["unpause"]),
    "category_due_ms": lambda transaction, template: change_category(
        transaction, template, template.correct_category or template.category
    ),
    "pace_due_ms": end_pacing,
    "delete_due_ms": finish_deletion,
}


def _archive(transaction: Transaction, template: SimulatedTemplate) -> SimulatedTemplate:
    return decide(transaction, template, TEMPLATE_ACTIONS["archive"])


def start_reviews(state: SimulatorState) -> None:
    """Start the loop that runs the scheduled changes of templates, and releases or drops held messages."""

    async def run_once() -> int:
        state.templates_changed.clear()
        return await _run_due(state)

    async def next_due_ms() -> int | None:
        if find_decided_templates(state):
            return state.clock.now_ms()
        return min((due_ms for due_ms, _, _ in _planned_changes(state)), default=None)

    state.start_loop(
        Loop("reviews", run_once, partial(state.wait, state.templates_changed), log=_REVIEWS_LOG), next_due_ms
    )


async def _run_due(state: SimulatorState) -> int:
    """Run all due changes in order of their due times; return the time of the next one."""
    now_ms = state.clock.now_ms()
    due = [planned for planned in _planned_changes(state) if planned[0] <= now_ms]
    for _, change, template in sorted(due, key=lambda planned: planned[0]):
        await state.transact(partial(_run_if_unchanged, change, template))
    for template_id, is_released in find_decided_templates(state):
        await release_or_drop_all(state, template_id, is_released=is_released)
    ahead = (due_ms for due_ms, _, _ in _planned_changes(state) if due_ms > now_ms)
    return min(ahead, default=now_ms + _IDLE_WAIT_MS)


def _run_if_unchanged(change: TemplateTimerWork, template: SimulatedTemplate, transaction: Transaction) -> None:
    if is_unchanged(transaction, template):
        change(transaction, template)


def _planned_changes(state: SimulatorState) -> Iterator[tuple[int, TemplateTimerWork, SimulatedTemplate]]:
    for template in state.values(TEMPLATES).values():
        changes = [(getattr(template, name), change) for name, change in _TIMERS.items()]
        for due_ms, change in (*changes, (archive_due_ms(state, template), _archive)):
            if due_ms is not None:
                yield due_ms, change, template
