"""The file that stores a virtual clock's setting, so that its time does not go back over a restart."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from waypost.base.clock import ClockSetting, VirtualClock
from waypost.base.error_texts import error_text
from waypost.base.files import create_private
from waypost.base.invalid_values import describe_malformed_json
from waypost.base.telemetry.logs import log

CLOCK_FILE_NAME: Final = "clock.json"
_CLOCK_LOG: Final = log("assembly")


def open_stored_clock(folder: Path) -> VirtualClock:
    """Return a clock that continues with the setting stored in the folder, and stores every change there.

    The file is not flushed: a power loss can lose an advance of the clock, but never a message.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / CLOCK_FILE_NAME
    return VirtualClock(read_clock_setting(path), on_change=lambda setting: write_clock_setting(path, setting))


def read_clock_setting(path: Path) -> ClockSetting | None:
    """Return the stored setting; None if there is none or it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClockSetting)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        reason = error_text(error) if isinstance(error, OSError) else describe_malformed_json(error)
        _CLOCK_LOG.warning("the clock file cannot be read; the clock starts at the current time", reason=reason)
        return None


def write_clock_setting(path: Path, setting: ClockSetting) -> None:
    """Store a setting. The file is replaced as a whole, so that a crash leaves the old one or the new one."""
    temporary = path.with_suffix(".new")
    create_private(temporary)
    temporary.write_bytes(msgspec.json.encode(asdict(setting)))
    temporary.replace(path)
