"""Script presets for fleets."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ScriptPreset:
    """A script preset.

    Args:
        key: the value of the form field.
        steps: as the control API accepts them.
    """

    key: str
    name: str
    does: str
    steps: tuple[dict[str, Any], ...]


# fmt: off
SCRIPT_PRESETS: Final = (
    ScriptPreset("silent", "Receive only", "Messages are delivered; nobody reads or replies.", ()),
    ScriptPreset("readers", "Read",
        "80 % read within 10 s.",
        ({"on": "message", "do": "read", "after_ms": [500, 10_000], "probability": 0.8},)),
    ScriptPreset("customers", "Read, tap and reply",
        "90 % read; 50 % tap the first button; 20 % reply to a session message.",
        ({"on": "message", "do": "read", "after_ms": [300, 4000], "probability": 0.9},
         {"on": "button", "do": "tap", "index": 0, "after_ms": [1000, 8000], "probability": 0.5},
         {"on": "session", "do": "reply", "text": "Thank you", "after_ms": [2000, 9000], "probability": 0.2})),
    ScriptPreset("annoyed", "Opt out of marketing",
        "10 % stop marketing, 5 % block, 2 % report the business; 60 % read.",
        ({"on": "marketing", "do": "opt_out", "after_ms": [1000, 5000], "probability": 0.1},
         {"on": "marketing", "do": "block", "after_ms": [1000, 5000], "probability": 0.05},
         {"on": "marketing", "do": "report", "after_ms": [1000, 5000], "probability": 0.02},
         {"on": "message", "do": "read", "after_ms": [500, 5000], "probability": 0.6})),
    ScriptPreset("underground", "Go offline",
        "33 % go offline for a minute after a message; further messages arrive afterwards.",
        ({"on": "message", "do": "read", "after_ms": [300, 2000]},
         {"on": "message", "do": "offline", "for_ms": 60_000, "after_ms": [2000, 4000], "probability": 0.33})),
)
# fmt: on
