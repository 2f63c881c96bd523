"""The steps of a script: what a phone does when a message arrives. Tables of triggers and actions, parsing, planning.

A step is an object: `on` names the trigger, `do` the action, `after_ms` is a number or a pair of numbers, and
the table `STEP_ACTIONS` names the further members. Random choices depend only on the script's seed, the phone, and the
number of messages that the phone has received: so a run is repeatable whatever the timing (decision 0036).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_or_none, object_or_none, objects_in
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.members import MemberDeclaration, check_names, check_values
from waypost.simulator.state.flow_steps import MAX_STEPS, FlowStep

MAX_SCRIPT_STEPS: Final = 32
_WEEK_MS: Final = 7 * 24 * 3600 * 1000
_TAPPABLE_TYPES: Final = ("QUICK_REPLY", "REPLY", "LIST_ROW")
_FORM_TYPES: Final = ("FLOW", "ADDRESS", "CALL_PERMISSION")

RenderedMessage = dict[str, Any]
"""A message as a phone shows it: `text`, and if present `header`, `footer`, `buttons`, `cards`, … ."""


@dataclass(frozen=True)
class ScriptStep:
    """One step of a script."""

    on: str  # a row of `STEP_TRIGGERS`
    do: str  # a row of `STEP_ACTIONS`
    # delay from delivery, shortest and longest; one is chosen at random for each message
    after_ms: tuple[int, int] = (0, 0)
    probability: float = 1  # 0 to 1
    times: int | None = None  # how often one phone does it at most; None: no limit
    text: str | None = None  # the text to send, the emoji of a reaction, or the label of the button to tap
    index: int | None = None  # of the button to tap
    card: int | None = None  # index of the carousel's card whose button is tapped
    response: dict[str, Any] = field(default_factory=dict[str, Any])  # the content of a filled form
    steps: list[Any] = field(default_factory=list[Any])  # in a Flow, as `FlowStep`
    for_ms: int | None = None  # how long the phone stays offline; None: until a request brings it back
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # the step as it was sent


def _category(name: str) -> Callable[[RenderedMessage], bool]:
    return lambda shown: shown.get("template", {}).get("category") == name


def _has_tappable_button(shown: RenderedMessage) -> bool:
    return any(map(is_tappable, _all_buttons(shown)))


def _all_buttons(rendered: RenderedMessage) -> list[dict[str, Any]]:
    cards = objects_in(rendered.get("cards"))
    return objects_in(rendered.get("buttons")) + [
        button for card in cards for button in objects_in(card.get("buttons"))
    ]


# fmt: off
STEP_TRIGGERS: Final[dict[str, tuple[str, Callable[[RenderedMessage], bool]]]] = {
    # on              when, in forms                           which messages
    "message":        ("any message arrives",                  lambda shown: True),
    "template":       ("a template arrives",                   lambda shown: "template" in shown),
    "session":        ("a message without a template arrives", lambda shown: "template" not in shown),
    "marketing":      ("a marketing template arrives",         _category("MARKETING")),
    "utility":        ("a utility template arrives",           _category("UTILITY")),
    "authentication": ("an authentication template arrives",   _category("AUTHENTICATION")),
    "button":         ("a message with a button arrives",      _has_tappable_button),
    "form":           ("a message with a form arrives",        lambda shown: find_form_button(shown) is not None),
}

STEP_ACTIONS: Final[dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    # do        in forms                    must have  may have              besides on, do, after_ms, …
    "read":    ("read it",                  (),        ()),
    "reply":   ("reply with a text",        ("text",), ()),
    "tap":     ("tap a button",             (),        ("index", "text", "card")),
    "react":   ("react with an emoji",      ("text",), ()),
    "respond": ("submit the form",          (),        ("response",)),
    "play":    ("fill in the Flow",         ("steps",), ()),
    "block":   ("block the business",       (),        ()),
    "report":  ("report the business",      (),        ()),
    "opt_out": ("stop its marketing",       (),        ()),
    "offline": ("go offline",               (),        ("for_ms",)),
    "nothing": ("skip the remaining steps", (),        ()),           # and no later step of the script either
}
# fmt: on


def is_tappable(button: dict[str, Any]) -> bool:
    """True if a tap on the button sends a message to the business."""
    return button.get("type") in _TAPPABLE_TYPES


def find_button(step: ScriptStep, rendered: RenderedMessage) -> dict[str, Any] | None:
    """Return the button that a step taps; None if the message has no such button."""
    buttons = objects_in(rendered.get("buttons"))
    if step.card is not None:
        buttons = [
            button
            for card in objects_in(rendered.get("cards"))
            if card.get("index") == step.card
            for button in objects_in(card.get("buttons"))
        ]
    matches = (
        button
        for button in buttons
        if is_tappable(button) and step.index in (None, button.get("index")) and step.text in (None, button.get("text"))
    )
    return next(matches, None)


def find_form_button(rendered: RenderedMessage) -> dict[str, Any] | None:
    """Return the button that opens a form or a choice; None if there is none."""
    buttons = objects_in(rendered.get("buttons"))
    return next((button for button in buttons if button.get("type") in _FORM_TYPES), None)


_STEP_MEMBERS: Final = {
    member.name: member
    for member in (
        MemberDeclaration("on", "choice", choices=tuple(STEP_TRIGGERS), description=", ".join(STEP_TRIGGERS)),
        MemberDeclaration("do", "choice", choices=tuple(STEP_ACTIONS), description=", ".join(STEP_ACTIONS)),
        MemberDeclaration("after_ms", "pair", 0, _WEEK_MS),
        MemberDeclaration("probability", "number", 0, 1),
        MemberDeclaration("times", "whole", 1, 1_000_000, description="1 to 1000000"),
        MemberDeclaration("text", "text", at_most=4096),
        MemberDeclaration("index", "whole", 0, 99, description="0 to 99"),
        MemberDeclaration("card", "whole", 0, 9, description="0 to 9"),
        MemberDeclaration("response", "object", description="an object with the form's values"),
        MemberDeclaration("steps", "list", 1, MAX_STEPS, description=f"1 to {MAX_STEPS} steps of a person in a Flow"),
        MemberDeclaration("for_ms", "whole", 0, 30 * _WEEK_MS, description=f"0 to {30 * _WEEK_MS}"),
    )
}
_FLOW_STEPS: Final = ", ".join(name for name in FlowStep.__struct_fields__ if name != "upload")
_COMMON_MEMBERS: Final = ("on", "do", "after_ms", "probability", "times")


def read_steps(raw: Sequence[Any]) -> tuple[ScriptStep, ...]:
    """Check a script as it was sent, and return its steps.

    Raises:
        ControlApiError: for the first violation.
    """
    if len(raw) > MAX_SCRIPT_STEPS:
        raise ControlApiError("script", f"has {len(raw)} steps", f"at most {MAX_SCRIPT_STEPS}")
    return tuple(_read_step(f"script[{index}]", step) for index, step in enumerate(raw))


def _read_step(path: str, raw: Any) -> ScriptStep:
    step = object_or_none(raw)
    if step is None:
        raise ControlApiError(path, "is not an object", '{"on": "message", "do": "read", ...}')
    for name in ("on", "do"):
        if name not in step:
            raise ControlApiError(f"{path}.{name}", "is missing", _STEP_MEMBERS[name].accepted)
    for name in step:
        check_names((name,), _STEP_MEMBERS, f"{path}.")
        check_values((_STEP_MEMBERS[name],), step, f"{path}.", "is not valid")
    for index, flow_step in enumerate(step.get("steps", ())):
        if not _is_flow_step(flow_step):
            raise ControlApiError(f"{path}.steps[{index}]", "is not valid", f"an object with one of {_FLOW_STEPS}")
    _, required, optional = STEP_ACTIONS[step["do"]]
    known = (*_COMMON_MEMBERS, *required, *optional)
    for name in required:
        if name not in step:
            raise ControlApiError(f"{path}.{name}", f"is missing; {step['do']} needs it", _STEP_MEMBERS[name].accepted)
    for name in step:
        if name not in known:
            raise ControlApiError(f"{path}.{name}", f"does not go with {step['do']}", ", ".join(known))
    delay = step.get("after_ms", 0)
    shortest, longest = list_or_none(delay) or (delay, delay)
    members = {name: value for name, value in step.items() if name != "after_ms"}
    return ScriptStep(**members, after_ms=(shortest, longest), raw=step)


def _is_flow_step(value: Any) -> bool:
    """True for one step of a person in a Flow, which takes no file: a script has none."""
    step = object_or_none(value) or {}
    try:
        msgspec.convert(step, FlowStep)
    except msgspec.ValidationError:
        return False
    return len(step) == 1 and "upload" not in step and False not in step.values()


@dataclass(frozen=True)
class Script:
    """The script of one phone, or of each phone of a fleet."""

    owner: str  # the owner of its step counts: `fleet` and its name, or `phone` and its digits
    seed: str  # for random choices
    steps: tuple[ScriptStep, ...]


@dataclass(frozen=True)
class PlannedStep:
    """One step that a phone takes about one message; the action is empty if there is nothing to plan."""

    step: int
    after_ms: int
    action: dict[str, Any]


def plan_steps(
    script: Script, phone: str, ordinal: int, rendered: RenderedMessage, uses: dict[int, int]
) -> list[PlannedStep]:
    """Return the steps that one phone takes about one message, in the order of the script."""
    planned: list[PlannedStep] = []
    for index, step in enumerate(script.steps):
        if not STEP_TRIGGERS[step.on][1](rendered):
            continue
        action = _build_action(step, rendered)
        if action is None or (step.times is not None and uses.get(index, 0) >= step.times):
            continue
        source = f"{script.seed}:{phone}:{ordinal}:{index}".encode()
        random_bytes = hashlib.blake2b(source, digest_size=16).digest()
        if int.from_bytes(random_bytes[:8]) >= step.probability * 2**64:
            continue
        shortest, longest = step.after_ms
        after_ms = shortest + (int.from_bytes(random_bytes[8:]) * (longest - shortest + 1) >> 64)
        planned.append(PlannedStep(index, after_ms, action))
        if step.do == "nothing":
            break
    return planned


def _build_action(step: ScriptStep, rendered: RenderedMessage) -> dict[str, Any] | None:
    """Return the complete action, so that the message need not be read again; None if the step does not apply."""
    match step.do:
        case "read" | "nothing":
            return {}
        case "tap":
            button = find_button(step, rendered)
            return None if button is None else {"do": "tap", "button": button}
        case "respond":
            form = find_form_button(rendered)
            return form and {"do": "respond", "button": form, "response": step.response}
        case "play":
            is_flow = any(one.get("type") == "FLOW" for one in objects_in(rendered.get("buttons")))
            return {"do": "play", "steps": step.steps} if is_flow else None
        case "reply" | "react":
            return {"do": step.do, "text": step.text}
        case "offline":
            return {"do": "offline", "for_ms": step.for_ms}
        case _:
            return {"do": step.do}
