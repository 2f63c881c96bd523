"""Junk sent to every route in the tables of the Graph and control APIs: never a 5xx."""

import asyncio
import copy
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.simulator.conftest import ANN, APP, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA
from tests.simulator.http.test_invalid_members import member_paths
from tests.support.flow_json import one_screen_flow
from tests.support.flow_keys import PUBLIC_KEY
from waypost.base.clock import ClockSetting, VirtualClock
from waypost.base.ids import SeededIds
from waypost.base.time_travel import TimeTravel
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings
from waypost.simulator.accounts.signups import Signup
from waypost.simulator.flows.model import Flow
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.media.model import SimulatedMedia
from waypost.simulator.media.uploads import UploadSession
from waypost.simulator.messages.marketing import SimulatedAd
from waypost.simulator.onboarding.model import AppPartner, CreditAllocation
from waypost.simulator.onboarding.preverified import PreverifiedNumber
from waypost.simulator.serving.control_api import CALLS as ALL_CALLS
from waypost.simulator.serving.graph_routes import ROOT_ROUTES, ROUTES
from waypost.simulator.state.accounts import Account, Business, GraphApp, Number, partner_id
from waypost.simulator.state.embedded_signup import SCREENS
from waypost.simulator.templates.nodes import AD_PREFIX
from waypost.simulator.templates.template import SimulatedTemplate

CALLS: Final = [call for call in ALL_CALLS if not call[1].startswith("/control/partners")]
"""The calls of a simulator alone: tests/dev/test_partners.py has those about partners, which need a service."""
TEMPLATE: Final = "1400000000000004"
HEADERS: Final = {
    "control": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    "graph": [(b"authorization", f"Bearer {TOKEN}".encode()), (b"content-type", b"application/json")],
}
FLOW_TEXT: Final = json.dumps(
    one_screen_flow(
        {"type": "TextInput", "name": "name", "label": "Name"},
        {"type": "EmbeddedLink", "text": "Read", "on-click-action": {"name": "open_url", "url": "https://a.example"}},
        {
            "type": "RadioButtonsGroup",
            "name": "color",
            "label": "Color",
            "data-source": [{"id": "red", "title": "Red"}, {"id": "blue", "title": "Blue"}],
        },
    )
)
FORM: Final = b"multipart/form-data; boundary=x"

