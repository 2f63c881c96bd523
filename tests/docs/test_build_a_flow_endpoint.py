"""The page about endpoints of Flows: its requests are sent, its diagnoses are those of the simulator."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs.repository import ROOT, samples_of
from tests.simulator.conftest import Bench, bench, http, receiver
from tests.simulator.flows.conftest import endpoint, publish_booking
from tests.support.flow_endpoint import FlowEndpoint
from tests.support.polling import HANGS_AFTER_S
from waypost.simulator.flows import encryption_mistakes, endpoint_keys, endpoint_responses
from waypost.simulator.flows import endpoint as endpoint_module

__all__ = ["bench", "endpoint", "http", "receiver"]
PAGE: Final = ROOT / "docs" / "how-to" / "build-a-flow-endpoint.md"


async def test_commands_show_what_the_endpoint_did(bench: Bench, endpoint: FlowEndpoint) -> None:
    flow_id = await publish_booking(bench, endpoint)
    shell = "\n".join(samples_of(PAGE, "sh")).replace("curl -s", "echo; curl -sS")

    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", shell),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "CONTROL_URL": f"{bench.base}/control", "FLOW": flow_id},
    )
    output, _ = await asyncio.wait_for(process.communicate(), HANGS_AFTER_S)

    assert process.returncode == 0
    ping, opened, submitted, kept, armed, stale, damaged = map(json.loads, filter(None, output.decode().splitlines()))
    assert [one["response"].get("screen") for one in (ping, opened, submitted)] == [None, "ASK", "TIMES"]
    assert [one["number"] for one in kept["exchanges"]] == [1, 2, 3]
    assert len(armed["faults"]) == 2
    assert [one["attempts"] for one in (stale, damaged)] == [2, 2]
    assert all(one["warnings"][0].endswith("as it must.") for one in (stale, damaged))


def test_every_error_of_the_table_exists() -> None:
    modules = (endpoint_responses, encryption_mistakes, endpoint_keys, endpoint_module)
    source = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules)
    rows: list[tuple[Any, ...]] = re.findall(r"^\| (`.+?`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    names = {name for cells in rows for name in re.findall(r"`([^`]+)`", str(cells))} - {"error_type"}

    assert [name for name in sorted(names) if f'"{name}"' not in source] == []


@pytest.mark.parametrize("part", ["did not flip the bits", "initial vector of 12 bytes", "left out the tag"])
def test_diagnoses_of_the_page_are_those_of_the_code(part: str) -> None:
    code = Path(str(encryption_mistakes.__file__)).read_text(encoding="utf-8")

    assert part in PAGE.read_text(encoding="utf-8")
    assert part in code
