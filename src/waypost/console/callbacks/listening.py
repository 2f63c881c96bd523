"""The commands that print an app's callbacks in a terminal."""

import re
import shlex
from typing import Final

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_TOKEN_HINT: Final = "paste the app token here"  # noqa: S105  no token


def listen_commands(public_url: str, app_id: str, app_name: str, *, app_token: str = _TOKEN_HINT) -> str:
    """Return shell commands that write an app's variables to a file of mode 0600, and run `waypost listen` with it.

    Args:
        public_url: of this service.
        app_id: the app.
        app_name: names the file.
        app_token: of the app; without it the file says where it belongs.
    """
    file = f"{_NOT_IN_NAMES.sub('-', app_name.lower()).strip('-')[:40] or 'app'}.env"
    lines = (f"PARTNER_URL={public_url}", f"APP_ID={app_id}", f"APP_TOKEN={app_token}")
    texts = " ".join(shlex.quote(line) for line in lines)
    return f"(umask 077 && printf '%s\\n' {texts} > {file})\nwaypost listen --env-file {file}"
