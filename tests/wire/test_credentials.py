"""Every endpoint rejects missing, wrong and expired credentials and those of others, and reveals nothing."""

import json
import re
from typing import TYPE_CHECKING, Final

import pytest
import pytest_asyncio

from tests.support.wire_cases import Step
from waypost.api.authorisation import Credential
from waypost.api.route import BodyFormat, RouteRow
from waypost.api.routes import ROUTES
from waypost.domain.errors import ErrorCode
from waypost.wire.errors import ERRORS

if TYPE_CHECKING:
    from tests.wire.conftest import WireServices

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLOSED: Final = [row for row in ROUTES if row.credential is not Credential.NONE]
OF_ONE_APP: Final = [row for row in CLOSED if "{app_id}" in row.path]
HEADERS: Final = {
    Credential.PARTNER_TOKEN: ("Authorization", "token"),
    Credential.UNIVERSAL_TOKEN: ("Authorization", "token"),
    Credential.APP_TOKEN: ("Authorization", "token"),
    Credential.API_KEY: ("apikey",),
}
WRONG: Final = {
    "empty": "",
    "no_credential_at_all": "wrong",
    "of_another_kind": "{client_secret}",
    "expired": "{old_token}",
    "an_expired_secret": "{old_client_secret}",
    "not_ascii": "sk_ä",
    "longer_than_any": "sk_" + "0" * 4000,
}
RIGHT: Final = {
    Credential.PARTNER_TOKEN: "{partner_token}",
    Credential.UNIVERSAL_TOKEN: "{universal_token}",
    Credential.APP_TOKEN: "{app_token}",
    Credential.API_KEY: "{api_key}",
}
OF_ANOTHER: Final = {
    Credential.PARTNER_TOKEN: "{other_partner_token}",
    Credential.UNIVERSAL_TOKEN: "{other_universal_token}",
    Credential.APP_TOKEN: "{other_app_token}",
    Credential.API_KEY: "{other_api_key}",
}
UNKNOWN_APP_ID: Final = "01990000-0000-7000-8000-00000000ffff"

DOCUMENTED_AS_400 = {"GET /partner/app/{app_id}/pipeline"}  # the same error for the token. Source: ledger 1.11


def build_request(row: RouteRow, credential: str | None, *, app: str = "{app_id}") -> Step:
    """Return a request to a route, with a well-formed body."""
    path = re.sub(r"\{(?!app_id\})\w+\}", "1000000000000099", row.path).replace("{app_id}", app)
    headers = {} if credential is None else {HEADERS[row.credential][0]: credential}
    match row.body_format:
        case BodyFormat.NOTHING:
            return Step(method=row.method, path=path, headers=headers)
        case BodyFormat.JSON:
            headers["Content-Type"] = "application/json"
            return Step(method=row.method, path=path, headers=headers, body="[]")
        case BodyFormat.MULTIPART:
            headers["Content-Type"] = "multipart/form-data; boundary=x"
            return Step(method=row.method, path=path, headers=headers, body="--x--\r\n")
        case _:
            return Step(method=row.method, path=path, headers=headers, form={"a": "b"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def values(services: "WireServices") -> dict[str, str]:
    """Two partners for the whole file: no request is accepted, so nothing changes."""
    values = await services.lenient.values()
    for prefix in ("", "other_"):
        values[f"{prefix}universal_token"] = await services.lenient.add_universal_token(values[f"{prefix}partner_id"])
    services.lenient.clock.advance(ms=5)  # the expired credentials have now expired
    return values


def rejection_texts(row: RouteRow) -> set[str | None]:
    """Return the texts that a route may send to a client without a valid credential. Source: facts 10."""
    short = {"Unauthorized Access"} if ErrorCode.UNAUTHORIZED_ACCESS in row.errors else set[str]()
    return {ERRORS[row.wrong_credential].text} | short


@pytest.mark.parametrize("row", CLOSED, ids=lambda row: row.name)
async def test_endpoint_rejects_missing_wrong_and_expired_credentials(
    row: RouteRow, services: "WireServices", values: dict[str, str]
) -> None:
    credentials = {"none": None, **WRONG}

    responses = {
        kind: await services.lenient.send_request(build_request(row, credential), values)
        for kind, credential in credentials.items()
    }

    status = ERRORS[row.wrong_credential].status
    assert status in (401, 403) or row.name in DOCUMENTED_AS_400
    assert {kind: response.status for kind, response in responses.items()} == dict.fromkeys(credentials, status)
    [body] = {response.raw for response in responses.values()}
    assert json.loads(body)["message"] in rejection_texts(row)


@pytest.mark.parametrize("row", OF_ONE_APP, ids=lambda row: row.name)
async def test_another_partners_app_gets_the_response_of_one_that_does_not_exist(
    row: RouteRow, services: "WireServices", values: dict[str, str]
) -> None:
    service = services.lenient
    own_credential = RIGHT[row.credential]

    others_app = await service.send_request(build_request(row, own_credential, app="{other_app_id}"), values)
    unknown_app = await service.send_request(build_request(row, own_credential, app=UNKNOWN_APP_ID), values)
    with_others_credential = await service.send_request(build_request(row, OF_ANOTHER[row.credential]), values)

    assert others_app.status == (400 if ErrorCode.KEY_NOT_ASSOCIATED in row.errors else ERRORS[row.other_app].status)
    assert (others_app.status, others_app.raw) == (unknown_app.status, unknown_app.raw)
    assert others_app.headers.get("Waypost-Reason") == unknown_app.headers.get("Waypost-Reason")
    assert with_others_credential.status == others_app.status


@pytest.mark.parametrize(
    "row", [row for row in OF_ONE_APP if row.credential is Credential.APP_TOKEN], ids=lambda row: row.name
)
async def test_partner_token_is_accepted_like_the_app_token_for_the_partners_own_apps(
    row: RouteRow, services: "WireServices", values: dict[str, str]
) -> None:
    """Source: spec, "Authentication", 1; decision 0068."""
    service = services.lenient

    with_own_partner_token = await service.send_request(build_request(row, "{partner_token}"), values)
    others_app = await service.send_request(build_request(row, "{partner_token}", app="{other_app_id}"), values)
    unknown_app = await service.send_request(build_request(row, "{partner_token}", app=UNKNOWN_APP_ID), values)
    with_others_credential = await service.send_request(build_request(row, "{other_partner_token}"), values)
    with_others_app_token = await service.send_request(build_request(row, "{other_app_token}"), values)
    with_own_app_token = await service.send_request(build_request(row, "{app_token}"), values)

    assert with_own_partner_token.status == with_own_app_token.status
    assert with_own_partner_token.status != 401 or with_own_partner_token.raw == with_own_app_token.raw
    assert (others_app.status, others_app.raw) == (unknown_app.status, unknown_app.raw)
    assert others_app.headers.get("Waypost-Reason") == unknown_app.headers.get("Waypost-Reason")
    assert others_app.status in (400, 401, 403)
    assert (with_others_credential.status, with_others_credential.raw) == (
        with_others_app_token.status,
        with_others_app_token.raw,
    )
