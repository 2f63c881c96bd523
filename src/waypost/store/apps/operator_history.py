"""Which operator account carries an app, which ones have, and the switch from one to another.

A business account and its apps have other ids at each operator. The rows of today hold the ids of
the operator account that carries them now; a *stay* keeps those of one that they have left, so that
its late news finds its app, and so that going back needs no id (decision 0033).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, case, func, literal, select, update

from waypost.domain.app import App, BusinessAccount, Line, OperatorAccount
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.accounts.partners import operator_account_by_id
from waypost.store.encoding import app_of, business_account_of, template_of
from waypost.store.sql import insert_or
from waypost.store.tables import app_stays, apps, business_accounts, template_stays, templates

NOTHING_THERE: Final = ""
"""As a template's id at the operator: it has been deleted, and this operator never had it."""


def line_of(connection: Connection, app_id: str, unseal: Callable[[bytes, str], str]) -> Line | None:
    """An app with the operator account that carries it; None where either is not there."""
    row = connection.execute(
        select(apps, business_accounts.c.operator_account_id)
        .join(business_accounts, business_accounts.c.id == apps.c.business_account_id)
        .where(apps.c.id == app_id)
    ).one_or_none()
    if row is None:
        return None
    account = operator_account_by_id(connection, row.operator_account_id, unseal)
    return None if account is None else Line(app_of(row), account)


def template_with_carrier(
    connection: Connection, template_id: str, unseal: Callable[[bytes, str], str]
) -> tuple[Template, OperatorAccount] | None:
    """A template with the operator account of its business account; None where either is not there."""
    row = connection.execute(select(templates).where(templates.c.id == template_id)).one_or_none()
    if row is None:
        return None
    carrier = carrier_of(connection, row.business_account_id)
    account = operator_account_by_id(connection, carrier or "", unseal)
    return None if account is None else (template_of(row), account)


def carrier_of(connection: Connection, business_account_id: str) -> str | None:
    """The id of the operator account of a business account."""
    return connection.execute(
        select(business_accounts.c.operator_account_id).where(business_accounts.c.id == business_account_id)
    ).scalar_one_or_none()


def has_carried(connection: Connection, app_id: str, operator_account_id: str, accepted_on_ms: int) -> bool:
    """Whether what an app accepted then may have gone to this operator account, which it has left."""
    stay = select(app_stays.c.app_id).where(
        app_stays.c.app_id == app_id,
        app_stays.c.operator_account_id == operator_account_id,
        app_stays.c.left_ms >= accepted_on_ms,
    )
    return connection.execute(stay).one_or_none() is not None


