"""Templates brought into line with the operator's."""

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
    """Bring status, category, quality and reason of our templates into line with the operator's.

    What the operator no longer has is deleted here; what it has and we do not is left alone
    (decision 0021). What differs is called back, as the operator's own news is.

    Refuses in this order: 401, 429, 400 in the operator's words, 503 the operator's list did not come
    whole within 10 s: then nothing is changed, because what is not on half a list may be there.

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
    """The app in the path; this call has a text of its own for a credential that does not open it."""
    try:
        return await admitted_app(services, request)
    except ApiError as refused:
        if refused.code in (ErrorCode.AUTHENTICATION_FAILED, ErrorCode.NOT_FOR_THIS_APP):
            raise ApiError(ErrorCode.UNAUTHORIZED_ACCESS, refused.explanation) from refused
        raise


async def whole_list(services: Services, app: App, request: ListTemplates) -> Sequence[OperatorTemplate]:
    """Return the templates that the operator lists.

    Raises:
        Refused: 503, the list is not whole, or does not come within 10 s.
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
    """Apply what the operator lists; templates of which it has yet to hear something are left alone."""
    telling = StateChangeRecorder(connection, ids, now_ms)
    waiting = templates_on_their_way(connection, business_account_id)
    there = align_templates(connection, telling, business_account_id, listed, waiting=waiting, now_ms=now_ms)
    for template in known:
        gone = template.operator_template_id and template.operator_template_id not in there
        if gone and template.id not in waiting:
            event = review_of(template, "DELETED", None)
            app = app_by_id(connection, template.app_id)
            apply_status_change(connection, telling, app, template, TemplateStatus.DELETED, event, now_ms)
    telling.write()
