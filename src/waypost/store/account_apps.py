"""Which apps a change of a business account concerns."""

from typing import Final

from sqlalchemy import Connection, select

from waypost.domain.app import App
from waypost.domain.event import AccountEvent
from waypost.store.partners import app_by_phone_number_id
from waypost.store.rows import app_of
from waypost.store.tables import apps, business_accounts

OF_ONE_NUMBER: Final = {  # what is about a number, and not about its account. Source: facts 6.6, 6.8
    "phone_number_name_update",
    "phone_number_quality_update",
    "user_preferences",
}


def apps_concerned(connection: Connection, operator_account_id: str, event: AccountEvent) -> list[App]:
    """The app of the number that it names, or else every app of the business account, oldest first.

    What is about one number is nobody's where no app has that number. Only apps of this operator
    account: nobody speaks for another account's apps.
    """
    if event.phone_number_id:
        app = app_by_phone_number_id(connection, operator_account_id, event.phone_number_id)
        return [] if app is None else [app]
    account_ids = [event.business_account_id, event.other_account_id or ""]
    of_account = (
        select(apps)
        .join(business_accounts, business_accounts.c.id == apps.c.business_account_id)
        .where(business_accounts.c.id.in_(account_ids), business_accounts.c.operator_account_id == operator_account_id)
        .order_by(apps.c.id)
    )
    found = [app_of(row) for row in connection.execute(of_account)]
    if event.phone_number is None:
        return found
    named = [app for app in found if app.phone_number == event.phone_number]
    return named if named or event.field in OF_ONE_NUMBER else found
