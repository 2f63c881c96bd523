"""The service that `send`, `listen`, `tap`, `template` and `trigger` use: that of an environment file, as `waypost dev` writes it."""

from collections.abc import Mapping
from pathlib import Path

from waypost.client.api_client import ApiClient, HttpTransport
from waypost.client.dev_variables import MissingVariable, read_variables


def read_environment(env_file: Path, *names: str) -> dict[str, str]:
    """Return the variables of a file.

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


def messaging_client(variables: Mapping[str, str]) -> ApiClient:
    """Return a client of the messaging API with the partner's key; needs API_URL and API_KEY."""
    return ApiClient(HttpTransport(variables["API_URL"]), {"apikey": variables["API_KEY"]})


def admin_client(variables: Mapping[str, str]) -> ApiClient:
    """Return a client of the admin API; needs ADMIN_URL and ADMIN_TOKEN."""
    headers = {"Authorization": f"Bearer {variables['ADMIN_TOKEN']}"}
    return ApiClient(HttpTransport(variables["ADMIN_URL"].removesuffix("/admin")), headers)


def control_client(variables: Mapping[str, str]) -> ApiClient:
    """Return a client of the simulator's control API; needs CONTROL_URL."""
    return ApiClient(HttpTransport(variables["CONTROL_URL"].removesuffix("/control")), {})
