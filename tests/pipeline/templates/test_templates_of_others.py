"""Templates that were made, edited or deleted at the operator by somebody else."""

from typing import Any

import pytest

from tests.support.builders import ACCOUNT, APP, OPERATOR, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.template_requests import is_idle, read_template

THEIR_TEXT = "Your order {{1}} has left our house today."


def text(body: str, *samples: str) -> dict[str, Any]:
    return {"type": "BODY", "text": body, **({"example": {"body_text": [list(samples)]}} if samples else {})}


def buttons(*members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "BUTTONS", "buttons": list(members)}


MEDIUM = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::handle"]}}
REPLY = {"type": "QUICK_REPLY", "text": "Yes"}
# fmt: off
EVERY_KIND: dict[str, tuple[str, list[dict[str, Any]], str, str]] = {  # category, components, our type, our text
    "header_and_buttons": ("UTILITY", [
        {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}", "example": {"header_text": ["4711"]}},
        text("Hi {{1}}, it is on its way to you.", "Ann"), {"type": "FOOTER", "text": "Acme"},
        buttons(REPLY, {"type": "URL", "text": "Track", "url": "https://shop.example/{{1}}", "example": ["https://shop.example/7"]},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"})],
        "TEXT", "Order {{1}}\nHi {{1}}, it is on its way to you.\nAcme | [Yes] | [Track,https://shop.example/{{1}}] | [Call,+15550001111]"),
    "image": ("MARKETING", [MEDIUM, text("Look at our new coats for the winter.")],
              "IMAGE", "Look at our new coats for the winter."),
    "location": ("UTILITY", [{"type": "HEADER", "format": "LOCATION"}, text("Your parcel waits for you here.")],
                 "LOCATION", "Your parcel waits for you here."),
    "offer": ("MARKETING", [
        MEDIUM, text("The coats are half the price today."),
        {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Until noon", "has_expiration": True}},
        buttons({"type": "COPY_CODE", "example": "COAT50"},
                {"type": "URL", "text": "Shop", "url": "https://shop.example/coats"})],
        "IMAGE", "The coats are half the price today.\nUntil noon | true | [Copy offer code,{{1}}] | [Shop,https://shop.example/coats]"),
    "code": ("AUTHENTICATION", [
        {"type": "BODY", "add_security_recommendation": True}, {"type": "FOOTER", "code_expiration_minutes": 5},
        buttons({"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy code"})],
        "TEXT", "*{{1}}* is your verification code. For your security, do not share this code."),
    "catalogue": ("MARKETING", [text("Our whole catalogue, for you to browse."),
                  buttons({"type": "CATALOG", "text": "View catalog"})],
                  "CATALOG", "Our whole catalogue, for you to browse. | [View catalog]"),
    "cards": ("MARKETING", [text("Three things that you may like, {{1}}.", "Ann"), {"type": "CAROUSEL", "cards": [
        {"components": [MEDIUM, text(f"Coat number {n} of this winter."), buttons(REPLY)]} for n in (1, 2)]}],
        "CAROUSEL", "Three things that you may like, {{1}}."),
}
# fmt: on


async def test_name_that_the_operator_has_with_another_text_is_rejected_and_not_adopted(
    pipeline: PipelineHarness,
) -> None:
    theirs = await create_at_operator(pipeline)

    ours = await pipeline.create_template()

    callback = await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="rejected"))
    assert "another template of this name and language" in callback["payload"]["rejectedReason"]
    record = await read_template(pipeline, ours["id"])
    assert record["status"] == "REJECTED"
    assert "externalId" not in record
    await delete_template(pipeline, ours["id"])
    await poll_until(lambda: is_idle(pipeline))
    assert [listed["id"] for listed in await list_at_operator(pipeline)] == [theirs]


async def test_name_that_the_operator_has_with_our_text_is_the_one_that_was_submitted_before(
    pipeline: PipelineHarness,
) -> None:
    theirs = await create_at_operator(pipeline, content="Hi {{1}}, shall we come today?", example="Ann")
    await poll_until(lambda: list_at_operator(pipeline), lambda listed: listed[0]["status"] == "APPROVED")

    ours = await pipeline.create_template()

    await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="approved"))
    assert (await read_template(pipeline, ours["id"]))["externalId"] == theirs
    assert len(await list_at_operator(pipeline)) == 1


async def test_edit_of_a_template_whose_name_is_taken_does_not_overwrite_the_other_one(
    pipeline: PipelineHarness,
) -> None:
    await create_at_operator(pipeline)
    ours = await pipeline.create_template()
    await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="rejected"))

    path = f"/partner/app/{APP.id}/templates/{ours['id']}"
    response = await pipeline.send_request("PUT", path, {"footer": "Acme"}, {"Authorization": pipeline.app_token})
    assert response.status == 200
    await pipeline.sink.wait_for(is_event("template-event", id=ours["id"], status="rejected"), count=2)

    [listed] = await list_at_operator(pipeline)
    assert THEIR_TEXT in str(listed["components"])


