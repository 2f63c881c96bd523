"""Universal tokens stay listed after they were revoked, and nothing accepts them any more."""

from typing import Final

from sqlalchemy import text

from tests.support.builders import PARTNER
from waypost.domain.app import KeyStatus
from waypost.store.accounts.credentials import (
    MAX_ENDED_TOKENS,
    CredentialKind,
    add_universal_token,
    list_credentials,
    revoke_universal_token,
    universal_token,
)
from waypost.store.database import Database

AT_MS: Final = 1_700_000_000_000
HASH: Final = "ab" * 32
OLDER_LOOK_UP: Final = text("SELECT partner_id FROM universal_tokens WHERE hash = :hash AND expires_on_ms > :now_ms")
"""How a process of revision 8 or 9 decides whether it accepts a token: it does not know that tokens can be revoked."""


async def test_revoked_token_is_listed_and_accepted_by_no_process(database: Database) -> None:
    token_id = await database.write(add_universal_token, PARTNER.id, HASH, AT_MS, "prod", AT_MS + 100)

    by_another = await database.write(revoke_universal_token, PARTNER.id + 1, token_id, AT_MS + 5)
    before = await database.read(universal_token, HASH)
    revoked = await database.write(revoke_universal_token, PARTNER.id, token_id, AT_MS + 10)
    again = await database.write(revoke_universal_token, PARTNER.id, token_id, AT_MS + 20)
    parameters = {"hash": HASH, "now_ms": AT_MS + 20}
    by_an_older_process = await database.read(lambda connection: connection.execute(OLDER_LOOK_UP, parameters).all())

    assert (by_another, revoked, again) == (False, True, True)
    assert before == (PARTNER.id, AT_MS + 100)
    assert await database.read(universal_token, HASH) is None
    assert by_an_older_process == []
    (token,) = await database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, PARTNER.id)
    assert (token.id, token.name, token.expires_on_ms, token.revoked_on_ms) == (
        token_id, "prod", AT_MS + 100, AT_MS + 10,
    )  # fmt: skip
    assert token.status(AT_MS + 20) is KeyStatus.REVOKED


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
