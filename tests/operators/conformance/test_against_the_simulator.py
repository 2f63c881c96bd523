"""What every adapter has to do, against what stands in for its operator: over HTTP, both ways."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.operators.conformance.conftest import Line
from tests.operators.conformance.test_recorded import picture
from tests.support.builders import ACCOUNT, ANN, APP, draft, id_number, message, template
from tests.support.closed_port import refusing_port
from tests.support.media_samples import sample
from waypost.domain.direct_calls import (
    BusinessProfile,
    CheckToken,
    DeleteMedium,
    GetBusinessAccount,
    GetBusinessStatus,
    GetComponents,
    GetNumber,
    GetProfile,
    GetSubscription,
    GetTemplate,
    ListBlocked,
    ListFlows,
    ListLibrary,
    ListNumbers,
    ListTemplates,
    MarkRead,
    NotOffered,
    OperatorCall,
    RawList,
    RawObject,
    Response,
    Subscribe,
    TemplateDetail,
    TokenStatus,
    Unsubscribe,
)
from waypost.domain.event import InboundEvent, ReviewEvent, StatusEvent
from waypost.domain.media import UploadedMedia
from waypost.domain.message import MessageState, TemplateSend
from waypost.domain.outcome import Rejected, RetryReason, RetryScope, Sent, Unavailable, Uncertain
from waypost.domain.phone_number import read_phone_number
from waypost.operators.contract import OperatorUpload

NUMBER = APP.phone_number_id


async def open_window(line: Line) -> InboundEvent:
    """Ann writes, so that she may be written to."""
    await line.stand_in.write(ANN, "Hello?")
    return await line.heard(InboundEvent)


async def submitted(line: Line, **more: Any) -> Sent:
    """A template that the operator has."""
    outcome = await line.adapter.submit_template(line.account, template(**more), {})
    assert isinstance(outcome, Sent), outcome
    return outcome


async def ask(line: Line, request: OperatorCall[Response]) -> Response:
    """The response of a direct call."""
    response = await line.adapter.call(line.account, request)
    assert not isinstance(response, (Rejected, Unavailable, Uncertain, NotOffered)), response
    return response


async def test_message_is_taken_and_its_statuses_carry_our_id(line: Line) -> None:
    await open_window(line)

    outcome = await line.adapter.send(line.account, APP, message(), template=None, reply_to=None, copies={})

    assert isinstance(outcome, Sent)
    assert outcome.recipient == ANN
    delivered = await line.heard(StatusEvent, lambda one: one.state is MessageState.DELIVERED)
    assert delivered.message_id == id_number(1)
    assert delivered.operator_message_id == outcome.operator_id
    assert delivered.recipient == ANN
    assert line.unsigned == 0


async def test_what_a_recipient_writes_is_read_with_its_sender(line: Line) -> None:
    event = await open_window(line)

    assert (event.kind, event.sender, event.phone_number_id) == ("text", ANN, NUMBER)
    assert event.text("body") == "Hello?"


async def test_template_handed_in_twice_is_the_same_one(line: Line) -> None:
    first = await submitted(line)

    second = await submitted(line)

    assert second.operator_id == first.operator_id
    review = await line.heard(ReviewEvent)
    assert (review.operator_template_id, review.status) == (first.operator_id, "APPROVED")
    assert review.at_s > 0


async def test_template_is_sent_and_a_wrong_one_refused(line: Line) -> None:
    stored = template()
    await submitted(line)
    await line.heard(ReviewEvent)

    async def send(number: int, *params: str) -> object:
        wish = message(number, TemplateSend(stored.id, params))
        return await line.adapter.send(line.account, APP, wish, template=stored, reply_to=None, copies={})

    taken, refused = await send(1, "Ann"), await send(2)

    assert isinstance(taken, Sent)
    assert isinstance(refused, Rejected)
    assert refused.code == 132000


async def test_edit_made_twice_is_made_once(line: Line) -> None:
    first = await submitted(line)
    await line.heard(ReviewEvent)
    edited = template(of=draft(footer="Reply STOP to opt out"), operator_template_id=first.operator_id)

    outcomes = [await line.adapter.edit_template(line.account, edited, {}) for _ in range(2)]

    assert [type(outcome) for outcome in outcomes] == [Sent, Sent]
    shown = await ask(line, GetTemplate(first.operator_id))
    assert (shown.body, shown.footer) == (edited.draft.content, "Reply STOP to opt out")


async def test_template_deleted_twice_is_gone_and_its_other_language_stays(line: Line) -> None:
    first = await submitted(line)
    german = await submitted(line, of=draft(language_code="de"))
    gone = template(operator_template_id=first.operator_id)

    outcomes = [await line.adapter.delete_template(line.account, gone) for _ in range(2)]

    assert [type(outcome) for outcome in outcomes] == [Sent, Sent]
    left = await ask(line, ListTemplates(ACCOUNT.id, TemplateDetail.STATUS))
    assert [one.id for one in left if not one.is_being_deleted] == [german.operator_id]


async def test_template_that_breaks_a_rule_is_rejected_with_words(line: Line) -> None:
    broken = template(of=draft(content="{{1}}", example="Ann"))

    outcome = await line.adapter.submit_template(line.account, broken, {})

    assert isinstance(outcome, Rejected)
    assert len(outcome.text) > 10


@pytest.fixture
def medium(tmp_path: Path) -> tuple[UploadedMedia, Path]:
    """A picture that every operator takes."""
    media, path = picture(tmp_path)
    content = sample("png")
    path.write_bytes(content)
    return replace(media, size_bytes=len(content)), path


async def test_medium_comes_back_as_it_was_uploaded_until_it_is_deleted(
    line: Line, medium: tuple[UploadedMedia, Path]
) -> None:
    uploaded = await line.adapter.upload_media(line.account, APP, *medium)
    assert isinstance(uploaded, OperatorUpload)
    whole = await fetched(line, uploaded.operator_id)

    done = await ask(line, DeleteMedium(uploaded.operator_id, NUMBER))

    assert whole == [medium[1].read_bytes()]
    assert done.success
    [outcome] = await fetched(line, uploaded.operator_id)
    assert isinstance(outcome, Rejected)


async def test_sample_is_what_a_template_can_show(line: Line, medium: tuple[UploadedMedia, Path]) -> None:
    uploaded = await line.adapter.upload_sample(line.account, *medium)
    assert isinstance(uploaded, OperatorUpload)
    shows = draft(template_type="IMAGE", example_media="ours")

    outcome = await line.adapter.submit_template(line.account, template(of=shows), {"ours": uploaded.operator_id})

    assert isinstance(outcome, Sent)


async def test_number_and_business_account_are_those_of_the_app(line: Line) -> None:
    status = await ask(line, GetNumber(NUMBER))
    [number] = await ask(line, ListNumbers(ACCOUNT.id))
    business = await ask(line, GetBusinessAccount(ACCOUNT.id))

    assert status.is_connected
    assert (number.id, read_phone_number(number.display_number)) == (NUMBER, APP.phone_number)
    assert not number.problems
    assert business.namespace == ACCOUNT.namespace
    assert (await ask(line, GetBusinessStatus(ACCOUNT.id))).status == "ACTIVE"


# fmt: off
QUESTIONS: dict[OperatorCall[Any], type[Any]] = {  # calls that only ask, and the types of their responses
    CheckToken():                                      TokenStatus,
    GetProfile(NUMBER):                                BusinessProfile,
    GetComponents(NUMBER):                             RawObject,
    ListBlocked(NUMBER):                               RawObject,
    ListFlows(ACCOUNT.id):                             RawList,
    ListLibrary():                                     RawList,
    ListTemplates(ACCOUNT.id, TemplateDetail.REVIEW):  list,
}
# fmt: on


@pytest.mark.parametrize("request_", QUESTIONS, ids=lambda one: type(one).__name__)
async def test_question_has_a_response_of_its_type_or_is_not_offered(line: Line, request_: OperatorCall[Any]) -> None:
    response = await line.adapter.call(line.account, request_)

    is_offered = type(request_) not in line.case.not_offered
    assert isinstance(response, QUESTIONS[request_] if is_offered else NotOffered)


async def test_webhook_is_subscribed_where_its_handshake_is_answered(line: Line) -> None:
    wrong = line.account.replace_fields(**{line.case.handshake_secret: "wrong"})
    refused = await line.adapter.call(wrong, Subscribe(ACCOUNT.id, line.webhook_url))
    await ask(line, Subscribe(ACCOUNT.id, line.webhook_url))

    assert isinstance(refused, Rejected)
    found = await ask(line, GetSubscription(ACCOUNT.id))
    assert found.is_subscribed
    assert set(found.urls.values()) == {line.webhook_url}
    await ask(line, Unsubscribe(ACCOUNT.id))
    assert not (await ask(line, GetSubscription(ACCOUNT.id))).is_subscribed


async def test_read_receipt_is_taken(line: Line) -> None:
    event = await open_window(line)

    done = await ask(line, MarkRead(NUMBER, event.operator_message_id, typing=True))

    assert done.success


async def test_object_that_is_not_there_is_refused(line: Line) -> None:
    outcome = await line.adapter.call(line.account, GetNumber("9999999999999999"))

    assert isinstance(outcome, Rejected)


async def test_token_that_is_not_taken_lets_the_whole_account_wait(line: Line) -> None:
    account = line.account.replace_fields(**{line.case.credential: "not-ours"})

    outcome = await line.adapter.send(account, APP, message(), template=None, reply_to=None, copies={})

    assert isinstance(outcome, Unavailable)
    assert (outcome.retry_reason, outcome.retry_scope) == (RetryReason.CREDENTIAL, RetryScope.ACCOUNT)


async def test_operator_that_is_not_reached_certainly_has_nothing(line: Line) -> None:
    with refusing_port() as port:
        account = replace(line.account, base_url=f"http://127.0.0.1:{port}")
        outcome = await line.adapter.send(account, APP, message(), template=None, reply_to=None, copies={})

    assert isinstance(outcome, Unavailable)
    assert outcome.retry_reason is RetryReason.NOT_REACHED


async def test_webhook_with_a_wrong_signature_is_nobodys(line: Line) -> None:
    body = b'{"object":"whatsapp_business_account","entry":[]}'
    headers = {"X-Hub-Signature-256": "sha256=" + "0" * 64}

    async with line.http.post(line.webhook_url, data=body, headers=headers) as answer:
        assert answer.status == 401
    assert line.unsigned == 1


async def fetched(line: Line, operator_media_id: str) -> list[object]:
    """The bytes in one piece, or what ended them."""
    parts: AsyncIterator[bytes | Rejected | Unavailable] = line.adapter.fetch_media(
        line.account, operator_media_id, phone_number_id=NUMBER
    )
    content, others = b"", list[object]()
    async for part in parts:
        if isinstance(part, bytes):
            content += part
        else:
            others.append(part)
    return [*([content] if content else []), *others]
