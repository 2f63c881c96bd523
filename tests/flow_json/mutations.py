"""Change one thing in a valid Flow, at random by a seed, and count how often the error names it and its line.

By hand: `python -m tests.flow_json.mutations 1000 [SEED]` prints how many were found, and those that were not.
"""

import random
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from tests.flow_json.samples import DROP, all_components, changed, line_of, simple, text_of
from waypost.flow_json.components import ACTIONS, COMPONENTS, SCREEN
from waypost.flow_json.kinds import BooleanKind, EnumKind, ListKind, NumberKind, Property, TextKind
from waypost.flow_json.validator import check_flow_json
from waypost.flow_json.versions import FLOW_VERSIONS, Version, read_version

Flow: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Mutation:
    """One change of a Flow.

    Attributes:
        changes: new values by path.
        errors: the names of which one must be reported.
        at: the path of the value on whose line it must be.
    """

    changes: dict[str, Any]
    errors: tuple[str, ...]
    at: str


@dataclass(frozen=True)
class Outcome:
    """A mutation and what was found; `text` is the mutated Flow."""

    kind: str
    text: str
    expected: tuple[str, ...]
    line: int
    found: list[tuple[str, int]]

    @property
    def is_found(self) -> bool:
        """True if a right name stands at the line of the change."""
        return any(name in self.expected and line == self.line for name, line in self.found)


def outcomes(count: int, seed: int) -> Iterator[Outcome]:
    """Yield what is found of each of some mutations, of all kinds in turn."""
    chance = random.Random(seed)
    flows = [simple(), *(all_components(version.number) for version in FLOW_VERSIONS)]
    kinds = [*KINDS, NO_JSON]
    for index in range(count):
        kind = kinds[index % len(kinds)]
        if kind == NO_JSON:
            text, line = _broken_text(chance.choice(flows), chance)
            yield _outcome(kind, text, ("INVALID_FLOW_JSON",), line)
            continue
        flow, mutation = flows[0], None
        while mutation is None:  # a Flow may have nothing that can be changed so
            flow = chance.choice(flows)
            mutation = KINDS[kind](flow, chance)
        mutated = changed(flow, mutation.changes)
        yield _outcome(kind, text_of(mutated), mutation.errors, line_of(mutated, mutation.at))


def _outcome(kind: str, text: str, expected: tuple[str, ...], line: int) -> Outcome:
    checked = check_flow_json(text)
    found = [(one["error"], one["line_start"]) for one in checked.errors + checked.warnings]
    return Outcome(kind, text, expected, line, found)


def _objects(value: Any, path: str = "") -> Iterator[Place]:
    """Yield each object with its path."""
    if isinstance(value, dict):
        members = cast("Flow", value)
        yield path, members
        for name, member in members.items():
            yield from _objects(member, f"{path}/{name}".removeprefix("/"))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _objects(item, f"{path}/{index}")


def _components(flow: Flow) -> list[Place]:
    return [(path, one) for path, one in _objects(flow) if one.get("type") in COMPONENTS]


def _actions(flow: Flow, name: str) -> list[Place]:
    return [(path, one) for path, one in _objects(flow) if one.get("name") == name and path.endswith("-action")]


def _screens(flow: Flow) -> list[Place]:
    return [(f"screens/{index}", one) for index, one in enumerate(flow["screens"])]


def _number(flow: Flow) -> Version:
    return read_version(flow["version"]) or (0, 0)


def _of_kind(flow: Flow, *kinds: type) -> list[tuple[str, Property]]:
    """Return the properties of components, which are there and of some kinds, with their paths."""
    return [
        (f"{path}/{one.name}", one)
        for path, component in _components(flow)
        for one in COMPONENTS[component["type"]].properties
        if isinstance(one.kind, kinds) and one.name in component
    ]


def _pick(chance: random.Random, several: list[Any]) -> Any:
    return chance.choice(several) if several else None


def _no_required(flow: Flow, chance: random.Random) -> Mutation | None:
    version = _number(flow)
    declared = [(path, one, COMPONENTS[one["type"]].properties) for path, one in _components(flow)]
    declared += [(path, one, SCREEN) for path, one in _screens(flow)]
    declared += [(path, one, ACTIONS[name]) for name in ACTIONS for path, one in _actions(flow, name)]
    path, name = chance.choice(
        [
            (path, one.name)
            for path, value, properties in declared
            for one in properties
            if one.required is not None and one.required <= version and one.name in value
        ]
    )
    return Mutation({f"{path}/{name}": DROP}, ("MISSING_REQUIRED_PROPERTY",), path)


