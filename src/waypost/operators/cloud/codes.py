"""The table of the operator's error codes: is it final, or is it worth another try?"""

from typing import Final

from waypost.domain.outcome import Outcome, Rejected, Unavailable

# fmt: off
TRY_AGAIN: Final = {  # Source: operator's facts 5.2 and 5.3. Every code not named here is final.
    # code   why
    0:      "our token is not accepted",  # ours to mend, not the partner's: nothing is lost meanwhile
    190:    "our token has expired",
    1:      "unknown error",
    2:      "service down",
    4:      "call rate",
    17:     "call rate",
    613:    "call rate",
    80007:  "account's call rate",
    80008:  "account's call rate",
    130429: "throughput",
    131000: "something went wrong",
    131016: "service unavailable",
    131048: "spam rate",
    131056: "pair rate",
    131057: "account in maintenance",
    133016: "registration rate",
}
# fmt: on


def outcome_of(code: int, text: str, wish_s: float | None) -> Outcome:
    """What an error code from the operator means for the submission.

    Args:
        code: of the error object.
        text: what the partner is told when it is final.
        wish_s: seconds from `Retry-After`, where there was one.
    """
    if code in TRY_AGAIN:
        return Unavailable(text, code, wish_s)
    return Rejected(code, text)
