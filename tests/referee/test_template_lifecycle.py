"""The public client looks after templates: lists, filters, edits, pauses, bulk changes, deletes."""

# The client exports its names without saying so, and leaves parts of its own types open.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import datetime

import pytest
from pywa_async.errors import TemplateNotExists, TemplatePaused, WhatsAppError
from pywa_async.types import Pagination
from pywa_async.types import templates as t

from tests.referee.public_client import Arena
from tests.simulator.conftest import ANN

EN, UTILITY = t.TemplateLanguage.ENGLISH_US, t.TemplateCategory.UTILITY


async def make(arena: Arena, name: str, text: str = "", language: t.TemplateLanguage = EN) -> t.CreatedTemplate:
    """A template that the review has approved."""
    body = t.BodyText(text or f"Words of {name}")
    template = t.Template(name=name, language=language, category=UTILITY, components=[body])
    created = await arena.client.create_template(template)
    await arena.hears(t.TemplateStatusUpdate, lambda one: one.template_id == created.id)
    return created


async def test_templates_are_listed_filtered_and_paged(arena: Arena) -> None:
    for name in ("one", "two", "three"):
        await make(arena, name)

    approved = await arena.client.get_templates(statuses=[t.TemplateStatus.APPROVED])
    of_two_states = await arena.client.get_templates(
        statuses=[t.TemplateStatus.APPROVED, t.TemplateStatus.PENDING], categories=[UTILITY], languages=[EN]
    )
    rejected = await arena.client.get_templates(statuses=[t.TemplateStatus.REJECTED])
    named = await arena.client.get_templates(name="two")
    first = await arena.client.get_templates(pagination=Pagination(limit=2))
    second = await first.next()

    assert {one.name for one in approved} == {"one", "two", "three"}
    assert len(of_two_states) == 3
    assert not rejected
    assert [one.name for one in named] == ["two"]
    assert [one.name for one in (*first, *second)] == ["one", "two", "three"]
    assert first.has_next
    assert not second.has_next
    assert (await second.previous())[0].name == "one"
    assert approved.total_count == 3


async def test_template_is_edited_and_reviewed_again(arena: Arena) -> None:
    created = await make(arena, "offer")

    edited = await arena.client.update_template(
        created.id, new_components=[t.BodyText("Other words")], new_message_send_ttl_seconds=600
    )
    details = await arena.client.get_template(created.id)

    assert edited.success
    [body] = details.components
    assert isinstance(body, t.BodyText)
    assert body.text == "Other words"
    assert details.message_send_ttl_seconds == 600
    update = await arena.hears(t.TemplateComponentsUpdate)
    assert (update.template_id, update.template_element) == (created.id, "Other words")


async def test_paused_template_is_told_of_refused_and_let_go_on(arena: Arena) -> None:
    created = await make(arena, "offer")
    await arena.act(f"templates/{created.id}/pause")
    paused = await arena.hears(t.TemplateStatusUpdate, lambda one: one.new_status is t.TemplateStatus.PAUSED)

    with pytest.raises(TemplatePaused):
        await arena.client.send_template(ANN, "offer", EN)
    result = await arena.client.unpause_template(created.id)

    assert paused.template_id == created.id
    assert isinstance(result.success, bool)


async def test_templates_are_deleted_by_id_and_by_name(arena: Arena) -> None:
    english = await make(arena, "offer")
    await make(arena, "offer", "Hut", language=t.TemplateLanguage.GERMAN)

    one = await arena.client.delete_template("offer", template_id=english.id)
    left = await arena.client.get_templates(name="offer")
    rest = await arena.client.delete_template("offer")
    none = await arena.client.get_templates(name="offer")

    assert one.success
    assert [template.language for template in left] == [t.TemplateLanguage.GERMAN]
    assert rest.success
    assert not none
    with pytest.raises(TemplateNotExists):
        await arena.client.send_template(ANN, "offer", EN)


@pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # the client's way of posting
async def test_one_time_code_templates_are_made_in_bulk(arena: Arena) -> None:
    languages = [EN, t.TemplateLanguage.SPANISH, t.TemplateLanguage.FRENCH]
    button = t.OneTapOTPButton(
        supported_apps=[t.OTPSupportedApp(package_name="com.example.app", signature_hash="AbC/def1234")]
    )

    made = await arena.client.upsert_authentication_template(
        name="code", languages=languages, otp_button=button,
        add_security_recommendation=True, code_expiration_minutes=5,
    )  # fmt: skip

    assert len(made) == 3
    listed = await arena.client.get_templates(name="code")
    assert {one.language for one in listed} == set(languages)


