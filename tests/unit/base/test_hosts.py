"""Hosts in URLs."""

import pytest

from waypost.base.http.hosts import hostname_of, is_ip_address, is_loopback, netloc_of


@pytest.mark.parametrize(
    ("url", "name", "netloc"),
    [
        ("//Shop.example:8080", "shop.example", "shop.example:8080"),
        ("http://[::1]:80/a", "::1", "[::1]:80"),
        ("null", "", ""),
        ("", "", ""),
        ("//[::1", "", ""),  # urlsplit raises ValueError
    ],
)
def test_host_of_a_url(url: str, name: str, netloc: str) -> None:
    assert (hostname_of(url), netloc_of(url)) == (name, netloc)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_names_and_addresses_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "localhost.example", "128.0.0.1", "0.0.0.0", "::2"])
def test_names_and_addresses_of_other_machines(host: str) -> None:
    assert not is_loopback(host)
    assert is_ip_address(host) == (host in ("128.0.0.1", "0.0.0.0", "::2"))
