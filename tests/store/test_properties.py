"""A store is marked for its purpose: the demonstration, or real traffic."""

import pytest

from tests.support.builders import PARTNER
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_partner
from waypost.store.contract import WrongStore
from waypost.store.database import Database
from waypost.store.properties import check_production_ready, is_demo, mark_demo


async def test_empty_store_is_accepted_for_real_traffic(database: Database) -> None:
    await database.read(check_production_ready, {"known"})

    assert not await database.read(is_demo)


async def test_store_of_the_demonstration_is_rejected_for_real_traffic(database: Database) -> None:
    assert await database.write(mark_demo)

    with pytest.raises(WrongStore, match="waypost dev"):
        await database.read(check_production_ready, set[str]())


async def test_store_is_marked_once(database: Database) -> None:
    await database.write(mark_demo)

    assert not await database.write(mark_demo)


async def test_store_of_real_traffic_cannot_become_a_demonstration(database: Database) -> None:
    await database.write(add_partner, PARTNER, "no password", 0)

    with pytest.raises(WrongStore, match="waypost serve"):
        await database.write(mark_demo)


@pytest.mark.parametrize("kind", CredentialKind)
async def test_store_with_a_known_credential_is_rejected(database: Database, kind: CredentialKind) -> None:
    await database.write(add_credential, kind, PARTNER.id, "known", 0, "shop", 1)

    with pytest.raises(WrongStore, match="publicly known"):
        await database.read(check_production_ready, {"known", "other"})
