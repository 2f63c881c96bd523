"""What an administrator can do: plain functions of a store, used by the door and by the command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.seals import Seals, hash_of
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.partner import Partner
from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.operators.contract import Operators
from waypost.store import credentials as stored_credentials
from waypost.store import partners as stored
from waypost.store.apps import Taken, change_app
from waypost.store.console_sessions import drop_sessions_of
from waypost.store.credentials import CredentialKind, PartnerCredential, credentials_of
from waypost.store.database import Database
from waypost.store.directory import KEPT_MS, Directory
from waypost.store.stays import keep_stay

MOST_PASSWORD: Final = 1024

_ACCOUNT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Office:
    """What an administrator works with.

    Attributes:
        public_url: where the operator reaches the webhook, without a slash at its end.
        per_second: throughput of a source that has none of its own.
        data: the folder of the store, the instance key and the media.
        show_text: whether the text of messages is shown without a reveal.
    """

    database: Database
    directory: Directory
    seals: Seals
    ids: Ids
    clock: Clock
    operators: Operators
    public_url: str
    per_second: int
    data: Path
    show_text: bool = False


async def add_partner(office: Office, partner: Partner, password_hash: str) -> int:
    """Keep a partner and give its id.

    Raises:
        Refused: the e-mail address is taken or is none.
    """
    if partner.email.count("@") != 1 or " " in partner.email:
        raise Refused(Reason.FIELD_BROKEN, "email must be an e-mail address.")
    partner_id = await office.database.write(stored.add_partner, partner, password_hash, office.clock.now_ms())
    if partner_id is None:
        raise Refused(Reason.ALREADY_EXISTS, "email is taken by another partner.")
    return partner_id


def check_password(password: str) -> None:
    """Return when a password may be one of the portal's.

    Raises:
        Refused: too short or too long, or without one of the four kinds of characters.

    Source: facts 1.3.
    """
    kinds = (str.isupper, str.islower, str.isdigit, _is_symbol)
    if not 8 <= len(password) <= MOST_PASSWORD or not all(any(kind(char) for char in password) for kind in kinds):
        raise Refused(
            Reason.FIELD_BROKEN,
            f"password must have 8 to {MOST_PASSWORD} characters, among them an upper-case letter, "
            "a lower-case letter, a digit and a symbol.",
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """What has ended with a password: partner tokens, and sessions of the console."""

    tokens: int
    sessions: int


async def change_password(
    office: Office, partner_id: int, password_hash: str, *, ends_tokens: bool = False, keeps_session: str = ""
) -> Ended:
    """Set a partner's password, and end its sessions. From then on the API takes client secrets only.

    Args:
        office: where.
        partner_id: whose.
        password_hash: of the new one.
        ends_tokens: whether partner tokens end too, which else live out their day.
        keeps_session: hash of the one session of the console that stays: that of whoever asks.

    Source: spec, "Authentication", rule 2; decision 0058.

    Raises:
        Refused: there is no such partner.
    """

    def change(connection: Connection) -> Ended:
        stored.change_password(connection, partner_id, password_hash)
        tokens = stored.drop_partner_tokens(connection, partner_id) if ends_tokens else 0
        return Ended(tokens, drop_sessions_of(connection, partner_id, keeps_session))

    await partner_of(office, partner_id)
    ended = await office.database.write(change)
    if ends_tokens:
        office.directory.forget()
    return ended


async def list_credentials(office: Office, kind: CredentialKind, partner_id: int) -> list[PartnerCredential]:
    """Return what may be shown of a partner's credentials: never the credentials.

    Raises:
        Refused: there is no such partner.
    """
    await partner_of(office, partner_id)
    return await office.database.read(credentials_of, kind, partner_id)


async def add_credential(
    office: Office, kind: CredentialKind, partner_id: int, name: str = "", expires_on_ms: int | None = None
) -> str:
    """Make a credential and return it; it is shown this once.

    Raises:
        Refused: there is no such partner, or the expiry has passed.
    """
    await partner_of(office, partner_id)
    now_ms = office.clock.now_ms()
    if expires_on_ms is not None and expires_on_ms <= now_ms:
        raise Refused(Reason.FIELD_BROKEN, "expires_on_ms must lie in the future, or be null.")
    made = office.ids.secret()
    await office.database.write(
        stored_credentials.add_credential, kind, partner_id, hash_of(made), now_ms, name, expires_on_ms
    )
    return made


async def revoke_credential(
    office: Office, kind: CredentialKind, partner_id: int, credential_id: str, *, keep_tokens: bool = False
) -> int:
    """Revoke a credential at once, and the partner tokens it has issued; return how many those were.

    Raises:
        Refused: the partner has no such credential.
    """
    ended = await office.database.write(
        stored_credentials.revoke_credential, kind, partner_id, credential_id, keep_tokens
    )
    office.directory.forget()
    if ended is None:
        raise Refused(Reason.NOT_FOUND, f"The partner has no such {kind}.")
    return ended


async def revoke_api_key(office: Office, key: str) -> None:
    """Revoke an API key at once.

    Raises:
        Refused: there is no such key.
    """
    ended = await office.database.write(stored_credentials.revoke_api_key, hash_of(key))
    office.directory.forget()
    if ended is None:
        raise Refused(Reason.NOT_FOUND, "There is no such API key.")


async def put_operator_account(office: Office, account: OperatorAccount) -> None:
    """Keep an operator account, or change the one with this id.

    Raises:
        Refused: a field is broken.
    """
    _check_operator_account(office, account)
    await office.database.write(stored.put_operator_account, account, office.directory.seal)
    office.directory.forget()


async def add_business_account(office: Office, account: BusinessAccount) -> None:
    """Keep a business account.

    Raises:
        Refused: its id is taken, or its partner or operator account does not exist.
    """
    await partner_of(office, account.partner_id)
    if not account.id:
        raise Refused(Reason.FIELD_BROKEN, "id must be the operator's id of the business account.")
    known = await office.directory.operator_account(account.operator_account_id)
    if known is None:
        raise Refused(Reason.NOT_FOUND, "operator_account_id must name an operator account.")
    if not await office.database.write(stored.add_business_account, account):
        raise Refused(Reason.ALREADY_EXISTS, "id is taken by another business account.")


async def add_app(
    office: Office,
    *,
    partner_id: int,
    name: str,
    phone_number: str,
    phone_number_id: str,
    business_account_id: str,
    per_second: int | None = None,
    app_id: str | None = None,
) -> tuple[App, str]:
    """Keep an app and give it with its app token.

    Raises:
        Refused: a field is broken, its name or its source number is taken, or its business account
            is not the partner's.
    """
    digits = read_phone_number(phone_number)
    if digits is None:
        raise Refused(Reason.FIELD_BROKEN, "phone_number must be 8 to 15 digits.")
    if not 1 <= len(name) <= 150:
        raise Refused(Reason.FIELD_BROKEN, "name must be 1 to 150 characters.")
    if per_second is not None and not 1 <= per_second <= 1000:
        raise Refused(Reason.FIELD_BROKEN, "per_second must be 1 to 1000, or null.")
    account = await office.directory.business_account(business_account_id)
    if account is None or account.partner_id != partner_id:
        raise Refused(Reason.NOT_FOUND, "business_account_id must name a business account of the partner.")
    now_ms = office.clock.now_ms()
    app = App(
        id=app_id or office.ids.new(),
        partner_id=partner_id,
        name=name,
        phone_number=digits,
        phone_number_id=phone_number_id,
        business_account_id=business_account_id,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        per_second=per_second,
    )
    token = office.seals.app_token(app.id, app.token_serial)
    if not await office.database.write(stored.add_app, app, hash_of(token)):
        raise Refused(Reason.ALREADY_EXISTS, "name or phone_number is taken by another app.")
    return app, token


async def connect_app(
    office: Office, app_id: str, *, phone_number: str, phone_number_id: str, business_account_id: str, live: bool
) -> App:
    """Give an app its number and business account, and make it live or a sandbox app.

    Late news of what was sent before still counts, also where another operator carries it now.

    Raises:
        Refused: there is no such app, a field is broken, the number is another app's, or the business
            account is not the partner's.
    """
    app = await office.database.read(stored.app_by_id, app_id)
    if app is None:
        raise Refused(Reason.NOT_FOUND, "There is no such app.")
    digits = read_phone_number(phone_number)
    if digits is None or not phone_number_id:
        raise Refused(
            Reason.FIELD_BROKEN, "phone_number must be 8 to 15 digits, and phone_number_id the operator's id of it."
        )
    account = await office.directory.business_account(business_account_id)
    if account is None or account.partner_id != app.partner_id:
        raise Refused(Reason.NOT_FOUND, "business_account_id must name a business account of the partner.")
    now_ms = office.clock.now_ms()

    def connected(held: App, connection: Connection) -> App:
        keep_stay(connection, held, now_ms + KEPT_MS)
        since_ms = held.preferences.live_since_ms if held.live else now_ms
        return replace(
            held,
            phone_number=digits,
            phone_number_id=phone_number_id,
            business_account_id=business_account_id,
            live=live,
            modified_on_ms=now_ms,
            preferences=replace(held.preferences, live_since_ms=since_ms if live else 0),
        )

    try:
        changed = await office.database.write(_change, app_id, connected)
    except Taken as error:
        raise Refused(Reason.ALREADY_EXISTS, "phone_number is taken by another app.") from error
    office.directory.forget()
    if changed is None:
        raise Refused(Reason.NOT_FOUND, "There is no such app.")
    return changed


def _change(connection: Connection, app_id: str, change: Callable[[App, Connection], App]) -> App | None:
    return change_app(connection, app_id, lambda held: change(held, connection))


async def renew_app_token(office: Office, app_id: str) -> str:
    """Revoke an app's token and give the next one.

    Raises:
        Refused: there is no such app.
    """
    app = await office.database.read(stored.app_by_id, app_id)
    if app is None:
        raise Refused(Reason.NOT_FOUND, "There is no such app.")
    serial = app.token_serial + 1
    token = office.seals.app_token(app_id, serial)
    now_ms = office.clock.now_ms()
    await office.database.write(stored.renew_app_token, app_id, serial, hash_of(token), now_ms)
    office.directory.forget()
    return token


def _is_symbol(char: str) -> bool:
    return not char.isalnum() and not char.isspace()


def _check_operator_account(office: Office, account: OperatorAccount) -> None:
    if not _ACCOUNT_ID.fullmatch(account.id):
        raise Refused(
            Reason.FIELD_BROKEN, "The account's id must be 1 to 64 letters, digits, dots, hyphens or underscores."
        )
    if account.kind not in office.operators.kinds:
        raise Refused(Reason.FIELD_BROKEN, f"kind must be one of {', '.join(office.operators.kinds)}.")
    base_url = account.base_url
    if not base_url.startswith(("http://", "https://")) or base_url.endswith("/"):
        raise Refused(Reason.FIELD_BROKEN, "base_url must be an http or https address without a slash at its end.")
    for field in office.operators.of(account).fields:
        if not field.accepts(account[field.name]):
            raise Refused(Reason.FIELD_BROKEN, f"{field.name} must be {field.accepted}.")


async def partner_of(office: Office, partner_id: int) -> Partner:
    """One partner.

    Raises:
        Refused: there is no such partner.
    """
    partner = await office.database.read(stored.partner_by_id, partner_id)
    if partner is None:
        raise Refused(Reason.NOT_FOUND, "There is no such partner.")
    return partner
