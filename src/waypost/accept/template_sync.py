"""Templates brought into line with the operator's."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection

from waypost.accept.auth import admitted_app
from waypost.accept.direct import account_of, ask, unavailable
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.accept.time_limit import in_time
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.outcome import MOST_ID_CHARS
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Template, TemplateStatus
from waypost.domain.template_wish import TemplateWish
from waypost.journal.telling import Telling
from waypost.journal.template_alignment import LISTED_FIELDS, align_templates, review_of
from waypost.journal.template_news import template_moves
from waypost.operators.contract import Ask
from waypost.store.partners import app_by_id
from waypost.store.templates import find_templates, templates_on_their_way

_MOST_PAGES: Final = 60  # of a hundred: as many as an account may have. Source: operator's facts 2.3


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
    nodes = await whole_list(services, app, account_id, {"fields": LISTED_FIELDS})
    now_ms = services.clock.now_ms()
    await services.database.write(_bring_into_line, services.ids, account_id, known, nodes, now_ms)
    return Answer({"status": "success"}, status=202)


async def _admitted(services: Services, request: Request) -> App:
    """The app in the path; this call has a text of its own for a credential that does not open it."""
    try:
        return await admitted_app(services, request)
    except Refused as refused:
        if refused.reason in (Reason.AUTHENTICATION_FAILED, Reason.NOT_FOR_THIS_APP):
            raise Refused(Reason.UNAUTHORIZED_ACCESS, refused.explanation) from refused
        raise


async def whole_list(services: Services, app: App, account_id: str, wish: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every template the operator has in an account, with texts as id, name, language and status.

    Args:
        services: of the door.
        app: for which it is asked.
        account_id: of the business account.
        wish: `fields`, which must name those three; perhaps `name`.

    Raises:
        Refused: 503, a page is no list of templates, or the last one does not come within 10 s.
    """
    async with in_time(app, Ask.TEMPLATES.value):
        return await _every_page(services, app, account_id, wish)


async def _every_page(services: Services, app: App, account_id: str, wish: Mapping[str, str]) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = []
    query = {**wish, "limit": "100"}
    for _ in range(_MOST_PAGES):
        told = await ask(services, app, Ask.TEMPLATES, account_id, query=query)
        for node in told["data"]:
            match node:
                case {"id": str(id), "name": str(), "language": str(), "status": str()} if len(id) <= MOST_ID_CHARS:
                    nodes.append(node)
                case _:
                    raise unavailable(app, Ask.TEMPLATES.value, "its list has what is no template")
        match told.get("paging"):
            case {"next": str(), "cursors": {"after": str(after)}}:
                query = query | {"after": after}
            case {"next": str()}:
                break
            case _:
                return nodes
    raise unavailable(app, Ask.TEMPLATES.value, "its list has no end")


def _bring_into_line(
    connection: Connection,
    ids: Ids,
    business_account_id: str,
    known: list[Template],
    nodes: list[dict[str, Any]],
    now_ms: int,
) -> None:
    """Apply what the operator lists; templates of which it has yet to hear something are left alone."""
    telling = Telling(connection, ids, now_ms)
    waiting = templates_on_their_way(connection, business_account_id)
    there = align_templates(connection, telling, business_account_id, nodes, waiting=waiting, now_ms=now_ms)
    for template in known:
        gone = template.operator_template_id and template.operator_template_id not in there
        if gone and template.id not in waiting:
            event = review_of(template, "DELETED", None)
            app = app_by_id(connection, template.app_id)
            template_moves(connection, telling, app, template, TemplateStatus.DELETED, event, now_ms)
    telling.write()


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects of a list of the operator's; what is no object is left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
