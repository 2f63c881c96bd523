"""Reviews of templates: what is rejected afterwards, as a table, and the loop that decides in time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.clock import Clock
from waypost.base.logs import log
from waypost.simulator.loose import a_text, objects
from waypost.simulator.template import Decision, Template
from waypost.simulator.template_acts import decision_of
from waypost.simulator.template_texts import VARIABLE, variables
from waypost.simulator.templates import Templates

_LOG = log("simulator")
_FAR_MS: Final = 3_600_000
_ADJACENT: Final = re.compile(r"\}\}\s*\{\{")

# Source: facts 3.1
REJECTION_REASONS: Final = (
    "ABUSIVE_CONTENT", "CATEGORY_NOT_AVAILABLE", "INCORRECT_CATEGORY", "INVALID_FORMAT", "NONE",
    "PROMOTIONAL", "SCAM", "TAG_CONTENT_MISMATCH",
)  # fmt: skip


@dataclass(frozen=True)
class ReviewRule:
    """One row: which body text is rejected, and what the author is told."""

    is_broken: Callable[[str], bool]
    reason: str
    recommendation: str


def _has_gaps(text: str) -> bool:
    numbers = [int(name) for name in variables(text) if name.isascii() and name.isdigit()]
    return numbers != list(range(1, len(numbers) + 1))


def _has_loose_braces(text: str) -> bool:
    rest = VARIABLE.sub("", text)
    return "{{" in rest or "}}" in rest or any(set(name) & set("#$%") for name in variables(text))


# fmt: off
RULES: Final = (  # Source: facts 2.4, the rules that lead to a rejection with INVALID_FORMAT
    ReviewRule(lambda text: bool(_ADJACENT.search(text)),
               "Variables are next to each other.",
               "Put text between the variables."),
    ReviewRule(_has_gaps,
               "The variables are not numbered one after the other.",
               "Number the variables {{1}}, {{2}} and so on, without a gap."),
    ReviewRule(_has_loose_braces,
               "A variable's braces do not match, or it holds special characters.",
               "Write each variable with two opening and two closing braces around its number or name."),
)
# fmt: on


def verdict(template: Template) -> Decision:
    """What a review ends with when nobody interferes: approval, unless a rule is broken."""
    bodies = _bodies(template.components)
    for rule in RULES:
        if any(map(rule.is_broken, bodies)):
            return Decision("REJECTED", "INVALID_FORMAT", (rule.reason, rule.recommendation))
    return Decision("APPROVED")


def _bodies(components: list[dict[str, Any]]) -> list[str]:
    """The body's text, and those of the cards."""
    bodies: list[str] = []
    for component in components:
        if component["type"] == "BODY":
            bodies.append(a_text(component.get("text")) or "")
        for card in objects(component.get("cards")):
            bodies += _bodies(objects(card.get("components")))
    return bodies


class Reviews:
    """Decides each template when its review is due, and ends each pause when it is over."""

    def __init__(self, clock: Clock, templates: Templates) -> None:
        self._clock = clock
        self._templates = templates

    async def run(self) -> None:
        """Decide what is due, wait for the next, for ever."""
        while True:
            self._templates.changed.clear()
            try:
                until_ms = await self.decide_due()
            except Exception as error:  # noqa: BLE001  a defect is reported and must not end the loop
                _LOG.error("review failed", error=repr(error))
                until_ms = self._clock.now_ms() + 1000
            await self._clock.wait(self._templates.changed, until_ms=until_ms)

    async def decide_due(self) -> int:
        """Decide every template whose review or pause is due, and say when the next one is."""
        now_ms = self._clock.now_ms()
        waiting = [
            (template.review_due_ms, template)
            for template in self._templates.by_id.values()
            if template.review_due_ms is not None
        ]
        paused = [
            (template.resume_due_ms, template)
            for template in self._templates.by_id.values()
            if template.resume_due_ms is not None
        ]
        for due_ms, template in sorted(waiting, key=lambda pair: pair[0]):
            if due_ms <= now_ms:
                await self._templates.decide(template, verdict(template))
        for due_ms, template in sorted(paused, key=lambda pair: pair[0]):
            if due_ms <= now_ms:
                await self._templates.decide(template, decision_of("unpause", template))
        ahead = (due_ms for due_ms, _ in (*waiting, *paused) if due_ms > now_ms)
        return min(ahead, default=now_ms + _FAR_MS)
