"""Synchronises templates with the operator's."""

from collections.abc import Sequence
from typing import Self

from sqlalchemy import Connection

from waypost.api.operation import APP, AppCall, Operations, account_of, call_operator, direct_call_deadline
from waypost.api.requests import Request
from waypost.api.route import Success
from waypost.api.services import Services
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.direct_calls import ListTemplates, OperatorTemplate, TemplateDetail
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.template import Template, TemplateFilter, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_status_change
from waypost.notifications.template_sync import add_found_template, align_templates, make_review_event, present_ids
from waypost.store.accounts.partners import app_by_id
from waypost.store.templates.templates import find_templates, queued_template_ids, templates_by_ids

operation = Operations("facts 3.6")


class SyncCall(AppCall):
    """A call about an app, with an error text of its own for a wrong credential."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call.

        Raises:
            ApiError: as `authorise_app`, with that text.
        """
        try:
            return await super().authorise(services, request)
        except ApiError as error:
            if error.code in (ErrorCode.AUTHENTICATION_FAILED, ErrorCode.NOT_FOR_THIS_APP):
                raise ApiError(ErrorCode.UNAUTHORIZED_ACCESS, error.explanation) from error
            raise


@operation(
    "GET", f"{APP}/template/sync", Success, rate="template_sync", status=202, errors=(ErrorCode.UNAUTHORIZED_ACCESS,)
)
async def sync_templates(call: SyncCall) -> Success:
    """Synchronise contents, status, category, quality and reason of our templates with the operator's.

    Templates that the operator no longer has are deleted here; those that only the operator has become
    templates of the app (decision 0021). Changes cause the same callbacks as the operator's own events.

    Errors in this order: 401, 429, 400 the operator's error, 503 the operator's list is not complete
    within 10 s: then nothing is changed, because a template missing in a partial list may exist.

    Source: facts 3.6: 202, once an hour, 401 `Unauthorized Access`; decision 0026.
    """
    services, app = call.services, call.app
    account_id = account_of(app)
    known = await services.database.read(find_templates, app.partner_id, account_id, TemplateFilter())
    listed = await list_operator_templates(services, app, ListTemplates(account_id, TemplateDetail.CONTENTS))
    business = await services.directory.business_account(account_id)
    namespace = "" if business is None else business.namespace
    now_ms = services.clock.now_ms()
    await services.database.write(_align_with_operator, services.ids, app, namespace, known, listed, now_ms)
    services.directory.invalidate()  # so that every process sends by the contents that the operator has
    return Success()


async def list_operator_templates(services: Services, app: App, request: ListTemplates) -> Sequence[OperatorTemplate]:
    """Return the operator's complete list of templates.

    Raises:
        ApiError: 503, the list is not complete within 10 s.
    """
    async with direct_call_deadline(app, "ListTemplates"):
        return await call_operator(services, app, request)


def _align_with_operator(
    connection: Connection,
    ids: Ids,
    app: App,
    namespace: str,
    known: list[Template],
    listed: Sequence[OperatorTemplate],
    now_ms: int,
) -> None:
    """Apply the operator's list to an app's business account.

    Templates with changes that the operator has not received yet, and those that have changed since the list was
    requested, are left unchanged.
    """
    account_id = app.business_account_id
    recorder = StateChangeRecorder(connection, ids, now_ms)
    pending_ids = queued_template_ids(connection, account_id)
    current = templates_by_ids(connection, {template.id for template in known})
    unchanged = [template for template in known if current.get(template.id) == template]
    pending_ids |= current.keys() - {template.id for template in unchanged}
    others = align_templates(connection, recorder, account_id, listed, pending_ids=pending_ids, now_ms=now_ms)
    for found in others:
        add_found_template(connection, ids, app, namespace, found, now_ms)
    operator_ids = present_ids(listed)
    for template in unchanged:
        is_deleted = template.operator_template_id and template.operator_template_id not in operator_ids
        if is_deleted and template.id not in pending_ids:
            event = make_review_event(template, "DELETED", None)
            owner = app_by_id(connection, template.app_id)
            apply_status_change(connection, recorder, owner, template, TemplateStatus.DELETED, event, now_ms)
    recorder.write()
