"""Reading faults from the control API or a scenario file; the tables of `fault_kinds` check each member."""

import difflib
import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from waypost.base.error_texts import error_text, toml_error_text
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.members import MemberDeclaration, check_names, check_values, describe_invalid
from waypost.simulator.faults.fault_kinds import (
    ANY,
    CALL,
    ENDPOINT,
    ENDPOINT_REQUESTS,
    FAULT_FILTERS,
    FAULT_KINDS,
    FAULT_TRIGGERS,
    INBOUND,
    ONBOARDING,
    SIGNUP_NAMES,
    STATUSES,
    TARGETS,
    TEMPLATE_FIELDS,
    WEBHOOKS,
)
from waypost.simulator.state.embedded_signup import SESSION_OPENED, WINDOW_ERRORS
from waypost.simulator.state.graph_operations import SEND, call_names

_MAX_FAULTS: Final = 1000
_SEED: Final = MemberDeclaration("seed", "whole", 0, 2**63 - 1)
_COMMON_PARAMETERS: Final = (
    _SEED,
    MemberDeclaration("label", "text", at_most=200),
    MemberDeclaration("until_ms", "whole", 1, 2**53),
)
_TEXT: Final = MemberDeclaration("", "text", at_most=512)
_MEMBERS: Final = (
    "on",
    *TARGETS,
    *FAULT_FILTERS,
    "when",
    "what",
    *(parameter.name for parameter in _COMMON_PARAMETERS),
)


class InvalidScenario(Exception):
    """A scenario file cannot be read or is invalid; the text names the accepted values."""


@dataclass(frozen=True)
class Scenario:
    """Faults of one file, armed when the simulator starts."""

    key: str  # a digest of the file: the same file is armed only once over restarts
    faults: tuple[dict[str, Any], ...]  # checked, from `read_faults`


def read_scenario(path: Path) -> Scenario:
    """Read a TOML file of `[[faults]]` and an optional `seed`.

    Raises:
        InvalidScenario: the file is missing, is no TOML, or has an invalid fault.
    """
    try:
        content = path.read_bytes()
        members = tomllib.loads(content.decode())
        if "faults" not in members:
            accepted = "[[faults]] tables, at least one"
            raise ControlApiError("faults", "is missing", accepted)  # noqa: TRY301  like the rest
        faults = read_faults(members)
    except OSError as error:
        raise InvalidScenario(f"the scenario {path} cannot be read: {error_text(error)}") from error
    except ValueError as error:
        raise InvalidScenario(f"the scenario {path} {toml_error_text(error)}") from error
    except ControlApiError as error:
        raise InvalidScenario(f"the scenario {path} is wrong: {error}; accepted: {error.accepted}") from error
    return Scenario(hashlib.blake2b(content, digest_size=8).hexdigest(), tuple(faults))


def read_faults(value: object) -> list[dict[str, Any]]:
    """Check one fault or a scenario `{faults, seed?}`; return the faults with `condition` and `seed` filled in.

    Raises:
        ControlApiError: names the member, the rule and the accepted values.

    Source: simulator/faults/fault_kinds.py.
    """
    members = _read_object(value, "body", ", ".join(_MEMBERS))
    if "faults" not in members:
        return [_read_fault(members, "", None)]
    check_names(members, ("faults", "seed"), "")
    seed = members.get("seed")
    if seed is not None:
        check_values([_SEED], members, "")
    faults = members["faults"]
    if not isinstance(faults, list) or not 0 < len(cast("list[object]", faults)) <= _MAX_FAULTS:
        raise ControlApiError("faults", "is not a list of faults", f"1 to {_MAX_FAULTS} faults")
    return [
        _read_fault(_read_object(fault, f"faults[{index}]", ", ".join(_MEMBERS)), f"faults[{index}].", seed)
        for index, fault in enumerate(cast("list[object]", faults))
    ]


