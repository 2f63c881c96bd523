"""Table: every way to write an address that is not public, at registration and at each send."""

import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.support.callback_sink import CallbackSink
from waypost.base.http.connection_pools import AddrInfo
from waypost.outbound.vetted_client import VettedClient

# fmt: off
FORMS = {  # host as written in a URL, by what it is
    "loopback":                   "127.0.0.1",
    "loopback, another":          "127.255.255.254",
    "one number":                 "2130706433",
    "one octal number":           "017700000001",
    "one hexadecimal number":     "0x7f000001",
    "hexadecimal parts":          "0x7f.0x0.0x0.0x1",
    "octal parts":                "0177.0000.0000.0001",
    "mixed parts":                "0x7f.0.01.1",
    "two parts":                  "127.1",
    "three parts":                "127.0.1",
    "trailing dot":               "127.0.0.1.",
    "short with trailing dot":    "127.1.",
    "zero":                       "0",
    "zeros":                      "0.0.0.0",
    "private, class A":           "10.0.0.1",
    "private, class B":           "172.31.255.255",
    "private, class C":           "192.168.0.1",
    "carrier-grade NAT":          "100.127.255.254",
    "link-local":                 "169.254.0.1",
    "metadata":                   "169.254.169.254",
    "metadata, one number":       "2852039166",
    "metadata, hexadecimal":      "0xa9fea9fe",
    "metadata, octal":            "0251.0376.0251.0376",
    "benchmarking":               "198.19.0.1",
    "documentation":              "203.0.113.9",
    "multicast":                  "239.1.2.3",
    "broadcast":                  "255.255.255.255",
    "fullwidth digits":           "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "circled digits":             "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "ideographic dots":           "127\u30020\u30020\u30021",
    "localhost":                  "localhost",
    "localhost in capitals":      "LOCALHOST",
    "localhost, trailing dot":    "localhost.",
    "v6 loopback":                "[::1]",
    "v6 loopback, long":          "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "v6 unspecified":             "[::]",
    "v4-mapped":                  "[::ffff:127.0.0.1]",
    "v4-mapped, hexadecimal":     "[::ffff:7f00:1]",
    "v4-mapped metadata":         "[::ffff:a9fe:a9fe]",
    "v4-compatible":              "[::127.0.0.1]",
    "v4-translated":              "[::ffff:0:127.0.0.1]",
    "NAT64":                      "[64:ff9b::7f00:1]",
    "NAT64 metadata":             "[64:ff9b::169.254.169.254]",
    "NAT64, local":               "[64:ff9b:1::a00:1]",
    "6to4":                       "[2002:7f00:1::1]",
    "6to4 private":               "[2002:c0a8:1::1]",
    "Teredo":                     "[2001:0:7f00:1::1]",
    "Teredo, public server":      "[2001:0:808:808:0:0:80ff:fffe]",
    "ISATAP":                     "[2606:4700::5efe:7f00:1]",
    "ISATAP, universal":          "[2606:4700::200:5efe:a9fe:a9fe]",
    "unique local":               "[fd00:ec2::254]",
    "v6 link-local":              "[fe80::1]",
    "v6 link-local with a zone":  "[fe80::1%25lo]",
    "v6 site-local":              "[fec0::1]",
    "v6 multicast":               "[ff02::1]",
    "v6 discard":                 "[100::1]",
    "v6 documentation":           "[2001:db8::1]",
    "v6 unassigned":              "[4000::1]",
    "name before it":             "user@127.0.0.1",
    "public name before it":      "93.184.216.34@127.0.0.1",
    "public name and a password": "example.com:443@127.0.0.1",
}
# fmt: on


@pytest.fixture
async def strict() -> AsyncIterator[VettedClient]:
    """A client that may reach public addresses only."""
    client = VettedClient(timeout_s=5)
    await client.open()
    yield client
    await client.close()


@pytest.mark.parametrize("host", FORMS.values(), ids=FORMS)
async def test_no_form_of_an_address_that_is_not_public_is_reached(
    strict: VettedClient, sink: CallbackSink, host: str
) -> None:
    url = f"http://{host}:{sink.port}/"

    at_registration = await strict.check_url(url)
    at_send = await strict.post(url, b"{}", {})

    assert sink.requests == []
    assert at_send.status is None
    assert at_registration is not None
    for error in (at_registration, at_send.error or ""):
        assert "is not a public address" in error or error == "this is not an http or https address"


@pytest.mark.parametrize("url", ["http://93.184.216.34/", "https://[2606:4700:4700::1111]:8443/x", "http://8.8.8.8:1/"])
async def test_public_literal_passes_registration(strict: VettedClient, url: str) -> None:
    assert await strict.check_url(url) is None


def resolver(table: dict[str, list[Sequence[str]]]) -> "FakeResolver":
    return FakeResolver(table)


class FakeResolver:
    """A resolver that returns the next addresses of a name at each call; the last ones stay."""

    def __init__(self, table: dict[str, list[Sequence[str]]]) -> None:
        self._table = table
        self.hosts: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[AddrInfo]:
        self.hosts.append(host)
        results = self._table[host]
        addresses = results.pop(0) if len(results) > 1 else results[0]
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in addresses
        ]


async def test_name_that_is_public_at_registration_and_loopback_later_is_not_reached(sink: CallbackSink) -> None:
    client = VettedClient(resolve=resolver({"rebinding.test": [["93.184.216.34"], ["127.0.0.1"]]}))
    await client.open()
    url = f"http://rebinding.test:{sink.port}/"

    first, second = await client.check_url(url), await client.post(url, b"{}", {})

    await client.close()
    assert first is None
    assert second.error is not None
    assert "is not a public address" in second.error
    assert sink.requests == []


@pytest.mark.parametrize(
    "addresses", [("93.184.216.34", "127.0.0.1"), ("127.0.0.1", "93.184.216.34"), ("8.8.8.8", "::1")]
)
async def test_name_with_a_public_and_another_address_is_rejected(sink: CallbackSink, addresses: Sequence[str]) -> None:
    client = VettedClient(resolve=resolver({"mixed.test": [addresses]}))
    await client.open()
    url = f"http://mixed.test:{sink.port}/"

    registration_error, response = await client.check_url(url), await client.post(url, b"{}", {})
    fetched = await client.get(url, _ignore)

    await client.close()
    for error in (registration_error, response.error, fetched.error):
        assert error is not None
        assert "is not a public address" in error
    assert sink.requests == []


async def test_unknown_name_may_be_registered(strict: VettedClient) -> None:
    assert await strict.check_url("http://nobody-has-this.invalid/") is None


async def _ignore(_part: bytes) -> None:
    """Ignore the content."""
