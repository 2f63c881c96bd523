"""The endpoint that synchronises templates with the operator's."""

from collections.abc import Sequence

from sqlalchemy import Connection

from waypost.api.auth.authorisation import admitted_app
from waypost.api.direct_calls import account_of, ask, in_time
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.direct_calls import ListTemplates, OperatorTemplate, TemplateDetail
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.filter import TemplateWish
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_status_change
from waypost.notifications.template_sync import align_templates, review_of
from waypost.store.accounts.partners import app_by_id
from waypost.store.templates.templates import find_templates, templates_on_their_way


async def sync_templates(services: Services, request: Request) -> Answer:
    """Synchronise status, category, quality and reason of our templates with the operator's.

    Templates that the operator no longer has are deleted here; those that only the operator has are
    ignored (decision 0021). Changes cause the same callbacks as the operator's own events.

    Errors in this order: 401, 429, 400 the operator's error, 503 the operator's list is not complete
    within 10 s: then nothing is changed, because a template missing in a partial list may exist.

    Source: facts 3.6: 202, once an hour, 401 `Unauthorized Access`; decision 0026.
    """
    app = await _admitted(services, request)
    account_id = account_of(app)
    known = await services.database.read(find_templates, app.partner_id, account_id, TemplateWish())
    listed = await whole_list(services, app, ListTemplates(account_id, TemplateDetail.REVIEW))
    now_ms = services.clock.now_ms()
    await services.database.write(_bring_into_line, services.ids, account_id, known, listed, now_ms)
    return Answer({"status": "success"}, status=202)


async def _admitted(services: Services, request: Request) -> App:
    """Return the app in the path; this call has its own error text for a wrong credential."""
    try:
        return await admitted_app(services, request)
    except ApiError as error:
        if error.code in (ErrorCode.AUTHENTICATION_FAILED, ErrorCode.NOT_FOR_THIS_APP):
            raise ApiError(ErrorCode.UNAUTHORIZED_ACCESS, error.explanation) from error
        raise


async def whole_list(services: Services, app: App, request: ListTemplates) -> Sequence[OperatorTemplate]:
    """Return the operator's complete list of templates.

    Raises:
        ApiError: 503, the list is not complete within 10 s.
    """
    async with in_time(app, "ListTemplates"):
        return await ask(services, app, request)


def _bring_into_line(
    connection: Connection,
    ids: Ids,
    business_account_id: str,
    known: list[Template],
    listed: Sequence[OperatorTemplate],
    now_ms: int,
) -> None:
    """Apply the operator's list; templates with changes that it has not received yet are left unchanged."""
    recorder = StateChangeRecorder(connection, ids, now_ms)
    pending_ids = templates_on_their_way(connection, business_account_id)
    operator_ids = align_templates(
        connection, recorder, business_account_id, listed, waiting=pending_ids, now_ms=now_ms
    )
    for template in known:
        is_deleted = template.operator_template_id and template.operator_template_id not in operator_ids
        if is_deleted and template.id not in pending_ids:
            event = review_of(template, "DELETED", None)
            app = app_by_id(connection, template.app_id)
            apply_status_change(connection, recorder, app, template, TemplateStatus.DELETED, event, now_ms)
    recorder.write()
