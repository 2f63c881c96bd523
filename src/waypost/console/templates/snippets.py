"""One request to the partner API as a person can run it: with curl, and with Python's standard library."""

import shlex
from collections.abc import Mapping
from typing import Final

VARIABLE: Final = "APP_TOKEN"
"""The variable of the environment that holds the app's token; no snippet holds the token itself."""


def as_curl(method: str, url: str, fields: Mapping[str, str]) -> str:
    """For a shell."""
    lines = [
        f"curl -X {method} {shlex.quote(url)}",
        f'-H "Authorization: ${VARIABLE}"',
        *(f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in fields.items()),
    ]
    return " \\\n  ".join(lines)


def as_python(method: str, url: str, fields: Mapping[str, str]) -> str:
    """For Python 3, without anything to install."""
    rows = "".join(f"    {name!r}: {value!r},\n" for name, value in fields.items())
    return (
        "import os\n"
        "from urllib.parse import urlencode\n"
        "from urllib.request import Request, urlopen\n\n"
        f"fields = {{\n{rows}}}\n"
        "request = Request(\n"
        f"    {url!r},\n"
        "    data=urlencode(fields).encode(),\n"
        f'    headers={{"Authorization": os.environ["{VARIABLE}"]}},\n'
        f"    method={method!r},\n"
        ")\n"
        "with urlopen(request) as answer:\n"
        "    print(answer.read().decode())\n"
    )
