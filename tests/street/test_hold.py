"""`waypost serve --hold`: a store is looked at, and nothing leaves it or comes to it."""

from typing import Any

from tests.conftest import MakeStreet
from tests.support.builders import APP, OPERATOR
from tests.support.patience import patiently
from tests.support.second_operator import administer
from tests.support.street import ANN, Street


async def hold(street: Street, *, on: bool) -> None:
    """Start the service again on its store."""
    await street.close_service()
    street.changes["hold"] = on
    await street.open_service()


async def readiness(street: Street) -> tuple[int, dict[str, Any]]:
    async with street.http.get(f"{street.service_url}/readyz") as response:
        return response.status, await response.json()


FORM = {
    "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
    "message": '{"type":"text","text":"Hello"}',
}  # fmt: skip


async def state_of(street: Street, message_id: str) -> str:
    shown = await administer(street, "GET", f"/admin/messages/{message_id}")
    assert shown.status == 200, shown
    return str(shown.body["state"])


async def test_a_held_service_shows_its_store_and_sends_nothing(make_street: MakeStreet) -> None:
    street = await make_street()
    await street.close_operator()
    message_id = await street.send_text("waits for the operator")
    callbacks = len(street.sink.tries)
    await hold(street, on=True)
    await street.open_operator()

    status, told = await readiness(street)
    assert status == 503
    assert "held" in told["checks"]["held"]
    assert told["checks"]["queues"] == told["checks"]["leases"] == "ok"

    refused = await street.ask("POST", "/wa/api/v1/msg", FORM, {"apikey": street.app_token})
    assert refused.status == 503
    assert refused.body["status"] == "error"
    assert "held" in refused.body["message"]
    assert refused.headers["Retry-After"] == "60"
    path = f"/partner/app/{APP.id}"
    credential = {"Authorization": street.app_token}
    profile = await street.ask("GET", f"{path}/business/profile", None, credential)
    assert profile.status == 503  # it would ask the operator
    templates = await street.ask("GET", f"{path}/templates", None, credential)
    assert templates.status == 200

    listed = await administer(street, "GET", f"/admin/apps/{APP.id}/messages")
    assert message_id in str(listed.body)
    url = f"{street.service_url}/operator/webhook/{OPERATOR.id}"
    async with street.http.post(url, data=b"{}") as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "60"
    doctor = await administer(street, "GET", "/admin/doctor")
    assert doctor.status == 200
    assert "the service is held" in str(doctor.body)
    assert await street.deliveries(message_id) == []
    assert len(street.sink.tries) == callbacks
    assert await state_of(street, message_id) == "accepted"

    await hold(street, on=False)

    async def state() -> str:
        return await state_of(street, message_id)

    await patiently(state, lambda found: found != "accepted")
    assert (await readiness(street))[0] == 200