def _wrong_type(flow: Flow, chance: random.Random) -> Mutation | None:
    path, one = chance.choice(_of_kind(flow, TextKind, BooleanKind, NumberKind, ListKind))
    value = "text" if not isinstance(one.kind, TextKind) else 7
    return Mutation({path: value}, ("INVALID_PROPERTY_TYPE",), path)


def _unknown_property(flow: Flow, chance: random.Random) -> Mutation | None:
    path, _ = chance.choice([*_components(flow), *_screens(flow), *_actions(flow, "navigate")])
    return Mutation({f"{path}/colour": "red"}, ("INVALID_PROPERTY_KEY",), f"{path}/colour")


def _unknown_component(flow: Flow, chance: random.Random) -> Mutation | None:
    path, _ = chance.choice(_components(flow))
    return Mutation({f"{path}/type": "Slider"}, ("ONE_OF_SCHEMA_VALIDATION_FAILED",), f"{path}/type")


def _wrong_choice(flow: Flow, chance: random.Random) -> Mutation | None:
    place = _pick(chance, _of_kind(flow, EnumKind))
    return Mutation({place[0]: "purple"}, ("INVALID_ENUM_VALUE",), place[0]) if place else None


def _missing_reference(scope: str) -> Callable[[Flow, random.Random], Mutation | None]:
    def mutate(flow: Flow, chance: random.Random) -> Mutation | None:
        found = [path for path, one in _of_kind(flow, TextKind) if one.is_dynamic and one.name != "name"]
        path = _pick(chance, found)
        return Mutation({path: f"${{{scope}.nothing}}"}, ("INVALID_SCREEN_DYNAMIC_DATA",), path) if path else None

    return mutate


def _missing_screen_reference(flow: Flow, chance: random.Random) -> Mutation | None:
    found = [path for path, one in _of_kind(flow, TextKind) if one.is_dynamic]
    path = _pick(chance, found)
    names = ("INVALID_SCREEN_DYNAMIC_DATA", "INVALID_PROPERTY_VALUE")  # before 4.0 there are none
    return Mutation({path: "${screen.NOWHERE.data.nothing}"}, names, path) if path else None


def _missing_payload_field(flow: Flow, chance: random.Random) -> Mutation | None:
    path, _ = chance.choice([*_actions(flow, "navigate"), *_actions(flow, "complete")])
    at = f"{path}/payload/extra"
    # Before 4.0, a Footer outside a Form may read none at all.
    names = ("INVALID_ON_CLICK_ACTION_PAYLOAD", "INVALID_FOOTER_PAYLOAD_OUTSIDE_FORM")
    return Mutation({at: "${form.nothing}"}, names, at)


def _unknown_next(flow: Flow, chance: random.Random) -> Mutation | None:
    path, _ = chance.choice(_actions(flow, "navigate"))
    at = f"{path}/next/name"
    return Mutation({at: "NOWHERE"}, ("INVALID_NAVIGATE_ACTION_NEXT_SCREEN_NAME",), at)


def _early_complete(flow: Flow, chance: random.Random) -> Mutation | None:
    footers = [path for path, one in _components(flow) if one["type"] == "Footer" and "next" in one["on-click-action"]]
    path = _pick(chance, footers)
    if path is None:
        return None
    action = f"{path}/on-click-action"
    return Mutation({action: {"name": "complete", "payload": {}}}, ("INVALID_COMPLETE_ACTION",), f"{action}/name")


def _same_screen_id(flow: Flow, chance: random.Random) -> Mutation | None:
    first, second = sorted(chance.sample(range(len(flow["screens"])), 2))
    at = f"screens/{second}/id"
    return Mutation({at: flow["screens"][first]["id"]}, ("DUPLICATE_SCREEN_IDS",), at)


def _same_name(flow: Flow, chance: random.Random) -> Mutation | None:
    inputs = [(path, one) for path, one in _components(flow) if COMPONENTS[one["type"]].is_input]
    if not inputs:
        return None
    path, one = chance.choice(inputs)
    *way, index = path.split("/")
    siblings = deepcopy(_at(flow, way))
    siblings.insert(int(index) + 1, one)
    names = ("DUPLICATE_FORM_COMPONENT_NAMES",)
    return Mutation({"/".join(way): siblings}, names, f"{'/'.join(way)}/{int(index) + 1}/name")


def _at(flow: Flow, way: list[str]) -> Any:
    place: Any = flow
    for step in way:
        place = place[int(step)] if step.isdecimal() else place[step]
    return place


