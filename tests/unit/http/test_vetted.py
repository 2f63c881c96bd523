"""Addresses that partners chose: only public ones are reached, however they are written."""

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address

import pytest
from yarl import URL

from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.file_server import FileServer
from tests.support.media_samples import sample
from waypost.base.http.connection_pools import AddrInfo
from waypost.outbound.addresses import is_public
from waypost.outbound.failures import AddressNotAllowed
from waypost.outbound.vetted_client import InvalidRedirect, VettedClient, resolve_redirect

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
PRIVATE = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::7f00:1",
    "3fff::1",
    "5f00::1",
    "192.88.99.1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::",
    "2001:0:7f00:1::",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_address_that_is_not_public_unicast_is_rejected(address: str) -> None:
    client = VettedClient()

    assert not is_public(ip_address(address))
    with pytest.raises(AddressNotAllowed):
        client.vet(address)


def test_address_with_a_zone_is_vetted_without_it() -> None:
    with pytest.raises(AddressNotAllowed):
        VettedClient().vet("fe80::1%eth0")


def test_allowed_network_opens_its_range_and_no_more() -> None:
    client = VettedClient(allowed_networks=["10.1.0.0/16", "::1/128"])

    client.vet("10.1.2.3")
    client.vet("::ffff:10.1.2.3")
    client.vet("::1")
    for address in ("10.2.0.1", "127.0.0.1", "::ffff:10.2.0.1"):
        with pytest.raises(AddressNotAllowed):
            client.vet(address)


@pytest.fixture
async def strict() -> AsyncIterator[VettedClient]:
    """A client that may reach public addresses only."""
    client = VettedClient(timeout_s=5)
    await client.open()
    yield client
    await client.close()


@pytest.fixture
async def local() -> AsyncIterator[VettedClient]:
    """A client that may reach this machine too."""
    client = VettedClient(allowed_networks=["127.0.0.0/8"], timeout_s=5)
    await client.open()
    yield client
    await client.close()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::]",
        "127.0.0.1.",
    ],
)
async def test_no_spelling_of_this_machine_is_reached(strict: VettedClient, sink: CallbackSink, host: str) -> None:
    response = await strict.post(f"http://{host}:{sink.port}/", b"{}", {})

    assert response.status is None
    assert response.error
    assert sink.requests == []


