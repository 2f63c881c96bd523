"""Texts of faults: the title of each kind, and an armed fault as a sentence."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.console.web.formatting import exact


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of one kind of fault.

    Attributes:
        title: of its form.
        happens: its effect in a sentence, with its value.
        unit: of its value.
    """

    title: str
    happens: str
    unit: str = ""


# fmt: off
WORDS: Final = {  # a row for each kind of the simulator's table; a kind without a row is shown by its name
    # on and kind                    title                              happens
    ("call", "error"):         Words("Return an error",                "fails with error {}", "error code of the operator"),
    ("call", "fail"):          Words("Accept a message and fail it",   "is accepted, and fails later with error {}", "error code of the operator"),
    ("call", "timeout"):       Words("No response",                    "gets no response"),
    ("call", "reset"):         Words("Break the connection",           "loses its connection {} it is processed", "before or after the call is processed"),
    ("call", "slow_ms"):       Words("Slow response",                  "gets its response {} late", "ms of real time"),
    ("call", "garbage"):       Words("Garbage response",               "gets a garbage response ({})", "kind of response"),
    ("webhook", "drop"):       Words("Drop an update",                 "is dropped"),
    ("webhook", "delay_ms"):   Words("Delay an update",                "is delayed by {}", "ms by the clock"),
    ("webhook", "duplicate"):  Words("Duplicate an update",            "is duplicated ({} extra)", "number of duplicates"),
    ("webhook", "reorder"):    Words("Reorder updates",                "is swapped with the next one"),
    ("webhook", "batch"):      Words("Batch updates",                  "is batched with others, {} per POST", "updates per POST"),
    ("webhook", "wrong_signature"): Words("Wrong signature",           "is signed with a wrong secret"),
    ("webhook", "unsigned"):   Words("Missing signature",              "is not signed"),
    ("webhook", "garbage"):    Words("Garbage before an update",       "is preceded by a POST that is not JSON"),
}
BESIDE: Final = {
    # member           label                        in a sentence
    "subcode":        ("Subcode",                   "subcode {}"),
    "status":         ("HTTP status",               "HTTP {}"),
    "details":        ("Error details",             "\"{}\""),
    "retry_after_s":  ("Retry-After, in seconds",   "Retry-After {} s"),
    "taken":          ("Call processed",            "processed: {}"),
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
    """Return an armed fault as a sentence."""
    on: str = fault["on"]
    name: str = fault.get(on, "*")
    subject = {"call": "Each call", "webhook": "Each update"}[on] if name == "*" else name
    kind, value = next(iter(fault["what"].items()))
    for candidate, candidate_value in fault["what"].items():
        if (on, candidate) in WORDS:
            kind, value = candidate, candidate_value
            break
    texts = WORDS.get((on, kind))
    effect = f"has {kind}: {value}" if texts is None else texts.happens.format(_shown(kind, value))
    options = [
        BESIDE[key][1].format(_shown(key, option)) if key in BESIDE else f"{key} {option}"
        for key, option in fault["what"].items()
        if key != kind
    ]
    filters = [text.format(fault[key]) for key, (_, text) in FILTERS.items() if key in fault]
    sentence = " ".join([subject, *filters, effect])
    sentence += f" ({', '.join(options)})" if options else ""
    sentence += _when_words(fault["when"], fault.get("seed"))
    until_ms = fault.get("until_ms")
    return f"{sentence}, until {exact(until_ms)}." if until_ms else f"{sentence}."


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value / 1000:g} s" if name.endswith("_ms") else str(value).replace("_", " ")


def _when_words(when: dict[str, Any], seed: int | None) -> str:
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
