"""Where a virtual clock's bearing is kept, so that time does not run backwards over a restart."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from waypost.base.clock import Bearing, VirtualClock
from waypost.base.files import create_private
from waypost.base.telemetry.logs import log

NAME: Final = "clock.json"
_LOG: Final = log("assembly")


def kept_clock(folder: Path) -> VirtualClock:
    """A clock that goes on as the folder's last one did, and keeps in it how it goes.

    What a power loss takes is a journey in time, never a message: the file is not flushed.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / NAME
    return VirtualClock(read_bearing(path), keep=lambda bearing: write_bearing(path, bearing))


def read_bearing(path: Path) -> Bearing | None:
    """What was kept; None where nothing was, or nothing that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Bearing)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        _LOG.warning("the clock's file cannot be read; it starts anew", error=repr(error))
        return None


def write_bearing(path: Path, bearing: Bearing) -> None:
    """Keep a bearing: the file is the old one or the new one, never half of it."""
    beside = path.with_suffix(".new")
    create_private(beside)
    beside.write_bytes(msgspec.json.encode(asdict(bearing)))
    beside.replace(path)
