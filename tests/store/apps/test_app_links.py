"""Linking tokens stay until they end or are replaced; a request is decided once, and ends after 30 days."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from tests.support.builders import PARTNER
from waypost.domain.app_links import LINK_LIFE_MS, AppLink, LinkAction, LinkStatus, PartnerLinkingToken, app_of_link
from waypost.store.accounts.partners import app_by_id
from waypost.store.apps.app_links import (
    LinkIsDecided,
    LinkNameInUse,
    add_app_link,
    app_link_by_id,
    decide_link,
    get_or_replace_linking_token,
    list_app_links,
)
from waypost.store.database import Database

AT_MS: Final = 1_700_000_000_000
LINK: Final = AppLink("link-1", "app-1", "Hat shop", "ann@hats.example", PARTNER.id, AT_MS, AT_MS + LINK_LIFE_MS)


def decision(action: LinkAction, now_ms: int = AT_MS, link: AppLink = LINK) -> Any:
    app = app_of_link(link, PARTNER.id, now_ms)
    return partial(
        decide_link, link_id=link.id, partner_id=PARTNER.id, action=action, app=app, token_hash=link.app_id,
        decided_by="ann@hats.example", now_ms=now_ms,
    )  # fmt: skip


async def test_linking_token_is_replaced_when_asked_or_at_its_end_only(database: Database) -> None:
    first, second, third = (
        PartnerLinkingToken(PARTNER.id, name, at, at + 100) for name, at in zip("abc", (0, 99, 100), strict=True)
    )

    stored = [
        await database.write(partial(get_or_replace_linking_token, token=token, replaces=replaces))
        for token, replaces in ((first, False), (second, False), (third, False), (second, True))
    ]

    assert stored == [first, first, third, second]


async def test_request_is_decided_once(database: Database) -> None:
    await database.write(add_app_link, LINK)

    approved = await database.write(decision(LinkAction.APPROVE, AT_MS + 5))
    with pytest.raises(LinkIsDecided, match="APPROVED"):
        await database.write(decision(LinkAction.REJECT))

    assert approved == replace(LINK, status=LinkStatus.APPROVED, decided_on_ms=AT_MS + 5, decided_by="ann@hats.example")
    app = await database.read(app_by_id, "app-1")
    assert app is not None
    assert (app.partner_id, app.name, app.live, app.phone_number) == (PARTNER.id, "Hat shop", False, "")


async def test_request_ends_after_30_days(database: Database) -> None:
    await database.write(add_app_link, LINK)
    last_ms, end_ms = LINK.expires_on_ms - 1, LINK.expires_on_ms

    with pytest.raises(LinkIsDecided, match="EXPIRED"):
        await database.write(decision(LinkAction.APPROVE, end_ms))
    listed = [
        (await database.read(list_app_links, PARTNER.id, status, now_ms))[1]
        for now_ms in (last_ms, end_ms)
        for status in (LinkStatus.PENDING, LinkStatus.EXPIRED, None)
    ]

    assert listed == [1, 0, 1, 0, 1, 1]
    assert await database.read(app_by_id, "app-1") is None


async def test_name_in_use_leaves_the_request_open(database: Database) -> None:
    other = replace(LINK, id="link-2", app_id="app-2")
    await database.write(add_app_link, LINK)
    await database.write(add_app_link, other)
    await database.write(decision(LinkAction.APPROVE))

    with pytest.raises(LinkNameInUse):
        await database.write(decision(LinkAction.APPROVE, link=other))

    assert await database.read(app_link_by_id, "link-2") == other
    assert await database.write(decision(LinkAction.REJECT, link=other)) is not None


async def test_requests_to_another_partner_are_not_found(database: Database) -> None:
    await database.write(add_app_link, replace(LINK, partner_id=PARTNER.id + 1))

    assert await database.write(decision(LinkAction.APPROVE)) is None
    assert await database.read(list_app_links, PARTNER.id, None, AT_MS) == ([], 0)
