"""`waypost health`: a probe for containers. It loads only the standard library, because it runs every few seconds."""

import http.client
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from waypost.base.error_texts import error_text
from waypost.base.http.blocking_responses import BlockingResponse
from waypost.cli.errors import fail
from waypost.cli.local_address import local_host
from waypost.client.dev_variables import MissingVariable, read_variables

ENV_FILE = Path("waypost-dev.env")
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8080
_OK = 200
_DETAILS_BYTES = 2000


def health(
    host: Annotated[
        str | None,
        typer.Option(
            envvar="WAYPOST_HOST",
            help="Address of the service; 0.0.0.0 is this machine. [default: that of waypost-dev.env, or 127.0.0.1]",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            envvar="WAYPOST_PORT",
            min=1,
            max=65_535,
            help="Port of the service. [default: that of waypost-dev.env, or 8080]",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Check only that the process responds, not that it can work.")
    ] = False,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Longest time to wait, in seconds.")] = 5,
) -> None:
    """Check that the service on this machine is ready: exit code 0, else 1 and the response on standard error."""
    path = "/healthz" if live else "/readyz"
    if host is None and port is None:
        host, port = _dev_address(ENV_FILE)
    status, body = request_probe(local_host(host or DEFAULT_HOST), port or DEFAULT_PORT, path, timeout_s)
    if status != _OK:
        fail(f"{path} responded with {status}: {body}")
    typer.echo("alive" if live else "ready")


def _dev_address(env_file: Path) -> tuple[str | None, int | None]:
    """Return host and port of the `waypost dev` that has written a file; None if there is no such file."""
    try:
        url = urlsplit(read_variables(env_file).get("API_URL", ""))
    except MissingVariable:
        return None, None
    return url.hostname, url.port


def request_probe(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
    """Return the status and the beginning of the body; exit with one line if there is no response.

    Args:
        host: name or address.
        port: of the service.
        path: of the probe.
        timeout_s: of the connect, and of the whole response.
    """
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    connection.response_class = BlockingResponse
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(_DETAILS_BYTES).decode(errors="replace").strip()
    except TimeoutError:
        fail(f"{host}:{port} did not respond within {timeout_s:g} s")
    except (OSError, http.client.HTTPException) as error:
        fail(
            f"{host}:{port} cannot be reached ({error_text(error)}); start the service, or check WAYPOST_HOST and "
            "WAYPOST_PORT"
        )
    finally:
        connection.close()