def _newer_component(flow: Flow, chance: random.Random) -> Mutation | None:
    newer = [one.type for one in COMPONENTS.values() if one.since > _number(flow)]
    if not newer:
        return None
    path, _ = chance.choice(_components(flow))
    name = chance.choice(newer)
    return Mutation({f"{path}/type": name}, ("ONE_OF_SCHEMA_VALIDATION_FAILED",), f"{path}/type")


def _declarations(flow: Flow) -> list[Place]:
    return [(path, one) for path, one in _objects(flow) if "__example__" in one]


def _no_example(flow: Flow, chance: random.Random) -> Mutation | None:
    place = _pick(chance, _declarations(flow))
    return Mutation({f"{place[0]}/__example__": DROP}, ("MISSING_REQUIRED_PROPERTY",), place[0]) if place else None


def _wrong_example(flow: Flow, chance: random.Random) -> Mutation | None:
    if not _declarations(flow):
        return None
    path, one = chance.choice(_declarations(flow))
    at, value = f"{path}/__example__", 3 if one["type"] != "number" else "three"
    return Mutation({at: value}, ("INVALID_PROPERTY_TYPE",), at)


def _wrong_payload(flow: Flow, chance: random.Random) -> Mutation | None:
    found = [path for path, one in _actions(flow, "navigate") if one["payload"]]
    path = _pick(chance, found)
    at = f"{path}/payload/who"
    names = ("INVALID_NAVIGATE_ACTION_STATIC_DATA", "INVALID_NAVIGATE_ACTION_PAYLOAD")
    return Mutation({at: chance.choice([3, True, ["x"], {"x": 1}, "${data.count}"])}, names, at) if path else None


def _second_footer(flow: Flow, chance: random.Random) -> Mutation | None:
    path, one = chance.choice([(path, one) for path, one in _components(flow) if one["type"] == "Footer"])
    *way, _ = path.split("/")
    siblings = [*deepcopy(_at(flow, way)), one]
    at = f"{'/'.join(way)}/{len(siblings) - 1}/type"
    return Mutation({"/".join(way): siblings}, ("COMPONENT_TYPE_MAX_NUMBER_PER_SCREEN",), at)


def _empty_list(flow: Flow, chance: random.Random) -> Mutation | None:
    found = [path for path, one in _of_kind(flow, ListKind) if cast("ListKind", one.kind).min_items]
    path = _pick(chance, found)
    return Mutation({path: []}, ("MIN_ITEMS_REQUIRED",), path) if path else None


NO_JSON: Final = "the text is no JSON"
KINDS: Final[dict[str, Callable[[Flow, random.Random], Mutation | None]]] = {
    "a required property is missing": _no_required,
    "a property has the wrong type": _wrong_type,
    "a property is unknown": _unknown_property,
    "a component is unknown": _unknown_component,
    "a choice is unknown": _wrong_choice,
    "a reference leads to no data": _missing_reference("data"),
    "a reference leads to no input": _missing_reference("form"),
    "a reference leads to no screen": _missing_screen_reference,
    "a payload reads no input": _missing_payload_field,
    "the next screen is unknown": _unknown_next,
    "a screen that is not terminal completes": _early_complete,
    "two screens have one id": _same_screen_id,
    "two inputs have one name": _same_name,
    "a component is newer than the version": _newer_component,
    "an example is missing": _no_example,
    "an example has the wrong type": _wrong_example,
    "a payload has the wrong type": _wrong_payload,
    "a screen has two Footers": _second_footer,
    "a list is empty": _empty_list,
}
"""Of each kind a function that returns one mutation at random; None if a Flow has no place for it."""


def _broken_text(flow: Flow, chance: random.Random) -> tuple[str, int]:
    """Return a text that is no JSON, as a colon is gone, and the line of it."""
    lines = text_of(flow).split("\n")
    at = chance.choice([index for index, line in enumerate(lines) if '": ' in line])
    lines[at] = lines[at].replace('": ', '" ', 1)
    return "\n".join(lines), at + 1


def main() -> int:
    """Print how many mutations were found, and of which kinds the others are."""
    count, seed = map(int, [*sys.argv[1:], *("1000", "1")[len(sys.argv) - 1 :]])
    done = list(outcomes(count, seed))
    missed = [one for one in done if not one.is_found]
    lines = [f"{len(done) - len(missed)} of {len(done)} found, seed {seed}"]
    lines += [f"{one.kind}: {one.expected} at line {one.line}, found {one.found[:4]}" for one in missed]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
