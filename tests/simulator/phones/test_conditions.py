"""Delivery problems of a phone and their effect on messages, one table row each; read receipts."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, Bench
from waypost.simulator.messages.delivery import PHONE_CONDITIONS

BODY: list[dict[str, Any]] = [{"type": "BODY", "text": "Good day"}]

# fmt: off
CASES: list[tuple[str, str, bool, int | None]] = [
    # condition             category          window  code
    ("",                   "MARKETING",       False,  None),
    ("not_on_whatsapp",    "",                True,   131026),
    ("not_on_whatsapp",    "UTILITY",         False,  131026),
    ("old_client",         "UTILITY",         False,  131026),
    ("terms_not_accepted", "AUTHENTICATION",  False,  131026),
    ("in_experiment",      "MARKETING",       False,  130472),
    ("in_experiment",      "MARKETING",       True,   None),
    ("in_experiment",      "UTILITY",         False,  None),
    ("marketing_limit",    "MARKETING",       True,   131049),
    ("marketing_limit",    "UTILITY",         False,  None),
    ("marketing_limit",    "",                True,   None),
]
# fmt: on


@pytest.mark.parametrize(("condition", "category", "window", "code"), CASES)
async def test_condition_fails_matching_messages(
    bench: Bench, condition: str, category: str, window: bool, code: int | None
) -> None:
    otp = [{"type": "BODY"}, {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}]
    await bench.seed_template(otp if category == "AUTHENTICATION" else BODY, category=category or "UTILITY")
    await bench.control("PUT", f"phones/{ANN}", {"condition": condition})
    if window:
        await bench.send_from_phone()

    if category == "AUTHENTICATION":
        parameter = {"type": "text", "text": "1234"}
        components = [
            {"type": "body", "parameters": [parameter]},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": [parameter]},
        ]
        response = await bench.send_template(components)
    elif category:
        response = await bench.send_template()
    else:
        response = await bench.send({"type": "text", "text": {"body": "Hello"}})

    wamid = response.body["messages"][0]["id"]
    last = "delivered" if code is None else "failed"
    await bench.receiver.wait_until(
        lambda: [status for status in bench.receiver.statuses(wamid) if status["status"] == last]
    )
    statuses = bench.receiver.statuses(wamid)
    assert [status.get("errors", [{}])[0].get("code") for status in statuses if status["status"] == last] == [code]


def test_every_condition_has_a_case() -> None:
    assert {case[0] for case in CASES} == {*PHONE_CONDITIONS, ""}


async def test_unknown_condition_is_rejected_and_the_known_ones_are_listed(bench: Bench) -> None:
    response = await bench.control("PUT", f"phones/{ANN}", {"condition": "drowned"})

    assert (response.status, response.body["field"]) == (400, "condition")
    assert all(condition in response.body["accepted"] for condition in PHONE_CONDITIONS)


async def test_phone_without_read_receipts_reads_without_a_status(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"sends_read_receipts": False, "read_after_ms": 0})
    await bench.send_from_phone()
    first = await bench.send_text("First")
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(first)) == 2)

    await bench.control("PUT", f"phones/{ANN}", {"sends_read_receipts": True})
    second = await bench.send_text("Second")

    await bench.receiver.wait_until(
        lambda: [status for status in bench.receiver.statuses(second) if status["status"] == "read"]
    )
    assert [status["status"] for status in bench.receiver.statuses(first)] == ["sent", "delivered"]
    assert [shown["state"] for shown in await bench.inbox()][1:] == ["read", "read"]


async def test_planned_read_receipts_are_cancelled(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"read_after_ms": 60_000})
    await bench.send_from_phone()
    wamid = await bench.send_text()
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)

    await bench.control("PUT", f"phones/{ANN}", {"sends_read_receipts": False})

    await bench.wait_until_drained()


async def test_open_chat_reads_at_once_and_skips_delivered(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"has_chat_open": True})
    await bench.send_from_phone()

    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    sent, read = bench.receiver.statuses(wamid)
    assert (sent["status"], read["status"]) == ("sent", "read")
    assert read["pricing"] == sent["pricing"]


async def test_open_chat_without_read_receipts_sends_delivered(bench: Bench) -> None:
    changes = {"has_chat_open": True, "sends_read_receipts": False}
    await bench.control("PUT", f"phones/{ANN}", changes)
    await bench.send_from_phone()

    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    assert [status["status"] for status in bench.receiver.statuses(wamid)] == ["sent", "delivered"]


async def test_spam_report_is_stored_and_sends_no_webhook(bench: Bench) -> None:
    await bench.send_from_phone()
    wamid = await bench.send_text()
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    posts = len(bench.receiver.posts)

    reported = await bench.control(
        "POST", f"phones/{ANN}/report", {"to": BUSINESS, "message_id": wamid, "blocks": True}
    )
    unknown = await bench.control("POST", f"phones/{ANN}/report", {"to": BUSINESS, "message_id": "wamid.x"})

    assert [report["message_id"] for report in reported.body["reports"]] == [wamid]
    assert reported.body["has_blocked"] != []
    assert (unknown.status, unknown.body["field"]) == (404, "message_id")
    assert len(bench.receiver.posts) == posts


async def test_phone_settings_survive_a_restart(bench: Bench) -> None:
    changes = {"condition": "old_client", "sends_read_receipts": False, "has_chat_open": True, "is_offline": True}
    await bench.control("PUT", f"phones/{ANN}", changes)
    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})

    await bench.restart()

    shown = (await bench.control("GET", f"phones/{ANN}")).body
    assert {name: shown[name] for name in changes} == changes
    assert len(shown["has_blocked"]) == 1
