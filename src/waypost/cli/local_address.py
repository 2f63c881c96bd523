"""The address at which a command reaches the service of the same machine, by the address on which that listens."""

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not bound


def local_host(host: str) -> str:
    """Return the loopback address for an address that means every interface, otherwise the address itself."""
    return _EVERYWHERE.get(host, host)


def local_url(host: str, port: int) -> str:
    """Return the URL at which this machine reaches a service that listens on an address, without a trailing slash."""
    name = local_host(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
