"""The steps of a script that a phone takes about one message, decided when the message is accepted.

Random choices depend only on the script's seed, the phone, and the number of messages that the phone has received:
so a run is repeatable whatever the timing (decision 0036).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from waypost.simulator.phones.script_steps import OCCASIONS, Shown, Step, button_of, form_of


@dataclass(frozen=True)
class Script:
    """The script of one phone, or of each phone of a fleet.

    Args:
        owner: the owner of its step counts: `fleet` and its name, or `phone` and its digits.
        seed: for random choices.
    """

    owner: str
    seed: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Intention:
    """One step that a phone takes about one message; the action is empty if there is nothing to plan."""

    step: int
    after_ms: int
    act: dict[str, Any]


def intentions(script: Script, phone: str, ordinal: int, shown: Shown, uses: dict[int, int]) -> list[Intention]:
    """Return the steps that one phone takes about one message, in the order of the script.

    Args:
        script: the phone's script.
        phone: its digits.
        ordinal: how many messages it has received, including this one.
        shown: the message as the phone shows it.
        uses: how often the phone has taken each step with `times`.
    """
    planned: list[Intention] = []
    for index, step in enumerate(script.steps):
        if not OCCASIONS[step.on](shown):
            continue
        action = _act_of(step, shown)
        if action is None or (step.times is not None and uses.get(index, 0) >= step.times):
            continue
        source = f"{script.seed}:{phone}:{ordinal}:{index}".encode()
        random_bytes = hashlib.blake2b(source, digest_size=16).digest()
        if int.from_bytes(random_bytes[:8]) >= step.probability * 2**64:
            continue
        shortest, longest = step.after_ms
        after_ms = shortest + (int.from_bytes(random_bytes[8:]) * (longest - shortest + 1) >> 64)
        planned.append(Intention(index, after_ms, action))
        if step.do == "nothing":
            break
    return planned


def _act_of(step: Step, shown: Shown) -> dict[str, Any] | None:
    """Return the complete action, so that the message need not be read again; None if the step does not apply."""
    match step.do:
        case "read" | "nothing":
            return {}
        case "tap":
            button = button_of(step, shown)
            return None if button is None else {"do": "tap", "button": button}
        case "respond":
            form = form_of(shown)
            return form and {"do": "respond", "button": form, "response": step.response}
        case "answer" | "react":
            return {"do": step.do, "text": step.text}
        case "offline":
            return {"do": "offline", "for_ms": step.for_ms}
        case _:
            return {"do": step.do}
