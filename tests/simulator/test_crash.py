"""A simulator that is killed keeps everything that it accepted with 200."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, SECRET, TOKEN, WABA, Receiver, make_bench
from tests.support.polling import poll_until
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


async def test_killed_simulator_keeps_every_message_it_accepted(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    accepted: list[str] = []
    enough_sent = asyncio.Event()

    async def send_messages(worker: int) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for number in range(10_000):
            message = {
                "messaging_product": "whatsapp",
                "to": f"1555{worker:03d}{number:04d}",
                "text": {"body": "Hello"},
                "biz_opaque_callback_data": f"{worker}-{number}",
            }
            url = f"{base}/v25.0/{NUMBER_ID}/messages"
            async with http.post(url, json=message, headers=headers) as response:
                if response.status == 200:
                    accepted.append((await response.json())["messages"][0]["id"])
            if len(accepted) >= 200:
                enough_sent.set()

    senders = [asyncio.create_task(send_messages(worker)) for worker in range(200, 208)]
    await enough_sent.wait()
    process.send_signal(signal.SIGKILL)
    await asyncio.gather(*senders, return_exceptions=True)

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    listed = await bench.control("GET", "deliveries?limit=20000")
    stored = {row["wamid"] for row in listed.body["deliveries"]}
    await receiver.wait_until(lambda: {status["id"] for status in receiver.statuses()} >= set(accepted))
    await bench.stop()
    assert stored >= set(accepted)
    assert {status["status"] for status in receiver.statuses()} == {"failed"}


async def test_killed_simulator_keeps_every_file_it_accepted(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    headers = {"Authorization": f"Bearer {TOKEN}"}
    accepted: list[tuple[str, bytes]] = []
    for number in range(5):
        content = b"\x89PNG" + bytes([number]) * 100_000
        form = aiohttp.FormData({"messaging_product": "whatsapp"})
        form.add_field("file", content, filename="a.png", content_type="image/png")
        url = f"{base}/v25.0/{NUMBER_ID}/media"
        async with http.post(url, data=form, headers=headers) as response:
            accepted.append(((await response.json())["id"], content))

    process.send_signal(signal.SIGKILL)
    await process.wait()

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    for media_id, content in accepted:
        shown = await bench.graph("GET", media_id)
        async with http.get(shown.body["url"], headers=headers) as response:
            assert await response.read() == content
    await bench.stop()


async def test_killed_simulator_keeps_counters_tokens_and_restrictions(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    before = make_bench(tmp_path / "elsewhere", SystemClock(), receiver, http)
    before.base = base
    hello = [{"type": "BODY", "text": "Hello there"}]
    created = await before.control("POST", "tokens", {"waba_ids": [WABA], "expires_in_ms": 3_600_000})
    await before.control("POST", "tokens/revoke", {"token": TOKEN})
    token = created.body["token"]
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
    await before.control("PUT", f"numbers/{NUMBER_ID}/sending-restriction", {"name": "LOCKED"})

    process.send_signal(signal.SIGKILL)
    await process.wait()

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    revoked = await bench.graph("GET", WABA)
    again = await bench.graph("POST", template_id, token=token, json=edit)
    locked = await bench.graph("POST", f"{NUMBER_ID}/messages", token=token, json=message)
    await bench.control("POST", f"templates/{template_id}/release")
    wamid = held.body["messages"][0]["id"]
    [sent, *_] = await receiver.wait_until(lambda: receiver.statuses(wamid))
    await bench.stop()
    assert edited.status == 200
    assert (revoked.error["code"], again.error["code"]) == (190, 100)
    assert "once in 24 hours" in again.error["error_user_msg"]
    assert locked.error["code"] == 131031
    assert sent["status"] == "sent"


async def test_killed_simulator_runs_planned_phone_actions_exactly_once(
    victim: tuple[asyncio.subprocess.Process, str], tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    process, base = victim
    first, count = 15_557_000_000, 60
    fleet = {
        "name": "crowd", "first": str(first), "count": count, "open_window_to": BUSINESS,
        "script": [{"on": "message", "do": "reply", "text": "Yes", "after_ms": [0, 900]}],
    }  # fmt: skip

    async def responses() -> int:
        async with http.get(f"{base}/control/fleets/crowd") as shown:
            return (await shown.json())["counts"]["replies"]

    async def send(phone: int) -> None:
        message = {"messaging_product": "whatsapp", "to": str(phone), "text": {"body": "Hello"}}
        url, headers = f"{base}/v25.0/{NUMBER_ID}/messages", {"Authorization": f"Bearer {TOKEN}"}
        async with http.post(url, json=message, headers=headers) as response:
            assert response.status == 200

    async with http.post(f"{base}/control/fleets", json=fleet) as created:
        assert created.status == 200, await created.text()
    await asyncio.gather(*(send(first + nth) for nth in range(count)))
    await poll_until(responses, lambda done: done >= 10)
    process.send_signal(signal.SIGKILL)
    await process.wait()

    bench = make_bench(tmp_path, SystemClock(), receiver, http)
    await bench.start()
    await receiver.wait_until(lambda: len({message["from"] for message in receiver.messages()}) == count)
    shown = (await bench.control("GET", "fleets/crowd")).body
    await bench.stop()
    assert shown["counts"]["replies"] == count
    assert shown["steps"][0]["done"] == count
    assert len({message["id"] for message in receiver.messages()}) == count
