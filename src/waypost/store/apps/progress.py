"""Progress of apps on their way to the first message: one statement for all of them."""

from typing import Any, Final

from sqlalchemy import Connection, Select, exists, func, select

from waypost.domain.lifecycle import SENDABLE
from waypost.domain.onboarding import AppProgress
from waypost.domain.templates.template import TemplateStatus
from waypost.store.encoding import decode_app
from waypost.store.tables import apps, business_accounts, inbound_messages, messages, subscriptions, templates

MAX_SEARCHED_MESSAGES: Final = 50
"""How many of an app's newest messages are searched for one that was delivered."""
_EXTRA: Final = ("has_template", "has_pending_template", "has_subscription", "has_inbound", "has_delivered")


def list_progress(
    connection: Connection, *, partner_id: int | None = None, operator_account_id: str = "", at_most: int | None = None
) -> list[AppProgress]:
    """Return the progress of all apps, of those of a partner, or of an operator account; newest first."""
    query = _query().order_by(apps.c.created_on_ms.desc(), apps.c.id.desc()).limit(at_most)
    if partner_id is not None:
        query = query.where(apps.c.partner_id == partner_id)
    if operator_account_id:
        of_account = business_accounts.c.operator_account_id == operator_account_id
        query = query.where(apps.c.business_account_id.in_(select(business_accounts.c.id).where(of_account)))
    return [_decode(row) for row in connection.execute(query)]


def progress_of_app(connection: Connection, app_id: str) -> AppProgress | None:
    """Return the progress of an app; None if there is none."""
    row = connection.execute(_query().where(apps.c.id == app_id)).one_or_none()
    return None if row is None else _decode(row)


def _query() -> Select[Any]:
    newest = (
        select(messages.c.id, messages.c.state, messages.c.delivered_on_ms, messages.c.read_on_ms)
        .where(messages.c.app_id == apps.c.id)
        .order_by(messages.c.accepted_on_ms.desc(), messages.c.id.desc())
        .correlate(apps)
    )
    searched = newest.limit(MAX_SEARCHED_MESSAGES).subquery()
    was_delivered = func.coalesce(searched.c.delivered_on_ms, searched.c.read_on_ms).is_not(None)
    of_account = (
        templates.c.business_account_id == apps.c.business_account_id,
        templates.c.partner_id == apps.c.partner_id,
    )
    return select(
        apps,
        exists().where(*of_account, templates.c.status.in_([*SENDABLE])).label("has_template"),
        exists().where(*of_account, templates.c.status == TemplateStatus.PENDING).label("has_pending_template"),
        exists().where(subscriptions.c.app_id == apps.c.id).label("has_subscription"),
        exists().where(inbound_messages.c.app_id == apps.c.id).label("has_inbound"),
        exists(select(searched.c.id).where(was_delivered)).label("has_delivered"),
        newest.with_only_columns(messages.c.id).limit(1).scalar_subquery().label("message_id"),
        newest.with_only_columns(messages.c.state).limit(1).scalar_subquery().label("message_state"),
    )


def _decode(row: Any) -> AppProgress:
    facts = {name: bool(getattr(row, name)) for name in _EXTRA}
    return AppProgress(decode_app(row), **facts, message_id=row.message_id or "", message_state=row.message_state or "")
