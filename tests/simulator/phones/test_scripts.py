"""Scripts: automatic actions of phones, the same in every run."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench
from tests.support.manual_clock import ManualClock
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.state.script_steps import STEP_ACTIONS, STEP_TRIGGERS, Script, plan_steps, read_steps

JsonObject = dict[str, Any]
BEN = "15551230002"
BUTTONS: list[JsonObject] = [
    {"type": "BODY", "text": "Shall we come?"},
    {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}, {"type": "QUICK_REPLY", "text": "No"}]},
]
TEXT = {"text": "Hello"}
TEMPLATE = {
    "text": "Hello",
    "template": {"name": "a", "category": "MARKETING"},
    "buttons": [
        {"index": 0, "type": "URL", "text": "Look"},
        {"index": 1, "type": "QUICK_REPLY", "text": "Yes", "payload": "yes"},
    ],
}
FORM = {"text": "Fill in", "buttons": [{"index": 0, "type": "FLOW", "text": "Open"}]}


def make_script(*steps: JsonObject, seed: str = "1") -> Script:
    return Script("phone 1", seed, read_steps(list(steps)))


async def set_script(bench: Bench, *steps: JsonObject, phone: str = ANN, **more: Any) -> None:
    response = await bench.control("PUT", f"phones/{phone}", {"script": list(steps), **more})
    assert response.status == 200, response.body


# fmt: off
TRIGGER_CASES: list[tuple[str, set[str]]] = [
    ("message",        {"text", "template", "form"}),
    ("template",       {"template"}),
    ("session",        {"text", "form"}),
    ("marketing",      {"template"}),
    ("utility",        set()),
    ("authentication", set()),
    ("button",         {"template"}),
    ("form",           {"form"}),
]
# fmt: on


@pytest.mark.parametrize(("on", "expected"), TRIGGER_CASES)
def test_step_applies_to_messages_that_match_its_trigger(on: str, expected: set[str]) -> None:
    messages = {"text": TEXT, "template": TEMPLATE, "form": FORM}

    planned = {
        name
        for name, message in messages.items()
        if plan_steps(make_script({"on": on, "do": "read"}), ANN, 1, message, {})
    }

    assert planned == expected
    assert set(STEP_TRIGGERS) == {row[0] for row in TRIGGER_CASES}


# fmt: off
INVALID: list[tuple[Any, str, str]] = [
    # step                                                         field                     part of the accepted values
    ("read",                                                       "script[0]",              '"do": "read"'),
    ({"do": "read"},                                               "script[0].on",           "message, template"),
    ({"on": "message"},                                            "script[0].do",           "read, reply"),
    ({"on": "rain", "do": "read"},                                 "script[0].on",           "message, template"),
    ({"on": ["message"], "do": "read"},                            "script[0].on",           "message, template"),
    ({"on": "message", "do": "sleep"},                             "script[0].do",           "nothing"),
    ({"on": "message", "do": "read", "mood": 1},                   "script[0].mood",         "after_ms"),
    ({"on": "message", "do": "read", "after_ms": -1},              "script[0].after_ms",     "0 to 604800000"),
    ({"on": "message", "do": "read", "after_ms": [5, 1]},          "script[0].after_ms",     "[least, most]"),
    ({"on": "message", "do": "read", "after_ms": [1, 2, 3]},       "script[0].after_ms",     "[least, most]"),
    ({"on": "message", "do": "read", "after_ms": True},            "script[0].after_ms",     "0 to 604800000"),
    ({"on": "message", "do": "read", "probability": 1.5},          "script[0].probability",  "0 to 1"),
    ({"on": "message", "do": "read", "times": 0},                  "script[0].times",        "1 to 1000000"),
    ({"on": "message", "do": "reply"},                            "script[0].text",         "1 to 4096"),
    ({"on": "message", "do": "reply", "text": ""},                "script[0].text",         "1 to 4096"),
    ({"on": "message", "do": "read", "text": "x"},                 "script[0].text",         "after_ms"),
    ({"on": "button", "do": "tap", "index": "0"},                  "script[0].index",        "0 to 99"),
    ({"on": "form", "do": "respond", "response": []},              "script[0].response",     "an object"),
    ({"on": "message", "do": "offline", "for_ms": "long"},         "script[0].for_ms",       "0 to"),
]
# fmt: on


@pytest.mark.parametrize(("step", "field", "accepted"), INVALID, ids=range(len(INVALID)))
def test_invalid_step_is_rejected_and_names_the_field(step: Any, field: str, accepted: str) -> None:
    with pytest.raises(ControlApiError) as error:
        read_steps([step])

    assert error.value.field == field
    assert accepted in error.value.accepted


async def test_invalid_script_is_rejected_by_the_control_api(bench: Bench) -> None:
    steps = [{"on": "message", "do": "read"}, {"on": "message", "do": "dance"}]

    response = await bench.control("PUT", f"phones/{ANN}", {"script": steps})

    assert (response.status, response.body["field"]) == (400, "script[1].do")
    assert set(response.body["accepted"].split(", ")) == set(STEP_ACTIONS)


def test_plan_depends_only_on_seed_phone_and_message() -> None:
    first = make_script({"on": "message", "do": "reply", "text": "x", "probability": 0.5,
                  "after_ms": [0, 1000]})  # fmt: skip
    second = make_script({"on": "message", "do": "reply", "text": "x", "probability": 0.5,
                    "after_ms": [0, 1000]}, seed="2")  # fmt: skip

    def run(script_: Script) -> list[Any]:
        return [plan_steps(script_, str(phone), nth, TEXT, {}) for phone in range(100) for nth in (1, 2)]

    assert run(first) == run(first)
    assert run(first) != run(second)


def test_probability_and_delay_match_the_step() -> None:
    step = {"on": "message", "do": "react", "text": "x", "probability": 0.25, "after_ms": [10, 19]}

    planned = [intention for nth in range(8000) for intention in plan_steps(make_script(step), ANN, nth, TEXT, {})]

    assert 1800 < len(planned) < 2200
    assert {intention.after_ms for intention in planned} == set(range(10, 20))


def test_nothing_step_ends_the_script_for_its_message() -> None:
    steps = make_script({"on": "message", "do": "nothing"}, {"on": "message", "do": "read"})

    assert [step.step for step in plan_steps(steps, ANN, 1, TEXT, {})] == [0]


async def test_phone_taps_the_button_that_its_script_names(bench: Bench) -> None:
    await bench.seed_template(BUTTONS)
    await set_script(bench, {"on": "button", "do": "tap", "index": 1})
    await set_script(bench, {"on": "button", "do": "tap", "text": "Yes"}, phone=BEN)

    await bench.send_template()
    await bench.send_template(to=BEN)

    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    tapped = {message["from"]: message["button"]["text"] for message in bench.receiver.messages()}
    assert tapped == {ANN: "No", BEN: "Yes"}


async def test_phone_reads_reacts_and_replies_after_the_scripted_delays(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await slow.receiver.wait_until(slow.receiver.messages)
    await set_script(
        slow,
        {"on": "session", "do": "read", "after_ms": 1000},
        {"on": "session", "do": "react", "after_ms": 2000, "text": "\U0001f44d"},
        {"on": "session", "do": "reply", "after_ms": 3000, "text": "Thank you"},
    )
    wamid = await slow.send_text()
    clock.advance(ms=2000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(wamid)) == 3)
    before = len(slow.receiver.messages())

    clock.advance(ms=1000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == 2)
    clock.advance(ms=1000)
    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == 3)

    _, reaction, reply = slow.receiver.messages()
    assert before == 1
    assert reaction["reaction"] == {"message_id": wamid, "emoji": "\U0001f44d"}
    assert (reply["text"]["body"], reply["context"]["id"]) == ("Thank you", wamid)
    steps = (await slow.control("GET", f"phones/{ANN}")).body["steps"]
    assert [(step["planned"], step.get("done")) for step in steps] == [(1, None), (1, 1), (1, 1)]


async def test_step_limit_is_counted_across_a_restart(bench: Bench) -> None:
    await set_script(bench, {"on": "message", "do": "reply", "text": "Once", "times": 1})
    await bench.send_from_phone()
    await bench.send_text()
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)

    await bench.restart()
    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    steps = (await bench.control("GET", f"phones/{ANN}")).body["steps"]
    assert steps == [{"step": 0, "on": "message", "do": "reply", "planned": 1, "done": 1}]


async def test_planned_action_runs_once_after_a_restart(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await set_script(slow, {"on": "message", "do": "reply", "text": "Later", "after_ms": 60_000})
    await slow.send_text()

    await slow.restart()
    clock.advance(ms=61_000)
    await slow.receiver.wait_until(
        lambda: [message for message in slow.receiver.messages() if message["text"]["body"] == "Later"]
    )
    await slow.restart()
    clock.advance(ms=61_000)

    assert [shown["text"] for shown in await slow.inbox()] == ["Hi", "Hello", "Later"]


async def test_phone_that_blocks_sends_no_more_replies(bench: Bench) -> None:
    await bench.send_from_phone()
    await set_script(
        bench, {"on": "message", "do": "block"}, {"on": "message", "do": "reply", "text": "Never", "after_ms": 1}
    )
    wamid = await bench.send_text()
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    await bench.wait_for_phone(lambda shown: shown["has_blocked"])

    lost = await bench.send_text("Unseen")

    await bench.receiver.wait_until(lambda: bench.receiver.statuses(lost))
    assert [shown["text"] for shown in await bench.inbox()] == ["Hi", "Hello"]


async def test_phone_is_offline_then_online_again_and_then_replies(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await set_script(
        slow,
        {"on": "message", "do": "offline", "for_ms": 60_000, "times": 1},
        {"on": "message", "do": "reply", "text": "Back", "after_ms": 500},
    )
    first = await slow.send_text("First")
    clock.advance(ms=1000)
    await slow.wait_for_phone(lambda shown: shown["is_offline"])
    second = await slow.send_text("Second")
    await slow.receiver.wait_until(lambda: slow.receiver.statuses(second))
    offline_statuses = [status["status"] for status in slow.receiver.statuses(second)]

    clock.advance(ms=60_000)
    await slow.wait_for_phone(lambda shown: not shown["is_offline"])
    await slow.receiver.wait_until(lambda: len(slow.receiver.statuses(second)) == 2)
    clock.advance(ms=500)

    await slow.receiver.wait_until(lambda: len(slow.receiver.messages()) == 3)
    assert offline_statuses == ["sent"]
    assert [message["context"]["id"] for message in slow.receiver.messages()[1:]] == [first, second]


async def test_opting_out_sends_a_webhook_and_reporting_does_not(bench: Bench) -> None:
    await bench.send_from_phone()
    await set_script(bench, {"on": "message", "do": "report"}, {"on": "message", "do": "opt_out"})

    wamid = await bench.send_text()

    await bench.receiver.wait_until(lambda: bench.receiver.changes("user_preferences"))
    shown = (await bench.control("GET", f"phones/{ANN}")).body
    assert [report["message_id"] for report in shown["reports"]] == [wamid]
    assert len(shown["stopped_marketing_of"]) == 1


async def test_form_is_filled_in_by_script(bench: Bench) -> None:
    await bench.send_from_phone()
    await set_script(bench, {"on": "form", "do": "respond", "response": {"values": {"city": "Ulm"}}})
    address = {
        "type": "address_message",
        "body": {"text": "Where do you live?"},
        "action": {"name": "address_message", "parameters": {"country": "IN"}},
    }

    response = await bench.send({"type": "interactive", "interactive": address})

    assert response.status == 200, response.body
    await bench.receiver.wait_until(lambda: len(bench.receiver.messages()) == 2)
    assert bench.receiver.messages()[1]["interactive"]["type"] == "nfm_reply"


async def test_removing_a_script_cancels_its_planned_actions(slow: Bench, clock: ManualClock) -> None:
    await slow.send_from_phone()
    await set_script(slow, {"on": "message", "do": "reply", "text": "Never", "after_ms": 1000})
    await slow.send_text()

    await set_script(slow)
    clock.advance(ms=10_000)

    assert [shown["text"] for shown in await slow.inbox()] == ["Hi", "Hello"]
    assert (await slow.control("GET", f"phones/{ANN}")).body["script"] == []
