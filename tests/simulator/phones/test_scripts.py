"""Scripts: what phones do by themselves, the same in every run."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench
from waypost.base.clock import ManualClock
from waypost.simulator.phones.script_planning import Script, plan_steps
from waypost.simulator.phones.script_steps import STEP_ACTIONS, STEP_TRIGGERS, InvalidScript, read_steps

Part = dict[str, Any]
BEN = "15551230002"
BUTTONS: list[Part] = [
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


def script(*steps: Part, seed: str = "1") -> Script:
    return Script("phone 1", seed, read_steps(list(steps)))


async def give(bench: Bench, *steps: Part, phone: str = ANN, **more: Any) -> None:
    answer = await bench.control("PUT", f"phones/{phone}", {"script": list(steps), **more})
    assert answer.status == 200, answer.body


# fmt: off
ON: list[tuple[str, set[str]]] = [
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


@pytest.mark.parametrize(("on", "expected"), ON)
def test_step_is_for_the_messages_of_its_occasion(on: str, expected: set[str]) -> None:
    shown = {"text": TEXT, "template": TEMPLATE, "form": FORM}

    taken = {name for name, one in shown.items() if plan_steps(script({"on": on, "do": "read"}), ANN, 1, one, {})}

    assert taken == expected
    assert set(STEP_TRIGGERS) == {row[0] for row in ON}


# fmt: off
WRONG: list[tuple[Any, str, str]] = [
    # step                                                         field                     a part of what is accepted
    ("read",                                                       "script[0]",              '"do": "read"'),
    ({"do": "read"},                                               "script[0].on",           "message, template"),
    ({"on": "message"},                                            "script[0].do",           "read, answer"),
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
    ({"on": "message", "do": "answer"},                            "script[0].text",         "1 to 4096"),
    ({"on": "message", "do": "answer", "text": ""},                "script[0].text",         "1 to 4096"),
    ({"on": "message", "do": "read", "text": "x"},                 "script[0].text",         "after_ms"),
    ({"on": "button", "do": "tap", "index": "0"},                  "script[0].index",        "0 to 99"),
    ({"on": "form", "do": "respond", "response": []},              "script[0].response",     "an object"),
    ({"on": "message", "do": "offline", "for_ms": "long"},         "script[0].for_ms",       "0 to"),
]
# fmt: on


@pytest.mark.parametrize(("step", "field", "accepted"), WRONG, ids=range(len(WRONG)))
def test_step_that_cannot_be_is_refused_by_field(step: Any, field: str, accepted: str) -> None:
    with pytest.raises(InvalidScript) as refused:
        read_steps([step])

    assert refused.value.field == field
    assert accepted in refused.value.accepted


async def test_wrong_script_is_refused_at_the_door(bench: Bench) -> None:
    steps = [{"on": "message", "do": "read"}, {"on": "message", "do": "dance"}]

    answer = await bench.control("PUT", f"phones/{ANN}", {"script": steps})

    assert (answer.status, answer.body["field"]) == (400, "script[1].do")
    assert set(answer.body["accepted"].split(", ")) == set(STEP_ACTIONS)


def test_same_seed_phone_and_message_decide_the_same() -> None:
    one = script({"on": "message", "do": "answer", "text": "x", "probability": 0.5,
                  "after_ms": [0, 1000]})  # fmt: skip
    other = script({"on": "message", "do": "answer", "text": "x", "probability": 0.5,
                    "after_ms": [0, 1000]}, seed="2")  # fmt: skip

    def run(of: Script) -> list[Any]:
        return [plan_steps(of, str(phone), nth, TEXT, {}) for phone in range(100) for nth in (1, 2)]

    assert run(one) == run(one)
    assert run(one) != run(other)


def test_probability_and_delay_are_spread_as_asked() -> None:
    step = {"on": "message", "do": "react", "text": "x", "probability": 0.25, "after_ms": [10, 19]}

    taken = [intention for nth in range(8000) for intention in plan_steps(script(step), ANN, nth, TEXT, {})]

    assert 1800 < len(taken) < 2200
    assert {intention.after_ms for intention in taken} == set(range(10, 20))


def test_nothing_ends_the_script_for_its_message() -> None:
    steps = script({"on": "message", "do": "nothing"}, {"on": "message", "do": "read"})

    assert [one.step for one in plan_steps(steps, ANN, 1, TEXT, {})] == [0]


async def test_phone_taps_the_button_that_its_script_names(bench: Bench) -> None:
    await bench.seed_template(BUTTONS)
    await give(bench, {"on": "button", "do": "tap", "index": 1})
    await give(bench, {"on": "button", "do": "tap", "text": "Yes"}, phone=BEN)

    await bench.send_template()
    await bench.send_template(to=BEN)

    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    tapped = {one["from"]: one["button"]["text"] for one in bench.receiver.messages()}
    assert tapped == {ANN: "No", BEN: "Yes"}


async def test_phone_answers_reacts_and_reads_in_its_own_time(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await slow.receiver.until(slow.receiver.messages)
    await give(
        slow,
        {"on": "session", "do": "read", "after_ms": 1000},
        {"on": "session", "do": "react", "after_ms": 2000, "text": "\U0001f44d"},
        {"on": "session", "do": "answer", "after_ms": 3000, "text": "Thank you"},
    )
    wamid = await slow.send_text()
    manual.advance(ms=2000)
    await slow.receiver.until(lambda: len(slow.receiver.statuses(wamid)) == 3)
    before = len(slow.receiver.messages())

    manual.advance(ms=1000)
    await slow.receiver.until(lambda: len(slow.receiver.messages()) == 2)
    manual.advance(ms=1000)
    await slow.receiver.until(lambda: len(slow.receiver.messages()) == 3)

    _, reaction, answer = slow.receiver.messages()
    assert before == 1
    assert reaction["reaction"] == {"message_id": wamid, "emoji": "\U0001f44d"}
    assert (answer["text"]["body"], answer["context"]["id"]) == ("Thank you", wamid)
    steps = (await slow.control("GET", f"phones/{ANN}")).body["steps"]
    assert [(one["planned"], one.get("done")) for one in steps] == [(1, None), (1, 1), (1, 1)]


async def test_step_is_taken_so_many_times_and_counts_over_a_restart(bench: Bench) -> None:
    await give(bench, {"on": "message", "do": "answer", "text": "Once", "times": 1})
    await bench.let_write()
    await bench.send_text()
    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)

    await bench.restart()
    wamid = await bench.send_text()

    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    steps = (await bench.control("GET", f"phones/{ANN}")).body["steps"]
    assert steps == [{"step": 0, "on": "message", "do": "answer", "planned": 1, "done": 1}]


async def test_planned_act_is_done_once_after_a_restart(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await give(slow, {"on": "message", "do": "answer", "text": "Later", "after_ms": 60_000})
    await slow.send_text()

    await slow.restart()
    manual.advance(ms=61_000)
    await slow.receiver.until(lambda: [one for one in slow.receiver.messages() if one["text"]["body"] == "Later"])
    await slow.restart()
    manual.advance(ms=61_000)

    assert [shown["text"] for shown in await slow.inbox()] == ["Hi", "Hello", "Later"]


async def test_phone_that_blocks_says_no_more(bench: Bench) -> None:
    await bench.let_write()
    await give(
        bench, {"on": "message", "do": "block"}, {"on": "message", "do": "answer", "text": "Never", "after_ms": 1}
    )
    wamid = await bench.send_text()
    await bench.receiver.until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    await bench.phone_until(lambda shown: shown["has_blocked"])

    lost = await bench.send_text("Unseen")

    await bench.receiver.until(lambda: bench.receiver.statuses(lost))
    assert [shown["text"] for shown in await bench.inbox()] == ["Hi", "Hello"]


async def test_phone_goes_offline_comes_back_and_then_answers(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await give(
        slow,
        {"on": "message", "do": "offline", "for_ms": 60_000, "times": 1},
        {"on": "message", "do": "answer", "text": "Back", "after_ms": 500},
    )
    first = await slow.send_text("First")
    manual.advance(ms=1000)
    await slow.phone_until(lambda shown: shown["is_offline"])
    second = await slow.send_text("Second")
    await slow.receiver.until(lambda: slow.receiver.statuses(second))
    told_offline = [one["status"] for one in slow.receiver.statuses(second)]

    manual.advance(ms=60_000)
    await slow.phone_until(lambda shown: not shown["is_offline"])
    await slow.receiver.until(lambda: len(slow.receiver.statuses(second)) == 2)
    manual.advance(ms=500)

    await slow.receiver.until(lambda: len(slow.receiver.messages()) == 3)
    assert told_offline == ["sent"]
    assert [one["context"]["id"] for one in slow.receiver.messages()[1:]] == [first, second]


async def test_opting_out_is_told_and_reporting_is_not(bench: Bench) -> None:
    await bench.let_write()
    await give(bench, {"on": "message", "do": "report"}, {"on": "message", "do": "opt_out"})

    wamid = await bench.send_text()

    await bench.receiver.until(lambda: bench.receiver.changes("user_preferences"))
    shown = (await bench.control("GET", f"phones/{ANN}")).body
    assert [one["message_id"] for one in shown["reports"]] == [wamid]
    assert len(shown["stopped_marketing_of"]) == 1


async def test_form_is_filled_in_by_script(bench: Bench) -> None:
    await bench.let_write()
    await give(bench, {"on": "form", "do": "respond", "response": {"values": {"city": "Ulm"}}})
    address = {
        "type": "address_message",
        "body": {"text": "Where do you live?"},
        "action": {"name": "address_message", "parameters": {"country": "IN"}},
    }

    answer = await bench.send({"type": "interactive", "interactive": address})

    assert answer.status == 200, answer.body
    await bench.receiver.until(lambda: len(bench.receiver.messages()) == 2)
    assert bench.receiver.messages()[1]["interactive"]["type"] == "nfm_reply"


async def test_script_is_taken_away_with_what_it_had_planned(slow: Bench, manual: ManualClock) -> None:
    await slow.let_write()
    await give(slow, {"on": "message", "do": "answer", "text": "Never", "after_ms": 1000})
    await slow.send_text()

    await give(slow)
    manual.advance(ms=10_000)

    assert [shown["text"] for shown in await slow.inbox()] == ["Hi", "Hello"]
    assert (await slow.control("GET", f"phones/{ANN}")).body["script"] == []
