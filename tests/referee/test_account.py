"""The public client reads and changes accounts and numbers."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import pytest
from pywa_async import types
from pywa_async.errors import AuthorizationError, WhatsAppError

from tests.referee.public_client import VERIFY_TOKEN, ClientHarness, RedirectingTransport, make_client
from tests.simulator.conftest import ANN, ANN_USER_ID, APP, BUSINESS, NUMBER_ID, SECRET, WABA
from tests.support.flow_keys import PUBLIC_KEY
from tests.support.media_samples import SAMPLES


async def test_account_is_read_completely(harness: ClientHarness) -> None:
    account = await harness.client.get_business_account()

    assert (account.id, account.name) == (WABA, "One")
    assert account.message_template_namespace == "58e6d318_b627_4112_b9c7_2961197553ea"


async def test_numbers_are_read_completely_and_listed(harness: ClientHarness) -> None:
    number = await harness.client.get_business_phone_number()
    listed = await harness.client.get_business_phone_numbers()

    assert (number.id, number.verified_name) == (NUMBER_ID, "Shop One")
    assert [listed_number.id for listed_number in listed] == [NUMBER_ID]
    assert [listed_number.display_phone_number for listed_number in listed] == [number.display_phone_number]


async def test_profile_is_changed_and_read_back(harness: ClientHarness) -> None:
    changed = await harness.client.update_business_profile(
        about="Hats",
        address="Main Road 1",
        description="Hats of all kinds",
        email="hats@example.com",
        industry=types.Industry.RETAIL,
        websites=["https://hats.example/", "https://more.example/"],
        profile_picture=SAMPLES["png"],
    )
    profile = await harness.client.get_business_profile()

    assert changed.success
    assert (profile.about, profile.address, profile.email) == ("Hats", "Main Road 1", "hats@example.com")
    assert (profile.description, profile.industry) == ("Hats of all kinds", types.Industry.RETAIL)
    assert tuple(profile.websites or ()) == ("https://hats.example/", "https://more.example/")
    assert profile.profile_picture_url


async def test_ice_breakers_and_commands_are_set_and_read_back(harness: ClientHarness) -> None:
    changed = await harness.client.update_conversational_automation(
        ice_breakers=["What is new?"], commands=[types.Command("hats", "Shows hats")]
    )
    number = await harness.client.get_business_phone_number()

    assert changed.success
    assert number.conversational_automation is not None
    assert number.conversational_automation.ice_breakers == ("What is new?",)
    assert [command.name for command in number.conversational_automation.commands or ()] == ["hats"]


async def test_commerce_settings_are_set_and_read_back(harness: ClientHarness) -> None:
    changed = await harness.client.update_commerce_settings(is_catalog_visible=True, is_cart_enabled=False)
    settings = await harness.client.get_commerce_settings()

    assert changed.success
    assert (settings.is_catalog_visible, settings.is_cart_enabled) == (True, False)


@pytest.mark.parametrize("user", [ANN, ANN_USER_ID])
async def test_user_is_blocked_listed_and_unblocked(harness: ClientHarness, user: str) -> None:
    await harness.send_from_phone(text="Hi")

    blocked = await harness.client.block_users([user])
    listed = await harness.client.get_blocked_users()
    unblocked = await harness.client.unblock_users([user])
    after = await harness.client.get_blocked_users()

    assert [added.input for added in blocked.added_users] == [user]
    assert [listed_user.wa_id for listed_user in listed] == [ANN]
    assert [removed.input for removed in unblocked.removed_users] == [user]
    assert not list(after)


async def test_username_is_chosen_from_suggestions_and_deleted(harness: ClientHarness) -> None:
    suggestions = await harness.client.get_reserved_usernames()
    reserved = await harness.client.set_username(suggestions[0])
    current = await harness.client.get_current_username()
    deleted = await harness.client.delete_username()
    later = await harness.client.get_reserved_usernames()

    assert suggestions == ("shopone", "shop_one", "shop.one", "shop_one_official")
    assert (reserved.username, reserved.status.value) == ("shopone", "reserved")
    assert (current.username, current.status) == ("shopone", reserved.status)
    assert deleted
    assert later == suggestions


async def test_username_that_breaks_a_rule_is_rejected(harness: ClientHarness) -> None:
    with pytest.raises(WhatsAppError) as raised:
        await harness.client.set_username("www.shop")

    assert raised.value.code == 100


async def test_display_name_is_requested(harness: ClientHarness) -> None:
    assert await harness.client.update_display_name("Shop Number One")


async def test_webhook_url_of_the_account_is_overridden_and_restored(harness: ClientHarness) -> None:
    overridden = await harness.client.override_waba_callback_url(harness.server.uri, VERIFY_TOKEN)
    shown = await harness.client.get_business_account()
    restored = await harness.client.delete_waba_callback_url()

    assert overridden.success
    assert shown.subscribed_apps is not None
    assert restored.success


async def test_webhook_url_of_the_number_is_overridden_and_restored(harness: ClientHarness) -> None:
    overridden = await harness.client.override_phone_callback_url(harness.server.uri, VERIFY_TOKEN)
    shown = await harness.client.get_business_phone_number()
    restored = await harness.client.delete_phone_callback_url()

    assert overridden.success
    assert shown.webhook_configuration == {"phone_number": harness.server.uri, "application": harness.server.uri}
    assert restored.success


async def test_key_of_flow_endpoints_is_set(harness: ClientHarness) -> None:
    done = await harness.client.set_business_public_key(PUBLIC_KEY)

    assert done.success


async def test_webhook_url_with_another_verify_token_is_rejected(harness: ClientHarness) -> None:
    with pytest.raises(WhatsAppError) as raised:
        await harness.client.override_waba_callback_url(harness.server.uri, "another")

    assert raised.value.code == 2200


async def test_number_is_deregistered_and_registered(harness: ClientHarness) -> None:
    deregistered = await harness.client.deregister_phone_number()
    with pytest.raises(WhatsAppError) as raised:
        await harness.client.send_message(ANN, "Hello")
    registered = await harness.client.register_phone_number(123456)

    assert deregistered.success
    assert raised.value.code == 133010
    assert registered.success
    await harness.client.send_message(ANN, f"From {BUSINESS}")


async def test_code_that_was_not_sent_does_not_verify_a_number(harness: ClientHarness) -> None:
    requested = await harness.client.request_verification_code(code_method="SMS", language_code="en_US")

    with pytest.raises(WhatsAppError) as raised:
        await harness.client.verify_phone_number("no code")

    assert requested.success
    assert raised.value.code == 100


async def test_wrong_token_is_an_authorization_error(harness: ClientHarness) -> None:
    async with RedirectingTransport(harness.bench.base) as transport:
        client = make_client(transport, token="nobody's")

        with pytest.raises(AuthorizationError) as raised:
            await client.get_business_account()

    assert raised.value.code == 190


async def test_client_registers_its_webhook_with_the_app(harness: ClientHarness) -> None:
    """The client does this itself when it starts with a callback URL."""
    token = await harness.client.get_app_access_token(int(APP), SECRET)

    done = await harness.client.set_app_callback_url(int(APP), token, harness.server.uri, VERIFY_TOKEN, ["messages"])

    assert done.success
    await harness.send_from_phone(text="Hi")
    assert (await harness.wait_for_update(types.Message)).text == "Hi"
