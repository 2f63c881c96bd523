"""`waypost health`: a probe for containers, with the standard library's client: it runs every few seconds."""

import http.client
from typing import Annotated
from urllib.parse import urlsplit

import typer

from waypost.base.error_texts import error_text
from waypost.base.http.blocking_responses import BlockingResponse
from waypost.cli.connections import ENV_FILE, local_host
from waypost.cli.errors import fail
from waypost.client.dev_variables import dev_variables

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
        url = urlsplit(dev_variables(ENV_FILE).get("API_URL", ""))
        host, port = url.hostname, url.port
    status, body = request_probe(local_host(host or DEFAULT_HOST), port or DEFAULT_PORT, path, timeout_s)
    if status != _OK:
        fail(f"{path} responded with {status}: {body}")
    typer.echo("alive" if live else "ready")


def request_probe(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
    """Return the status and the beginning of the body; exit with one line if there is no response in time."""
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
