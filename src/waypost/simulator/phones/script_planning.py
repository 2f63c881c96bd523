"""The steps of a script that a phone takes about one message, decided when the message is accepted.

Random choices depend only on the script's seed, the phone, and the number of messages that the phone has received:
so a run is repeatable whatever the timing (decision 0036).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from waypost.simulator.phones.script_steps import (
    STEP_TRIGGERS,
    RenderedMessage,
    ScriptStep,
    find_button,
    find_form_button,
)


@dataclass(frozen=True)
class Script:
    """The script of one phone, or of each phone of a fleet.

    Args:
        owner: the owner of its step counts: `fleet` and its name, or `phone` and its digits.
        seed: for random choices.
    """

    owner: str
    seed: str
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
    """Return the steps that one phone takes about one message, in the order of the script.

    Args:
        script: the phone's script.
        phone: its digits.
        ordinal: how many messages it has received, including this one.
        rendered: the message as the phone shows it.
        uses: how often the phone has taken each step with `times`.
    """
    planned: list[PlannedStep] = []
    for index, step in enumerate(script.steps):
        if not STEP_TRIGGERS[step.on](rendered):
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
        case "reply" | "react":
            return {"do": step.do, "text": step.text}
        case "offline":
            return {"do": "offline", "for_ms": step.for_ms}
        case _:
            return {"do": step.do}
