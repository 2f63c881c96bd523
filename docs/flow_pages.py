"""The reference page of Flow JSON: versions, components with their properties, and the rules."""

from collections.abc import Iterable

from docs.markdown import as_code, page, table
from waypost.flow_json import errors
from waypost.flow_json.components import (
    ACTIONS,
    COMPONENTS,
    FLOW,
    MAX_BRANCHES,
    MAX_CAROUSELS,
    MAX_COMPONENTS,
    MAX_IF_DEPTH,
    MAX_SCREENS,
    SCREEN,
)
from waypost.flow_json.errors import MAX_ERRORS, SCHEMA, FlowRule
from waypost.flow_json.kinds import (
    ALWAYS,
    ActionKind,
    AnyKind,
    BooleanKind,
    ComponentsKind,
    ConditionKind,
    DateKind,
    EitherKind,
    EnumKind,
    Kind,
    ListKind,
    MapKind,
    NumberKind,
    ObjectKind,
    PictureKind,
    Property,
    ReferenceKind,
    TextKind,
)
from waypost.flow_json.nodes import MAX_DEPTH
from waypost.flow_json.validator import MAX_FLOW_JSON_BYTES
from waypost.flow_json.versions import FLOW_VERSIONS, NEWEST, Version

_MANY_VALUES = 8


def flow_json_page() -> str:
    """Return the page of Flow JSON."""
    rules = sorted({one for one in vars(errors).values() if isinstance(one, FlowRule)}, key=_order)
    return page(
        "Flow JSON",
        "What Flow JSON may contain, and the error of each rule. [Check a Flow](../how-to/check-a-flow.md) shows how to "
        "have a Flow checked.",
        "## Versions",
        "A Flow with a frozen version can be sent, and not be published.",
        table(
            ("Version", "State", "What it brought"),
            [(_dotted(one.number), one.state, one.brought) for one in FLOW_VERSIONS],
        ),
        "## Limits",
        table(
            ("What", "At most"),
            [
                ("Size of the text", f"{MAX_FLOW_JSON_BYTES // 1024**2} MB"),
                ("Values within one another", MAX_DEPTH),
                ("Screens", MAX_SCREENS),
                ("Components of a screen", MAX_COMPONENTS),
                ("ImageCarousels of a Flow", MAX_CAROUSELS),
                ("Ifs within one another", MAX_IF_DEPTH),
                ("Routes from a screen", MAX_BRANCHES),
                ("Errors and warnings that are reported", MAX_ERRORS),
            ],
        ),
        "## The Flow, screens and actions",
        "*Required* and *since* name versions; `-` means never, or from the first version on. A *dynamic* property may be "
        "a reference such as `${data.name}`; from 6.0 on, also an expression in backticks. A text that is too long, and a list of more options than are shown, "
        "is a warning.",
        "### The Flow",
        _properties(FLOW),
        "### Screen",
        _properties(SCREEN),
        *(part for name, properties in ACTIONS.items() for part in (f"### Action {name}", _properties(properties))),
        "## Components",
        *(
            part
            for one in COMPONENTS.values()
            for part in (f"### {one.type}", _facts(one.since, one.max_per_screen), _properties(one.properties))
        ),
        "## Rules",
        "If a rule of the shape is violated, only rules of the shape are reported. *Warning* names the versions in which "
        "the operator accepts the violation: the Flow is valid there, and the console shows a warning.",
        table(
            ("Error", "Message", "Of the shape", "Warning"),
            [
                (
                    f"`{one.error}`",
                    *as_code([_message(one)]),
                    "yes" if one.error_type == SCHEMA else "no",
                    _accepted(one),
                )
                for one in rules
            ],
        ),
    )


def _order(rule: FlowRule) -> tuple[str, str]:
    return rule.error, rule.message


def _message(rule: FlowRule) -> str:
    return rule.message.replace("{{", "{").replace("}}", "}")


def _accepted(rule: FlowRule) -> str:
    if rule.accepted is None:
        return "-"
    first, end = rule.accepted
    if end > NEWEST.number:
        return "every version" if first <= ALWAYS else f"from {_dotted(first)} on"
    return f"before {_dotted(end)}" if first <= ALWAYS else f"from {_dotted(first)} to before {_dotted(end)}"


def _facts(since: Version, most: int | None) -> str:
    first = f"Since {_dotted(since)}." if since != ALWAYS else "In every version."
    return first + (f" At most {most} on a screen." if most is not None else "")


def _properties(properties: Iterable[Property]) -> str:
    rows = [
        (
            f"`{one.name}`",
            _described(one.kind),
            "-" if one.required is None else "yes" if one.required == ALWAYS else f"from {_dotted(one.required)} on",
            "yes" if one.is_dynamic else "no",
            _since(one),
        )
        for one in properties
    ]
    return table(("Property", "Value", "Required", "Dynamic", "Since"), rows)


def _since(one: Property) -> str:
    if one.until is not None:
        return f"until before {_dotted(one.until)}"
    return "-" if one.since == ALWAYS else _dotted(one.since)


def _described(kind: Kind) -> str:
    """Return what values a kind has, with their limits."""
    match kind:
        case TextKind():
            words = ["URI" if kind.format == "uri" else "regular expression" if kind.format else "text"]
            words += [f"at most {kind.max_chars} characters"] if kind.max_chars is not None else []
            return ", ".join([*words, *(f"`{one.pattern}`" for one in kind.patterns[-1:])])
        case BooleanKind():
            return "boolean"
        case NumberKind():
            return ", ".join(["integer" if kind.is_integer else "number", *_range(kind.minimum, kind.maximum)])
        case EnumKind() if len(kind.values) > _MANY_VALUES:
            return f"one of {len(kind.values)} texts, which the error names"
        case EnumKind():
            return " or ".join(f"`{one}`" for one in kind.values)
        case DateKind():
            return "day, YYYY-MM-DD; before 5.0 milliseconds since 1970, as a text"
        case PictureKind():
            return "picture in base64" + (f", at most {kind.max_kb} kB" if kind.max_kb is not None else "")
        case ReferenceKind():
            return "reference"
        case ConditionKind():
            return "condition"
        case ListKind():
            return ", ".join(
                [f"list of: {_described(kind.kind)}", *_range(kind.min_items or None, kind.max_items, "items")]
            )
        case MapKind():
            return f"object with names of your own, each: {_described(kind.kind)}"
        case ObjectKind():
            return f"object: {', '.join(map(_member, kind.properties))}"
        case EitherKind():
            return "; or ".join(map(_described, kind.kinds))
        case ActionKind():
            names = [
                f"`{name}`" + (f" from {_dotted(at)} on" if at != ALWAYS else "") for name, at in kind.names.items()
            ]
            return f"action: {', '.join(names)}"
        case ComponentsKind():
            return "components" if kind.allowed is None else f"components: {', '.join(sorted(kind.allowed))}"
        case AnyKind():
            return " or ".join(kind.json_types) or "any"
        case _:
            return "name"


def _member(one: Property) -> str:
    """Return a member of an object within a component: its name, whether it is required, and its length."""
    limit = one.kind.max_chars if isinstance(one.kind, TextKind) else None
    facts = ["required"] if one.required is not None else []
    facts += [f"at most {limit} characters"] if limit is not None else []
    return f"`{one.name}`" + (f" ({', '.join(facts)})" if facts else "")


def _range(minimum: float | None, maximum: float | None, unit: str = "") -> list[str]:
    ends = (("at least", minimum), ("at most", maximum))
    return [f"{word} {limit:g} {unit}".rstrip() for word, limit in ends if limit is not None]


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
