"""What can happen to a template besides a decision: each change, and what webhooks say of it."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from waypost.simulator.templates.actions import decision_of
from waypost.simulator.templates.template import (
    Decision,
    Template,
    category_update,
    decided,
    quality_update,
    status_update,
)

News = list[tuple[str, dict[str, Any]]]
"""Webhook fields and their values."""

Change = Callable[[Template, int], tuple[Template, News]]
"""Gives, of a template and the time, the template afterwards and what is told."""

STATUS: Final = "message_template_status_update"
_QUALITY: Final = "message_template_quality_update"
_CATEGORY: Final = "template_category_update"


def news_of(template: Template, decision: Decision, now_ms: int) -> News:
    """What is told of a decision."""
    return [(STATUS, status_update(template, decision, now_ms))]


def rated(score: str) -> Change:
    """Another quality; RED pauses an approved template. Source: facts 3.2, 3.3."""

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        news: News = [(_QUALITY, quality_update(template, score))]
        after = replace(template, quality=score, updated_ms=now_ms)
        if score == "RED" and after.status == "APPROVED":
            after, paused = done("pause")(after, now_ms)
            news += paused
        return after, news

    return change


def done(act: str) -> Change:
    """What an act decides (see `decision_of`)."""

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        decision = decision_of(act, template)
        after = decided(template, decision, now_ms)
        return after, news_of(after, decision, now_ms)

    return change


def announced(category: str, due_ms: int) -> Change:
    """Another category is announced, and comes by itself. Source: facts 3.2, 3.3."""

    def change(template: Template, _now_ms: int) -> tuple[Template, News]:
        news: News = [(_CATEGORY, category_update(template, category, due_ms))]
        return replace(template, correct_category=category, category_due_ms=due_ms), news

    return change


def recategorised(category: str) -> Change:
    """Another category, which takes the lifetime away. Source: facts 3.2."""

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        news: News = [(_CATEGORY, category_update(template, category, None))]
        after = replace(
            template,
            category=category,
            previous_category=template.category,
            correct_category=None,
            category_due_ms=None,
            message_send_ttl_seconds=None,
            updated_ms=now_ms,
        )
        return after, news

    return change


def paced(until_ms: int | None, verdict: str) -> Change:
    """What is sent from now on is held.

    Args:
        until_ms: until when; None: until it is told.
        verdict: `release` or `drop`: what then becomes of what was held.

    Source: facts 3.2, "pacing".
    """

    def change(template: Template, _now_ms: int) -> tuple[Template, News]:
        after = replace(template, is_paced=True, pace_due_ms=until_ms, pace_verdict=verdict)
        return after, []

    return change


def pacing_ended(verdict: str | None = None) -> Change:
    """What was held is released, or dropped and the template paused; None: as was planned.

    Source: facts 3.2, "pacing".
    """

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        if not template.is_paced:
            return template, []
        ended = replace(template, is_paced=False, pace_due_ms=None, pace_verdict=verdict or template.pace_verdict)
        if ended.pace_verdict == "drop" and ended.status == "APPROVED":
            return done("pacing-pause")(ended, now_ms)
        return ended, []

    return change
