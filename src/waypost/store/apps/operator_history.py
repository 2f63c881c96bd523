"""The operator account of an app, its earlier ones, and the switch from one to another.

A business account and its apps have other ids at each operator. The current rows hold the ids of the
current operator account; the *operator history* holds those of accounts that they have left, so that
late events find their app, and so that switching back needs no id (decision 0033).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, case, func, literal, select, update

from waypost.domain.app import App, AppRoute, BusinessAccount, OperatorAccount
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.accounts.partners import business_account_by_id, operator_account_by_id
from waypost.store.encoding import decode_app, decode_template
from waypost.store.sql import read_all, read_one, upsert
from waypost.store.tables import app_operator_history, apps, business_accounts, template_operator_history, templates

NO_OPERATOR_TEMPLATE: Final = ""
"""Stands for a template's id at the operator: it is deleted, and this operator never had it."""
_APP_WITH_OPERATOR: Final = (
    select(apps, business_accounts.c.operator_account_id)
    .join(business_accounts, business_accounts.c.id == apps.c.business_account_id)
    .where(apps.c.id == bindparam("app_id"))
)


def find_app_route(connection: Connection, app_id: str, unseal: Callable[[bytes, str], str]) -> AppRoute | None:
    """Return an app with its operator account; None if either does not exist."""
    row = connection.execute(_APP_WITH_OPERATOR, {"app_id": app_id}).one_or_none()
    if row is None:
        return None
    account = operator_account_by_id(connection, row.operator_account_id, unseal)
    return None if account is None else AppRoute(decode_app(row), account)


def template_with_operator(
    connection: Connection, template_id: str, unseal: Callable[[bytes, str], str]
) -> tuple[Template, OperatorAccount] | None:
    """Return a template with the operator account of its business account; None if either does not exist."""
    row = connection.execute(select(templates).where(templates.c.id == template_id)).one_or_none()
    if row is None:
        return None
    operator_account_id = current_operator_account_id(connection, row.business_account_id)
    account = operator_account_by_id(connection, operator_account_id or "", unseal)
    return None if account is None else (decode_template(row), account)


def current_operator_account_id(connection: Connection, business_account_id: str) -> str | None:
    """Return the id of the operator account of a business account."""
    return connection.execute(
        select(business_accounts.c.operator_account_id).where(business_accounts.c.id == business_account_id)
    ).scalar_one_or_none()


def may_have_sent_through(connection: Connection, app_id: str, operator_account_id: str, accepted_on_ms: int) -> bool:
    """Return True if what an app accepted then may have been sent through this former operator account."""
    query = select(app_operator_history.c.app_id).where(
        app_operator_history.c.app_id == app_id,
        app_operator_history.c.operator_account_id == operator_account_id,
        app_operator_history.c.left_ms >= accepted_on_ms,
    )
    return connection.execute(query).one_or_none() is not None


def find_former_app(connection: Connection, operator_account_id: str, phone_number_id: str) -> tuple[App, int] | None:
    """Return the app with this number at a former operator account, and when it left that account."""
    latest = (
        select(apps, app_operator_history.c.left_ms)
        .join(app_operator_history, app_operator_history.c.app_id == apps.c.id)
        .where(
            app_operator_history.c.operator_account_id == operator_account_id,
            app_operator_history.c.phone_number_id == phone_number_id,
        )
        .order_by(app_operator_history.c.left_ms.desc())
        .limit(1)
    )
    return read_one(connection, latest, lambda row: (decode_app(row), row.left_ms))


@dataclass(frozen=True, slots=True)
class AppOperatorIds:
    """An operator's ids of an app: of its business account and its number, and the number's digits."""

    business_account_id: str
    phone_number_id: str
    phone_number: str


def former_operator_ids(
    connection: Connection, app_ids: Sequence[str], operator_account_id: str
) -> dict[str, AppOperatorIds]:
    """Return by app its ids at a former operator account."""
    rows = connection.execute(
        select(app_operator_history).where(
            app_operator_history.c.app_id.in_(app_ids),
            app_operator_history.c.operator_account_id == operator_account_id,
        )
    )
    return {row.app_id: AppOperatorIds(row.business_account_id, row.phone_number_id, row.phone_number) for row in rows}


def business_account_with_apps(
    connection: Connection, business_account_id: str
) -> tuple[BusinessAccount, list[App]] | None:
    """Return a business account and all its apps, oldest first; None if it does not exist."""
    account = business_account_by_id(connection, business_account_id)
    of_account = select(apps).where(apps.c.business_account_id == business_account_id)
    oldest = of_account.order_by(apps.c.created_on_ms, apps.c.id)
    return None if account is None else (account, read_all(connection, oldest, decode_app))


class SwitchConflict(Exception):
    """The rows to be switched have changed meanwhile, or an id is in use; the text says which."""