JUNK: Final[list[Any]] = [
    None, True, -1, 2**63, 10**30, -1.5, 1e300, "", "x", "0", "٣", "\x00", "a" * 5000, [], {}, [[]], [{}],
    [None], {"type": {}}, {"x": [1]},
]  # fmt: skip
BODIES: Final = [
    b"", b"{", b"null", b"[]", b"7", b'"x"', b"\xff\xfe", b'{"a":"\\ud800"}', b"[" * 3000, b'{"name":1e999}',
    b"a=%ff&a=1&=", b'{"name":' + b"9" * 5000 + b"}", b'--x\r\ncontent-disposition: form-data; name="file"; filename="\xff"\r\n\r\n\x00\r\n--x--',
]  # fmt: skip
QUERIES: Final = [
    b"", b"limit=-1&after=x&before=%ff", b"fields=" + b"a{" * 500, b"fields=,,.&limit=99999999999999999999",
    b"wait_ms=x&after=%D9%A3&limit=%D9%A3", b"hsm_id[]=1&name=%00", b"start=x&end=-1&granularity=x",
    b"access_token=x&input_token=%ff", b"languages=%5B&category=x&button_types=%7B", b"mid=x&hash=%00",
    b"hub.mode=subscribe&grant_type=x&client_id=x&client_secret=", b"to=%ff&callback_data=%00",
]  # fmt: skip
SHARED_ID: Final = "2000000000000003"
"""The number that is shared with the business app."""
NAMES: Final = {
    "{phone}": [ANN, "x", "٣" * 10, "9" * 400],
    "{name}": ["crowd", "x", "%2e%2e"],
    "{template_id}": [TEMPLATE, "x"],
    "{action}": ["pause", "x"],
    "{waba_id}": [WABA, "x", "9" * 33],
    "{phone_number_id}": [NUMBER_ID, "x"],
    "{app_id}": [APP, "x"],
    "{config_id}": ["7", "x"],
    "{version}": ["2.1", "x"],
}
SCREEN_OF_STEP: Final = {"sign-in": "sign_in", "send": "code", "finish": "done", "close": "terms", "fail": "terms"}
"""The screens that calls of an onboarding session are for, unless they have the name of their screen."""
MESSAGE: Final = {"messaging_product": "whatsapp", "to": f"+{ANN}", "biz_opaque_callback_data": "x"}
TAPPED: Final = {"type": "reply", "reply": {"id": "a", "title": "Yes"}}
BUTTONS: Final = {"type": "button", "body": {"text": "Well?"}, "action": {"buttons": [TAPPED]}}
FORM_SENT: Final = {
    "type": "address_message",
    "body": {"text": "Where?"},
    "action": {"name": "address_message", "parameters": {"country": "IN"}},
}
ORDER_SENT: Final = {
    "type": "order_details",
    "body": {"text": "Yours"},
    "action": {"name": "review_and_pay", "parameters": {
        "reference_id": "o-1", "type": "digital-goods", "currency": "INR", "total_amount": {"value": 100, "offset": 100},
    }},
}  # fmt: skip
BODY: Final = {"type": "BODY", "text": "Hello {{1}}, how are you", "example": {"body_text": [["A"]]}}
STEP: Final = {"on": "button", "do": "tap", "after_ms": [5, 9], "probability": 0.5, "times": 2, "index": 0}
FAULT: Final = {
    "on": "call", "call": "messages.send", "waba_id": "1", "number": "1", "phone": ANN, "template": "x",
    "when": {"every": 3}, "what": {"error": 131000, "status": 500, "details": "x", "retry_after_s": 3},
    "label": "x", "until_ms": 2**52, "seed": 3,
}  # fmt: skip
PHONE_SETTINGS: Final = {
    "deliver_after_ms": 0, "read_after_ms": None, "condition": "", "sends_read_receipts": True,
    "has_chat_open": True, "script": [STEP], "seed": 4,
}  # fmt: skip
WINDOW: Final = {
    "config_id": "7", "extras": {"version": "v4", "setup": {"solutionID": "x"}, "features": [{"name": "x"}]},
    "redirect_uri": "https://x", "state": "x", "falls_back": True, "order": "callback_first", "message_delay_ms": 5,
    "callback_delay_ms": None, "origin": "https://web.facebook.com", "breaks": ["name_declined"],
}  # fmt: skip
# fmt: off
EXAMPLES: Final[dict[str, Any]] = {  # one valid body for each route that accepts one
    "/control/settings":             {"review_delay_ms": 0, "deliver_after_ms": 0, "batch_at_most": 5, "gather_ms": 0,
                                      "calls_per_hour": None, "statuses_version": "v24", "user_ids": True, "strict": True,
                                      "messaging_limit_code": 130429, "throttle_status": 429, "templates_at_most": 100},
    "/control/reset":                {},
    "/control/clock/advance":        {"ms": 5},
    "/control/clock/freeze":         {},
    "/control/clock/run":            {"factor": 2.0},
    "/control/snapshots":            {"name": "one"},
    "/control/snapshots/{name}/load": {},
    "/control/faults":               {"faults": [FAULT], "seed": 1},
    "/control/accounts/{waba_id}":   {"name": "One", "token": TOKEN, "app_id": APP, "app_secret": SECRET, "namespace": "x"},
    "/control/accounts/{waba_id}/direct-send": {"access": "RESTRICTED"},
    "/control/accounts/{waba_id}/marketing-messages": {"status": "ONBOARDED"},
    "/control/accounts/{waba_id}/retry": {},
    "/control/accounts/{waba_id}/webhooks": {"field": "account_update", "value": {"event": "x", "more": {}}},
    "/control/numbers/{phone_number_id}/names": {},
    "/control/accounts/{waba_id}/payment-configurations/{name}": {"status": "Active"},
    "/control/phones/{phone}/calls": {"to": BUSINESS, "sdp": "v=0"},
    "/control/phones/{phone}/groups": {"invite_link": "INVITE_LINK"},
    "/control/phones/{phone}/groups/{group_id}/messages": {"type": "text", "text": "x"},
    "/control/phones/{phone}/groups/{group_id}/read": {},
    "/control/statuses":             {"message_id": "WAMID", "status": "failed", "code": 1, "title": "x", "details": "x",
                                      "names_recipient": True, "recipient_user_id": "US.1349"},
    "/control/numbers/{phone_number_id}": {"waba_id": WABA, "phone_number": BUSINESS, "name": "x", "throughput": 5},
    "/control/apps/{app_id}": {"app_secret": "of-another"},
    "/control/apps/{app_id}/webhook": {"callback_uri": "", "verify_token": "x"},
    "/control/phones/{phone}":       {"name": "x", "user_id": "US.1349", "username": "x", "shows_number": False,
                                      "is_offline": False, **PHONE_SETTINGS},
    "/control/phones/{phone}/messages": {"to": BUSINESS, "type": "location", "text": None, "forwarded": True,
                                      "location": {"latitude": 1, "longitude": 2, "name": "x"}, "context_id": "WAMID",
                                      "referred_product": {"catalog_id": "1", "product_retailer_id": "2"},
                                      "referral": {"source_url": "http://a", "source_type": "ad"}},
    "/control/phones/{phone}/pay":   {"message_id": "ORDER", "status": "captured", "code": "C", "reason": "R"},
    "/control/phones/{phone}/tap":   {"message_id": "WAMID", "index": 0, "card": None, "not_requested": False},
    "/control/phones/{phone}/respond": {"message_id": "FORM", "response": {"a": "b"}},
    "/control/phones/{phone}/number": {"to": "15557778888"},
    "/control/phones/{phone}/user-id": {"to": "US.7778888"},
    "/control/phones/{phone}/marketing": {"to": BUSINESS, "wants": False},
    "/control/phones/{phone}/block": {"to": BUSINESS, "blocks": True},
    "/control/phones/{phone}/report": {"to": BUSINESS, "message_id": "WAMID", "blocks": True},
    "/control/phones/{phone}/read":  {"message_id": "WAMID"},
    "/control/fleets":               {"name": "other", "first": "15554000000", "count": 9, "open_window_to": BUSINESS, **PHONE_SETTINGS},
    "/control/templates/{template_id}/approve": {},
    "/control/templates/{template_id}/reject": {"reason": "SCAM", "explanation": "x", "recommendation": "x"},
    "/control/templates/{template_id}/quality": {"score": "RED"},
    "/control/templates/{template_id}/category": {"category": "MARKETING", "announced": True, "due_ms": 5},
    "/control/templates/{template_id}/delete": {},
    "/control/templates/{template_id}/pace": {"for_ms": 5, "verdict": "drop"},
    "/control/templates/{template_id}/release": {},
    "/control/templates/{template_id}/drop": {},
    "/control/templates/{template_id}/{action}": {"reason": "x", "title": "x", "description": "x"},
    "/control/media":                {"to": BUSINESS, "mime_type": "text/plain", "content": "eA==", "file_name": "x"},
    "/control/media/{media_id}/expire": {},
    "/control/handles/expire":       {"handle": "4::x"},
    "/control/numbers/{phone_number_id}/status": {"quality_rating": "RED", "messaging_limit": "TIER_250", "name_status": "x",
                                      "status": "x"},
    "/control/numbers/{phone_number_id}/sending-restriction": {"name": "LOCKED", "for_ms": 5},
    "/control/numbers/{phone_number_id}/recipients": {"phones": [ANN]},
    "/control/numbers/{phone_number_id}/upgrade": {"throughput": 5},
    "/control/numbers/{phone_number_id}/business-app/connect": {"app_version": "2.24.17", "shares_history": False},
    "/control/numbers/{phone_number_id}/business-app": {"app_version": "2.24.17", "shares_history": False,
                                      "is_offline": False, "sync": {"chunk_messages": 5, "contacts_per_webhook": 5,
                                      "order": "shuffled", "duplicates": 0.5, "lowercase_statuses": True,
                                      "marks_own": True, "declines_without_envelope": True, "seed": "x"}},
    "/control/numbers/{phone_number_id}/business-app/disconnect": {"reason": "CHANGE_NUMBER", "initiated_by": "USER"},
    "/control/numbers/{phone_number_id}/business-app/companions": {"kind": "web"},
    "/control/numbers/{phone_number_id}/business-app/companions/{companion_id}": {"is_offline": True},
    "/control/numbers/{phone_number_id}/business-app/contacts/{phone}": {"full_name": "x", "first_name": "x"},
    "/control/numbers/{phone_number_id}/business-app/history": {"messages": [{"phone": ANN, "is_own": True, "at_ms": 5,
                                      "type": "location", "location": {"latitude": 1, "longitude": 1},
                                      "status": "READ"}]},
    "/control/numbers/{phone_number_id}/business-app/history/generate": {"messages": 5, "threads": 2, "days": 5,
                                      "media_share": 0.5, "unsupported_share": 0.1, "first_phone": "15557000000",
                                      "seed": "x"},
    "/control/numbers/{phone_number_id}/business-app/messages": {"to": ANN, "type": "location", "text": "x",
                                      "location": {"latitude": 1, "longitude": 1}, "context_id": "APP_MESSAGE",
                                      "companion_id": "COMPANION"},
    "/control/numbers/{phone_number_id}/business-app/messages/{wamid}/edit": {"text": "x"},
    "/control/numbers/{phone_number_id}/business-app/messages/{wamid}/revoke": {},
    "/control/phones/{phone}/messages/{wamid}/edit": {"text": "x"},
    "/control/phones/{phone}/messages/{wamid}/revoke": {},
    "/control/phones/{phone}/identity": {"hash": "x"},
    "/control/flows/{flow_id}/status": {"status": "BLOCKED"},
    "/control/flows/{flow_id}/exchanges": {"action": "INIT", "screen": "A", "data": {"a": 1}, "flow_token": "t"},
    "/control/flow-versions/{version}": {"frozen_ms": 5, "expired_ms": 10},
    "/control/flow-sessions":        {"flow_json": FLOW_TEXT, "flow_token": "x", "flow_action": "navigate", "screen": "START",
                                      "data": {"x": 1}},
    "/control/flow-sessions/{session_id}/steps": {"steps": [{"fill": {"name": "x"}}, {"refresh": True}, {"tap": "Read"},
                                      {"choose": {"color": "red"}}]},
    "/control/phones/{phone}/flow":  {"message_id": "FLOW_SENT", "restart": True},
    "/control/phones/{phone}/flow/steps": {"message_id": "FLOW_SENT", "steps": [{"fill": {"name": "x"}},
                                      {"refresh": True}]},
    "/control/onboarding/people":    {"name": "x", "error_code": 4612001},
    "/control/onboarding/businesses": {"name": "x", "person_ids": ["PERSON"], "is_verified": True, "email": "x",
                                      "website": "x", "country": "US", "error_code": 1752089},
    "/control/onboarding/business-app-numbers/{phone}": {"name": "x", "error_code": 3441045},
    "/control/onboarding/configurations/{config_id}": {"app_id": APP, "products": ["cloud_api"], "token_days": 60},
    "/control/onboarding/apps/{app_id}/addresses": {"allowed_domains": ["x.example"],
                                                    "redirect_uris": ["https://x.example/"]},
    "/control/onboarding/partners/{app_id}": {"is_verified": True, "has_credit_line": True},
    "/control/onboarding/accounts/{waba_id}": {"business_id": "BUSINESS", "is_on_behalf_of": True},
    "/control/onboarding/sessions":  {"app_id": APP, **WINDOW},
    "/control/onboarding/play":      {"app_id": APP, **WINDOW, "business": {"name": "x", "website": "https://x"},
                                      "number": "new", "phone_number": "12025550123", "assets": {"page_ids": ["1"]},
                                      "stop_at": "code", "stop": "fail", "error_code": 2388091},
    "/control/onboarding/sessions/{session_id}/sign-in": {"person_id": "PERSON", "name": "x"},
    "/control/onboarding/sessions/{session_id}/terms": {},
    "/control/onboarding/sessions/{session_id}/business": {"new": {"name": "x", "email": "x"}},
    "/control/onboarding/sessions/{session_id}/account": {"name": "x", "number": "new"},
    "/control/onboarding/sessions/{session_id}/profile": {"name": "x"},
    "/control/onboarding/sessions/{session_id}/number": {"phone_number": "2025550123", "country_code": "1",
                                      "display_name": "x", "category": "x", "timezone_id": "1"},
    "/control/onboarding/sessions/{session_id}/code/send": {"method": "VOICE"},
    "/control/onboarding/sessions/{session_id}/code": {"code": "SIGNUP_CODE"},
    "/control/onboarding/sessions/{session_id}/permissions": {"assets": {}},
    "/control/onboarding/sessions/{session_id}/finish": {},
    "/control/onboarding/sessions/{session_id}/close": {},
    "/control/onboarding/sessions/{session_id}/fail": {"code": 2655091, "ends": True},
    "/control/onboarding/sessions/{session_id}/report": {},
    "/control/tokens":               {"waba_ids": [WABA], "token": "x", "expires_in_ms": 5,
                                      "permissions": ["whatsapp_business_messaging"]},
    "/control/tokens/expire":        {"token": TOKEN},
    "/control/tokens/revoke":        {"token": TOKEN},
}
SIGNUP: Final = {
    "signup_message": "Hats?",
    "confirmation_message": "Hats! {{promo_code}}",
    "privacy_policy_url": "https://a.example/privacy",
    "promo_code": "HATS",
    "display_name": "x",
    "website_url": "https://a.example",
    "policy": {"tos": "https://a.example/terms", "accepted": True},
}
GRAPH_EXAMPLES: Final[dict[tuple[type, str], Any]] = {
    (Number, "messages"):                  {**MESSAGE, "type": "interactive", "interactive": BUTTONS},
    (Number, ""):                          {"pin": "123456", "webhook_configuration": {"override_callback_uri": ""}},
    (Number, "register"):                  {"messaging_product": "whatsapp", "pin": "123456"},
    (Number, "request_code"):              {"code_method": "SMS", "language": "en_US"},
    (Number, "verify_code"):               {"code": "123456"},
    (Number, "settings"):                  {"calling": {"status": "ENABLED"}},
    (Number, "whatsapp_commerce_settings"): {"is_cart_enabled": True, "is_catalog_visible": False},
    (Number, "whatsapp_business_encryption"): {"business_public_key": PUBLIC_KEY},
    (Number, "whatsapp_business_profile"): {"messaging_product": "whatsapp", "about": "x", "websites": ["https://a.example"]},
    (Number, "calls"):                     {"messaging_product": "whatsapp", "action": "accept", "call_id": "CALL_ID",
                                            "session": {"sdp_type": "answer", "sdp": "v=0"}},
    (Number, "message_qrdls"):             {"prefilled_message": "x", "generate_qr_image": "SVG"},
    (Number, "message_qrdls/{}"):         {"prefilled_message": "x"},
    (Number, "groups"):                    {"messaging_product": "whatsapp", "subject": "x", "description": "x"},
    (Account, "payment_configuration"):    {"configuration_name": "x", "provider_name": "x", "redirect_url": "x"},
    (Account, "generate_payment_configuration_oauth_link"): {"configuration_name": "crowd", "redirect_url": "x"},
    (Number, "payments_refund"):           {"reference_id": "x", "speed": "instant", "payment_config_id": "crowd",
                                            "amount": {"currency": "INR", "value": 1, "offset": 100}},
    (SimulatedGroup, "join_requests"):     {"messaging_product": "whatsapp", "join_requests": ["x"]},
    (SimulatedGroup, ""):                  {"messaging_product": "whatsapp", "subject": "x"},
    (Number, "block_users"):               {"messaging_product": "whatsapp", "block_users": [{"user": ANN}]},
    (Number, "conversational_automation"): {"prompts": ["x"], "commands": [{"command_name": "x", "command_description": "x"}]},
    (Account, ""):                         {"is_enabled_for_insights": True},
    (Account, "message_templates"):        {"name": "x", "language": "en_US", "category": "UTILITY", "components": [BODY]},
    (Account, "message_templates/archive"): {"hsm_ids": [TEMPLATE]},
    (Account, "message_templates/unarchive"): {"hsm_ids": [TEMPLATE]},
    (Account, "upsert_message_templates"): {"name": "x", "languages": ["en_US"], "category": "AUTHENTICATION",
                                            "components": [{"type": "BODY", "add_security_recommendation": True},
                                                           {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}]},
    (Account, "signups"):                  SIGNUP,
    (Signup, ""):                          {"status": "ACTIVE", "promo_code": "HATS", "website_url": "https://a.example"},
    (Account, "phone_numbers"):            {"country_code": "1", "phone_number": "5550009999", "verified_name": "x"},
    (Account, "subscribed_apps"):          {"override_callback_uri": "", "verify_token": "x"},
    (Account, "assigned_users"):           {"user": "x", "tasks": ["MANAGE"]},
    (Account, "set_solution_migration_intent"): {"app_id": APP, "solution_id": "1"},
    (AppPartner, "whatsapp_credit_sharing_and_attach"): {"waba_id": WABA, "waba_currency": "USD"},
    (Business, "add_phone_numbers"):       {"phone_number": "+1 555 000 8888"},
    (PreverifiedNumber, "request_code"):   {"code_method": "SMS", "language": "en_US"},
    (PreverifiedNumber, "verify_code"):    {"code": "123456"},
    (Business, "system_user_access_tokens"): {"system_user_id": "x", "appsecret_proof": "x", "fetch_only": True},
    (Account, "flows"):                    {"name": "x", "categories": ["OTHER"], "flow_json": "{}", "publish": False},
    (Account, "migrate_flows"):            {"source_waba_id": "1", "source_flow_names": ["x"]},
    (SimulatedTemplate, ""):                        {"category": "UTILITY", "components": [BODY]},
    (GraphApp, "uploads"):                      {"file_length": 5, "file_type": "image/png", "file_name": "a"},
    (GraphApp, "subscriptions"):                {"object": "whatsapp_business_account", "callback_url": "", "verify_token": "x"},
    (Flow, ""):                            {"name": "x", "categories": ["OTHER"], "endpoint_uri": "https://a.example"},
}
# fmt: on
UNKNOWN_IDS: Final = ["1", "x", "-1", "9" * 400, "\x00"]


