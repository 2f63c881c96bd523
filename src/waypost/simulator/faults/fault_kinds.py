"""Tables: what can go wrong on purpose, how often, and what the business sees of it."""

from dataclasses import dataclass
from typing import Any, Final, Literal

CALL: Final = "call"
WEBHOOK: Final = "webhook"
ANY: Final = "*"
"""The name that means every call, or every webhook."""

_WEEK_MS: Final = 7 * 24 * 3600 * 1000
_REAL_AT_MOST_MS: Final = 10 * 60 * 1000
_CODE_AT_MOST: Final = 9_999_999


@dataclass(frozen=True)
class Parameter:
    """One member of `what` or `when`, and which values it takes.

    Args:
        type: `whole` and `fraction` are numbers within the bounds, `true` is nothing but true.
        at_least: of a number; a fraction is more than that.
        at_most: of a number, or characters of a text.
        choices: of a `choice`.
    """

    name: str
    type: Literal["whole", "fraction", "boolean", "true", "text", "choice"]
    at_least: int = 0
    at_most: int = 0
    choices: tuple[str, ...] = ()

    def takes(self, value: object) -> bool:
        """Whether the value may be given."""
        match self.type:
            case "true":
                return value is True
            case "boolean":
                return isinstance(value, bool)
            case "text":
                return isinstance(value, str) and 0 < len(value) <= self.at_most
            case "choice":
                return value in self.choices
            case "whole":
                return type(value) is int and self.at_least <= value <= self.at_most
            case "fraction":
                if not isinstance(value, int | float) or isinstance(value, bool):
                    return False
                return self.at_least < value <= self.at_most

    @property
    def accepted(self) -> str:
        """Which values it takes, in words."""
        match self.type:
            case "true":
                return "true"
            case "boolean":
                return "true or false"
            case "text":
                return f"1 to {self.at_most} characters"
            case "choice":
                return " or ".join((", ".join(self.choices[:-1]), self.choices[-1]))
            case "whole":
                return f"a whole number from {self.at_least} to {self.at_most}"
            case "fraction":
                return f"a number above {self.at_least}, up to {self.at_most}"


@dataclass(frozen=True)
class Kind:
    """A row: one way in which something goes wrong.

    Args:
        each: what the fault is counted by: a call, an update that a webhook would carry, or a POST.
        own: the member of `what` that names the kind, and its value.
        more: members that may stand beside it.
        sees: what the business sees of it.
        only: the one call that it is for; empty for all.
    """

    each: Literal["call", "update", "post"]
    own: Parameter
    more: tuple[Parameter, ...]
    sees: str
    source: str
    only: str = ""

    @property
    def name(self) -> str:
        """The name of its own member."""
        return self.own.name

    @property
    def on(self) -> str:
        """What it happens to."""
        return CALL if self.each == "call" else WEBHOOK


_TAKEN: Final = Parameter("taken", "boolean")
_BREAKS: Final = ("html", "truncated", "empty", "not_json")

# fmt: off
KINDS: Final = (
    Kind("call", Parameter("error", "whole", 0, _CODE_AT_MOST), (
            Parameter("subcode", "whole", 0, _CODE_AT_MOST),
            Parameter("status", "whole", 400, 599),
            Parameter("details", "text", at_most=1000),
            Parameter("retry_after_s", "whole", 0, 86_400),
        ),
        "The call is refused with this code; nothing is taken. Without `status` it has the code's own.",
        "facts 5.1, 5.2"),
    Kind("call", Parameter("fail", "whole", 0, _CODE_AT_MOST), (),
        "The message is taken and answered as ever; instead of `sent` comes `failed` with this code.",
        "facts 5.2, mode A", only="messages.send"),
    Kind("call", Parameter("timeout", "true"), (_TAKEN,),
        "No answer ever comes; the call is carried out unless `taken` is false.",
        "facts 5.1"),
    Kind("call", Parameter("reset", "choice", choices=("before", "after")), (),
        "The connection breaks without an answer: before the call is carried out, or after it.",
        "facts 5.1"),
    Kind("call", Parameter("slow_ms", "whole", 1, _REAL_AT_MOST_MS), (),
        "The call is carried out at once; its answer comes so much later, in real time.",
        "facts 5.1"),
    Kind("call", Parameter("garbage", "choice", choices=_BREAKS),
        (Parameter("status", "whole", 200, 599), _TAKEN),
        "The answer is a page, breaks off in the middle, is empty, or is no JSON; with status 502 "
        "unless told otherwise, and carried out only if `taken` is true.",
        "facts 5.1"),
    Kind("update", Parameter("drop", "true"), (),
        "What there is to tell is never told.",
        "facts 7.3"),
    Kind("update", Parameter("delay_ms", "whole", 1, _WEEK_MS), (),
        "It is told so much later, by the clock, with the time at which it happened; others overtake it.",
        "facts 7.1"),
    Kind("update", Parameter("duplicate", "whole", 1, 100), (),
        "It is told so often again, each time in a POST of its own.",
        "facts 7.1"),
    Kind("update", Parameter("reorder", "true"), (),
        "It changes places with the account's next one; if none comes within 5 s, it goes alone.",
        "facts 7.1"),
    Kind("update", Parameter("batch", "whole", 2, 1000), (),
        "It waits until so many are together and share one POST, or until the first has waited 5 s.",
        "facts 7.1"),
    Kind("post", Parameter("wrong_signature", "true"), (),
        "The POST is signed with another secret; it is tried again like every one that is refused.",
        "facts 7.1"),
    Kind("post", Parameter("unsigned", "true"), (),
        "The POST carries no signature; it is tried again like every one that is refused.",
        "facts 7.1"),
    Kind("post", Parameter("garbage", "true"), (),
        "A POST comes first that is rightly signed and no JSON; the true one follows.",
        "facts 7.1"),
)

WHENS: Final = (
    # member                                        fires
    (Parameter("always", "true"),                      "each time"),
    (Parameter("next", "whole", 1, 1_000_000),         "the next so many times, and then no more"),
    (Parameter("every", "whole", 2, 1_000_000),        "at each multiple: with 3 the third time, the sixth, and so on"),
    (Parameter("probability", "fraction", 0, 1),       "with this chance, drawn from `seed`, the fault's id and "
                                                       "how many times it has been asked"),
)

STATUSES: Final = ("sent", "delivered", "read", "failed", "played", "deleted", "warning")  # facts 7.3
TEMPLATE_FIELDS: Final = (  # Source: facts 3.3, 7.2
    "message_template_status_update", "message_template_quality_update", "template_category_update",
    "message_template_components_update",
)
OTHER_FIELDS: Final = (  # Source: facts 7.2; what the control door may tell under a field's name
    "account_alerts", "account_review_update", "account_update", "business_capability_update",
    "flows", "messages", "phone_number_name_update", "phone_number_quality_update",
    "user_preferences",
)
INBOUND: Final = "message"
WEBHOOKS: Final = (*STATUSES, INBOUND, *TEMPLATE_FIELDS, *OTHER_FIELDS)
"""What an update is called: a message's status, `message` for what a phone sends, or the field's name."""

FILTERS: Final = {
    # member    accepted
    "app":      "an app's id at the operator: digits",
    "waba_id":  "a business account's id: digits",
    "number":   "a business number's id or its digits",
    "phone":    "a phone's digits, without +",
    "template": "a template's name",
}
# fmt: on


def kind_of(on: str, what: dict[str, Any]) -> Kind:
    """The row of a checked `what`."""
    return next(kind for kind in KINDS if kind.on == on and kind.name in what)
