"""Every adapter against the stand-in for its operator, over HTTP in both directions."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.operators.conformance.conftest import AdapterHarness
from tests.operators.conformance.test_recorded import picture
from tests.support.builders import ACCOUNT, ANN, APP, draft, id_number, message, template
from tests.support.closed_port import closed_port
from tests.support.media_samples import sample
from waypost.domain.direct_calls import (
    CallNotOffered,
    CheckToken,
    DeleteMedium,
    GetBusinessAccount,
    GetBusinessStatus,
    GetNumber,
    GetSubscription,
    GetTemplate,
    ListNumbers,
    ListTemplates,
    MarkRead,
    OperatorCall,
    Response,
    Subscribe,
    TemplateDetail,
    TokenStatus,
    Unsubscribe,
)
from waypost.domain.event import InboundEvent, ReviewEvent, StatusEvent
from waypost.domain.media import UploadedMedia
from waypost.domain.message import MessageState, TemplateSend
from waypost.domain.outcome import (
    OperatorAccepted,
    OperatorRejected,
    OperatorUnavailable,
    OutcomeUncertain,
    RetryReason,
    RetryScope,
)
from waypost.domain.phone_number import read_phone_number
from waypost.operators.contract import OperatorUpload

NUMBER = APP.phone_number_id


async def open_window(harness: AdapterHarness) -> InboundEvent:
    """Have Ann write, so that messages to her are allowed."""
    await harness.stand_in.write(ANN, "Hello?")
    return await harness.wait_for_event(InboundEvent)


async def submit(harness: AdapterHarness, **more: Any) -> OperatorAccepted:
    """Submit a template, and return its outcome."""
    outcome = await harness.adapter.submit_template(harness.account, template(**more), {})
    assert isinstance(outcome, OperatorAccepted), outcome
    return outcome


async def make_call(harness: AdapterHarness, request: OperatorCall[Response]) -> Response:
    """Make a direct call, and return its response."""
    response = await harness.adapter.call(harness.account, request)
    assert not isinstance(response, (OperatorRejected, OperatorUnavailable, OutcomeUncertain, CallNotOffered)), response
    return response


async def test_message_is_accepted_and_its_statuses_carry_our_id(harness: AdapterHarness) -> None:
    await open_window(harness)

    outcome = await harness.adapter.send(harness.account, APP, message(), template=None, reply_to=None, copies={})

    assert isinstance(outcome, OperatorAccepted)
    assert outcome.recipient == ANN
    delivered = await harness.wait_for_event(StatusEvent, lambda event: event.state is MessageState.DELIVERED)
    assert delivered.message_id == id_number(1)
    assert delivered.operator_message_id == outcome.operator_id
    assert delivered.recipient == ANN
    assert harness.unsigned == 0


async def test_inbound_message_is_read_with_its_sender(harness: AdapterHarness) -> None:
    event = await open_window(harness)

    assert (event.kind, event.sender, event.phone_number_id) == ("text", ANN, NUMBER)
    assert event.text("body") == "Hello?"


async def test_template_submitted_twice_is_the_same_template(harness: AdapterHarness) -> None:
    first = await submit(harness)

    second = await submit(harness)

    assert second.operator_id == first.operator_id
    review = await harness.wait_for_event(ReviewEvent)
    assert (review.operator_template_id, review.status) == (first.operator_id, "APPROVED")
    assert review.at_s > 0


async def test_template_is_sent_and_wrong_parameters_are_rejected(harness: AdapterHarness) -> None:
    stored = template()
    await submit(harness)
    await harness.wait_for_event(ReviewEvent)

    async def send(number: int, *params: str) -> object:
        outbound = message(number, TemplateSend(stored.id, params))
        return await harness.adapter.send(harness.account, APP, outbound, template=stored, reply_to=None, copies={})

    accepted, rejected = await send(1, "Ann"), await send(2)

    assert isinstance(accepted, OperatorAccepted)
    assert isinstance(rejected, OperatorRejected)
    assert rejected.code == 132000


async def test_edit_sent_twice_succeeds_twice_and_has_one_effect(harness: AdapterHarness) -> None:
    first = await submit(harness)
    await harness.wait_for_event(ReviewEvent)
    edited = template(of=draft(footer="Reply STOP to opt out"), operator_template_id=first.operator_id)

    outcomes = [await harness.adapter.edit_template(harness.account, edited, {}) for _ in range(2)]

    assert [type(outcome) for outcome in outcomes] == [OperatorAccepted, OperatorAccepted]
    edited_template = await make_call(harness, GetTemplate(first.operator_id))
    assert (edited_template.body, edited_template.footer) == (edited.draft.content, "Reply STOP to opt out")


async def test_template_deleted_twice_is_deleted_and_its_other_language_remains(harness: AdapterHarness) -> None:
    first = await submit(harness)
    german = await submit(harness, of=draft(language_code="de"))
    deleted = template(operator_template_id=first.operator_id)

    outcomes = [await harness.adapter.delete_template(harness.account, deleted) for _ in range(2)]

    assert [type(outcome) for outcome in outcomes] == [OperatorAccepted, OperatorAccepted]
    remaining = await make_call(harness, ListTemplates(ACCOUNT.id, TemplateDetail.STATUS))
    assert [listed.id for listed in remaining if not listed.is_being_deleted] == [german.operator_id]


async def test_template_that_breaks_a_rule_is_rejected_with_a_text(harness: AdapterHarness) -> None:
    broken = template(of=draft(content="{{1}}", example="Ann"))

    outcome = await harness.adapter.submit_template(harness.account, broken, {})

    assert isinstance(outcome, OperatorRejected)
    assert len(outcome.text) > 10


@pytest.fixture
def medium(tmp_path: Path) -> tuple[UploadedMedia, Path]:
    """Return an image that every operator accepts."""
    media, path = picture(tmp_path)
    content = sample("png")
    path.write_bytes(content)
    return replace(media, size_bytes=len(content)), path


async def test_medium_is_fetched_as_it_was_uploaded_until_it_is_deleted(
    harness: AdapterHarness, medium: tuple[UploadedMedia, Path]
) -> None:
    uploaded = await harness.adapter.upload_media(harness.account, APP, *medium)
    assert isinstance(uploaded, OperatorUpload)
    content = await fetch(harness, uploaded.operator_id)

    result = await make_call(harness, DeleteMedium(uploaded.operator_id, NUMBER))

    assert content == [medium[1].read_bytes()]
    assert result.success
    [outcome] = await fetch(harness, uploaded.operator_id)
    assert isinstance(outcome, OperatorRejected)


async def test_template_can_use_an_uploaded_sample(harness: AdapterHarness, medium: tuple[UploadedMedia, Path]) -> None:
    uploaded = await harness.adapter.upload_sample(harness.account, *medium)
    assert isinstance(uploaded, OperatorUpload)
    shows = draft(template_type="IMAGE", example_media="ours")

    outcome = await harness.adapter.submit_template(harness.account, template(of=shows), {"ours": uploaded.operator_id})

    assert isinstance(outcome, OperatorAccepted)


async def test_number_and_business_account_are_those_of_the_app(harness: AdapterHarness) -> None:
    status = await make_call(harness, GetNumber(NUMBER))
    [number] = await make_call(harness, ListNumbers(ACCOUNT.id))
    business = await make_call(harness, GetBusinessAccount(ACCOUNT.id))

    assert status.is_connected
    assert (number.id, read_phone_number(number.display_number)) == (NUMBER, APP.phone_number)
    assert not number.problems
    assert business.namespace == ACCOUNT.namespace
    assert (await make_call(harness, GetBusinessStatus(ACCOUNT.id))).status == "ACTIVE"


# fmt: off
READ_CALLS: dict[OperatorCall[Any], type[Any]] = {  # read-only calls, and the types of their responses
    CheckToken():                                      TokenStatus,
    ListTemplates(ACCOUNT.id, TemplateDetail.REVIEW):  list,
}
# fmt: on


@pytest.mark.parametrize("request_", READ_CALLS, ids=lambda call: type(call).__name__)
async def test_read_call_has_a_response_of_its_type_or_is_not_offered(
    harness: AdapterHarness, request_: OperatorCall[Any]
) -> None:
    response = await harness.adapter.call(harness.account, request_)

    is_offered = type(request_) not in harness.case.not_offered
    assert isinstance(response, READ_CALLS[request_] if is_offered else CallNotOffered)


async def test_webhook_is_subscribed_only_if_its_handshake_succeeds(harness: AdapterHarness) -> None:
    wrong = harness.account.replace_fields(**{harness.case.handshake_secret: "wrong"})
    rejected = await harness.adapter.call(wrong, Subscribe(ACCOUNT.id, harness.webhook_url))
    await make_call(harness, Subscribe(ACCOUNT.id, harness.webhook_url))

    assert isinstance(rejected, OperatorRejected)
    subscription = await make_call(harness, GetSubscription(ACCOUNT.id))
    assert subscription.is_subscribed
    assert set(subscription.urls.values()) == {harness.webhook_url}
    await make_call(harness, Unsubscribe(ACCOUNT.id))
    assert not (await make_call(harness, GetSubscription(ACCOUNT.id))).is_subscribed


async def test_read_receipt_is_accepted(harness: AdapterHarness) -> None:
    event = await open_window(harness)

    result = await make_call(harness, MarkRead(NUMBER, event.operator_message_id, typing=True))

    assert result.success


async def test_call_for_an_unknown_object_is_rejected(harness: AdapterHarness) -> None:
    outcome = await harness.adapter.call(harness.account, GetNumber("9999999999999999"))

    assert isinstance(outcome, OperatorRejected)


async def test_invalid_token_pauses_the_whole_account(harness: AdapterHarness) -> None:
    account = harness.account.replace_fields(**{harness.case.credential: "not-ours"})

    outcome = await harness.adapter.send(account, APP, message(), template=None, reply_to=None, copies={})

    assert isinstance(outcome, OperatorUnavailable)
    assert (outcome.retry_reason, outcome.retry_scope) == (RetryReason.CREDENTIAL, RetryScope.ACCOUNT)


async def test_send_to_an_unreachable_operator_is_unavailable_and_not_uncertain(harness: AdapterHarness) -> None:
    with closed_port() as port:
        account = replace(harness.account, base_url=f"http://127.0.0.1:{port}")
        outcome = await harness.adapter.send(account, APP, message(), template=None, reply_to=None, copies={})

    assert isinstance(outcome, OperatorUnavailable)
    assert outcome.retry_reason is RetryReason.NOT_REACHED


async def test_webhook_with_a_wrong_signature_is_rejected(harness: AdapterHarness) -> None:
    body = b'{"object":"whatsapp_business_account","entry":[]}'
    headers = {"X-Hub-Signature-256": "sha256=" + "0" * 64}

    async with harness.http.post(harness.webhook_url, data=body, headers=headers) as response:
        assert response.status == 401
    assert harness.unsigned == 1


async def fetch(harness: AdapterHarness, operator_media_id: str) -> list[object]:
    """Fetch a medium; return its bytes as one item, followed by the outcome that ended it, if any."""
    parts: AsyncIterator[bytes | OperatorRejected | OperatorUnavailable] = harness.adapter.fetch_media(
        harness.account, operator_media_id, phone_number_id=NUMBER
    )
    content, others = b"", list[object]()
    async for part in parts:
        if isinstance(part, bytes):
            content += part
        else:
            others.append(part)
    return [*([content] if content else []), *others]
