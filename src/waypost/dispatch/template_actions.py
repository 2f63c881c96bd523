"""Submits, edits and deletes templates at the operator."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from waypost.admission.operators import OperatorAdmission
from waypost.dispatch.media_copies import MediaCopies
from waypost.dispatch.retries import OutboundRetries
from waypost.dispatch.template_outcomes import TemplateOutcome, TemplateOutcomes
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import CallNotOffered, GetTemplate, ListTemplates, OperatorTemplate, TemplateDetail
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, Outcome, OutcomeUncertain
from waypost.domain.templates.template import Template, TemplateStatus, sample_references
from waypost.notifications.template_sync import is_same_template
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.store.apps.operator_history import NO_OPERATOR_TEMPLATE, template_with_operator
from waypost.store.media.media import KnownMediaCopies
from waypost.store.queue.job_subjects import SubjectKind

_TEXT_CHANGES: Final = {SubjectKind.TEMPLATE_EDIT, SubjectKind.TEMPLATE_REFRESH}
"""Jobs whose outcome may change the text of a template."""
MAX_FETCHES: Final = 5
"""How often the operator is asked for a template that it says it does not have: it may be too new to be found yet."""


class TemplateActions:
    """Runs the jobs that are about templates."""

    def __init__(
        self, context: StageContext, copies: MediaCopies, retries: OutboundRetries, admission: OperatorAdmission
    ) -> None:
        self._database, self._queue, self._directory = context.database, context.queue, context.directory
        self._clock = context.clock
        self._operators = context.operators
        self._copies = copies
        self._outcomes = TemplateOutcomes(context.clock, context.ids)
        self._retries = retries
        self._admission = admission

    async def run_job(self, job: Job, templates: Mapping[str, Template], failure: UploadFailure | None) -> None:
        """Send the template request of a job to the operator, and complete the job or retry it later.

        Args:
            templates: by id, as they were when the job was claimed.
            failure: of the uploads that the job has waited for, where they failed.
        """
        kind = job.subject.kind
        app = await self._directory.app(templates[job.subject.id].app_id)
        template, account = await self._read_with_account(job.subject.id)
        self._admission.set_account(job, account)
        if isinstance(failure, Exception):
            raise failure
        if not self._queue.is_lease_held(job):
            self._queue.abandon(job)
            return
        self._admission.begin_call(job)
        try:
            outcome = failure or await self._send_request(kind, template, account)
        finally:
            self._admission.end_call(job)
        if isinstance(outcome, KnownMediaCopies):
            missing = outcome.missing.values()
            self._copies.upload_samples(account, missing, partial(self._retries.resume_after_uploads, job))
            self._queue.park(job)
            return
        if isinstance(outcome, OutcomeUncertain):
            outcome = OperatorUnavailable(outcome.text)
        is_fetch = kind is SubjectKind.TEMPLATE_REFRESH
        if isinstance(outcome, OperatorRejected) and is_fetch and job.attempt + 1 < MAX_FETCHES:
            outcome = OperatorUnavailable(outcome.text, outcome.code)
        if isinstance(outcome, OperatorUnavailable):
            self._admission.pause_peers(job, account, outcome)
            edit = template.pending_edit
            changed_ms = template.modified_on_ms if edit is None else edit.at_ms
            if await self._retries.retry(job, self._clock.now_ms() if is_fetch else changed_ms, outcome):
                return
        item = TemplateOutcome(job.position, kind, template.id, app, account.id, outcome, template.modified_on_ms)
        await self._queue.complete(job, self._outcomes.record, item)
        if kind in _TEXT_CHANGES:
            self._directory.invalidate()  # so that every process sends it by the version that the operator has

    async def _send_request(
        self, kind: SubjectKind, template: Template, account: OperatorAccount
    ) -> Outcome | OperatorTemplate | KnownMediaCopies | None:
        """Send a template as it is now, or fetch the operator's; return None where there is nothing to do any more.

        Where it shows media that the operator does not have yet, nothing is sent and these are returned
        instead.

        The reason for which a job was enqueued may be out of date: a template that has been deleted meanwhile
        is neither submitted nor edited, and its deletion has a job of its own behind this one. A template that
        was deleted before a switch of the operator is not deleted at the new one.
        """
        if kind is SubjectKind.TEMPLATE_DELETION:
            if template.operator_template_id == NO_OPERATOR_TEMPLATE:
                return None
            return await self._operators.adapter(account).delete_template(account, template)
        if template.status is TemplateStatus.DELETED:
            return None
        if kind is SubjectKind.TEMPLATE_REFRESH:
            return await self._fetch(template, account)
        if kind is SubjectKind.TEMPLATE_EDIT:
            template = template.edited_version
        samples = sample_references(template.draft)
        media = await self._copies.find_samples(account, template.partner_id, samples)
        if media.missing:
            return media
        if kind is SubjectKind.TEMPLATE_EDIT:
            return await self._operators.adapter(account).edit_template(account, template, media.copies)
        return await self._operators.adapter(account).submit_template(account, template, media.copies)

    async def _fetch(self, template: Template, account: OperatorAccount) -> Outcome | OperatorTemplate | None:
        """Return a template as the operator has it; one whose id is not known, by its name and its contents."""
        adapter = self._operators.adapter(account)
        if template.operator_template_id:
            response = await adapter.call(account, GetTemplate(template.operator_template_id))
        else:
            name = template.draft.element_name
            response = await adapter.call(
                account, ListTemplates(template.business_account_id, TemplateDetail.CONTENTS, name)
            )
        if isinstance(response, CallNotOffered):
            return None
        if isinstance(response, Sequence):
            return next((listed for listed in response if is_same_template(template, listed)), None)
        return response

    async def _read_with_account(self, template_id: str) -> tuple[Template, OperatorAccount]:
        """Return a template as it is now, with its business account's operator account, both of one moment.

        It is read by the business account, which outlives the app that created the template.
        """
        template_and_account = await self._database.read(template_with_operator, template_id, self._directory.unseal)
        if template_and_account is None:
            raise LookupError(f"template {template_id} has no operator account")
        return template_and_account
