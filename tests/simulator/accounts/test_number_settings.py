"""Stored settings of a number: commerce settings, public key, calling and other settings."""

from typing import Any

import pytest

from tests.simulator.conftest import NUMBER_ID, Bench
from tests.support.flow_keys import PUBLIC_KEY

SHOP = f"{NUMBER_ID}/whatsapp_commerce_settings"
ENCRYPTION = f"{NUMBER_ID}/whatsapp_business_encryption"
SETTINGS = f"{NUMBER_ID}/settings"


async def test_commerce_settings_are_stored_and_shown(bench: Bench) -> None:
    before = await bench.graph("GET", SHOP)
    await bench.graph("POST", f"{SHOP}?is_catalog_visible=true")
    await bench.restart()
    after = await bench.graph("GET", SHOP)

    assert before.body["data"][0]["is_catalog_visible"] is False
    assert after.body["data"] == [{"is_catalog_visible": True, "is_cart_enabled": True, "id": NUMBER_ID}]


async def test_public_key_is_stored_and_shown(bench: Bench) -> None:
    await bench.graph("POST", ENCRYPTION, json={"business_public_key": PUBLIC_KEY})

    shown = await bench.graph("GET", ENCRYPTION)
    assert shown.body["business_public_key"] == PUBLIC_KEY
    assert shown.body["business_public_key_signature_status"] == "VALID"


async def test_settings_are_stored_and_shown(bench: Bench) -> None:
    await bench.graph("POST", SETTINGS, json={"calling": {"status": "ENABLED"}})
    await bench.graph("POST", SETTINGS, json={"user_identity_change": {"enable": True}})

    shown = await bench.graph("GET", SETTINGS)
    calling = await bench.graph("GET", f"{SETTINGS}?fields=calling")
    assert shown.body == {
        "calling": {"status": "ENABLED"}, "user_identity_change": {"enable": True},
    }  # fmt: skip
    assert calling.body == {"calling": {"status": "ENABLED"}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SHOP, {}),
        (SHOP, {"is_cart_enabled": "perhaps"}),
        (ENCRYPTION, {"business_public_key": "abc"}),
        (ENCRYPTION, {"business_public_key": "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----"}),
        (SETTINGS, {}),
        (SETTINGS, {"calling": 1}),
    ],
)
async def test_invalid_setting_is_rejected(bench: Bench, path: str, body: dict[str, Any]) -> None:
    rejected = await bench.graph("POST", path, json=body)

    assert (rejected.status, rejected.error["code"]) == (400, 100)
