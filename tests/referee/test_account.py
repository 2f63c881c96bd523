"""The public client reads and changes what belongs to accounts and numbers."""

# The client exports its names without saying so, and leaves parts of its own types open.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import pytest
from pywa_async import types
from pywa_async.errors import AuthorizationError, WhatsAppError

from tests.referee.public_client import VERIFY_TOKEN, Arena, Redirected, make_client
from tests.simulator.conftest import ANN, ANN_USER_ID, APP, BUSINESS, NUMBER_ID, SECRET, WABA
from tests.support.media_samples import SAMPLES


async def test_account_is_read_whole(arena: Arena) -> None:
    account = await arena.client.get_business_account()

    assert (account.id, account.name) == (WABA, "One")
    assert account.message_template_namespace == "58e6d318_b627_4112_b9c7_2961197553ea"


async def test_numbers_are_read_whole_and_listed(arena: Arena) -> None:
    number = await arena.client.get_business_phone_number()
    listed = await arena.client.get_business_phone_numbers()

    assert (number.id, number.verified_name) == (NUMBER_ID, "Shop One")
    assert [one.id for one in listed] == [NUMBER_ID]
    assert [one.display_phone_number for one in listed] == [number.display_phone_number]


async def test_profile_is_changed_and_read_back(arena: Arena) -> None:
    changed = await arena.client.update_business_profile(
        about="Hats",
        address="Main pipeline 1",
        description="Hats of all kinds",
        email="hats@example.com",
        industry=types.Industry.RETAIL,
        websites=["https://hats.example/", "https://more.example/"],
        profile_picture=SAMPLES["png"],
    )
    profile = await arena.client.get_business_profile()

    assert changed.success
    assert (profile.about, profile.address, profile.email) == ("Hats", "Main pipeline 1", "hats@example.com")
    assert (profile.description, profile.industry) == ("Hats of all kinds", types.Industry.RETAIL)
    assert tuple(profile.websites or ()) == ("https://hats.example/", "https://more.example/")
    assert profile.profile_picture_url


async def test_ice_breakers_and_commands_are_set_and_read_back(arena: Arena) -> None:
    changed = await arena.client.update_conversational_automation(
        ice_breakers=["What is new?"], commands=[types.Command("hats", "Shows hats")]
    )
    number = await arena.client.get_business_phone_number()

    assert changed.success
    assert number.conversational_automation is not None
    assert number.conversational_automation.ice_breakers == ("What is new?",)
    assert [one.name for one in number.conversational_automation.commands or ()] == ["hats"]


async def test_commerce_settings_are_set_and_read_back(arena: Arena) -> None:
    changed = await arena.client.update_commerce_settings(is_catalog_visible=True, is_cart_enabled=False)
    settings = await arena.client.get_commerce_settings()

    assert changed.success
    assert (settings.is_catalog_visible, settings.is_cart_enabled) == (True, False)


@pytest.mark.parametrize("user", [ANN, ANN_USER_ID])
async def test_user_is_blocked_listed_and_unblocked(arena: Arena, user: str) -> None:
    await arena.phone_says(text="Hi")

    blocked = await arena.client.block_users([user])
    listed = await arena.client.get_blocked_users()
    unblocked = await arena.client.unblock_users([user])
    after = await arena.client.get_blocked_users()

    assert [one.input for one in blocked.added_users] == [user]
    assert [one.wa_id for one in listed] == [ANN]
    assert [one.input for one in unblocked.removed_users] == [user]
    assert not list(after)


async def test_webhooks_of_the_account_go_elsewhere_and_back(arena: Arena) -> None:
    moved = await arena.client.override_waba_callback_url(arena.server.uri, VERIFY_TOKEN)
    shown = await arena.client.get_business_account()
    back = await arena.client.delete_waba_callback_url()

    assert moved.success
    assert shown.subscribed_apps is not None
    assert back.success


async def test_webhooks_of_the_number_go_elsewhere_and_back(arena: Arena) -> None:
    moved = await arena.client.override_phone_callback_url(arena.server.uri, VERIFY_TOKEN)
    shown = await arena.client.get_business_phone_number()
    back = await arena.client.delete_phone_callback_url()

    assert moved.success
    assert shown.webhook_configuration == {"phone_number": arena.server.uri, "application": arena.server.uri}
    assert back.success


async def test_key_of_flow_endpoints_is_set(arena: Arena) -> None:
    done = await arena.client.set_business_public_key("-----BEGIN PUBLIC KEY-----\nA\n-----END PUBLIC KEY-----")

    assert done.success


async def test_webhook_address_with_another_verify_token_is_refused(arena: Arena) -> None:
    with pytest.raises(WhatsAppError) as refused:
        await arena.client.override_waba_callback_url(arena.server.uri, "another")

    assert refused.value.code == 2200


async def test_number_is_deregistered_and_registered(arena: Arena) -> None:
    left = await arena.client.deregister_phone_number()
    with pytest.raises(WhatsAppError) as refused:
        await arena.client.send_message(ANN, "Hello")
    back = await arena.client.register_phone_number(123456)

    assert left.success
    assert refused.value.code == 133010
    assert back.success
    await arena.client.send_message(ANN, f"From {BUSINESS}")


async def test_code_that_was_not_sent_does_not_verify_a_number(arena: Arena) -> None:
    asked = await arena.client.request_verification_code(code_method="SMS", language_code="en_US")

    with pytest.raises(WhatsAppError) as refused:
        await arena.client.verify_phone_number("no code")

    assert asked.success
    assert refused.value.code == 100


async def test_wrong_token_is_an_authorization_error(arena: Arena) -> None:
    async with Redirected(arena.bench.base) as transport:
        client = make_client(transport, token="nobody's")

        with pytest.raises(AuthorizationError) as refused:
            await client.get_business_account()

    assert refused.value.code == 190


async def test_client_registers_its_webhook_with_the_app(arena: Arena) -> None:
    """As it does by itself at its start, when it is given an address."""
    token = await arena.client.get_app_access_token(int(APP), SECRET)

    done = await arena.client.set_app_callback_url(int(APP), token, arena.server.uri, VERIFY_TOKEN, ["messages"])

    assert done.success
    await arena.phone_says(text="Hi")
    assert (await arena.hears(types.Message)).text == "Hi"
