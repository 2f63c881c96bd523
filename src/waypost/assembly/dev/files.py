"""What `waypost dev` writes for others: its instance key, and the variables that other programs read."""

import os
from pathlib import Path
from typing import Final

from waypost.assembly.dev import demo
from waypost.assembly.dev.service_and_simulator import Places
from waypost.config import Settings

ENV_FILE: Final = Path("waypost-dev.env")


def instance_key(settings: Settings) -> str:
    """The setting, or the demonstration's key, kept in a file that only its owner reads.

    The demonstration's key is known, because app tokens derive from it and have to be the same on
    every machine; `serve` refuses it.
    """
    if settings.secret_key is not None:
        return settings.secret_key
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = settings.data / "instance.key"
    if not path.exists():
        _write_private(path, demo.INSTANCE_KEY + "\n")
    return path.read_text(encoding="utf-8").strip()


def variables(places: Places, admin_token: str, app_token: str) -> dict[str, str]:
    """What other programs need to know. Source: decision 0088."""
    base_url, graph_url = places.base_url, places.graph_url
    return {
        "PARTNER_URL": base_url,
        "API_URL": base_url,
        "GRAPH_URL": graph_url,
        "CONTROL_URL": f"{graph_url}/control",
        "EMAIL": demo.EMAIL,
        "PASSWORD": demo.PASSWORD,
        "CLIENT_SECRET": demo.CLIENT_SECRET,
        "APP_ID": demo.APP_ID,
        "APP_TOKEN": app_token,
        "API_KEY": demo.API_KEY,
        "SOURCE": demo.SOURCE,
        "SRC_NAME": demo.APP_NAME,
        "WABA_ID": demo.WABA_ID,
        "PHONE_NUMBER_ID": demo.PHONE_NUMBER_ID,
        "GRAPH_TOKEN": demo.GRAPH_TOKEN,
        "DESTINATION": demo.DESTINATION,
        "TEMPLATE_ID": demo.TEMPLATE_ID,
        "ADMIN_URL": f"{base_url}/admin",
        "ADMIN_TOKEN": admin_token,
    }


def write_env(path: Path, known: dict[str, str]) -> None:
    """Write what other programs need to know, for its owner alone."""
    lines = "".join(f"{name}={value}\n" for name, value in known.items())
    _write_private(path, lines)


def _write_private(path: Path, text: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        file.write(text)
