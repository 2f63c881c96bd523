"""Stores a partner with an app, as the admin API stores them."""

from dataclasses import replace

from tests.support.builders import ACCOUNT, APP, PARTNER
from waypost.admin.provisioning import AdminContext
from waypost.base.encryption import hash_secret
from waypost.domain.app import App, BusinessAccount
from waypost.domain.partner import Partner
from waypost.store.accounts.partners import add_app, add_business_account, add_partner


async def store_partner(
    context: AdminContext, partner: Partner = PARTNER, account: BusinessAccount = ACCOUNT, app: App = APP
) -> str:
    """Store a partner without a valid password, its business account and its app; return the app's token."""
    now_ms, write = context.clock.now_ms(), context.database.write
    token = context.secret_box.app_token(app.id, app.token_serial)
    await write(add_partner, partner, "no password", now_ms)
    await write(add_business_account, account)
    await write(add_app, replace(app, created_on_ms=now_ms, modified_on_ms=now_ms), hash_secret(token))
    return token
