"""What is the matter with a phone, and what becomes of messages to it: a row of the table each."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, Bench
from waypost.simulator.phones.conditions import PHONE_CONDITIONS

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
async def test_condition_fails_the_messages_of_its_row(
    bench: Bench, condition: str, category: str, window: bool, code: int | None
) -> None:
    otp = [{"type": "BODY"}, {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}]
    await bench.seed_template(otp if category == "AUTHENTICATION" else BODY, category=category or "UTILITY")
    await bench.control("PUT", f"phones/{ANN}", {"condition": condition})
    if window:
        await bench.let_write()

    if category == "AUTHENTICATION":
        parameter = {"type": "text", "text": "1234"}
        code_given = [
            {"type": "body", "parameters": [parameter]},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": [parameter]},
        ]
        answer = await bench.send_template(code_given)
    elif category:
        answer = await bench.send_template()
    else:
        answer = await bench.send({"type": "text", "text": {"body": "Hello"}})

    wamid = answer.body["messages"][0]["id"]
    last = "delivered" if code is None else "failed"
    await bench.receiver.until(lambda: [one for one in bench.receiver.statuses(wamid) if one["status"] == last])
    told = bench.receiver.statuses(wamid)
    assert [one.get("errors", [{}])[0].get("code") for one in told if one["status"] == last] == [code]


def test_every_condition_has_a_case() -> None:
    assert {case[0] for case in CASES} == {*PHONE_CONDITIONS, ""}


async def test_unknown_condition_is_refused_with_those_there_are(bench: Bench) -> None:
    answer = await bench.control("PUT", f"phones/{ANN}", {"condition": "drowned"})

    assert (answer.status, answer.body["field"]) == (400, "condition")
    assert all(condition in answer.body["accepted"] for condition in PHONE_CONDITIONS)


async def test_phone_without_receipts_reads_and_the_business_does_not_hear(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"sends_read_receipts": False, "read_after_ms": 0})
    await bench.let_write()
    first = await bench.send_text("First")
    await bench.receiver.until(lambda: len(bench.receiver.statuses(first)) == 2)

    await bench.control("PUT", f"phones/{ANN}", {"sends_read_receipts": True})
    second = await bench.send_text("Second")

    await bench.receiver.until(lambda: [one for one in bench.receiver.statuses(second) if one["status"] == "read"])
    assert [one["status"] for one in bench.receiver.statuses(first)] == ["sent", "delivered"]
    assert [shown["state"] for shown in await bench.inbox()][1:] == ["read", "read"]


async def test_receipts_that_are_planned_are_taken_back(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"read_after_ms": 60_000})
    await bench.let_write()
    wamid = await bench.send_text()
    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)

    await bench.control("PUT", f"phones/{ANN}", {"sends_read_receipts": False})

    await bench.drained()


async def test_open_chat_reads_at_once_and_skips_delivered(bench: Bench) -> None:
    await bench.control("PUT", f"phones/{ANN}", {"has_chat_open": True})
    await bench.let_write()

    wamid = await bench.send_text()

    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    sent, read = bench.receiver.statuses(wamid)
    assert (sent["status"], read["status"]) == ("sent", "read")
    assert read["pricing"] == sent["pricing"]


async def test_open_chat_without_receipts_is_told_as_delivered(bench: Bench) -> None:
    habits = {"has_chat_open": True, "sends_read_receipts": False}
    await bench.control("PUT", f"phones/{ANN}", habits)
    await bench.let_write()

    wamid = await bench.send_text()

    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    assert [one["status"] for one in bench.receiver.statuses(wamid)] == ["sent", "delivered"]


async def test_report_is_kept_and_told_to_nobody(bench: Bench) -> None:
    await bench.let_write()
    wamid = await bench.send_text()
    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    posts = len(bench.receiver.posts)

    reported = await bench.control(
        "POST", f"phones/{ANN}/report", {"to": BUSINESS, "message_id": wamid, "blocks": True}
    )
    strange = await bench.control("POST", f"phones/{ANN}/report", {"to": BUSINESS, "message_id": "wamid.x"})

    assert [one["message_id"] for one in reported.body["reports"]] == [wamid]
    assert reported.body["has_blocked"] != []
    assert (strange.status, strange.body["field"]) == (404, "message_id")
    assert len(bench.receiver.posts) == posts


async def test_conditions_and_habits_survive_a_restart(bench: Bench) -> None:
    habits = {"condition": "old_client", "sends_read_receipts": False, "has_chat_open": True, "is_offline": True}
    await bench.control("PUT", f"phones/{ANN}", habits)
    await bench.control("POST", f"phones/{ANN}/block", {"to": BUSINESS, "blocks": True})

    await bench.restart()

    shown = (await bench.control("GET", f"phones/{ANN}")).body
    assert {name: shown[name] for name in habits} == habits
    assert len(shown["has_blocked"]) == 1
