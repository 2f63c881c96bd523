"""What a script makes a phone do about one message, decided when the message is taken.

Chance is drawn from the script's seed, the phone, and the number of messages that this phone has had, and
from nothing else: so a run repeats whatever the timing (decision 0036).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from waypost.simulator.phones.script_steps import OCCASIONS, Shown, Step, button_of, form_of


@dataclass(frozen=True)
class Script:
    """What one phone, or each of a fleet, does.

    Args:
        owner: under which it is counted: `fleet` and its name, or `phone` and its digits.
        seed: where chance comes from.
    """

    owner: str
    seed: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Intention:
    """One step that will be done about one message; `act` is empty where there is nothing to plan."""

    step: int
    after_ms: int
    act: dict[str, Any]


def intentions(script: Script, phone: str, ordinal: int, shown: Shown, uses: dict[int, int]) -> list[Intention]:
    """The steps that one phone takes about one message, in the order of the script.

    Args:
        script: what it follows.
        phone: its digits.
        ordinal: how many messages it has had, this one included.
        shown: what the phone shows of it.
        uses: of steps with `times`, how often the phone has taken them.
    """
    taken: list[Intention] = []
    for place, step in enumerate(script.steps):
        if not OCCASIONS[step.on](shown):
            continue
        act = _act_of(step, shown)
        if act is None or (step.times is not None and uses.get(place, 0) >= step.times):
            continue
        told = f"{script.seed}:{phone}:{ordinal}:{place}".encode()
        drawn = hashlib.blake2b(told, digest_size=16).digest()
        if int.from_bytes(drawn[:8]) >= step.probability * 2**64:
            continue
        least, most = step.after_ms
        after_ms = least + (int.from_bytes(drawn[8:]) * (most - least + 1) >> 64)
        taken.append(Intention(place, after_ms, act))
        if step.do == "nothing":
            break
    return taken


def _act_of(step: Step, shown: Shown) -> dict[str, Any] | None:
    """What will be done, whole, so that the message need not be read again; None: it cannot be."""
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