def _read_fault(members: dict[str, Any], path: str, seed: int | None) -> dict[str, Any]:
    check_names(members, _MEMBERS, path)
    on = members.get("on")
    if not isinstance(on, str) or on not in TARGETS:
        accepted = f"{', '.join(TARGETS[:-1])} or {TARGETS[-1]}"
        raise ControlApiError(f"{path}on", describe_invalid(on) if "on" in members else "is missing", accepted)
    other = next((target for target in TARGETS if target != on and target in members), None)
    if other is not None:
        raise ControlApiError(f"{path}{other}", f"does not go with on: {on}", f"{on}, and no {other}")
    name = members.get(on, ANY)
    names = (ANY, *target_names(on))
    if name not in names:
        matches = difflib.get_close_matches(str(name), names, n=1)
        hint = f"did you mean {matches[0]}?" if matches else ""
        raise ControlApiError(f"{path}{on}", f"{str(name)[:100]!r} is unknown", ", ".join(names), hint=hint)
    for filter_name, accepted in FAULT_FILTERS.items():
        if filter_name not in members:
            continue
        if not _TEXT.accepts(members[filter_name]):
            raise ControlApiError(f"{path}{filter_name}", "is not a text of 1 to 512 characters", accepted)
        filterable = _filterable_names(on, filter_name)
        if filterable is not None and name not in filterable:
            rule = f"does not go with {on}: {name}, which names none"
            raise ControlApiError(f"{path}{filter_name}", rule, f"{on} one of {', '.join(sorted(filterable))}")
    check_values(_COMMON_PARAMETERS, members, path)
    when, what = _read_when(members, f"{path}when"), _read_what(members, f"{path}what", on, name)
    if on == ONBOARDING and name == ANY:
        name = _first_name(what)
    fault = {**members, on: name, "when": when, "what": what}
    return fault if seed is None else {**fault, "seed": fault.get("seed", seed)}


def target_names(on: str) -> tuple[str, ...]:
    """Return the names of calls, webhooks, screens or requests that a fault on this target may have."""
    names = {CALL: call_names(), ONBOARDING: SIGNUP_NAMES, ENDPOINT: ENDPOINT_REQUESTS}
    return names.get(on, WEBHOOKS)


def _filterable_names(on: str, filter_name: str) -> set[str] | None:
    """Return the names of calls or webhooks that a filter may narrow; None: all."""
    match on, filter_name:
        case "call", "phone":
            return {ANY, SEND}
        case "call", "template":
            return {ANY, SEND, *(name for name in call_names() if name.startswith("templates."))}
        case "webhook", "phone" | "number":
            return {ANY, INBOUND, *STATUSES}
        case ("onboarding", "waba_id" | "phone" | "template") | ("endpoint", "template"):
            return set()
        case "call" | "webhook" | "onboarding", "flow":
            return set()
        case "webhook", "template":
            return {ANY, *STATUSES, *TEMPLATE_FIELDS}
        case _:
            return None


def _read_when(fault: dict[str, Any], path: str) -> dict[str, Any]:
    accepted = "; ".join(f"{{{parameter.name}: {parameter.accepted}}}" for parameter, _ in FAULT_TRIGGERS)
    members = _read_object(fault.get("when", {"always": True}), path, accepted)
    check_names(members, [parameter.name for parameter, _ in FAULT_TRIGGERS], f"{path}.")
    if len(members) != 1:
        raise ControlApiError(path, "has not exactly one member", accepted)
    check_values((parameter for parameter, _ in FAULT_TRIGGERS), members, f"{path}.")
    return members


def _read_what(fault: dict[str, Any], path: str, on: str, name: str) -> dict[str, Any]:
    kinds = [kind for kind in FAULT_KINDS if kind.target == on]
    accepted = ", ".join(kind.name for kind in kinds)
    members = _read_object(fault.get("what"), path, f"an object with one of {accepted}")
    chosen = [kind for kind in kinds if kind.name in members]
    if len(chosen) != 1:
        named = " and ".join(kind.name for kind in chosen) or "no kind"
        raise ControlApiError(path, f"names {named} of a fault on: {on}", f"exactly one of {accepted}")
    [kind] = chosen
    parameters = (kind.parameter, *kind.extra_parameters)
    check_names(members, [parameter.name for parameter in parameters], f"{path}.")
    check_values(parameters, members, f"{path}.")
    if kind.only_call and name != kind.only_call and not (on == ONBOARDING and name == ANY):
        raise ControlApiError(f"{path}.{kind.name}", f"does not go with {on}: {name}", f"{on}: {kind.only_call}")
    if kind.each == "screen":
        _check_window_error(f"{path}.{kind.name}", members[kind.name], name)
    return members


def _check_window_error(path: str, code: int, name: str) -> None:
    """Check that the window, or the named screen of it, can show an error."""
    accepted = [known for known, row in WINDOW_ERRORS.items() if name == ANY or name in row.screens]
    if code not in accepted:
        where = "the window" if name == ANY else f"{ONBOARDING}: {name}"
        codes = ", ".join(map(str, sorted(accepted)))
        raise ControlApiError(path, f"{code} is no error of {where}", codes or "none: name a screen")


def _first_name(what: dict[str, Any]) -> str:
    """Return the name of a fault of an embedded signup that names none: where it can first have an effect."""
    code = what.get("window_error")
    return SESSION_OPENED if code is None else WINDOW_ERRORS[code].screens[0]


def _read_object(value: object, path: str, accepted: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ControlApiError(path, "is missing" if value is None else "is no object", accepted)
    return cast("dict[str, Any]", value)
