"""The window of embedded signup: its screens in each version, every message event, and every error."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import APP, NUMBER_ID, WABA, Bench
from tests.simulator.onboarding.conftest import get_token, message_of, open_window, play, response_of, step
from tests.support.manual_clock import ManualClock
from waypost.base.object_ids import kind_of_id
from waypost.simulator.state.embedded_signup import (
    BREAKS,
    BUSINESS_APP,
    DEPRECATED_MS,
    FINISH_EVENTS,
    ONLY_ACCESS,
    ONLY_ACCOUNT,
    SCREENS,
    VERSIONS,
    WINDOW_ERRORS,
)

V2: dict[str, Any] = {"setup": {}, "featureType": "", "sessionInfoVersion": "3"}
V3: dict[str, Any] = {"version": "v3", "setup": {}, "sessionInfoVersion": "3"}
V4: dict[str, Any] = {"version": "v4", "setup": {}}
PHONE = "12025550147"
SHORT: list[str] = ["sign_in", "terms", "business", "account", "number", "code", "permissions", "done"]
LONG: list[str] = ["sign_in", "terms", "business", "account", "profile", "number", "code", "permissions", "done"]


async def walk(bench: Bench, session: dict[str, Any], until: str) -> dict[str, Any]:
    """Take the steps up to a screen."""
    while session["screen"] != until:
        name: str = session["screen"].replace("_", "-")
        members: dict[str, Any] = {"phone_number": PHONE} if name == "number" else {}
        if name == "code":
            await step(bench, session, "code/send")
            shown = await bench.control("GET", f"phones/{session['phone_number']}/code")
            members = {"code": shown.body["sent"]["code"]}
        session = await step(bench, session, name, **members)
        assert session["error"] is None, session
    return session


@pytest.mark.parametrize(
    ("extras", "screens"),
    [(V2, LONG), (V3, LONG), (V4, SHORT), ({**V4, "version": "v4-public-preview"}, SHORT)],
    ids=VERSIONS,
)
async def test_window_is_used_screen_by_screen_also_over_restarts(
    slow: Bench, extras: dict[str, Any], screens: list[str]
) -> None:
    session = await open_window(slow, extras=extras)
    version, seen = session["version"], [session["screen"]]
    for screen in screens[1:]:
        session = await walk(slow, session, screen)
        await slow.restart()
        seen.append((await slow.control("GET", f"onboarding/sessions/{session['session_id']}")).body["screen"])
    ended = await step(slow, session, "finish")

    assert (seen, version) == (screens, extras.get("version", "v2"))
    message = message_of(ended)
    assert message == {
        "type": "WA_EMBEDDED_SIGNUP",
        "event": "FINISH",
        "data": {
            "phone_number_id": ended["phone_number_id"],
            "waba_id": ended["waba_id"],
            "business_id": ended["business_id"],
        },
        "version": 3,
    }
    assert response_of(ended) == {"authResponse": {"code": ended["code"]}, "status": "connected"}
    kinds = [
        kind_of_id(ended[name]) for name in ("session_id", "person_id", "business_id", "waba_id", "phone_number_id")
    ]
    assert kinds == ["onboarding session", "person", "business", "account", "number"]


async def test_onboarded_number_sends_once_it_is_registered(slow: Bench) -> None:
    session = await play(slow, phone_number=f"+{PHONE}", display_name="Hats")
    token, number_id = await get_token(slow, session), session["phone_number_id"]
    message = {"messaging_product": "whatsapp", "to": "+15551234567", "type": "text", "text": {"body": "Hello"}}
    await slow.simulator.send_phone_text(phone="15551234567", to=PHONE, text="Hi")

    early = await slow.graph("POST", f"{number_id}/messages", token, json=message)
    registered = await slow.graph(
        "POST", f"{number_id}/register", token, json={"messaging_product": "whatsapp", "pin": "123456"}
    )
    sent = await slow.graph("POST", f"{number_id}/messages", token, json=message)

    assert (early.error["code"], registered.status, sent.status) == (133010, 200, 200)


async def test_code_appears_on_the_phone_of_the_number(slow: Bench) -> None:
    session = await walk(slow, await open_window(slow), "code")

    none = await slow.control("GET", f"phones/{PHONE}/code")
    await step(slow, session, "code/send", method="VOICE")
    called = await slow.control("GET", f"phones/{PHONE}/code")
    added = await slow.graph(
        "POST", f"{WABA}/phone_numbers", json={"country_code": "1", "phone_number": "5550004444", "verified_name": "A"}
    )
    await slow.graph("POST", f"{added.body['id']}/request_code", json={"code_method": "SMS", "language": "de"})
    texted = await slow.control("GET", "phones/15550004444/code")

    assert none.body == {"phone": PHONE, "sent": None}
    assert (called.body["sent"]["method"], texted.body["sent"]["method"]) == ("VOICE", "SMS")
    code = texted.body["sent"]["code"]
    assert texted.body["sent"]["text"] == f"Your WhatsApp code: {code[:3]}-{code[3:]}"


async def give_to_business(bench: Bench, **more: Any) -> dict[str, Any]:
    """Create a person with a verified portfolio that owns the first account; return the answers that choose them."""
    person = (await bench.control("POST", "onboarding/people", {"name": "Ann"})).body
    members = {"name": "Hats", "person_ids": [person["person_id"]], "is_verified": True}
    business = (await bench.control("POST", "onboarding/businesses", members)).body
    await bench.control("PUT", f"onboarding/accounts/{WABA}", {"business_id": business["business_id"], **more})
    return {"person_id": person["person_id"], "business_id": business["business_id"]}


def features(version: str, *names: str) -> dict[str, Any]:
    return {"version": version, "setup": {}, "features": [{"name": name} for name in names]}


async def test_every_finish_event_is_reached_by_one_call(slow: Bench) -> None:
    owned = await give_to_business(slow, is_on_behalf_of=True)
    existing = {**owned, "waba_id": WABA, "number": "existing", "phone_number_id": NUMBER_ID}
    only_account = {**V2, "featureType": ONLY_ACCOUNT}
    on_app: dict[str, Any] = {"version": "v4", "setup": {}, "feature_type": BUSINESS_APP}

    sessions = {
        "FINISH": await play(slow),
        "FINISH_ONLY_WABA": await play(slow, extras=only_account, falls_back=False),
        "FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING": await play(slow, extras=on_app),
        "FINISH_OBO_MIGRATION": await play(slow, **existing),
        "FINISH_GRANT_ONLY_API_ACCESS": await play(slow, **owned, waba_id=WABA, extras=features("v4", ONLY_ACCESS)),
    }
    again = await play(slow, **existing)

    assert set(sessions) == set(FINISH_EVENTS)
    messages = {event: message_of(session) for event, session in sessions.items()}
    assert {event: message and message["event"] for event, message in messages.items()} == {e: e for e in sessions}
    members = {event: list(message["data"]) for event, message in messages.items() if message}
    assert members == {
        "FINISH": ["phone_number_id", "waba_id", "business_id"],
        "FINISH_ONLY_WABA": ["waba_id", "business_id"],
        "FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING": ["waba_id"],
        "FINISH_OBO_MIGRATION": ["phone_number_id", "waba_id", "business_id"],
        "FINISH_GRANT_ONLY_API_ACCESS": ["waba_id", "business_id"],
    }
    assert all(session["code"] for session in sessions.values())
    assert again["event"] == "FINISH"


@pytest.mark.parametrize("screen", SCREENS)
async def test_window_closed_on_each_screen_names_its_step_and_creates_nothing(slow: Bench, screen: str) -> None:
    extras = V3 if screen == "profile" else V4
    session = await play(slow, extras=extras, stop_at=screen)
    state = (await slow.control("GET", "state")).body
    codes = (await slow.control("GET", "onboarding/codes")).body["codes"]

    message = message_of(session)
    if screen == "done":
        assert message is not None
        assert (message["event"], len(state["accounts"]), len(codes)) == ("FINISH", 2, 1)
        return
    current_step = SCREENS[screen].current_step  # type: ignore[index]
    data = message and (message["event"], message["data"])
    assert data == (("CANCEL", {"current_step": current_step}) if current_step else None)
    assert response_of(session) == {"authResponse": None, "status": "unknown"}
    assert ([account["waba_id"] for account in state["accounts"]], codes) == ([WABA], [])


ERRORS = [(screen, code) for code, row in WINDOW_ERRORS.items() for screen in row.screens]


async def test_every_error_of_each_screen_is_shown_reported_and_ends_the_window_by_one_call(slow: Bench) -> None:
    for screen, code in ERRORS:
        extras = V3 if screen == "profile" else V4
        failing = {"extras": extras, "stop_at": screen, "error_code": code}
        shown = await play(slow, **failing, stop="fail")
        reported = await play(slow, **failing, stop="report")
        ended = await play(slow, **failing, stop="end")

        text = WINDOW_ERRORS[code].text
        assert shown["error"] == {"code": code, "text": text, "screen": screen}
        assert (shown["ended_ms"], shown["events"]) == (None, [])
        for session, event in ((reported, "CANCEL"), (ended, "ERROR")):
            assert message_of(session) == {
                "type": "WA_EMBEDDED_SIGNUP",
                "event": event,
                "data": {
                    "error_message": text,
                    "error_code": str(code),
                    "session_id": session["session_id"],
                    "timestamp": str(session["ended_ms"] // 1000),
                },
                "version": 3,
            }
            assert response_of(session) == {"authResponse": None, "status": "unknown"}
    assert len({code for _, code in ERRORS}) == len(WINDOW_ERRORS)
    assert (await slow.control("GET", "onboarding/codes")).body["codes"] == []


async def test_every_error_is_armed_as_a_fault_by_one_call(slow: Bench) -> None:
    for code, row in WINDOW_ERRORS.items():
        fault = {"on": "onboarding", "what": {"window_error": code}, "when": {"next": 1}}
        armed = await slow.control("POST", "faults", fault)
        extras = V3 if row.screens[0] == "profile" else V4
        failed = await play(slow, extras=extras)

        assert armed.status == 200, armed.body
        assert failed["error"] == {"code": code, "text": row.text, "screen": row.screens[0]}
    faults = (await slow.control("GET", "faults")).body["faults"]
    assert {fault["hits"] for fault in faults} == {1}
    assert (await play(slow))["event"] == "FINISH"


async def test_fault_of_a_screen_may_end_the_window_and_is_filtered_by_app(slow: Bench) -> None:
    fault = {"on": "onboarding", "onboarding": "code", "what": {"window_error": 2388091, "ends": True}}
    await slow.control("POST", "faults", {**fault, "app": "1", "when": {"always": True}})
    other = await play(slow)
    await slow.control("POST", "faults", {**fault, "app": APP, "when": {"next": 1}})
    ended = await play(slow)

    message = message_of(ended)
    assert (other["event"], message and message["event"]) == ("FINISH", "ERROR")


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"what": {"window_error": 1}}, "what.window_error"),
        ({"onboarding": "code", "what": {"window_error": 1690090}}, "what.window_error"),
        ({"onboarding": "open", "what": {"window_error": 1690090}}, "what.window_error"),
        ({"onboarding": "nowhere", "what": {"window_error": 1690090}}, "onboarding"),
        ({"what": {"break": "everything"}}, "what.break"),
        ({"onboarding": "code", "what": {"break": "code_used"}}, "what.break"),
        ({"phone": "1", "what": {"break": "code_used"}}, "phone"),
        ({"call": "messages.send", "what": {"break": "code_used"}}, "call"),
        ({"what": {"error": 100}}, "what"),
    ],
    ids=str,
)
async def test_impossible_fault_of_a_signup_is_refused(slow: Bench, fault: dict[str, Any], field: str) -> None:
    refused = await slow.control("POST", "faults", {"on": "onboarding", **fault})

    assert (refused.status, refused.body["field"]) == (400, field)
    assert refused.body["accepted"]


# What goes wrong though the window is used as it should be


async def test_every_break_is_one_call_and_one_fault(slow: Bench) -> None:
    for name in BREAKS:
        await slow.control("POST", "faults", {"on": "onboarding", "what": {"break": name}, "when": {"next": 1}})
        armed = await play(slow)
        asked = await play(slow, breaks=[name])

        assert armed["breaks"] == asked["breaks"] == [name]


async def test_orders_delays_and_silence_are_settings_of_a_session(slow: Bench) -> None:
    usual = await play(slow)
    turned = await play(slow, order="callback_first")
    slowed = await play(slow, message_delay_ms=500, callback_delay_ms=100, origin="https://web.facebook.com")
    without_message = await play(slow, message_delay_ms=None)
    without_callback = await play(slow, callback_delay_ms=None)
    late = await play(slow, breaks=["message_late"])

    def kinds(session: dict[str, Any]) -> list[tuple[str, int]]:
        return [(event["kind"], event["at_ms"] - session["ended_ms"]) for event in session["events"]]

    assert kinds(usual) == [("message", 0), ("callback", 0)]
    assert kinds(turned) == [("callback", 0), ("message", 0)]
    assert kinds(slowed) == [("callback", 100), ("message", 500)]
    assert (kinds(without_message), kinds(without_callback)) == ([("callback", 0)], [("message", 0)])
    assert kinds(late) == [("callback", 0), ("message", 40_000)]
    origins = [event["origin"] for session in (usual, slowed) for event in session["events"] if "origin" in event]
    assert origins == ["https://www.facebook.com", "https://web.facebook.com"]


async def test_message_is_sent_only_to_a_page_of_version_2_or_3_that_asks_for_it(slow: Bench) -> None:
    silent = await play(slow, extras={"setup": {}})
    asking = await play(slow, extras=V2)

    assert (message_of(silent), message_of(asking) is not None) == (None, True)
    assert response_of(silent) == {"authResponse": {"code": silent["code"]}, "status": "connected"}


async def test_deprecated_versions_ignore_features_without_an_error(slow: Bench, clock: ManualClock) -> None:
    coexistence = {**V3, "featureType": "coex"}
    clock.advance(ms=max(0, DEPRECATED_MS - 1 - clock.now_ms()))
    before = await play(slow, extras=coexistence) if clock.now_ms() < DEPRECATED_MS else None
    clock.advance(ms=1)
    after = await play(slow, extras=coexistence)
    kept = await play(slow, extras=coexistence, falls_back=False)
    unknown = await play(slow, extras={**V4, "featureType": ONLY_ACCOUNT})

    assert before is None or before["event"] == "FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING"
    assert [session["event"] for session in (after, kept, unknown)] == [
        "FINISH", "FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING", "FINISH",
    ]  # fmt: skip


async def test_products_of_a_configuration_decide_feature_and_assets(slow: Bench) -> None:
    products = ["click_to_whatsapp", "conversions_api"]
    await slow.control("PUT", "onboarding/configurations/7", {"app_id": APP, "products": products})
    await slow.control("PUT", "onboarding/configurations/8", {"app_id": APP, "products": ["business_app_onboarding"]})
    assets = {"page_ids": ["11"], "ad_account_ids": ["12", "13"], "dataset_ids": ["14"]}

    chosen = await play(slow, config_id="7", extras={"setup": {}}, assets=assets)
    on_app = await play(slow, config_id="8", extras={"setup": {}})
    refused = await slow.control("POST", "onboarding/play", {"app_id": APP, "assets": {"page_ids": ["11"]}})

    message = message_of(chosen)
    assert message is not None
    assert assets.items() <= message["data"].items()
    assert (chosen["version"], on_app["event"]) == ("v4", "FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING")
    assert (refused.status, refused.body["field"]) == (409, "assets.page_ids")


async def test_number_of_the_business_app_needs_no_registration(slow: Bench) -> None:
    await slow.control("PUT", f"onboarding/business-app-numbers/{PHONE}", {"name": "Hats"})
    on_app = {"extras": {**V4, "feature_type": BUSINESS_APP}}
    unknown = await play(slow, **on_app, phone_number="12025550199")
    session = await play(slow, **on_app, phone_number=PHONE)
    token = await get_token(slow, session)

    numbers = await slow.graph("GET", f"{session['waba_id']}/phone_numbers?fields=status,is_on_biz_app", token)
    shown = await slow.control("GET", f"phones/{PHONE}/code")
    again = await play(slow, **on_app, phone_number=PHONE)
    as_new = await play(slow, phone_number=PHONE)

    [number] = numbers.body["data"]
    assert (number["status"], number["is_on_biz_app"]) == ("CONNECTED", True)
    assert shown.body["sent"]["method"] == "APP"
    assert (unknown["error"]["code"], again["error"]["code"], as_new["error"]["code"]) == (2655095, 2655093, 3441030)


async def test_number_that_the_operator_gives_needs_no_code(slow: Bench) -> None:
    owned = await give_to_business(slow)
    sessions = [await play(slow, **owned, number="display_name_only", display_name="Hats") for _ in range(3)]

    assert [session["phone_number"][:4] for session in sessions[:2]] == ["1555", "1555"]
    assert "code" not in sessions[0]["screens"]
    assert sessions[2]["error"]["code"] == 2655076


# The window's own rules


async def test_people_businesses_and_numbers_are_refused_as_they_are_set_up(slow: Bench) -> None:
    person = (await slow.control("POST", "onboarding/people", {"name": "Bob", "error_code": 4612001})).body
    refused_person = await play(slow, person_id=person["person_id"])
    owned = await give_to_business(slow)
    await slow.control("POST", "onboarding/businesses", {"business_id": owned["business_id"], "error_code": 1752089})
    refused_business = await play(slow, **owned)
    await slow.control("PUT", f"onboarding/business-app-numbers/{PHONE}", {"name": "Hats", "error_code": 3441045})
    refused_number = await play(slow, extras={**V4, "feature_type": BUSINESS_APP}, phone_number=PHONE)
    wrong = await slow.control("POST", "onboarding/people", {"name": "Bob", "error_code": 3441045})

    codes = [session["error"]["code"] for session in (refused_person, refused_business, refused_number)]
    assert codes == [4612001, 1752089, 3441045]
    assert (wrong.status, wrong.body["field"]) == (400, "error_code")


@pytest.mark.parametrize(
    ("answers", "screen", "code"),
    [
        ({"business": {"name": " "}}, "business", 1690090),
        ({"business": {"name": "12"}}, "business", 1690090),
        ({"business": {"name": "x" * 101}}, "business", 1690090),
        ({"business": {"name": "Hats", "website": "ftp://x"}}, "business", 3771014),
        ({"account_name": "x" * 256}, "account", 2593010),
        ({"waba_id": WABA}, "account", 2593072),
        ({"phone_number": "12"}, "number", 3441051),
        ({"phone_number": "none"}, "number", 3441051),
        ({"phone_number": "15550001111"}, "number", 3441030),
        ({"display_name": "x" * 513}, "number", 1690091),
        ({"code": "000000"}, "code", 2388093),
    ],
    ids=str,
)
async def test_wrong_answer_is_shown_on_its_screen(
    slow: Bench, answers: dict[str, Any], screen: str, code: int
) -> None:
    session = await play(slow, **answers)

    assert session["error"] == {"code": code, "text": WINDOW_ERRORS[code].text, "screen": screen}
    assert (session["screen"], session["ended_ms"]) == (screen, None)


async def test_error_goes_away_when_the_answer_is_right(slow: Bench) -> None:
    session = await play(slow, phone_number="12")

    mended = await step(slow, session, "number", phone_number="2025550147", country_code="1")

    assert (mended["error"], mended["screen"], mended["phone_number"]) == (None, "code", PHONE)


async def test_unverified_business_has_lower_limits(slow: Bench) -> None:
    first = await play(slow)
    owned = {"person_id": first["person_id"], "business_id": first["business_id"]}
    second, third = await play(slow, **owned), await play(slow, **owned)
    number = await play(slow, **owned, waba_id=first["waba_id"], number="new")
    await slow.control("POST", "onboarding/businesses", {"business_id": first["business_id"], "is_verified": True})
    verified = [await play(slow, **owned) for _ in range(19)]

    assert (second["event"], third["error"]["code"], number["error"]["code"]) == ("FINISH", 2388098, 2388002)
    assert {session["event"] for session in verified[:18]} == {"FINISH"}
    assert verified[18]["error"]["code"] == 2494067


async def test_person_creates_two_businesses_and_app_onboards_ten_customers_a_week(
    slow: Bench, clock: ManualClock
) -> None:
    person = (await slow.control("POST", "onboarding/people", {"name": "Ann"})).body["person_id"]
    sessions = [await play(slow, person_id=person) for _ in range(3)]
    more = [await play(slow) for _ in range(9)]
    await slow.control("PUT", f"onboarding/partners/{APP}", {"is_verified": True})
    verified = await play(slow)
    await slow.control("PUT", f"onboarding/partners/{APP}", {"is_verified": False})
    clock.advance(ms=7 * 24 * 3_600_000)
    later = await play(slow)

    assert [session["event"] for session in sessions[:2]] == ["FINISH", "FINISH"]
    assert sessions[2]["error"]["code"] == 1690114
    assert [session["event"] for session in more[:8]] == ["FINISH"] * 8
    assert more[8]["error"] == {"code": 3441033, "text": WINDOW_ERRORS[3441033].text, "screen": "permissions"}
    assert (verified["event"], later["event"]) == ("FINISH", "FINISH")


async def test_codes_are_guessed_five_times_and_resent_after_a_minute(slow: Bench, clock: ManualClock) -> None:
    session = await walk(slow, await open_window(slow), "code")
    early = await slow.control("POST", f"onboarding/sessions/{session['session_id']}/code", {"code": "1"})
    await step(slow, session, "code/send")
    soon = await step(slow, session, "code/send")
    clock.advance(ms=60_000)
    resent = await step(slow, session, "code/send")
    wrong = [(await step(slow, session, "code", code="0"))["error"]["code"] for _ in range(6)]
    clock.advance(ms=60_000)
    locked = await step(slow, session, "code/send")
    clock.advance(ms=12 * 3_600_000)
    again = await step(slow, session, "code/send")
    code = (await slow.control("GET", f"phones/{PHONE}/code")).body["sent"]["code"]
    right = await step(slow, session, "code", code=f"{code[:3]}-{code[3:]}")

    assert (early.status, early.body["field"]) == (409, "code")
    assert (soon["error"]["code"], resent["error"], wrong) == (2494158, None, [2388093] * 5 + [2593039])
    assert (locked["error"]["code"], again["error"], right["screen"]) == (2494158, None, "permissions")


async def test_number_that_two_sessions_enter_is_given_to_one(slow: Bench) -> None:
    first = await walk(slow, await open_window(slow), "done")
    second = await walk(slow, await open_window(slow), "done")

    finished = await step(slow, first, "finish")
    refused = await step(slow, second, "close")

    assert finished["event"] == "FINISH"
    assert (refused["error"]["code"], refused["screen"], refused["ended_ms"]) == (3441030, "number", None)


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("play", {"app_id": "1"}, 404, "app_id"),
        ("play", {}, 400, "app_id"),
        ("play", {"app_id": APP, "config_id": "9"}, 404, "config_id"),
        ("play", {"app_id": APP, "extras": {"version": "v9"}}, 400, "extras.version"),
        ("play", {"app_id": APP, "person_id": WABA}, 404, "person_id"),
        ("play", {"app_id": APP, "business_id": "9"}, 404, "business_id"),
        ("play", {"app_id": APP, "number": "business_app"}, 409, "number"),
        ("play", {"app_id": APP, "stop_at": "profile"}, 409, "stop_at"),
        ("play", {"app_id": APP, "stop_at": "code", "stop": "fail"}, 400, "error_code"),
        ("play", {"app_id": APP, "stop_at": "code", "stop": "fail", "error_code": 1690090}, 400, "error_code"),
        ("play", {"app_id": APP, "breaks": ["all"]}, 400, "breaks[0]"),
        ("play", {"app_id": APP, "extras": features("v4", ONLY_ACCESS)}, 409, "waba_id"),
        ("sessions/1/terms", {}, 404, "session_id"),
        ("businesses", {"name": "Hats"}, 400, "person_ids"),
        ("businesses", {"business_id": "1"}, 404, "business_id"),
        ("people", {"name": "Ann", "person_id": "1"}, 404, "person_id"),
    ],
    ids=str,
)
async def test_impossible_call_names_the_field_and_what_is_accepted(
    slow: Bench, path: str, body: dict[str, Any], status: int, field: str
) -> None:
    refused = await slow.control("POST", f"onboarding/{path}", body)

    assert (refused.status, refused.body["field"]) == (status, field)
    assert refused.body["accepted"]


async def test_step_for_another_screen_or_an_ended_session_is_refused(slow: Bench) -> None:
    session = await open_window(slow)
    path = f"onboarding/sessions/{session['session_id']}"

    early = await slow.control("POST", f"{path}/finish")
    no_error = await slow.control("POST", f"{path}/report")
    wrong_error = await slow.control("POST", f"{path}/fail", {"code": 2388093})
    await slow.control("POST", f"{path}/close")
    ended = await slow.control("POST", f"{path}/sign-in")

    assert (early.status, early.body["rule"]) == (409, "shows the screen sign_in, not done")
    assert [refused.status for refused in (no_error, wrong_error, ended)] == [409, 400, 409]


async def test_page_prefills_what_is_not_answered(slow: Bench) -> None:
    setup = {"business": {"name": "Prefilled", "email": "a@b.example"}, "phone": {"displayName": "Shown"}}
    session = await play(slow, extras={"version": "v4", "setup": setup})

    businesses = (await slow.control("GET", "onboarding/businesses")).body["businesses"]
    assert [business["name"] for business in businesses] == ["Prefilled"]
    assert (session["account_name"], session["display_name"]) == ("Prefilled", "Shown")
    assert json.loads(json.dumps(session["extras"]["setup"])) == setup
