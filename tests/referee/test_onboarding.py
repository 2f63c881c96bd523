"""The public client adds a number, lists the accounts of a business, and keeps in-app signups."""

# The client does not declare its exports, and leaves parts of its types unknown.
# pyright: reportPrivateImportUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import pytest
from pywa.types.others import Pagination, SignupStatus
from pywa_async.errors import WhatsAppError

from tests.referee.public_client import ClientHarness, RedirectingTransport, make_client
from tests.simulator.conftest import ANN, APP, SECRET, WABA
from waypost.simulator.state.accounts import partner_id

PRIVACY = "https://hats.example/privacy"


async def test_number_is_added_verified_registered_and_sends(harness: ClientHarness) -> None:
    client = harness.client
    created = await client.create_phone_number(
        country_calling_code="1", phone_number="555 000-4444", verified_name="Second shop"
    )
    await client.request_verification_code(code_method="SMS", language_code="en", phone_id=created.id)
    shown = await harness.control(f"numbers/{created.id}/registration", method="GET")
    await client.verify_phone_number(code=shown["code"], phone_id=created.id)
    with pytest.raises(WhatsAppError) as early:
        await client.send_message(ANN, "Hello", sender=created.id)
    registered = await client.register_phone_number(pin="123456", phone_id=created.id)
    await harness.send_from_phone(text="Hi", to="15550004444")
    sent = await client.send_message(ANN, "Hello", sender=created.id)

    number = await client.get_business_phone_number(phone_id=created.id)
    assert early.value.code == 133010
    assert registered.success
    assert (number.verified_name, number.display_phone_number) == ("Second shop", "+1 555-000-4444")
    assert (await harness.phone_message(sent.id))["text"] == "Hello"


async def test_code_of_the_window_becomes_a_token_that_registers_and_sends(harness: ClientHarness) -> None:
    session = await harness.control("onboarding/play", {"app_id": APP})
    number_id, code = session["phone_number_id"], session["code"]
    exchanged = await harness.client.api.get_business_access_token(int(APP), SECRET, code)
    with pytest.raises(WhatsAppError) as again:
        await harness.client.api.get_business_access_token(int(APP), SECRET, code)

    async with RedirectingTransport(harness.bench.base) as transport:
        client = make_client(transport, token=exchanged["access_token"])
        [number] = await client.get_business_phone_numbers(waba_id=session["waba_id"])
        await client.register_phone_number(pin="123456", phone_id=number_id)
        await harness.send_from_phone(text="Hi", to=session["phone_number"])
        sent = await client.send_message(ANN, "Hello", sender=number_id)

    assert (number.id, again.value.code) == (number_id, 100)
    assert (await harness.phone_message(sent.id))["text"] == "Hello"


async def test_number_of_the_business_app_is_shown_as_such_and_not_deregistered(harness: ClientHarness) -> None:
    extras = {"version": "v4", "setup": {}, "feature_type": "whatsapp_business_app_onboarding"}
    session = await harness.control("onboarding/play", {"app_id": APP, "extras": extras})
    exchanged = await harness.client.api.get_business_access_token(int(APP), SECRET, session["code"])

    async with RedirectingTransport(harness.bench.base) as transport:
        client = make_client(transport, token=exchanged["access_token"])
        [number] = await client.get_business_phone_numbers(waba_id=session["waba_id"])
        with pytest.raises(WhatsAppError) as refused:
            await client.deregister_phone_number(phone_id=session["phone_number_id"])

    assert (number.id, number.is_on_biz_app) == (session["phone_number_id"], True)
    assert refused.value.code == 100


async def test_accounts_of_a_business_are_listed(harness: ClientHarness) -> None:
    account = await harness.client.get_business_account()
    assert account.owner_business_info is not None

    shared = await harness.client.get_shared_business_accounts(
        business_portfolio_id=partner_id(APP), pagination=Pagination(limit=1)
    )
    owned = await harness.client.get_owned_business_accounts(business_portfolio_id=account.owner_business_info.id)

    assert [listed.id for listed in shared] == [WABA]
    assert [listed.name for listed in owned] == [account.name]


async def test_signup_is_created_listed_changed_and_disabled(harness: ClientHarness) -> None:
    client = harness.client
    created = await client.create_signup(
        message="Hats for less",
        confirmation_message="Your code: {{promo_code}}",
        privacy_policy_url=PRIVACY,
        promo_code="HATS10",
        accept_policy=True,
    )
    second = await client.create_signup(
        message="More hats", confirmation_message="Thank you", privacy_policy_url=PRIVACY, display_name="two"
    )
    listed = await client.get_signups()
    read = await client.get_signup(created.id)
    changed = await client.update_signup(created.id, status=SignupStatus.DISABLED, promo_code="HATS20")
    after = await client.get_signup(created.id)

    assert {signup.id for signup in listed} == {created.id, second.id}
    assert (read.waba_id, read.status, read.message) == (WABA, SignupStatus.ACTIVE, "Hats for less")
    assert (read.privacy_policy_url, read.promo_code, read.display_name) == (PRIVACY, "HATS10", None)
    assert changed.success
    assert (after.status, after.promo_code, after.message) == (SignupStatus.DISABLED, "HATS20", "Hats for less")