class SimulatorClient:
    """A client that calls the simulator's application without a socket, seeded with one object of each type.

    Args:
        folder: of its files.
        seeded: a closed client whose files were copied to the folder; None: the objects are created.
    """

    def __init__(self, folder: Path, seeded: "SimulatorClient | None" = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        if seeded is not None:  # the time at which its objects were valid
            self.clock.apply(ClockSetting(seeded.clock.now_ms(), self.clock.setting.machine_ms, 1))
        travel = TimeTravel(self.clock)
        settings = SimulatorSettings(folder / "simulator.sqlite3", limits=False, deliver_after_ms=0)
        ids = SeededIds(self.clock, "seeded" if seeded is None else "junk")
        self._simulator = Simulator(settings, self.clock, ids, travel=travel)
        travel.sides = (self._simulator,)
        self.ids: dict[type, str] = {} if seeded is None else seeded.ids
        self.messages: dict[str, str] = {} if seeded is None else seeded.messages
        self.sessions: dict[str, str] = {} if seeded is None else seeded.sessions
        self.loop.run_until_complete(self._open() if seeded is None else self._simulator.open())

    def request(
        self, api: str, method: str, path: str, *, query: bytes = b"", body: bytes = b"", content_type: bytes = b""
    ) -> tuple[int, bytes]:
        """Send one request and return its status and body."""
        return self.loop.run_until_complete(self._request(api, method, path, query, body, content_type))

    def close(self) -> None:
        """Close the simulator, and freeze its clock."""
        self.loop.run_until_complete(self._simulator.close())
        self.clock.apply(ClockSetting(self.clock.now_ms(), self.clock.setting.machine_ms, 0))
        self.loop.close()

    async def _open(self) -> None:
        simulator = self._simulator
        await simulator.open()
        account = AccountSeed(WABA, "One", "", TOKEN, APP, SECRET, "v", "")
        await simulator.seed(account, [NumberSeed(NUMBER_ID, WABA, BUSINESS, "Shop One")])
        await simulator.seed_template(
            waba_id=WABA, template_id=TEMPLATE, name="seeded", language="en_US", category="MARKETING",
            components=[{"type": "BODY", "text": "Hello {{1}}, how are you", "example": {"body_text": "A"}}],
        )  # fmt: skip
        wamid = await simulator.send_phone_text(phone=ANN, to=BUSINESS, text="Hi")
        media_id = await simulator.save_inbound_media(to=BUSINESS, content=b"x", mime_type="text/plain")
        flow = {"name": "one", "categories": ["OTHER"]}
        _, created_flow = await self._request("graph", "POST", f"/v25.0/{WABA}/flows", b"", json.dumps(flow).encode())
        query = b"file_length=5&file_type=image/png&file_name=a"
        _, upload = await self._request("graph", "POST", f"/v25.0/{APP}/uploads", query)
        self.messages = {
            "OWN": wamid,
            **await self._share_number(),
            "WAMID": await self._send_interactive(BUTTONS),
            "FORM": await self._send_interactive(FORM_SENT),
            "ORDER": await self._send_interactive(ORDER_SENT),
        }
        crowd = {"name": "crowd", "first": "15553000000", "count": 5}
        await self._request("control", "POST", "/control/fleets", b"", json.dumps(crowd).encode())
        group = json.dumps({"messaging_product": "whatsapp", "subject": "Tea"}).encode()
        await self._request("graph", "POST", f"/v25.0/{NUMBER_ID}/groups", b"", group)
        _, groups = await self._request("graph", "GET", f"/v25.0/{NUMBER_ID}/groups")
        [group_id] = [listed["id"] for listed in json.loads(groups)["data"]]
        _, link = await self._request("graph", "GET", f"/v25.0/{group_id}/invite_link")
        self.messages["INVITE_LINK"] = json.loads(link)["invite_link"]
        join = json.dumps({"invite_link": self.messages["INVITE_LINK"]}).encode()
        await self._request("control", "POST", f"/control/phones/{ANN}/groups", b"", join)
        calling = json.dumps({"calling": {"status": "ENABLED"}}).encode()
        await self._request("graph", "POST", f"/v25.0/{NUMBER_ID}/settings", b"", calling)
        call = json.dumps({"to": BUSINESS}).encode()
        _, called = await self._request("control", "POST", "/control/phones/15557654321/calls", b"", call)
        self.messages["CALL_ID"] = json.loads(called)["call_id"]
        configuration = json.dumps({"configuration_name": "crowd", "provider_name": "x"}).encode()
        await self._request("graph", "POST", f"/v25.0/{WABA}/payment_configuration", b"", configuration)
        await self._onboard()
        signup_body = json.dumps(SIGNUP).encode()
        _, signup = await self._request("graph", "POST", f"/v25.0/{WABA}/signups", b"", signup_body)
        self.messages["FLOW_SENT"] = await self._send_flow()
        opened = json.dumps({"message_id": self.messages["FLOW_SENT"]}).encode()
        await self._request("control", "POST", f"/control/phones/{ANN}/flow", b"", opened)
        preview = json.dumps({"flow_json": FLOW_TEXT}).encode()
        _, preview = await self._request("control", "POST", "/control/flow-sessions", b"", preview)
        self.messages["FLOW_PREVIEW"] = json.loads(preview)["session_id"]
        self.ids = {
            Account: WABA, Number: NUMBER_ID, GraphApp: APP, SimulatedTemplate: TEMPLATE, SimulatedMedia: media_id,
            Flow: json.loads(created_flow)["id"], SimulatedGroup: group_id, UploadSession: json.loads(upload)["id"],
            SimulatedAd: f"{AD_PREFIX}{TEMPLATE}",
            AppPartner: self.messages["CREDIT_LINE"], CreditAllocation: self.messages["ALLOCATION"],
            PreverifiedNumber: self.messages["PREVERIFIED"], Business: partner_id(APP), Signup: f"signups/{json.loads(signup)['id']}",
        }  # fmt: skip

    async def _send_flow(self) -> str:
        """Publish a flow and send it; return the message's id."""
        flow = {"name": "played", "categories": ["OTHER"], "flow_json": FLOW_TEXT}
        _, created = await self._request("graph", "POST", f"/v25.0/{WABA}/flows", b"", json.dumps(flow).encode())
        flow_id = json.loads(created)["id"]
        await self._request("graph", "POST", f"/v25.0/{flow_id}/publish")
        parameters = {"flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Book"}
        return await self._send_interactive(
            {"type": "flow", "body": {"text": "x"}, "action": {"name": "flow", "parameters": parameters}}
        )

    async def _share_number(self) -> dict[str, str]:
        """Connect the app of a second number, and return its linked device and its message."""
        app = f"/control/numbers/{SHARED_ID}/business-app"
        number = {"waba_id": WABA, "phone_number": "15550003333", "name": "Shop Two"}
        await self._request("control", "PUT", f"/control/numbers/{SHARED_ID}", b"", json.dumps(number).encode())
        await self._request("control", "POST", f"{app}/connect", b"", b"{}")
        _, companion = await self._request("control", "POST", f"{app}/companions", b"", b"{}")
        message = json.dumps({"to": ANN, "text": "x"}).encode()
        _, sent = await self._request("control", "POST", f"{app}/messages", b"", message)
        return {"COMPANION": json.loads(companion)["companion_id"], "APP_MESSAGE": json.loads(sent)["wamid"]}

    async def _onboard(self) -> None:
        """Give the account to a business that has given access to it, and leave a session on each screen."""
        person = await self._control("POST", "people", {"name": "Ann"})
        business = {"name": "Hats", "person_ids": [person["person_id"]]}
        self.messages |= {"PERSON": person["person_id"]}
        self.messages |= {"BUSINESS": (await self._control("POST", "businesses", business))["business_id"]}
        chosen = {"person_id": self.messages["PERSON"], "business_id": self.messages["BUSINESS"], "app_id": APP}
        await self._control("PUT", f"accounts/{WABA}", {"business_id": self.messages["BUSINESS"]})
        await self._control("PUT", "configurations/7", {"app_id": APP})
        await self._control("POST", "play", {**chosen, "waba_id": WABA, "phone_number_id": NUMBER_ID})
        partner = await self._control("PUT", f"partners/{APP}", {"has_credit_line": True})
        path = f"/v25.0/{partner['credit_line_id']}/whatsapp_credit_sharing_and_attach"
        _, shared = await self._request("graph", "POST", path, b"waba_currency=USD&waba_id=" + WABA.encode())
        path = f"/v25.0/{partner_id(APP)}/add_phone_numbers"
        _, added = await self._request("graph", "POST", path, b"phone_number=15550007777")
        self.messages |= {
            "CREDIT_LINE": partner["credit_line_id"], "ALLOCATION": json.loads(shared)["allocation_config_id"],
            "PREVERIFIED": json.loads(added)["id"],
        }  # fmt: skip
        for screen in SCREENS:
            extras = {"version": "v3" if screen == "profile" else "v4"}
            stop = {"app_id": APP, "extras": extras, "stop_at": screen, "stop": "leave"}
            self.sessions[screen] = (await self._control("POST", "play", stop))["session_id"]
        failing = {"app_id": APP, "stop_at": "terms", "stop": "fail", "error_code": 2655091}
        self.sessions["report"] = (await self._control("POST", "play", failing))["session_id"]
        session = await self._control("POST", f"sessions/{self.sessions['code']}/code/send", {})
        _, sent = await self._request("control", "GET", f"/control/phones/{session['phone_number']}/code")
        self.messages |= {"SIGNUP_CODE": json.loads(sent)["sent"]["code"]}

    async def _control(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        _, response = await self._request(
            "control", method, f"/control/onboarding/{path}", b"", json.dumps(body).encode()
        )
        return json.loads(response)

    async def _send_interactive(self, interactive: dict[str, Any]) -> str:
        message = {**MESSAGE, "type": "interactive", "interactive": interactive}
        path = f"/v25.0/{NUMBER_ID}/messages"
        _, response = await self._request("graph", "POST", path, b"", json.dumps(message).encode())
        return json.loads(response)["messages"][0]["id"]

    async def _request(
        self, api: str, method: str, path: str, query: bytes = b"", body: bytes = b"", content_type: bytes = b""
    ) -> tuple[int, bytes]:
        sent: list[Any] = []
        headers = [header for header in HEADERS[api] if not (content_type and header[0] == b"content-type")]
        scope = {
            "type": "http", "method": method, "path": path, "query_string": query, "root_path": "",
            "headers": [*headers, (b"content-type", content_type)] if content_type else headers,
        }  # fmt: skip

        received = iter([{"type": "http.request", "body": body}])
        disconnected = asyncio.Event()  # never set

        async def receive() -> dict[str, Any]:
            for event in received:
                return event
            await disconnected.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._simulator.application(scope, receive, send)
        return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:])


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SimulatorClient]:
    """The files of a simulator with one object of each type, to be copied, and the client that created them."""
    folder = tmp_path_factory.mktemp("seeded")
    client = SimulatorClient(folder)
    client.close()
    return folder, client


