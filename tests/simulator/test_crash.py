"""A simulator that is killed has everything that it answered with 200."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Receiver, make_bench
from tests.support.waiting import patiently
from waypost.base.clock import SystemClock

_PROGRAM = f"""
import asyncio, pathlib, socket, sys
import uvicorn
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings

async def main():
    clock = SystemClock()
    settings = SimulatorSettings(pathlib.Path(sys.argv[1]), limits=False, deliver_after_ms=300)
    simulator = Simulator(settings, clock, RandomIds(clock))
    await simulator.open()
    nowhere = "http://127.0.0.1:9/hook"
    account = AccountSeed("{WABA}", "One", "", "{TOKEN}", "3000000000000003", "{SECRET}", "v", nowhere)
    await simulator.seed(account, [NumberSeed("{NUMBER_ID}", "{WABA}", "{BUSINESS}", "Shop")])
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(simulator.application, lifespan="off", log_config=None)
    await uvicorn.Server(config).serve([listener])

asyncio.run(main())
"""


@pytest.fixture
async def victim(tmp_path: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PROGRAM, str(tmp_path / "simulator.sqlite3"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port = (await process.stdout.readline()).decode().strip()
    yield process, f"http://127.0.0.1:{port}"
    if process.returncode is None:
        process.kill()
    await process.wait()


async def test_killed_simulator_loses_nothing_that_it_answered(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    answered: list[str] = []
    enough = asyncio.Event()

    async def keep_sending(worker: int) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for number in range(10_000):
            message = {
                "messaging_product": "whatsapp",
                "to": f"1555{worker:03d}{number:04d}",
                "text": {"body": "Hello"},
                "biz_opaque_callback_data": f"{worker}-{number}",
            }
            url = f"{base}/v25.0/{NUMBER_ID}/messages"
            async with http.post(url, json=message, headers=headers) as answer:
                if answer.status == 200:
                    answered.append((await answer.json())["messages"][0]["id"])
            if len(answered) >= 200:
                enough.set()

    senders = [asyncio.create_task(keep_sending(worker)) for worker in range(200, 208)]
    await enough.wait()
    process.send_signal(signal.SIGKILL)
    await asyncio.gather(*senders, return_exceptions=True)

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    listed = await bench.control("GET", "deliveries?limit=20000")
    kept = {row["wamid"] for row in listed.body["deliveries"]}
    await receiver.until(lambda: {one["id"] for one in receiver.statuses()} >= set(answered))
    await bench.stop()
    assert kept >= set(answered)
    assert {one["status"] for one in receiver.statuses()} == {"failed"}


async def test_killed_simulator_has_every_file_that_it_took(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    headers = {"Authorization": f"Bearer {TOKEN}"}
    taken: list[tuple[str, bytes]] = []
    for number in range(5):
        content = b"\x89PNG" + bytes([number]) * 100_000
        form = aiohttp.FormData({"messaging_product": "whatsapp"})
        form.add_field("file", content, filename="a.png", content_type="image/png")
        url = f"{base}/v25.0/{NUMBER_ID}/media"
        async with http.post(url, data=form, headers=headers) as answer:
            taken.append(((await answer.json())["id"], content))

    process.send_signal(signal.SIGKILL)
    await process.wait()

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    for media_id, content in taken:
        shown = await bench.graph("GET", media_id)
        async with http.get(shown.body["url"], headers=headers) as answer:
            assert await answer.read() == content
    await bench.stop()


async def test_killed_simulator_remembers_what_it_counts_and_whom_it_lets_in(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    before = make_bench(tmp_path / "elsewhere", SystemClock(), receiver, http)
    before.base = base
    hello = [{"type": "BODY", "text": "Hello there"}]
    made = await before.control("POST", "tokens", {"waba_ids": [WABA], "expires_in_ms": 3_600_000})
    await before.control("POST", "tokens/revoke", {"token": TOKEN})
    token = made.body["token"]
    draft = {"name": "a", "language": "en_US", "category": "UTILITY", "components": hello}
    path = f"{WABA}/message_templates"
    template_id = (await before.graph("POST", path, token=token, json=draft)).body["id"]
    await before.control("POST", f"templates/{template_id}/approve")
    edit = {"components": hello}
    edited = await before.graph("POST", template_id, token=token, json=edit)
    await before.control("POST", f"templates/{template_id}/approve")
    await before.control("POST", f"templates/{template_id}/pace")
    message = {
        "messaging_product": "whatsapp", "to": ANN, "type": "template",
        "template": {"name": "a", "language": {"code": "en_US"}},
    }  # fmt: skip
    held = await before.graph("POST", f"{NUMBER_ID}/messages", token=token, json=message)
    await before.control("PUT", f"numbers/{NUMBER_ID}/hindrance", {"name": "LOCKED"})

    process.send_signal(signal.SIGKILL)
    await process.wait()

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    revoked = await bench.graph("GET", WABA)
    again = await bench.graph("POST", template_id, token=token, json=edit)
    locked = await bench.graph("POST", f"{NUMBER_ID}/messages", token=token, json=message)
    await bench.control("POST", f"templates/{template_id}/release")
    wamid = held.body["messages"][0]["id"]
    [sent, *_] = await receiver.until(lambda: receiver.statuses(wamid))
    await bench.stop()
    assert edited.status == 200
    assert (revoked.error["code"], again.error["code"]) == (190, 100)
    assert "once in 24 hours" in again.error["error_user_msg"]
    assert locked.error["code"] == 131031
    assert sent["status"] == "sent"


async def test_killed_simulator_does_what_its_phones_had_planned_once(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    first, count = 15_557_000_000, 60
    fleet = {
        "name": "crowd", "first": str(first), "count": count, "open_window_to": BUSINESS,
        "script": [{"on": "message", "do": "answer", "text": "Yes", "after_ms": [0, 900]}],
    }  # fmt: skip

    async def answers() -> int:
        async with http.get(f"{base}/control/fleets/crowd") as shown:
            return (await shown.json())["counts"]["answers"]

    async def send(phone: int) -> None:
        message = {"messaging_product": "whatsapp", "to": str(phone), "text": {"body": "Hello"}}
        url, headers = f"{base}/v25.0/{NUMBER_ID}/messages", {"Authorization": f"Bearer {TOKEN}"}
        async with http.post(url, json=message, headers=headers) as answer:
            assert answer.status == 200

    async with http.post(f"{base}/control/fleets", json=fleet) as made:
        assert made.status == 200, await made.text()
    await asyncio.gather(*(send(first + nth) for nth in range(count)))
    await patiently(answers, lambda done: done >= 10)
    process.send_signal(signal.SIGKILL)
    await process.wait()

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    await receiver.until(lambda: len({one["from"] for one in receiver.messages()}) == count)
    shown = (await bench.control("GET", "fleets/crowd")).body
    await bench.stop()
    assert shown["counts"]["answers"] == count
    assert shown["steps"][0]["done"] == count
    assert len({one["id"] for one in receiver.messages()}) == count
