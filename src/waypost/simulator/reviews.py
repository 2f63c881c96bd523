"""Template reviews: the rules that reject a template after submission, and the loop that runs due changes."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.clock import Clock
from waypost.base.json_values import objects_in, text_or_none
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.messages.paced_messages import PacedMessages
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.templates.actions import decide_action
from waypost.simulator.templates.changes import change_category, end_pacing
from waypost.simulator.templates.template import SimulatedTemplate, TemplateDecision
from waypost.simulator.templates.templates import Templates
from waypost.simulator.templates.text_variables import VARIABLE, component_texts, contains_any, variables
from waypost.simulator.templates.usage import TemplateUsage

_REVIEWS_LOG = log("simulator")
_IDLE_WAIT_MS: Final = 3_600_000
_VARIABLE_NAME: Final = re.compile(r"[1-9][0-9]{0,3}|[a-z_][a-z0-9_]*")
_ADJACENT: Final = re.compile(r"\}\}\s*\{\{")

# Source: facts 3.1
REJECTION_REASONS: Final = (
    "ABUSIVE_CONTENT", "CATEGORY_NOT_AVAILABLE", "INCORRECT_CATEGORY", "INVALID_FORMAT", "NONE",
    "PROMOTIONAL", "SCAM", "TAG_CONTENT_MISMATCH",
)  # fmt: skip


@dataclass(frozen=True)
class ReviewRule:
    """One rule: the header and body texts it rejects, and the explanation for the author."""

    is_broken: Callable[[str], bool]
    reason: str
    recommendation: str


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

    Args:
        template: the template under review.
        others: the account's templates whose body and footer it may not repeat.
        marketing_words: words that make a UTILITY template a marketing one.

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
        if any(_body_and_footer(other) == wording for other in others if _is_rival(other, template)):
            return TemplateDecision("REJECTED", "INVALID_FORMAT", _DUPLICATE_TEXT)
    return TemplateDecision("APPROVED")


def _is_rival(other: SimulatedTemplate, template: SimulatedTemplate) -> bool:
    return other.name != template.name and other.status not in ("REJECTED", "PENDING_DELETION")


def _body_and_footer(template: SimulatedTemplate) -> tuple[str, str]:
    components = {component["type"]: component for component in template.components}
    body, footer = (text_or_none(components.get(kind, {}).get("text")) or "" for kind in ("BODY", "FOOTER"))
    return body.strip(), footer.strip()


def _texts_with_variables(components: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the header, the body and the cards' bodies."""
    texts: list[str] = []
    for component in components:
        if component["type"] in ("HEADER", "BODY"):
            texts.append(text_or_none(component.get("text")) or "")
        for card in objects_in(component.get("cards")):
            texts += _texts_with_variables(objects_in(card.get("components")))
    return texts


@dataclass(frozen=True)
class Timer:
    """A scheduled change of a template.

    Args:
        due_ms: its time; None: it is not scheduled.
        run: the change.
    """

    due_ms: Callable[["TemplateReviewLoop", SimulatedTemplate], int | None]
    run: Callable[["TemplateReviewLoop", SimulatedTemplate], Awaitable[object]]


class TemplateReviewLoop:
    """Runs the scheduled changes of templates: reviews, ends of pauses, and the rest of `TIMERS`."""

    def __init__(
        self,
        clock: Clock,
        settings: SimulatorSettingsStore,
        templates: Templates,
        paced_messages: PacedMessages,
        delivery_signals: DeliverySignals,
        uses: TemplateUsage,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._paced_messages = paced_messages
        self._delivery_signals = delivery_signals
        self.uses = uses
        self.templates = templates
        self.loop = Loop("reviews", self._run_once, self._wait, log=_REVIEWS_LOG)

    async def next_due_ms(self) -> int | None:
        """Return the time of the next scheduled change; None if there is none."""
        if self._paced_messages.find_decided(self.templates.by_id.get):
            return self._clock.now_ms()
        return min((due_ms for due_ms, _, _ in self._planned_timers()), default=None)

    async def run_due(self) -> int:
        """Run all due changes in order of their due times; return the time of the next one."""
        now_ms = self._clock.now_ms()
        due = [planned for planned in self._planned_timers() if planned[0] <= now_ms]
        for _, timer, template in sorted(due, key=lambda planned: planned[0]):
            await timer.run(self, template)
        for template_id, is_released in self._paced_messages.find_decided(self.templates.by_id.get):
            for phone in await self._paced_messages.release_or_drop(template_id, is_released=is_released):
                self._delivery_signals.wake(phone)
            self._delivery_signals.actions_planned.set()
        ahead = (due_ms for due_ms, _, _ in self._planned_timers() if due_ms > now_ms)
        return min(ahead, default=now_ms + _IDLE_WAIT_MS)

    async def review(self, template: SimulatedTemplate) -> None:
        """Decide a template by its text; other templates count if the settings are strict."""
        settings = self._settings.value
        rivals = self.templates.list_templates(template.waba_id) if settings.strict else ()
        await self.templates.decide(template, review_decision(template, rivals, settings.marketing_words))

    async def _run_once(self) -> int:
        self.templates.changed.clear()
        return await self.run_due()

    async def _wait(self, until_ms: int) -> None:
        await self._clock.wait(self.templates.changed, until_ms=until_ms)

    def _planned_timers(self) -> Iterator[tuple[int, Timer, SimulatedTemplate]]:
        for template in self.templates.by_id.values():
            for timer in TIMERS:
                due_ms = timer.due_ms(self, template)
                if due_ms is not None:
                    yield due_ms, timer, template


async def _recategorise(reviews: TemplateReviewLoop, template: SimulatedTemplate) -> None:
    change = change_category(template.correct_category or template.category)
    await reviews.templates.apply_change(template, change)


TIMERS: Final = (  # Source: facts 3.2, the automatic transitions
    # when, what
    Timer(lambda _, template: template.review_due_ms, TemplateReviewLoop.review),
    Timer(
        lambda _, template: template.resume_due_ms,
        lambda reviews, template: reviews.templates.decide(template, decide_action("unpause", template)),
    ),
    Timer(lambda _, template: template.category_due_ms, _recategorise),
    Timer(
        lambda _, template: template.pace_due_ms,
        lambda reviews, template: reviews.templates.apply_change(template, end_pacing()),
    ),
    Timer(
        lambda reviews, template: reviews.uses.archive_due_ms(template),
        lambda reviews, template: reviews.templates.decide(template, decide_action("archive", template)),
    ),
    Timer(
        lambda _, template: template.delete_due_ms,
        lambda reviews, template: reviews.templates.finish_deletion(template),
    ),
)
