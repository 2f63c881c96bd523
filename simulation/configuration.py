"""What a run is, beside its seed: each field is an option of the command, and a key of a line in `regressions.toml`."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

FIFO = "fifo"


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Configuration:
    """The same seed with the same configuration repeats every step."""

    messages: int = _option(20, "Messages that the partners send.")
    has_faults: bool = _option(True, "Whether anything goes wrong.")
    postgresql: bool = _option(False, "Whether the store is a PostgreSQL server, and not SQLite.")
    processes: int = _option(1, "Processes of the service that share the store; more than one on PostgreSQL only.")
    kills: int = _option(3, "Kills of a process of the service, at most.")
    suspensions: int = _option(3, "How often a process of the service stands still, at most.")
    schedule: str = _option("", f"The seed of the order of steps if it is another one, or {FIFO!r}: as they come.")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add an option for each field."""
        for each in fields(cls):
            flag = "--" + each.name.removeprefix("has_").replace("_", "-")
            if isinstance(each.default, bool):
                parser.add_argument(flag, dest=each.name, action=argparse.BooleanOptionalAction, default=each.default)
            else:
                text = each.metadata["help"]
                parser.add_argument(flag, dest=each.name, type=type(each.default), default=each.default, help=text)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration of parsed options, or of a line of the regressions."""
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    def changed(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        defaults = asdict(type(self)())
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def arguments(self) -> list[str]:
        """Return the arguments of the command that differ from the defaults."""
        arguments: list[str] = []
        for name, value in self.changed().items():
            flag = name.removeprefix("has_").replace("_", "-")
            arguments += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
        return arguments
