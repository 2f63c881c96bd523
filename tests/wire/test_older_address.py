"""Every response of a deprecated route has the header `Deprecation`, whatever its status (RFC 9745)."""

from collections.abc import MutableMapping
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import pytest

from tests.wire.test_credentials import build_request
from waypost.api.asgi import ApiEndpoint
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.api.services import Services
from waypost.store.contract import StoreUnavailable

if TYPE_CHECKING:
    from tests.wire.conftest import WireServices

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEPRECATED: Final = [row for row in ROUTES if row.deprecation is not None]
SINCE: Final = "@1751241600"


async def test_deprecated_routes_are_those_of_the_older_api() -> None:
    assert {row.path for row in DEPRECATED} == {row.path for row in ROUTES if row.path[:4] == "/sm/"}
    assert len(DEPRECATED) == 7


@pytest.mark.parametrize("row", DEPRECATED, ids=lambda row: row.name)
async def test_error_responses_have_the_deprecation_header(row: RouteRow, services: "WireServices") -> None:
    service = services.lenient
    values = await service.values(with_other=False)
    request = build_request(row, None)

    responses = [
        await service.send_request(step, values) for step in (request, msgspec.structs.replace(request, method="PATCH"))
    ]

    assert [response.status for response in responses] == [401, 405]
    assert [response.headers.get("Deprecation") for response in responses] == [SINCE, SINCE]


@pytest.mark.parametrize("error", [RuntimeError("a defect"), StoreUnavailable("no store")], ids=repr)
async def test_responses_to_defects_have_the_deprecation_header(error: Exception) -> None:
    async def broken(*_: Any) -> Any:
        raise error

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    sent: list[MutableMapping[str, Any]] = []
    endpoint = ApiEndpoint(
        cast("Services", SimpleNamespace(held=False, limiter=None, rejections=None)),
        replace(DEPRECATED[0], endpoint=broken),
    )

    await endpoint({"type": "http", "path": DEPRECATED[0].path, "headers": []}, receive, send)

    assert sent[0]["status"] == 500
    assert (b"deprecation", SINCE.encode()) in sent[0]["headers"]
