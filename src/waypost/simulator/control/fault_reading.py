"""Reading faults as they were given, to the control API or in a file: each member is checked by the tables."""

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from waypost.simulator.faults.fault_kinds import (
    ANY,
    CALL,
    FILTERS,
    INBOUND,
    KINDS,
    STATUSES,
    TEMPLATE_FIELDS,
    WEBHOOK,
    WEBHOOKS,
    WHENS,
    Parameter,
)
from waypost.simulator.graph.call_names import CALL_NAMES, SEND, WITH_TEMPLATE
from waypost.simulator.violation import BrokenRule

_AT_MOST: Final = 1000
_SEED: Final = Parameter("seed", "whole", 0, 2**63 - 1)
_PLAIN: Final = (_SEED, Parameter("label", "text", at_most=200), Parameter("until_ms", "whole", 1, 2**53))
_TEXT: Final = Parameter("", "text", at_most=512)
_MEMBERS: Final = ("on", CALL, WEBHOOK, *FILTERS, "when", "what", *(one.name for one in _PLAIN))
_NAMES: Final = {CALL: CALL_NAMES, WEBHOOK: WEBHOOKS}
# fmt: off
_CAN_NAME: Final = {  # which filters narrow which names; those of an account narrow all
    # on and filter          names
    (CALL,    "phone"):     frozenset({ANY, SEND}),
    (CALL,    "template"):  WITH_TEMPLATE | {ANY},
    (WEBHOOK, "phone"):     frozenset({ANY, INBOUND, *STATUSES}),
    (WEBHOOK, "template"):  frozenset({ANY, *STATUSES, *TEMPLATE_FIELDS}),
    (WEBHOOK, "number"):    frozenset({ANY, INBOUND, *STATUSES}),
}
# fmt: on


class WrongScenario(Exception):
    """The file cannot be read, or something in it cannot be; says what would be accepted."""


