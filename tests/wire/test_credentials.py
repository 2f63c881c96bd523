"""Every endpoint with no credential, a wrong one, an expired one and another's: refused, and nothing told."""

import json
import re
from typing import TYPE_CHECKING, Final

import pytest
import pytest_asyncio

from tests.support.wire_cases import Step
from waypost.api.auth.credentials import Credential
from waypost.api.route import BodyFormat, RouteRow
from waypost.api.routes import ROUTES
from waypost.domain.errors import ErrorCode

if TYPE_CHECKING:
    from tests.wire.conftest import Worlds

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLOSED: Final = [row for row in ROUTES if row.credential is not Credential.NONE]
OF_ONE_APP: Final = [row for row in CLOSED if "{app_id}" in row.path]
HEADERS: Final = {
    Credential.PARTNER_TOKEN: ("Authorization", "token"),
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
    Credential.APP_TOKEN: "{app_token}",
    Credential.API_KEY: "{api_key}",
}
OF_ANOTHER: Final = {
    Credential.PARTNER_TOKEN: "{other_partner_token}",
    Credential.APP_TOKEN: "{other_app_token}",
    Credential.API_KEY: "{other_api_key}",
}
NOBODYS: Final = "01990000-0000-7000-8000-00000000ffff"


def asking(row: RouteRow, credential: str | None, *, app: str = "{app_id}") -> Step:
    """A request to a route, with a body that is well-formed."""
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
async def values(worlds: "Worlds") -> dict[str, str]:
    """Two partners for the whole file: nothing here is let in, so nothing is changed or spent."""
    made = await worlds.lenient.values()
    worlds.lenient.clock.advance(ms=5)  # what runs out has run out
    return made


def refused(row: RouteRow) -> set[str]:
    """The texts that a route may answer to whoever has no right credential. Source: facts 10."""
    short = {"Unauthorized Access"} if ErrorCode.UNAUTHORIZED_ACCESS in row.errors else set[str]()
    return {"Authentication Failed"} | short


@pytest.mark.parametrize("row", CLOSED, ids=lambda row: row.name)
async def test_endpoint_is_closed_without_a_credential_and_to_wrong_and_expired_ones(
    row: RouteRow, worlds: "Worlds", values: dict[str, str]
) -> None:
    tried = {"none": None, **WRONG}

    answers = {kind: await worlds.lenient.ask(asking(row, one), values) for kind, one in tried.items()}

    assert {kind: one.status for kind, one in answers.items()} == dict.fromkeys(tried, 401)
    [told] = {one.raw for one in answers.values()}
    assert json.loads(told)["message"] in refused(row)


@pytest.mark.parametrize("row", OF_ONE_APP, ids=lambda row: row.name)
async def test_another_partners_app_is_answered_as_one_that_does_not_exist(
    row: RouteRow, worlds: "Worlds", values: dict[str, str]
) -> None:
    world = worlds.lenient
    mine = RIGHT[row.credential]

    theirs = await world.ask(asking(row, mine, app="{other_app_id}"), values)
    nobodys = await world.ask(asking(row, mine, app=NOBODYS), values)
    with_theirs = await world.ask(asking(row, OF_ANOTHER[row.credential]), values)

    assert theirs.status == (400 if ErrorCode.KEY_NOT_ASSOCIATED in row.errors else 401)
    assert (theirs.status, theirs.raw) == (nobodys.status, nobodys.raw)
    assert theirs.headers.get("Waypost-Reason") == nobodys.headers.get("Waypost-Reason")
    assert with_theirs.status == theirs.status


@pytest.mark.parametrize(
    "row", [row for row in OF_ONE_APP if row.credential is Credential.APP_TOKEN], ids=lambda row: row.name
)
async def test_partner_token_opens_what_the_app_token_opens_of_the_partners_own_apps(
    row: RouteRow, worlds: "Worlds", values: dict[str, str]
) -> None:
    """Source: spec, "Authentication", 1; decision 0068."""
    world = worlds.lenient

    with_mine = await world.ask(asking(row, "{partner_token}"), values)
    theirs = await world.ask(asking(row, "{partner_token}", app="{other_app_id}"), values)
    nobodys = await world.ask(asking(row, "{partner_token}", app=NOBODYS), values)
    with_theirs = await world.ask(asking(row, "{other_partner_token}"), values)
    with_app_token = await world.ask(asking(row, "{other_app_token}"), values)
    with_mine_of_app = await world.ask(asking(row, "{app_token}"), values)

    assert with_mine.status == with_mine_of_app.status
    assert with_mine.status != 401 or with_mine.raw == with_mine_of_app.raw
    assert (theirs.status, theirs.raw) == (nobodys.status, nobodys.raw)
    assert theirs.headers.get("Waypost-Reason") == nobodys.headers.get("Waypost-Reason")
    assert theirs.status in (400, 401)
    assert (with_theirs.status, with_theirs.raw) == (with_app_token.status, with_app_token.raw)