async def test_synchronisation_brings_what_others_have_made_edited_and_deleted(pipeline: PipelineHarness) -> None:
    edited = await pipeline.approved_template()
    await pipeline.approved_template(elementName="gone", content="This one is going away soon.", example="This one is")
    await poll_until(lambda: is_idle(pipeline))
    by_name = {listed["name"]: listed["id"] for listed in await list_at_operator(pipeline)}
    body = {"type": "BODY", "text": THEIR_TEXT, "example": {"body_text": [["4711"]]}}
    await call_operator(pipeline, by_name["greeting"], {"components": [body]})
    theirs = await create_at_operator(pipeline, name="made_elsewhere", content="Made elsewhere for {{1}}, as it is.")
    await poll_until(lambda: is_idle(pipeline))
    await delete_at_operator(pipeline, "gone", by_name["gone"])

    await synchronise(pipeline)

    records = {record["elementName"]: record for record in await list_records(pipeline)}
    assert records.keys() == {"greeting", "made_elsewhere"}
    assert records["greeting"]["id"] == edited
    assert records["greeting"]["data"] == THEIR_TEXT
    assert records["made_elsewhere"]["externalId"] == theirs
    await pipeline.events_of(await pipeline.send(records["made_elsewhere"]["id"], params=["Ann"]), until="delivered")
    assert "Made elsewhere for Ann" in str(await pipeline.inbox())


@pytest.mark.parametrize("name", EVERY_KIND)
async def test_template_of_any_kind_is_found_and_is_the_same_when_it_is_synchronised_again(
    make_pipeline: Any, name: str
) -> None:
    pipeline = await make_pipeline(simulator_changes={"check_references": False, "strict": False})
    category, components, template_type, data = EVERY_KIND[name]
    template = {"name": name, "language": "pt_BR", "category": category, "components": components}
    theirs = (await call_operator(pipeline, f"{ACCOUNT.id}/message_templates", template))["id"]
    await synchronise(pipeline)
    [found] = await list_records(pipeline)

    await synchronise(pipeline)

    assert await list_records(pipeline) == [found]
    members = (found["externalId"], found["languageCode"], found["category"], found["templateType"])
    assert members == (theirs, "pt_BR", category, template_type)
    assert found["data"].startswith(data)


async def test_foreign_template_replaces_ours_of_its_name_that_was_never_accepted(pipeline: PipelineHarness) -> None:
    theirs = await create_at_operator(pipeline)
    ours = await pipeline.create_template()
    await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="rejected"))
    await poll_until(lambda: is_idle(pipeline))

    await synchronise(pipeline)

    [found] = await list_records(pipeline)
    assert found["id"] != ours["id"]
    await pipeline.wait_for_callback(is_event("template-event", id=ours["id"], status="deleted"))
    assert (found["externalId"], found["status"], found["data"]) == (theirs, "APPROVED", THEIR_TEXT)


async def test_edit_at_the_operator_is_seen_without_a_synchronisation(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    [listed] = await list_at_operator(pipeline)
    body = {"type": "BODY", "text": THEIR_TEXT, "example": {"body_text": [["4711"]]}}

    await call_operator(pipeline, listed["id"], {"components": [body]})

    await poll_until(lambda: read_template(pipeline, template_id), lambda record: record["data"] == THEIR_TEXT)


async def synchronise(pipeline: PipelineHarness) -> None:
    await poll_until(lambda: is_reviewed(pipeline))
    await poll_until(lambda: is_idle(pipeline))
    path = f"/partner/app/{APP.id}/template/sync"
    response = await pipeline.send_request("GET", path, headers={"Authorization": pipeline.app_token})
    assert response.status == 202, response


async def is_reviewed(pipeline: PipelineHarness) -> bool:
    """Return True if the operator has decided on every template."""
    return all(listed["status"] != "PENDING" for listed in await list_at_operator(pipeline))


async def list_records(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the app's templates, as the partner sees them."""
    path = f"/partner/app/{APP.id}/templates"
    response = await pipeline.send_request("GET", path, headers={"Authorization": pipeline.app_token})
    return response.body["templates"]


async def delete_at_operator(pipeline: PipelineHarness, name: str, operator_id: str) -> None:
    """Delete a template with the Graph API, whose webhook is lost."""
    url = f"{pipeline.operator_url}/v25.0/{ACCOUNT.id}/message_templates?name={name}&hsm_id={operator_id}"
    async with pipeline.http.delete(url, headers={"Authorization": f"Bearer {OPERATOR['token']}"}) as response:
        assert response.status == 200


async def create_at_operator(
    pipeline: PipelineHarness, *, content: str = THEIR_TEXT, example: str = "4711", **members: Any
) -> str:
    """Create a template with the Graph API, as another tool does; return the operator's id."""
    body = {"type": "BODY", "text": content, "example": {"body_text": [[example]]}}
    template = {"name": "greeting", "language": "en_US", "category": "UTILITY", "components": [body], **members}
    created = await call_operator(pipeline, f"{ACCOUNT.id}/message_templates", template)
    return created["id"]


async def call_operator(pipeline: PipelineHarness, path: str, body: Any) -> dict[str, Any]:
    """Post to the Graph API."""
    url, headers = f"{pipeline.operator_url}/v25.0/{path}", {"Authorization": f"Bearer {OPERATOR['token']}"}
    async with pipeline.http.post(url, json=body, headers=headers) as response:
        content = await response.json()
        assert response.status == 200, content
        return content


async def list_at_operator(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the operator's templates."""
    return (await pipeline.control("GET", "templates"))["templates"]


async def delete_template(pipeline: PipelineHarness, template_id: str) -> None:
    path = f"/partner/app/{APP.id}/template/greeting/{template_id}"
    response = await pipeline.send_request("DELETE", path, headers={"Authorization": pipeline.app_token})
    assert response.status == 200, response
