"""Forms of flows: the texts and fields of the screens, read from Flow JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_of, objects_in
from waypost.console.bubbles.items import text_of

MAX_FIELDS_PER_SCREEN: Final = 200
_MAX_DEPTH: Final = 8

# fmt: off
FLOW_FIELD_KINDS: Final = {  # Source: the operator's page "Flow JSON", components; our kind of form field
    "TextHeading":       "heading",
    "TextSubheading":    "heading",
    "TextBody":          "text",
    "TextCaption":       "text",
    "RichText":          "text",
    "TextInput":         "input",
    "TextArea":          "area",
    "DatePicker":        "date",
    "CalendarPicker":    "date",
    "Dropdown":          "choice",
    "RadioButtonsGroup": "choice",
    "CheckboxGroup":     "several",
    "ChipsSelector":     "several",
    "OptIn":             "tick",
}
_INPUT_TYPES: Final = {  # likewise, `input-type`
    "email": "email", "number": "number", "phone": "tel", "password": "password",
}
# fmt: on


@dataclass(frozen=True, slots=True)
class FlowField:
    """A text or a field of a screen."""

    kind: str  # kind of `FLOW_FIELD_KINDS`
    text: str  # content of a text, or label of a field
    name: str = ""
    type: str = "text"  # HTML type of an input
    is_required: bool = False
    hint: str = ""
    options: tuple[tuple[str, str], ...] = ()  # ids and titles of a choice


@dataclass(frozen=True, slots=True)
class FlowScreen:
    """One screen of a flow; `done` is the label of its submit button."""

    title: str
    parts: tuple[FlowField, ...]
    done: str


def parse_screens(content: object) -> list[FlowScreen]:
    """Return the screens of a flow that have texts or fields.

    Args:
        content: parsed Flow JSON from the flow's author.
    """
    screens = [_screen(raw) for raw in objects_in(object_of(content).get("screens"))]
    return [screen for screen in screens if screen.parts]


def _screen(screen: dict[str, Any]) -> FlowScreen:
    parts: list[FlowField] = []
    done = ""
    for component in _components(object_of(screen.get("layout")), 0):
        if component.get("type") == "Footer":
            done = text_of(component.get("label"))
            continue
        part = _parse_field(component)
        if part is not None and len(parts) < MAX_FIELDS_PER_SCREEN:
            parts.append(part)
    return FlowScreen(text_of(screen.get("title")) or text_of(screen.get("id")), tuple(parts), done)


def _components(node: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    """Yield all components in order, including those in forms and branches."""
    if depth > _MAX_DEPTH:
        return
    for name in ("children", "then", "else"):
        for component in objects_in(node.get(name)):
            yield component
            yield from _components(component, depth + 1)
    for branch in object_of(node.get("cases")).values():
        yield from _components({"children": branch}, depth + 1)


def _parse_field(component: dict[str, Any]) -> FlowField | None:
    kind = FLOW_FIELD_KINDS.get(text_of(component.get("type")))
    if kind is None:
        return None
    if kind in ("heading", "text"):
        text = text_of(component.get("text"))
        return FlowField(kind, text) if text else None
    name = text_of(component.get("name"))
    if not name:
        return None
    options = tuple(
        (text_of(option.get("id")), text_of(option.get("title")) or text_of(option.get("id")))
        for option in objects_in(component.get("data-source"))
    )
    if kind in ("choice", "several") and not options:  # the options come from an endpoint at run time
        kind = "input"
    return FlowField(
        kind,
        text_of(component.get("label")) or name,
        name,
        _INPUT_TYPES.get(text_of(component.get("input-type")), "text"),
        component.get("required") is True,
        text_of(component.get("helper-text")),
        options,
    )