@pytest.fixture
def client(tmp_path: Path, seeded: tuple[Path, SimulatorClient]) -> Iterator[SimulatorClient]:
    files, creator = seeded
    client = SimulatorClient(shutil.copytree(files, tmp_path / "files"), creator)
    yield client
    client.close()


def fill_path(client: SimulatorClient, path: str) -> Iterator[str]:
    """Yield the path with every combination of ids, existing ones first."""
    names = {**NAMES, "{flow_id}": [client.ids[Flow], "x"], "{media_id}": [client.ids[SimulatedMedia], "x"]}
    names |= {"{group_id}": [client.ids[SimulatedGroup], "x"], "{call_id}": [client.messages["CALL_ID"], "x"]}
    is_of_app = "/business-app" in path and not path.endswith("/connect")
    if is_of_app:
        names["{phone_number_id}"] = [SHARED_ID, NUMBER_ID, "x"]
    names["{companion_id}"] = [client.messages["COMPANION"], "x"]
    if is_of_app or path.endswith(("/edit", "/revoke")):
        names["{wamid}"] = [client.messages["APP_MESSAGE" if is_of_app else "OWN"], "x"]
    step = path.rpartition("/")[2]
    names["{session_id}"] = [client.sessions.get(SCREEN_OF_STEP.get(step, step), client.sessions["terms"]), "x"]
    if "flow-sessions" in path:
        names["{session_id}"] = [client.messages["FLOW_PREVIEW"], "x"]
    placeholders = re.findall(r"{\w+}", path)
    for values in itertools.product(*(names.get(placeholder, UNKNOWN_IDS) for placeholder in placeholders)):
        filled_path = path
        for placeholder, value in zip(placeholders, values, strict=True):
            filled_path = filled_path.replace(placeholder, value)
        yield filled_path


