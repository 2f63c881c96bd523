"""Every response of an older address says that it is one, whatever becomes of the request (RFC 9745)."""

from collections.abc import MutableMapping
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import pytest

from tests.wire.test_credentials import asking
from waypost.api.asgi import ApiEndpoint
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.api.services import Services
from waypost.store.contract import StoreUnavailable

if TYPE_CHECKING:
    from tests.wire.conftest import Worlds

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLDER: Final = [row for row in ROUTES if row.deprecation is not None]
SINCE: Final = "@1751241600"


async def test_older_addresses_are_those_of_the_older_api() -> None:
    assert {row.path for row in OLDER} == {row.path for row in ROUTES if row.path[:4] == "/sm/"}
    assert len(OLDER) == 7


@pytest.mark.parametrize("row", OLDER, ids=lambda row: row.name)
async def test_refusals_say_that_the_address_is_older(row: RouteRow, worlds: "Worlds") -> None:
    world = worlds.lenient
    values = await world.values(with_other=False)
    without = asking(row, None)

    answers = [await world.ask(step, values) for step in (without, msgspec.structs.replace(without, method="PATCH"))]

    assert [one.status for one in answers] == [401, 405]
    assert [one.headers.get("Deprecation") for one in answers] == [SINCE, SINCE]


@pytest.mark.parametrize("error", [RuntimeError("a defect"), StoreUnavailable("no store")], ids=repr)
async def test_answers_to_defects_say_that_the_address_is_older(error: Exception) -> None:
    async def broken(*_: Any) -> Any:
        raise error

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    sent: list[MutableMapping[str, Any]] = []
    door = ApiEndpoint(cast("Services", SimpleNamespace(held=False)), replace(OLDER[0], endpoint=broken))

    await door({"type": "http", "path": OLDER[0].path, "headers": []}, receive, send)

    assert sent[0]["status"] == 500
    assert (b"deprecation", SINCE.encode()) in sent[0]["headers"]
