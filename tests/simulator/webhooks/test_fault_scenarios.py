"""Scenarios: files of faults, armed once; the example files are valid."""

from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.simulator.conftest import Bench, Receiver, make_bench
from waypost.base.clock import SystemClock
from waypost.simulator import InvalidScenario, read_scenario

EXAMPLES: Final = Path(__file__).parents[3] / "examples" / "scenarios"
SCENARIO: Final = """
seed = 7
[[faults]]
on = "call"
call = "messages.send"
when = { next = 3 }
what = { error = 131016 }
"""
# fmt: off
INVALID: Final = {  # the file, and text in the error
    "no_toml":        ("faults = [",                                            "is not valid TOML at its end: a value or a closing bracket is missing"),
    "no_text":        (b"\xff\xfe",                                             "is not UTF-8 at byte 0"),
    "no_faults":      ("seed = 7",                                              "faults: is missing"),
    "a_wrong_member": ('[[faults]]\non = "call"\nwhat = { slow_ms = 0 }',       "faults[0].what.slow_ms"),
    "a_date":         ('[[faults]]\non = "call"\nwhat = { error = 1979-05-27 }', "faults[0].what.error"),
    "a_float":        ('[[faults]]\non = "call"\nwhat = { error = 2.0 }',       "faults[0].what.error"),
}
# fmt: on


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_example_is_a_scenario(path: Path) -> None:
    scenario = read_scenario(path)

    assert all(fault.get("label") for fault in scenario.faults)


def test_there_are_examples() -> None:
    assert (EXAMPLES / "bad-day.toml").is_file()


@pytest.mark.parametrize("name", INVALID)
def test_invalid_file_error_names_the_fault(tmp_path: Path, name: str) -> None:
    content, expected = INVALID[name]
    path = tmp_path / "scenario.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(InvalidScenario) as error:
        read_scenario(path)

    assert str(path) in str(error.value)
    assert expected in str(error.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidScenario, match="No such file"):
        read_scenario(tmp_path / "nowhere.toml")


async def test_scenario_is_armed_once_across_restarts(
    tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    await bench.simulator.arm_scenario(read_scenario(path))
    await bench.send({"type": "text", "text": {"body": "Hello"}})

    await bench.restart()
    await bench.simulator.arm_scenario(read_scenario(path))

    [fault] = await list_faults(bench)
    await bench.stop()
    assert (fault["hits"], fault["left"], fault["seed"]) == (1, 2, 7)


async def test_changed_scenario_replaces_only_its_earlier_version(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    await bench.control("POST", "faults", {"on": "call", "what": {"error": 2}, "label": "by hand"})
    await bench.simulator.arm_scenario(read_scenario(path))

    path.write_text(SCENARIO.replace("131016", "131000"), encoding="utf-8")
    await bench.simulator.arm_scenario(read_scenario(path))

    assert [(fault.get("label"), fault["what"]["error"]) for fault in await list_faults(bench)] == [
        ("by hand", 2),
        (None, 131000),
    ]


async def list_faults(bench: Bench) -> list[dict[str, Any]]:
    """Return the armed faults."""
    return (await bench.control("GET", "faults")).body["faults"]