def example(client: SimulatorClient, path: str) -> Any:
    """Return the example of the route, with ids of existing messages, and an invite link."""
    text = json.dumps(EXAMPLES[path])
    for name, wamid in client.messages.items():
        text = text.replace(name, wamid)
    return json.loads(text)


@pytest.mark.parametrize("path", [path for method, path, _ in CALLS if method in ("POST", "PUT")])
def test_example_of_each_control_api_route_is_accepted(client: SimulatorClient, path: str) -> None:
    """Otherwise bodies derived from it would be rejected by the first check."""
    [method] = {call[0] for call in CALLS if call[1] == path and call[0] in ("POST", "PUT")}

    status, response = client.request(
        "control", method, next(fill_path(client, path)), body=json.dumps(example(client, path)).encode()
    )

    expected = {404} if "snapshots" in path or "handles" in path else {200}
    assert status in expected, response


@pytest.mark.parametrize(("method", "path"), [(call[0], call[1]) for call in CALLS])
def test_junk_sent_to_a_control_api_route_never_returns_5xx(client: SimulatorClient, method: str, path: str) -> None:
    for filled_path in fill_path(client, path):
        for query in QUERIES:
            assert_not_5xx(client, "control", method, filled_path, query=query, body=b"{}")
        for body in BODIES:
            assert_not_5xx(client, "control", method, filled_path, body=body)
    if method in ("POST", "PUT"):
        filled_path = next(fill_path(client, path))
        for other in replace_members(JUNK, example(client, path)):
            assert_not_5xx(client, "control", method, filled_path, body=json.dumps(other).encode())


