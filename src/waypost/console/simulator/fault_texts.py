"""Faults in words: what each kind is called, and one that is armed as a sentence."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.console.web.formatting import exact


@dataclass(frozen=True, slots=True)
class Words:
    """What a kind is called.

    Attributes:
        title: of its form.
        happens: in a sentence about one fault, with its value.
        unit: of its value.
    """

    title: str
    happens: str
    unit: str = ""


# fmt: off
WORDS: Final = {  # a row for each kind of the simulator's table; one without shows its own name
    # on and kind                    title                              happens
    ("call", "error"):         Words("Refuse a call",                  "is refused with {}", "the operator's error code"),
    ("call", "fail"):          Words("Take a message and fail it",     "is taken, and fails with {}", "the operator's error code"),
    ("call", "timeout"):       Words("Never answer",                   "gets no answer"),
    ("call", "reset"):         Words("Break the connection",           "breaks {} it is carried out", "when, compared with the call"),
    ("call", "slow_ms"):       Words("Answer late",                    "is answered {} late", "ms of real time"),
    ("call", "garbage"):       Words("Answer with garbage",            "is answered with garbage ({})", "what the answer is"),
    ("webhook", "drop"):       Words("Never tell",                     "is never told"),
    ("webhook", "delay_ms"):   Words("Tell late",                      "is told {} late", "ms by the clock"),
    ("webhook", "duplicate"):  Words("Tell more than once",            "is told {} times again", "how often again"),
    ("webhook", "reorder"):    Words("Tell out of order",              "changes places with the next one"),
    ("webhook", "batch"):      Words("Gather into one POST",           "waits until {} are together", "how many"),
    ("webhook", "wrong_signature"): Words("Sign with another secret",  "is signed with another secret"),
    ("webhook", "unsigned"):   Words("Do not sign",                    "is not signed"),
    ("webhook", "garbage"):    Words("Send garbage first",             "comes after a POST that is no JSON"),
}
BESIDE: Final = {
    # member           label                        in a sentence
    "subcode":        ("Subcode",                   "subcode {}"),
    "status":         ("HTTP status",               "HTTP {}"),
    "details":        ("Details in the answer",     "\"{}\""),
    "retry_after_s":  ("Retry-After, in seconds",   "to be tried again after {} s"),
    "taken":          ("Is the call carried out?",  "carried out: {}"),
}
FILTERS: Final = {
    # member     label                              in a sentence
    "app":      ("App at the operator",              "of app {}"),
    "waba_id":  ("Business account",                 "of account {}"),
    "number":   ("Business number",                  "of number {}"),
    "phone":    ("Phone",                            "for phone {}"),
    "template": ("Template",                         "with template {}"),
}
# fmt: on


def words_of(fault: dict[str, Any]) -> str:
    """An armed fault as a sentence."""
    on: str = fault["on"]
    name: str = fault.get(on, "*")
    subject = {"call": "Each call", "webhook": "Each update"}[on] if name == "*" else name
    kind, value = next(iter(fault["what"].items()))
    for candidate, candidate_value in fault["what"].items():
        if (on, candidate) in WORDS:
            kind, value = candidate, candidate_value
            break
    words = WORDS.get((on, kind))
    happens = f"has {kind}: {value}" if words is None else words.happens.format(_shown(kind, value))
    beside = [
        BESIDE[key][1].format(_shown(key, one)) if key in BESIDE else f"{key} {one}"
        for key, one in fault["what"].items()
        if key != kind
    ]
    where = [text.format(fault[key]) for key, (_, text) in FILTERS.items() if key in fault]
    said = " ".join([subject, *where, happens])
    said += f" ({', '.join(beside)})" if beside else ""
    said += _when_words(fault["when"], fault.get("seed"))
    until_ms = fault.get("until_ms")
    return f"{said}, until {exact(until_ms)}." if until_ms else f"{said}."


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value / 1000:g} s" if name.endswith("_ms") else str(value).replace("_", " ")


def _when_words(when: dict[str, Any], seed: int | None) -> str:
    match when:
        case {"next": 1}:
            return ", the next time"
        case {"next": times}:
            return f", the next {times} times"
        case {"every": every}:
            return f", once in every {every} times"
        case {"probability": chance}:
            return f", with a chance of {chance:.4g}" + (f" (seed {seed})" if seed is not None else "")
        case _:
            return ", each time"
