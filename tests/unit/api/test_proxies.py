"""The client's address of a request: only what a trusted proxy has seen itself counts."""

from typing import Any, Final

import pytest

from waypost.api.access_log import TrustedProxies, rate_limit_address

TRUSTED = ("10.0.0.0/8", "192.168.1.7/32", "fd00::/8")


def scope(peer: str | None, *forwarded: str) -> dict[str, Any]:
    """Return the scope of a request from a peer, with a header for each text."""
    headers = [(b"x-forwarded-for", text.encode("latin-1")) for text in forwarded]
    headers += [(b"x-forwarded-proto", b"https"), (b"forwarded", b"for=6.6.6.6")]
    return {"client": (peer, 4711) if peer else None, "headers": headers}


# fmt: off
CASES: Final[list[tuple[str | None, list[str], str]]] = [  # peer              forwarded headers                          client
    ("203.0.113.9",    [],                                        "203.0.113.9"),
    ("203.0.113.9",    ["6.6.6.6"],                               "203.0.113.9"),  # not a trusted proxy: spoofed
    ("203.0.113.9",    ["6.6.6.6, 10.0.0.1"],                     "203.0.113.9"),
    ("10.0.0.1",       [],                                        "10.0.0.1"),
    ("10.0.0.1",       ["198.51.100.4"],                          "198.51.100.4"),
    ("10.0.0.1",       ["6.6.6.6, 198.51.100.4"],                 "198.51.100.4"),  # the first was sent by the client
    ("10.0.0.1",       ["6.6.6.6", "198.51.100.4"],               "198.51.100.4"),  # a proxy with a header of its own
    ("10.0.0.1",       ["198.51.100.4, 192.168.1.7"],             "198.51.100.4"),  # two proxies
    ("10.0.0.1",       ["198.51.100.4", "192.168.1.7"],           "198.51.100.4"),
    ("10.0.0.1",       ["6.6.6.6, 198.51.100.4, 192.168.1.8"],    "192.168.1.8"),   # not trusted: it may lie
    ("10.0.0.1",       ["10.0.0.2, 10.0.0.3"],                    "10.0.0.2"),      # a client inside the network
    ("10.0.0.1",       ["6.6.6.6, unknown"],                      "10.0.0.1"),      # the proxy does not say
    ("10.0.0.1",       ["6.6.6.6, 999.1.1.1"],                    "10.0.0.1"),
    ("10.0.0.1",       [" , ,198.51.100.4,, "],                   "198.51.100.4"),
    ("10.0.0.1",       ["198.51.100.4:51234"],                    "198.51.100.4"),
    ("10.0.0.1",       ["[2001:db8::1]:51234"],                   "2001:db8::1"),
    ("10.0.0.1",       ["2001:db8::1"],                           "2001:db8::1"),
    ("10.0.0.1",       ['"[2001:db8::1]"'],                       "2001:db8::1"),
    ("10.0.0.1",       ["::ffff:198.51.100.4"],                   "198.51.100.4"),
    ("::ffff:10.0.0.1", ["198.51.100.4"],                         "198.51.100.4"),
    ("fd00::1",        ["2001:DB8:0::1"],                         "2001:db8::1"),   # one spelling for one address
    ("10.0.0.1",       ["ÿ\t"],                                   "10.0.0.1"),
    (None,             ["198.51.100.4"],                          "unknown"),
    ("a socket",       ["198.51.100.4"],                          "a socket"),
]
# fmt: on


@pytest.mark.parametrize(("peer", "forwarded", "client"), CASES)
def test_client_is_the_last_address_that_a_trusted_proxy_has_seen(
    peer: str | None, forwarded: list[str], client: str
) -> None:
    assert TrustedProxies(TRUSTED).client_address(scope(peer, *forwarded)) == client


@pytest.mark.parametrize("peer", ["10.0.0.1", "127.0.0.1", "203.0.113.9"])
def test_without_a_setting_no_proxy_is_trusted(peer: str) -> None:
    assert TrustedProxies().client_address(scope(peer, "198.51.100.4")) == peer


# fmt: off
COUNTED: Final = [  # address                      counted as
    ("198.51.100.4",                        "198.51.100.4"),
    ("::ffff:198.51.100.4",                 "198.51.100.4"),
    ("2001:db8:1:2:3:4:5:6",                "2001:db8:1:2::/64"),
    ("2001:db8:1:2:ffff:ffff:ffff:ffff",    "2001:db8:1:2::/64"),
    ("2001:db8:1:3::6",                     "2001:db8:1:3::/64"),
    ("fe80::1%eth0",                        "fe80::/64"),
    ("::1",                                 "::/64"),
    ("unknown",                             "unknown"),
]
# fmt: on


@pytest.mark.parametrize(("address", "counted"), COUNTED)
def test_ipv6_client_is_counted_by_its_network(address: str, counted: str) -> None:
    assert rate_limit_address(address) == counted


def test_every_address_may_be_trusted_where_only_proxies_can_connect() -> None:
    proxies = TrustedProxies(("0.0.0.0/0", "::/0"))

    assert proxies.client_address(scope("203.0.113.9", "6.6.6.6, 10.0.0.1")) == "6.6.6.6"