@pytest.mark.parametrize(
    ("object_type", "method", "edge"), list(ROUTES), ids=lambda value: getattr(value, "__name__", value)
)
def test_junk_sent_to_a_graph_api_route_never_returns_5xx(
    client: SimulatorClient, object_type: type, method: str, edge: str
) -> None:
    path = f"/v25.0/{client.ids[object_type]}/{edge}".rstrip("/")
    assert_no_graph_5xx(client, method, path)
    if method == "POST":
        for other in replace_members(JUNK, GRAPH_EXAMPLES.get((object_type, edge), {})):
            assert_not_5xx(client, "graph", method, path, body=json.dumps(other).encode())


@pytest.mark.parametrize(("method", "first"), list(ROOT_ROUTES))
def test_junk_sent_to_a_root_or_file_route_never_returns_5xx(client: SimulatorClient, method: str, first: str) -> None:
    assert_no_graph_5xx(client, method, f"/v25.0/{first}")
    for other in UNKNOWN_IDS[:4]:
        assert_no_graph_5xx(client, method, f"/v25.0/{first}/{other}")


def replace_members(junk: list[Any], document: Any) -> Iterator[Any]:
    """Yield the document with one member replaced, for every member and every kind of junk."""
    for path in member_paths(document):
        for value in junk:
            other = copy.deepcopy(document)
            inner = other
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = value
            yield other


def assert_no_graph_5xx(client: SimulatorClient, method: str, path: str) -> None:
    for query in QUERIES:
        assert_not_5xx(client, "graph", method, path, query=query, body=b"{}")
    for body, content_type in itertools.product(BODIES, (b"", b"application/x-www-form-urlencoded", FORM)):
        assert_not_5xx(client, "graph", method, path, body=body, content_type=content_type)


def assert_not_5xx(client: SimulatorClient, api: str, method: str, path: str, **more: Any) -> None:
    status, response = client.request(api, method, path, **more)
    assert status < 500, (method, path, more, response)