async def test_name_that_resolves_to_this_machine_is_not_reached(
    strict: VettedClient, sink: CallbackSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def poisoned(host: str, *args: object, **more: object) -> object:
        name = "127.0.0.1" if host == "innocent.test" else host
        return real(name, *args, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(socket, "getaddrinfo", poisoned)

    response = await strict.post(f"http://innocent.test:{sink.port}/", b"{}", {})

    assert response.status is None
    assert "is not a public address" in (response.error or "")
    assert sink.requests == []


async def test_redirect_of_a_post_is_returned_and_not_followed(local: VettedClient, sink: CallbackSink) -> None:
    sink.choose_status = respond_always(302)

    response = await local.post(sink.url, b"{}", {})

    assert response.status == 302
    assert len(sink.requests) == 1


async def test_proxy_of_the_environment_is_not_used(
    local: VettedClient, sink: CallbackSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    response = await local.post(sink.url, b"{}", {})

    assert response.status == 200


@pytest.mark.parametrize("url", ["http://", "ftp://acme.test/", "not a url", "http://[::1", "http://acme.test:99999/"])
async def test_invalid_url_has_an_error_and_no_status(local: VettedClient, url: str) -> None:
    response = await local.post(url, b"{}", {})

    assert response.status is None
    assert response.error


async def test_bytes_and_headers_arrive_as_they_were_given(local: VettedClient, sink: CallbackSink) -> None:
    body = b'{"a":"\xc3\xa4"}'

    await local.post(sink.url, body, {"X-Name": "value", "Content-Type": "application/json"})

    [request] = sink.requests
    assert request.body == body
    assert request.headers["X-Name"] == "value"
    assert request.headers["Content-Type"] == "application/json"


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    """A server of files."""
    files = FileServer()
    await files.open()
    yield files
    await files.close()


async def fetch(client: VettedClient, url: str) -> tuple[int | None, str | None, bytes]:
    content = b""

    async def receive(part: bytes) -> None:
        nonlocal content
        content += part

    response = await client.get(url, receive)
    return response.status, response.error, content


async def test_content_of_an_address_is_passed_on_as_it_arrives(local: VettedClient, files: FileServer) -> None:
    assert await fetch(local, f"{files.url}/png/300000") == (200, None, sample("png", 300_000))


async def test_response_with_another_status_is_not_read(local: VettedClient, files: FileServer) -> None:
    assert await fetch(local, f"{files.url}/status/304") == (304, None, b"")
    assert files.requested_paths == ["/status/304"]


@pytest.mark.parametrize("hops", [1, 2, 3])
async def test_up_to_three_redirects_are_followed(local: VettedClient, files: FileServer, hops: int) -> None:
    assert await fetch(local, f"{files.url}/hops/{hops}") == (200, None, sample("png"))
    assert len(files.requested_paths) == hops + 1


async def test_a_fourth_redirect_is_not_followed(local: VettedClient, files: FileServer) -> None:
    status, error, content = await fetch(local, f"{files.url}/hops/4")

    assert (status, error, content) == (None, "it redirects more than 3 times", b"")
    assert files.requested_paths == ["/hops/4", "/hops/3", "/hops/2", "/hops/1"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://93.184.216.34/a", "gopher://x", "http://", "//[::1"])
async def test_redirect_to_an_invalid_url_is_not_followed(local: VettedClient, files: FileServer, target: str) -> None:
    status, error, _ = await fetch(local, f"{files.url}/to?{target}")

    assert (status, error) == (None, "it redirects to what is not an http or https address")


@pytest.fixture
async def second_files() -> AsyncIterator[FileServer]:
    """A server of files at an address of another network."""
    files = FileServer("127.0.0.2")
    await files.open()
    yield files
    await files.close()


async def test_each_redirect_is_vetted_like_the_first_address(files: FileServer, second_files: FileServer) -> None:
    """The first address is allowed here by its network; none of those that it redirects to is."""
    port = files.url.rpartition(":")[2]
    client = VettedClient(allowed_networks=("127.0.0.2/32",))
    await client.open()
    hosts = ("127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]")

    results = [await fetch(client, f"{second_files.url}/to?http://{host}:{port}/png") for host in hosts]

    await client.close()
    assert files.requested_paths == []
    assert len(second_files.requested_paths) == len(hosts)
    for status, error, _ in results:
        assert status is None
        assert "is not a public" in (error or "") or error == "this is not an http or https address"


async def test_name_is_resolved_and_vetted_again_at_each_redirect(files: FileServer, second_files: FileServer) -> None:
    port = second_files.url.rpartition(":")[2]
    addresses = [["127.0.0.2"], ["127.0.0.1"]]  # the second time it leads elsewhere

    async def resolve(_host: str, port: int) -> list[AddrInfo]:
        current = addresses.pop(0) if len(addresses) > 1 else addresses[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in current]

    client = VettedClient(allowed_networks=("127.0.0.2/32",), resolve=resolve)
    await client.open()

    status, error, _ = await fetch(client, f"http://a.test:{port}/to?http://b.test:{port}/png")

    await client.close()
    assert status is None
    assert "127.0.0.1 is not a public address" in (error or "")
    assert second_files.requested_paths == ["/to"]
    assert files.requested_paths == []


async def test_credentials_are_not_forwarded_to_where_a_redirect_leads(local: VettedClient, files: FileServer) -> None:
    async def receive(_part: bytes) -> None:
        pass

    port = files.url.rpartition(":")[2]
    url = f"http://ann:secret@127.0.0.1:{port}/to?http://eve:other@127.0.0.1:{port}/png"
    response = await local.get(url, receive, headers={"X-Secret": "s"})

    first, second = files.headers
    assert response.status == 200
    assert "Authorization" in first
    assert first["X-Secret"] == "s"
    assert "Authorization" not in second
    assert "X-Secret" not in second
    assert "Cookie" not in second


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    with pytest.raises(InvalidRedirect, match="from https to http"):
        resolve_redirect(URL("https://a.test/x"), "http://a.test/y")

    assert str(resolve_redirect(URL("https://a.test/x"), "/y?z=1")) == "https://a.test/y?z=1"
    assert str(resolve_redirect(URL("http://a.test/x"), "https://b.test/")) == "https://b.test/"


async def test_content_that_breaks_off_is_an_error(local: VettedClient, files: FileServer) -> None:
    status, error, _ = await fetch(local, f"{files.url}/broken")

    assert status is None
    assert error


async def test_encoded_content_is_an_error(local: VettedClient, files: FileServer) -> None:
    status, error, content = await fetch(local, f"{files.url}/encoded")

    assert (status, error, content) == (None, "its response is encoded as zstd", b"")


async def test_address_that_is_not_public_is_not_fetched(strict: VettedClient, files: FileServer) -> None:
    status, error, _ = await fetch(strict, f"{files.url}/png")

    assert status is None
    assert error is not None
    assert "is not a public address" in error
    assert files.requested_paths == []


@pytest.mark.parametrize("error", [ValueError("no"), OSError(28, "full"), TimeoutError()])
async def test_error_of_the_receiver_of_the_content_is_raised(
    error: Exception, local: VettedClient, files: FileServer
) -> None:
    async def receive(_part: bytes) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await local.get(f"{files.url}/png", receive)

    assert raised.value is error
