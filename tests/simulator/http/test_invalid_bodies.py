"""Junk sent to the calls for flows, profiles, block lists, ice breakers, uploads and analytics."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.conftest import NUMBER_ID, WABA

PostJunk = Callable[[str, bytes], tuple[int, Any]]

PATHS = (
    f"{WABA}/flows",
    f"{WABA}/message_templates",
    WABA,
    f"{NUMBER_ID}/whatsapp_business_profile",
    f"{NUMBER_ID}/block_users",
    f"{NUMBER_ID}/conversational_automation",
    f"{NUMBER_ID}/media",
    "3000000000000003/uploads",
    "upload:x",
    "message_template_library",
    "whatsapp_business/attachments",
    "flow_assets/1",
    NUMBER_ID,
    f"{NUMBER_ID}/register",
    f"{NUMBER_ID}/request_code",
    f"{NUMBER_ID}/verify_code",
    f"{NUMBER_ID}/settings",
    f"{NUMBER_ID}/whatsapp_commerce_settings",
    f"{NUMBER_ID}/whatsapp_business_encryption",
    f"{WABA}/upsert_message_templates",
    f"{WABA}/message_templates/archive",
    f"{WABA}/message_templates/unarchive",
    "1400000000000004/unpause",
)
MEMBERS = st.sampled_from(
    [
        "name", "categories", "flow_json", "publish", "clone_flow_id", "endpoint_uri",
        "library_template_name", "library_template_button_inputs", "url", "base_url", "phone_number",
        "language", "category", "type", "is_enabled_for_insights", "about", "email", "websites",
        "vertical", "profile_picture_handle", "user", "prompts", "commands", "command_name",
        "command_description", "enable_welcome_message", "file_length", "file_type", "file_name",
        "pin", "code", "code_method", "messaging_product", "webhook_configuration", "hsm_ids",
        "override_callback_uri", "languages", "components", "buttons", "is_cart_enabled",
        "business_public_key", "sub_category", "degrees_of_freedom_spec",
    ]
)  # fmt: skip
KNOWN_VALUES = st.sampled_from(
    ["AUTHENTICATION", "SMS", "123456", "whatsapp", "BODY", "OTHER", "payment_is_due", "en_US", "UTILITY", "URL", "PHONE_NUMBER", "15551234567", "{}",
     "true", "1", "image/jpeg", "RETAIL", "https://a"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | KNOWN_VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=4),
    max_leaves=8,
)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(fields=st.dictionaries(MEMBERS, VALUES, max_size=6), users=st.lists(VALUES, max_size=3))
def test_any_junk_returns_a_response_in_the_documented_shape(
    post_junk: PostJunk, fields: dict[str, Any], users: list[Any]
) -> None:
    body = {"messaging_product": "whatsapp", "block_users": users, **fields}
    raw = json.dumps(body).encode()

    for path in PATHS:
        status, response = post_junk(path, raw)
        assert status in (200, 400, 404), response
        assert status == 200 or response["error"]["fbtrace_id"]
