"""The control API: access checks, accounts, settings, phones and reset."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.simulator.conftest import ANN, ANN_USER_ID, BUSINESS, NUMBER_ID, TOKEN, WABA, Bench, Receiver, make_bench
from waypost.base.clock import SystemClock


async def test_foreign_host_is_rejected(bench: Bench) -> None:
    response = await bench.request("GET", "/control/state", headers={"Host": "evil.example:80"})

    assert (response.status, response.body["field"]) == (403, "Host")


@pytest.mark.parametrize("host", ["localhost:99", "127.0.0.1", "[::1]:99"])
async def test_loopback_host_is_accepted(bench: Bench, host: str) -> None:
    response = await bench.request("GET", "/control/state", headers={"Host": host})

    assert response.status == 200


async def test_foreign_origin_is_rejected_and_no_cors_header_is_sent(bench: Bench) -> None:
    own = bench.base
    foreign = await bench.request("GET", "/control/state", headers={"Origin": "http://evil.example"})
    other_port = await bench.request("GET", "/control/state", headers={"Origin": "http://127.0.0.1:1"})
    same = await bench.request("GET", "/control/state", headers={"Origin": own})

    assert (foreign.status, foreign.body["field"]) == (403, "Origin")
    assert other_port.status == 403
    assert same.status == 200
    assert not any(name.lower().startswith("access-control") for name in same.headers)


async def test_invalid_origin_is_rejected(bench: Bench) -> None:
    rejected = await bench.request("GET", "/control/state", headers={"Origin": "http://[broken"})

    assert (rejected.status, rejected.body["field"]) == (403, "Origin")


async def test_only_json_is_accepted(bench: Bench) -> None:
    form = await bench.request("POST", "/control/reset", data={"a": "b"})
    plain = await bench.request("POST", "/control/reset")

    assert form.status == plain.status == 415


async def test_token_and_host_can_be_set(tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession) -> None:
    bench = make_bench(
        tmp_path, SystemClock(), receiver, http,
        control_token="let-me-in", allowed_hosts=("sim.example",),
    )  # fmt: skip
    await bench.start()
    right = {"Authorization": "Bearer let-me-in"}

    without = await bench.request("GET", "/control/state")
    wrong = await bench.request("GET", "/control/state", headers={"Authorization": "Bearer x"})
    good = await bench.request("GET", "/control/state", headers=right)
    named = await bench.request("GET", "/control/state", headers={**right, "Host": "sim.example:8"})
    await bench.stop()

    assert without.status == wrong.status == 401
    assert good.status == named.status == 200


async def test_account_can_be_created_and_used(bench: Bench) -> None:
    account = {"name": "Two", "token": "token-2", "app_id": "3000000000000033", "app_secret": "s"}
    created = await bench.control("PUT", "accounts/1000000000000011", account)
    number = {"waba_id": "1000000000000011", "phone_number": "+15550002222", "name": "Shop"}
    await bench.control("PUT", "numbers/2000000000000022", number)
    webhook = {"callback_uri": bench.receiver.uri, "verify_token": bench.receiver.verify_token}
    await bench.control("PUT", "apps/3000000000000033/webhook", webhook)

    inbound = {"to": "15550002222", "text": "Hi Two"}
    await bench.control("POST", f"phones/{ANN}/messages", inbound)
    message = {"messaging_product": "whatsapp", "to": ANN, "text": {"body": "Hi"}}
    sent = await bench.graph("POST", "2000000000000022/messages", token="token-2", json=message)

    await bench.receiver.wait_until(bench.receiver.statuses)
    assert created.body["namespace"].count("_") == 4
    assert sent.status == 200
    assert bench.receiver.is_signed(bench.receiver.posts[0], "s")


@pytest.mark.parametrize(
    ("path", "body", "field", "status"),
    [
        ("accounts/abc", {"name": "a", "token": "t", "app_id": "1", "app_secret": "s"}, "waba_id", 400),
        ("accounts/1", {"name": "a", "token": "t", "app_id": "x", "app_secret": "s"}, "app_id", 400),
        ("numbers/2", {"waba_id": "9", "phone_number": "15550003333", "name": "x"}, "waba_id", 404),
        ("numbers/2", {"waba_id": WABA, "phone_number": "15550001111", "name": "x"}, "phone_number", 409),
        ("apps/9/webhook", {"callback_uri": "http://x", "verify_token": "x"}, "app_id", 404),
        ("apps/9/webhook", {"callback_uri": "ftp://x", "verify_token": "x"}, "callback_uri", 400),
        ("settings", {"batch_at_most": 0}, "batch_at_most", 400),
        ("settings", {"batch_at_most": 1001}, "batch_at_most", 400),
        ("settings", {"review_delay_ms": "soon"}, "review_delay_ms", 400),
        ("settings", {"speed": 1}, "speed", 400),
        ("settings", [], "body", 400),
        (f"phones/{ANN}", {"name": ""}, "name", 400),
    ],
)  # fmt: skip
async def test_invalid_request_error_names_field_rule_and_accepted_values(
    bench: Bench, path: str, body: Any, field: str, status: int
) -> None:
    response = await bench.control("PUT", path, body)

    assert (response.status, response.body["field"]) == (status, field)
    assert response.body["rule"]
    assert response.body["accepted"]
    assert response.body["field"] in response.body["error"]


async def test_changed_settings_are_shown_and_survive_a_restart(bench: Bench) -> None:
    changed = await bench.control("PUT", "settings", {"review_delay_ms": None, "limits": False})
    await bench.restart(review_delay_ms=5)
    state = await bench.control("GET", "state")

    assert changed.body["review_delay_ms"] is None
    assert state.body["settings"]["review_delay_ms"] is None
    assert state.body["settings"]["limits"] is False


async def test_phone_shows_and_keeps_its_settings(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"read_after_ms": 700})
    default = await bench.control("GET", f"phones/{ANN}")
    changed = await bench.control("PUT", f"phones/{ANN}", {"read_after_ms": None, "name": "Ann"})
    changed_again = await bench.control("PUT", f"phones/{ANN}", {"deliver_after_ms": 9})

    assert default.body["read_after_ms"] == 700
    assert changed.body["read_after_ms"] is None
    assert changed_again.body == {
        "phone": ANN,
        "name": "Ann",
        "deliver_after_ms": 9,
        "read_after_ms": None,
        "wa_id": "",
        "user_id": ANN_USER_ID,
        "username": "",
        "shows_number": True,
        "parent_user_id": "",
        "condition": "",
        "sends_read_receipts": True,
        "has_chat_open": False,
        "is_offline": False,
        "stopped_marketing_of": [],
        "has_blocked": [],
        "typing": [],
        "fleet": None,
        "script": [],
        "seed": "",
        "steps": [],
        "reports": [],
        "waiting": 0,
    }


async def test_reset_keeps_accounts_and_deletes_everything_else(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    await bench.send_from_phone()
    await bench.send_text()

    await bench.control("POST", "reset")

    state = await bench.control("GET", "state")
    assert state.body["counts"] == {
        "messages": 0,
        "outbox": 0,
        "phones": 0,
        "templates": 0,
        "accounts": 1,
        "numbers": 1,
    }
    number = await bench.graph("GET", NUMBER_ID, token=TOKEN)
    assert number.status == 200
    wamid = await bench.send_text()
    await bench.receiver.wait_until(lambda: bench.receiver.statuses(wamid))
    assert bench.receiver.statuses(wamid)[0]["status"] == "failed"


async def test_reset_leaves_only_accounts_and_settings_in_the_file(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    script = [{"on": "message", "do": "reply", "text": "Thanks", "times": 5, "after_ms": 60_000}]
    await bench.control("PUT", f"phones/{ANN}", {"script": script})
    wamid = await bench.send_from_phone()
    await bench.send_text()
    await bench.control("PUT", f"phones/{ANN}", {"is_offline": True})
    await bench.send_text()
    await bench.control("POST", f"phones/{ANN}/report", {"to": BUSINESS})
    await bench.send({"status": "read", "message_id": wamid, "typing_indicator": {"type": "text"}})
    await bench.control("POST", "faults", {"on": "webhook", "webhook": "sent", "what": {"delay_ms": 60_000}})
    await bench.control("PUT", "settings", {"deliver_after_ms": 60_000})
    await bench.send({"type": "text", "text": {"body": "later"}, "to": "4915799900001"})
    before = _filled_tables(bench)

    await bench.control("POST", "reset")

    kinds = {"phone", "window", "spam_report", "script_use", "fault", "template"}
    assert before >= {"messages", "waiting", "planned_acts", "script_counts", "outbox", *kinds}
    assert _filled_tables(bench) == {"app", "account", "number", "subscription", "setting"}
    phone = (await bench.control("GET", f"phones/{ANN}")).body
    assert (phone["script"], phone["reports"], phone["typing"], phone["is_offline"]) == ([], [], [], False)


def _filled_tables(bench: Bench) -> set[str]:
    """Return the tables of the simulator's file that have rows, and the kinds of rows in table `state`."""
    with contextlib.closing(sqlite3.connect(bench.settings.path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        filled = {table for table in tables if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()}
        return filled - {"state"} | {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM state")}