@dataclass(frozen=True)
class Scenario:
    """Faults of one file that are armed when the simulator starts.

    Args:
        key: a digest of the file: the same file is armed once, whatever restarts there are.
        faults: checked, as `read_faults` gives them.
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
        if "faults" not in given:
            raise BrokenRule("faults", "is missing", "[[faults]] tables, at least one")  # noqa: TRY301  like the rest
        faults = read_faults(given)
    except OSError as error:
        raise WrongScenario(f"the scenario {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WrongScenario(f"the scenario {path} is no TOML: {error}") from error
    except BrokenRule as broken:
        raise WrongScenario(f"the scenario {path} is wrong: {broken}; accepted: {broken.accepted}") from broken
    return Scenario(hashlib.blake2b(content, digest_size=8).hexdigest(), tuple(faults))


def read_faults(given: object) -> list[dict[str, Any]]:
    """One fault, or a scenario `{faults, seed?}`: checked, with `when` and `seed` filled in.

    Raises:
        BrokenRule: names the member, the rule and what would be accepted.

    Source: simulator/faults/fault_kinds.py.
    """
    members = _object(given, "body", ", ".join(_MEMBERS))
    if "faults" not in members:
        return [_fault(members, "", None)]
    _check_names(members, ("faults", "seed"), "")
    seed = members.get("seed")
    if seed is not None:
        _check([_SEED], members, "")
    faults = members["faults"]
    if not isinstance(faults, list) or not 0 < len(cast("list[object]", faults)) <= _AT_MOST:
        raise BrokenRule("faults", "is no list of faults", f"1 to {_AT_MOST} faults")
    return [
        _fault(_object(one, f"faults[{at}]", ", ".join(_MEMBERS)), f"faults[{at}].", seed)
        for at, one in enumerate(cast("list[object]", faults))
    ]


def _fault(members: dict[str, Any], path: str, seed: int | None) -> dict[str, Any]:
    _check_names(members, _MEMBERS, path)
    on = members.get("on")
    if not isinstance(on, str) or on not in _NAMES:
        raise BrokenRule(f"{path}on", _cannot_be(on) if "on" in members else "is missing", f"{CALL} or {WEBHOOK}")
    other = WEBHOOK if on == CALL else CALL
    if other in members:
        raise BrokenRule(f"{path}{other}", f"does not go with on: {on}", f"{on}, and no {other}")
    name = members.get(on, ANY)
    if name != ANY and name not in _NAMES[on]:
        raise _unknown(f"{path}{on}", name, (ANY, *_NAMES[on]))
    for filter_name, accepted in FILTERS.items():
        if filter_name not in members:
            continue
        if not _TEXT.takes(members[filter_name]):
            raise BrokenRule(f"{path}{filter_name}", "is no text of 1 to 512 characters", accepted)
        narrowed = _CAN_NAME.get((on, filter_name))
        if narrowed is not None and name not in narrowed:
            rule = f"does not go with {on}: {name}, which names none"
            raise BrokenRule(f"{path}{filter_name}", rule, f"{on} one of {', '.join(sorted(narrowed))}")
    _check(_PLAIN, members, path)
    read = {**members, on: name, "when": _when(members, f"{path}when"), "what": _what(members, f"{path}what", on, name)}
    return read if seed is None else {**read, "seed": read.get("seed", seed)}


def _unknown(field: str, name: object, names: Sequence[str]) -> BrokenRule:
    """A name that is none: told with the nearest one, or with all of them."""
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]}?" if near else ""
    return BrokenRule(field, f"{str(name)[:100]!r} is unknown", ", ".join(names), hint=hint)


def _when(fault: dict[str, Any], path: str) -> dict[str, Any]:
    accepted = "; ".join(f"{{{one.name}: {one.accepted}}}" for one, _ in WHENS)
    members = _object(fault.get("when", {"always": True}), path, accepted)
    _check_names(members, [one.name for one, _ in WHENS], f"{path}.")
    if len(members) != 1:
        raise BrokenRule(path, "says not exactly one thing", accepted)
    _check((one for one, _ in WHENS), members, f"{path}.")
    return members


def _what(fault: dict[str, Any], path: str, on: str, name: str) -> dict[str, Any]:
    kinds = [kind for kind in KINDS if kind.on == on]
    accepted = ", ".join(kind.name for kind in kinds)
    members = _object(fault.get("what"), path, f"an object with one of {accepted}")
    chosen = [kind for kind in kinds if kind.name in members]
    if len(chosen) != 1:
        named = " and ".join(kind.name for kind in chosen) or "no kind"
        raise BrokenRule(path, f"names {named} of a fault on: {on}", f"exactly one of {accepted}")
    [kind] = chosen
    parameters = (kind.own, *kind.more)
    _check_names(members, [one.name for one in parameters], f"{path}.")
    _check(parameters, members, f"{path}.")
    if kind.only and name != kind.only:
        raise BrokenRule(f"{path}.{kind.name}", f"does not go with call: {name}", f"call: {kind.only}")
    return members


def _check(parameters: Iterable[Parameter], members: dict[str, Any], path: str) -> None:
    for one in parameters:
        if one.name in members and not one.takes(members[one.name]):
            raise BrokenRule(f"{path}{one.name}", _cannot_be(members[one.name]), one.accepted)


def _check_names(members: dict[str, Any], known: Sequence[str], path: str) -> None:
    unknown = next((name for name in members if name not in known), None)
    if unknown is not None:
        raise BrokenRule(f"{path}{unknown[:64]}", "is unknown", ", ".join(known))


def _object(given: object, path: str, accepted: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise BrokenRule(path, "is missing" if given is None else "is no object", accepted)
    return cast("dict[str, Any]", given)


def _cannot_be(value: object) -> str:
    text = repr(value)
    return f"cannot be {text if len(text) <= 80 else text[:77] + '...'}"
