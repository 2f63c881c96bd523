"""The baseline of callbacks: the same bodies posted by aiohttp, without a store. Frozen, like `bare.py`."""

import argparse
import asyncio

import aiohttp
import uvloop

AT_ONCE = 64
HEADERS = {
    "Content-Type": "application/json; charset=utf-8",
    "User-Agent": "bare",
    "Waypost-Callback-Id": "01990000-0000-7000-8000-000000000000",
    "Waypost-Sequence": "1",
}
BODY = (
    b'{"app":"BenchApp","timestamp":1800000000000,"version":2,"phone":"1555","type":"message-event","payload":{"id":"wamid.HBgLMTU1",'
    b'"gsId":"%012d","type":"read","destination":"15550001111","payload":{"ts":1800000000}}}'
)


async def post(to: int, count: int) -> None:
    url = f"http://127.0.0.1:{to}/callbacks"
    numbers = iter(range(count))
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=AT_ONCE), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def send_posts() -> None:
            for n in numbers:
                async with session.post(url, data=BODY % n, headers=HEADERS) as response:
                    await response.read()

        await asyncio.gather(*(send_posts() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    chosen = parser.parse_args()
    uvloop.run(post(chosen.to, chosen.count))
