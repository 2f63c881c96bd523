"""Calls of the commands to the admin API: of the running service, or in this process on its store."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.errors import load_settings_with_sources, report_api_errors
from waypost.cli.local_address import local_url
from waypost.cli.output.printing import print_view
from waypost.client.api_client import ApiClient, ApiUnreachable, HttpTransport, InProcessTransport
from waypost.client.dev_variables import MissingVariable, read_variables
from waypost.store.contract import StoreInUse, StoreUnavailable, WrongStore

if TYPE_CHECKING:
    from waypost.config import Settings

ADMIN_CALL_TIMEOUT_S = 90
"""For one call; `doctor` and a switch of operators call the operator many times."""

ENV_FILE = Path("waypost-dev.env")


def show(method: str, path: str, body: Any = None, *, as_json: bool) -> None:
    """Make one call and print its response; an error is printed as one line, with exit code 1.

    Args:
        method: of the call.
        path: of the call.
        body: of the call.
        as_json: print the response for programs, instead of tables for people.
    """
    print_view(call_once(method, path, body), as_json=as_json)


def call_once(method: str, path: str, body: Any = None) -> Any:
    """Make one call and return its response; an error is printed as one line, with exit code 1."""

    async def call(client: ApiClient, _running: bool) -> Any:
        return await client.json(method, path, body)

    return asyncio.run(call_admin_api(call))


async def call_admin_api(call: Callable[[ApiClient, bool], Awaitable[Any]]) -> Any:
    """Use the admin API of the running service; if none runs, the admin API on its store in this process."""
    given = load_settings_with_sources()
    settings = given.settings
    token_source = given.sources.get("admin_token", f"ADMIN_TOKEN in {ENV_FILE}")
    address = f"WAYPOST_ADMIN_URL, or ADMIN_URL in {ENV_FILE},"
    with report_api_errors(StoreUnavailable, StoreInUse, WrongStore, address=address, credential=token_source):
        admin_api = find_admin_api(settings)
        if admin_api is not None:
            try:
                return await call(admin_api.client, True)
            except ApiUnreachable:
                if admin_api.has_url:
                    raise
        return await _call_on_store(settings, call)


class AdminApi(NamedTuple):
    """The admin API of a service.

    Attributes:
        client: of it, with the admin token.
        has_url: True if its URL is given; otherwise it is that of a service with the settings.
    """

    client: ApiClient
    has_url: bool


def find_admin_api(settings: "Settings", env_file: Path = ENV_FILE) -> AdminApi | None:
    """Return the admin API of a running service; None without an admin token.

    Args:
        settings: they have the token; without it and without a secret key, the file has it.
        env_file: the variables of `waypost dev`.
    """
    token, url = settings.admin_token, os.environ.get("WAYPOST_ADMIN_URL")
    if token is None and settings.secret_key is None:
        token, url = _demo_credentials(env_file)
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


def _demo_credentials(env_file: Path) -> tuple[str | None, str | None]:
    """Return admin token and URL of the `waypost dev` that has written a file; None if there is no such file."""
    try:
        variables = read_variables(env_file)
    except MissingVariable:
        return None, None
    return variables.get("ADMIN_TOKEN"), variables.get("ADMIN_URL")


async def _call_on_store(settings: "Settings", call: Callable[[ApiClient, bool], Awaitable[Any]]) -> Any:
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
    service = Waypost(settings.model_copy(update={"admin_token": token, "stages": STAGES}), clock, ids)
    await service.open()
    try:
        client = ApiClient(InProcessTransport(service.application), {"Authorization": f"Bearer {token}"})
        return await call(client, False)
    finally:
        await service.close()
