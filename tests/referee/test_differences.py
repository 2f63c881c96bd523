"""Differences between the public client and the simulator, and the side at fault."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import datetime
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from pywa_async import WhatsApp, types
from pywa_async.errors import InvalidParameter, TemplateCreationError, WhatsAppError
from pywa_async.types import templates as t

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN, NUMBER_ID
from tests.support.media_samples import SAMPLES

EN: Final = t.TemplateLanguage.ENGLISH_US
ClientCall = Callable[[WhatsApp], Awaitable[Any]]

# fmt: off
UNSUPPORTED: Final[dict[str, ClientCall]] = {  # calls that the simulator lacks, because the service does not use them
    "template migration": lambda wa: wa.migrate_templates("1000000000000009"),
}
# fmt: on


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", UNSUPPORTED)
async def test_unsupported_call_gets_the_error_of_an_unknown_object(shared_harness: ClientHarness, name: str) -> None:
    """By design: the operator's error for a call that an object does not support."""
    with pytest.raises(WhatsAppError) as raised:
        await UNSUPPORTED[name](shared_harness.client)

    assert (raised.value.code, raised.value.subcode) == (100, 33)


async def test_client_reads_fields_of_listed_groups_that_it_does_not_request(harness: ClientHarness) -> None:
    """Fault of the client: a list has the fields that a request names, and it names none."""
    await harness.client.create_group(subject="Hats")

    with pytest.raises(KeyError, match="suspended"):
        await harness.client.get_groups()


async def test_client_writes_the_end_of_an_offer_in_seconds(harness: ClientHarness) -> None:
    """Fault of the client: the operator's field is in milliseconds. Source: facts 10."""
    header = t.HeaderImage(SAMPLES["png"], mime_type="image/png")
    offer = t.LimitedTimeOffer(text="Ends soon!", has_expiration=True)
    code = t.CopyCodeButton(example="SAVE20")
    link = t.URLButton(text="Buy", url="https://s.example/{{1}}", example="https://s.example/a")
    template = t.Template(
        name="offer",
        language=EN,
        category=t.TemplateCategory.MARKETING,
        components=[header, offer, t.BodyText("Hats for less"), t.Buttons(buttons=[code, link])],
    )
    await harness.client.create_template(template)
    await harness.wait_for_update(t.TemplateStatusUpdate)
    ends = datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC)
    rest: list[Any] = [
        header.params(image="https://cdn.example/a.png"),
        code.params(coupon_code="SAVE30", index=0),
        link.params(url_variable="b", index=1),
    ]

    with pytest.raises(InvalidParameter) as raised:
        await harness.client.send_template(ANN, "offer", EN, [*rest, offer.params(expiration_time=ends)])
    ends_ms = int(ends.timestamp()) * 1000
    parameter = {"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": ends_ms}}
    sent = await harness.client.send_template(
        ANN, "offer", EN, [*rest, {"type": "limited_time_offer", "parameters": [parameter]}]
    )

    assert raised.value.details is not None
    assert "milliseconds" in raised.value.details
    assert (await harness.phone_message(sent.id))["type"] == "template"


async def test_client_looks_up_template_errors_under_another_number(harness: ClientHarness) -> None:
    """Fault of the client: its classes have subcodes, but are looked up by code. Source: facts 10."""
    template = t.Template(
        name="bad",
        language=EN,
        category=t.TemplateCategory.UTILITY,
        components=[t.BodyText("Hello, this is for {{1}}", "Ann")],
    )

    with pytest.raises(WhatsAppError) as raised:
        await harness.client.create_template(template)

    assert raised.value.subcode == 2388299
    assert not isinstance(raised.value, TemplateCreationError)


async def test_client_reads_the_first_update_of_a_webhook_only(harness: ClientHarness) -> None:
    """Fault of the client: the operator may send many updates in one webhook. Source: facts 7.1, "Batching"."""
    await harness.control("settings", {"batch_at_most": 10}, method="PUT")
    await harness.control(
        "faults", {"on": "webhook", "webhook": "message", "when": {"always": True}, "what": {"batch": 2}}
    )

    first = await harness.send_from_phone(text="One")
    second = await harness.send_from_phone(text="Two")

    message = await harness.wait_for_update(types.Message)
    assert message.id == first
    [raw] = harness.raw
    ids = [
        inbound["id"]
        for entry in raw["entry"]
        for change in entry["changes"]
        for inbound in change["value"]["messages"]
    ]
    assert ids == [first, second]
    assert len(harness.updates) == 1


@pytest.mark.parametrize(
    ("settings", "missing"), [({"statuses_contacts": False}, "'contacts'"), ({"user_ids": False}, "'user_id'")]
)
async def test_client_needs_members_that_older_webhooks_lack(
    harness: ClientHarness, caplog: pytest.LogCaptureFixture, settings: dict[str, bool], missing: str
) -> None:
    """Fault of the client, which no longer reads webhooks from before 2026. Source: facts 7.3, 10."""
    caplog.set_level(logging.ERROR, logger="pywa")
    await harness.control("settings", settings, method="PUT")
    await harness.send_from_phone(text="Hi")
    await harness.client.send_message(ANN, "Hello")

    await harness.wait_for_webhook(lambda value: "statuses" in value)

    failures = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert failures
    assert all(isinstance(failure, KeyError) and str(failure) == missing for failure in failures)


async def test_client_cannot_request_call_permissions(harness: ClientHarness) -> None:
    """Fault of the client: its own call lacks an argument, and nothing is sent."""
    with pytest.raises(TypeError):
        await harness.client.get_call_permissions(ANN)

    assert not harness.transport.requests


async def test_html_instead_of_json_raises_the_clients_own_error(harness: ClientHarness) -> None:
    """No longer a difference: earlier versions of the client raised another exception. Source: facts 10."""
    await harness.control(
        "faults", {"on": "call", "call": "messages.send", "when": {"next": 1}, "what": {"garbage": "html"}}
    )

    with pytest.raises(WhatsAppError) as raised:
        await harness.client.send_message(ANN, "Hello")

    assert raised.value.code == 502


async def test_webhook_signed_with_another_secret_is_rejected_and_sent_again(harness: ClientHarness) -> None:
    await harness.control(
        "faults", {"on": "webhook", "webhook": "message", "when": {"next": 1}, "what": {"wrong_signature": True}}
    )

    wamid = await harness.send_from_phone(text="Hi")

    message = await harness.wait_for_update(types.Message)
    assert (message.id, len(harness.raw)) == (wamid, 1)
    assert message.metadata.phone_number_id == NUMBER_ID
