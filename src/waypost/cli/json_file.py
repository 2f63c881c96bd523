"""Reads the JSON file of an option."""

import json
from pathlib import Path
from typing import Any, cast

import typer

from waypost.base.error_texts import error_text, json_error_text
from waypost.cli.errors import EXIT_USAGE, fail


def read_json_object(file: Path, option: str) -> dict[str, Any]:
    """Return the JSON object in a file, or in standard input if it is -; exit if it is none.

    Args:
        file: the file.
        option: that names it, for errors.
    """
    try:
        text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text(encoding="utf-8")
        value = json.loads(text)
    except (OSError, UnicodeError) as error:
        fail(f"{option} {file} cannot be read: {error_text(error)}", code=EXIT_USAGE)
    except ValueError as error:
        fail(f"{option} {file} {json_error_text(error)}", code=EXIT_USAGE)
    if not isinstance(value, dict):
        fail(f"{option} {file} must have one JSON object, as in {{…}}", code=EXIT_USAGE)
    return cast("dict[str, Any]", value)
