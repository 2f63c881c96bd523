"""Where the public client and the simulator differ, and whose fault each difference is."""

# The client exports its names without saying so, and leaves parts of its own types open.
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

from tests.referee.public_client import Arena
from tests.simulator.conftest import ANN, NUMBER_ID
from tests.support.media_samples import SAMPLES

EN: Final = t.TemplateLanguage.ENGLISH_US
Ask = Callable[[WhatsApp], Awaitable[Any]]

# fmt: off
NOT_HERE: Final[dict[str, Ask]] = {  # what the simulator has not, because no part of the service asks for it
    "qr codes":              lambda wa: wa.get_qr_codes(),
    "groups":                lambda wa: wa.create_group(subject="Hats"),
    "list of groups":        lambda wa: wa.get_groups(),
    "usernames":             lambda wa: wa.get_current_username(),
    "reserved usernames":    lambda wa: wa.get_reserved_usernames(),
    "template migration":    lambda wa: wa.migrate_templates("1000000000000009"),
    "flow migration":        lambda wa: wa.migrate_flows("1000000000000009", ["Booking"]),
    "making numbers":        lambda wa: wa.create_phone_number(country_calling_code=1, phone_number=5550001112, verified_name="Two"),
    "business portfolios":   lambda wa: wa.get_owned_business_accounts(business_portfolio_id="1"),
    "marketing messages":    lambda wa: wa.send_template(ANN, "offer", EN, use_mm_lite_api=True),
}
# fmt: on


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", NOT_HERE)
async def test_what_is_not_here_is_refused_as_an_unknown_object(shared: Arena, name: str) -> None:
    """By design: the operator's words for what an object does not support."""
    with pytest.raises(WhatsAppError) as refused:
        await NOT_HERE[name](shared.client)

    assert (refused.value.code, refused.value.subcode) == (100, 33)


async def test_client_writes_the_end_of_an_offer_in_seconds(arena: Arena) -> None:
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
    await arena.client.create_template(template)
    await arena.hears(t.TemplateStatusUpdate)
    ends = datetime.datetime(2040, 1, 1, tzinfo=datetime.UTC)
    rest: list[Any] = [
        header.params(image="https://cdn.example/a.png"),
        code.params(coupon_code="SAVE30", index=0),
        link.params(url_variable="b", index=1),
    ]

    with pytest.raises(InvalidParameter) as refused:
        await arena.client.send_template(ANN, "offer", EN, [*rest, offer.params(expiration_time=ends)])
    ends_ms = int(ends.timestamp()) * 1000
    whole = {"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": ends_ms}}
    sent = await arena.client.send_template(
        ANN, "offer", EN, [*rest, {"type": "limited_time_offer", "parameters": [whole]}]
    )

    assert refused.value.details is not None
    assert "milliseconds" in refused.value.details
    assert (await arena.on_phone(sent.id))["type"] == "template"


async def test_client_looks_for_refusals_of_templates_under_another_number(arena: Arena) -> None:
    """Fault of the client: its classes bear subcodes and are looked up by code. Source: facts 10."""
    template = t.Template(
        name="bad",
        language=EN,
        category=t.TemplateCategory.UTILITY,
        components=[t.BodyText("Hello, this is for {{1}}", "Ann")],
    )

    with pytest.raises(WhatsAppError) as refused:
        await arena.client.create_template(template)

    assert refused.value.subcode == 2388299
    assert not isinstance(refused.value, TemplateCreationError)


async def test_client_reads_the_first_update_of_a_webhook_only(arena: Arena) -> None:
    """Fault of the client: the operator may put many into one. Source: facts 7.1, "Batching"."""
    await arena.act("settings", {"batch_at_most": 10}, method="PUT")
    await arena.act("faults", {"on": "webhook", "webhook": "message", "when": {"always": True}, "what": {"batch": 2}})

    first = await arena.phone_says(text="One")
    second = await arena.phone_says(text="Two")

    message = await arena.hears(types.Message)
    assert message.id == first
    [raw] = arena.raw
    ids = [one["id"] for entry in raw["entry"] for change in entry["changes"] for one in change["value"]["messages"]]
    assert ids == [first, second]
    assert len(arena.heard) == 1


@pytest.mark.parametrize(
    ("settings", "missing"), [({"statuses_contacts": False}, "'contacts'"), ({"user_ids": False}, "'user_id'")]
)
async def test_client_needs_members_that_older_webhooks_have_not(
    arena: Arena, caplog: pytest.LogCaptureFixture, settings: dict[str, bool], missing: str
) -> None:
    """Fault of the client, which no longer reads webhooks from before 2026. Source: facts 7.3, 10."""
    caplog.set_level(logging.ERROR, logger="pywa")
    await arena.act("settings", settings, method="PUT")
    await arena.phone_says(text="Hi")
    await arena.client.send_message(ANN, "Hello")

    await arena.hears_raw(lambda value: "statuses" in value)

    failures = [one.exc_info[1] for one in caplog.records if one.exc_info]
    assert failures
    assert all(isinstance(one, KeyError) and str(one) == missing for one in failures)


async def test_client_cannot_ask_for_call_permissions(arena: Arena) -> None:
    """Fault of the client: its own call lacks an argument, and nothing is sent."""
    with pytest.raises(TypeError):
        await arena.client.get_call_permissions(ANN)

    assert not arena.transport.asked


async def test_page_instead_of_an_answer_is_an_error_of_the_client_itself(arena: Arena) -> None:
    """No difference any more: earlier versions of the client fell over it. Source: facts 10."""
    await arena.act("faults", {"on": "call", "call": "messages.send", "when": {"next": 1}, "what": {"garbage": "html"}})

    with pytest.raises(WhatsAppError) as refused:
        await arena.client.send_message(ANN, "Hello")

    assert refused.value.code == 502


async def test_webhook_with_another_secret_is_refused_and_told_again(arena: Arena) -> None:
    await arena.act(
        "faults", {"on": "webhook", "webhook": "message", "when": {"next": 1}, "what": {"wrong_signature": True}}
    )

    wamid = await arena.phone_says(text="Hi")

    message = await arena.hears(types.Message)
    assert (message.id, len(arena.raw)) == (wamid, 1)
    assert message.metadata.phone_number_id == NUMBER_ID
