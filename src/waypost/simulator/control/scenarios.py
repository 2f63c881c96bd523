"""A scenario: a file of faults that are armed when the simulator starts."""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waypost.simulator.control.fault_reading import read_faults
from waypost.simulator.control.guard import ControlRefused


class WrongScenario(Exception):
    """The file cannot be read, or something in it cannot be; says what would be accepted."""


@dataclass(frozen=True)
class Scenario:
    """Faults of one file.

    Args:
        key: a digest of the file: the same file is armed once, whatever restarts there are.
        faults: checked, as `fault_reading` gives them.
    """

    key: str
    faults: tuple[dict[str, Any], ...]


def read_scenario(path: Path) -> Scenario:
    """Read a TOML file of `[[faults]]` and perhaps a `seed`.

    Raises:
        WrongScenario: the file is not there, no TOML, or has something that no fault can have.
    """
    try:
        content = path.read_bytes()
        given = tomllib.loads(content.decode())
    except OSError as error:
        raise WrongScenario(f"the scenario {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WrongScenario(f"the scenario {path} is no TOML: {error}") from error
    try:
        if "faults" not in given:
            raise ControlRefused(  # noqa: TRY301  refused like everything else in it
                400, field="faults", rule="is missing", accepted="[[faults]] tables, at least one"
            )
        faults = read_faults(given)
    except ControlRefused as refused:
        raise WrongScenario(
            f"the scenario {path} is wrong: {refused.field}: {refused.rule}; accepted: {refused.accepted}"
        ) from refused
    return Scenario(hashlib.blake2b(content, digest_size=8).hexdigest(), tuple(faults))
