"""What an operator's refusal of a question says about the account that asked."""

from dataclasses import dataclass
from typing import Final

from waypost.admin.asking import NotTold
from waypost.admin.doctor.finding import Finding, State


@dataclass(frozen=True, slots=True)
class _Row:
    codes: tuple[int, ...]
    state: State
    meaning: str
    remedy: str


_PERMISSIONS: Final = tuple(range(200, 300))

# fmt: off
_MEANINGS: Final = (  # Source: operator's facts 1, 5.2
    #    codes                             state          meaning                             remedy
    _Row((0, 190),                         State.WRONG,   "the token is not valid any more",  "make a new token for the system user, then: waypost account token {account}"),
    _Row((3, 10, *_PERMISSIONS),           State.WRONG,   "the token lacks a permission",     "give it whatsapp_business_messaging and whatsapp_business_management, then: waypost account token {account}"),
    _Row((33, 100, 803),                   State.WRONG,   "the operator has no such object, or does not show it to this token",
                                                                                              "check the id, and that the system user has been assigned the business account with full control"),
    _Row((368, 131031),                    State.WRONG,   "the operator has blocked the account", "read its notices in the operator's console"),
    _Row((4, 17, 613, 80007, 80008, 130429), State.WARNING, "the operator takes no further calls for now", "wait; nothing is lost"),
    _Row((1, 2, 131000, 131016),           State.WARNING, "the operator is out of order",     "wait, and look again"),
)
# fmt: on


def refused(about: str, account_id: str, told: NotTold) -> Finding:
    """The finding that an unanswered question makes; the operator's own words are in it."""
    if told.code is None:
        return Finding(
            about,
            State.WRONG,
            told.text,
            "see that it is up and the line to it is good; if its address is wrong: "
            f"waypost account operator {account_id} --base-url …",
        )
    for row in _MEANINGS:
        if told.code in row.codes:
            text = f"{row.meaning}: {told.text} ({told.code})"
            return Finding(about, row.state, text, row.remedy.format(account=account_id))
    return Finding(
        about,
        State.WRONG,
        f"the operator refuses: {told.text} ({told.code})",
        "look the code up in docs/reference/operator-codes.md",
    )
