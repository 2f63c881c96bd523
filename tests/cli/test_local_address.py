"""Where the commands look for the service of this machine."""

import pytest

from waypost.cli.connections import service_url
from waypost.config import Settings


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (Settings(host="0.0.0.0", port=8090), "http://127.0.0.1:8090"),  # as in a container
        (Settings(host="::"), "http://[::1]:8080"),
        (Settings(host="::1"), "http://[::1]:8080"),
        (Settings(host="10.0.0.5"), "http://10.0.0.5:8080"),
        (Settings(host="0.0.0.0", admin_port=9090), "http://127.0.0.1:9090"),
        (Settings(admin_host="0.0.0.0", admin_port=9090), "http://127.0.0.1:9090"),
    ],
)
def test_commands_use_loopback_if_the_service_listens_on_every_address(settings: Settings, url: str) -> None:
    """The admin API accepts loopback as a host name, and not `0.0.0.0`."""
    assert service_url(settings) == url
