"""The public client manages templates: lists, filters, edits, pauses, bulk changes, deletes."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import datetime

import pytest
from pywa_async.errors import TemplateNotExists, TemplatePaused, WhatsAppError
from pywa_async.types import Pagination
from pywa_async.types import templates as t

from tests.referee.public_client import ClientHarness
from tests.simulator.conftest import ANN

EN, UTILITY = t.TemplateLanguage.ENGLISH_US, t.TemplateCategory.UTILITY


async def create_approved(
    harness: ClientHarness, name: str, text: str = "", language: t.TemplateLanguage = EN
) -> t.CreatedTemplate:
    """Create a template, and wait for its approval."""
    body = t.BodyText(text or f"Content of {name}")
    template = t.Template(name=name, language=language, category=UTILITY, components=[body])
    created = await harness.client.create_template(template)
    await harness.wait_for_update(t.TemplateStatusUpdate, lambda update: update.template_id == created.id)
    return created


async def test_templates_are_listed_filtered_and_paged(harness: ClientHarness) -> None:
    for name in ("one", "two", "three"):
        await create_approved(harness, name)

    approved = await harness.client.get_templates(statuses=[t.TemplateStatus.APPROVED])
    in_two_states = await harness.client.get_templates(
        statuses=[t.TemplateStatus.APPROVED, t.TemplateStatus.PENDING], categories=[UTILITY], languages=[EN]
    )
    rejected = await harness.client.get_templates(statuses=[t.TemplateStatus.REJECTED])
    named = await harness.client.get_templates(name="two")
    first = await harness.client.get_templates(pagination=Pagination(limit=2))
    second = await first.next()

    assert {template.name for template in approved} == {"one", "two", "three"}
    assert len(in_two_states) == 3
    assert not rejected
    assert [template.name for template in named] == ["two"]
    assert [template.name for template in (*first, *second)] == ["one", "two", "three"]
    assert first.has_next
    assert not second.has_next
    assert (await second.previous())[0].name == "one"
    assert approved.total_count == 3


async def test_template_is_edited_and_reviewed_again(harness: ClientHarness) -> None:
    created = await create_approved(harness, "offer")

    edited = await harness.client.update_template(
        created.id, new_components=[t.BodyText("Other words")], new_message_send_ttl_seconds=600
    )
    details = await harness.client.get_template(created.id)

    assert edited.success
    [body] = details.components
    assert isinstance(body, t.BodyText)
    assert body.text == "Other words"
    assert details.message_send_ttl_seconds == 600
    update = await harness.wait_for_update(t.TemplateComponentsUpdate)
    assert (update.template_id, update.template_element) == (created.id, "Other words")


async def test_paused_template_is_reported_rejected_and_unpaused(harness: ClientHarness) -> None:
    created = await create_approved(harness, "offer")
    await harness.control(f"templates/{created.id}/pause")
    paused = await harness.wait_for_update(
        t.TemplateStatusUpdate, lambda update: update.new_status is t.TemplateStatus.PAUSED
    )

    with pytest.raises(TemplatePaused):
        await harness.client.send_template(ANN, "offer", EN)
    result = await harness.client.unpause_template(created.id)

    assert paused.template_id == created.id
    assert isinstance(result.success, bool)


async def test_templates_are_deleted_by_id_and_by_name(harness: ClientHarness) -> None:
    english = await create_approved(harness, "offer")
    await create_approved(harness, "offer", "Hut", language=t.TemplateLanguage.GERMAN)

    by_id = await harness.client.delete_template("offer", template_id=english.id)
    remaining = await harness.client.get_templates(name="offer")
    by_name = await harness.client.delete_template("offer")
    after = await harness.client.get_templates(name="offer")

    assert by_id.success
    assert [template.language for template in remaining] == [t.TemplateLanguage.GERMAN]
    assert by_name.success
    assert not after
    with pytest.raises(TemplateNotExists):
        await harness.client.send_template(ANN, "offer", EN)


@pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # the client uses a deprecated argument
async def test_one_time_code_templates_are_created_in_bulk(harness: ClientHarness) -> None:
    languages = [EN, t.TemplateLanguage.SPANISH, t.TemplateLanguage.FRENCH]
    button = t.OneTapOTPButton(
        supported_apps=[t.OTPSupportedApp(package_name="com.example.app", signature_hash="AbC/def1234")]
    )

    created = await harness.client.upsert_authentication_template(
        name="code", languages=languages, otp_button=button,
        add_security_recommendation=True, code_expiration_minutes=5,
    )  # fmt: skip

    assert len(created) == 3
    listed = await harness.client.get_templates(name="code")
    assert {template.language for template in listed} == set(languages)


async def test_template_is_archived_and_unarchived(harness: ClientHarness) -> None:
    created = await create_approved(harness, "offer")

    archiving = await harness.client.archive_templates([created.id])
    archived = await harness.client.get_template(created.id)
    unarchiving = await harness.client.unarchive_templates([created.id])
    after = await harness.client.get_template(created.id)

    assert list(archiving.archived) == [created.id]
    assert archived.status is t.TemplateStatus.ARCHIVED
    assert list(unarchiving.unarchived) == [created.id]
    assert after.status is t.TemplateStatus.APPROVED


async def test_template_is_created_from_the_library(harness: ClientHarness) -> None:
    created = await harness.client.create_template(
        t.LibraryTemplate(
            name="collect",
            library_template_name="order_ready_to_collect",
            category=UTILITY,
            language=EN,
            library_template_button_inputs=[t.PhoneNumberButton.library_input(phone_number="+15550001111")],
        )
    )

    details = await harness.client.get_template(created.id)
    assert details.name == "collect"
    assert details.library_template_name == "order_ready_to_collect"


@pytest.mark.parametrize(
    ("body", "subcode"),
    [("{{1}} is here, take it", 2388299), ("So {{1}} {{2}} {{3}} ok", 2388293), ("x" * 1025, 2388040)],
)
async def test_rejected_creation_names_the_broken_rule(harness: ClientHarness, body: str, subcode: int) -> None:
    values = ["a", "b", "c"][: body.count("{{")]
    template = t.Template(name="bad", language=EN, category=UTILITY, components=[t.BodyText(body, *values)])

    with pytest.raises(WhatsAppError) as raised:
        await harness.client.create_template(template)

    assert (raised.value.code, raised.value.subcode) == (100, subcode)
    assert raised.value.user_title
    assert raised.value.user_msg


async def test_rejection_is_received_with_its_reason(harness: ClientHarness) -> None:
    await harness.control("settings", {"review_delay_ms": None}, method="PUT")
    template = t.Template(name="bad", language=EN, category=UTILITY, components=[t.BodyText("Words")])
    created = await harness.client.create_template(template)

    await harness.control(f"templates/{created.id}/reject", {"explanation": "Too short."})

    update = await harness.wait_for_update(t.TemplateStatusUpdate)
    assert update.new_status is t.TemplateStatus.REJECTED
    assert update.reason is t.TemplateRejectionReason.INVALID_FORMAT
    assert update.rejection_info is not None
    assert update.rejection_info.reason == "Too short."


async def test_quality_and_category_changes_are_received(harness: ClientHarness) -> None:
    created = await create_approved(harness, "offer")

    await harness.control(f"templates/{created.id}/quality", {"score": "YELLOW"})
    await harness.control(f"templates/{created.id}/category", {"category": "MARKETING", "announced": True})
    await harness.control(f"templates/{created.id}/category", {"category": "MARKETING"})

    quality = await harness.wait_for_update(t.TemplateQualityUpdate)
    assert (quality.template_id, quality.new_quality_score) == (created.id, t.QualityScoreType.YELLOW)
    announced = await harness.wait_for_update(
        t.TemplateCategoryUpdate, lambda update: update.correct_category is not None
    )
    assert announced.correct_category is t.TemplateCategory.MARKETING
    done = await harness.wait_for_update(t.TemplateCategoryUpdate, lambda update: update.correct_category is None)
    assert done.new_category is t.TemplateCategory.MARKETING


async def test_every_action_on_a_template_is_received_as_a_known_status(harness: ClientHarness) -> None:
    created = await create_approved(harness, "offer")
    actions = ("flag", "pause", "unpause", "disable")

    for action in actions:
        await harness.control(f"templates/{created.id}/{action}")

    await harness.wait_for_update(t.TemplateStatusUpdate, lambda update: update.new_status is t.TemplateStatus.DISABLED)
    updates = [update for update in harness.updates if isinstance(update, t.TemplateStatusUpdate)]
    assert len(updates) == len(actions) + 1
    assert t.TemplateStatus.UNKNOWN not in {update.new_status for update in updates}
    assert updates[-1].timestamp.tzinfo is datetime.UTC
