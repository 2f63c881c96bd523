"""The header that names the field of an error: sent to our own programs, not to partners."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.builders import APP, INSTANCE_KEY
from tests.support.manual_clock import ManualClock
from tests.support.partner_seeding import store_partner
from waypost.api.requests import UNCOUNTED
from waypost.assembly.service import Waypost
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, ApiResponseError, InProcessTransport
from waypost.config import Settings

TOKEN = "right-admin-token-of-thirty-two-or-more"


@pytest.fixture
async def waypost(tmp_path: Path) -> AsyncIterator[Waypost]:
    """A new service."""
    clock = ManualClock()
    settings = Settings(data=tmp_path, secret_key=INSTANCE_KEY, admin_token=TOKEN, rates=False)
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    yield waypost
    await waypost.close()


async def test_admin_api_names_the_field(waypost: Waypost) -> None:
    admin = ApiClient(InProcessTransport(waypost.application), {"Authorization": f"Bearer {TOKEN}"})

    with pytest.raises(ApiResponseError) as raised:
        await admin.json("POST", "/admin/partners", {"email": "nobody", "name": "No"})

    error = raised.value
    assert error.message == "email must be an e-mail address."
    assert (error.field, error.rule, error.accepted) == ("email", "field_broken", "an e-mail address")


@pytest.mark.parametrize(("marks", "field"), [({}, ""), ({UNCOUNTED: True}, "tag")])
async def test_partner_api_names_it_to_the_console_only(waypost: Waypost, marks: dict[str, bool], field: str) -> None:
    token = await store_partner(waypost.admin_context)
    client = ApiClient(InProcessTransport(waypost.application, scope_members=marks), {"Authorization": token})

    with pytest.raises(ApiResponseError) as raised:
        await client.form("POST", f"/partner/app/{APP.id}/subscription", {"modes": "SENT"})

    assert raised.value.field == field
    assert "'tag' for method parameter type String is not present" in raised.value.message
