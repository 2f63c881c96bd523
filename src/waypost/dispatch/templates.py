"""What each outcome means for a template's review."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.event import ReviewEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES, template_step
from waypost.domain.outcome import Rejected, Sent, Unavailable
from waypost.domain.template import TemplateStatus
from waypost.journal.telling import Telling
from waypost.store.journal import settle_entries
from waypost.store.templates import change_template, template_by_id
from waypost.wire.callback_v2 import review_body


@dataclass(frozen=True, slots=True)
class TemplateOutcome:
    """What came of handing in a template; `Unavailable` here means after all retries."""

    position: int
    template_id: str
    app: App
    outcome: Sent | Rejected | Unavailable | None


class TemplateOutcomes:
    """Writes outcomes: status, callback and the settled entry in one transaction."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids

    def record(self, connection: Connection, outcomes: Sequence[TemplateOutcome]) -> list[None]:
        """Move templates by what the operator made of them.

        A refusal becomes REJECTED with the operator's words and a `rejected` callback; a template
        that could not be handed in at all becomes FAILED. Source: design, section 3.
        """
        at_ms = self._clock.now_ms()
        telling = Telling(connection, self._ids, at_ms)
        for one in outcomes:
            match one.outcome:
                case Sent(operator_id=operator_id, status=status):
                    change_template(connection, one.template_id, operator_template_id=operator_id)
                    known = OPERATOR_STATUSES.get(status or "")
                    if known is not None:
                        self._moves(connection, telling, one, known, None, at_ms)
                case Rejected(text=text):
                    self._moves(connection, telling, one, TemplateStatus.REJECTED, text, at_ms)
                case Unavailable(text=text):
                    self._moves(connection, telling, one, TemplateStatus.FAILED, text, at_ms)
                case None:
                    continue
        telling.write()
        settle_entries(connection, [one.position for one in outcomes])
        return [None] * len(outcomes)

    def _moves(
        self,
        connection: Connection,
        telling: Telling,
        one: TemplateOutcome,
        status: TemplateStatus,
        reason: str | None,
        at_ms: int,
    ) -> None:
        template = template_by_id(connection, one.template_id)
        # Only from PENDING: the review may have come before the answer, and it is the newer word.
        if template is None or template.status is not TemplateStatus.PENDING:
            return
        if not template_step(template.status, status):
            return
        change_template(
            connection, template.id, status=status.value, reason=reason, modified_on_ms=at_ms
        )
        event = ReviewEvent(
            business_account_id=template.business_account_id,
            operator_template_id=template.operator_template_id or "",
            element_name=template.draft.element_name or "",
            language_code=template.draft.language_code,
            status=status.value,
            reason=reason,
        )
        telling.call_back(
            one.app,
            mode="TEMPLATE",
            about=f"t:{template.id}",
            message_id=None,
            news=status.value.lower(),
            body=review_body(one.app, at_ms, event, template_id=template.id, status=status.value),
        )
