"""Texts of faults: the title of each kind, and an armed fault as a sentence."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class FaultTexts:
    """The texts of one kind of fault.

    Attributes:
        title: of its form.
        effect: its effect in a sentence, with its value.
        unit: of its value.
    """

    title: str
    effect: str
    unit: str = ""


FAULT_TEXTS: Final = {  # a row for each kind of the simulator's table; a kind without a row is shown by its name
    # on and kind, title, happens
    ("call", "error"): FaultTexts("Return an error", "fails with error {}", "error code of the operator"),
    ("call", "fail"): FaultTexts(
        "Accept a message and fail it",
        effect="is accepted, and fails later with error {}",
        unit="error code of the operator",
    ),
    ("call", "timeout"): FaultTexts("No response", "gets no response"),
    ("call", "reset"): FaultTexts(
        "Break the connection",
        effect="loses its connection {} it is processed",
        unit="before or after the call is processed",
    ),
    ("call", "slow_ms"): FaultTexts("Slow response", "gets its response {} late", "ms of real time"),
    ("call", "garbage"): FaultTexts("Garbage response", "gets a garbage response ({})", "kind of response"),
    ("webhook", "drop"): FaultTexts("Drop an update", "is dropped"),
    ("webhook", "delay_ms"): FaultTexts("Delay an update", "is delayed by {}", "ms by the clock"),
    ("webhook", "duplicate"): FaultTexts("Duplicate an update", "is duplicated ({} extra)", "number of duplicates"),
    ("webhook", "reorder"): FaultTexts("Reorder updates", "is swapped with the next one"),
    ("webhook", "batch"): FaultTexts("Batch updates", "is batched with others, {} per POST", "updates per POST"),
    ("webhook", "wrong_signature"): FaultTexts("Wrong signature", "is signed with a wrong secret"),
    ("webhook", "unsigned"): FaultTexts("Missing signature", "is not signed"),
    ("webhook", "garbage"): FaultTexts("Garbage before an update", "is preceded by a POST that is not JSON"),
}
FAULT_OPTION_TEXTS: Final = {
    # member, label, in a sentence
    "subcode": ("Subcode", "subcode {}"),
    "status": ("HTTP status", "HTTP {}"),
    "details": ("Error details", '"{}"'),
    "retry_after_s": ("Retry-After, in seconds", "Retry-After {} s"),
    "processed": ("Call processed", "processed: {}"),
}
FAULT_FILTER_TEXTS: Final = {
    # member, label, in a sentence
    "app": ("App at the operator", "of app {}"),
    "waba_id": ("Business account", "of account {}"),
    "number": ("Business number", "of number {}"),
    "phone": ("Phone", "for phone {}"),
    "template": ("Template", "with template {}"),
}


def describe_fault(fault: dict[str, Any]) -> str:
    """Return an armed fault as a sentence."""
    on: str = fault["on"]
    name: str = fault.get(on, "*")
    subject = {"call": "Each call", "webhook": "Each update"}[on] if name == "*" else name
    kind, value = next(iter(fault["what"].items()))
    for candidate, candidate_value in fault["what"].items():
        if (on, candidate) in FAULT_TEXTS:
            kind, value = candidate, candidate_value
            break
    texts = FAULT_TEXTS.get((on, kind))
    effect = f"has {kind}: {value}" if texts is None else texts.effect.format(_format_value(kind, value))
    options = [
        FAULT_OPTION_TEXTS[key][1].format(_format_value(key, option))
        if key in FAULT_OPTION_TEXTS
        else f"{key} {option}"
        for key, option in fault["what"].items()
        if key != kind
    ]
    filters = [text.format(fault[key]) for key, (_, text) in FAULT_FILTER_TEXTS.items() if key in fault]
    sentence = " ".join([subject, *filters, effect])
    sentence += f" ({', '.join(options)})" if options else ""
    return f"{sentence}{_describe_when(fault['when'], fault.get('seed'))}."


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value / 1000:g} s" if name.endswith("_ms") else str(value).replace("_", " ")


def _describe_when(when: dict[str, Any], seed: int | None) -> str:
    match when:
        case {"next": 1}:
            return ", next time only"
        case {"next": times}:
            return f", the next {times} times"
        case {"every": every}:
            return f", once every {every} times"
        case {"probability": chance}:
            return f", with probability {chance:.4g}" + (f" (seed {seed})" if seed is not None else "")
        case _:
            return ", every time"
