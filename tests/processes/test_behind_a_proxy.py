"""Two services behind nginx or Caddy, with the files of `deploy/` and TLS.

`WAYPOST_TEST_PROXIES` names the proxies, separated by commas; `make restarts` tests both.
"""

import asyncio
import io
import os
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from crashes.cluster import ClusterUnderTest
from crashes.partner import APP_NAME, SOURCE
from crashes.proxies import HOST, ProxyUnderTest
from crashes.rolling_restart import open_cluster, restart_in_turn
from tests.support.polling import HANGS_AFTER_S, poll_until

OPEN_STATES: Final = ("01", "08")
"""ESTABLISHED and CLOSE_WAIT of Linux."""
AFTER_A_KILL: Final = {"nginx": {200}, "caddy": {200, 502}}
"""What requests with a body may get from the proxy until a health check has failed. Caddy up to 2.11.1 closes the body
when a machine refuses the connection, and cannot send it to the next. Source: docs/how-to/behind-a-proxy.md."""

PROXIES: Final = os.environ.get("WAYPOST_TEST_PROXIES", "nginx").split(",")
DRAIN_S: Final = 6
"""Longer than the 5 s for which the proxies keep idle connections."""
MIB: Final = 1024 * 1024
ANN: Final = "15557001001"
ACCOUNT: Final = {"email": "crash@waypost.test", "password": "Crash-1234"}


@pytest_asyncio.fixture
async def cluster(tmp_path: Path, database_url: str) -> AsyncIterator[ClusterUnderTest]:
    """Yield two services that drain before they stop."""
    async with open_cluster(tmp_path, database_url, drain_s=DRAIN_S) as cluster:
        yield cluster
        for child in cluster.children:  # shown by pytest if the test failed
            sys.stdout.write(child.last_lines() + "\n")


@pytest_asyncio.fixture(params=PROXIES)
async def proxy(
    request: pytest.FixtureRequest, tmp_path: Path, cluster: ClusterUnderTest
) -> AsyncIterator[ProxyUnderTest]:
    """Yield a proxy in front of them."""
    proxy = ProxyUnderTest(request.param, tmp_path, cluster.base_urls)
    try:
        await proxy.open()
        yield proxy
    finally:
        await proxy.close()
        sys.stdout.write(proxy.child.last_lines() + "\n")


async def test_requests_and_limits_of_the_service_work_through_the_proxy(
    cluster: ClusterUnderTest, proxy: ProxyUnderTest
) -> None:
    async with proxy.session() as http:
        await asyncio.gather(
            _check_uploads(cluster, proxy, http), _check_headers(proxy, http), _check_slow_headers(proxy)
        )
        await _check_client_address(cluster, proxy)
        await _check_stream(cluster, proxy, http)
        await _check_failover(cluster, proxy, http)


async def _check_uploads(cluster: ClusterUnderTest, proxy: ProxyUnderTest, http: aiohttp.ClientSession) -> None:
    """Check that a file may have 100 MiB, and that more is an error of the service, much more one of the proxy."""
    app_id, headers = cluster.partner.app_id, {"Authorization": cluster.partner.app_token}
    results: list[tuple[int, str]] = []
    for size in (100 * MIB, 101 * MIB, 111 * MIB):
        form = aiohttp.FormData()
        form.add_field("file_type", "text/plain")
        form.add_field("file", io.BytesIO(b"a" * size), filename="a.txt", content_type="text/plain")
        async with http.post(f"{proxy.url}/partner/app/{app_id}/media", data=form, headers=headers) as response:
            results.append((response.status, await response.text()))

    (accepted, _), (rejected, reason), (stopped, text) = results
    assert accepted == 200
    assert (rejected, "File size exceeds the maximum limit!" in reason) == (413, True), reason
    assert (stopped, '"status":"error"' in text) == (413, True)


async def _check_headers(proxy: ProxyUnderTest, http: aiohttp.ClientSession) -> None:
    async def get(path: str, count: int) -> tuple[int, str]:
        headers = {f"X-Header-{number}": "a" * 6000 for number in range(count)}
        async with http.get(proxy.url + path, headers=headers) as response:
            return response.status, (await response.json())["status"]

    assert await get("/healthz", 5) == (200, "ok")
    assert await get("/healthz", 11) == (431, "error")
    assert await get("/healthz?" + "a" * 9000, 0) == (414, "error")
    assert await get("/metrics", 0) == (404, "error")
    assert await get("/admin/apps", 0) == (404, "error")