@dataclass(frozen=True, slots=True)
class OperatorAccountSwitch:
    """A switch of a business account to another operator account, with its apps and templates."""

    before: BusinessAccount  # as it was when the switch was prepared
    after: BusinessAccount  # as it will be; its id is the one at the new operator account
    ids_by_app: Mapping[str, AppOperatorIds]  # the ids of each of its apps there
    now_ms: int
    left_ms: int  # what was accepted until then may have been sent through the former account


def switch_operator(connection: Connection, switch: OperatorAccountSwitch) -> None:
    """Write the new ids and store the old ones, all in the caller's transaction.

    Raises:
        SwitchConflict: rows have changed meanwhile, or an id or a number is in use.
    """
    current = business_account_with_apps(connection, switch.before.id)
    if current is None or current[0] != switch.before or {app.id for app in current[1]} != set(switch.ids_by_app):
        raise SwitchConflict("The business account has just changed; try again.")
    _check_free(connection, switch)
    for app in current[1]:
        record_operator_history(connection, app, switch.left_ms)
    for app in current[1]:  # first clear all numbers, so that two apps may exchange theirs
        connection.execute(update(apps).where(apps.c.id == app.id).values(phone_number=None))
    for app in current[1]:
        ids = switch.ids_by_app[app.id]
        connection.execute(
            update(apps)
            .where(apps.c.id == app.id)
            .values(
                business_account_id=switch.after.id,
                phone_number_id=ids.phone_number_id,
                phone_number=ids.phone_number or None,
                modified_on_ms=switch.now_ms,
            )
        )
    connection.execute(
        update(business_accounts)
        .where(business_accounts.c.id == switch.before.id)
        .values(
            id=switch.after.id, namespace=switch.after.namespace, operator_account_id=switch.after.operator_account_id
        )
    )
    _switch_templates(connection, switch)


def record_operator_history(connection: Connection, app: App, left_ms: int) -> None:
    """Store the current operator account's ids of an app, which is about to leave it."""
    operator_account_id = current_operator_account_id(connection, app.business_account_id)
    if operator_account_id is None:
        return
    columns = {
        "partner_id": app.partner_id,
        "business_account_id": app.business_account_id,
        "phone_number_id": app.phone_number_id,
        "phone_number": app.phone_number,
        "left_ms": left_ms,
    }
    statement = upsert(app_operator_history).values(app_id=app.id, operator_account_id=operator_account_id, **columns)
    connection.execute(statement.on_conflict_do_update(index_elements=["app_id", "operator_account_id"], set_=columns))


def _check_free(connection: Connection, switch: OperatorAccountSwitch) -> None:
    after_id = switch.after.id
    existing = select(business_accounts.c.id).where(business_accounts.c.id == after_id)
    if after_id != switch.before.id and connection.execute(existing).one_or_none() is not None:
        raise SwitchConflict(f"There is a business account {after_id} already; connect the app to it instead.")
    phone_numbers = [names.phone_number for names in switch.ids_by_app.values() if names.phone_number]
    numbers = set(phone_numbers)
    if len(numbers) < len(phone_numbers):
        raise SwitchConflict(
            "phone_number_id is that of another app of the same business account, which is switched too; "
            "a number is one app's."
        )
    in_use = select(func.count()).where(apps.c.phone_number.in_(numbers), apps.c.id.not_in(list(switch.ids_by_app)))
    if connection.execute(in_use).scalar_one():
        raise SwitchConflict("phone_number is taken by another app.")


def _switch_templates(connection: Connection, switch: OperatorAccountSwitch) -> None:
    """Give each template the id that it had at the new operator account, or none."""
    of_account = templates.c.business_account_id == switch.before.id
    current_ids = select(
        templates.c.id, literal(switch.before.operator_account_id), templates.c.operator_template_id
    ).where(
        of_account,
        templates.c.operator_template_id.is_not(None),
        templates.c.operator_template_id != NO_OPERATOR_TEMPLATE,
    )
    record_history = upsert(template_operator_history).from_select(
        ["template_id", "operator_account_id", "operator_template_id"], current_ids
    )
    connection.execute(
        record_history.on_conflict_do_update(
            index_elements=["template_id", "operator_account_id"],
            set_={"operator_template_id": record_history.excluded.operator_template_id},
        )
    )
    former_id = (
        select(template_operator_history.c.operator_template_id)
        .where(
            template_operator_history.c.template_id == templates.c.id,
            template_operator_history.c.operator_account_id == switch.after.operator_account_id,
        )
        .scalar_subquery()
    )
    is_deleted = templates.c.status == TemplateStatus.DELETED.value
    connection.execute(
        update(templates)
        .where(of_account)
        .values(
            business_account_id=switch.after.id,
            namespace=switch.after.namespace,
            operator_template_id=func.coalesce(former_id, case((is_deleted, NO_OPERATOR_TEMPLATE), else_=None)),
            decided_on_s=0,  # that time is of another operator's clock
        )
    )
