"""Table: why a message failed, in words for whoever sent it, and what to do about it.

The operator's own words travel with the message; here stands what helps. What each code does to a
submission is another table (`docs/reference/operator-codes.md`).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Failure:
    """One row.

    Attributes:
        what: has happened, in a few words.
        remedy: what to do, in a sentence.
    """

    what: str
    remedy: str


# fmt: off
FAILURES: Final = {  # Source: operator's facts 5.2; facts 12; what to do is ours
    # code           what                                                 remedy
    500:     Failure("The operator does not take our credentials",        "Nothing is wrong with the message. The administrator mends the account at the operator; then send it again."),
    1001:    Failure("The app's name and number do not match",            "Give the name of the app that has the source number as src.name, or leave src.name out, and send it again."),
    4001:    Failure("The operator took no more calls",                   "Send it again later, and fewer at once."),
    4002:    Failure("Nobody knows whether it arrived",                   "The operator did not answer in time. Ask the recipient before you send it again: it may have arrived."),
    33:      Failure("The number was deleted at the operator",            "Have the administrator connect the app to a number that is there."),
    100:     Failure("A parameter is not valid",                          "Compare the request with the template and with the operator's words, and send it again."),
    368:     Failure("The account is blocked for a while",                "Read the notices in the operator's console; sending goes on when the block ends."),
    130403:  Failure("You have blocked the recipient",                    "Unblock the recipient, then send it again."),
    130429:  Failure("More was sent than the number may",                 "Send fewer messages a second, or have the throughput raised."),
    130472:  Failure("The recipient is in an experiment of the operator", "Marketing does not reach this person for now. Do not send it again; write to somebody else, or send a utility template."),
    130497:  Failure("This country is not open to the business",          "The operator does not let this account send there."),
    131000:  Failure("Something went wrong at the operator",              "Send it again."),
    131005:  Failure("The operator does not give us the permission",      "The administrator mends the account at the operator; then send it again."),
    131008:  Failure("A parameter is missing",                            "Give every parameter the template has, and send it again."),
    131009:  Failure("A parameter has a value that is not valid",         "Correct the parameter the operator names, and send it again."),
    131016:  Failure("The operator was not available",                    "Send it again."),
    131021:  Failure("The recipient is the sender",                       "Send it to another number than the app's own."),
    131026:  Failure("It cannot be delivered to this number",             "The number has no such account, or an old client. Reach the person in another way."),
    131030:  Failure("The number is a test number",                       "Add the recipient to the five that a test number may write to, in the operator's console."),
    131031:  Failure("The business account is locked",                    "Read the notices in the operator's console, and ask for a review."),
    131037:  Failure("The number has no approved display name",           "Set a display name in the operator's console, and send again once it is approved."),
    131042:  Failure("There is a problem with the payment",               "Mend the payment method of the business account in the operator's console."),
    131045:  Failure("The number is not rightly registered",              "Register the number again in the operator's console."),
    131047:  Failure("The 24-hour window is closed",                      "Send a template: free text is taken only within 24 hours of the recipient's last message."),
    131048:  Failure("The number is held back",                           "Too many have reported it. Send less that is not wanted, and wait for the quality to recover."),
    131049:  Failure("The recipient gets no more marketing for now",      "Do not send it again before 24 hours have passed."),
    131050:  Failure("The recipient has stopped your marketing",          "Send no marketing to this person any more."),
    131051:  Failure("The operator does not know this type of message",   "Send another type."),
    131053:  Failure("The medium cannot be fetched or used",              "See that its address is public and its type and size are taken, and send it again."),
    131056:  Failure("Too many messages to this recipient",               "Send this person fewer messages in a short time."),
    131057:  Failure("The number is being upgraded",                      "Send it again in some minutes."),
    131062:  Failure("It needs a phone number as its recipient",          "Send it to the phone number, not to the business-scoped id."),
    131063:  Failure("Marketing is not taken for this account",           "Send a utility template, or ask the operator."),
    132000:  Failure("The number of parameters is not the template's",    "Give as many parameters as the template has variables, and send it again."),
    132001:  Failure("The operator has no such approved template",        "Wait until the template is approved, or submit it again."),
    132005:  Failure("The filled-in text is too long",                    "Shorten the parameters, and send it again."),
    132007:  Failure("The text breaks the operator's policy",             "Change the template's text, and submit it again."),
    132012:  Failure("A parameter has another format than the template's", "Send the kind of parameter that the template's header and buttons ask for."),
    132015:  Failure("The template is paused",                            "It comes back by itself after some hours; improve it meanwhile, or send another one."),
    132016:  Failure("The template is disabled",                          "It was paused too often. Create a new template."),
    132018:  Failure("A parameter of the template is not valid",          "Correct the parameter the operator names, and send it again."),
    132068:  Failure("The flow is blocked",                               "Correct the flow at the operator."),
    132069:  Failure("The flow is throttled",                             "Send it to fewer people: ten an hour are taken."),
    133010:  Failure("The number is not registered",                      "Register the number in the operator's console."),
    135000:  Failure("Something is wrong with the request",               "Compare the request with the operator's words, and send it again."),
    137000:  Failure("The recipient's identity has changed",              "Make sure that it is still the same person before you send again."),
}
# fmt: on

_OTHER: Final = Failure("It was refused", "Read the operator's words, and open one message to see its whole way.")


def failure_of(code: int | None) -> Failure:
    """The row of a code; one that nobody knows has a row of its own."""
    return FAILURES.get(code, _OTHER) if code is not None else _OTHER
