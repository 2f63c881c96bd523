"""What journeys share besides the street itself."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import pytest

from tests.support.file_server import FileServer
from tests.support.stores import ENGINES
from tests.support.street import Street
from tests.support.third_version import ThirdVersion, listening

# fmt: off
IN_WORDS_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "test_account_news.py":         ("test_who_stops_marketing_is_told_as_a_preference_and_as_a_user",),
    "test_callback_versions.py":    ("test_failure_before_the_operator_has_it_is_told_in_both_versions",
                                     "test_message_is_billed_once_whatever_its_statuses_say",
                                     "test_paused_subscription_hears_nothing_new_and_loses_nothing_old",
                                     "test_events_are_held_back_as_long_as_set_after_a_message_was_accepted"),
    "test_carousel.py":             ("test_carousel_without_postback_texts_calls_back_the_label",),
    "test_catalog_and_product.py":  ("test_catalog_template_opens_the_catalogue",),
    "test_choices.py":              ("test_long_postback_text_is_told_whole_in_both_versions",
                                     "test_flow_of_a_template_is_sent_filled_in_and_told"),
    "test_conversations.py":        ("test_texts_to_one_phone_arrive_in_the_order_in_which_they_were_sent",),
    "test_fleets.py":               ("test_thousand_a_second_is_kept_and_everything_comes_back",),
    "test_flow_templates.py":       ("test_flow_template_is_sent_like_any_other_by_both_apis",),
    "test_inbound_kinds.py":        ("test_reply_is_told_in_version_3_with_all_its_ids_and_its_sender",
                                     "test_recipient_with_another_number_is_told_as_a_mismatch",
                                     "test_sender_without_a_number_is_named_by_its_business_scoped_id"),
    "test_lto_and_authentication.py": ("test_offer_that_ends_shows_its_end_and_its_code",),
    "test_media.py":                ("test_inbound_image_is_there_after_a_restart",
                                     "test_whoever_asks_early_waits_until_the_bytes_are_here",
                                     "test_template_waits_for_an_operator_that_is_down",
                                     "test_many_messages_with_one_medium_need_one_upload",
                                     "test_message_waits_its_turn_while_its_medium_is_uploaded",
                                     "test_message_whose_upload_is_cut_off_by_a_stop_is_not_uncertain",
                                     "test_sweep_removes_what_is_over_and_keeps_what_others_need"),
    "test_odd_operator.py":         ("test_template_behind_a_broken_gateway_is_handed_in_until_it_gets_through",
                                     "test_sync_deletes_by_a_whole_list_of_several_pages",
                                     "test_ready_template_whose_answer_was_lost_is_ours_when_it_is_asked_for_again"),
    "test_operator_codes.py":       ("test_failed_status_fails_the_message_with_the_operators_code",
                                     "test_refusal_that_is_final_fails_the_message_with_the_code_of_its_row",
                                     "test_account_with_a_new_token_sends_within_seconds"),
    "test_operator_limits.py":      ("test_messages_wait_where_messages_are_limited_and_each_goes_once",),
    "test_postback_texts.py":       ("test_tapped_button_calls_back_with_its_postback_text",),
    "test_samples.py":              ("test_several_handles_of_ours_get_the_operators_a_line_each",),
    "test_sending.py":              ("test_passthrough_of_a_reaction_reacts_to_our_own_message",),
    "test_session_kinds.py":        ("test_every_kind_of_medium_is_sent_by_its_id",),
    "test_slow_uploads.py":         ("test_upload_that_does_not_succeed_is_tried_again_later",
                                     "test_messages_that_name_a_lost_copy_at_the_same_time_are_all_sent",
                                     "test_slow_uploads_hold_up_neither_other_numbers_nor_their_own"),
    "test_text_and_media.py":       ("test_text_template_with_every_kind_of_button",),
}
# fmt: on
"""Files whose journeys differ in what is said and not in what the store does: those of them on both engines.

All others of such a file are made on SQLite alone. Whatever turns on order, restarts, faults, states,
sequences, or several writers at once is made on both: a file that is not named here is, whole.
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A journey is made once on each engine, but where `IN_WORDS_ONLY` says that one is enough."""
    if "engine" not in metafunc.fixturenames:
        return
    on_both = IN_WORDS_ONLY.get(metafunc.definition.path.name)
    one_is_enough = on_both is not None and metafunc.function.__name__ not in on_both
    metafunc.parametrize("engine", ENGINES[:1] if one_is_enough else ENGINES, indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine this journey is made on."""
    return request.param


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    """A web server with samples of media."""
    files = FileServer()
    await files.open()
    yield files
    await files.close()


@pytest.fixture
async def third(street: Street) -> AsyncIterator[ThirdVersion]:
    """The partner's second receiver, which hears everything of the street in version 3."""
    async with listening(street) as third:
        yield third
