"""Fault presets that are armed with one click: name, description, and faults."""

from dataclasses import dataclass
from typing import Any, Final

_SEND: Final[dict[str, Any]] = {"on": "call", "call": "messages.send"}
_ANY_WEBHOOK: Final[dict[str, Any]] = {"on": "webhook"}


@dataclass(frozen=True, slots=True)
class FaultPreset:
    """A preset of one or more faults.

    Args:
        key: in the URL.
        sees: description of the effect.
        faults: as the control API accepts them, without `label`.
        for_ms: how long they are armed, by the clock; None: until they are disarmed or used up.
    """

    key: str
    name: str
    sees: str
    faults: tuple[dict[str, Any], ...]
    for_ms: int | None = None


FAULT_PRESETS: Final = (
    FaultPreset(
        "down",
        name="Operator down for 1 minute",
        sees=(
            "Every call fails without a response, and nothing is accepted. The service retries; messages are sent "
            "after the minute."
        ),
        faults=({"on": "call", "what": {"reset": "before"}},),
        for_ms=60_000,
    ),
    FaultPreset(
        "throttled",
        name="Every third message throttled",
        sees=(
            "Every third message fails with error 130429 and a Retry-After of 1 s. The service retries; the partner "
            "sees a delay."
        ),
        faults=({**_SEND, "when": {"every": 3}, "what": {"error": 130429, "retry_after_s": 1}},),
    ),
    FaultPreset(
        "lost-responses",
        name="Every third response lost",
        sees=(
            "The message is accepted, but the connection breaks before the response. It is uncertain until a status "
            "arrives, and is not sent again."
        ),
        faults=({**_SEND, "when": {"every": 3}, "what": {"reset": "after"}},),
    ),
    FaultPreset(
        "slow",
        name="Slow operator",
        sees="Every message is accepted at once, and the response takes 3 s.",
        faults=({**_SEND, "what": {"slow_ms": 3000}},),
    ),
    FaultPreset(
        "gateway",
        name="HTML from a gateway",
        sees="Every fourth call gets status 502 with an HTML page instead of JSON, and nothing is accepted.",
        faults=({"on": "call", "when": {"every": 4}, "what": {"garbage": "html", "status": 502}},),
    ),
    FaultPreset(
        "fails-later",
        name="Every fifth message fails later",
        sees="It is accepted as usual, but then gets the status failed with error 131049 instead of sent.",
        faults=({**_SEND, "when": {"every": 5}, "what": {"fail": 131049}},),
    ),
    FaultPreset(
        "twice-and-crossed",
        name="Webhooks duplicated and out of order",
        sees="Every second update is sent twice; each of the others is swapped with the next one.",
        faults=(
            {**_ANY_WEBHOOK, "when": {"every": 2}, "what": {"duplicate": 1}},
            {**_ANY_WEBHOOK, "what": {"reorder": True}},
        ),
    ),
    FaultPreset(
        "late",
        name="30 % of webhooks delayed by 30 s",
        sees="They keep their original timestamp, and others overtake them. A seed makes every run the same.",
        faults=({**_ANY_WEBHOOK, "seed": 7, "when": {"probability": 0.3}, "what": {"delay_ms": 30_000}},),
    ),
    FaultPreset(
        "silent",
        name="No webhooks for 1 minute",
        sees="Events of this minute are never sent: messages and templates keep their status.",
        faults=({**_ANY_WEBHOOK, "what": {"drop": True}},),
        for_ms=60_000,
    ),
    FaultPreset(
        "forged",
        name="Next three webhooks with wrong signature",
        sees="The service rejects them; the operator retries with the right signature.",
        faults=({**_ANY_WEBHOOK, "when": {"next": 3}, "what": {"wrong_signature": True}},),
    ),
    FaultPreset(
        "submissions-rejected",
        name="Template submissions rejected",
        sees="Every submission fails with error 368: the account is temporarily blocked.",
        faults=({"on": "call", "call": "templates.create", "what": {"error": 368}},),
    ),
    FaultPreset(
        "bad-day",
        name="Operator with many problems",
        sees="Random errors, lost responses, slow responses, and duplicated, delayed or reordered webhooks.",
        faults=(
            {**_SEND, "seed": 20, "when": {"probability": 0.05}, "what": {"error": 130429, "retry_after_s": 1}},
            {**_SEND, "seed": 20, "when": {"probability": 0.02}, "what": {"error": 131016, "status": 503}},
            {**_SEND, "when": {"every": 50}, "what": {"reset": "after"}},
            {"on": "call", "seed": 20, "when": {"probability": 0.1}, "what": {"slow_ms": 400}},
            {**_ANY_WEBHOOK, "seed": 20, "when": {"probability": 0.1}, "what": {"duplicate": 1}},
            {**_ANY_WEBHOOK, "seed": 20, "when": {"probability": 0.1}, "what": {"reorder": True}},
        ),
    ),
)


def preset_body(preset: FaultPreset, *, now_ms: int) -> dict[str, Any]:
    """Return the body of the control API's call: every fault with the preset's name and its end."""
    end = {} if preset.for_ms is None else {"until_ms": now_ms + preset.for_ms}
    return {"faults": [{"label": preset.name, **fault, **end} for fault in preset.faults]}
