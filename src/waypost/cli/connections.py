"""The APIs that the commands call: of the service, of `waypost dev` by its environment file, and of the simulator."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

import typer

from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.errors import load_settings, report_api_errors
from waypost.cli.output import print_view
from waypost.client.api_client import ApiClient, ApiUnreachable, HttpTransport, InProcessTransport
from waypost.client.dev_variables import ENV_FILE, MissingVariable, dev_variables, read_variables
from waypost.client.responses import read_json_response
from waypost.store.contract import StoreInUse, StoreUnavailable, WrongStore

if TYPE_CHECKING:
    from waypost.config import Settings


ADMIN_CALL_TIMEOUT_S = 90
"""For one call; `doctor` and a switch of operators call the operator many times."""
CONTROL_CALL_TIMEOUT_S = 900
"""For one call: an advance of many days has many stops."""

EnvFile = Annotated[Path, typer.Option(help="File with the variables of `waypost dev`.")]
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not bound


class AdminApi(NamedTuple):
    """The admin API of a service."""

    client: ApiClient  # of it, with the admin token
    has_url: bool  # True if its URL is given; otherwise it is that of a service with the settings


def show(operation: str, values: Mapping[str, Any], *, as_json: bool) -> None:
    """Call one operation of the admin API and print its response, for programs or as tables for people."""
    print_view(call_admin(operation, **values), as_json=as_json)


def call_admin(operation: str, /, **values: Any) -> Any:
    """Call one operation and return its response; an error is printed as one line, with exit code 1."""
    return asyncio.run(use_admin_api(lambda client, _running: client.call(operation, **values)))


async def use_admin_api(use: Callable[[ApiClient, bool], Awaitable[Any]]) -> Any:
    """Use the admin API of the running service; if none runs, the admin API on its store in this process.

    The function gets a client, and whether the service runs.
    """
    given = load_settings()
    settings = given.settings
    token_source = given.sources.get("admin_token", f"ADMIN_TOKEN in {ENV_FILE}")
    address = f"WAYPOST_ADMIN_URL, or ADMIN_URL in {ENV_FILE},"
    with report_api_errors(StoreUnavailable, StoreInUse, WrongStore, address=address, credential=token_source):
        admin_api = find_admin_api(settings)
        if admin_api is not None:
            try:
                return await use(admin_api.client, True)
            except ApiUnreachable:
                if admin_api.has_url:
                    raise
        return await _use_store(settings, use)


def find_admin_api(settings: "Settings", env_file: Path = ENV_FILE) -> AdminApi | None:
    """Return the admin API of a running service, by the settings or by the file; None without an admin token."""
    token, url = settings.admin_token, os.environ.get("WAYPOST_ADMIN_URL")
    if token is None and settings.secret_key is None:
        variables = dev_variables(env_file)
        token, url = variables.get("ADMIN_TOKEN"), variables.get("ADMIN_URL")
    if token is None:
        return None
    address = url or service_url(settings)
    transport = HttpTransport(address.removesuffix("/admin"), timeout_s=ADMIN_CALL_TIMEOUT_S)
    return AdminApi(ApiClient(transport, {"Authorization": f"Bearer {token}"}), url is not None)


def service_url(settings: "Settings") -> str:
    """Return the URL at which the admin API of a service with these settings listens."""
    if settings.admin_port is None:
        return local_url(settings.host, settings.port)
    first = settings.admin_port + (1 if settings.workers > 1 else 0)
    return local_url(settings.admin_host or "127.0.0.1", first)


def local_host(host: str) -> str:
    """Return the loopback address for an address that means every interface, otherwise the address itself."""
    return _EVERYWHERE.get(host, host)


def local_url(host: str, port: int) -> str:
    """Return the URL at which this machine reaches a service that listens on an address, without a trailing slash."""
    name = local_host(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


async def _use_store(settings: "Settings", use: Callable[[ApiClient, bool], Awaitable[Any]]) -> Any:
    if settings.secret_key is None and settings.admin_token is not None:
        raise MissingVariable(
            f"no service responds at {service_url(settings)}: set WAYPOST_ADMIN_URL to its address, or "
            "WAYPOST_SECRET_KEY to open its store"
        )
    if settings.secret_key is None:
        raise MissingVariable(
            "set WAYPOST_ADMIN_TOKEN to reach a running service, or WAYPOST_SECRET_KEY to open its store; "
            f"in a folder with {ENV_FILE}, commands use the demonstration without either"
        )
    from waypost.assembly.service import Waypost  # the import takes a second, and most commands do not need it
    from waypost.config import STAGES

    clock = SystemClock()
    ids = RandomIds(clock)
    token = ids.secret()
    service = Waypost(replace(settings, admin_token=token, stages=STAGES), clock, ids)
    await service.open()
    try:
        client = ApiClient(InProcessTransport(service.application), {"Authorization": f"Bearer {token}"})
        return await use(client, False)
    finally:
        await service.close()


def call_control(env_file: Path, operation: str, /, **values: Any) -> Any:
    """Call one operation of the simulator; an error is printed as one line, with exit code 1.

    `WAYPOST_CONTROL_URL` and `WAYPOST_CONTROL_TOKEN` name a simulator that runs elsewhere.
    """
    with _report_control_errors(env_file):
        return asyncio.run(find_control_api(env_file).call(operation, **values))


def download(env_file: Path, path: str) -> bytes:
    """Return the bytes of one response of the simulator; an error is printed as one line, with exit code 1."""
    with _report_control_errors(env_file):
        transport, headers = _control_transport(env_file)
        response = asyncio.run(transport("GET", path, headers, None))
        if response.status != 200:
            read_json_response(response, f"GET {path}")
        return response.body


def find_control_api(env_file: Path) -> ApiClient:
    """Return a client of the simulator's control API: the one that the environment names, or that of `waypost dev`.

    Raises:
        MissingVariable: there is no simulator.
    """
    return ApiClient(*_control_transport(env_file))


def _control_transport(env_file: Path) -> tuple[HttpTransport, dict[str, str]]:
    url = os.environ.get("WAYPOST_CONTROL_URL") or read_variables(env_file).get("CONTROL_URL")
    if not url:
        raise MissingVariable(f"{env_file} has no CONTROL_URL: start `waypost dev`, which writes it")
    token = os.environ.get("WAYPOST_CONTROL_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return HttpTransport(url.removesuffix("/control"), timeout_s=CONTROL_CALL_TIMEOUT_S), headers


def _report_control_errors(env_file: Path) -> AbstractContextManager[None]:
    is_set = "WAYPOST_CONTROL_TOKEN" in os.environ
    return report_api_errors(
        address=f"WAYPOST_CONTROL_URL, or CONTROL_URL in {env_file},",
        credential="WAYPOST_CONTROL_TOKEN" if is_set else "WAYPOST_CONTROL_TOKEN, which is not set,",
    )


def read_environment(env_file: Path, *names: str) -> dict[str, str]:
    """Return the variables of the environment file that `waypost dev` writes.

    Raises:
        MissingVariable: there is no such file, or it lacks one of these names.
    """
    variables = read_variables(env_file)
    for name in names:
        if not variables.get(name):
            raise MissingVariable(f"{name} is missing in {env_file}: start `waypost dev`, which writes it")
    return variables


def partner_client(variables: Mapping[str, str]) -> ApiClient:
    """Return a client of the partner API with the app's token; needs PARTNER_URL and APP_TOKEN."""
    return ApiClient(HttpTransport(variables["PARTNER_URL"]), {"Authorization": variables["APP_TOKEN"]})


def admin_client(variables: Mapping[str, str]) -> ApiClient:
    """Return a client of the admin API; needs ADMIN_URL and ADMIN_TOKEN."""
    headers = {"Authorization": f"Bearer {variables['ADMIN_TOKEN']}"}
    return ApiClient(HttpTransport(variables["ADMIN_URL"].removesuffix("/admin")), headers)


def control_client(variables: Mapping[str, str]) -> ApiClient:
    """Return a client of the simulator's control API; needs CONTROL_URL."""
    return ApiClient(HttpTransport(variables["CONTROL_URL"].removesuffix("/control")), {})


Value = TypeVar("Value")

POLL_INTERVAL_S: Final = 0.1


async def poll(
    read: Callable[[], Awaitable[Value]],
    is_complete: Callable[[Value], object],
    within_s: float,
    interval_s: float = POLL_INTERVAL_S,
) -> Value:
    """Call `read` until its value is complete or the time has passed, and return the last value."""
    clock = SystemClock()
    deadline_ms = clock.now_ms() + within_s * 1000
    while True:
        value = await read()
        if is_complete(value) or clock.now_ms() >= deadline_ms:
            return value
        await asyncio.sleep(interval_s)
