"""Scripts that are ready for a fleet."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ReadyScript:
    """One row.

    Args:
        key: the value of the form's field.
        steps: as the control door takes them.
    """

    key: str
    name: str
    does: str
    steps: tuple[dict[str, Any], ...]


# fmt: off
SCRIPTS: Final = (
    ReadyScript("silent", "They only receive", "Messages are delivered; nobody reads or answers.", ()),
    ReadyScript("readers", "They read",
        "Four in five read within ten seconds.",
        ({"on": "message", "do": "read", "after_ms": [500, 10_000], "probability": 0.8},)),
    ReadyScript("customers", "They read, tap and answer",
        "Most read; half of those with buttons tap the first one; one in five answers a session message.",
        ({"on": "message", "do": "read", "after_ms": [300, 4000], "probability": 0.9},
         {"on": "button", "do": "tap", "index": 0, "after_ms": [1000, 8000], "probability": 0.5},
         {"on": "session", "do": "answer", "text": "Thank you", "after_ms": [2000, 9000], "probability": 0.2})),
    ReadyScript("annoyed", "They have had enough of marketing",
        "One in ten stops marketing, one in twenty blocks, one in fifty reports; the others read.",
        ({"on": "marketing", "do": "opt_out", "after_ms": [1000, 5000], "probability": 0.1},
         {"on": "marketing", "do": "block", "after_ms": [1000, 5000], "probability": 0.05},
         {"on": "marketing", "do": "report", "after_ms": [1000, 5000], "probability": 0.02},
         {"on": "message", "do": "read", "after_ms": [500, 5000], "probability": 0.6})),
    ReadyScript("underground", "They travel underground",
        "One in three goes offline for a minute after a message; what comes meanwhile arrives later.",
        ({"on": "message", "do": "read", "after_ms": [300, 2000]},
         {"on": "message", "do": "offline", "for_ms": 60_000, "after_ms": [2000, 4000], "probability": 0.33})),
)
# fmt: on


def as_json(steps: Sequence[dict[str, Any]]) -> str:
    """Steps as people read and change them: one on each line."""
    if not steps:
        return "[]"
    return "[\n" + ",\n".join(f"  {json.dumps(step)}" for step in steps) + "\n]"
