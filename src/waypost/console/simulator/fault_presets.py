"""Faults that are ready to be armed by one click: what they are called, what one sees, and what is armed."""

from dataclasses import dataclass
from typing import Any, Final

_SEND: Final[dict[str, Any]] = {"on": "call", "call": "messages.send"}
_ANY_WEBHOOK: Final[dict[str, Any]] = {"on": "webhook"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One row.

    Args:
        key: in the address.
        sees: what happens then.
        faults: as the control door takes them, but for `label`.
        for_ms: how long they are armed, by the clock; None: until they are disarmed or spent.
    """

    key: str
    name: str
    sees: str
    faults: tuple[dict[str, Any], ...]
    for_ms: int | None = None


# fmt: off
RECIPES: Final = (
    Recipe("down", "The operator is down for a minute",
           "Every call breaks without an answer and nothing is taken. The service waits and tries again; messages leave when the minute is over.",
           ({"on": "call", "what": {"reset": "before"}},), for_ms=60_000),
    Recipe("throttled", "Every third message is throttled",
           "Every third send is refused with 130429 and a wish to wait for a second. The service tries again by itself; the partner sees a delay.",
           ({**_SEND, "when": {"every": 3}, "what": {"error": 130429, "retry_after_s": 1}},)),
    Recipe("lost-answers", "Every third answer is lost",
           "The message is taken, and the connection breaks before the answer. It is uncertain until a status settles it, and is not sent again.",
           ({**_SEND, "when": {"every": 3}, "what": {"reset": "after"}},)),
    Recipe("slow", "The operator is slow",
           "Every message is taken at once and answered after 3 s.",
           ({**_SEND, "what": {"slow_ms": 3000}},)),
    Recipe("gateway", "A gateway answers with a page",
           "Every fourth call is answered 502 with a page in place of JSON, and nothing is taken.",
           ({"on": "call", "when": {"every": 4}, "what": {"garbage": "html", "status": 502}},)),
    Recipe("fails-later", "Every fifth message fails after all",
           "It is taken and answered as ever; instead of sent comes failed, with 131049.",
           ({**_SEND, "when": {"every": 5}, "what": {"fail": 131049}},)),
    Recipe("twice-and-crossed", "Webhooks come twice and out of order",
           "Every second update is told twice; each of the others changes places with the next one.",
           ({**_ANY_WEBHOOK, "when": {"every": 2}, "what": {"duplicate": 1}},
            {**_ANY_WEBHOOK, "what": {"reorder": True}})),
    Recipe("late", "Three in ten webhooks are half a minute late",
           "They carry the time at which it happened, and others overtake them. Chance is drawn from a seed: every run is alike.",
           ({**_ANY_WEBHOOK, "seed": 7, "when": {"probability": 0.3}, "what": {"delay_ms": 30_000}},)),
    Recipe("silent", "No webhook comes for a minute",
           "What happens in this minute is never told: messages stay as they are, and templates too.",
           ({**_ANY_WEBHOOK, "what": {"drop": True}},), for_ms=60_000),
    Recipe("forged", "The next three webhooks are badly signed",
           "The service refuses them; the operator tries again, and then they are right.",
           ({**_ANY_WEBHOOK, "when": {"next": 3}, "what": {"wrong_signature": True}},)),
    Recipe("reviews-refused", "Templates cannot be submitted",
           "Every submission is refused with 368: the account is temporarily blocked.",
           ({"on": "call", "call": "templates.create", "what": {"error": 368}},)),
    Recipe("bad-day", "The operator has a bad day",
           "A little of everything by chance: busy, slow, forgetful, twice, late and crossed.",
           ({**_SEND, "seed": 20, "when": {"probability": 0.05}, "what": {"error": 130429, "retry_after_s": 1}},
            {**_SEND, "seed": 20, "when": {"probability": 0.02}, "what": {"error": 131016, "status": 503}},
            {**_SEND, "when": {"every": 50}, "what": {"reset": "after"}},
            {"on": "call", "seed": 20, "when": {"probability": 0.1}, "what": {"slow_ms": 400}},
            {**_ANY_WEBHOOK, "seed": 20, "when": {"probability": 0.1}, "what": {"duplicate": 1}},
            {**_ANY_WEBHOOK, "seed": 20, "when": {"probability": 0.1}, "what": {"reorder": True}})),
)
# fmt: on


def as_armed(recipe: Recipe, *, now_ms: int) -> dict[str, Any]:
    """What the control door is given: every fault with the recipe's name, and its end."""
    end = {} if recipe.for_ms is None else {"until_ms": now_ms + recipe.for_ms}
    return {"faults": [{"label": recipe.name, **fault, **end} for fault in recipe.faults]}