async def _check_slow_headers(proxy: ProxyUnderTest) -> None:
    """Check that a client whose headers do not arrive is disconnected, and that HTTP/2 is offered."""
    context = proxy.tls()
    context.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=context, server_hostname=HOST)
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    assert tls.selected_alpn_protocol() == "h2"
    writer.close()

    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=proxy.tls(), server_hostname=HOST)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: ")
    async with asyncio.timeout(HANGS_AFTER_S):
        response = await reader.read()
    writer.close()
    assert b" 200 " not in response


async def _check_client_address(cluster: ClusterUnderTest, proxy: ProxyUnderTest) -> None:
    """Check that the service sees the address of the client, whatever it writes in the header itself."""
    headers = {"X-Forwarded-For": "203.0.113.9"}
    async with proxy.session(address="127.0.0.2") as http:
        async with http.post(f"{proxy.url}/partner/account/login", data=ACCOUNT, headers=headers) as response:
            headers["Authorization"] = (await response.json())["token"]
        url = f"{proxy.url}/partner/app/{cluster.partner.app_id}/apikey"
        async with http.post(url, data={"name": "another"}, headers=headers) as response:
            assert response.status == 200, await response.text()

    audit = await cluster.admin("GET", "audit?limit=1")
    assert [entry["remote_address"] for entry in audit["entries"]] == ["127.0.0.2"]


async def _check_stream(cluster: ClusterUnderTest, proxy: ProxyUnderTest, http: aiohttp.ClientSession) -> None:
    """Check that an event arrives while the stream is open."""
    async with http.post(f"{proxy.url}/sign-in", data=ACCOUNT, allow_redirects=False) as response:
        assert response.status == 303
    path = f"/apps/{cluster.partner.app_id}/messages/received/live"
    async with http.get(proxy.url + path) as response, asyncio.timeout(HANGS_AFTER_S):
        assert (response.status, response.content_type) == (200, "text/event-stream")
        await response.content.readline()

        await cluster.send_inbound_text(ANN)
        while "(6 characters)" not in (await response.content.readline()).decode():
            assert not response.content.at_eof()


async def _check_failover(cluster: ClusterUnderTest, proxy: ProxyUnderTest, http: aiohttp.ClientSession) -> None:
    """Check that a killed service costs no request that begins after the proxy has seen its end.

    A request on a connection that is still open there would be sent, and must not be repeated.
    """
    gone, _ = cluster.services
    port = URL(cluster.base_url).port
    assert port is not None
    gone.kill()

    async def has_closed() -> bool:
        return not _has_open_connections(port)

    assert await poll_until(has_closed)
    form = {"channel": "whatsapp", "source": SOURCE, "src.name": APP_NAME, "destination": ANN}
    form["message"] = '{"type":"text","text":"Still there?"}'
    headers = {"apikey": cluster.partner.api_key}
    statuses: list[int] = []

    async def are_accepted() -> bool:
        async with http.post(f"{proxy.url}/wa/api/v1/msg", data=form, headers=headers) as response:
            statuses.append(response.status)
        return statuses[-20:] == [200] * 20

    assert await poll_until(are_accepted)
    assert set(statuses) <= AFTER_A_KILL[proxy.child.name], statuses


def _has_open_connections(port: int) -> bool:
    """True if a process of this machine has a connection to a port that it has not closed."""
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(fields[2].endswith(f":{port:04X}") and fields[3] in OPEN_STATES for fields in sockets)


async def test_rolling_restart_under_load_breaks_no_request_and_sends_each_message_once(
    cluster: ClusterUnderTest, proxy: ProxyUnderTest
) -> None:
    counts = await restart_in_turn(cluster, proxy, rounds=1)

    assert counts.is_flawless, counts
    assert counts.restarts == len(cluster.services)
    assert all(counts.requests[kind] > 10 for kind in ("messages", "reads", "uploads"))
