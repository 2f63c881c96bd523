"""Every interface of `waypost dev` checks Host and Origin."""

import asyncio

from tests.dev.conftest import DevStarter, RunningDev

LOG_IN = {"email": "demo@waypost.example", "password": "x"}

SERVICE = (  # one request to each interface of the service
    ("partner API", "GET", "/partner/app"),
    ("messaging API", "POST", "/wa/api/v1/msg"),
    ("login", "POST", "/partner/account/login"),
    ("media", "GET", "/media/unknown"),
    ("operator webhook", "POST", "/operator/webhook/demo"),
    ("admin API", "GET", "/admin/partners"),
    ("console", "GET", "/sign-in"),
    ("documentation", "GET", "/docs"),
    ("OpenAPI document", "GET", "/openapi.json"),
    ("liveness", "GET", "/healthz"),
    ("readiness", "GET", "/readyz"),
    ("metrics", "GET", "/metrics"),
    ("unknown path", "GET", "/nothing/here"),
)
SIMULATOR = (("Graph interface", "GET", "/v25.0/me"), ("control API", "GET", "/control/state"))
FOREIGN = (
    {"Host": "evil.example"},
    {"Host": "evil.example:8080"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "localhost.evil.example:80"},
    {"Host": "[::1"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://93.184.216.34"},
    {"Origin": "null"},
)
OWN: tuple[dict[str, str], ...] = (
    {},
    {"Host": "localhost:8080"},
    {"Host": "LOCALHOST"},
    {"Host": "127.0.0.1"},
    {"Host": "[::1]:8080"},
    {"Host": "192.168.1.20:8080"},  # a container, or another machine, with --host 0.0.0.0
    {"Origin": "http://localhost:3000"},
    {"Origin": "http://127.0.0.1:5173"},
)


async def send_request(
    started: RunningDev, side: str, method: str, path: str, headers: dict[str, str]
) -> tuple[int, str, str]:
    base = {"service": started.running.base_url, "simulator": started.running.graph_url}[side]
    url = base + path
    async with started.http.request(
        method, url, headers=headers, data=LOG_IN if method == "POST" else None
    ) as response:
        return response.status, response.content_type, await response.text()


async def test_no_interface_responds_to_a_foreign_host_or_origin(start: DevStarter) -> None:
    started = await start()
    rows = [*(("service", *row) for row in SERVICE), *(("simulator", *row) for row in SIMULATOR)]
    for side, name, method, path in rows:
        for headers in FOREIGN:
            status, kind, text = await send_request(started, side, method, path, headers)
            assert (status, kind) == (403, "application/json"), (name, headers, status, text)
            assert "localhost" in text, (name, text)
            assert "WAYPOST_ADMIN_HOSTS" in text, (name, text)


async def test_requests_by_ip_address_and_by_localhost_are_accepted(start: DevStarter) -> None:
    started = await start()
    variables = started.running.variables
    for headers in OWN:
        with_key = headers | {"Authorization": variables["APP_TOKEN"]}
        path = f"/partner/app/{variables['APP_ID']}/templates"
        status, _, text = await send_request(started, "service", "GET", path, with_key)
        assert status == 200, (headers, text)
        with_token = headers | {"Authorization": f"Bearer {variables['GRAPH_TOKEN']}"}
        path = f"/v25.0/{variables['PHONE_NUMBER_ID']}"
        status, _, text = await send_request(started, "simulator", "GET", path, with_token)
        assert status == 200, (headers, text)


async def test_a_host_of_the_settings_is_accepted_by_every_interface(start: DevStarter) -> None:
    started = await start(settings={"admin_hosts": "waypost.test", "public_url": "https://tunnel.test"})
    for host in ("waypost.test", "WAYPOST.test:8080", "tunnel.test"):
        for side, path, expected in (
            ("service", "/healthz", 200),
            ("service", "/partner/app", 405),
            ("simulator", "/v25.0/me", 401),
        ):
            status, _, text = await send_request(started, side, "GET", path, {"Host": host})
            assert status == expected, (host, side, path, text)
    allowed = {"Host": "waypost.test"}
    status, _, text = await send_request(started, "simulator", "GET", "/control/state", allowed)
    assert status == 200, text


async def test_a_request_with_two_hosts_is_rejected(start: DevStarter) -> None:
    """A proxy in front of us may read one Host and we the other."""
    started = await start()
    port = int(started.running.base_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    assert head.split(b" ")[1] in (b"400", b"403"), head


async def test_the_control_api_lists_the_accepted_hosts_to_a_foreign_host(start: DevStarter) -> None:
    started = await start()
    url = f"{started.running.graph_url}/control/state"
    async with started.http.get(url, headers={"Host": "evil.example"}) as response:
        body = await response.json()
    assert "an IP address" in body["error"]["message"]
