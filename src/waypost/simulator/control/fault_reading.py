"""Reading a fault as it was given: each member held against the tables, refused with what would do."""

import difflib
from collections.abc import Sequence
from typing import Any, Final, cast

from waypost.simulator.control.guard import ControlRefused
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
    Kind,
    Parameter,
)
from waypost.simulator.graph.call_names import CALL_NAMES, SEND, WITH_TEMPLATE

_AT_MOST: Final = 1000
_SEED: Final = Parameter("seed", "whole", 0, 2**63 - 1)
_ALWAYS: Final = {"always": True}
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


def read_faults(given: object, *, path: str = "") -> list[dict[str, Any]]:
    """One fault, or a scenario `{faults, seed?}`: checked, with `when` and `seed` filled in.

    Args:
        given: the decoded body or file.
        path: what stands before the name of a member in a refusal.

    Raises:
        ControlRefused: 400; names the member, the rule and what would be accepted.

    Source: simulator/faults/fault_kinds.py.
    """
    members = _object(given, path or "body", ", ".join(_MEMBERS))
    if "faults" not in members:
        return [_fault(members, path, None)]
    _only(members, ("faults", "seed"), path)
    seed = members.get("seed")
    if seed is not None:
        _check(_SEED, seed, f"{path}seed")
    faults = members["faults"]
    if not isinstance(faults, list) or not 0 < len(cast("list[object]", faults)) <= _AT_MOST:
        raise _wrong(f"{path}faults", "is no list of faults", f"1 to {_AT_MOST} faults")
    return [
        _fault(_object(one, f"{path}faults[{at}]", ", ".join(_MEMBERS)), f"{path}faults[{at}].", seed)
        for at, one in enumerate(cast("list[object]", faults))
    ]


def _fault(members: dict[str, Any], path: str, seed: int | None) -> dict[str, Any]:
    _only(members, _MEMBERS, path)
    on = members.get("on")
    if not isinstance(on, str) or on not in _NAMES:
        raise _wrong(f"{path}on", _rule(members, "on"), f"{CALL} or {WEBHOOK}")
    other = WEBHOOK if on == CALL else CALL
    if other in members:
        raise _wrong(f"{path}{other}", f"does not go with on: {on}", f"{on}, and no {other}")
    name = members.get(on, ANY)
    if name != ANY and name not in _NAMES[on]:
        raise _unknown(f"{path}{on}", name, (ANY, *_NAMES[on]))
    _check_filters(members, path, on, name)
    for parameter in _PLAIN:
        if parameter.name in members:
            _check(parameter, members[parameter.name], f"{path}{parameter.name}")
    read: dict[str, Any] = {
        **members,
        on: name,
        "when": _when(members.get("when", _ALWAYS), f"{path}when"),
        "what": _what(members.get("what"), f"{path}what", on, name),
    }
    if seed is not None:
        read.setdefault("seed", seed)
    return read


def _unknown(field: str, name: object, names: Sequence[str]) -> ControlRefused:
    """A name that is none: the nearest one, or all of them, once."""
    near = difflib.get_close_matches(str(name), names, n=1)
    return ControlRefused(
        400,
        field=field,
        rule=f"{str(name)[:100]!r} is unknown",
        accepted=", ".join(names),
        hint=f"did you mean {near[0]}?" if near else "see `accepted` for the names",
    )


def _check_filters(members: dict[str, Any], path: str, on: str, name: str) -> None:
    for filter_name, accepted in FILTERS.items():
        if filter_name not in members:
            continue
        if not _TEXT.takes(members[filter_name]):
            raise _wrong(f"{path}{filter_name}", "is no text of 1 to 512 characters", accepted)
        narrowed = _CAN_NAME.get((on, filter_name))
        if narrowed is not None and name not in narrowed:
            raise _wrong(
                f"{path}{filter_name}",
                f"does not go with {on}: {name}, which names none",
                f"{on} one of {', '.join(sorted(narrowed))}",
            )


def _when(given: object, path: str) -> dict[str, Any]:
    accepted = "; ".join(f"{{{one.name}: {one.accepted}}}" for one, _ in WHENS)
    members = _object(given, path, accepted)
    _only(members, tuple(one.name for one, _ in WHENS), path + ".")
    if len(members) != 1:
        raise _wrong(path, "says not exactly one thing", accepted)
    for parameter, _ in WHENS:
        if parameter.name in members:
            _check(parameter, members[parameter.name], f"{path}.{parameter.name}")
    return members


def _what(given: object, path: str, on: str, name: str) -> dict[str, Any]:
    kinds = {kind.name: kind for kind in KINDS if kind.on == on}
    accepted = ", ".join(kinds)
    members = _object(given, path, f"an object with one of {accepted}")
    chosen = [kind for kind in kinds.values() if kind.name in members]
    if len(chosen) != 1:
        named = " and ".join(kind.name for kind in chosen) or "no kind"
        raise _wrong(path, f"names {named} of a fault on: {on}", f"exactly one of {accepted}")
    [kind] = chosen
    parameters = (kind.own, *kind.more)
    _only(members, tuple(one.name for one in parameters), path + ".")
    for parameter in parameters:
        if parameter.name in members:
            _check(parameter, members[parameter.name], f"{path}.{parameter.name}")
    _check_only(kind, name, path)
    return members


def _check_only(kind: Kind, name: str, path: str) -> None:
    if kind.only and name != kind.only:
        raise _wrong(f"{path}.{kind.name}", f"does not go with call: {name}", f"call: {kind.only}")


def _check(parameter: Parameter, value: object, path: str) -> None:
    if not parameter.takes(value):
        raise _wrong(path, f"cannot be {_shown(value)}", parameter.accepted)


def _object(given: object, path: str, accepted: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise _wrong(path, "is missing" if given is None else "is no object", accepted)
    return cast("dict[str, Any]", given)


def _only(members: dict[str, Any], known: tuple[str, ...], path: str) -> None:
    unknown = next((name for name in members if name not in known), None)
    if unknown is not None:
        raise _wrong(f"{path}{unknown[:64]}", "is unknown", ", ".join(known))


def _rule(members: dict[str, Any], name: str) -> str:
    return f"cannot be {_shown(members[name])}" if name in members else "is missing"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _wrong(field: str, rule: str, accepted: str) -> ControlRefused:
    return ControlRefused(400, field=field, rule=rule, accepted=accepted)