def app_that_left(connection: Connection, operator_account_id: str, phone_number_id: str) -> tuple[App, int] | None:
    """The app that this operator account knew by this number, and until when it carried it."""
    row = connection.execute(
        select(apps, app_stays.c.left_ms)
        .join(app_stays, app_stays.c.app_id == apps.c.id)
        .where(app_stays.c.operator_account_id == operator_account_id, app_stays.c.phone_number_id == phone_number_id)
        .order_by(app_stays.c.left_ms.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else (app_of(row), row.left_ms)


@dataclass(frozen=True, slots=True)
class Names:
    """What an operator calls an app: its business account, and its number, by id and by digits."""

    business_account_id: str
    phone_number_id: str
    phone_number: str


def names_at(connection: Connection, app_ids: Sequence[str], operator_account_id: str) -> dict[str, Names]:
    """By app, what it was called at an operator account that it has left."""
    rows = connection.execute(
        select(app_stays).where(app_stays.c.app_id.in_(app_ids), app_stays.c.operator_account_id == operator_account_id)
    )
    return {row.app_id: Names(row.business_account_id, row.phone_number_id, row.phone_number) for row in rows}


def business_account_with_apps(
    connection: Connection, business_account_id: str
) -> tuple[BusinessAccount, list[App]] | None:
    """A business account and every app that it has, oldest first; None where it is not there."""
    row = connection.execute(
        select(business_accounts).where(business_accounts.c.id == business_account_id)
    ).one_or_none()
    if row is None:
        return None
    of_account = select(apps).where(apps.c.business_account_id == business_account_id)
    found = connection.execute(of_account.order_by(apps.c.created_on_ms, apps.c.id))
    return business_account_of(row), [app_of(one) for one in found]


class Unswitchable(Exception):
    """What is to be switched has changed meanwhile, or a name is another's; the text says which."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A business account goes to another operator account, with its apps and templates.

    Attributes:
        before: as it was when the switch was prepared.
        after: as it will be; its id is the one at the new operator account.
        names: what each of its apps is called there.
        left_ms: what was accepted until then may have gone to the account that is left.
    """

    before: BusinessAccount
    after: BusinessAccount
    names: Mapping[str, Names]
    now_ms: int
    left_ms: int


def switch_operator(connection: Connection, switch: Switch) -> None:
    """Write the new ids and keep the old ones, all in the caller's transaction.

    Raises:
        Unswitchable: something has changed meanwhile, or an id or a number is another's.
    """
    found = business_account_with_apps(connection, switch.before.id)
    if found is None or found[0] != switch.before or {app.id for app in found[1]} != set(switch.names):
        raise Unswitchable("The business account has just changed; try again.")
    _check_free(connection, switch)
    for app in found[1]:
        keep_stay(connection, app, switch.left_ms)
    for app in found[1]:  # first nobody has a number, so that two may exchange theirs
        connection.execute(update(apps).where(apps.c.id == app.id).values(phone_number=None))
    for app in found[1]:
        names = switch.names[app.id]
        connection.execute(
            update(apps)
            .where(apps.c.id == app.id)
            .values(
                business_account_id=switch.after.id,
                phone_number_id=names.phone_number_id,
                phone_number=names.phone_number or None,
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


def keep_stay(connection: Connection, app: App, left_ms: int) -> None:
    """Keep what the operator account of today calls an app, which is about to leave it."""
    carrier = carrier_of(connection, app.business_account_id)
    if carrier is None:
        return
    columns = {
        "partner_id": app.partner_id,
        "business_account_id": app.business_account_id,
        "phone_number_id": app.phone_number_id,
        "phone_number": app.phone_number,
        "left_ms": left_ms,
    }
    statement = insert_or(app_stays).values(app_id=app.id, operator_account_id=carrier, **columns)
    connection.execute(statement.on_conflict_do_update(index_elements=["app_id", "operator_account_id"], set_=columns))


def _check_free(connection: Connection, switch: Switch) -> None:
    after_id = switch.after.id
    is_there = select(business_accounts.c.id).where(business_accounts.c.id == after_id)
    if after_id != switch.before.id and connection.execute(is_there).one_or_none() is not None:
        raise Unswitchable(f"There is a business account {after_id} already; connect the app to it instead.")
    given = [names.phone_number for names in switch.names.values() if names.phone_number]
    numbers = set(given)
    if len(numbers) < len(given):
        raise Unswitchable(
            "phone_number_id is that of another app of the same business account, which goes along; "
            "a number is one app's."
        )
    held = select(func.count()).where(apps.c.phone_number.in_(numbers), apps.c.id.not_in(list(switch.names)))
    if connection.execute(held).scalar_one():
        raise Unswitchable("phone_number is taken by another app.")


def _switch_templates(connection: Connection, switch: Switch) -> None:
    """Each template gets the id that it had at the new operator account, or none yet."""
    of_account = templates.c.business_account_id == switch.before.id
    known = select(templates.c.id, literal(switch.before.operator_account_id), templates.c.operator_template_id).where(
        of_account, templates.c.operator_template_id.is_not(None), templates.c.operator_template_id != NOTHING_THERE
    )
    keep = insert_or(template_stays).from_select(["template_id", "operator_account_id", "operator_template_id"], known)
    connection.execute(
        keep.on_conflict_do_update(
            index_elements=["template_id", "operator_account_id"],
            set_={"operator_template_id": keep.excluded.operator_template_id},
        )
    )
    there = (
        select(template_stays.c.operator_template_id)
        .where(
            template_stays.c.template_id == templates.c.id,
            template_stays.c.operator_account_id == switch.after.operator_account_id,
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
            operator_template_id=func.coalesce(there, case((is_deleted, NOTHING_THERE), else_=None)),
            decided_on_s=0,  # by another operator's clock
        )
    )
