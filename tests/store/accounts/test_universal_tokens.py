"""Universal tokens stay listed after they were revoked, and nothing accepts them any more."""

from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, text

from tests.support.builders import PARTNER
from waypost.domain.app import MAX_ENDED_TOKENS, AppKey, KeyStatus
from waypost.store.accounts.credentials import (
    CredentialKind,
    add_universal_token,
    list_credentials,
    revoke_universal_token,
    universal_token,
)
from waypost.store.apps.keys import add_app_key, list_app_keys, revoke_app_key
from waypost.store.database import Database

AT_MS: Final = 1_700_000_000_000
HASH: Final = "ab" * 32
OLDER_LOOK_UP: Final = text("SELECT partner_id FROM universal_tokens WHERE hash = :hash AND expires_on_ms > :now_ms")
"""How a process of revision 8 or 9 decides whether it accepts a token: it does not know that tokens can be revoked."""


def find_as_an_older_process(connection: Connection, parameters: dict[str, Any]) -> list[Any]:
    """Return what a process of an older version finds."""
    return list(connection.execute(OLDER_LOOK_UP, parameters))


async def test_revoked_token_is_listed_and_accepted_by_no_process(database: Database) -> None:
    token_id = await database.write(add_universal_token, PARTNER.id, HASH, AT_MS, "prod", AT_MS + 100)

    by_another = await database.write(revoke_universal_token, PARTNER.id + 1, token_id, AT_MS + 5)
    before = await database.read(universal_token, HASH)
    revoked = await database.write(revoke_universal_token, PARTNER.id, token_id, AT_MS + 10)
    again = await database.write(revoke_universal_token, PARTNER.id, token_id, AT_MS + 20)
    parameters = {"hash": HASH, "now_ms": AT_MS + 20}
    by_an_older_process = await database.read(find_as_an_older_process, parameters)

    assert (by_another, revoked, again) == (False, True, True)
    assert before == (PARTNER.id, AT_MS + 100)
    assert await database.read(universal_token, HASH) is None
    assert by_an_older_process == []
    (token,) = await database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, PARTNER.id)
    assert (token.id, token.name, token.expires_on_ms, token.revoked_on_ms) == (
        token_id, "prod", AT_MS + 100, AT_MS + 10,
    )  # fmt: skip
    assert token.status(AT_MS + 20) is KeyStatus.REVOKED


async def test_expired_token_that_is_revoked_stays_expired(database: Database) -> None:
    token_id = await database.write(add_universal_token, PARTNER.id, HASH, AT_MS, "prod", AT_MS + 100)

    is_known = await database.write(revoke_universal_token, PARTNER.id, token_id, AT_MS + 100)

    (token,) = await database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, PARTNER.id)
    assert (is_known, token.status(AT_MS + 100), token.revoked_on_ms) == (True, KeyStatus.EXPIRED, None)


async def test_revoked_tokens_leave_room_and_their_names_to_others(database: Database) -> None:
    for number in range(MAX_ENDED_TOKENS + 3):
        hash_of_it, at_ms = f"{number:064x}"[::-1], AT_MS + number
        token_id = await database.write(
            add_universal_token, PARTNER.id, hash_of_it, at_ms, "prod", at_ms + 1_000_000, True
        )
        await database.write(revoke_universal_token, PARTNER.id, token_id, at_ms)

    listed = await database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, PARTNER.id)

    created = [token.created_on_ms for token in listed]
    assert created == list(range(AT_MS + 2, AT_MS + MAX_ENDED_TOKENS + 3))


async def test_app_keeps_a_hundred_ended_tokens_and_its_active_ones(database: Database) -> None:
    for number in range(MAX_ENDED_TOKENS + 3):
        key = AppKey(f"{number:032}", PARTNER.id, "app", f"job {number}", AT_MS + number, AT_MS + 10_000_000)
        add = partial(add_app_key, key=key, key_hash=f"hash {number}", max_keys=3, now_ms=AT_MS + number)
        await database.write(add)
        if number:  # the first one stays
            await database.write(partial(revoke_app_key, app_id="app", key_id=key.id, now_ms=AT_MS, minted=True))

    listed = await database.read(partial(list_app_keys, app_id="app", minted=True))

    assert [key.id for key in listed if key.revoked_on_ms is None] == [f"{0:032}"]
    assert [int(key.id) for key in listed] == [0, *range(2, MAX_ENDED_TOKENS + 3)]
