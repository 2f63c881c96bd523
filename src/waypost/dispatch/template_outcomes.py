"""Records the outcome of each template request."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.direct_calls import OperatorTemplate
from waypost.domain.event import CategoryEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import (
    apply_category_change,
    apply_status_change,
    make_review_event,
    name_and_language,
    reject_edit,
)
from waypost.notifications.template_sync import align_template
from waypost.store.apps.operator_history import current_operator_account_id
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import complete_jobs, enqueue_jobs
from waypost.store.templates.events import TemplateEventKind, record_template_event
from waypost.store.templates.templates import (
    accept_edit,
    change_template,
    is_id_of_deleted_template,
    template_by_id,
    template_job,
)

_log = log("dispatch")

NAME_STILL_AT_OPERATOR = (
    "the operator still has the deleted template of this name; delete it again, or take another name"
)


@dataclass(frozen=True, slots=True)
class TemplateOutcome:
    """The outcome of a template request; `OperatorUnavailable` here means after all retries."""

    position: int
    kind: SubjectKind
    template_id: str
    app: App | None  # whose callbacks; None where it has been deleted
    account_id: str  # of the operator account that was called
    # None where there was nothing left to send; a template where it was fetched
    outcome: OperatorAccepted | OperatorRejected | OperatorUnavailable | OperatorTemplate | None
    seen_on_ms: int = 0  # when the template had changed last as its request was sent


class TemplateOutcomes:
    """Writes outcomes: status, callback and the completed job in one transaction."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids

    def record(self, connection: Connection, outcomes: Sequence[TemplateOutcome]) -> list[None]:
        """Move templates by their outcomes.

        A rejection becomes REJECTED with the operator's text and a `rejected` callback; a template that
        could not be submitted at all becomes FAILED. An edit that the operator does not accept stays beside
        the version that the operator has. A deleted template stays deleted, whatever the operator responds.
        Source: decision 0021.
        """
        at_ms = self._clock.now_ms()
        recorder = StateChangeRecorder(connection, self._ids, at_ms)
        # First: a job that was completed before, by a commit whose response was lost, is not submitted
        # again.
        completed = complete_jobs(connection, [result.position for result in outcomes])
        for result in outcomes:
            template = template_by_id(connection, result.template_id)
            if template is None or result.outcome is None:
                continue
            if current_operator_account_id(connection, template.business_account_id) != result.account_id:
                # Its request went to the operator before a switch: it is submitted to the new one (decision 0033).
                is_needed = result.kind not in (SubjectKind.TEMPLATE_REFRESH, SubjectKind.TEMPLATE_DELETION)
                if is_needed and result.position in completed and template.status is not TemplateStatus.DELETED:
                    is_new = template.pending_edit is None
                    kind = SubjectKind.TEMPLATE_SUBMISSION if is_new else SubjectKind.TEMPLATE_EDIT
                    enqueue_jobs(connection, [template_job(template, kind, due_ms=at_ms)])
                continue
            if result.kind is SubjectKind.TEMPLATE_EDIT:
                if template.status is TemplateStatus.DELETED or result.position not in completed:
                    continue
                rejection = (
                    result.outcome if isinstance(result.outcome, OperatorRejected | OperatorUnavailable) else None
                )
                if rejection is not None and template.pending_edit is not None:
                    reject_edit(connection, recorder, result.app, template, rejection, at_ms)
                    continue
            match result.outcome:
                case OperatorTemplate() as fetched:
                    is_same = template.operator_template_id in (None, fetched.id)
                    if not is_same or template.status is TemplateStatus.DELETED or result.position not in completed:
                        continue
                    if template.modified_on_ms == result.seen_on_ms:
                        align_template(connection, recorder, template, fetched, at_ms)
                    else:  # an event came meanwhile, which may be newer than what was fetched
                        job = template_job(template, SubjectKind.TEMPLATE_REFRESH, due_ms=at_ms)
                        enqueue_jobs(connection, [job])
                case OperatorAccepted() as sent:
                    _apply_sent(
                        connection, recorder, result, template, sent, at_ms, is_first=result.position in completed
                    )
                case OperatorRejected(text=text, existing_id=existing_id):
                    status = TemplateStatus.REJECTED
                    if existing_id is not None and is_id_of_deleted_template(connection, template, existing_id):
                        text = NAME_STILL_AT_OPERATOR
                    _apply_status(connection, recorder, result, template, status, text, at_ms)
                case OperatorUnavailable(text=text):
                    _apply_status(connection, recorder, result, template, TemplateStatus.FAILED, text, at_ms)
        recorder.write()
        return [None] * len(outcomes)


def _apply_sent(
    connection: Connection,
    recorder: StateChangeRecorder,
    result: TemplateOutcome,
    template: Template,
    sent: OperatorAccepted,
    at_ms: int,
    *,
    is_first: bool,
) -> None:
    """Apply the operator's success: its id, and perhaps another category that it has put the template in.

    A commit whose response was lost comes again: only the first adds to the template's history.
    """
    operator_id = sent.operator_id
    is_submission = result.kind is SubjectKind.TEMPLATE_SUBMISSION
    if is_submission and is_id_of_deleted_template(connection, template, operator_id):
        status = TemplateStatus.REJECTED
        _apply_status(connection, recorder, result, template, status, NAME_STILL_AT_OPERATOR, at_ms)
        return
    if result.kind is SubjectKind.TEMPLATE_EDIT:
        template = accept_edit(connection, template, at_ms)
    if operator_id:
        change_template(connection, template.id, operator_template_id=operator_id)
    if result.kind is not SubjectKind.TEMPLATE_DELETION and is_first:
        record_template_event(connection, template, TemplateEventKind.ACCEPTED, at_ms, operator_id=operator_id)
    if is_submission and sent.category is not None:
        names = (template.business_account_id, operator_id, *name_and_language(template))
        event = CategoryEvent(*names, template.category.value, sent.category, is_done=True)
        apply_category_change(connection, recorder, result.app, template, event, at_ms)
    status = OPERATOR_STATUSES.get(sent.status or "")
    if status is not None and result.kind is not SubjectKind.TEMPLATE_DELETION:
        _apply_status(connection, recorder, result, template, status, None, at_ms)


def _apply_status(
    connection: Connection,
    recorder: StateChangeRecorder,
    result: TemplateOutcome,
    template: Template,
    status: TemplateStatus,
    reason: str | None,
    at_ms: int,
) -> None:
    if result.kind is SubjectKind.TEMPLATE_DELETION:
        _log.warning("the operator did not delete a template", template=template.id, why=reason)
        return
    if result.kind is SubjectKind.TEMPLATE_REFRESH:
        _log.warning("the operator did not return a template", template=template.id, why=reason)
        return
    if template.status is not TemplateStatus.PENDING:  # its review has come before the response, and is newer
        return
    event = make_review_event(template, status.value, reason)
    apply_status_change(connection, recorder, result.app, template, status, event, at_ms)