async def test_template_is_archived_and_comes_back(arena: Arena) -> None:
    created = await make(arena, "offer")

    away = await arena.client.archive_templates([created.id])
    archived = await arena.client.get_template(created.id)
    back = await arena.client.unarchive_templates([created.id])
    after = await arena.client.get_template(created.id)

    assert list(away.archived) == [created.id]
    assert archived.status is t.TemplateStatus.ARCHIVED
    assert list(back.unarchived) == [created.id]
    assert after.status is t.TemplateStatus.APPROVED


async def test_template_of_the_library_is_taken(arena: Arena) -> None:
    created = await arena.client.create_template(
        t.LibraryTemplate(
            name="collect",
            library_template_name="order_ready_to_collect",
            category=UTILITY,
            language=EN,
            library_template_button_inputs=[t.PhoneNumberButton.library_input(phone_number="+15550001111")],
        )
    )

    details = await arena.client.get_template(created.id)
    assert details.name == "collect"
    assert details.library_template_name == "order_ready_to_collect"


@pytest.mark.parametrize(
    ("body", "subcode"),
    [("{{1}} is here, take it", 2388299), ("So {{1}} {{2}} {{3}} ok", 2388293), ("x" * 1025, 2388040)],
)
async def test_refused_template_says_which_rule_it_breaks(arena: Arena, body: str, subcode: int) -> None:
    values = ["a", "b", "c"][: body.count("{{")]
    template = t.Template(name="bad", language=EN, category=UTILITY, components=[t.BodyText(body, *values)])

    with pytest.raises(WhatsAppError) as refused:
        await arena.client.create_template(template)

    assert (refused.value.code, refused.value.subcode) == (100, subcode)
    assert refused.value.user_title
    assert refused.value.user_msg


async def test_rejected_template_is_told_with_its_reason(arena: Arena) -> None:
    await arena.act("settings", {"review_delay_ms": None}, method="PUT")
    template = t.Template(name="bad", language=EN, category=UTILITY, components=[t.BodyText("Words")])
    created = await arena.client.create_template(template)

    await arena.act(f"templates/{created.id}/reject", {"explanation": "Too short."})

    update = await arena.hears(t.TemplateStatusUpdate)
    assert update.new_status is t.TemplateStatus.REJECTED
    assert update.reason is t.TemplateRejectionReason.INVALID_FORMAT
    assert update.rejection_info is not None
    assert update.rejection_info.reason == "Too short."


async def test_quality_and_category_are_told(arena: Arena) -> None:
    created = await make(arena, "offer")

    await arena.act(f"templates/{created.id}/quality", {"score": "YELLOW"})
    await arena.act(f"templates/{created.id}/category", {"category": "MARKETING", "announced": True})
    await arena.act(f"templates/{created.id}/category", {"category": "MARKETING"})

    quality = await arena.hears(t.TemplateQualityUpdate)
    assert (quality.template_id, quality.new_quality_score) == (created.id, t.QualityScoreType.YELLOW)
    announced = await arena.hears(t.TemplateCategoryUpdate, lambda one: one.correct_category is not None)
    assert announced.correct_category is t.TemplateCategory.MARKETING
    done = await arena.hears(t.TemplateCategoryUpdate, lambda one: one.correct_category is None)
    assert done.new_category is t.TemplateCategory.MARKETING


async def test_every_act_on_a_template_is_told_in_a_status_the_client_knows(arena: Arena) -> None:
    created = await make(arena, "offer")
    acts = ("flag", "pause", "unpause", "disable")

    for act in acts:
        await arena.act(f"templates/{created.id}/{act}")

    await arena.hears(t.TemplateStatusUpdate, lambda one: one.new_status is t.TemplateStatus.DISABLED)
    told = [one for one in arena.heard if isinstance(one, t.TemplateStatusUpdate)]
    assert len(told) == len(acts) + 1
    assert t.TemplateStatus.UNKNOWN not in {one.new_status for one in told}
    assert told[-1].timestamp.tzinfo is datetime.UTC
