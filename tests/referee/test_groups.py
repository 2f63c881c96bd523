"""The public client creates, reads, changes and deletes groups, and receives what is written in them."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import pytest
from pywa_async import types
from pywa_async.errors import WhatsAppError

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN
from tests.support.media_samples import SAMPLES


async def test_group_is_created_read_changed_and_deleted(harness: ClientHarness) -> None:
    created = await harness.client.create_group(subject=" Hats ", description="Hats of all kinds")
    [listed] = (await harness.bench.control("GET", "groups")).body["groups"]
    group_id = listed["group_id"]
    link = await harness.client.get_group_invite_link(group_id)
    new_link = await harness.client.reset_group_invite_link(group_id)
    await harness.bench.control("POST", f"phones/{ANN}/groups", {"invite_link": new_link.link})
    group = await harness.client.get_group(group_id)
    await harness.client.update_group_settings(
        group_id, subject="Caps", description="Caps only", profile_picture=SAMPLES["jpeg"]
    )
    changed = await harness.client.get_group(group_id)
    await harness.client.remove_group_participants(group_id, [ANN])
    emptied = await harness.client.get_group(group_id)
    await harness.client.delete_group(group_id)

    assert created.request_id
    assert link.link == listed["invite_link"] != new_link.link
    assert (group.subject, group.description, group.suspended) == ("Hats", "Hats of all kinds", False)
    assert group.join_approval_mode.value == "auto_approve"
    assert [participant.wa_id for participant in group.participants] == [ANN]
    assert (changed.subject, changed.description) == ("Caps", "Caps only")
    assert emptied.total_participant_count == 0
    with pytest.raises(WhatsAppError):
        await harness.client.get_group(group_id)


async def test_message_and_statuses_of_a_group_are_received(harness: ClientHarness) -> None:
    await harness.client.create_group(subject="Hats")
    [group] = (await harness.bench.control("GET", "groups")).body["groups"]
    group_id = group["group_id"]
    await harness.control(f"phones/{ANN}/groups", {"invite_link": group["invite_link"]})

    written = await harness.control(f"phones/{ANN}/groups/{group_id}/messages", {"text": "Any hats?"})
    message = await harness.wait_for_update(types.Message, lambda update: update.id == written["wamid"])
    sent = await harness.client.send_message(group_id, "Many")
    delivered = await harness.wait_for_update(
        types.groups.GroupMessageStatuses,
        lambda update: any(status.status == types.MessageStatusType.DELIVERED for status in update.statuses),
    )

    assert message.text == "Any hats?"
    assert message.from_user.wa_id == ANN
    assert delivered.group_id == group_id
    assert {status.id for status in delivered.statuses} == {sent.id}


async def test_requests_to_join_are_listed_approved_and_rejected(harness: ClientHarness) -> None:
    client = harness.client
    await client.create_group(subject="Hats", join_approval_mode=types.groups.GroupJoinApprovalMode.APPROVAL_REQUIRED)
    [group] = (await harness.bench.control("GET", "groups")).body["groups"]
    group_id = group["group_id"]
    for phone in (ANN, "15557654321"):
        await harness.control(f"phones/{phone}/groups", {"invite_link": group["invite_link"]})

    first, second = await client.get_group_join_requests(group_id)
    approved = await first.approve()
    rejected = await second.reject()
    shown = await client.get_group(group_id)

    assert (first.user.wa_id, second.user.wa_id) == (ANN, "15557654321")
    assert approved.request_id
    assert rejected.request_id
    assert shown.join_approval_mode.value == "approval_required"
    assert [participant.wa_id for participant in shown.participants] == [ANN]
    assert list(await client.get_group_join_requests(group_id)) == []
