"""Linking tokens of partners, and apps of customers that wait for a partner."""

from dataclasses import replace
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from waypost.domain.app import App
from waypost.domain.app_links import AppLink, LinkAction, LinkStatus, PartnerLinkingToken
from waypost.store.accounts.partners import add_app
from waypost.store.sql import RowReader, read_all, read_one, row_values, select_for_update, upsert
from waypost.store.tables import app_links, linking_tokens

_read_token: Final = RowReader(PartnerLinkingToken)
_read_link: Final = RowReader(AppLink)


class LinkIsDecided(Exception):
    """The request was decided, or has expired; the argument is its status."""


class LinkNameInUse(Exception):
    """The partner has an app of this name."""


def linking_token(connection: Connection, partner_id: int) -> PartnerLinkingToken | None:
    """Return a partner's last linking token, also if it has expired, or None."""
    return read_one(connection, select(linking_tokens).where(linking_tokens.c.partner_id == partner_id), _read_token)


def get_or_replace_linking_token(
    connection: Connection, token: PartnerLinkingToken, *, replaces: bool
) -> PartnerLinkingToken:
    """Return the partner's current linking token; store this one if there is none, it has expired, or is replaced."""
    known = read_one(
        connection,
        select_for_update(connection, select(linking_tokens).where(linking_tokens.c.partner_id == token.partner_id)),
        _read_token,
    )
    if known is not None and known.expires_on_ms > token.issued_on_ms and not replaces:
        return known
    values = row_values(linking_tokens, token)
    insert = upsert(linking_tokens)
    others = {name: insert.excluded[name] for name in values if name != "partner_id"}
    connection.execute(insert.on_conflict_do_update(index_elements=["partner_id"], set_=others), values)
    return token


def add_app_link(connection: Connection, link: AppLink) -> AppLink:
    """Store an app of a customer, and return it."""
    connection.execute(app_links.insert(), row_values(app_links, link))
    return link


def app_link_of(connection: Connection, app_id: str) -> AppLink | None:
    """Return the link of a customer's app, or None."""
    return read_one(connection, select(app_links).where(app_links.c.app_id == app_id), _read_link)


def list_app_links(
    connection: Connection,
    partner_id: int | None,
    status: LinkStatus | None,
    now_ms: int,
    *,
    offset: int = 0,
    at_most: int = 1000,
) -> tuple[list[AppLink], int]:
    """Return a page of the links, the newest first, and the count of all.

    Args:
        partner_id: None: of every partner, and of none.
        status: None: any.
    """
    conditions = [] if partner_id is None else [app_links.c.partner_id == partner_id]
    if status is not None:
        conditions.append(_has_status(status, now_ms))
    chosen = select(app_links).where(*conditions)
    ordered = chosen.order_by(app_links.c.requested_on_ms.desc(), app_links.c.id.desc())
    links = read_all(connection, ordered.offset(offset).limit(at_most), _read_link)
    return links, connection.execute(select(func.count()).select_from(chosen.subquery())).scalar_one()


def decide_link(
    connection: Connection,
    link_id: str,
    partner_id: int | None,
    action: LinkAction,
    *,
    app: App,
    token_hash: str,
    decided_by: str,
    now_ms: int,
) -> AppLink | None:
    """Approve a request, which gives the partner the app, or reject it; return it, or None if there is none.

    Args:
        partner_id: whose request it must be; None: anyone's.
        app: as the partner gets it.
        token_hash: of the app's token.

    Raises:
        LinkIsDecided: it was decided before, or has expired.
        LinkNameInUse: the partner has an app of this name; nothing has changed.
    """
    query = select_for_update(connection, select(app_links).where(app_links.c.id == link_id))
    link = read_one(connection, query, _read_link)
    if link is None or (partner_id is not None and link.partner_id not in (None, partner_id)):
        return None
    if link.status_at(now_ms) is not LinkStatus.PENDING:
        raise LinkIsDecided(link.status_at(now_ms))
    if action is LinkAction.APPROVE and not add_app(connection, app, token_hash):
        raise LinkNameInUse(app.name)
    decided = replace(
        link, partner_id=app.partner_id, status=action.status, decided_on_ms=now_ms, decided_by=decided_by
    )
    connection.execute(update(app_links).where(app_links.c.id == link_id).values(row_values(app_links, decided)))
    return decided


def app_link_by_id(connection: Connection, link_id: str) -> AppLink | None:
    """Return one link, or None."""
    return read_one(connection, select(app_links).where(app_links.c.id == link_id), _read_link)


def _has_status(status: LinkStatus, now_ms: int) -> ColumnElement[bool]:
    columns, pending = app_links.c, app_links.c.status == LinkStatus.PENDING
    if status is LinkStatus.EXPIRED:
        return and_(pending, columns.expires_on_ms <= now_ms)
    return and_(pending, columns.expires_on_ms > now_ms) if status is LinkStatus.PENDING else columns.status == status
